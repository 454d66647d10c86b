"""One memory: as a row of an answer, as a button names it, and what commands and buttons say about it.

A button names a memory by its stamp, which fits into a custom id whatever the memory's id is, and which is
another one as soon as the memory says something else: nobody forgets by an old question what they were not
shown.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from discoclaw.core.errors import ModelKeyRejected, ModelNotFound
from discoclaw.core.health import Seen
from discoclaw.core.item import Item, Source
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.view import Conflict, View
from discoclaw.core.yours import yours
from discoclaw.memory.erasing.erase import Erased
from discoclaw.show import text as shown
from discoclaw.show.answer import Answer, Button, Row, Turn, back
from discoclaw.show.markup import ago, opening, plain, said, words
from discoclaw.show.words import count, short

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
