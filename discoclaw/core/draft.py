"""Every rule by which memory may change, once: a draft turns wishes into events, and events into a commit.

Wishes come from a person (a command, a hand-edited file: "stated") or from a model ("inferred"). The rules:

- An upsert goes to the item with its id, else to the one that says the same, else to the one with the
  derived id (a person's own, if that one was forgotten), else it is a new item.
- Re-adding a deprecated text reactivates the same id. Adding what is there already writes nothing.
- What was inferred never overrides what was stated: it becomes a conflict, which the person settles.
  Nothing inferred from words older than a person's "forget" brings the forgotten back.
- A deprecation by text needs a match of at least 60 % of the item's length.
- Three ways to forget: `deprecate` (stays, restorable), `remove` (leaves the view, stays in history);
  erasing bytes is the store's work, not a change of the view.
- A key names one item: an upsert with a key goes to the item that has it.
- The bot's own keys (`bot_memory`) are for the bot's own memory, where the cap leaves their items alone.
- A model that learns from talk makes nothing "core", and takes nothing out of it.
- What a person settles of a conflict, they have stated: keep_old, use_new or both_valid.
- Nothing that was said before the memory was erased is learned again.
- Over the cap the oldest deprecated items are removed first, then the oldest active ones.

Pure: the present is an argument, and nothing is written until somebody appends the commit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from discoclaw.core.bot_memory import is_bot_key
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
from discoclaw.core.privacy import DmPrivacy, may_show, sensitivity, stricter
from discoclaw.core.text import collapse, normalise, scrub, utf16_length
from discoclaw.core.times import iso_ms
from discoclaw.core.view import Conflict, Fold, View

MATCH_PERCENT = 60
MAX_KEY = 100
"""Longest key a model may propose, in code points."""
MOST_LINKS = 20
"""Most links of one upsert."""

Resolution = Literal["keep_old", "use_new", "both_valid"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

Outcome = Literal["added", "updated", "restored", "unchanged", "conflict", "ignored"]


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

    def __init__(
        self, view: View, *, now_ms: int, max_items: int = 200, erased_at: int = -1, bot_memory: bool = False
    ) -> None:
        # Time never stands still in a ledger: its commits are told apart by their times.
        self.now_ms = max(now_ms, view.updated_at + 1)
        self.events: list[Event] = []
        self.refused: list[str] = []
        self._view = view
        self._fold = Fold(view)
        self._max_items = max_items
        self._erased_at = erased_at  # ms; what was inferred from earlier words is gone for good
        self._bot_memory = bot_memory  # whether this is the bot's own memory

    @property
    def items(self) -> Mapping[str, Item]:
        """The items as they are with the changes so far."""
        return self._fold.items

    @property
    def view(self) -> View:
        """The view as it is with the changes so far; where the chain stands is as before."""
        fold = self._fold
        return replace(
            self._view,
            items=dict(fold.items),
            last_event=dict(fold.last_event),
            triples=dict(fold.triples),
            conflicts=tuple(fold.conflicts),
            forgotten=dict(fold.forgotten),
        )

    def commit(
        self, message: str, /, *, branch: str = "main", empty: bool = False, **metadata: Any
    ) -> Commit | None:
        """All changes as one commit on top of the view; None when there are none, unless it may be empty."""
        self._cap()
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
        """The view with the draft's own commit: what `View.after` gives, without applying it once more.

        The draft gives its items away: it must not change them after this.
        """
        fold, before = self._fold, self._view
        return View(
            fold.items,
            fold.last_event,
            fold.triples,
            tuple(fold.conflicts),
            fold.forgotten,
            commit.id,
            self.now_ms,
            before.commits + 1,
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
        facets: Facets | None = None,
    ) -> tuple[Item, Outcome]:
        """Add an item or change the one meant. Returns the item as it is now, and what was done.

        `facets` are wishes for a new item's scope, confidence, category, links and triple; its key finds
        the item meant. Raises Refused on a wrong kind or text, and on a key of the bot's own.
        """
        kind, text = check_kind(kind), check_text(text)
        requested = facets or Facets()
        if is_bot_key(requested.key) and not self._bot_memory:
            raise Refused(f"the key {requested.key!r} is my own; take another one")
        current = self._meant(kind, text, given_id, requested.key, origin.author)
        secret = self._secret(current.kind if current else kind, text, marked, origin)
        if current is None:
            own = replace(requested, author=origin.author, sensitivity=secret, links=frozenset())
            item = self._new(kind, text, origin, tags, own)
            if origin.author == "inferred" and origin.said_at <= self._forgotten(item.id, given_id):
                return item, "ignored"
            self._emit("add", item, item.to_json(), origin)
            for other in sorted(requested.links & self.items.keys()):
                self.link(self.items[item.id], self.items[other], origin)
            return self.items[item.id], "added"
        if self._outdated(current, origin):
            return current, "ignored"
        if (
            origin.author == "inferred"
            and current.facets.author == "stated"
            and self._stands(current, origin)
        ):
            return current, self._dispute(current, text, secret, origin)
        return self._change(current, text, tidy_tags(tags) or current.tags, secret, marked, origin, requested)

    def deprecate(self, item: Item, origin: Origin) -> Outcome:
        """The item no longer holds; it stays in the file, restorable, and is not injected."""
        current = self.items.get(item.id)
        if current is None or not current.active:
            return "unchanged"
        if self._outdated(current, origin):
            return "ignored"
        if origin.author == "inferred" and current.facets.author == "stated":
            return self._dispute(
                current, "", self._secret(current.kind, origin.evidence, "normal", origin), origin
            )
        self._emit("modify", current, {"status": "deprecated"}, origin)
        return "updated"

    def remove(self, item: Item, origin: Origin) -> None:
        """The item leaves the view; history still shows it."""
        if (current := self.items.get(item.id)) is not None:
            self._emit("forget", current, {}, origin)

    def note(self, item: Item, origin: Origin) -> None:
        """Write down that something was found out about an item that changes nothing."""
        if (current := self.items.get(item.id)) is not None:
            self._emit("observe", current, {}, origin)

    def classify(self, item: Item, category: str, origin: Origin) -> Outcome:
        """Move an item to another category. It is no claim, so it needs no conflict with what was stated."""
        current = self.items.get(item.id)
        if current is None or current.facets.category == category:
            return "unchanged"
        if self._outdated(current, origin):
            return "ignored"
        self._emit("modify", replace(current, facets=replace(current.facets, category=category)), {}, origin)
        return "updated"

    def mark(self, item: Item, secret: Sensitivity, origin: Origin) -> Outcome:
        """Keep an item private, or share it, which only its person may. Raises Refused otherwise."""
        current = self.items.get(item.id)
        if current is None or current.facets.sensitivity == secret:
            return "unchanged"
        if origin.author == "inferred" and stricter(current.facets.sensitivity, secret) != secret:
            raise Refused("only the person may share what is private")
        changed = replace(current, facets=replace(current.facets, sensitivity=secret))
        self._emit("modify", changed, {}, origin)
        return "updated"

    def link(self, one: Item, other: Item, origin: Origin, *, on: bool = True) -> Outcome:
        """Link two items, both ways, or part them. Raises Refused for one item with itself."""
        if one.id == other.id:
            raise Refused("an item can not be linked with itself")
        if (other.id in self.items[one.id].facets.links) == on:
            return "unchanged"
        self._emit("add" if on else "forget", self.items[one.id], {}, origin, link=other.id)
        return "updated"

    def contradict(self, current: Item, other: Item, reason: str, origin: Origin) -> Outcome:
        """Two remembered items can not both hold: the person is to settle it."""
        if any((c.item_id, c.text) == (current.id, other.text) for c in self._fold.conflicts):
            return "conflict"
        noted = {"text": other.text, "reason": scrub(reason), "other": other.id}
        secret = stricter(current.facets.sensitivity, other.facets.sensitivity)
        self._emit("observe", current, {}, origin, noted, secret)
        return "conflict"

    def settle(self, conflict: Conflict, how: Resolution, origin: Origin) -> None:
        """The person settles a conflict. Raises Refused when it is settled already."""
        if conflict.event_id not in {open_.event_id for open_ in self._fold.conflicts}:
            raise Refused("that is settled already")
        current, other = self.items[conflict.item_id], self.items.get(conflict.other_id)
        noted = {"text": conflict.text, "reason": "", "settled": how}
        self._emit("observe", current, {}, origin, noted, conflict.sensitivity)
        if how == "use_new" and other is None and conflict.text:
            secret = conflict.sensitivity
            self._change(current, conflict.text, current.tags, secret, secret, origin, current.facets)
        elif how == "both_valid" and other is None and conflict.text:
            self._add_beside(current, conflict, origin)
        for item, wrong in ((current, "use_new"), (other, "keep_old")):
            if item is not None and how == wrong and (other is not None or not conflict.text):
                self.deprecate(item, origin)
            elif item is not None and how != wrong:
                self._confirm(item, origin)

    def _add_beside(self, current: Item, conflict: Conflict, origin: Origin) -> None:
        known = self._same(current.kind, conflict.text)
        if known is not None:
            if not known.active:
                self._emit("modify", known, {"status": "active"}, origin)
            return
        facets = Facets(author=origin.author, sensitivity=conflict.sensitivity)
        item = self._new(current.kind, conflict.text, origin, current.tags, facets)
        self._emit("add", item, item.to_json(), origin)

    def _confirm(self, item: Item, origin: Origin) -> None:
        """The person says that an item holds: nothing inferred overrides it from now on."""
        current = self.items[item.id]
        if origin.author == "stated" and current.active and current.facets.author == "inferred":
            self._emit("modify", current, {}, origin)

    def set_item(self, target: str, wanted: Item | None, *, parent: str | None, origin: Origin) -> None:
        """Make an item exactly as it is at another point of the history, or absent (None).

        `parent` is the event of that other point which this one continues, `origin.evidence` its evidence;
        who stated the item stays who stated it.
        """
        current = self.items.get(target)
        if wanted is None:
            if current is not None:
                self._emit("forget", current, {}, origin, parent=parent)
            return
        kept = wanted.facets.links & self.items.keys()
        wanted = replace(wanted, facets=replace(wanted.facets, links=frozenset(kept)))
        if current is None:
            self._emit("add", wanted, wanted.to_json(), origin, parent=parent, taken=True)
        elif current != wanted:
            before, after = current.to_json(), wanted.to_json()
            body = {name: value for name, value in after.items() if value != before[name]}
            body["updatedAt"] = wanted.updated_at  # else it would be the event's time
            if wanted.facets.triple != current.facets.triple:
                body["text"] = wanted.text  # words without a triple end it
            self._emit("modify", wanted, body, origin, parent=parent, taken=True)

    def replay(self, event: Event) -> None:
        """Let an event of another branch take effect here as it is."""
        self._fold.apply(event)
        self.events.append(event)

    def note_conflict(self, conflict: Conflict, origin: Origin, *, on: bool = True) -> None:
        """Note a conflict that stands at another point of the history, or (not `on`) that it does not."""
        if (current := self.items.get(conflict.item_id)) is None:
            return
        noted = {"text": conflict.text, "reason": conflict.reason, "other": conflict.other_id}
        self._emit(
            "observe",
            current,
            {},
            origin,
            noted if on else noted | {"settled": "undone"},
            conflict.sensitivity,
        )

    def apply_patch(self, patch: Patch, origins: Mapping[tuple[str, str], Origin], fallback: Origin) -> None:
        """Take over what extraction proposes, item by item; what a rule refuses is noted in `refused`.

        `origins` are the messages the model was shown, by (channel id, message id); a proposal that names
        none of them rests on `fallback`. Each message's own time and privacy count, never the model's word.
        Links come last, since an item may name one that is proposed behind it.
        """
        linking: list[tuple[Item, Upsert, Origin]] = []
        for upsert in patch.upserts:
            origin = _origin_of(upsert, origins, fallback)
            try:
                item, done = self._take_over(upsert, origin)
            except Refused as refusal:
                self.refused.append(str(refusal))
                continue
            if done != "ignored" and upsert.links:
                linking.append((item, upsert, origin))
        for item, upsert, origin in linking:
            self._link_up(item, upsert.links[:MOST_LINKS], origin)
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

    def _take_over(self, upsert: Upsert, origin: Origin) -> tuple[Item, Outcome]:
        """One upsert of a patch. Raises Refused."""
        requested = "knowledge" if upsert.category == "core" else upsert.category
        item, done = self.upsert(
            upsert.kind,
            upsert.text,
            origin,
            tags=upsert.tags,
            given_id=upsert.id,
            marked=upsert.sensitivity,
            facets=Facets(key=self._key(upsert.key), category=requested or "knowledge"),
        )
        if upsert.category == "core" and item.facets.category != "core":
            self.refused.append("only the person decides what is core; it is kept as knowledge")
        # Known for good is known for good: only what was of the day may become more than that.
        if requested == "knowledge" and done != "ignored" and item.facets.category == "conversation":
            self.classify(item, requested, origin)
        return self.items.get(item.id, item), done

    def _key(self, proposed: str | None) -> str | None:
        """A proposed key as it is current already, else in lower case; None when it can not be one."""
        plain = normalise(scrub(proposed or ""))
        if len(plain) > MAX_KEY:
            self.refused.append(f"a key has at most {MAX_KEY} characters, so {plain[:40]!r}… is left out")
            return None
        current = (item.facets.key for item in self.items.values() if item.facets.key is not None)
        return next((key for key in current if normalise(key) == plain), plain or None)

    def _link_up(self, item: Item, names: Sequence[str], origin: Origin) -> None:
        """Link an item with those that are named; what is not there to link with is noted and left out."""
        for name in names:
            other = self._linkable(name, origin)
            if other is None or other.id == item.id or item.id not in self.items:
                self.refused.append(f"there is no {collapse(scrub(name))[:60]!r} to link {item.id} with")
            else:
                self.link(self.items[item.id], other, origin)

    def _linkable(self, name: str, origin: Origin) -> Item | None:
        """The active item of this id, key or text that may be shown where the words were said."""
        name, plain = collapse(scrub(name)), normalise(scrub(name))
        if not plain:
            return None
        seen = [one for one in self.items.values() if one.active and may_show(one, in_dm=origin.private)]
        for one in seen:
            if name == one.id or plain == normalise(one.facets.key or ""):
                return one
        return next((one for one in seen if plain == normalise(one.text)), None)

    def apply_edits(self, base: Mapping[str, Item], edited: Sequence[Item], origin: Origin) -> None:
        """Take over a hand-edited file: what differs between `base`, which was written, and `edited`."""
        kept = {item.id for item in edited}
        gone = [item for item in base.values() if item.id not in kept and item.id in self.items]
        # An item whose id was dropped comes back as a new one: it must not come back less private.
        floor: Sensitivity = "normal"
        for item in gone:
            floor = stricter(floor, self.items[item.id].facets.sensitivity)
        for item in edited:
            before, current = base.get(item.id), self.items.get(item.id)
            if current is None:
                secret = stricter(item.facets.sensitivity, floor)
                if before is not None:  # somebody else removed it since
                    secret = stricter(secret, before.facets.sensitivity)
                item = replace(item, facets=replace(item.facets, sensitivity=secret))
            changed = _edits(item, before)
            if current is None:
                if before is None or changed:  # else somebody else removed it since
                    self._emit("add", item, item.to_json(), origin)
                continue
            now = current.to_json()
            if changed := {name: value for name, value in changed.items() if value != now[name]}:
                self._emit("modify", current, {"updatedAt": self.now_ms, **changed}, origin)
        for item in gone:
            self.remove(item, origin)

    # ------------------------------------------------------------------ rules

    def _meant(
        self, kind: Kind, text: str, given_id: str | None, key: str | None, author: Author
    ) -> Item | None:
        """The item an upsert goes to: by id or key, else by what it says now.

        Else by what it first said: a model that says it anew means the item that was changed since. A person
        does not, unless it was forgotten: to remember one thing must not cost another.
        """
        if given_id is not None and given_id in self.items:
            return self.items[given_id]
        if key is not None:
            keyed = [item for item in self.items.values() if item.facets.key == key]
            if keyed:
                return min(keyed, key=lambda item: (not item.active, by_newest(item)))
        began = self.items.get(item_id(kind, text))
        if began is not None and began.active and author == "stated":
            began = None
        return self._same(kind, text) or began

    def _new(self, kind: Kind, text: str, origin: Origin, tags: object, facets: Facets) -> Item:
        """A fresh item. Where another one began with these words and has their id, it gets one of its own."""
        item = new_item(kind, text, source=origin.source, now_ms=self.now_ms, tags=tags, facets=facets)
        if item.id in self.items:
            item = replace(item, id=item_id(kind, f"{text} {self.now_ms}"))
        return item

    def _same(self, kind: Kind, text: str) -> Item | None:
        """The item that says this now, one that holds first."""
        plain = normalise(text)
        same = [item for item in self.items.values() if item.kind == kind and normalise(item.text) == plain]
        return min(same, key=lambda item: not item.active, default=None)

    def _forgotten(self, *ids: str | None) -> int:
        return max(self._erased_at, *(self._fold.forgotten.get(one or "", -1) for one in ids))

    def _outdated(self, current: Item, origin: Origin) -> bool:
        """Whether words are older than those an item rests on, or than what was erased."""
        older = origin.said_at <= self._erased_at or _older(origin.source, current.source)
        return origin.author == "inferred" and older

    def _secret(self, kind: Kind, text: str, marked: Sensitivity, origin: Origin) -> Sensitivity:
        return sensitivity(
            kind, text, learned_privately=origin.private, marked=marked, rule=origin.dm_privacy
        )

    def _change(
        self,
        current: Item,
        text: str,
        tags: tuple[str, ...],
        secret: Sensitivity,
        marked: Sensitivity,
        origin: Origin,
        requested: Facets,
    ) -> tuple[Item, Outcome]:
        outranks = origin.author == "stated" and current.facets.author == "inferred"
        repeated = normalise(current.text) == normalise(text)
        same = current.active and repeated and set(tags) <= set(current.tags)
        key = current.facets.key if self._taken(requested.key, current) else requested.key
        settles = origin.author == "stated" and any(c.item_id == current.id for c in self._fold.conflicts)
        # Only the person lifts privacy, with `mark`; known words do not become private by being repeated.
        secret = stricter(current.facets.sensitivity, marked if same else secret)
        named = key != current.facets.key
        if same and not outranks and not settles and not named and secret == current.facets.sensitivity:
            return current, "unchanged"
        triple = requested.triple or (current.facets.triple if repeated else None)
        facets = replace(current.facets, sensitivity=secret, key=key, triple=triple)
        changed = replace(current, facets=facets)
        fields = {"text": text, "tags": list(tags), "status": "active", "source": origin.source.to_json()}
        now = current.to_json()
        body = {name: value for name, value in fields.items() if value != now[name]}
        self._emit("modify", changed, {**body, "text": text}, origin)
        return self.items[current.id], "updated" if current.active else "restored"

    def _taken(self, key: str | None, current: Item) -> bool:
        """Whether a key is none, or names another item than this already."""
        others = (item.facets.key for item in self.items.values() if item.id != current.id)
        return key is None or key in others

    @staticmethod
    def _stands(current: Item, origin: Origin) -> bool:
        """Whether what a person stated holds against later talk. What they forgot, they may say again."""
        return current.active or origin.said_at <= current.updated_at

    def _dispute(self, current: Item, text: str, secret: Sensitivity, origin: Origin) -> Outcome:
        """Something inferred stands against something stated: note it, change nothing."""
        if current.active and normalise(current.text) == normalise(text):
            return "unchanged"
        if origin.said_at <= current.updated_at:
            return "ignored"  # the person's command is the later word
        if any((c.item_id, c.text) == (current.id, text) for c in self._fold.conflicts):
            return "conflict"
        noted = {"text": text, "reason": scrub(origin.evidence) or f"said in {origin.source}"}
        self._emit("observe", current, {}, origin, noted, stricter(current.facets.sensitivity, secret))
        return "conflict"

    def _cap(self) -> None:
        over = len(self.items) - self._max_items
        if over <= 0:
            return
        others = [item for item in self.items.values() if not (item.active and is_bot_key(item.facets.key))]
        oldest_first = sorted(others, key=by_newest, reverse=True)
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
        *,
        link: str | None = None,
        parent: str | None = None,
        taken: bool = False,
    ) -> None:
        """Append one event about `item`; its facets are the event's own fields.

        `taken`: the item comes from another point of the history, with its author and source.
        """
        keeps_author = taken or event_type == "observe" or link is not None or origin.author != "stated"
        author = item.facets.author if keeps_author else "stated"
        if event_type == "forget" and link is None:
            author = origin.author  # who removed it, not who said it
        ext: dict[str, Any] = {
            "item": {**body, "id": item.id},
            "facets": {"author": author, **self._other_facets(item)},
        }
        if conflict is not None:
            ext["conflict"] = dict(conflict)
        if link is not None:
            ext["link"] = {"to": link, "on": event_type == "add"}
        triple = ("user", body.get("kind", item.kind), body.get("text", item.text))
        if item.facets.triple is not None and event_type in ("add", "modify") and link is None:
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
            sensitivity=secret or item.facets.sensitivity,
            parent_id=parent or self._fold.last_event.get(item.id),
            ext=ext,
        )
        self._fold.apply(event)
        self.events.append(event)

    def _other_facets(self, item: Item) -> dict[str, Any]:
        """The key, category and links an event has to tell, because they are not what is current."""
        current = self.items.get(item.id)
        known, facets = current.facets if current is not None else Facets(), item.facets
        told: dict[str, Any] = {}
        if facets.key != known.key:
            told["key"] = facets.key
        if facets.category != known.category:
            told["category"] = facets.category
        if facets.links != known.links:
            told["links"] = sorted(facets.links)
        return told


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
