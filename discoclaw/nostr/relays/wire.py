"""The messages between client and relay, as text and as values (NIP-01, NIP-42). No connection, no clock.

A relay is not trusted: `parse` takes any text and never raises. It leaves an event undecoded, so that nothing
large is decoded before its size is known and somebody waits for it.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from discoclaw.core.text import clip, collapse
from discoclaw.nostr.event import Event

AUTH_KIND: Final = 22_242
"""Kind of the event that answers a challenge (NIP-42)."""
MAX_OTHER_FRAME: Final = 65_536
"""Longest message that is decoded, in characters, apart from events."""
_MAX_CHALLENGE: Final = 1_024
_MAX_SHOWN: Final = 200

_EVENT = re.compile(r'\s*\[\s*"EVENT"\s*,\s*"([^"\\]{1,64})"\s*,')
_PREFIX = re.compile(r"([a-z][a-z-]{0,30}): ?")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to ask for. An empty field matches anything. Times are in whole seconds.

    Only `#d` is asked for among tags: relays index single-letter tags only, so `hk` or `ts` would match
    nothing. NIP-01 includes events of exactly `until`, but nostr-relay leaves them out.
    """

    kinds: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    d: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        named = {"ids": self.ids, "authors": self.authors, "kinds": self.kinds, "#d": self.d}
        filters_json: dict[str, Any] = {name: list(values) for name, values in named.items() if values}
        bounds = {"since": self.since, "until": self.until, "limit": limit}
        return filters_json | {name: value for name, value in bounds.items() if value is not None}

    def mismatch(self, event: Event) -> str | None:
        """Why the event doesn't match: "author", "kind" or "filter"; None if it does."""
        if self.authors and event.pubkey not in self.authors:
            return "author"
        if self.kinds and event.kind not in self.kinds:
            return "kind"
        other = (self.ids and event.id not in self.ids) or (self.d and event.d not in self.d)
        return "filter" if other or not self.covers(event.created_at) else None

    def covers(self, at: int) -> bool:
        """Whether a time (s) is within `since` and `until`."""
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


@dataclass(frozen=True, slots=True)
class EventFrame:
    """An event for a request of ours. `body` is its JSON, not decoded yet."""

    request: str
    body: str


@dataclass(frozen=True, slots=True)
class Ok:
    """The answer to an event that we sent. `id` is "" when the relay doesn't say which one (nostr-relay)."""

    id: str
    accepted: bool
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Eose:
    """The relay has sent all stored events for a request."""

    request: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The relay ended a request."""

    request: str
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for people."""

    text: str


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge to sign (NIP-42)."""

    text: str


Frame = EventFrame | Ok | Eose | Closed | Notice | Challenge


def parse(text: str) -> Frame | None:
    """The message in a text. None if it is unknown or isn't a message at all."""
    # Recognised by its start alone, without decoding the event.
    if found := _EVENT.match(text):
        return EventFrame(found[1], text[found.end() :].rstrip()[:-1])
    if len(text) > MAX_OTHER_FRAME:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match message:
        case ["OK", str(id_), bool(accepted), *rest]:
            return Ok(id_.lower(), accepted, *_reason(rest))
        case ["EOSE", str(request), *_]:
            return Eose(request)
        case ["CLOSED", str(request), *rest]:
            return Closed(request, *_reason(rest))
        case ["NOTICE", str(notice), *_]:
            return Notice(one_line(notice))
        case ["AUTH", str(challenge), *_] if challenge and len(challenge) <= _MAX_CHALLENGE:
            return Challenge(challenge)
    return None


def _reason(rest: Sequence[object]) -> tuple[str, str]:
    """The machine-readable prefix before the colon, or "", and the whole text as one line."""
    text = rest[0] if rest and isinstance(rest[0], str) else ""
    found = _PREFIX.match(text)
    return (found[1] if found else "", one_line(text))


def one_line(text: str) -> str:
    """A relay's text, safe to log and show: one short line without control or invisible characters."""
    shown = text[: 4 * _MAX_SHOWN]
    kept = "".join(" " if unicodedata.category(char) in _HIDDEN else char for char in shown)
    return clip(collapse(kept), _MAX_SHOWN)


def event_frame(event: Event) -> str:
    return f'["EVENT",{event.encode()}]'


def auth_frame(event: Event) -> str:
    return f'["AUTH",{event.encode()}]'


def request_frame(request: str, filters: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(["REQ", request, *filters], ensure_ascii=False, separators=(",", ":"))


def close_frame(request: str) -> str:
    return json.dumps(["CLOSE", request], separators=(",", ":"))
