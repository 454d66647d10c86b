"""The outbox: the newest signed event at every address, and which relays have it. One SQLite file.

An event is signed once and never again: a relay that is added later, or has lost everything, gets exactly the
same events. An event exists once its transaction is durable (WAL, synchronous FULL) and not before, so a
killed process neither loses a version nor signs a second one. The lock of the data folder
(`memory/subjects/store`) keeps other programs out; they may read (`Outbox.reading`).

One connection, one lock; everything here blocks. Knows nothing about connections to relays, nor what events
mean. A failing disk is a MemoryFault, after which nothing is half done.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.nostr.event import Event
from discoclaw.nostr.names import INVENTORY, LEDGER
from discoclaw.nostr.outgoing import outbox_rows as rows
from discoclaw.nostr.outgoing.outbox_rows import SCHEMA, VERSION, OutboxEntry, Row
from discoclaw.nostr.schemas import DELETE
from discoclaw.store.database import (
    FAULTS,
    Database,
    check_ours,
    checkpoint,
    connect,
    explained,
    is_damage,
    look,
    make_tables,
    set_aside,
    transaction,
)
from discoclaw.store.files import stamp_of

log = logging.getLogger(__name__)

__all__ = ["Outbox", "OutboxEntry", "QueueStatus", "Row", "OutboxStatus", "DeliveryProgress", "UnitInventory"]

MAX_REASONS: Final = 20
"""Different reasons reported for one relay, the most frequent ones: a relay can invent any number."""
MAX_REASON_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The events that a relay lacks. `depth` of them wait; the oldest was signed at `since` (ms since 1970).

    `parked` has the relay's reasons for permanent refusals and how often, most frequent first.
    """

    depth: int
    since: int | None
    parked: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class OutboxStatus:
    """The number of all events, and the queue of each relay by its URL."""

    events: int
    relays: Mapping[str, QueueStatus]


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """How many events there are, how many all relays have, and how many `min_acks` relays have."""

    events: int
    everywhere: int
    enough: int

    @property
    def safe(self) -> bool:
        """Whether enough relays have every event."""
        return self.enough == self.events


@dataclass(frozen=True, slots=True)
class UnitInventory:
    """The published part of a unit: how many ledger records, and the newest time (s) of its views, or 0.

    `digest` is the SHA-256 of the records' sorted `d`, each followed by a newline.
    """

    records: int
    digest: str
    newest: int


