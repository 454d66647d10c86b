"""What is said to a relay and what it says, as text and as values (NIP-01, NIP-42). No connection, no clock.

A relay is not trusted. `parse` takes any text and never raises; an event comes out as its text only, so that
nothing large is decoded before its size is known and somebody waits for it.
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
"""Of the event that proves to a relay who we are (NIP-42)."""
MOST_SMALL: Final = 65_536
"""Characters of a frame that is no event; longer ones are not decoded."""
_MOST_CHALLENGE: Final = 1_024
_MOST_SAID: Final = 200

_EVENT = re.compile(r'\s*\[\s*"EVENT"\s*,\s*"([^"\\]{1,64})"\s*,')
_PREFIX = re.compile(r"([a-z][a-z-]{0,30}): ?")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for; an empty field stands for anything. Times are in whole seconds.

    Whether an event of exactly `until` is meant is something relays disagree about: NIP-01 says it is, and
    nostr-relay leaves it out.
    """

    kinds: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    d: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        named = {"ids": self.ids, "authors": self.authors, "kinds": self.kinds, "#d": self.d}
        asked: dict[str, Any] = {name: list(values) for name, values in named.items() if values}
        bounds = {"since": self.since, "until": self.until, "limit": limit}
        return asked | {name: value for name, value in bounds.items() if value is not None}

    def lacks(self, event: Event) -> str | None:
        """What of the event was not asked for: "author", "kind" or "filter"; None when it fits."""
        if self.authors and event.pubkey not in self.authors:
            return "author"
        if self.kinds and event.kind not in self.kinds:
            return "kind"
        other = (self.ids and event.id not in self.ids) or (self.d and event.d not in self.d)
        return "filter" if other or not self.spans(event.created_at) else None

    def spans(self, at: int) -> bool:
        """Whether a time (s) is within the bounds."""
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


@dataclass(frozen=True, slots=True)
class Row:
    """An event for one of our requests, not yet decoded."""

    request: str
    body: str


@dataclass(frozen=True, slots=True)
class Ok:
    """The answer to an event that we sent. `id` is "" where a relay does not say which one it means."""

    id: str
    accepted: bool
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Eose:
    """All that was stored for a request has been sent."""

    request: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The relay ended a request."""

    request: str
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something for people to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Challenge:
    """What has to be signed to prove who we are."""

    text: str


Frame = Row | Ok | Eose | Closed | Notice | Challenge


def parse(text: str) -> Frame | None:
    """What a relay said; None for what means nothing to us, or is no message of a relay at all."""
    if found := _EVENT.match(text):
        return Row(found[1], text[found.end() :].rstrip()[:-1])
    if len(text) > MOST_SMALL:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match said:
        case ["OK", str(id_), bool(accepted), *rest]:
            return Ok(id_.lower(), accepted, *_reason(rest))
        case ["EOSE", str(request), *_]:
            return Eose(request)
        case ["CLOSED", str(request), *rest]:
            return Closed(request, *_reason(rest))
        case ["NOTICE", str(notice), *_]:
            return Notice(one_line(notice))
        case ["AUTH", str(challenge), *_] if challenge and len(challenge) <= _MOST_CHALLENGE:
            return Challenge(challenge)
    return None


def _reason(rest: Sequence[object]) -> tuple[str, str]:
    """The machine-readable word before the colon, or "", and the whole text."""
    text = rest[0] if rest and isinstance(rest[0], str) else ""
    found = _PREFIX.match(text)
    return (found[1] if found else "", one_line(text))


def one_line(text: str) -> str:
    """A relay's words as they may be logged and shown: one short line, with nothing invisible in it."""
    shown = text[: 4 * _MOST_SAID]
    kept = "".join(" " if unicodedata.category(char) in _HIDDEN else char for char in shown)
    return clip(collapse(kept), _MOST_SAID)


def event_frame(event: Event) -> str:
    return f'["EVENT",{event.encode()}]'


def auth_frame(event: Event) -> str:
    return f'["AUTH",{event.encode()}]'


def request_frame(request: str, filters: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(["REQ", request, *filters], ensure_ascii=False, separators=(",", ":"))


def close_frame(request: str) -> str:
    return json.dumps(["CLOSE", request], separators=(",", ":"))
