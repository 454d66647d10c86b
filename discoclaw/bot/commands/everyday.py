"""What people do every day: see, add, correct and forget memories, and decide what I asked them."""

import re
from collections.abc import Collection
from typing import Any

from discoclaw.bot.answers import Answer, Carded, Page
from discoclaw.bot.buttons import lost_view, one_view, settle_view
from discoclaw.bot.cards import memories, questions
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.choosing import still, the_one, those
from discoclaw.bot.commands.spec import Values
from discoclaw.bot.texts import memory as texts
from discoclaw.bot.texts import naming
from discoclaw.bot.texts.markup import for_people, plain, words
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ModelError, ModelSpent, Refused
from discoclaw.core.item import Item, Sensitivity, check_text
from discoclaw.core.privacy import is_personal, presumed_private, stricter
from discoclaw.core.text import collapse
from discoclaw.core.view import Conflict, View
from discoclaw.core.yours import halves, left_out, yours
from discoclaw.memory.subjects import verbs
from discoclaw.show import text as shown
from discoclaw.show.words import PRIVATE, count

IMPORTED = "imported"
"""The word by which `share` takes all memories that are private only because they came in from files."""
WHICH = "Some of its words, or its id; “imported” means all that came in from files"
MOST_AT_ONCE = 5
"""Questions are a message each, because of their buttons."""
NO_MODEL = "the model that looks for them didn't answer, so nothing has changed; try again in a while"

_ID = re.compile(r"(durable-)?[0-9a-f]{8}")
_ARROW = re.compile(r"\s*(?:=>|→)\s*")


# ---------------------------------------------------------------------- see, add, forget


async def show(call: Call) -> Answer:
    memory, here = call.memory, call.persona_here
    view = await memory.view(call.subject, here)
    branches = await memory.branches(call.subject)
    rolling = await call.context.summaries.get(call.session_key)
    private = any(item.facets.sensitivity == "private" for item in view.active())
    named = here or branches.current
    known: dict[str, Any] = {
        "rebuilding": await call.context.loops.summary_lost(call.session_key),
        "persona": "" if here is None and len(branches.all) == 1 else named,
        "presumed": len(await _presumed(call, view)) if private else 0,
        "notes": call.standstill,
    }
    text = texts.show(view, rolling, in_private=call.in_private, **known)
    out = call.context.choices.opted_out(call.user_id)
    text = f"{texts.NOT_USED}\n{text}" if out else text
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "show")
    about = memories.About(opted_out=out, **known)
    return Carded(memories.all_of(view, rolling, turn, named, call.where, about, page=call.page), text)


async def remember(call: Call, text: str) -> Answer:
    told = await keep(call, text, call.origin(), "remembered by command")
    if halves(text) is None:
        return told
    item = next((one for one in await _items(call) if one.active and one.text == collapse(text)), None)
    if item is None:  # it is worded otherwise, or held anything secret
        return told
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    return [Page(f"{told}\n{naming.TWO_THINGS}", view=one_view(call.user_id, "history split", item, branch))]


async def split(call: Call, memory: str) -> str:
    """Make two memories of one that says two things."""
    meant = await the_one(call, await _items(call), memory, "history split")
    if (parts := halves(meant.text)) is None:
        raise Refused("that memory says one thing, as far as I can tell; `!memory edit` changes it")

    def make(draft: Draft) -> str:
        item, secret = still(draft, meant), meant.facets.sensitivity
        draft.upsert(item.kind, parts[0], call.origin(), given_id=item.id, marked=secret, tags=item.tags)
        draft.upsert(item.kind, parts[1], call.origin(), marked=secret, tags=item.tags)
        return texts.halved(parts)

    return await call.change("split by command", make)


async def keep(
    call: Call, text: str, origin: Origin, why: str, *, marked: Sensitivity = "normal", **metadata: Any
) -> str:
    """Remember a text on the person's word. `marked`: it is at least so private."""
    clean = call.client.redactor(text)
    most = call.client.settings.max_items
    marked = stricter(marked, call.marked(clean.text))

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", clean.text, origin, marked=marked)
        if done == "ignored":
            raise Refused("that message was deleted, so I remember nothing from it")
        if done == "unchanged":
            return f"I already remember that: {words(yours(item.text))}"
        answer = texts.remembered(item) + (texts.SECRET if clean.redacted or clean.flagged else "")
        if (
            not call.in_private
            and item.facets.sensitivity == "normal"
            and is_personal(item.text, in_the_open=True)
        ):
            answer += texts.personal_in_the_open(item)
        return answer + crowded(draft, most)

    return await call.change(why, make, **metadata)


def crowded(draft: Draft, most: int) -> str:
    """The note if a new memory takes the place of the oldest one."""
    if len(draft.items) > most and all(one.active for one in draft.items.values()):
        return f"\n(I keep {most} memories at most, so I forgot the oldest; `!memory undo` restores it.)"
    return ""


