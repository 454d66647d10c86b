"""The outbox: the newest signed event at every address, and which relays have it. One SQLite file.

An event is signed once and never again: a relay that is added later, or has lost everything, gets exactly the
same events. An event exists once its transaction is durable (WAL, synchronous FULL) and not before, so a
killed process neither loses a version nor signs a second one. The lock of the data folder
(`memory/subjects/store`) keeps other programs out; they may read (`Outbox.to_read`). The tables:

    events      the newest signed event of each address (kind, d); a deletion request's address is its id
    versions    the ids of all versions that were ever signed for an address
    deletes     which addresses a deletion request is about
    relays      the relays that events are delivered to (`served`), or were
    deliveries  the state of an event at a relay: waiting, acknowledged or parked
    units       how much of a unit's ledger (bytes) is mirrored
    quarantine  events of ours from relays that cannot be read
    meta        small notes by name

Everything in here is public or encrypted: pseudonyms, signatures, ciphertext. `unit` is a keyed hash. One
connection, one lock; everything here blocks. Knows nothing about connections to relays, nor what events mean.
A failing disk is a MemoryFault, after which nothing is half done.
"""

import json
import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, NostrError
from discoclaw.core.ports import Clock
from discoclaw.nostr.event import Event, sha256
from discoclaw.nostr.schemas import APP, DELETE, INVENTORY, KIND_NAMES, LEDGER, deleted_until
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

VERSION: Final = 1
WAITING, ACKED, PARKED = 0, 1, 2
MAX_QUARANTINED: Final = 1_000
MAX_FORMER_RELAYS: Final = 8
"""Former relays for which we remember what they have, in case they are configured again."""

SCHEMA: Final = (
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, unit TEXT NOT NULL, kind INTEGER NOT NULL, d TEXT NOT NULL,
        ts INTEGER NOT NULL, event_id TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, gone INTEGER NOT NULL,
        added_ms INTEGER NOT NULL, event TEXT NOT NULL, UNIQUE (kind, d))""",
    "CREATE INDEX events_by_unit ON events (unit, kind, d, gone, ts)",
    "CREATE INDEX events_gone ON events (gone)",  # also the narrowest index, so count(*) uses it
    """CREATE TABLE versions (
        kind INTEGER NOT NULL, d TEXT NOT NULL, ts INTEGER NOT NULL, event_id TEXT NOT NULL,
        PRIMARY KEY (kind, d, ts, event_id)) WITHOUT ROWID""",
    """CREATE TABLE deletes (
        deletion INTEGER NOT NULL, kind INTEGER NOT NULL, d TEXT NOT NULL,
        PRIMARY KEY (deletion, kind, d)) WITHOUT ROWID""",
    "CREATE TABLE relays (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, served INTEGER NOT NULL)",
    """CREATE TABLE deliveries (
        seq INTEGER NOT NULL, relay INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
        not_before INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '', PRIMARY KEY (seq, relay)) WITHOUT ROWID""",
    # `state` is a column of these indexes so that they cover the queries: no row has to be read for it.
    "CREATE INDEX waiting ON deliveries (relay, state, not_before, seq) WHERE state = 0",
    "CREATE INDEX parked ON deliveries (relay, state, reason, seq) WHERE state = 2",
    "CREATE TABLE units (unit TEXT PRIMARY KEY NOT NULL, cursor INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE quarantine (
        id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL,
        d TEXT NOT NULL, reason TEXT NOT NULL, at_ms INTEGER NOT NULL, event TEXT NOT NULL)""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID",
)

DUE: Final = f"""
    SELECT e.event FROM deliveries AS w CROSS JOIN events AS e ON e.seq = w.seq
    WHERE w.relay = ? AND w.state = {WAITING} AND w.not_before <= ?
        AND (e.kind <> {DELETE} OR NOT EXISTS (
            SELECT 1 FROM deletes AS x CROSS JOIN events AS t ON t.kind = x.kind AND t.d = x.d
                CROSS JOIN deliveries AS h ON h.seq = t.seq AND h.relay = w.relay
            WHERE x.deletion = w.seq AND h.state = {WAITING}))
    ORDER BY w.not_before, w.seq LIMIT ?"""
"""Events that were never tried come first, oldest first, then those to try again, by time.

