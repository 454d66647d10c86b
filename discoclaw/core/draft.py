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
- What is inferred about a person who wants to be asked (`Origin.needs_yes`) is proposed (`keep_proposed`).
- Over the limit, the oldest deprecated items are removed first, then the oldest active ones.

`draft_patch` applies what extraction proposes. What a person answers to a proposal, and changes in their
durable file, is below. Pure, as `draft_events`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from discoclaw.core.draft_events import EventDraft, is_older
from discoclaw.core.draft_events import Origin as Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit
from discoclaw.core.item import (
    Author,
    Facets,
    Item,
    Kind,
    Sensitivity,
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
from discoclaw.core.pending import Pending
from discoclaw.core.privacy import sensitivity, stricter
from discoclaw.core.purge import purges, sources_with, terms_of
from discoclaw.core.reminder import Reminder
from discoclaw.core.subject import is_bot_key
from discoclaw.core.text import normalise, scrub
from discoclaw.core.view import Conflict, Fold, View
from discoclaw.core.zones import KEY as ZONE
from discoclaw.core.zones import names_own_zone

Resolution = Literal["keep_old", "use_new", "both_valid"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

MOST_CONFIRMED = 5
"""Messages that an item is known to rest on, before further ones that say the same are not recorded."""

Outcome = Literal["added", "updated", "restored", "unchanged", "conflict", "proposed", "ignored"]
"""The outcome of a requested change. "ignored": it rests on words that are too old to count."""


class Draft(EventDraft):
    """Requested changes of one subject's memory, as far as the rules allow them.

    `erased_at` is when (ms) the memory was last erased. `bot_memory`: it is the bot's own memory.
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
        super().__init__(view, now_ms=now_ms, reminders=reminders)
        self._max_items = max_items
        self._erased_at = erased_at
        self._bot_memory = bot_memory

    def commit(
        self, message: str, /, *, branch: str = "main", empty: bool = False, **metadata: Any
    ) -> Commit | None:
        """All changes as one commit on top of the view. None if there are none, unless `empty`."""
        over = Origin("inferred", evidence=f"more than {self._max_items} items")
        for item in beyond(self.items, self._max_items, self._view.items):
            self.remove(item, over)
        return super().commit(message, branch=branch, empty=empty, **metadata)

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
        current = meant(self.items, kind, text, given_id, requested.key, origin.author)
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
        if overrides_person and stands(current, origin):
            if origin.question:
                return current, "ignored"  # a guess isn't a contradiction
            return current, self._dispute(current, text, level, origin)
        if origin.needs_yes:
            return self.propose_change(current, text, tidy_tags(tags), level, marked, origin, requested)
        return self._change(current, text, tidy_tags(tags) or current.tags, level, marked, origin, requested)

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
            self._change(current, conflict.text, current.tags, level, level, origin, current.facets)
        elif how == "both_valid" and other is None and conflict.text:
            known = with_text(self.items, current.kind, conflict.text)
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

    def _new(self, kind: Kind, text: str, origin: Origin, tags: object, facets: Facets) -> Item:
        """A new item. If its derived id belongs to an item that began with this text, it gets another one."""
        item = new_item(kind, text, source=origin.source, now_ms=self.now_ms, tags=tags, facets=facets)
        if item.id in self.items:
            item = replace(item, id=item_id(kind, f"{text} {self.now_ms}"))
        return item

    def _change(
        self,
        current: Item,
        text: str,
        tags: tuple[str, ...],
        level: Sensitivity,
        marked: Sensitivity,
        origin: Origin,
        requested: Facets,
    ) -> tuple[Item, Outcome]:
        """Give an item new text and tags, unless nothing about it would change."""
        # Repeating a text can still be news: the person confirms it, which settles questions about it too.
        outranks = origin.author == "stated" and current.facets.author == "inferred"
        repeated = normalise(current.text) == normalise(text)
        same = current.active and repeated and set(tags) <= set(current.tags)
        key = current.facets.key if is_taken(self.items, requested.key, current) else requested.key
        settles = origin.author == "stated" and any(c.item_id == current.id for c in self._fold.conflicts)
        # Only the person lowers sensitivity, with `mark`; and repeating a text in private does not raise it.
        level = stricter(current.facets.sensitivity, marked if same else level)
        named = key != current.facets.key
        if same and not outranks and not settles and not named and level == current.facets.sensitivity:
            return current, "unchanged"
        triple = requested.triple or (current.facets.triple if repeated else None)
        facets = replace(current.facets, sensitivity=level, key=key, triple=triple)
        changed = replace(current, facets=facets)
        fields = {"text": text, "tags": list(tags), "status": "active", "source": origin.source.to_json()}
        now = current.to_json()
        body = {name: value for name, value in fields.items() if value != now[name]}
        # The text is always part of it: a fold takes an event with a text for a claim, and settles conflicts.
        self.emit("modify", changed, {**body, "text": text}, origin)
        return self.items[current.id], "updated" if current.active else "restored"


def _as_old_as(item: Item) -> dict[str, Any]:
    """Fields of an event that changes nothing of an item's claim: it is no later word than others."""
    return {"updatedAt": item.updated_at}


Items = Mapping[str, Item]

# ---------------------------------------------------------------------- which item


def meant(
    items: Items, kind: Kind, text: str, given_id: str | None, key: str | None, author: Author
) -> Item | None:
    """The item that an upsert changes: by id or key, else by its present text, else by its first text.

    A model that repeats an item's first text means that item, which was changed since. A person does not,
    unless the item is deprecated: remembering one thing must not overwrite another.
    """
    if given_id is not None and given_id in items:
        return items[given_id]
    if key is not None:
        keyed = [item for item in items.values() if item.facets.key == key]
        if keyed:  # more than one if replicas used the same key
            return min(keyed, key=lambda item: (not item.active, by_newest(item)))
    began = items.get(item_id(kind, text))
    if began is not None and began.active and author == "stated":
        began = None
    alike = one_saying(items.values(), kind, text) if author == "inferred" else None
    return with_text(items, kind, text) or alike or began


def with_text(items: Items, kind: Kind, text: str) -> Item | None:
    """The item that has this text now, preferably an active one."""
    plain = normalise(text)
    same = [item for item in items.values() if item.kind == kind and normalise(item.text) == plain]
    return min(same, key=lambda item: not item.active, default=None)


def is_taken(items: Items, key: str | None, current: Item) -> bool:
    """Whether a key is missing, or already names another item that is in use."""
    others = (item.facets.key for item in items.values() if item.active and item.id != current.id)
    return key is None or key in others


def beyond(items: Items, most: int, known: Collection[str]) -> list[Item]:
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


def stands(current: Item, origin: Origin) -> bool:
    """Whether a stated item prevails over these words. A forgotten one does not, if they came later."""
    return current.active or origin.said_at <= current.updated_at


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


# ----------------------------------------------------------------------
# A person's answer to what waits for it: their yes remembers it, their no ends it.
#
# A yes counts as stated, as does every decision of a person; what is remembered keeps the message it was
# inferred from as its source. A no to forgetting something confirms it.


class AlreadySettled(Refused):
    """The proposal that is answered is not pending any more."""

    def __init__(self) -> None:
        super().__init__("that is settled already, or has lapsed")


def _open_now(draft: Draft, pending: Pending) -> Pending:
    """A proposal as the draft has it now. Raises AlreadySettled if it is settled."""
    for one in draft.view.pending:
        if one.key == pending.key:
            return one
    raise AlreadySettled


def keep_proposed(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person agrees: do what is proposed. Returns the item. Raises AlreadySettled if that was settled."""
    item = _open_now(draft, pending).item
    draft.note_proposal(item, origin, "kept", parent=pending.event_id)
    # Where it was said decided how private it is, not where the person answers.
    agreed = replace(origin, author="stated", source=item.source, private=False)
    current = draft.items.get(item.id)
    if not item.active:
        if current is not None:
            draft.deprecate(current, agreed)
        return item
    return draft.upsert(
        item.kind,
        item.text,
        agreed,
        tags=item.tags,
        given_id=item.id if current is not None else None,
        marked=item.facets.sensitivity,
        facets=item.facets,
    )[0]


def drop_proposed(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person disagrees. Returns what was proposed. Raises AlreadySettled if that was settled."""
    item = _open_now(draft, pending).item
    draft.note_proposal(item, origin, "dropped", parent=pending.event_id)
    current = draft.items.get(item.id)
    if not item.active and current is not None and current.active:
        said = replace(origin, author="stated", source=current.source, private=False)
        draft.upsert(current.kind, current.text, said, given_id=current.id)
    return item


# ----------------------------------------------------------------------
# Applies a hand-edited durable file to a draft: what a person changes in their file becomes events.
#
# The file has only DNAM's schema. What that lacks (author, key, links, sensitivity) stays as the ledger has
# it. Both versions come as items.


def apply_edits(draft: Draft, base: Mapping[str, Item], edited: Sequence[Item], origin: Origin) -> None:
    """Apply the differences between `base`, the file as it was written, and `edited`, the file as it is.

    What others changed in the meantime stays, unless the person changed the same field.
    """
    kept = {item.id for item in edited}
    gone = [item for item in base.values() if item.id not in kept and item.id in draft.items]
    # If an item's id was deleted in the file, the item returns as a new one. It must not become less private.
    floor: Sensitivity = "normal"
    for item in gone:
        floor = stricter(floor, draft.items[item.id].facets.sensitivity)
    for item in edited:
        before, current = base.get(item.id), draft.items.get(item.id)
        if current is None:
            level = stricter(item.facets.sensitivity, floor)
            if before is not None:  # it was removed since the file was written
                level = stricter(level, before.facets.sensitivity)
            item = replace(item, facets=replace(item.facets, sensitivity=level))
        changed = _edits(item, before)
        if current is None:
            if before is None or changed:  # an item removed since comes back only if the person edited it
                draft.emit("add", item, item.to_json(), origin)
            continue
        # What the person wrote may be what the item says by now, learned in the meantime.
        now = current.to_json()
        if changed := {name: value for name, value in changed.items() if value != now[name]}:
            draft.emit("modify", current, {"updatedAt": draft.now_ms, **changed}, origin)
    for item in gone:
        draft.remove(item, origin)


def _edits(item: Item, before: Item | None) -> dict[str, Any]:
    """The fields that a person changed, except times. For an item that is new in the file, only its claim."""
    fields = {
        name: value for name, value in item.to_json().items() if name not in ("id", "createdAt", "updatedAt")
    }
    if before is None:
        return {name: value for name, value in fields.items() if name in ("kind", "text", "status")}
    written = before.to_json()
    return {name: value for name, value in fields.items() if value != written[name]}
