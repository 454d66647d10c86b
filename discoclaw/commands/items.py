"""One memory, or a few: change what it says, or stop using it."""

import re

from discoclaw.commands.caller import Caller
from discoclaw.commands.memories import kept_private, lost
from discoclaw.commands.spec import Values
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item, check_text
from discoclaw.core.text import collapse
from discoclaw.core.yours import left_out, yours
from discoclaw.memory.subjects import verbs
from discoclaw.show.answer import Button, Reply, message
from discoclaw.show.markup import words
from discoclaw.show.words import count, quoted, short

_ID = re.compile(r"(durable-)?[0-9a-f]{8}")
_ARROW = re.compile(r"\s*(?:=>|→)\s*")


def still(draft: Draft, meant: Item) -> Item:
    """The item that was found a moment ago. Raises Refused if it has gone or changed since."""
    item = draft.items.get(meant.id)
    if item is None or (meant.active and not item.active):
        raise Refused("that memory has just been forgotten")
    if item.text != meant.text:
        raise Refused("that memory has just changed, so I left it as it is; please try again")
    return item


async def forget(caller: Caller, memory: str) -> str:
    meant = await caller.those(await caller.items(), memory, "forget")

    def make(draft: Draft) -> str:
        items = [still(draft, one) for one in meant]
        for item in items:
            draft.deprecate(item, caller.origin())
        if len(items) == 1:
            return f"Forgotten: {caller.called(items[0])}"
        lines = "\n".join(f"- {caller.called(item)}" for item in items)
        return f"Forgotten: {count(len(items), 'memory')}; `!memory undo` brings them back.\n{lines}"

    return await caller.change(f"forgotten by {'an admin' if caller.terminal else 'command'}", make)


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


async def edit(caller: Caller, memory: str, text: str) -> Reply:
    clean, secret = caller.clean(text)
    new = check_text(clean)
    meant = await caller.the_one(await caller.items(), memory, "edit", gone=caller.terminal, new=new)
    before, after = await verbs.edit(
        caller.memory,
        caller.subject,
        lambda draft: still(draft, meant),
        new,
        caller.origin(),
        branch=caller.persona_here,
        marked=caller.marked(clean),
        **caller.metadata,
    )
    if caller.terminal:
        was = f"{quoted(before.text)}{'' if before.active else ' (forgotten)'}"
        nothing = "" if before != after else "nothing changed: "
        return f"{nothing}{short(after.id)} {was} → {quoted(after.text)}"
    if before == after:
        return f"It says that already: {words(yours(after.text))}"
    note = secret
    if before.facets.sensitivity == "normal":
        note = f"{kept_private(after, by_id=not caller.on_card)}{note}"
    if not caller.may_show(after):
        return f"Edited. It's private now.{note}"
    answer = f"Edited: {words(yours(before.text))} → {words(yours(after.text))}{note}"
    gone = left_out(before.text, after.text)
    if not gone:
        return answer
    answer += f"\n{lost(gone)}"
    if caller.on_card:
        return answer
    return message(answer, [Button(f"lost:{caller.user_id}", "Remember that too")])