A deletion request waits for the versions that replace what it deletes: a relay that ignores the request has
replaced the content at least."""
NEXT: Final = f"""
    SELECT min(not_before) FROM deliveries WHERE relay = ? AND state = {WAITING} AND not_before > ?"""
WAITS: Final = f"SELECT 1 FROM deliveries WHERE relay = ? AND state = {WAITING} LIMIT 1"
DEPTH: Final = f"SELECT count(*), min(seq) FROM deliveries WHERE relay = ? AND state = {WAITING}"
DEPTH_OF_OTHERS: Final = """
    SELECT count(*), min(seq) FROM events AS e
    WHERE NOT EXISTS (SELECT 1 FROM deliveries AS h WHERE h.seq = e.seq AND h.relay = ?)"""
"""For a relay that is not served: it has no waiting rows, so whatever it has no row for counts."""
_LACKING = f"""SELECT seq FROM deliveries WHERE relay = ? AND state = {WAITING}
    UNION ALL SELECT seq FROM deliveries WHERE relay = ? AND state = {PARKED}"""
_LACKING_OF_OTHERS = f"""SELECT seq FROM events AS e WHERE NOT EXISTS (
    SELECT 1 FROM deliveries AS h WHERE h.seq = e.seq AND h.relay = ? AND h.state = {ACKED})"""
REASONS: Final = f"""
    SELECT reason, count(*) FROM deliveries WHERE relay = ? AND state = {PARKED}
    GROUP BY reason ORDER BY count(*) DESC, reason LIMIT ?"""
GONE: Final = f"SELECT event FROM events WHERE gone UNION ALL SELECT event FROM events WHERE kind = {DELETE}"
VERSIONS: Final = "SELECT event_id FROM versions WHERE kind = ? AND d = ? ORDER BY ts, event_id"
UNITS: Final = "SELECT unit FROM units UNION SELECT DISTINCT unit FROM events ORDER BY unit"
# A record that is withheld now is replaced, and so are the parts of a large one: neither was erased.
ERASED_AT: Final = f"""
    SELECT max(ts) FROM (
        SELECT ts, d FROM events WHERE gone AND kind = {APP}
        UNION ALL
        SELECT e.ts, x.d FROM deletes AS x JOIN events AS e ON e.seq = x.deletion WHERE x.kind = {APP}) AS x
    WHERE substr(d, 1, length(:prefix)) = :prefix AND instr(substr(d, length(:prefix) + 1), ':') = 0
        AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.kind = {APP} AND e.d = x.d AND NOT e.gone)"""
TOTAL: Final = "SELECT count(*) FROM events"
INDEX: Final = "SELECT unit, kind, d, ts FROM events INDEXED BY events_by_unit WHERE NOT gone"


# Quotes inside an event's content are escaped with backslashes, so this can only match a tag.
_IS_PLAINTEXT = f"""CASE WHEN kind BETWEEN {min(KIND_NAMES)} AND {max(KIND_NAMES)}
    THEN instr(event, '["enc",') = 0 ELSE 0 END"""
_ROW = f"SELECT kind, d, ts, digest, event_id, gone, {_IS_PLAINTEXT} FROM events"
PLAINTEXT_UNITS: Final = (
    f"SELECT DISTINCT unit FROM events WHERE kind >= {min(KIND_NAMES)} AND {_IS_PLAINTEXT}"
)


@dataclass(frozen=True, slots=True)
class Row:
    """The newest version at an address. `ts` is its time (s), `plaintext` says that it isn't encrypted."""

    kind: int
    d: str
    ts: int
    digest: str
    event_id: str
    tombstone: bool
    plaintext: bool = False


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A signed event to store and deliver. `digest` is its template's."""

    event: Event
    digest: str
    tombstone: bool = False

    @property
    def address(self) -> tuple[int, str]:
        """Kind and `d`; for a deletion request kind and id, because it replaces no other one."""
        return self.event.kind, self.event.id if self.event.kind == DELETE else self.event.d


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
    """A unit as it is published: how many ledger records, and the newest time (s) of its views, or 0.

    `digest` is the SHA-256 of the records' sorted `d`, each followed by a newline.
    """

    records: int
    digest: str
    newest: int