class Outbox:
    """The outbox at `path`, usually data/memory/outbox/outbox.sqlite.

    `unit` is always a unit's keyed hash.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._file = OutboxFile(path, clock=clock)
        self._served: dict[str, int] = {}
        """The relays that are delivered to, by URL, with their number."""

    def open(self) -> None:
        """Open or create the file. A damaged one is set aside, and a new one begun. Raises MemoryFault."""
        self._file.open()

    @classmethod
    def reading(cls, path: Path) -> "Outbox":
        """An open outbox that is only read, even while a bot uses it. Close it. Raises MemoryFault."""
        outbox = cls(path, clock=lambda: 0)
        outbox._file.open_to_read()
        return outbox

    def close(self) -> None:
        """Close the file."""
        self._served.clear()
        self._file.close()

    # ------------------------------------------------------------------ what is published

    def known(self, unit: str) -> dict[tuple[int, str], Row]:
        """All rows of a unit, by kind and `d`; deletion requests by kind and id. Raises MemoryFault."""
        with self._file.reading() as db:
            return {(row.kind, row.d): row for row in rows.rows_of(db, unit)}

    def latest(self, kind: int, d: str) -> Row | None:
        """The newest version at an address. The next has to be later. Raises MemoryFault."""
        with self._file.reading() as db:
            return rows.row_of(db, kind, d)

    def put(self, unit: str, entries: Sequence[OutboxEntry], *, cursor: int | None = None) -> None:
        """Store signed events, each in place of the older version at its address: all of them, or none.

        They wait for every relay. `cursor` is how many bytes of the unit's ledger are published now.
        Storing an event again changes nothing. Raises MemoryFault, and NostrError for an event that isn't
        newer than the one it replaces.
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
        found: Mapping[str, Sequence[tuple[Event, str]]],
        relays: Mapping[str, Collection[str]],
        *,
        tombstones: Collection[str] = (),
    ) -> None:
        """Store events of ours found on relays unless we have a newer version: all of them, or none.

        `found` has them by unit, each with its digest. `relays` has, by event id, the relays that have the
        event. `tombstones` are ids too. Raises MemoryFault.
        """
        now, urls = self._clock(), {url for has in relays.values() for url in has}
        with self._file.writing() as db:
            numbers = {url: rows.relay_id(db, url) for url in urls}
            for unit, events in found.items():
                for event, digest in events:
                    entry = OutboxEntry(event, digest, tombstone=event.id in tombstones)
                    rows.adopt(db, unit, entry, [numbers[url] for url in relays.get(event.id, ())], now)

    def versions(self, kind: int, d: str) -> list[str]:
        """The ids of all versions ever signed for an address, oldest first. Raises MemoryFault."""
        with self._file.reading() as db:
            return [event_id for (event_id,) in db.execute(rows.VERSIONS, (kind, d))]

    def units(self) -> list[str]:
        """The hashes of all units that have anything here. Raises MemoryFault."""
        with self._file.reading() as db:
            return [unit for (unit,) in db.execute(rows.UNITS)]

    def tombstones(self) -> list[Event]:
        """All tombstones and deletion requests. Raises MemoryFault."""
        with self._file.reading() as db:
            return [rows.event_of(text) for (text,) in db.execute(rows.GONE)]

    def erased_at(self, prefix: str) -> int | None:
        """When (s) a ledger's records were last erased on relays, given their prefix; None for never."""
        with self._file.reading() as db:
            return rows.erased_at(db, prefix)

    def plaintext_units(self) -> set[str]:
        """The hashes of all units with an unencrypted event. Raises MemoryFault."""
        with self._file.reading() as db:
            return {unit for (unit,) in db.execute(rows.PLAINTEXT_UNITS)}

    def forget(self, unit: str, *, about: Collection[str] = ()) -> None:
        """Destroy what is left of a unit, except for its tombstones and deletion requests.

        These stay for relays that don't have them yet, and so that any later version is newer. `about` are
        pseudonyms: quarantined events at an address with one of them are destroyed too. Raises MemoryFault
        when bytes may be left; then call it again.
        """
        with self._file.writing() as db:
            rows.forget(db, unit, about)
        # Outside of the transaction: VACUUM cannot run inside one.
        self._file.destroy()

    def inventory(self, shard: str = "") -> dict[str, UnitInventory]:
        """The inventory of each unit whose hash begins with `shard`. Raises MemoryFault."""
        found: dict[str, tuple[list[str], int]] = {}
        with self._file.reading() as db:
            for unit, kind, d, ts in db.execute(rows.INDEX, (shard, f"{shard}\U0010ffff")):
                records, newest = found.get(unit, ([], 0))
                if d.startswith(LEDGER):
                    records.append(d)
                elif kind != DELETE and not d.startswith(INVENTORY):
                    newest = max(newest, ts)
                else:
                    continue
                found[unit] = records, newest
        return {unit: _indexed(records, newest) for unit, (records, newest) in found.items()}

    # ------------------------------------------------------------------ delivery

    def set_relays(self, relays: Collection[str]) -> None:
        """Deliver to these relays (URLs) and to no others: what each lacks waits for it. Raises MemoryFault.

        What failed before is due now. What other relays acknowledged is remembered in case they come back.
        """
        with self._file.writing() as db:
            served = {url: rows.serve(db, url) for url in relays}
            rows.leave_all_but(db, set(served.values()))
        self._served = served

    def due(self, relay: str, now_ms: int, limit: int) -> list[Event]:
        """The events to send to a relay now, those never tried first, oldest first. Raises MemoryFault.

        A deletion request isn't due while a newer version of something it deletes waits.
        """
        number = self._serve(relay)
        with self._file.reading() as db:
            return [rows.event_of(text) for (text,) in db.execute(rows.DUE, (number, now_ms, limit))]

    def next_due(self, relay: str, now_ms: int) -> int | None:
        """When (ms) the next postponed event is due; None if there is none. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.reading() as db:
            (at_ms,) = db.execute(rows.NEXT, (number, now_ms)).fetchone()
        return at_ms if at_ms is None else int(at_ms)

    def has_waiting(self, relay: str) -> bool:
        """Whether anything waits for a relay, due or postponed. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.reading() as db:
            return db.execute(rows.WAITS, (number,)).fetchone() is not None

    def mark_acked(self, relay: str, ids: Collection[str]) -> None:
        """Record that a relay has these events. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            for event_id in ids:
                rows.settle(db, number, event_id, rows.ACKED)

    def park(self, relay: str, event_id: str, reason: str) -> None:
        """Record that a relay refuses an event for good; only `unpark` tries it again. Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            rows.settle(db, number, event_id, rows.PARKED, reason[:MAX_REASON_CHARS])

    def postpone(self, relay: str, event_id: str, at_ms: int, reason: str) -> None:
        """Record that an event failed and is due again at a time (ms). Raises MemoryFault."""
        number = self._serve(relay)
        with self._file.writing() as db:
            rows.postpone(db, number, event_id, at_ms, reason[:MAX_REASON_CHARS])

    def unpark(self, relay: str | None = None) -> int:
        """Make what a relay refused, or all relays did, due again. Returns how many. Raises MemoryFault."""
        sql = f"UPDATE deliveries SET state = {rows.WAITING}, not_before = 0 WHERE state = {rows.PARKED}"
        with self._file.writing() as db:
            if relay is None:
                return db.execute(sql).rowcount
            found = rows.known_relay(db, relay)
            return db.execute(f"{sql} AND relay = ?", (found[0],)).rowcount if found is not None else 0

    def requeue_missing(self, relay: str, there: Collection[str]) -> int:
        """Make due again what a relay acknowledged and has lost; `there` are the ids of all events it has.

        Returns how many. Raises MemoryFault.
        """
        number = self._serve(relay)
        with self._file.writing() as db:
            again = rows.lost(db, number, there)
            sql = f"UPDATE deliveries SET state = {rows.WAITING}, not_before = 0 WHERE seq = ? AND relay = ?"
            db.executemany(sql, [(seq, number) for seq in again])
        return len(again)

    def status(self, relays: Collection[str]) -> OutboxStatus:
        """The queue of each of these relays. Raises MemoryFault."""
        with self._file.reading() as db:
            (events,) = db.execute(rows.TOTAL).fetchone()
            queues = {url: rows.queue(db, url, MAX_REASONS) for url in relays}
        return OutboxStatus(
            events,
            {url: QueueStatus(depth, since, tuple(parked)) for url, (depth, since, parked) in queues.items()},
        )

    def progress(self, relays: Collection[str], *, min_acks: int) -> DeliveryProgress:
        """How far the delivery to these relays is. Raises MemoryFault."""
        with self._file.reading() as db:
            (events,) = db.execute(rows.TOTAL).fetchone()
            short = rows.shortfalls(db, relays)
        few = sum(count for lacking, count in short.items() if len(relays) - lacking < min_acks)
        return DeliveryProgress(events, everywhere=events - sum(short.values()), enough=events - few)

    # ------------------------------------------------------------------ quarantine and notes

    def quarantine(self, event: Event, reason: str) -> None:
        """Keep an event of ours that can't be read; of many the 1,000 newest. Raises MemoryFault."""
        with self._file.writing() as db:
            rows.quarantine(db, event, reason[:MAX_REASON_CHARS], self._clock())

    def quarantined(self) -> int:
        """How many events are in quarantine. Raises MemoryFault."""
        with self._file.reading() as db:
            return int(db.execute("SELECT count(*) FROM quarantine").fetchone()[0])

    def meta(self, key: str) -> str | None:
        """The note with this name; None if there is none. Raises MemoryFault."""
        with self._file.reading() as db:
            found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found is not None else None

    def set_meta(self, key: str, value: str) -> None:
        """Store a note. Raises MemoryFault."""
        sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        with self._file.writing() as db:
            db.execute(sql, (key, value))

    # ------------------------------------------------------------------ inside

    def _serve(self, relay: str) -> int:
        """A relay's number. From now on events are delivered to it."""
        number = self._served.get(relay)
        if number is None:
            with self._file.writing() as db:
                number = self._served[relay] = rows.serve(db, relay)
        return number


