"""What is shown after a purge: a history without the words that were taken back, and from where they went.

A person sees all of their own history in private. A model, and whoever reads along in the open, sees that
something was there and what became of it, but not the words: of older texts, of what they were based on, and
of what contradicted them. The report says how many and where, and never the words either, because it may
stand where others read it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from discoclaw.core.event import Event
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.merge import ItemChange
from discoclaw.core.purge import Purged, Report, TakenBack, Words
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.show.words import count, short, word

TAKEN_BACK = "(taken back)"
ANY_TIME = -1


class TakenFrom:
    """Texts that were taken back in some views; with no views there are none."""

    def __init__(self, views: Iterable[View] = ()) -> None:
        self._by_item: dict[str, list[TakenBack]] = {}
        self._texts: dict[str, int] = {}
        self._words: list[tuple[int, Words]] = []
        self._now: set[tuple[str, str]] = set()
        for view in views:
            taken = [one for one in view.taken_back.values() if not one.open_only]
            for one in taken:
                self._by_item.setdefault(one.item_id, []).append(one)
                self._texts[normalise(one.text)] = max(one.at, self._texts.get(normalise(one.text), ANY_TIME))
            self._now |= {(item.id, normalise(item.text)) for item in view.active()} if taken else set()
            self._words += [(one.at, one.words) for one in view.purges("") if not one.open_only]

    def covers(self, item_id: str, text: str, at: int) -> bool:
        """Whether a text that an item had at a time (ms) was taken back, or came before one that was."""
        if (item_id, normalise(text)) in self._now:
            return False
        known = self._by_item.get(item_id, ())
        return any(at <= one.at for one in known) or at <= self._texts.get(normalise(text), ANY_TIME)

    def holds(self, text: str, at: int) -> bool:
        """Whether something that was written at a time (ms) has words that were taken back later."""
        return any(at <= then and words.hold(text) for then, words in self._words)

    def of_event(self, event: Event, item_id: str, text: str) -> bool:
        """Whether the words of an event about an item were taken back."""
        at = ms_of_iso(event.timestamp)
        if "link" in event.ext:
            return False  # it names items by their ids
        if "conflict" not in event.ext:
            return self.covers(item_id, text, at)
        gone = item_id in self._by_item and not any(one == item_id for one, _ in self._now)
        return gone or at <= self._texts.get(normalise(text), ANY_TIME) or self.holds(text, at)

    def item(self, item: Item) -> Item:
        """An item, without its words if they were taken back."""
        if not self.covers(item.id, item.text, item.updated_at):
            return item
        return replace(item, text=TAKEN_BACK, tags=())

    def items(self, items: Collection[Item]) -> list[Item]:
        return [self.item(item) for item in items]

    def view(self, view: View) -> View:
        """A view of some point, without the words that were taken back since."""
        items = {item.id: self.item(item) for item in view.items.values()}
        conflicts = tuple(
            replace(one, text=TAKEN_BACK, reason="") if self.holds(one.text, view.updated_at) else one
            for one in view.conflicts
        )
        return replace(view, items=items, conflicts=conflicts)

    def changes(self, changes: Sequence[ItemChange]) -> list[ItemChange]:
        """A difference, without the words that were taken back."""
        return [
            replace(
                one,
                before=self.item(one.before) if one.before is not None else None,
                after=self.item(one.after) if one.after is not None else None,
            )
            for one in changes
        ]


def taken_from(history: History, branch: str | None) -> TakenFrom:
    """Texts that were taken back on a branch, or on any. Raises Refused if there is no such branch."""
    there = history.branches.all.values()
    branches = there if branch is None else [history.branch(branch)]
    return TakenFrom(history.view(one.head) for one in branches)


# ---------------------------------------------------------------------- the report

WAITING = "Some of it couldn't be removed yet. I keep trying."
NOT_BACK = "Summaries and recent messages stay without it."

Name = Callable[[str], str | None]
"""The name of a conversation (session key) for the reader; None if it is only counted."""


def in_discord(persona: str, item: str) -> str:
    """How a person forgets an item of another persona."""
    return f"`!memory persona switch {word(persona)}`, then `!memory forget {item}`"


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader: which conversation they are in, what others are called, how they forget elsewhere."""

    here: str = ""
    name: Name = lambda session: None
    persona: str = "persona"
    forget: Callable[[str, str], str] = in_discord


def purge_report(report: Report, reader: Reader = Reader()) -> str:
    """The lines below what a change answers; "" if nothing was taken back or brought back."""
    lines = []
    if parts := _parts(report.removed, reader):
        lines.append(f"{'What you said' if report.everything else 'It'} is also gone from {_listed(parts)}.")
    if report.waiting:
        lines.append(WAITING)
    if report.brought_back:
        lines.append(NOT_BACK)
    for name, ids in report.elsewhere.items():
        ways = _listed([reader.forget(name, short(one)) for one in ids[:3]])
        there = f"The {reader.persona} `{word(name)}` still remembers what you took back."
        lines.append(f"{there} To forget it there: {ways}.")
    return "\n".join(lines)


def _parts(removed: Purged, reader: Reader) -> list[str]:
    parts = _summaries(sorted(removed.summaries), reader)
    if recent := len(removed.messages):
        parts.append(count(recent, "recent message"))
    if removed.archived:
        one = "archived one" if removed.messages else "archived message"
        parts.append(count(removed.archived, one))
    if removed.notes:
        parts.append(count(removed.notes, "note") + " about channels")
    if removed.answers:
        parts.append(count(removed.answers, "stored answer"))
    return parts


def _summaries(sessions: Sequence[str], reader: Reader) -> list[str]:
    """The summaries that were removed, as one part of the sentence."""
    if not sessions:
        return []
    named = ["this conversation"] if reader.here in sessions else []
    others = [session for session in sessions if session != reader.here]
    named += [name for session in others if (name := reader.name(session)) is not None]
    unnamed = len(sessions) - len(named)
    if unnamed:
        kind = "other conversation" if named else "conversation"
        named.append(count(unnamed, kind) if unnamed > 1 or named else f"a {kind}")
    if len(sessions) == 1:
        return [f"the summary of {named[0]} (it is written again)"]
    return [f"the summaries of {_listed(named)} (they are written again)"]


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
