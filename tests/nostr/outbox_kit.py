"""What the tests of the outbox and of delivery share: events, units and an outbox that is full."""

import contextlib
import functools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.outbox import Outbox, OutboxEntry
from discoclaw.nostr.schemas import APP, DELETE, Codec, Deletion

KEYS = Keys.parse("1".rjust(64, "0"))
CODEC = Codec(KEYS, SecretBox.of(KEYS))
UNIT, OTHER = "a" * 32, "b" * 32
START_S = 1_770_136_175
"""In seconds; later than any event that a test makes first."""


def now_ms() -> int:
    """The real time."""
    return time.time_ns() // 1_000_000


def address(name: str) -> str:
    """The `d` of a record."""
    return f"discoclaw:ledger:{'c' * 32}:{name}"


@functools.cache
def signed(name: str, ts: int = START_S, *, content: str = "x") -> Event:
    """A version of a record's event. Signing is dear: one for each name, second and content."""
    return KEYS.sign(APP, content, [["d", address(name)], ["encrypted", "nip44"]], ts)


def unsigned(name: str, ts: int = START_S) -> Event:
    """The same with an id of our own choice, where nobody looks at signatures."""
    tags = (("d", address(name)),)
    return Event(f"{abs(hash((name, ts))):064x}", KEYS.public, ts, APP, tags, "x", "0" * 128)


def entry(name: str, ts: int = START_S, *, content: str = "x", tombstone: bool = False) -> OutboxEntry:
    return OutboxEntry(signed(name, ts, content=content), f"digest of {content}", tombstone)


def entries(count: int, *, first: int = 0) -> list[OutboxEntry]:
    """So many events, each of an address of its own."""
    return [entry(f"{number:05}") for number in range(first, first + count)]


def deletion(names: Sequence[str], ts: int, ids: Sequence[str] = ()) -> OutboxEntry:
    """A request to delete records; `ids` are those of versions of the first."""
    gone = [Deletion(APP, address(name), tuple(ids) if name == names[0] else ()) for name in names]
    return OutboxEntry(CODEC.deletion(gone, ts), "")


def ids(outbox: Outbox, unit: str = UNIT) -> set[str]:
    """The ids of all that is published of a unit."""
    return {row.event_id for row in outbox.known(unit).values()}


def deletions(outbox: Outbox, unit: str = UNIT) -> set[str]:
    return {row.event_id for row in outbox.known(unit).values() if row.kind == DELETE}


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Outbox]:
    """An outbox as a process that has just started finds it."""
    outbox = Outbox(path, clock=now_ms)
    outbox.open()
    try:
        yield outbox
    finally:
        outbox.close()


@contextlib.contextmanager
def full(outbox: Outbox) -> Iterator[None]:
    """The outbox's file does not grow while this is open."""
    with outbox.reading() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        with outbox.reading() as db:
            db.execute("PRAGMA max_page_count = 1000000")
