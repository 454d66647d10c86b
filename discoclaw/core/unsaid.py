"""Messages that no longer say what was learned from them: they were deleted in the chat, or edited.

What rests on such messages alone is taken back; what rests on others too loses them as sources. What the
person stated with a command, or confirmed by hand, rests on no message. An edit that leaves the words an
item has takes nothing back. So does an undo: the item then rests on the person's decision.
Pure. Knows nothing about where messages come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from discoclaw.core.draft_events import EventDraft, Origin
from discoclaw.core.item import Item, Source
from discoclaw.core.purge import distinctive, place_of, terms_of


@dataclass(frozen=True, slots=True)
class Unsaid:
    """One message that was deleted at a time (ms), or got another text (`now`).

    `before` is the text that it had; None if that is not known.
    """

    message_id: str
    channel_id: str
    at: int
    before: str | None = None
    now: str | None = None

    @property
    def deleted(self) -> bool:
        """Whether it was deleted."""
        return self.now is None

    def lost(self) -> frozenset[str] | None:
        """The distinctive words that it no longer has; None if nobody knows them."""
        return None if self.before is None else distinctive(self.before) - terms_of(self.now or "")

    def still_says(self, text: str) -> bool:
        """Whether it says what an item says that was learned from it, by their words."""
        if self.now is None:
            return False
        own, now = distinctive(text), terms_of(self.now)
        if self.before is None:
            return bool(own) and own <= now
        gone = distinctive(self.before) - now
        from_it = own & terms_of(self.before)
        return not gone or (bool(from_it) and from_it.isdisjoint(gone))

    def takes_from(self, item: Item) -> bool:
        """Whether an item loses this message as a source.

        If the old text is not known, it may have been learned from the new one.
        """
        old = self.deleted or self.before is not None or item.updated_at <= self.at
        return old and not self.still_says(item.text)


def unsay(draft: EventDraft, messages: Mapping[str, Unsaid], origin: Origin) -> int:
    """Take back what rests on these messages alone, by message id. Returns how many items that are."""
    view, count = draft.view, 0
    for item in view.active():
        sources = view.sources.get(item.id, ())
        lost = [one for one in sources if _of(one, messages, item) is not None]
        if not lost or item.facets.author == "stated":
            continue
        if len(lost) < len(sources):
            _drop_sources(draft, item, lost, origin)
            continue
        count += 1
        # An item that was learned from a message that is still there must not name it as taken back: the
        # message stays. Afterwards it has no sources, so that it stays if its person undoes this.
        changed = [one for one in lost if not messages[place_of(one)[0]].deleted]
        _drop_sources(draft, item, changed, origin)
        because = replace(origin, source=_source(lost[-1]), asked=True)
        draft.emit("modify", item, {"status": "deprecated"}, because, noted={"unsaid": True})
        _drop_sources(draft, item, [one for one in lost if one not in changed], origin)
    for waits in view.pending:
        one = messages.get(waits.source.message_id)
        if one is not None and not one.still_says(waits.text):
            draft.note_proposal(waits.item, replace(origin, source=waits.source), "undone")
    for conflict in view.conflicts:
        one = messages.get(place_of(conflict.source)[0]) if conflict.source.startswith("discord:") else None
        if one is not None and not one.still_says(conflict.text):
            draft.note_conflict(conflict, origin, on=False)
    return count


def _of(source: str, messages: Mapping[str, Unsaid], item: Item) -> Unsaid | None:
    """The message that a source names, if the item loses it."""
    one = messages.get(place_of(source)[0])
    return one if one is not None and one.takes_from(item) else None


def _drop_sources(draft: EventDraft, item: Item, sources: list[str], origin: Origin) -> None:
    for source in sources:
        draft.emit("observe", item, {}, replace(origin, source=_source(source)), noted={"unsays": True})


def _source(text: str) -> Source:
    message, channel = place_of(text)
    return Source("discord", channel, message)
