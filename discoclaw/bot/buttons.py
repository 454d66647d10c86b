"""Buttons, menus and forms, each with what it does when it is pressed; how a press is taken is in `pressed`.

A message says what came of a press and loses its buttons, so a second press, or an old one, finds it done
already. On a card of memories it shows what came of it and the page again, with a button to take it back. A
memory is named by its stamp, so nobody changes what they were not shown (see `memories`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import discord

from discoclaw.bot import naming
from discoclaw.bot.answers import Unclear
from discoclaw.bot.layout import send_either
from discoclaw.bot.links import source_words
from discoclaw.bot.memories import STAMP, Asked, menu_of, stamp
from discoclaw.bot.pressed import (
    BRANCH,
    USER,
    Control,
    Field,
    Form,
    MenuForm,
    Opens,
    OpensModal,
    PersonalButton,
    PersonalMenu,
    PersonalModal,
    whisper,
)
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.proposals import waiting
from discoclaw.bot.questions import LETTERS
from discoclaw.bot.words import texts_of, texts_shown
from discoclaw.core.draft import Resolution
from discoclaw.show.answer import ASKED_ID, IN_CARD, Answer, Button, Row, read, written

_VERB = rf"(?P<verb>{'|'.join(naming.ACTS)})"
_COMMIT = r"(?P<commit>[0-9a-f]{16})"
_PAGE = r"(?P<page>\d{1,4})"
_ITEM = rf"(?P<item>{STAMP}):{_PAGE}:{BRANCH}"
_SHOW = "show"
_SHOWN = rf"{_SHOW}|\d{{1,4}}"


# ---------------------------------------------------------------------- below messages


class SettleButton(
    PersonalButton,
    template=rf"settle:{USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>keep_old|use_new|both_valid):{BRANCH}",
):
    """Says which side of a conflict holds."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        how = cast(Resolution, self.known["how"])
        return await presses.settle(press, self.known["event"], how, self.known["branch"])


class UndoButton(PersonalButton, template=rf"undo:{USER}:{_COMMIT}:{BRANCH}"):
    """Takes one commit back."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.undo(press, self.known["commit"], self.known["branch"])


class SwitchButton(PersonalButton, template=rf"switch:{USER}:{BRANCH}"):
    """Switches to a persona."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.switch(press, self.known["branch"])


class HatchButton(PersonalButton, template=rf"hatch:{USER}"):
    """Begins the interview that gives us a personality."""

    once = True
    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.hatch(press)


class EraseButton(PersonalButton, template=rf"erase:{USER}:(?P<target>\d{{1,20}})"):
    """Erases everything."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.erase(press, self.known["target"])


class KeepButton(PersonalButton, template=rf"keep:{USER}"):
    """Leaves everything as it is."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return "I erased nothing."


class ActButton(PersonalButton, template=rf"act:{USER}:{_VERB}:(?P<item>{STAMP}):{BRANCH}"):
    """Carries a command out for the one memory it asked about."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        return await _again(presses, press, self.known, self.known["item"])


class MemoryMenu(PersonalMenu, template=rf"pick:{USER}:{_VERB}:{BRANCH}"):
    """Carries a command out for the memory that is chosen."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        return await _again(presses, press, self.known, ",".join(self.item.values))


class TickedButton(PersonalButton, template=rf"ticked:{USER}:{_VERB}:{BRANCH}"):
    """Carries a command out for the memories that the menu above it has ticked."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        rows = [one for one in press.message.components if isinstance(one, discord.ActionRow)]
        menus = [one for row in rows for one in row.children if isinstance(one, discord.SelectMenu)]
        ticked = [option.value for menu in menus for option in menu.options if option.default]
        return await _again(presses, press, self.known, ",".join(ticked))


class ListButton(PersonalButton, template=rf"list:{USER}:{_VERB}:(?P<page>\d{{1,6}}):{BRANCH}"):
    """Shows another page of a list of memories, from what is so now."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        shown = texts_shown(press.message)
        typed = written([one for one in (naming.typed_in(shown), naming.new_text(shown)) if one])
        try:
            return await presses.commands.turn(press, self.known["verb"], typed, int(self.known["page"]))
        except Unclear as question:
            return question.answer

    async def show(self, press: Press, outcome: Outcome) -> None:
        """Turn the page; what the model proposed becomes a list that its person alone sees."""
        card = press.message is not None and press.message.flags.components_v2
        if card and isinstance(outcome, Answer) and outcome.plain:
            await whisper(press, outcome)
        else:
            await super().show(press, outcome)