def inventory_of(rows: Iterable[tuple[str, int, str, int]]) -> dict[str, UnitInventory]:
    """The inventory of each unit, given unit, kind, `d` and time (s) of its events."""
    found: dict[str, tuple[list[str], int]] = {}
    for unit, kind, d, ts in rows:
        records, newest = found.get(unit, ([], 0))
        if d.startswith(LEDGER):
            records.append(d)
        elif kind != DELETE and not d.startswith(INVENTORY):
            newest = max(newest, ts)
        else:
            continue
        found[unit] = records, newest
    return {
        unit: UnitInventory(len(records), sha256("".join(f"{d}\n" for d in sorted(records))), newest)
        for unit, (records, newest) in found.items()
    }


CACHE_KIB = 8_000
"""Memory for cached pages."""


class Outbox:
    """The outbox at `path`, usually data/memory/outbox/outbox.sqlite. One thread uses it at a time.

    `unit` is always a unit's keyed hash.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._database = Database(
            lambda: connect(path, check=_check, prepare=_prepare, durable=True, cache_kib=CACHE_KIB),
            discard=self._set_aside,
        )
        self._served: dict[str, int] = {}
        """The relays that are delivered to, by URL, with their number."""

    def open(self) -> None:
        """Open or create the file. A damaged one is set aside, and a new one begun. Raises MemoryFault."""
        with self._faults():
            self._database.run(lambda db: None)

    @classmethod
    def to_read(cls, path: Path, *, tidy: bool = False) -> "Outbox":
        """An open outbox that is never changed, even while a bot uses it. Close it. Raises MemoryFault.

        `tidy`: this process has locked the data folder, so closing may remove the files beside the outbox.
        """
        outbox = cls(path, clock=lambda: 0)
        with outbox._faults():
            if not path.exists():
                raise FileNotFoundError("it doesn't exist: nothing was ever mirrored")
            outbox._database = Database(lambda: look(path, check=_check, tidy=tidy))
            outbox._database.open()
        return outbox

    def close(self) -> None:
        """Close the file."""
        self._served.clear()
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

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (*FAULTS, OSError) as error:
            damaged = "it is damaged; the next start sets it aside and begins a new one"
            why = f"{damaged} ({error})" if is_damage(error) else explained(error)
            raise MemoryFault(f"cannot use the outbox {self.path}: {why}") from error

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

    # ------------------------------------------------------------------ what is published

    def known(self, unit: str) -> dict[tuple[int, str], Row]:
        """All rows of a unit, by kind and `d`; deletion requests by kind and id. Raises MemoryFault."""
        with self.reading() as db:
            found = map(_row, db.execute(f"{_ROW} WHERE unit = ?", (unit,)))
            return {(row.kind, row.d): row for row in found}

    def latest(self, kind: int, d: str) -> Row | None:
        """The newest version at an address. The next has to be later. Raises MemoryFault."""
        with self.reading() as db:
            return row_of(db, kind, d)

    def put(self, unit: str, entries: Sequence[OutboxEntry], *, cursor: int | None = None) -> None:
        """Store signed events, each in place of the older version at its address: all of them, or none.

        They wait for every relay. `cursor` is how many bytes of the unit's ledger are published now.
        Storing an event again changes nothing. Raises MemoryFault, and NostrError for an event that isn't
        newer than the one it replaces.
        """
        now = self._clock()
        with self.writing() as db:
            for entry in entries:
                kind, d = entry.address
                current = row_of(db, kind, d)
                if current is not None and current.event_id == entry.event.id:
                    continue
                if current is not None and current.ts >= entry.event.created_at:
                    why = f"a new version of {kind} {d} has to be later than the last one, {current.ts}"
                    raise NostrError(why)
                replace(db, unit, entry, now, current)
            if cursor is not None:
                sql = """INSERT INTO units (unit, cursor) VALUES (?, ?)
                    ON CONFLICT (unit) DO UPDATE SET cursor = excluded.cursor"""
                db.execute(sql, (unit, cursor))

    def cursor(self, unit: str) -> int:
        """How many bytes of the unit's ledger are published. Raises MemoryFault."""
        with self.reading() as db:
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
        with self.writing() as db:
            numbers = {url: relay_id(db, url) for url in urls}
            for unit, events in found.items():
                for event, digest in events:
                    entry = OutboxEntry(event, digest, tombstone=event.id in tombstones)
                    current = row_of(db, *entry.address)
                    if current and (current.ts, event.id) > (event.created_at, current.event_id):
                        add_version(db, event)
                        continue
                    if current is None or current.event_id != event.id:
                        replace(db, unit, entry, now, current)
                    for url in relays.get(event.id, ()):
                        settle(db, numbers[url], event.id, ACKED)

    def versions(self, kind: int, d: str) -> list[str]:
        """The ids of all versions ever signed for an address, oldest first. Raises MemoryFault."""
        with self.reading() as db:
            return [event_id for (event_id,) in db.execute(VERSIONS, (kind, d))]

    def units(self) -> list[str]:
        """The hashes of all units that have anything here. Raises MemoryFault."""
        with self.reading() as db:
            return [unit for (unit,) in db.execute(UNITS)]

    def tombstones(self) -> list[Event]:
        """All tombstones and deletion requests. Raises MemoryFault."""
        with self.reading() as db:
            return [event_of(text) for (text,) in db.execute(GONE)]

    def erased_at(self, prefix: str) -> int | None:
        """When (s) a ledger's records were last erased on relays, given their prefix; None for never."""
        with self.reading() as db:
            (at,) = db.execute(ERASED_AT, {"prefix": prefix}).fetchone()
        return int(at) if at is not None else None

    def plaintext_units(self) -> set[str]:
        """The hashes of all units with an unencrypted event. Raises MemoryFault."""
        with self.reading() as db:
            return {unit for (unit,) in db.execute(PLAINTEXT_UNITS)}

    def forget(self, unit: str, *, about: Collection[str] = ()) -> None:
        """Destroy what is left of a unit, except for its tombstones and deletion requests.

        These stay for relays that don't have them yet, and so that any later version is newer. `about` are
        pseudonyms: quarantined events at an address with one of them are destroyed too. Raises MemoryFault
        when bytes may be left; then call it again.
        """
        with self.writing() as db:
            of_unit = "(SELECT kind, d FROM events WHERE unit = ?)"
            db.execute(f"DELETE FROM versions WHERE (kind, d) IN {of_unit}", (unit,))
            db.execute(f"DELETE FROM quarantine WHERE (kind, d) IN {of_unit}", (unit,))
            db.executemany("DELETE FROM quarantine WHERE instr(d, ?)", [(text,) for text in about if text])
            drop(db, f"unit = ? AND NOT gone AND kind <> {DELETE}", (unit,))
            db.execute("DELETE FROM units WHERE unit = ?", (unit,))
        # SQLite overwrites deleted rows in place, but leaves copies where it once moved them, so the file is
        # rewritten, outside of the transaction. That needs disk space for a second copy. Damaged files that
        # were set aside are deleted, because nobody can tell what they contain.
        with self.reading() as db:
            db.execute("VACUUM")
            if not checkpoint(db):
                raise OSError("another program is reading it, so its log cannot be emptied; try again")
            for copy in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                copy.unlink(missing_ok=True)

    def inventory(self) -> dict[str, UnitInventory]:
        """The inventory of each unit. Raises MemoryFault."""
        with self.reading() as db:
            return inventory_of(db.execute(INDEX))

    # ------------------------------------------------------------------ delivery

    def set_relays(self, relays: Collection[str]) -> None:
        """Deliver to these relays (URLs) and to no others: what each lacks waits for it. Raises MemoryFault.

        What failed before is due now. What other relays acknowledged is remembered in case they come back.
        """
        with self.writing() as db:
            served = {url: serve(db, url) for url in relays}
            for (relay,) in db.execute("SELECT id FROM relays WHERE served").fetchall():
                if relay not in served.values():
                    db.execute("UPDATE relays SET served = 0 WHERE id = ?", (relay,))
                    db.execute(f"DELETE FROM deliveries WHERE relay = ? AND state = {WAITING}", (relay,))
            left = db.execute("SELECT id FROM relays WHERE NOT served ORDER BY id DESC").fetchall()
            for (relay,) in left[MAX_FORMER_RELAYS:]:
                db.execute("DELETE FROM deliveries WHERE relay = ?", (relay,))
                db.execute("DELETE FROM relays WHERE id = ?", (relay,))
        self._served = served

    def due(self, relay: str, now_ms: int, limit: int) -> list[Event]:
        """The events to send to a relay now, those never tried first, oldest first. Raises MemoryFault.

        A deletion request isn't due while a newer version of something it deletes waits.
        """
        number = self._serve(relay)
        with self.reading() as db:
            return [event_of(text) for (text,) in db.execute(DUE, (number, now_ms, limit))]

    def next_due(self, relay: str, now_ms: int) -> int | None:
        """When (ms) the next postponed event is due; None if there is none. Raises MemoryFault."""
        number = self._serve(relay)
        with self.reading() as db:
            (at_ms,) = db.execute(NEXT, (number, now_ms)).fetchone()
        return at_ms if at_ms is None else int(at_ms)

    def has_waiting(self, relay: str) -> bool:
        """Whether anything waits for a relay, due or postponed. Raises MemoryFault."""
        number = self._serve(relay)
        with self.reading() as db:
            return db.execute(WAITS, (number,)).fetchone() is not None

    def mark_acked(self, relay: str, ids: Collection[str]) -> None:
        """Record that a relay has these events. Raises MemoryFault."""
        number = self._serve(relay)
        with self.writing() as db:
            for event_id in ids:
                settle(db, number, event_id, ACKED)

    def park(self, relay: str, event_id: str, reason: str) -> None:
        """Record that a relay refuses an event for good; only `unpark` tries it again. Raises MemoryFault."""
        number = self._serve(relay)
        with self.writing() as db:
            settle(db, number, event_id, PARKED, reason[:MAX_REASON_CHARS])

    def postpone(self, relay: str, event_id: str, at_ms: int, reason: str) -> None:
        """Record that an event failed and is due again at a time (ms). Raises MemoryFault."""
        number = self._serve(relay)
        with self.writing() as db:
            sql = f"""UPDATE deliveries SET not_before = ?, reason = ?, tries = tries + 1
                WHERE seq = (SELECT seq FROM events WHERE event_id = ?) AND relay = ? AND state = {WAITING}"""
            db.execute(sql, (at_ms, reason[:MAX_REASON_CHARS], event_id, number))

    def unpark(self, relay: str | None = None) -> int:
        """Make what a relay refused, or all relays did, due again. Returns how many. Raises MemoryFault."""
        sql = f"UPDATE deliveries SET state = {WAITING}, not_before = 0 WHERE state = {PARKED}"
        with self.writing() as db:
            if relay is None:
                return db.execute(sql).rowcount
            found = known_relay(db, relay)
            return db.execute(f"{sql} AND relay = ?", (found[0],)).rowcount if found is not None else 0

    def requeue_missing(self, relay: str, there: Collection[str]) -> int:
        """Make due again what a relay acknowledged and has lost; `there` are the ids of all events it has.

        Tombstones and deletion requests are due again only if something that they deleted is back: a relay
        that obeyed a request has deleted the tombstone too, and may have dropped the request. Returns how
        many. Raises MemoryFault.
        """
        number = self._serve(relay)
        with self.writing() as db:
            sql = f"""SELECT e.seq, e.event_id FROM deliveries AS h JOIN events AS e ON e.seq = h.seq
                WHERE h.relay = ? AND h.state = {ACKED} AND NOT e.gone AND e.kind <> {DELETE}"""
            again = {seq for seq, event_id in db.execute(sql, (number,)) if event_id not in there}
            tombstones = {event_id for (event_id,) in db.execute("SELECT event_id FROM events WHERE gone")}
            back = set(there) - tombstones
            about = """SELECT t.seq FROM deletes AS x JOIN events AS t ON t.kind = x.kind AND t.d = x.d
                WHERE x.deletion = ? AND t.gone"""
            for seq, text in db.execute("SELECT seq, event FROM events WHERE kind = ?", (DELETE,)).fetchall():
                if back & deleted_until([event_of(text)])[1]:
                    again |= {seq, *(found for (found,) in db.execute(about, (seq,)))}
            sql = f"UPDATE deliveries SET state = {WAITING}, not_before = 0 WHERE seq = ? AND relay = ?"
            db.executemany(sql, [(seq, number) for seq in again])
        return len(again)

    def status(self, relays: Collection[str]) -> OutboxStatus:
        """The queue of each of these relays. Raises MemoryFault."""
        with self.reading() as db:
            (events,) = db.execute(TOTAL).fetchone()
            queues = {}
            for url in relays:
                relay, served = known_relay(db, url) or (0, False)
                depth, oldest = db.execute(DEPTH if served else DEPTH_OF_OTHERS, (relay,)).fetchone()
                since = db.execute("SELECT added_ms FROM events WHERE seq = ?", (oldest,)).fetchone()
                parked = db.execute(REASONS, (relay, MAX_REASONS)).fetchall()
                queues[url] = QueueStatus(depth, since[0] if since is not None else None, tuple(parked))
        return OutboxStatus(events, queues)

    def progress(self, relays: Collection[str], *, min_acks: int) -> DeliveryProgress:
        """How far the delivery to these relays is. Raises MemoryFault."""
        with self.reading() as db:
            (events,) = db.execute(TOTAL).fetchone()
            short: dict[int, int] = {}  # how many events so many relays lack, by the number of relays
            if found := [known_relay(db, url) or (0, False) for url in relays]:
                lacking = " UNION ALL ".join(
                    _LACKING if served else _LACKING_OF_OTHERS for _, served in found
                )
                values = [relay for relay, served in found for _ in range(2 if served else 1)]
                sql = f"SELECT count(*) AS short FROM ({lacking}) GROUP BY seq"
                short = dict(
                    db.execute(f"SELECT short, count(*) FROM ({sql}) GROUP BY short", values).fetchall()
                )
        few = sum(count for lacking, count in short.items() if len(relays) - lacking < min_acks)
        return DeliveryProgress(events, everywhere=events - sum(short.values()), enough=events - few)

    # ------------------------------------------------------------------ quarantine and notes

    def quarantine(self, event: Event, reason: str) -> None:
        """Keep an event of ours that can't be read; of many the 1,000 newest. Raises MemoryFault."""
        with self.writing() as db:
            sql = """INSERT OR IGNORE INTO quarantine (event_id, kind, d, reason, at_ms, event)
                VALUES (?, ?, ?, ?, ?, ?)"""
            about = (event.id, event.kind, event.d, reason[:MAX_REASON_CHARS], self._clock())
            db.execute(sql, (*about, event.encode()))
            sql = (
                "DELETE FROM quarantine WHERE id NOT IN (SELECT id FROM quarantine ORDER BY id DESC LIMIT ?)"
            )
            db.execute(sql, (MAX_QUARANTINED,))

    def quarantined(self) -> int:
        """How many events are in quarantine. Raises MemoryFault."""
        with self.reading() as db:
            return int(db.execute("SELECT count(*) FROM quarantine").fetchone()[0])

    def meta(self, key: str) -> str | None:
        """The note with this name; None if there is none. Raises MemoryFault."""
        with self.reading() as db:
            found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found is not None else None

    def set_meta(self, key: str, value: str) -> None:
        """Store a note. Raises MemoryFault."""
        sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        with self.writing() as db:
            db.execute(sql, (key, value))

    # ------------------------------------------------------------------ inside

    def _serve(self, relay: str) -> int:
        """A relay's number. From now on events are delivered to it."""
        number = self._served.get(relay)
        if number is None:
            with self.writing() as db:
                number = self._served[relay] = serve(db, relay)
        return number