def _indexed(records: Sequence[str], newest: int) -> UnitInventory:
    """The inventory of a unit with these record addresses."""
    digest = hashlib.sha256("".join(f"{d}\n" for d in sorted(records)).encode("utf-8")).hexdigest()
    return UnitInventory(len(records), digest, newest)


# ---------------------------------------------------------------------- the file

CACHE_KIB = 8_000
"""Memory for cached pages."""
_DAMAGED = "it is damaged; the next start sets it aside and begins a new one"


class OutboxFile:
    """The file at `path`. One thread uses it at a time; the others wait."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._database = Database(self._opened, discard=self._set_aside)

    def open(self) -> None:
        """Open or create the file. A damaged one is set aside, and a new one begun. Raises MemoryFault."""
        with self._faults():
            self._database.run(lambda db: None)

    def open_to_read(self) -> None:
        """Open the file without ever changing it, even while another program uses it. Raises MemoryFault."""
        with self._faults():
            if not self.path.exists():
                raise FileNotFoundError("it doesn't exist: nothing was ever mirrored")
            self._database = Database(self._looked_at)
            self._database.open()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, exclusively for this thread. Raises MemoryFault."""
        with self._database.lock, self._faults():
            if not self._database.is_open:
                raise OSError("it is not open")
            yield self._database.open()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection, in a transaction: afterwards all of it is durable, or nothing. See `reading`."""
        with self.reading() as db, transaction(db):
            yield db

    def destroy(self) -> None:
        """Destroy every byte of what was deleted. Raises MemoryFault when some may be left.

        SQLite overwrites deleted rows in place, but leaves copies where it once moved them, so the file is
        rewritten. That needs disk space for a second copy. Damaged files that were set aside are deleted,
        because nobody can tell what they contain.
        """
        with self.reading() as db:
            db.execute("VACUUM")
            if not checkpoint(db):
                raise OSError("another program is reading it, so its log cannot be emptied; try again")
            for copy in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                copy.unlink(missing_ok=True)

    # ------------------------------------------------------------------ inside

    def _opened(self) -> sqlite3.Connection:
        return connect(self.path, check=self._check, prepare=_prepare, durable=True, cache_kib=CACHE_KIB)

    def _looked_at(self) -> sqlite3.Connection:
        return look(self.path, check=self._check)

    def _check(self, db: sqlite3.Connection) -> None:
        check_ours(db, VERSION, "the outbox")

    def _set_aside(self, error: Exception) -> None:
        """Rename a damaged file, so that it can be inspected. Raises OSError."""
        aside = set_aside(self.path, stamp_of(self._clock()))
        log.error(
            "%s is damaged (%s); it is now %s, and a new one is begun. Run `discoclaw nostr recover` to "
            "find out what relays have, then `discoclaw nostr push` to send them the rest",
            self.path,
            error,
            aside.name,
        )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (*FAULTS, OSError) as error:
            why = f"{_DAMAGED} ({error})" if is_damage(error) else explained(error)
            raise MemoryFault(f"cannot use the outbox {self.path}: {why}") from error


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new file; raise for a damaged one."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    make_tables(db, SCHEMA, VERSION)
