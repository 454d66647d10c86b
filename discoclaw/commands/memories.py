"""Memories: see them, change what one says, stop using some; as rows of an answer, and as buttons name them.

A button names a memory by its stamp, which fits into a custom id whatever the memory's id is, and which is
another one as soon as the memory says something else: nobody forgets by an old question what they were not
shown.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from discoclaw.commands.caller import Caller
from discoclaw.commands.spec import Values
from discoclaw.core import privacy
from discoclaw.core.draft import Draft
from discoclaw.core.errors import ModelKeyRejected, ModelNotFound, Refused
from discoclaw.core.health import Seen
from discoclaw.core.item import Item, Source, by_newest, check_text
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.text import collapse
from discoclaw.core.view import Conflict, View
from discoclaw.core.yours import left_out, yours
from discoclaw.memory.erasing.erase import Erased
from discoclaw.memory.subjects import verbs
from discoclaw.show import text as shown
from discoclaw.show.answer import Answer, Button, Grid, Reply, Row, Turn, back, message
from discoclaw.show.markup import ago, name, opening, plain, said, words
from discoclaw.show.words import Times, count, quoted, short

Where = Callable[[Source], str]
"""The place where something was said, as markup."""

_ID, _TEXT = 10, 8
"""Hex digits of a stamp for the id and for the text."""
STAMP = rf"[0-9a-f]{{{_ID + _TEXT}}}"

NOT_USED = (
    "**You have opted out**: I learn nothing about you and use nothing I know. "
    "`!memory optin` turns memory on again."
)
ON_RELAYS_TOO = (
    "I overwrite my encrypted copies on relays and request their deletion, which a relay may ignore."
)
STOPS = {
    "extraction": ("learning from what you say", "DISCOCLAW_DURABLE_MODEL"),
    "summary": ("writing summaries", "DISCOCLAW_SUMMARY_MODEL"),
}
"""The sentence about a purpose for which no model can be had, and the setting that names that model."""
WHY = {ModelNotFound: "its server doesn't have it any more", ModelKeyRejected: "its server refuses my key"}
ADMIN = "An admin has to look after that. What you say waits until then."
NOTHING_YET = "Nothing yet. Try `!memory remember I prefer short answers`."
UNTIL_THEN = "I use the first until you decide: `!memory settle`."
LOST = "-# It no longer says "
SECRET = "\n(I left out what looks like a secret key.)"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was answered: the command (`verb`), the memory's stamp, the persona it is in.

    `item` may have several stamps, with commas. `text` is what the memory shall say, for `edit`.
    """

    verb: str
    item: str
    branch: str
    text: str = ""

    def each(self) -> Iterator["Asked"]:
        """One question for each memory that was chosen, with that one's stamp."""
        return (replace(self, item=one) for one in self.item.split(","))

    def names(self, item: Item) -> bool:
        """Whether an item is the memory that was asked about, whatever it says by now."""
        return stamp(item)[:_ID] == self.item[:_ID]


def stamp(item: Item) -> str:
    """A short stamp of an item and its text."""
    return _digest(item.id)[:_ID] + _digest(item.text)[:_TEXT]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def row_of(item: Item, where: Where | None = None, *, branch: str = "", user_id: str = "") -> Row:
    """A memory: its text, and what it is, since when, where it was said, who sees it; in a text its id.

    With a `branch`, `user_id` can open its menu from a card.
    """
    secret = "" if item.facets.sensitivity == "normal" else item.facets.sensitivity
    gone = "" if item.active else "forgotten"
    said = where(item.source) if where is not None else ""
    about = (f"🔒 {secret}" if secret else "", gone, item.kind, ago(item.updated_at), said)
    named = ", ".join(filter(None, (f"id {short(item.id)}", f"updated {ago(item.updated_at)}", secret, gone)))
    return Row(
        opening(yours(item.text)) or "…",
        " · ".join(filter(None, about)),
        Button(f"item:{user_id}:{stamp(item)}:{{page}}:{branch}", "⋯") if branch else None,
        line=f"- [{item.kind}] {words(yours(item.text))} ({named})",
        private=bool(secret),
    )


def menu_of(item: Item, user_id: str, branch: str, page: int, where: Where) -> Answer:
    """One memory, and what can be done about it. `page` is the one to go back to."""
    known = f"{stamp(item)}:{page}:{branch}"
    is_open = item.facets.sensitivity == "normal"
    verb, label = ("private", "Use in our DMs only") if is_open else ("share", "Use everywhere")
    return Answer(
        rows=[row_of(item, where)],
        controls=[
            Button(f"change:{user_id}:{known}", "Edit", "blue"),
            Button(f"do:{user_id}:{verb}:{known}", label),
            Button(f"why:{user_id}:{known}", "Why"),
            Button(f"do:{user_id}:forget:{known}", "Forget", "red"),
            back(Turn(user_id, "show"), page),
        ],
    )


def as_read(view: View, conflict: Conflict) -> tuple[View, Conflict]:
    """A question, with what it is about, as its person reads it."""
    both = [view.items[one] for one in (conflict.item_id, conflict.other_id) if one in view.items]
    items = {item.id: replace(item, text=yours(item.text)) for item in both}
    return replace(view, items=items), replace(conflict, text=yours(conflict.text))


def question(view: View, conflict: Conflict, *, in_private: bool) -> str:
    """The question in one line, as markup; "(private)" if it may not be shown."""
    return plain(shown.conflict(*as_read(view, conflict), in_private=in_private))


