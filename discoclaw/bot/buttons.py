"""Buttons, menus and forms of memories, each with what it does; how a press is taken is in `pressed`.

A message says what came of a press and loses its buttons, so a second press, or an old one, finds it done
already. On a card of memories it shows what came of it and the page again, with a button to take it back. A
memory is named by its stamp, so nobody changes what they were not shown (see `memories`).
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from typing import cast

import discord

from discoclaw.bot import naming
from discoclaw.bot.commands.context import Unclear, sentence
from discoclaw.bot.commands.dispatch import Outcome
from discoclaw.bot.layout import Field, Form, send_either
from discoclaw.bot.links import source_words
from discoclaw.bot.pressed import (
    BRANCH,
    USER,
    Controls,
    Press,
    Pressed,
    become,
    handed_on,
    opens_form,
    whisper,
)
from discoclaw.bot.proposals import answered, waiting
from discoclaw.bot.words import texts_of, texts_shown
from discoclaw.commands.caller import DONE_ALREADY, GONE, OPTED_OUT
from discoclaw.commands.memories import STAMP, Asked, menu_of, stamp
from discoclaw.commands.questions import LETTERS
from discoclaw.core.draft import Resolution
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item
from discoclaw.core.pending import Key, is_proposal, key_of_event
from discoclaw.core.subject import user_subject
from discoclaw.core.view import View
from discoclaw.memory.subjects import verbs
from discoclaw.show.answer import ASKED_ID, IN_CARD, Answer, Button, Row, read, written

_VERB = rf"(?P<verb>{'|'.join(naming.ACTS)})"
_COMMIT = r"(?P<commit>[0-9a-f]{16})"
_EVENT = r"(?P<event>[0-9a-f]{16})"
_PAGE = r"(?P<page>\d{1,4})"
_ITEM = rf"(?P<item>{STAMP}):{_PAGE}:{BRANCH}"
_SHOW = "show"
_SHOWN = rf"{_SHOW}|\d{{1,4}}"

CONTROLS = Controls()
"""The client takes presses of these."""


# ---------------------------------------------------------------------- below messages


@CONTROLS.on(rf"settle:{USER}:{_EVENT}:(?P<how>keep_old|use_new|both_valid):{BRANCH}", once=True)
async def settle(at: Pressed) -> str:
    """Say which side of a conflict holds."""
    return await _settled(at, cast(Resolution, at.known["how"]))


async def _settled(at: Pressed, how: Resolution) -> str:
    return await _given(at, "settle", question=at.known["event"], how=how)


@CONTROLS.on(rf"undo:{USER}:{_COMMIT}:{BRANCH}", once=True)
async def undo(at: Pressed) -> str:
    """Take one commit back."""
    return await _given(at, "history revert", change=at.known["commit"])


@CONTROLS.on(rf"switch:{USER}:{BRANCH}", once=True)
async def switch(at: Pressed) -> str:
    """Switch to a persona."""
    return await _given(at, "persona switch", name=at.known["branch"])


async def _given(at: Pressed, verb: str, **values: str) -> str:
    """Give a command that is answered with a sentence, about the persona that the button names."""
    return str(await at.commands.again(at.press, Asked(verb, "", at.known["branch"]), values))


@CONTROLS.on(rf"hatch:{USER}", once=True, needs=())
async def hatch(at: Pressed) -> str:
    """Begin the interview that gives us a personality, where the button stands."""
    return await at.context.hatchery.begin(at.user_id, at.place, str(at.message.id))


@CONTROLS.on(rf"erase:{USER}:(?P<target>\d{{1,20}})")
async def erase(at: Pressed) -> str:
    """Destroy all that is remembered about a person: about oneself, or by an owner about anybody."""
    target, message = at.known["target"], at.press.message
    asked = int(message.created_at.timestamp() * 1000) if message is not None else 0
    if at.context.store.erased_at(user_subject(target)) >= asked:
        raise Refused(DONE_ALREADY)
    sure = {"user": target, "yes": True}
    return str(await at.commands.again(at.press, Asked("data erase", "", ""), sure))


@CONTROLS.on(rf"keep:{USER}", needs=())
async def keep(at: Pressed) -> str:
    """Leave everything as it is."""
    return "I erased nothing."


@CONTROLS.on(rf"act:{USER}:{_VERB}:(?P<item>{STAMP}):{BRANCH}")
async def act(at: Pressed) -> Outcome:
    """Carry a command out for the one memory it asked about."""
    return await _again(at, at.known["item"])


@CONTROLS.on(rf"pick:{USER}:{_VERB}:{BRANCH}")
async def pick(at: Pressed) -> Outcome:
    """Carry a command out for the memories that are chosen in a menu."""
    return await _again(at, ",".join(at.chosen))


@CONTROLS.on(rf"ticked:{USER}:{_VERB}:{BRANCH}")
async def ticked(at: Pressed) -> Outcome:
    """Carry a command out for the memories that the menu above the button has ticked."""
    rows = [one for one in at.message.components if isinstance(one, discord.ActionRow)]
    menus = [one for row in rows for one in row.children if isinstance(one, discord.SelectMenu)]
    return await _again(
        at, ",".join(option.value for menu in menus for option in menu.options if option.default)
    )


async def _again(at: Pressed, item: str) -> Outcome:
    # A new text is too long for a custom id; it stands in the question, which only we can edit.
    text = naming.new_text(at.message.content) if at.known["verb"] == "edit" else ""
    asked = Asked(at.known["verb"], item, at.known["branch"], text)
    return await at.commands.again(at.press, asked)


async def _turned(press: Press, outcome: Outcome) -> None:
    """Turn the page; what the model proposed becomes a list that its person alone sees."""
    card = press.message is not None and press.message.flags.components_v2
    if card and isinstance(outcome, Answer) and outcome.plain:
        await whisper(press, outcome)
    else:
        await become(press, outcome)


@CONTROLS.on(rf"list:{USER}:{_VERB}:(?P<page>\d{{1,6}}):{BRANCH}", show=_turned)
async def page_of_list(at: Pressed) -> Outcome:
    """Show another page of a list of memories, from what is so now."""
    shown = texts_shown(at.message)
    typed = written([one for one in (naming.typed_in(shown), naming.new_text(shown)) if one])
    try:
        return await at.commands.turn(at.press, at.known["verb"], typed, int(at.known["page"]))
    except Unclear as question:
        return question.answer


@CONTROLS.on(rf"lost:{USER}")
async def keep_lost(at: Pressed) -> Outcome:
    """Remember what an edit left out, as a memory of its own."""
    return await at.commands.turn(at.press, "remember", naming.lost_in(at.message.content), 1)


@CONTROLS.on(rf"leave:{USER}", needs=())
async def leave(at: Pressed) -> str:
    """Leave a memory as it is."""
    return naming.LEFT


@CONTROLS.on(rf"open:{USER}:(?P<text>.+)", take=handed_on)
async def open_(at: Pressed) -> None:
    """Give a command (`memory show`), or ask as a request of a kind (`optout`); see `Commands.opened`."""
    await at.commands.opened(at.press, at.known["text"])


@CONTROLS.on(rf"menu:{USER}:(?P<name>[^:]{{1,32}}):(?P<message>\d{{1,20}})", take=handed_on)
async def filled(at: Pressed) -> None:
    """Carry out a command of a message's menu with what was typed into its form."""
    await at.commands.filled(at.press, at.known["name"], at.known["message"], at.values)


