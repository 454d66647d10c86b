"""The rules by which memory may change. A draft applies them to requested changes and collects events.

A change is requested by a person (a command, a hand-edited file: "stated") or by a model ("inferred"). Model
output is only a request; the rules here decide:

- An upsert changes the item with its id or key, else the one that says the same, else the one whose id it
  would be given. Without any of them it adds an item. (A person's upsert changes the item with that id only
  if it is deprecated, since it says something else by now.) A model that words an item differently without
  naming it ("The user has a cat") adds nothing.
- Adding a deprecated text again restores the item under its id. Adding what is there already does nothing.
- What was inferred never overrides what was stated. It becomes a conflict, which the person settles. Nothing
  inferred from words older than a person's "forget" brings the forgotten item back.
- What the person took back does not come back from words older than that, nor worded differently.
- A deprecation by text needs at least 60 % of the item's text.
- An item is forgotten by `deprecate` (it stays, and can be restored) or `remove` (it leaves the view, but
  stays in the history). Erasing bytes is the store's work and does not go through a draft.
- A key names one item.
- Keys reserved for the bot are refused in anyone else's memory. In the bot's own (`bot_memory`), the limit on
  items does not remove what has one.
- How the person settles a conflict (keep_old, use_new or both_valid) counts as stated.
- Nothing said before the memory was erased is learned again.
- What is inferred about a person who wants to be asked (`Origin.needs_yes`) is proposed (`propose`).
- Over the limit, the oldest deprecated items are removed first, then the oldest active ones.

`draft_patch` applies what extraction proposes, `memory/subjects/verbs` what a person answers to a proposal.
Pure.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from discoclaw.core import reminder
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, EventType
from discoclaw.core.item import (
    MANUAL,
    Author,
    Facets,
    Item,
    Kind,
    Sensitivity,
    Source,
    by_newest,
    check_kind,
    check_text,
    item_id,
    new_item,
    tidy_tags,
)
from discoclaw.core.matching import find as find
from discoclaw.core.matching import kept_words, one_saying
from discoclaw.core.matching import matches as matches
from discoclaw.core.pending import MOST_PENDING, Settled, is_proposal
from discoclaw.core.privacy import DmPrivacy, sensitivity, stricter
from discoclaw.core.purge import purges, sources_with, terms_of
from discoclaw.core.reminder import Did, Reminder
from discoclaw.core.subject import is_bot_key
from discoclaw.core.text import normalise, scrub
from discoclaw.core.times import iso_ms, snowflake_at
from discoclaw.core.view import Conflict, Fold, View
from discoclaw.core.zones import KEY as ZONE
from discoclaw.core.zones import names_own_zone

Resolution = Literal["keep_old", "use_new", "both_valid"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

MOST_CONFIRMED = 5
"""Messages that an item is known to rest on, before further ones that say the same are not recorded."""

Outcome = Literal["added", "updated", "restored", "unchanged", "conflict", "proposed", "ignored"]
"""The outcome of a requested change. "ignored": it rests on words that are too old to count."""


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


@dataclass(frozen=True, slots=True)
class Claim:
    """What an item shall say from now on, and what that rests on.

    `level` is how private its words are, `marked` how private they were said to be.
    """

    text: str
    tags: tuple[str, ...]
    level: Sensitivity
    marked: Sensitivity
    origin: Origin
    facets: Facets


KEYED = "key"
"""Stands for the kind where items are found by their keys."""


class Places:
    """Which items have a text or a key, so that finding one costs the same however many there are."""

    def __init__(self, items: Mapping[str, Item]) -> None:
        self.at: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._of: dict[str, list[tuple[str, str]]] = {}
        for key, item in items.items():
            self.put(key, item)

    def put(self, item_id: str, item: Item | None) -> None:
        """Note how an item is now; None if it was removed."""
        for place in self._of.pop(item_id, ()):
            del self.at[place][item_id]
        if item is not None:
            self._of[item_id] = [(item.kind, normalise(item.text))]
            if item.facets.key is not None:
                self._of[item_id].append((KEYED, item.facets.key))
            for place in self._of[item_id]:
                self.at[place][item_id] = None


class Draft:
    """Requested changes of one subject's memory, as far as the rules allow them, as events on top of a view.

    `erased_at` is when (ms) the memory was last erased. `bot_memory`: it is the bot's own memory. The current
    time is an argument, and nothing is stored until somebody appends the commit.
    """

    def __init__(
        self,
        view: View,
        *,
        now_ms: int,
        max_items: int = 200,
        erased_at: int = -1,
        bot_memory: bool = False,
        reminders: Mapping[str, Reminder] = MappingProxyType({}),
    ) -> None:
        # Times rise strictly in a ledger: a durable file names the commit it shows by its time.
        self.now_ms = max(now_ms, view.updated_at + 1)
        self.events: list[Event] = []
        self.reminders = reminders
        """The reminders with all changes so far, by id."""
        self._view = view
        self._fold = Fold(view)
        self._max_items = max_items
        self._erased_at = erased_at
        self._bot_memory = bot_memory
        self._places: Places | None = None

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
        """All changes as one commit on top of the view. None if there are none, unless `empty`."""
        over = Origin("inferred", evidence=f"more than {self._max_items} items")
        for item in beyond(self.items, self._max_items, self._view.items):
            self.remove(item, over)
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

    # ------------------------------------------------------------------ items

    def upsert(
        self,
        kind: str,
        text: str,
        origin: Origin,
        *,
        tags: object = (),
        given_id: str | None = None,
        marked: Sensitivity = "normal",
        facets: Facets | None = None,
    ) -> tuple[Item, Outcome]:
        """Add an item, or change the one that is meant. Returns the item as it is now, and what was done.

        `given_id` and the key in `facets` name the item to change. The other `facets` (scope, confidence,
        category, links, triple) apply to a new item. Raises Refused for an unknown kind, an unusable text, or
        a key that is reserved for the bot.
        """
        kind, text = check_kind(kind), check_text(text)
        requested = facets or Facets()
        if requested.key is None and names_own_zone(text):
            requested = replace(requested, key=ZONE)  # said in talk too, it is the one zone of the person
        if is_bot_key(requested.key) and not self._bot_memory:
            raise Refused(f"the key {requested.key!r} is reserved for my own memory; use another one")
        current = self._meant(kind, text, given_id, requested.key, origin.author)
        if current is not None and origin.author == "inferred":
            named = current.id == given_id or current.facets.key == requested.key is not None
            text = kept_words(current, text, named=named)
        shown = "\n".join([text, *tidy_tags(tags), (requested.key or "").replace(":", " ")])
        level = level_of(current.kind if current else kind, shown, marked, origin)
        if was_taken_back(self._fold, current, text, origin):
            return current or self._new(kind, text, origin, tags, requested), "ignored"
        if current is None:
            # Links are events of their own, since they change the other item as well.
            own = replace(requested, author=origin.author, sensitivity=level, links=frozenset())
            item = self._new(kind, text, origin, tags, own)
            forgotten = max(self._fold.forgotten.get(one or "", -1) for one in (item.id, given_id))
            if origin.author == "inferred" and origin.said_at <= max(self._erased_at, forgotten):
                return item, "ignored"
            if origin.needs_yes:
                own = replace(own, links=requested.links & self.items.keys())
                return item, self.propose(replace(item, facets=own), origin)
            self.emit("add", item, item.to_json(), origin)
            for other in sorted(requested.links & self.items.keys()):
                self.link(self.items[item.id], self.items[other], origin)
            return self.items[item.id], "added"
        if too_old(current, origin, self._erased_at):
            return current, "ignored"
        overrides_person = origin.author == "inferred" and current.facets.author == "stated"
        # What is forgotten does not stand against words that came later.
        if overrides_person and (current.active or origin.said_at <= current.updated_at):
            if origin.question:
                return current, "ignored"  # a guess isn't a contradiction
            return current, self._dispute(current, text, level, origin)
        claim = Claim(text, tidy_tags(tags) or current.tags, level, marked, origin, requested)
        return self._propose_change(current, claim) if origin.needs_yes else self._change(current, claim)

    def confirm(self, item: Item, origin: Origin) -> None:
        """Record that another message says what an item says, as far as its words show that.

        If only one of the two is deleted, the item stays.
        """
        current, known = self.items.get(item.id), self._fold.sources.get(item.id, ())
        own = terms_of(item.text)
        says = len(own & terms_of(origin.evidence)) * 2 >= len(own) > 0
        if current is None or not current.active or not says or len(known) >= MOST_CONFIRMED:
            return
        if known and sources_with(known, origin.source) != known:
            self.emit("observe", current, {}, origin, noted={"confirms": True})

    def deprecate(self, item: Item, origin: Origin) -> Outcome:
        """Mark an item as no longer true. It can be restored, and is no longer put into prompts."""
        current = self.items.get(item.id)
        if current is None or not current.active:
            return "unchanged"
        if too_old(current, origin, self._erased_at):
            return "ignored"
        if origin.author == "inferred" and current.facets.author == "stated":
            # The reason becomes part of the question, and may be about something private.
            level = level_of(current.kind, origin.evidence, "normal", origin)
            return self._dispute(current, "", level, origin)
        if origin.needs_yes:
            return self.propose(replace(current, status="deprecated"), origin)
        self.emit("modify", current, {"status": "deprecated"}, origin)
        return "updated"

    def classify(self, item: Item, category: str, origin: Origin) -> Outcome:
        """Move an item to another category. A category is not a claim, so it cannot contradict the person."""
        current = self.items.get(item.id)
        if current is None or current.facets.category == category:
            return "unchanged"
        if too_old(current, origin, self._erased_at):
            return "ignored"
        changed = replace(current, facets=replace(current.facets, category=category))
        self.emit("modify", changed, _as_old_as(current), origin)
        return "updated"

    def mark(self, item: Item, level: Sensitivity, origin: Origin) -> Outcome:
        """Set an item's sensitivity. Raises Refused if a model wants to make it less private."""
        current = self.items.get(item.id)
        if current is None or current.facets.sensitivity == level:
            return "unchanged"
        if origin.author == "inferred" and stricter(current.facets.sensitivity, level) != level:
            raise Refused("only the person can share what is private")
        changed = replace(current, facets=replace(current.facets, sensitivity=level))
        self.emit("modify", changed, _as_old_as(current), origin)
        return "updated"

    def link(self, one: Item, other: Item, origin: Origin, *, on: bool = True) -> Outcome:
        """Link two items in both directions, or (not `on`) remove the link.

        Raises Refused for an item with itself.
        """
        if one.id == other.id:
            raise Refused("an item can't be linked with itself")
        if (other.id in self.items[one.id].facets.links) == on:
            return "unchanged"
        self.emit("add" if on else "forget", self.items[one.id], {}, origin, link=other.id)
        return "updated"

    # ------------------------------------------------------------------ conflicts

    def contradict(self, current: Item, other: Item, reason: str, origin: Origin) -> Outcome:
        """Record that two items cannot both be true. The person settles it."""
        if self._is_open(current, other.text):
            return "conflict"
        noted = {"text": other.text, "reason": scrub(reason), "other": other.id}
        self.emit_conflict(
            current, noted, stricter(current.facets.sensitivity, other.facets.sensitivity), origin
        )
        return "conflict"

    def settle(self, conflict: Conflict, how: Resolution, origin: Origin) -> None:
        """Settle a conflict as the person decided. Raises Refused if it is settled already."""
        if conflict.event_id not in {open_.event_id for open_ in self._fold.conflicts}:
            raise Refused("that is already settled")
        current, other = self.items[conflict.item_id], self.items.get(conflict.other_id)
        noted = {"text": conflict.text, "reason": "", "settled": how}
        self.emit_conflict(current, noted, conflict.sensitivity, origin)
        # Three kinds of conflicts: between two items (`other`), with a text that isn't an item yet, and about
        # whether the item is still true (no text).
        if how == "use_new" and other is None and conflict.text:
            level = conflict.sensitivity
            self._change(current, Claim(conflict.text, current.tags, level, level, origin, current.facets))
        elif how == "both_valid" and other is None and conflict.text:
            known = self._with_text(current.kind, conflict.text)
            if known is None:
                facets = Facets(author=origin.author, sensitivity=conflict.sensitivity)
                item = self._new(current.kind, conflict.text, origin, current.tags, facets)
                self.emit("add", item, item.to_json(), origin)
            elif not known.active:
                self.emit("modify", known, {"status": "active"}, origin)
        for side, wrong in ((current, "use_new"), (other, "keep_old")):
            if side is not None and how == wrong and (other is not None or not conflict.text):
                self.deprecate(side, origin)
            elif side is not None and how != wrong and origin.author == "stated":
                # The person confirms it, so an inferred one counts as stated from now on. If both are true,
                # they are known from the same time on: neither replaced the other.
                now = self.items[side.id]
                if now.active and (how == "both_valid" or now.facets.author == "inferred"):
                    self.emit("modify", now, {}, origin)

    def _is_open(self, item: Item, text: str) -> bool:
        """Whether the person is already asked about this text against an item."""
        return any((one.item_id, one.text) == (item.id, text) for one in self._fold.conflicts)

    def _dispute(self, current: Item, text: str, level: Sensitivity, origin: Origin) -> Outcome:
        """Record that something inferred contradicts what the person stated. The item stays as it is."""
        if current.active and normalise(current.text) == normalise(text):
            return "unchanged"
        # Loops read messages late, so a command may have been given after the words that contradict it.
        if origin.said_at <= current.updated_at:
            return "ignored"  # the person's command came later than these words
        if self._is_open(current, text):
            return "conflict"
        noted = {"text": text, "reason": scrub(origin.evidence) or f"said in {origin.source}"}
        self.emit_conflict(current, noted, stricter(current.facets.sensitivity, level), origin)
        return "conflict"

    # ------------------------------------------------------------------ inside

    def _meant(
        self, kind: Kind, text: str, given_id: str | None, key: str | None, author: Author
    ) -> Item | None:
        """The item that an upsert changes: by id or key, else by its present text, else by its first text.

        A model that repeats an item's first text means that item, which was changed since. A person does not,
        unless the item is deprecated: remembering one thing must not overwrite another.
        """
        if given_id is not None and given_id in self.items:
            return self.items[given_id]
        if key is not None and (keyed := self._at(KEYED, key)):  # several if replicas used the same key
            return min(keyed, key=lambda item: (not item.active, by_newest(item)))
        began = self.items.get(item_id(kind, text))
        if began is not None and began.active and author == "stated":
            began = None
        alike = one_saying(self.items.values(), kind, text) if author == "inferred" else None
        return self._with_text(kind, text) or alike or began

    def _with_text(self, kind: Kind, text: str) -> Item | None:
        """The item that has this text now, preferably an active one."""
        return min(self._at(kind, normalise(text)), key=lambda item: not item.active, default=None)

    def _new(self, kind: Kind, text: str, origin: Origin, tags: object, facets: Facets) -> Item:
        """A new item. If its derived id belongs to an item that began with this text, it gets another one."""
        item = new_item(kind, text, source=origin.source, now_ms=self.now_ms, tags=tags, facets=facets)
        if item.id in self.items:
            item = replace(item, id=item_id(kind, f"{text} {self.now_ms}"))
        return item

    def _change(self, current: Item, claim: Claim) -> tuple[Item, Outcome]:
        """Give an item new text and tags, unless nothing about it would change."""
        origin, tags, before = claim.origin, claim.tags, current.facets
        # Repeating a text can still be news: the person confirms it, which settles questions about it too.
        outranks = origin.author == "stated" and before.author == "inferred"
        repeated = normalise(current.text) == normalise(claim.text)
        same = current.active and repeated and set(tags) <= set(current.tags)
        key = claim.facets.key
        if key is None or any(one.active and one.id != current.id for one in self._at(KEYED, key)):
            key = before.key  # it names another item that is in use
        settles = origin.author == "stated" and any(c.item_id == current.id for c in self._fold.conflicts)
        # Only the person lowers sensitivity, with `mark`; and repeating a text in private does not raise it.
        level = stricter(before.sensitivity, claim.marked if same else claim.level)
        named = key != before.key
        if same and not outranks and not settles and not named and level == before.sensitivity:
            return current, "unchanged"
        triple = claim.facets.triple or (before.triple if repeated else None)
        changed = replace(current, facets=replace(before, sensitivity=level, key=key, triple=triple))
        fields = {
            "text": claim.text,
            "tags": list(tags),
            "status": "active",
            "source": origin.source.to_json(),
        }
        now = current.to_json()
        body = {name: value for name, value in fields.items() if value != now[name]}
        # The text is always part of it: a fold takes an event with a text for a claim, and settles conflicts.
        self.emit("modify", changed, {**body, "text": claim.text}, origin)
        return self.items[current.id], "updated" if current.active else "restored"

    # ------------------------------------------------------------------ proposals
    # What was inferred waits for the yes of a person who wants to be asked. Links, categories and a higher
    # sensitivity aren't claims about the person, and remember nothing new; they are made at once. Who wants
    # to be asked is known to the caller; what the answer does is in `memory/subjects/verbs`.

    def propose(self, item: Item, origin: Origin) -> Outcome:
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

    def _propose_change(self, current: Item, claim: Claim) -> tuple[Item, Outcome]:
        """Propose another text for an item."""
        before, origin = current.facets, claim.origin
        if current.active and normalise(current.text) == normalise(claim.text):
            secret = stricter(before.sensitivity, claim.marked)
            if secret == before.sensitivity:
                return current, "unchanged"
            self.emit("modify", replace(current, facets=replace(before, sensitivity=secret)), {}, origin)
            return self.items[current.id], "updated"
        facets = replace(
            before,
            author="inferred",
            sensitivity=stricter(before.sensitivity, claim.level),
            key=claim.facets.key or before.key,
            triple=claim.facets.triple,
        )
        wanted = replace(
            current,
            text=claim.text,
            tags=claim.tags,
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

    # ------------------------------------------------------------------ events

    def replay(self, event: Event) -> None:
        """Add an event of another branch as it is, with its id."""
        changed = self._fold.apply(event)
        self.reminders = reminder.folded(self.reminders, [event])
        self.events.append(event)
        if self._places is not None:
            self._places.put(changed, self.items.get(changed))

    def _at(self, kind: str, text: str) -> list[Item]:
        """The items of a kind that have this text; for the kind `KEYED`, those with this key."""
        if self._places is None:
            self._places = Places(self.items)
        return [self.items[one] for one in self._places.at[kind, text]]

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
        known, now = current.facets if current is not None else Facets(), item.facets
        facets: dict[str, Any] = {"author": author}
        if now.key != known.key:
            facets["key"] = now.key
        if now.category != known.category:
            facets["category"] = now.category
        if now.links != known.links:
            facets["links"] = sorted(now.links)
        ext: dict[str, Any] = {"item": {**body, "id": item.id}, "facets": facets}
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


def _as_old_as(item: Item) -> dict[str, Any]:
    """Fields of an event that changes nothing of an item's claim: it is no later word than others."""
    return {"updatedAt": item.updated_at}


def beyond(items: Mapping[str, Item], most: int, known: Collection[str]) -> list[Item]:
    """The items to remove so that `most` are left: forgotten ones first, those that are not `known` last.

    A clock that was wrong once may have dated the known ones in the future. What has a key reserved for the
    bot stays.
    """
    over = len(items) - most
    if over <= 0:
        return []
    others = [item for item in items.values() if not (item.active and is_bot_key(item.facets.key))]
    oldest_first = sorted(others, key=by_newest, reverse=True)
    return sorted(oldest_first, key=lambda item: (item.active, item.id not in known))[:over]


# ---------------------------------------------------------------------- whether the words count


def too_old(current: Item, origin: Origin, erased_at: int) -> bool:
    """Whether inferred words are older than those the item is based on, or than the last erasure."""
    older = origin.said_at <= erased_at or is_older(origin, current.source)
    return origin.author == "inferred" and older


def was_taken_back(fold: Fold, current: Item | None, text: str, origin: Origin) -> bool:
    """Whether a model proposes what the person took back, on the basis of words from before that."""
    if origin.author != "inferred" or not fold.taken_back:
        return False
    if current is not None and current.active and normalise(current.text) == normalise(text):
        return False
    taken = fold.taken_back.values()
    if any(one.alone and str(origin.source) in one.messages for one in taken):
        return True  # the message was deleted; it says nothing any more
    later = [
        one
        for one in taken
        if not one.alone
        and one.at >= origin.said_at
        and not (one.open_only and (origin.private or current is not None))
    ]
    found = purges("", later, fold.items)
    return any(one.words.hold(text) or normalise(text) in map(normalise, one.texts) for one in found)


# ---------------------------------------------------------------------- how private it is


def level_of(kind: Kind, text: str, marked: Sensitivity, origin: Origin) -> Sensitivity:
    """The sensitivity of what a change says."""
    return sensitivity(
        kind,
        f"{text}\n{origin.question}",  # shown wherever the item may be
        inferred=origin.author == "inferred" and not origin.of_channel,
        learned_privately=origin.private,
        marked=marked,
        rule=origin.dm_privacy,
    )


def is_older(words: Origin, than: Source) -> bool:
    """Whether words are older than a message, by their snowflakes. If either is unknown, they are not."""
    ids = words.source.message_id, than.message_id
    if ids[0] == ids[1] or not all(one.isdigit() for one in ids):
        return False
    return (snowflake_at(words.said_at) if words.edited else int(ids[0])) < int(ids[1])