class LostButton(PersonalButton, template=rf"lost:{USER}"):
    """Remembers what an edit left out, as a memory of its own."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        return await presses.commands.turn(press, "remember", naming.lost_in(press.message.content), 1)


class LeaveButton(PersonalButton, template=rf"leave:{USER}"):
    """Leaves a memory as it is."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return naming.LEFT


class OpenButton(Opens, PersonalButton, template=rf"open:{USER}:(?P<text>.+)"):
    """Gives a command (`memory show`), or asks as a request of a kind (`optout`); see `Commands.opened`."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        await presses.commands.opened(press, self.known["text"])
        return ""


async def _again(presses: Presses, press: Press, known: Mapping[str, str], item: str) -> Outcome:
    assert press.message is not None  # a button stands below one
    # A new text is too long for a custom id; it stands in the question, which only we can edit.
    text = naming.new_text(press.message.content) if known["verb"] == "edit" else ""
    return await presses.commands.again(press, Asked(known["verb"], item, known["branch"], text))


# ---------------------------------------------------------------------- below what waits for a yes


class AnswerButton(PersonalButton, template=rf"answer:{USER}:(?P<how>yes|no):{_COMMIT}:{BRANCH}"):
    """Says yes or no to all that one change proposed."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        yes = self.known["how"] == "yes"
        return await presses.answer(press, self.known["commit"], self.known["branch"], yes=yes)


class ChooseButton(PersonalButton, template=rf"choose:{USER}:{BRANCH}"):
    """Shows its person alone what is pending, with menus. The button stays."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        branch = self.known["branch"]
        view = await presses.waiting(press, branch)
        return waiting(self.known["user"], view, branch, in_private=True, days=presses.pending_days)

    async def show(self, press: Press, outcome: Outcome) -> None:
        assert isinstance(outcome, Answer)
        await send_either(press.followup.send, outcome, ephemeral=True)


class AnswerMenu(PersonalMenu, template=rf"choice:{USER}:(?P<how>yes|no):{BRANCH}"):
    """Says yes or no to what is chosen, and then shows what is left."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        branch, yes = self.known["branch"], self.known["how"] == "yes"
        note = await presses.pick(press, frozenset(self.item.values), branch, yes=yes)
        message = press.message
        private = press.guild_id is None or (message is not None and message.flags.ephemeral)
        view = await presses.waiting(press, branch)
        card = message is not None and message.flags.components_v2
        left = waiting(
            self.known["user"], view, branch, in_private=card or private, days=presses.pending_days
        )
        return replace(left.said(note), plain=not card)


# ---------------------------------------------------------------------- on cards


class TurnButton(PersonalButton, template=rf"turn:{USER}:{_PAGE}:(?P<verb>[a-z -]{{1,30}}):(?P<values>.*)"):
    """Shows a page of a command's card."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Answer:
        values = self.known["values"]
        if values == IN_CARD:
            values = read(texts_of(press.message).get(ASKED_ID, ""))
        return await presses.commands.turn(press, self.known["verb"], values, int(self.known["page"]))


class UsageMenu(PersonalMenu, template=rf"usage:{USER}"):
    """Shows another view of what models were used for."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Answer:
        return await presses.commands.turn(press, "data usage", self.item.values[0], 1)


class RevertButton(
    PersonalButton, template=rf"revert:{USER}:{_COMMIT}:{_PAGE}:(?P<limit>\d{{1,4}}):{BRANCH}"
):
    """Takes back one change of a log, and shows the log again."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        undo = partial(presses.undo, press, self.known["commit"], self.known["branch"])
        return await _acted(presses, press, self.known, self.known["limit"], undo)


class PersonaButton(PersonalButton, template=rf"be:{USER}:{_PAGE}:{BRANCH}"):
    """Switches to a persona, and shows them all again."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        note = await presses.switch(press, self.known["branch"])
        card = await presses.commands.turn(press, "persona list", "", int(self.known["page"]))
        return card.said(note)


