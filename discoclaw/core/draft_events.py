"""The mechanics of a draft: changes of items become events on top of a view, and events become one commit.

Knows no rule about who may change what. `draft` decides that, and then calls `emit`.
Pure: the current time is an argument, and nothing is stored until somebody appends the commit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from discoclaw.core import reminder
from discoclaw.core.event import Commit, Event, EventType
from discoclaw.core.item import MANUAL, Author, Facets, Item, Sensitivity, Source, item_id
from discoclaw.core.pending import MOST_PENDING, Settled, is_proposal
from discoclaw.core.privacy import DmPrivacy, stricter
from discoclaw.core.reminder import Did, Reminder
from discoclaw.core.text import normalise, scrub
from discoclaw.core.times import iso_ms, snowflake_at
from discoclaw.core.view import Conflict, Fold, View

Proposed: TypeAlias = Literal["proposed", "ignored"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a change: from the person ("stated") or from a model ("inferred"), and on what basis.

    `said_at` (ms) is when the words were said. `private`: in a DM, or in a channel that not everybody can
    read. `evidence` is a short quote or reason. `dm_privacy` is the rule that decides what stays private.
    `asked`: a person asked for the change, although not they made it (a model's tool), or it keeps the item's
    author (an undo).
    `needs_yes`: the person is to be asked before this is remembered. `question` is how, in a model's words.
    """

    author: Author
    source: Source = MANUAL
    said_at: int = 0
    private: bool = False
    evidence: str = ""
    dm_privacy: DmPrivacy = "balanced"
    asked: bool = False
    needs_yes: bool = False
    of_channel: bool = False
    """It is about what a channel does, not about one person, and everybody there may see it."""
    edited: bool = False
    """The message was edited: its words are as old as `said_at`, whenever it was sent."""
    question: str = ""


