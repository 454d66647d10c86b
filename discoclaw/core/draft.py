"""Every rule by which memory may change, once: a draft turns wishes into events, and events into a commit.

Wishes come from a person (a command, a hand-edited file: "stated") or from a model ("inferred"). The rules:

- An upsert goes to the item with its id, else to the item with the derived id, else it is a new item.
- Re-adding a deprecated text reactivates the same id. Adding what is there already writes nothing.
- What was inferred never overrides what was stated: it becomes a conflict, which the person settles.
  Nothing inferred from words older than a person's "forget" brings the forgotten back.
- A deprecation by text needs a match of at least 60 % of the item's length.
- Three ways to forget: `deprecate` (stays, restorable), `remove` (leaves the view, stays in history);
  erasing bytes is the store's work, not a change of the view.
- Over the cap the oldest deprecated items are removed first, then the oldest active ones.

Pure: the present is an argument, and nothing is written until somebody appends the commit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from discoclaw.core.patch import Patch, Upsert
from discoclaw.core.privacy import DmPrivacy, sensitivity, stricter
from discoclaw.core.text import collapse, normalise, scrub, utf16_length
from discoclaw.core.times import iso_ms
from discoclaw.core.view import Fold, View

MATCH_PERCENT = 60

Done = Literal["added", "updated", "restored", "unchanged", "conflict", "ignored"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a wish comes from.

    `said_at` (ms) is when the words were said; `private` whether the place was a DM or a channel that not
    everybody can read; `evidence` a short quote or reason.
    """

    author: Author
    source: Source = MANUAL
    said_at: int = 0
    private: bool = False
    evidence: str = ""
    dm_privacy: DmPrivacy = "balanced"


def matches(text: str, needle: str) -> bool:
    """Whether `needle` names an item of this text: contained, any case, and at least 60 % of its length."""
    text, needle = normalise(text), normalise(needle)
    return needle in text and utf16_length(needle) * 100 >= utf16_length(text) * MATCH_PERCENT