# ---------------------------------------------------------------------- below what waits for a yes


@CONTROLS.on(rf"answer:{USER}:(?P<how>yes|no):{_COMMIT}:{BRANCH}", once=True)
async def answer(at: Pressed) -> str:
    """Say yes or no to all that one change proposed."""
    commit, yes = at.known["commit"], at.known["how"] == "yes"
    history = await at.context.store.history(at.subject)
    if commit not in history.commits or at.known["branch"] not in history.branches.all:
        raise Refused(GONE)
    asked = {key_of_event(event) for event in history.commits[commit].events if is_proposal(event)}
    items = await _answer(at, asked, yes=yes)
    return answered(items, yes=yes, in_private=at.press.guild_id is None)


async def _whispered_menus(press: Press, outcome: Outcome) -> None:
    """Show the menus to the person alone. The button stays."""
    assert isinstance(outcome, Answer)
    await send_either(press.followup.send, outcome, ephemeral=True)


@CONTROLS.on(rf"choose:{USER}:{BRANCH}", show=_whispered_menus)
async def choose(at: Pressed) -> Answer:
    """Show what is pending, with menus."""
    branch, days = at.known["branch"], at.commands.settings.pending_days
    return waiting(at.user_id, await _waiting(at), branch, in_private=True, days=days)


