"""The outbox: the newest signed event of every address, and which relay has it. One SQLite file.

What is in here was signed once and is never signed again: a relay that comes late, or lost everything, gets
the very same events. An event exists from the moment its transaction is durable (WAL, synchronous FULL), and
before that nothing does, so a process that is killed neither loses a version nor makes a second one of it.
The folder's lock (`memory/store`) keeps other programs out; they may read (`reading`).

One connection, one lock; everything here blocks. Knows nothing about connections to relays, nor what events
mean. Faults of the disk are `MemoryFault`; nothing is then half done.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from discoclaw.core.ports import Clock
from discoclaw.nostr.event import Event
from discoclaw.nostr.names import INDEX, LEDGER
from discoclaw.nostr.outgoing import outbox_rows as rows
from discoclaw.nostr.outgoing.outbox_file import OutboxFile
from discoclaw.nostr.outgoing.outbox_rows import Put, Row
from discoclaw.nostr.schemas import DELETE

__all__ = ["Outbox", "Put", "Queue", "Row", "Status", "Tally", "UnitIndex"]

MOST_REASONS: Final = 20
"""Reasons that are told of one relay, the most frequent ones: the words are the relay's own."""
REASON_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Queue:
    """What a relay has not got. `since`: when (ms since 1970) the oldest that waits was signed.

    `parked`: why the relay refused events, and how many, most frequent first.
    """

    depth: int
    since: int | None
    parked: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Status:
    """All events there are, and what is left to do for each relay, by its address."""

    events: int
    relays: Mapping[str, Queue]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many events there are, how many every relay has, and how many as many relays as are wanted."""

    events: int
    everywhere: int
    enough: int

    @property
    def safe(self) -> bool:
        """Whether every event is where it has to be."""
        return self.enough == self.events


@dataclass(frozen=True, slots=True)
class UnitIndex:
    """What is published of a unit: how many records of its ledger, the SHA-256 of their sorted `d`, each
    followed by a newline, and the newest time (s) of its views (0: none)."""

    records: int
    digest: str
    newest: int


class Outbox:
    """The outbox at `path`, usually data/memory/outbox/outbox.sqlite. `unit` is always a unit's mark."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._file = OutboxFile(path, clock=clock)
        self._served: dict[str, int] = {}
        """The relays for which everything waits that they have not got."""

    def open(self) -> None:
        """Take the file, or make it. A damaged one is kept aside, and a new one begun. Raises MemoryFault."""
        self._file.open()

    @classmethod
    def reading(cls, path: Path) -> "Outbox":
        """An outbox that is only looked at, while a bot may be using it. To be closed. Raises MemoryFault."""
        outbox = cls(path, clock=lambda: 0)
        outbox._file.open_to_read()
        return outbox

    def close(self) -> None:
        """Let go of the file."""
        self._served.clear()
        self._file.close()

    # ------------------------------------------------------------------ what is published

    def known(self, unit: str) -> dict[tuple[int, str], Row]:
        """Every address of a unit, by kind and `d`; of a request to delete by its id. Raises MemoryFault."""
        with self._file.reading() as db:
            return {(row.kind, row.d): row for row in rows.rows_of(db, unit)}

    def latest(self, kind: int, d: str) -> Row | None:
        """What stands under an address. Raises MemoryFault."""
        with self._file.reading() as db:
            return rows.row_of(db, kind, d)

    def last_ts(self, kind: int, d: str) -> int:
        """The time (s) of the last version of an address, above which the next has to be; 0: none was."""
        row = self.latest(kind, d)
        return row.ts if row is not None else 0

    def put(self, unit: str, entries: Sequence[Put], *, cursor: int | None = None) -> None:
        """Keep signed events, each in place of the older version of its address: all of them, or none.

        They wait for every relay. `cursor`: so many bytes of the unit's ledger are published now. An event
        that is there changes nothing. Raises MemoryFault, and NostrError for one not newer than what it
        replaces.
        """
        now = self._clock()
        with self._file.writing() as db:
            for entry in entries:
                rows.put(db, unit, entry, now)
            if cursor is not None:
                sql = """INSERT INTO units (unit, cursor) VALUES (?, ?)
                    ON CONFLICT (unit) DO UPDATE SET cursor = excluded.cursor"""
                db.execute(sql, (unit, cursor))

    def cursor(self, unit: str) -> int:
        """How many bytes of the unit's ledger are published. Raises MemoryFault."""
        with self._file.reading() as db:
            found = db.execute("SELECT cursor FROM units WHERE unit = ?", (unit,)).fetchone()
        return int(found[0]) if found is not None else 0

    def adopt(
        self,
        unit: str,
        found: Sequence[tuple[Event, str]],
        relays: Mapping[str, Collection[str]],
        *,
        gone: Collection[str] = (),
    ) -> None:
        """Keep events of ours that came from relays, each with its digest, unless we have something newer.

        `relays`: by an event's id, the relays that have it. `gone`: ids of those that say nothing but that
        something is gone. Raises MemoryFault.
        """
        now, urls = self._clock(), {url for has in relays.values() for url in has}
        with self._file.writing() as db:
            numbers = {url: rows.relay_id(db, url) for url in urls}
            for event, digest in found:
                entry = Put(event, digest, gone=event.id in gone)
                rows.adopt(db, unit, entry, [numbers[url] for url in relays.get(event.id, ())], now)

    def versions(self, kind: int, d: str) -> list[str]:
        """The ids of every version of an address, oldest first. Raises MemoryFault."""
        with self._file.reading() as db:
            sql = "SELECT event_id FROM versions WHERE kind = ? AND d = ? ORDER BY ts, event_id"
            return [event_id for (event_id,) in db.execute(sql, (kind, d))]

    def units(self) -> list[str]:
        """The marks of all units of which there is anything. Raises MemoryFault."""
        with self._file.reading() as db:
            sql = "SELECT unit FROM units UNION SELECT DISTINCT unit FROM events ORDER BY unit"
            return [unit for (unit,) in db.execute(sql)]

    def gone(self) -> list[Event]:
        """All tombstones and requests to delete. Raises MemoryFault."""
        with self._file.reading() as db:
            return [rows.event_of(text) for (text,) in db.execute(rows.GONE)]

    def in_clear(self) -> set[str]:
        """The marks of all units of which something is not encrypted. Raises MemoryFault."""
        with self._file.reading() as db:
            return {unit for (unit,) in db.execute(rows.IN_CLEAR)}

    def forget(self, unit: str, *, about: Collection[str] = ()) -> None:
        """Destroy what is left of a unit once its tombstones and requests to delete are in here.

        Those stay, for relays that have yet to get them, and so that whatever comes later is newer. `about`:
        pseudonyms; what is in quarantine at an address with one of them goes too. Raises MemoryFault when
        bytes may be left; again is then fine.
        """
        with self._file.writing() as db:
            rows.forget(db, unit, about)
        self._file.destroy()

    def index(self, shard: str = "") -> dict[str, UnitIndex]:
        """What is published of each unit whose mark begins so. Raises MemoryFault."""
        found: dict[str, tuple[list[str], int]] = {}
        with self._file.reading() as db:
            for unit, kind, d, ts in db.execute(rows.INDEX, (shard, f"{shard}\U0010ffff")):
                records, newest = found.get(unit, ([], 0))
                if d.startswith(LEDGER):
                    records.append(d)
                elif kind != DELETE and not d.startswith(INDEX):
                    newest = max(newest, ts)
                else:
                    continue
                found[unit] = records, newest
        return {unit: _indexed(records, newest) for unit, (records, newest) in found.items()}

    # ------------------------------------------------------------------ delivery

    def enrol(self, relays: Collection[str]) -> None:
        """Deliver to these relays, and to no others: what each has not got waits. Raises MemoryFault.

        What failed before is due at once. Others keep what they acknowledged, should they come back.
        """
        with self._file.writing() as db:
            served = {url: rows.serve(db, url) for url in relays}
            rows.leave_all_but(db, set(served.values()))
        self._served = served

    def due(self, relay: str, now_ms: int, limit: int) -> list[Event]:
        """What a relay is to get now: first what was never tried, oldest first. Raises MemoryFault.

        A request to delete is not due while a newer version of something it deletes waits.
        """
        number = self._serve(relay)
        with self._file.reading() as db:
            return [rows.event_of(text) for (text,) in db.execute(rows.DUE, (number, now_ms, limit))]

    def next_due(self, relay: str, now_ms: int) -> int | None:
        """When (ms) the next event comes due that was postponed; None without one. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.reading() as db:
            (at_ms,) = db.execute(rows.NEXT, (number, now_ms)).fetchone()
        return at_ms if at_ms is None else int(at_ms)

    def waits(self, relay: str) -> bool:
        """Whether anything waits for a relay, due or not. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.reading() as db:
            return db.execute(rows.WAITS, (number,)).fetchone() is not None

    def acked(self, relay: str, ids: Collection[str]) -> None:
        """A relay has these events. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            for event_id in ids:
                rows.settle(db, number, event_id, rows.ACKED)

    def parked(self, relay: str, event_id: str, reason: str) -> None:
        """A relay does not want an event; it is tried again only by `unpark`. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            rows.settle(db, number, event_id, rows.PARKED, reason[:REASON_CHARS])

    def later(self, relay: str, event_id: str, at_ms: int, reason: str) -> None:
        """An event did not go through; it is tried again from a time (ms) on. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            rows.postpone(db, number, event_id, at_ms, reason[:REASON_CHARS])

    def unpark(self, relay: str | None = None) -> int:
        """Try again what a relay refused, or all of them. Returns how many. Raises MemoryFault."""
        sql = f"UPDATE deliveries SET state = {rows.WAITING}, not_before = 0 WHERE state = {rows.PARKED}"
        with self._file.writing() as db:
            if relay is None:
                return db.execute(sql).rowcount
            found = rows.known_relay(db, relay)
            return db.execute(f"{sql} AND relay = ?", (found[0],)).rowcount if found is not None else 0

    def missing(self, relay: str, there: Collection[str]) -> int:
        """Have a relay get again what it acknowledged and has no more; `there`: the ids of all it has.

        Returns how many events. Raises MemoryFault.
        """
        number = self._serve(relay)
        with self._file.writing() as db:
            again = rows.lost(db, number, there)
            sql = f"UPDATE deliveries SET state = {rows.WAITING}, not_before = 0 WHERE seq = ? AND relay = ?"
            db.executemany(sql, [(seq, number) for seq in again])
        return len(again)

    def status(self, relays: Collection[str]) -> Status:
        """What is left to do for each of these relays. Raises MemoryFault."""
        with self._file.reading() as db:
            (events,) = db.execute(rows.TOTAL).fetchone()
            queues = {url: rows.queue(db, url, MOST_REASONS) for url in relays}
        return Status(
            events,
            {url: Queue(depth, since, tuple(parked)) for url, (depth, since, parked) in queues.items()},
        )

    def tally(self, relays: Collection[str], *, min_acks: int) -> Tally:
        """How far everything is delivered to these relays. Raises MemoryFault."""
        with self._file.reading() as db:
            (events,) = db.execute(rows.TOTAL).fetchone()
            short = rows.shortfalls(db, relays)
        few = sum(count for lacking, count in short.items() if len(relays) - lacking < min_acks)
        return Tally(events, everywhere=events - sum(short.values()), enough=events - few)

    # ------------------------------------------------------------------ beside it

    def quarantine(self, event: Event, reason: str) -> None:
        """Keep an event of ours that can not be read; of many the 1,000 newest. Raises MemoryFault."""
        with self._file.writing() as db:
            rows.quarantine(db, event, reason[:REASON_CHARS], self._clock())

    def quarantined(self) -> int:
        """How many events are in quarantine. Raises MemoryFault."""
        with self._file.reading() as db:
            return int(db.execute("SELECT count(*) FROM quarantine").fetchone()[0])

    def meta(self, key: str) -> str | None:
        """A note. Raises MemoryFault."""
        with self._file.reading() as db:
            found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found is not None else None

    def set_meta(self, key: str, value: str) -> None:
        """Keep a note. Raises MemoryFault."""
        sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        with self._file.writing() as db:
            db.execute(sql, (key, value))

    # ------------------------------------------------------------------ inside

    def _serve(self, relay: str) -> int:
        """A relay's number; from now on everything waits for it."""
        number = self._served.get(relay)
        if number is None:
            with self._file.writing() as db:
                number = self._served[relay] = rows.serve(db, relay)
        return number


def _indexed(records: Sequence[str], newest: int) -> UnitIndex:
    """`records` are in order."""
    digest = hashlib.sha256("".join(f"{d}\n" for d in sorted(records)).encode("utf-8")).hexdigest()
    return UnitIndex(len(records), digest, newest)