# ---------------------------------------------------------------------- rows: what several methods do


def row_of(db: sqlite3.Connection, kind: int, d: str) -> Row | None:
    """The newest version at an address."""
    found = db.execute(f"{_ROW} WHERE kind = ? AND d = ?", (kind, d)).fetchone()
    return _row(found) if found is not None else None


def _row(found: Sequence[Any]) -> Row:
    kind, d, ts, digest, event_id, tombstone, plaintext = found
    return Row(kind, d, ts, digest, event_id, bool(tombstone), bool(plaintext))


def event_of(text: str) -> Event:
    """An event from our own JSON. It is not verified again: it was before it was stored."""
    value = json.loads(text)
    return Event(**{**value, "tags": tuple(tuple(tag) for tag in value["tags"])})


def replace(db: sqlite3.Connection, unit: str, entry: OutboxEntry, now_ms: int, current: Row | None) -> None:
    """Store a version in place of the `current` one, as one that no relay has yet."""
    (kind, d), event = entry.address, entry.event
    if current is not None:
        drop(db, "kind = ? AND d = ?", (kind, d))
    sql = """INSERT INTO events (unit, kind, d, ts, event_id, digest, gone, added_ms, event)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq"""
    flags = (entry.digest, entry.tombstone, now_ms)
    values = (unit, kind, d, event.created_at, event.id, *flags, event.encode())
    ((seq,),) = db.execute(sql, values).fetchall()
    db.execute("INSERT INTO deliveries (seq, relay) SELECT ?, id FROM relays WHERE served", (seq,))
    if kind == DELETE:
        addresses = deleted_until([event])[0]
        sql = "INSERT INTO deletes (deletion, kind, d) VALUES (?, ?, ?)"
        db.executemany(sql, [(seq, *address) for address in addresses])
    else:
        add_version(db, event)