@CONTROLS.on(rf"choice:{USER}:(?P<how>yes|no):{BRANCH}")
async def choice(at: Pressed) -> Answer:
    """Say yes or no to what is chosen, and then show what is left."""
    branch, yes = at.known["branch"], at.known["how"] == "yes"
    asked = {one.key for one in (await _waiting(at)).pending if one.event_id in at.chosen}
    try:
        number = len(await _answer(at, asked, yes=yes))
        note = f"Done: you said {'yes' if yes else 'no'} to {number}."
    except verbs.AlreadySettled as already:  # the menu stays: it shows what is left
        note = sentence(already)
    message = at.press.message
    card = message is not None and message.flags.components_v2
    left = waiting(
        at.user_id,
        await _waiting(at),
        branch,
        in_private=card or at.hidden,
        days=at.commands.settings.pending_days,
    )
    return replace(left.said(note), plain=not card)


async def _waiting(at: Pressed) -> View:
    """The view with what is pending. Raises Refused if its persona is gone."""
    memory, branch = at.context.store, at.known["branch"]
    if branch not in (await memory.branches(at.subject)).all:
        raise Refused(GONE)
    return await memory.view(at.subject, branch)


async def _answer(at: Pressed, asked: Collection[Key], *, yes: bool) -> list[Item]:
    context = at.context
    if yes and context.choices.opted_out(at.user_id):
        raise Refused(OPTED_OUT)
    branch = at.known["branch"]
    return await verbs.answer(context.store, at.subject, asked, at.origin, yes=yes, branch=branch, **at.how)


# ---------------------------------------------------------------------- on cards


@CONTROLS.on(rf"turn:{USER}:{_PAGE}:(?P<verb>[a-z -]{{1,30}}):(?P<values>.*)", needs=())
async def turn(at: Pressed) -> Answer:
    """Show a page of a command's card."""
    values = at.known["values"]
    if values == IN_CARD:
        values = read(texts_of(at.press.message).get(ASKED_ID, ""))
    return await at.commands.turn(at.press, at.known["verb"], values, int(at.known["page"]))


@CONTROLS.on(rf"usage:{USER}", needs=())
async def usage(at: Pressed) -> Answer:
    """Show another view of what models were used for."""
    return await at.commands.turn(at.press, "data usage", at.chosen[0], 1)


@CONTROLS.on(rf"revert:{USER}:{_COMMIT}:{_PAGE}:(?P<limit>\d{{1,4}}):{BRANCH}")
async def revert(at: Pressed) -> Answer:
    """Take back one change of a log, and show the log again."""
    return await _acted(at, at.known["limit"], lambda: undo(at))


@CONTROLS.on(rf"be:{USER}:{_PAGE}:{BRANCH}")
async def be(at: Pressed) -> Answer:
    """Switch to a persona, and show them all again."""
    note = await switch(at)
    return (await at.commands.turn(at.press, "persona list", "", int(at.known["page"]))).said(note)


@CONTROLS.on(rf"decide:{USER}:{_EVENT}:(?P<how>[knb]):{_PAGE}:{BRANCH}")
async def decide(at: Pressed) -> Answer:
    """Answer a question, and show the next one."""
    note = await _settled(at, LETTERS[at.known["how"]])
    return (await at.commands.turn(at.press, "settle", "", int(at.known["page"]))).said(note)