class Draft:
    """Changes of one subject's memory, collected on top of `view`. `events` is what they amount to."""

    def __init__(self, view: View, *, now_ms: int, max_items: int = 200) -> None:
        # Time never stands still in a ledger: its commits are told apart by their times.
        self.now_ms = max(now_ms, view.updated_at + 1)
        self.events: list[Event] = []
        self.refused: list[str] = []
        self._view = view
        self._fold = Fold(view)
        self._max_items = max_items

    @property
    def items(self) -> Mapping[str, Item]:
        """The items as they are with the changes so far."""
        return self._fold.items

    def commit(self, message: str, /, *, branch: str = "main", **metadata: Any) -> Commit | None:
        """All changes as one commit on top of the view; None when there are none."""
        self._cap()
        if not self.events:
            return None
        return Commit(
            branch=branch,
            events=tuple(self.events),
            message=message,
            parent_id=self._view.head,
            timestamp=iso_ms(self.now_ms),
            metadata=metadata,
        )

    # ------------------------------------------------------------------ wishes

    def upsert(
        self,
        kind: str,
        text: str,
        origin: Origin,
        *,
        tags: object = (),
        given_id: str | None = None,
        marked: Sensitivity = "normal",
    ) -> tuple[Item, Done]:
        """Add an item or change the one meant. Returns the item as it is now, and what was done.

        Raises Refused on a wrong kind or text.
        """
        kind, text = check_kind(kind), check_text(text)
        held = self._meant(kind, text, given_id)
        secret = self._secret(held.kind if held else kind, text, marked, origin)
        if held is None:
            facets = Facets(author=origin.author, sensitivity=secret)
            item = new_item(kind, text, source=origin.source, now_ms=self.now_ms, tags=tags, facets=facets)
            if origin.author == "inferred" and origin.said_at <= self._forgotten(item.id, given_id):
                return item, "ignored"
            self._emit("add", item, item.to_json(), origin)
            return self.items[item.id], "added"
        if origin.author == "inferred" and _older(origin.source, held.source):
            return held, "ignored"
        if origin.author == "inferred" and held.facets.author == "stated" and self._stands(held, origin):
            return held, self._dispute(held, text, secret, origin)
        return self._change(held, text, tidy_tags(tags) or held.tags, secret, marked, origin)

    def deprecate(self, item: Item, origin: Origin) -> Done:
        """The item no longer holds; it stays in the file, restorable, and is not injected."""
        held = self.items.get(item.id)
        if held is None or not held.active:
            return "unchanged"
        if origin.author == "inferred" and _older(origin.source, held.source):
            return "ignored"
        if origin.author == "inferred" and held.facets.author == "stated":
            return self._dispute(held, "", self._secret(held.kind, origin.evidence, "normal", origin), origin)
        self._emit("modify", held, {"status": "deprecated"}, origin)
        return "updated"

    def remove(self, item: Item, origin: Origin) -> None:
        """The item leaves the view; history still shows it."""
        if (held := self.items.get(item.id)) is not None:
            self._emit("forget", held, {}, origin)

    def mark(self, item: Item, secret: Sensitivity, origin: Origin) -> Done:
        """Keep an item private, or share it, which only its person may. Raises Refused otherwise."""
        held = self.items.get(item.id)
        if held is None or held.facets.sensitivity == secret:
            return "unchanged"
        if origin.author == "inferred" and stricter(held.facets.sensitivity, secret) != secret:
            raise Refused("only the person may share what is private")
        changed = replace(held, facets=replace(held.facets, sensitivity=secret))
        self._emit("modify", changed, {}, origin)
        return "updated"

    def apply(self, patch: Patch, origins: Mapping[tuple[str, str], Origin], fallback: Origin) -> None:
        """Take over what extraction proposes, item by item; what a rule refuses is noted in `refused`.

        `origins` are the messages the model was shown, by (channel id, message id); a proposal that names
        none of them rests on `fallback`. Each message's own time and privacy count, never the model's word.
        """
        for upsert in patch.upserts:
            try:
                self.upsert(
                    upsert.kind,
                    upsert.text,
                    _origin_of(upsert, origins, fallback),
                    tags=upsert.tags,
                    given_id=upsert.id,
                    marked=upsert.sensitivity,
                )
            except Refused as refusal:
                self.refused.append(str(refusal))
        for deprecation in patch.deprecations:
            origin = replace(fallback, evidence=deprecation.reason[:200])
            if deprecation.id is not None:
                targets = [item for item in self.items.values() if item.id == deprecation.id]
            else:
                targets = find(self.items.values(), deprecation.matchText or "")
            if not targets:
                self.refused.append(f"no item matches {deprecation.id or deprecation.matchText!r}")
            for item in targets:
                self.deprecate(item, origin)

    def adopt(self, base: Mapping[str, Item], edited: Sequence[Item], origin: Origin) -> None:
        """Take over a hand-edited file: what differs between `base`, which was written, and `edited`."""
        kept = {item.id for item in edited}
        gone = [item for item in base.values() if item.id not in kept and item.id in self.items]
        # An item whose id was dropped comes back as a new one: it must not come back less private.
        floor: Sensitivity = "normal"
        for item in gone:
            floor = stricter(floor, self.items[item.id].facets.sensitivity)
        for item in edited:
            before, held = base.get(item.id), self.items.get(item.id)
            if held is None:
                secret = stricter(item.facets.sensitivity, floor)
                if before is not None:  # somebody else removed it since
                    secret = stricter(secret, before.facets.sensitivity)
                item = replace(item, facets=replace(item.facets, sensitivity=secret))
            changed = _edits(item, before)
            if held is None:
                if before is None or changed:  # else somebody else removed it since
                    self._emit("add", item, item.to_json(), origin)
                continue
            now = held.to_json()
            if changed := {name: value for name, value in changed.items() if value != now[name]}:
                self._emit("modify", held, {"updatedAt": self.now_ms, **changed}, origin)
        for item in gone:
            self.remove(item, origin)

    # ------------------------------------------------------------------ rules

    def _meant(self, kind: Kind, text: str, given_id: str | None) -> Item | None:
        """The item an upsert goes to: by id, else by what it says now, else by what it said at first."""
        if given_id is not None and given_id in self.items:
            return self.items[given_id]
        plain = normalise(text)
        same = [item for item in self.items.values() if item.kind == kind and normalise(item.text) == plain]
        same.sort(key=lambda item: not item.active)
        return same[0] if same else self.items.get(item_id(kind, text))

    def _forgotten(self, *ids: str | None) -> int:
        return max(self._fold.forgotten.get(one or "", -1) for one in ids)

    def _secret(self, kind: Kind, text: str, marked: Sensitivity, origin: Origin) -> Sensitivity:
        return sensitivity(
            kind, text, learned_privately=origin.private, marked=marked, rule=origin.dm_privacy
        )

    def _change(
        self,
        held: Item,
        text: str,
        tags: tuple[str, ...],
        secret: Sensitivity,
        marked: Sensitivity,
        origin: Origin,
    ) -> tuple[Item, Done]:
        outranks = origin.author == "stated" and held.facets.author == "inferred"
        same = held.active and normalise(held.text) == normalise(text) and set(tags) <= set(held.tags)
        settles = origin.author == "stated" and any(c.item_id == held.id for c in self._fold.conflicts)
        # Only the person lifts privacy, with `mark`; known words do not become private by being repeated.
        secret = stricter(held.facets.sensitivity, marked if same else secret)
        if same and not outranks and not settles and secret == held.facets.sensitivity:
            return held, "unchanged"
        changed = replace(held, facets=replace(held.facets, sensitivity=secret))
        fields = {"text": text, "tags": list(tags), "status": "active", "source": origin.source.to_json()}
        now = held.to_json()
        body = {name: value for name, value in fields.items() if value != now[name]}
        self._emit("modify", changed, {**body, "text": text}, origin)
        return self.items[held.id], "updated" if held.active else "restored"

    @staticmethod
    def _stands(held: Item, origin: Origin) -> bool:
        """Whether what a person stated holds against later talk. What they forgot, they may say again."""
        return held.active or origin.said_at <= held.updated_at

    def _dispute(self, held: Item, text: str, secret: Sensitivity, origin: Origin) -> Done:
        """Something inferred stands against something stated: note it, change nothing."""
        if held.active and normalise(held.text) == normalise(text):
            return "unchanged"
        if origin.said_at <= held.updated_at:
            return "ignored"  # the person's command is the later word
        if any((c.item_id, c.text) == (held.id, text) for c in self._fold.conflicts):
            return "conflict"
        noted = {"text": text, "reason": scrub(origin.evidence) or f"said in {origin.source}"}
        self._emit("observe", held, {}, origin, noted, stricter(held.facets.sensitivity, secret))
        return "conflict"

    def _cap(self) -> None:
        over = len(self.items) - self._max_items
        if over <= 0:
            return
        oldest_first = sorted(self.items.values(), key=by_newest, reverse=True)
        by_worth = sorted(oldest_first, key=lambda item: item.active)
        origin = Origin("inferred", evidence=f"more than {self._max_items} items")
        for item in by_worth[:over]:
            self.remove(item, origin)

    def _emit(
        self,
        event_type: EventType,
        item: Item,
        body: Mapping[str, Any],
        origin: Origin,
        conflict: Mapping[str, str] | None = None,
        secret: Sensitivity | None = None,
    ) -> None:
        """Append one event about `item`; its facets are the event's own fields."""
        author = "stated" if event_type != "observe" and origin.author == "stated" else item.facets.author
        if event_type == "forget":
            author = origin.author  # who removed it, not who said it
        ext: dict[str, Any] = {"item": {**body, "id": item.id}, "facets": {"author": author}}
        if conflict is not None:
            ext["conflict"] = dict(conflict)
        text = body.get("text", item.text)
        event = Event(
            event_type=event_type,
            subject="user",
            predicate=body.get("kind", item.kind),
            object=text,
            scope=item.facets.scope,
            timestamp=iso_ms(self.now_ms),
            confidence=item.facets.confidence,
            source=str(origin.source),
            evidence=scrub(origin.evidence),
            sensitivity=secret or item.facets.sensitivity,
            parent_id=self._fold.last_event.get(item.id),
            ext=ext,
        )
        self._fold.apply(event)
        self.events.append(event)