def drop(db: sqlite3.Connection, where: str, values: Sequence[object]) -> None:
    """Remove events, with the state of their delivery."""
    seqs = f"(SELECT seq FROM events WHERE {where})"
    db.execute(f"DELETE FROM deliveries WHERE seq IN {seqs}", values)
    db.execute(f"DELETE FROM deletes WHERE deletion IN {seqs}", values)
    db.execute(f"DELETE FROM events WHERE {where}", values)


def add_version(db: sqlite3.Connection, event: Event) -> None:
    """Remember that this version exists or existed: a deletion request has to name it."""
    sql = "INSERT OR IGNORE INTO versions (kind, d, ts, event_id) VALUES (?, ?, ?, ?)"
    db.execute(sql, (event.kind, event.d, event.created_at, event.id))


def known_relay(db: sqlite3.Connection, url: str) -> tuple[int, bool] | None:
    """A relay's number, and whether events are delivered to it."""
    found = db.execute("SELECT id, served FROM relays WHERE url = ?", (url,)).fetchone()
    return (int(found[0]), bool(found[1])) if found is not None else None


def relay_id(db: sqlite3.Connection, url: str) -> int:
    """A relay's number. A new relay gets one, without anything being delivered to it yet."""
    db.execute("INSERT OR IGNORE INTO relays (url, served) VALUES (?, 0)", (url,))
    return int(db.execute("SELECT id FROM relays WHERE url = ?", (url,)).fetchone()[0])


