"""Checks the events of a relay: they have to decode, match the request, and have a correct id and signature.

Whatever fails is dropped and counted by kind, because a relay that serves what we didn't ask for may also
withhold what we did ask for. A check takes about half a millisecond of CPU per event, so callers check whole
batches in a thread.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import BadEvent
from discoclaw.nostr.event import Event, verified
from discoclaw.nostr.relays.wire import Filter


@dataclass(slots=True)
class CheckedBatch:
    """A checked batch. `fresh` are the good events not seen before, in their order.

    `times` (s) and `ids` are those of all good events. `bad` counts the others: "garbage", "forged",
    "author", "kind" or "filter".
    """

    fresh: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    bad: Counter[str] = field(default_factory=Counter)


class EventChecker:
    """Remembers the events it has seen; with `max_known`, only that many.

    It remembers the time of each, so that a forged copy with a known id cannot claim another time.
    """

    def __init__(self, max_known: int | None = None) -> None:
        self._known: dict[bytes, int] = {}
        self._max_known = max_known

    def check(self, bodies: Sequence[str], filters: Sequence[Filter]) -> CheckedBatch:
        """Check events, given as JSON, that arrived for these filters. Blocking; not thread-safe."""
        checked = CheckedBatch()
        for body in bodies:
            if (why := self._check(body, filters, checked)) is not None:
                checked.bad[why] += 1
        return checked

    def _check(self, body: str, filters: Sequence[Filter], checked: CheckedBatch) -> str | None:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return "garbage"
        if not isinstance(value, Mapping) or (key := _key(value)) is None:
            return "garbage"
        # A known id is not verified again: pages overlap, and after a reconnect everything arrives twice.
        if (known_at := self._known.get(key)) is not None:
            if not any(filter_.covers(known_at) for filter_ in filters):
                return "filter"
            checked.times.append(known_at)
            checked.ids.add(key.hex())
            return None
        if _other_author(value, filters):
            return "author"  # before the signature, which is expensive to check
        try:
            event = verified(value)
        except BadEvent:
            return "forged"
        if (why := _mismatch(event, filters)) is not None:
            return why
        self._note(key, event.created_at)
        checked.fresh.append(event)
        checked.times.append(event.created_at)
        checked.ids.add(event.id)
        return None

    def _note(self, key: bytes, created_at: int) -> None:
        self._known[key] = created_at
        if self._max_known is not None and len(self._known) > self._max_known:
            del self._known[next(iter(self._known))]


def _key(value: Mapping[str, Any]) -> bytes | None:
    """An event's id as bytes, a third of the memory of hex: a recovery holds a hundred thousand."""
    id_ = value.get("id")
    if not isinstance(id_, str) or len(id_) != 64:
        return None
    try:
        return bytes.fromhex(id_)
    except ValueError:
        return None


def _other_author(value: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether an event claims an author that no filter asks for."""
    return bool(filters) and all(one.authors and value.get("pubkey") not in one.authors for one in filters)


def _mismatch(event: Event, filters: Sequence[Filter]) -> str | None:
    """Why no filter matches, by the filter that comes closest; None if one matches."""
    reasons = [filter_.mismatch(event) for filter_ in filters]
    if not reasons or None in reasons:
        return None
    return next((why for why in ("filter", "kind") if why in reasons), "author")