@CONTROLS.on(rf"back:{USER}:{_COMMIT}:{_PAGE}:(?P<shown>{_SHOWN}):{BRANCH}")
async def take_back(at: Pressed) -> Answer:
    """Take back what was just done on a card, and show its page again."""
    note = await undo(at)
    return (await _page(at, at.known["shown"])).said(note)


async def _acted(at: Pressed, shown: str, act: Callable[[], Awaitable[Outcome]]) -> Answer:
    """Do something about what a card shows, then show its page again, with a way to take that back.

    `shown` is `_SHOW` or the limit of a log.
    """
    memory, branch = at.context.store, at.known["branch"]

    async def newest() -> str | None:
        """The newest change of the persona; None if it has none of its own."""
        branches = await memory.branches(at.subject)
        return branches.all[branch].head if branch in branches.all else None

    before = await newest()
    outcome = await act()
    after = await newest()
    card = await _page(at, shown)
    assert isinstance(outcome, str)  # what changes a memory is answered with a sentence
    if after is None or after == before:
        return card.said(outcome)
    commits = (await memory.history(at.subject)).commits
    metadata = commits[after].metadata if after in commits else {}
    if any(metadata.get(key) != value for key, value in at.how.items()):
        return card.said(outcome)  # another change came in between
    back = f"back:{at.user_id}:{after}:{at.known['page']}:{shown}:{branch}"
    return card.said(outcome, Button(back, "Undo"))


async def _page(at: Pressed, shown: str) -> Answer:
    verb, values = (_SHOW, "") if shown == _SHOW else ("history log", f"|{shown}|{at.known['branch']}")
    return await at.commands.turn(at.press, verb, values, int(at.known["page"]))


# ---------------------------------------------------------------------- the menu of one memory


def _asked(at: Pressed, verb: str, text: str = "") -> Asked:
    return Asked(verb, at.known["item"], at.known["branch"], text)


@CONTROLS.on(rf"item:{USER}:{_ITEM}")
async def item(at: Pressed) -> Answer:
    """Show one memory, as it is now, with what can be done about it."""
    found = await at.commands.meant(at.press, _asked(at, "why"))
    where = partial(source_words, at.press.client)
    return menu_of(found, at.user_id, at.known["branch"], int(at.known["page"]), where)


@CONTROLS.on(rf"do:{USER}:(?P<verb>forget|private|share):{_ITEM}")
async def do(at: Pressed) -> Answer:
    """Give a command that changes the memory, and show the page again."""
    asked = _asked(at, at.known["verb"])
    return await _acted(at, _SHOW, lambda: at.commands.again(at.press, asked))


@CONTROLS.on(rf"why:{USER}:{_ITEM}")
async def why(at: Pressed) -> Answer:
    """Show where the memory comes from."""
    outcome = await at.commands.again(at.press, _asked(at, "why"))
    card = outcome if isinstance(outcome, Answer) else Answer(rows=[Row(outcome)])
    back = f"item:{at.user_id}:{at.known['item']}:{at.known['page']}:{at.known['branch']}"
    return replace(card, controls=(*card.controls, Button(back, "Back")))


@CONTROLS.on(rf"change:{USER}:{_ITEM}", take=opens_form)
async def change(at: Pressed) -> Form:
    """Open a form with the memory's text."""
    found = await at.commands.meant(at.press, _asked(at, "edit"))
    known = f"{at.user_id}:{stamp(found)}:{at.known['page']}:{at.known['branch']}"
    return Form(f"edit:{known}", "Change a memory", [Field("text", "What it says", found.text)])


@CONTROLS.on(rf"edit:{USER}:{_ITEM}")
async def edit(at: Pressed) -> Answer:
    """Give the memory the text that was typed into its form."""
    asked = _asked(at, "edit", at.values["text"])
    return await _acted(at, _SHOW, lambda: at.commands.again(at.press, asked))