def find(items: Collection[Item], wanted: str) -> list[Item]:
    """The items a person or model means: by id (with or without "durable-"), else active by the 60 % rule."""
    wanted = collapse(wanted)
    by_id = [item for item in items if wanted and wanted in (item.id, item.id.removeprefix("durable-"))]
    return by_id or [item for item in items if wanted and item.active and matches(item.text, wanted)]


def _edits(item: Item, before: Item | None) -> dict[str, Any]:
    """What a person changed. Times are not edited; of an item that was not in the file, only what it says."""
    fields = {
        name: value for name, value in item.to_json().items() if name not in ("id", "createdAt", "updatedAt")
    }
    if before is None:
        return {name: value for name, value in fields.items() if name in ("kind", "text", "status")}
    written = before.to_json()
    return {name: value for name, value in fields.items() if value != written[name]}


def _older(words: Source, than: Source) -> bool:
    """Whether a message was said before another: snowflakes sort by time. Unknown counts as not older."""
    ids = words.message_id, than.message_id
    return all(one.isdigit() for one in ids) and int(ids[0]) < int(ids[1])


def _origin_of(upsert: Upsert, origins: Mapping[tuple[str, str], Origin], fallback: Origin) -> Origin:
    if upsert.source is None:
        return fallback
    return origins.get((upsert.source.channelId, upsert.source.messageId), fallback)