def serve(db: sqlite3.Connection, url: str) -> int:
    """Deliver to a relay: everything it doesn't have waits for it. What failed before is due now."""
    relay = relay_id(db, url)
    db.execute("UPDATE relays SET served = 1 WHERE id = ?", (relay,))
    db.execute("INSERT OR IGNORE INTO deliveries (seq, relay) SELECT seq, ? FROM events", (relay,))
    sql = f"""UPDATE deliveries SET not_before = 0
        WHERE relay = ? AND state = {WAITING} AND not_before > 0"""
    db.execute(sql, (relay,))
    return relay


def settle(db: sqlite3.Connection, relay: int, event_id: str, state: int, reason: str = "") -> None:
    """Set the state of an event at a relay. An event that was replaced meanwhile is ignored."""
    sql = """INSERT INTO deliveries (seq, relay, state, reason)
        SELECT seq, ?, ?, ? FROM events WHERE event_id = ?
        ON CONFLICT (seq, relay) DO UPDATE SET state = excluded.state, reason = excluded.reason,
            not_before = 0, tries = tries + 1"""
    db.execute(sql, (relay, state, reason, event_id))


def _check(db: sqlite3.Connection) -> None:
    check_ours(db, VERSION, "the outbox")


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new file; raise for a damaged one."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    make_tables(db, SCHEMA, VERSION)
