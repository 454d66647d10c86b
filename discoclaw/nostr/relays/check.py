"""What a relay sent for a request, checked: decoded, asked for, and of right id and signature.

Nothing goes on that fails one of these, and each failure is counted by its kind, since a relay that serves
what nobody asked for may also withhold what was asked for. This is work for a processor, about half a
millisecond an event: callers give it whole batches, in a thread.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import BadEvent
from discoclaw.nostr.event import Event, received
from discoclaw.nostr.relays.wire import Filter


@dataclass(slots=True)
class Checked:
    """A batch. `fresh` are good events that were not known, in their order; `times` and `ids` are those of
    all good ones; `bad` counts the others: "garbage", "forged", "author", "kind" or "filter"."""

    fresh: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    bad: Counter[str] = field(default_factory=Counter)


class Checker:
    """Knows what was seen already: with `most_known`, only so many events back.

    What is known of a seen event is its time, so that a forged copy can not lie about it.
    """

    def __init__(self, most_known: int | None = None) -> None:
        self._known: dict[bytes, int] = {}
        self._most_known = most_known

    def check(self, bodies: Sequence[str], filters: Sequence[Filter]) -> Checked:
        """Check events, given as JSON, that were sent for these filters. Blocks; for one thread at a time."""
        checked = Checked()
        for body in bodies:
            if (why := self._check(body, filters, checked)) is not None:
                checked.bad[why] += 1
        return checked

    def _check(self, body: str, filters: Sequence[Filter], checked: Checked) -> str | None:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return "garbage"
        if not isinstance(value, Mapping) or (key := _key(value)) is None:
            return "garbage"
        if (known_at := self._known.get(key)) is not None:
            if not any(filter_.spans(known_at) for filter_ in filters):
                return "filter"
            checked.times.append(known_at)
            checked.ids.add(key.hex())
            return None
        if _by_nobody(value, filters):
            return "author"  # before its signature, which is dear to check
        try:
            event = received(value)
        except BadEvent:
            return "forged"
        if (why := _unasked(event, filters)) is not None:
            return why
        self._note(key, event.created_at)
        checked.fresh.append(event)
        checked.times.append(event.created_at)
        checked.ids.add(event.id)
        return None

    def _note(self, key: bytes, created_at: int) -> None:
        self._known[key] = created_at
        if self._most_known is not None and len(self._known) > self._most_known:
            del self._known[next(iter(self._known))]


def _key(value: Mapping[str, Any]) -> bytes | None:
    """An event's id in few bytes: a hundred thousand are held at once."""
    id_ = value.get("id")
    if not isinstance(id_, str) or len(id_) != 64:
        return None
    try:
        return bytes.fromhex(id_)
    except ValueError:
        return None


def _by_nobody(value: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether no filter wants anything of the author that it names."""
    return bool(filters) and all(one.authors and value.get("pubkey") not in one.authors for one in filters)


def _unasked(event: Event, filters: Sequence[Filter]) -> str | None:
    """Why no filter fits, by the one that comes nearest."""
    reasons = [filter_.lacks(event) for filter_ in filters]
    if not reasons or None in reasons:
        return None
    return next((why for why in ("filter", "kind") if why in reasons), "author")