def lost(text: str) -> str:
    """The text about what an edit leaves out, above the button that keeps it."""
    return f"{LOST}{said(text)}."


def kept_private(item: Item, *, by_id: bool = True) -> str:
    """The note about a private memory: how to use it everywhere, by its id."""
    if item.facets.sensitivity == "normal":
        return ""
    if not by_id:
        return "\n(private: I use it in our DMs only)"
    return f"\n(private: I use it in our DMs only; `!memory share {short(item.id)}` changes that)"


def presumed_private(number: int) -> str:
    """The note about memories that are private only because their file doesn't say that they are open."""
    return (
        f"(From files that don't say where you said it: {count(number, 'memory')}, which I use in our DMs "
        "only; `!memory share imported` changes that)"
    )


def standstill(seen: Seen, *, owner: bool) -> list[str]:
    """A sentence for each kind of memory that gets nothing new: since when, why, and what to do about it."""
    said = []
    for what, (doing, setting) in STOPS.items():
        if (last := seen.of(what)).stopped:
            why = next((why for kind, why in WHY.items() if issubclass(last.error, kind)), "")
            why = why or ("its server doesn't answer" if last.fails else "its answers can't be used")
            way_out = f"Check `{setting}`; `discoclaw doctor` says more." if owner else ADMIN
            said.append(
                f"**I stopped {doing} {ago(last.since)}**: I need a small model for it, and {why}. {way_out}"
            )
    return said


def erased(done: Erased, *, own: bool) -> str:
    """The result of an erasing, and what is still to come."""
    text = f"I erased everything I remembered about {'you' if own else 'them'}."
    if done.waiting:
        text = (
            f"I'm erasing everything I remember about {'you' if own else 'them'}, but I'm not done yet: "
            "another part of me doesn't answer. I keep trying, and remember nothing until then."
        )
    text += " Messages in Discord itself are still there."
    if done.soul:
        text += f" My personality is gone too, because it was based on what {'you' if own else 'they'} said."
    if done.left:
        text += " Some files couldn't be removed yet. I keep trying, and remember nothing until then."
    if ON_RELAYS in done.todo:
        text += f" {ON_RELAYS_TOO}"
    return text


def item_json(item: Item) -> dict[str, Any]:
    """An item as JSON: the fields of DNAM's schema, and those that only the ledger has."""
    facets = item.facets
    return item.to_json() | {
        "author": facets.author,
        "sensitivity": facets.sensitivity,
        "key": facets.key,
        "links": sorted(facets.links),
    }


# ---------------------------------------------------------------------- see


async def show(caller: Caller) -> Answer:
    """What is remembered, newest first; in Discord also what is to be settled, and the summary there."""
    view, branches = await caller.view(caller.persona_here), await caller.branches()
    branch = caller.persona_here or branches.current
    if caller.terminal:
        nothing = f"Nothing is remembered about {caller.subject} on the branch {branch}."
        found = [item_json(item) for item in view.items.values()]
        return Answer(
            typed=_table(view, caller.times) if view.items else nothing,
            data={"subject": caller.subject, "branch": branch, "items": found},
        )
    items = sorted(view.active(), key=by_newest)
    rows = [row_of(item, caller.where, branch=branch, user_id=caller.user_id) for item in items]
    rows = rows or [Row(NOTHING_YET)]
    # What contradicts a memory that is shown.
    ids = {item.id for item in items if caller.may_show(item)}
    for one in view.conflicts:
        if one.item_id in ids and (caller.in_private or one.sensitivity == "normal"):
            asked = f"{question(view, one, in_private=caller.in_private)}. {UNTIL_THEN}"
            first = not any(row.title for row in rows)
            rows.append(Row(asked, title="To settle" if first else "", line=f"- {asked}"))
    rows += await caller.summary()
    small = [count(len(items), "memory")]
    if caller.persona_here is not None or len(branches.all) > 1:
        small.append(f"persona {name(branch)}")
    notes = caller.standstill
    if gone := sum(not item.active for item in view.items.values()):
        small.append(f"{gone} forgotten")
        notes.append("What I forgot is still in your history; `!memory remember <text>` brings it back.")
    if any(item.facets.sensitivity == "private" for item in items) and (
        known := await presumed(caller, view)
    ):
        notes.append(presumed_private(len(known)))
    return Answer(
        "What I remember about you",
        rows,
        small=small,
        above=[NOT_USED] if caller.opted_out else [],
        foot=notes,
        turn=Turn(caller.user_id, "show"),
        page=caller.page,
    )


def _table(view: View, times: Times) -> Grid:
    """The memories of a view, the forgotten ones last and faint."""
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    marks = [", ".join(shown.traits(item)[1:]) for item in items]
    columns = ["id", "kind", "text", "updated", *([""] if any(marks) else [])]
    rows = [
        [short(item.id), item.kind, item.text, times.day(item.updated_at), mark][: len(columns)]
        for item, mark in zip(items, marks, strict=True)
    ]
    faint = [number for number, item in enumerate(items) if not item.active]
    return Grid(columns, rows, ("id", "updated"), faint=faint)


async def presumed(caller: Caller, view: View) -> list[Item]:
    """The active memories that are private only because the file they came in with doesn't say otherwise."""
    known = privacy.presumed_private((await caller.history()).commits.values())
    return [item for item in view.active() if item.id in known and item.facets.sensitivity == "private"]


# ---------------------------------------------------------------------- forget, edit

_BARE_ID = re.compile(r"(durable-)?[0-9a-f]{8}")
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
    if _BARE_ID.fullmatch(first):
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