class DecideButton(
    PersonalButton, template=rf"decide:{USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>[knb]):{_PAGE}:{BRANCH}"
):
    """Answers a question, and shows the next one."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        note = await presses.settle(
            press, self.known["event"], LETTERS[self.known["how"]], self.known["branch"]
        )
        return (await presses.commands.turn(press, "settle", "", int(self.known["page"]))).said(note)


class TakeBackButton(PersonalButton, template=rf"back:{USER}:{_COMMIT}:{_PAGE}:(?P<shown>{_SHOWN}):{BRANCH}"):
    """Takes back what was just done on a card, and shows its page again."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        note = await presses.undo(press, self.known["commit"], self.known["branch"])
        return (await _page(presses, press, self.known, self.known["shown"])).said(note)


async def _acted(
    presses: Presses,
    press: Press,
    known: Mapping[str, str],
    shown: str,
    act: Callable[[], Awaitable[Outcome]],
) -> Answer:
    """Do something about what a card shows, then show its page again, with a way to take that back.

    `shown` is `_SHOW` or the limit of a log.
    """
    before = await presses.head(press, known["branch"])
    outcome = await act()
    after = await presses.head(press, known["branch"])
    card = await _page(presses, press, known, shown)
    assert isinstance(outcome, str)  # what changes a memory is answered with a sentence
    if after is None or after == before or not await presses.made(press, after):
        return card.said(outcome)
    undo = f"back:{known['user']}:{after}:{known['page']}:{shown}:{known['branch']}"
    return card.said(outcome, Button(undo, "Undo"))


async def _page(presses: Presses, press: Press, known: Mapping[str, str], shown: str) -> Answer:
    verb, values = (_SHOW, "") if shown == _SHOW else ("history log", f"|{shown}|{known['branch']}")
    return await presses.commands.turn(press, verb, values, int(known["page"]))


# ---------------------------------------------------------------------- the menu of one memory


def _asked(known: Mapping[str, str], verb: str, text: str = "") -> Asked:
    return Asked(verb, known["item"], known["branch"], text)


class ItemButton(PersonalButton, template=rf"item:{USER}:{_ITEM}"):
    """Shows one memory, as it is now, with what can be done about it."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        item = await presses.commands.meant(press, _asked(self.known, "why"))
        where = partial(source_words, press.client)
        return menu_of(item, self.known["user"], self.known["branch"], int(self.known["page"]), where)


class DoButton(PersonalButton, template=rf"do:{USER}:(?P<verb>forget|private|share):{_ITEM}"):
    """Gives a command that changes the memory, and shows the page again."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        asked = _asked(self.known, self.known["verb"])
        return await _acted(presses, press, self.known, _SHOW, lambda: presses.commands.again(press, asked))


class WhyButton(PersonalButton, template=rf"why:{USER}:{_ITEM}"):
    """Shows where the memory comes from."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        outcome = await presses.commands.again(press, _asked(self.known, "why"))
        card = outcome if isinstance(outcome, Answer) else Answer(rows=[Row(outcome)])
        back = Button(self.item.custom_id.replace("why:", "item:", 1), "Back")
        return replace(card, controls=(*card.controls, back))


class EditButton(OpensModal, template=rf"change:{USER}:{_ITEM}"):
    """Opens a modal with the memory's text."""

    async def form(self, presses: Presses, press: Press) -> Form:
        item = await presses.commands.meant(press, _asked(self.known, "edit"))
        known = f"{self.known['user']}:{stamp(item)}:{self.known['page']}:{self.known['branch']}"
        return Form(f"edit:{known}", "Change a memory", [Field("text", "What it says", item.text)])


class EditModal(PersonalModal, template=rf"edit:{USER}:{_ITEM}"):
    """The memory's new text."""

    async def do(self, presses: Presses, press: Press) -> Answer:
        asked = _asked(self.known, "edit", self.values["text"])
        return await _acted(presses, press, self.known, _SHOW, lambda: presses.commands.again(press, asked))


ALL: tuple[type[Control], ...] = (
    SettleButton,
    UndoButton,
    SwitchButton,
    HatchButton,
    EraseButton,
    KeepButton,
    ActButton,
    MemoryMenu,
    TickedButton,
    ListButton,
    LostButton,
    LeaveButton,
    OpenButton,
    AnswerButton,
    ChooseButton,
    AnswerMenu,
    TurnButton,
    UsageMenu,
    RevertButton,
    PersonaButton,
    DecideButton,
    TakeBackButton,
    ItemButton,
    DoButton,
    WhyButton,
    EditButton,
)
"""The client registers these before it connects."""
MODALS: tuple[type[PersonalModal], ...] = (EditModal, MenuForm)
"""And asks these about each form that is sent."""