class EventDraft:
    """Events for one subject's memory, collected on top of a view."""

    def __init__(
        self, view: View, *, now_ms: int, reminders: Mapping[str, Reminder] = MappingProxyType({})
    ) -> None:
        # Times rise strictly in a ledger: a durable file names the commit it shows by its time.
        self.now_ms = max(now_ms, view.updated_at + 1)
        self.events: list[Event] = []
        self.reminders = reminders
        """The reminders with all changes so far, by id."""
        self._view = view
        self._fold = Fold(view)

    @property
    def items(self) -> Mapping[str, Item]:
        """The items with all changes so far, by id."""
        return self._fold.items

    @property
    def view(self) -> View:
        """The view with all changes so far. Its `head`, `updated_at` and `commits` are still the start's."""
        fold = self._fold
        return replace(
            self._view,
            items=dict(fold.items),
            last_event=dict(fold.last_event),
            triples=dict(fold.triples),
            conflicts=tuple(fold.conflicts),
            forgotten=dict(fold.forgotten),
            sources=dict(fold.sources),
            taken_back=dict(fold.taken_back),
            pending=fold.pending,
        )

    def commit(
        self, message: str, /, *, branch: str = "main", empty: bool = False, **metadata: Any
    ) -> Commit | None:
        """All events as one commit on top of the view. None if there are no events, unless `empty`."""
        if not self.events and not empty:
            return None
        return Commit(
            branch=branch,
            events=tuple(self.events),
            message=message,
            parent_id=self._view.head,
            timestamp=iso_ms(self.now_ms),
            metadata=metadata,
        )

    def after(self, commit: Commit) -> View:
        """The view after the draft's own commit: what `View.after` returns, without applying it once more.

        The draft hands over its items, so nothing may be added to it after this.
        """
        return self._fold.view(commit.id, self.now_ms, self._view.commits + 1)

    def replay(self, event: Event) -> None:
        """Add an event of another branch as it is, with its id."""
        self._fold.apply(event)
        self.reminders = reminder.folded(self.reminders, [event])
        self.events.append(event)

    def remove(self, item: Item, origin: Origin) -> None:
        """Remove an item from the view. The history still has it."""
        if (current := self.items.get(item.id)) is not None:
            self.emit("forget", current, {}, origin)

    def remind(self, wanted: Reminder, origin: Origin, did: Did, *, gone: bool = False) -> None:
        """Make a reminder so from now on, or (`gone`) end it."""
        known = self.reminders.get(wanted.id)
        ext = {"item": {"id": wanted.target}, "facets": {"author": origin.author}}
        event = Event(
            event_type="observe",
            subject="user",
            predicate="reminder",
            object=wanted.text,
            timestamp=iso_ms(self.now_ms),
            source=str(origin.source),
            evidence=scrub(origin.evidence),
            sensitivity="private" if wanted.private else "normal",
            parent_id=known.event if known is not None else None,
            ext=ext | reminder.ext_of(wanted, did, gone=gone),
        )
        self.replay(event)

    def note(self, item: Item, origin: Origin) -> None:
        """Record an observation about an item that does not change it."""
        if (current := self.items.get(item.id)) is not None:
            self.emit("observe", current, {}, origin)

    def set_item(self, target: str, wanted: Item | None, *, parent: str | None, origin: Origin) -> None:
        """Make an item exactly as it is at another point of the history, or remove it (None).

        `parent` is the event of that other point that this change continues; `origin.evidence` is its
        evidence. The item keeps its author.
        """
        current = self.items.get(target)
        if wanted is None:
            if current is not None:
                self.emit("forget", current, {}, origin, parent=parent)
            return
        kept = wanted.facets.links & self.items.keys()
        wanted = replace(wanted, facets=replace(wanted.facets, links=frozenset(kept)))
        if current is None:
            self.emit("add", wanted, wanted.to_json(), origin, parent=parent, taken=True)
        elif current != wanted:
            before, after = current.to_json(), wanted.to_json()
            body = {name: value for name, value in after.items() if value != before[name]}
            body["updatedAt"] = wanted.updated_at  # else the fold would take the event's time
            if wanted.facets.triple != current.facets.triple:
                body["text"] = wanted.text  # setting a text without a triple ends the old triple
            self.emit("modify", wanted, body, origin, parent=parent, taken=True)

    def note_conflict(self, conflict: Conflict, origin: Origin, *, on: bool = True) -> None:
        """Record a conflict as it is at another point of the history, or (not `on`) withdraw it."""
        if (current := self.items.get(conflict.item_id)) is None:
            return
        noted = {"text": conflict.text, "reason": conflict.reason, "other": conflict.other_id}
        withdrawn = {} if on else {"settled": "undone"}
        self.emit_conflict(current, noted | withdrawn, conflict.sensitivity, origin)

    def emit(
        self,
        event_type: EventType,
        item: Item,
        body: Mapping[str, Any],
        origin: Origin,
        *,
        noted: Mapping[str, Any] | None = None,
        link: str | None = None,
        parent: str | None = None,
        taken: bool = False,
    ) -> None:
        """Add one event about `item`, whose facets become the event's own fields.

        `body` has the item's fields that the event sets (see `view`). For events that change no field there
        are `noted` (a conflict, a confirmation, a proposal) and `link` (the other item's id; linked by "add",
        no longer linked by "forget"). `parent` is the event this one continues, by default the last one about
        the item. `taken`: the item is copied from another point of the history, and keeps author and source.
        `noted` may also say why a field was changed.
        """
        # Only a person's own change of an item makes it stated. A link or an observation claims nothing, and
        # what a model adds to a stated item leaves it stated.
        keeps_author = taken or event_type == "observe" or link is not None or origin.author != "stated"
        author = item.facets.author if keeps_author else "stated"
        if event_type == "forget" and link is None:
            author = origin.author  # the one who removed it, whoever said it
        current = self.items.get(item.id)
        if noted is not None and "proposal" in noted:
            current = None  # a proposal says all of what would be
        ext: dict[str, Any] = {
            "item": {**body, "id": item.id},
            "facets": {"author": author, **_changed_facets(item, current)},
        }
        ext |= noted or {}
        if link is not None:
            ext["link"] = {"to": link, "on": event_type == "add"}
        if origin.asked and link is None and event_type in ("forget", "modify") and author != "stated":
            ext["asked"] = True
        # Every event reads as a triple, so that a program that knows only the ledger design understands it.
        triple = ("user", body.get("kind", item.kind), body.get("text", item.text))
        says = event_type != "observe" or "proposal" in ext
        if item.facets.triple is not None and says and link is None:
            triple, ext["triple"] = item.facets.triple, True
        if link is not None:
            triple = ("user", "linked_to", link)
        event = Event(
            event_type=event_type,
            subject=triple[0],
            predicate=triple[1],
            object=triple[2],
            scope=item.facets.scope,
            timestamp=iso_ms(self.now_ms),
            confidence=item.facets.confidence,
            source=str(item.source if taken else origin.source),
            evidence=scrub(origin.evidence),
            sensitivity=item.facets.sensitivity,
            parent_id=parent or self._fold.last_event.get(item.id),
            ext=ext,
        )
        self.replay(event)

    def emit_conflict(
        self, item: Item, conflict: Mapping[str, str], level: Sensitivity, origin: Origin
    ) -> None:
        """Add an "observe" event for a conflict of an item. `level` is the sensitivity of the conflict."""
        facets = replace(item.facets, sensitivity=level)
        self.emit("observe", replace(item, facets=facets), {}, origin, noted={"conflict": dict(conflict)})

    # ------------------------------------------------------------------ proposals
    # What was inferred waits for the yes of a person who wants to be asked. Links, categories and a higher
    # sensitivity aren't claims about the person, and remember nothing new; they are made at once. Who wants
    # to be asked is known to the caller; what the answer does is in `draft`.

    def propose(self, item: Item, origin: Origin) -> Proposed:
        """Let an item, as it would be, wait for the person's yes. One that says the same waits already.

        It is ignored after the person's "no" to the same words, unless these were said later; and when one
        draft proposes more than may be pending, which no person would read.
        """
        plain, refused_at = normalise(item.text), self._fold.forgotten.get(item_id(item.kind, item.text), -1)
        if any((one.plain, one.item.status) == (plain, item.status) for one in self._fold.pending):
            return "proposed"
        if item.active and origin.said_at <= refused_at:
            return "ignored"
        if sum(map(is_proposal, self.events)) >= MOST_PENDING:
            return "ignored"
        self.note_proposal(item, origin)
        return "proposed"

    def propose_change(
        self,
        current: Item,
        text: str,
        tags: tuple[str, ...],
        level: Sensitivity,
        marked: Sensitivity,
        origin: Origin,
        requested: Facets,
    ) -> tuple[Item, Literal["proposed", "ignored", "unchanged", "updated"]]:
        """Propose another text for an item. The arguments are as for `Draft.upsert`."""
        if current.active and normalise(current.text) == normalise(text):
            secret = stricter(current.facets.sensitivity, marked)
            if secret == current.facets.sensitivity:
                return current, "unchanged"
            changed = replace(current, facets=replace(current.facets, sensitivity=secret))
            self.emit("modify", changed, {}, origin)
            return self.items[current.id], "updated"
        facets = replace(
            current.facets,
            author="inferred",
            sensitivity=stricter(current.facets.sensitivity, level),
            key=requested.key or current.facets.key,
            triple=requested.triple,
        )
        wanted = replace(
            current,
            text=text,
            tags=tags or current.tags,
            status="active",
            source=origin.source,
            updated_at=self.now_ms,
            facets=facets,
        )
        return current, self.propose(wanted, origin)

    def note_proposal(
        self, item: Item, origin: Origin, settled: Settled | None = None, *, parent: str | None = None
    ) -> None:
        """Record that an item waits for the person's yes, or how that was settled. It is not changed."""
        how: dict[str, str] = {"settled": settled} if settled is not None else {}
        if settled is None and origin.question:
            how["ask"] = origin.question
        if settled is not None:  # an answer has an author of its own
            item = replace(item, facets=replace(item.facets, author=origin.author))
        self.emit("observe", item, item.to_json(), origin, noted={"proposal": how}, parent=parent)


def _changed_facets(item: Item, current: Item | None) -> dict[str, Any]:
    """The key, category and links of an item, as far as they differ from what it has now."""
    known, facets = current.facets if current is not None else Facets(), item.facets
    changed: dict[str, Any] = {}
    if facets.key != known.key:
        changed["key"] = facets.key
    if facets.category != known.category:
        changed["category"] = facets.category
    if facets.links != known.links:
        changed["links"] = sorted(facets.links)
    return changed


def is_older(words: Origin, than: Source) -> bool:
    """Whether words are older than a message, by their snowflakes. If either is unknown, they are not."""
    ids = words.source.message_id, than.message_id
    if ids[0] == ids[1] or not all(one.isdigit() for one in ids):
        return False
    return (snowflake_at(words.said_at) if words.edited else int(ids[0])) < int(ids[1])