async def forget(call: Call, memory: str) -> str:
    meant = await those(call, await _items(call), memory, "forget")

    def make(draft: Draft) -> str:
        items = [still(draft, one) for one in meant]
        for item in items:
            draft.deprecate(item, call.origin())
        return texts.forgotten(items)

    return await call.change("forgotten by command", make)


# ---------------------------------------------------------------------- correct


def arrow(text: str) -> Values:
    """The parameters of `edit` as text: `<words or id> => <new text>`, or `<id> <new text>`."""
    first, _, rest = collapse(text).partition(" ")
    if _ID.fullmatch(first):
        there = _ARROW.match(rest)
        memory, new = first, rest[there.end() :] if there else rest
    else:
        parts = _ARROW.split(collapse(text), maxsplit=1)
        memory, new = parts[0], parts[1] if len(parts) == 2 else ""
    return {"memory": memory or None, "text": new or None}


async def edit(call: Call, memory: str, text: str) -> Answer:
    clean = call.client.redactor(text)
    new = check_text(clean.text)
    meant = await the_one(call, await _items(call), memory, "edit", new=new)
    before, after = await verbs.edit(
        call.memory,
        call.subject,
        lambda draft: still(draft, meant),
        new,
        call.origin(),
        branch=call.persona_here,
        marked=call.marked(clean.text),
        **call.metadata,
    )
    if before == after:
        return f"It says that already: {words(yours(after.text))}"
    note = texts.SECRET if clean.redacted or clean.flagged else ""
    if before.facets.sensitivity == "normal":
        note = f"{texts.kept_private(after, by_id=not call.on_card)}{note}"
    answer = texts.edited(before, after, shown=call.may_show(after)) + note
    lost = left_out(before.text, after.text) if call.may_show(after) else ""
    if not lost:
        return answer
    answer += f"\n{naming.lost(lost)}"
    return answer if call.on_card else [Page(answer, view=lost_view(call.user_id))]


async def share(call: Call, memory: str) -> str:
    if memory.strip().lower() == IMPORTED:
        view = await call.memory.view(call.subject, call.persona_here)
        if presumed := await _presumed(call, view):
            return await _share_all(call, presumed)
    return await _mark(call, memory, "normal")


async def _share_all(call: Call, items: Collection[Item]) -> str:
    def make(draft: Draft) -> str:
        shared = sum(draft.mark(item, "normal", call.origin()) == "updated" for item in items)
        many = count(shared, "memory")
        return f"From now on I use {many} from files everywhere. `!memory undo` takes it back."

    return await call.change("shared by command", make)


async def _presumed(call: Call, view: View) -> list[Item]:
    """The active memories that are private only because the file they came in with doesn't say otherwise."""
    known = presumed_private((await call.history()).commits.values())
    return [item for item in view.active() if item.id in known and item.facets.sensitivity == "private"]


async def private(call: Call, memory: str) -> str:
    return await _mark(call, memory, "private")


async def _mark(call: Call, memory: str, secret: Sensitivity) -> str:
    # To share a memory one has to be able to name it, wherever one is; its text is not repeated.
    verb = "share" if secret == "normal" else "private"
    meant = await those(call, await _items(call), memory, verb, unseen=True)

    def make(draft: Draft) -> str:
        items = [still(draft, one) for one in meant]
        for item in items:
            draft.mark(item, secret, call.origin())
        return texts.marked(items, secret, by_id=not call.on_card)

    return await call.change(f"marked {secret} by command", make)


async def _items(call: Call) -> Collection[Item]:
    """The items that are remembered here."""
    return (await call.memory.view(call.subject, call.persona_here)).items.values()


# ---------------------------------------------------------------------- decide


async def settle(call: Call) -> Answer:
    branches = await call.memory.branches(call.subject)
    here = call.persona_here
    branch = here if here is not None and here in branches.all else branches.current
    view = await call.memory.view(call.subject, branch)
    asked: list[tuple[Conflict, str]] = []
    hidden = 0
    for conflict in view.conflicts:
        question = shown.conflict(*texts.asked(view, conflict), in_private=call.in_private)
        if question == PRIVATE:
            hidden += 1
        else:
            asked.append((conflict, plain(question)))
    pages = [
        Page(f"{question}. Which is right?", view=settle_view(call.user_id, conflict, branch))
        for conflict, question in asked[:MOST_AT_ONCE]
    ]
    if more := len(asked) - len(pages):
        pages.append(Page(f"({count(more, 'more question')}: answer these first)"))
    if hidden:
        pages.append(Page(f"({count(hidden, 'private question')}: use `/memory settle`, or ask me in a DM)"))
    if call.in_private and asked:
        turn = Turn(call.user_id, "settle")
        return Carded(questions.to_settle(asked, turn, branch, page=call.page), pages)
    return pages or "There is nothing to settle."


async def tidy(call: Call) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    try:
        report = await call.context.consolidate(call.subject, branch, call.metadata)
    except ModelSpent as error:
        raise Refused(error.user_message) from error
    except ModelError as error:
        raise Refused(NO_MODEL) from error
    asks = "\nTo answer the questions, use `!memory settle`." if report.questions else ""
    return plain(for_people(report.text(in_private=call.in_private))) + asks
