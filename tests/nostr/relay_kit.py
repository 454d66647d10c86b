"""What the tests of relays share: events by the dozen, and a relay of ours that is closed again."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.relay import Relay

ME = Keys.parse("0" * 63 + "1")
OTHER = Keys.parse("0" * 63 + "2")
NOW_S = 1_770_136_175
"""2026-02-03T16:29:35Z"""


def event(
    d: str = "a", *, at: int = NOW_S, kind: int = 30_078, content: str = "sealed", by: Keys = ME
) -> Event:
    """A signed event."""
    return by.sign(kind, content, [["d", d]], at)


def events(count: int, *, at: int = NOW_S, step: int = 1, kind: int = 30_078) -> list[Event]:
    """So many, with identifiers of their own, each `step` seconds older than the one before."""
    return [event(f"x:{kind}:{at}:{number}", at=at - step * number, kind=kind) for number in range(count)]


def plain(*some: Event) -> list[dict[str, Any]]:
    """Events as decoded JSON, as a loopback relay keeps them."""
    return [one.to_json() for one in some]


def ids(some: Iterable[Event]) -> set[str]:
    return {one.id for one in some}


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextlib.asynccontextmanager
async def connected(url: str, *, keys: Keys = ME, **how: Any) -> AsyncIterator[Relay]:
    """A relay that is connected; it tries again at once, and waits for no answer longer than two seconds."""
    times = {"timeout_s": 2.0, "backoff_s": 0.01, "max_backoff_s": 0.05}
    times |= {name: how.pop(name) for name in Timing.__dataclass_fields__ if name in how}
    relay = Relay(url, keys, timing=Timing(**times), **how)
    relay.start()
    try:
        await relay.ready(10)
        yield relay
    finally:
        await relay.close()
