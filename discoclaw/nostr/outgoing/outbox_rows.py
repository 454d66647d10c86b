"""The outbox's tables, and the statements on their rows. Blocking; raises sqlite3.Error.

    events      the newest signed event of each address (kind, d); a deletion request's address is its id
    versions    the ids of all versions that were ever signed for an address
    deletes     which addresses a deletion request is about
    relays      the relays that events are delivered to (`served`), or were
    deliveries  the state of an event at a relay: waiting, acknowledged or parked
    units       how much of a unit's ledger (bytes) is mirrored
    quarantine  events of ours from relays that cannot be read
    meta        small notes by name

Everything in here is public or encrypted: pseudonyms, signatures, ciphertext. `unit` is a keyed hash.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from discoclaw.core.errors import NostrError
from discoclaw.nostr.event import Event
from discoclaw.nostr.schemas import APP, DELETE, KIND_NAMES, deleted_until

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

A deletion request waits
for the versions that replace what it deletes: a relay that ignores the request has replaced the content at
least."""
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
INDEX: Final = """
    SELECT unit, kind, d, ts FROM events INDEXED BY events_by_unit
    WHERE unit >= ? AND unit < ? AND NOT gone ORDER BY unit, kind, d"""


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


# ---------------------------------------------------------------------- events


def row_of(db: sqlite3.Connection, kind: int, d: str) -> Row | None:
    """The newest version at an address."""
    found = db.execute(f"{_ROW} WHERE kind = ? AND d = ?", (kind, d)).fetchone()
    return _row(found) if found is not None else None


def rows_of(db: sqlite3.Connection, unit: str) -> list[Row]:
    """The newest versions at all addresses of a unit."""
    return [_row(found) for found in db.execute(f"{_ROW} WHERE unit = ?", (unit,))]


def _row(found: Sequence[Any]) -> Row:
    kind, d, ts, digest, event_id, tombstone, plaintext = found
    return Row(kind, d, ts, digest, event_id, bool(tombstone), bool(plaintext))


def event_of(text: str) -> Event:
    """An event from our own JSON. It is not verified again: it was before it was stored."""
    value = json.loads(text)
    return Event(**{**value, "tags": tuple(tuple(tag) for tag in value["tags"])})


def put(db: sqlite3.Connection, unit: str, entry: OutboxEntry, now_ms: int) -> None:
    """Store a newer version at an address, waiting for every relay. Raises NostrError if it isn't newer."""
    kind, d = entry.address
    current = row_of(db, kind, d)
    if current is not None and current.event_id == entry.event.id:
        return
    if current is not None and current.ts >= entry.event.created_at:
        raise NostrError(f"a new version of {kind} {d} has to be later than the last one, {current.ts}")
    replace(db, unit, entry, now_ms, current)


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


def adopt(db: sqlite3.Connection, unit: str, entry: OutboxEntry, relays: Iterable[int], now_ms: int) -> None:
    """Store an event that relays (by number) already have, unless we have a newer version."""
    event, current = entry.event, row_of(db, *entry.address)
    if current is not None and (current.ts, event.id) > (event.created_at, current.event_id):
        add_version(db, event)
        return
    if current is None or current.event_id != event.id:
        replace(db, unit, entry, now_ms, current)
    for relay in relays:
        settle(db, relay, event.id, ACKED)


def forget(db: sqlite3.Connection, unit: str, about: Iterable[str]) -> None:
    """Remove a unit, except for tombstones and deletion requests: relays still have to get these."""
    of_unit = "(SELECT kind, d FROM events WHERE unit = ?)"
    db.execute(f"DELETE FROM versions WHERE (kind, d) IN {of_unit}", (unit,))
    db.execute(f"DELETE FROM quarantine WHERE (kind, d) IN {of_unit}", (unit,))
    db.executemany("DELETE FROM quarantine WHERE instr(d, ?)", [(text,) for text in about if text])
    drop(db, f"unit = ? AND NOT gone AND kind <> {DELETE}", (unit,))
    db.execute("DELETE FROM units WHERE unit = ?", (unit,))


def erased_at(db: sqlite3.Connection, prefix: str) -> int | None:
    """When (s) records at addresses with this prefix were last deleted for good; None for never."""
    (at,) = db.execute(ERASED_AT, {"prefix": prefix}).fetchone()
    return int(at) if at is not None else None


def quarantine(db: sqlite3.Connection, event: Event, reason: str, now_ms: int) -> None:
    """Keep an event that can't be read, up to 1,000 of them."""
    sql = """INSERT OR IGNORE INTO quarantine (event_id, kind, d, reason, at_ms, event)
        VALUES (?, ?, ?, ?, ?, ?)"""
    db.execute(sql, (event.id, event.kind, event.d, reason, now_ms, event.encode()))
    sql = "DELETE FROM quarantine WHERE id NOT IN (SELECT id FROM quarantine ORDER BY id DESC LIMIT ?)"
    db.execute(sql, (MAX_QUARANTINED,))


# ---------------------------------------------------------------------- relays


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


def leave_all_but(db: sqlite3.Connection, relays: Collection[int]) -> None:
    """Stop delivering to all other relays. What the last of them have is remembered: they may come back."""
    for (relay,) in db.execute("SELECT id FROM relays WHERE served").fetchall():
        if relay not in relays:
            db.execute("UPDATE relays SET served = 0 WHERE id = ?", (relay,))
            db.execute(f"DELETE FROM deliveries WHERE relay = ? AND state = {WAITING}", (relay,))
    left = db.execute("SELECT id FROM relays WHERE NOT served ORDER BY id DESC").fetchall()
    for (relay,) in left[MAX_FORMER_RELAYS:]:
        db.execute("DELETE FROM deliveries WHERE relay = ?", (relay,))
        db.execute("DELETE FROM relays WHERE id = ?", (relay,))


def settle(db: sqlite3.Connection, relay: int, event_id: str, state: int, reason: str = "") -> None:
    """Set the state of an event at a relay. An event that was replaced meanwhile is ignored."""
    sql = """INSERT INTO deliveries (seq, relay, state, reason)
        SELECT seq, ?, ?, ? FROM events WHERE event_id = ?
        ON CONFLICT (seq, relay) DO UPDATE SET state = excluded.state, reason = excluded.reason,
            not_before = 0, tries = tries + 1"""
    db.execute(sql, (relay, state, reason, event_id))


def postpone(db: sqlite3.Connection, relay: int, event_id: str, at_ms: int, reason: str) -> None:
    """Make an event due again at a time (ms)."""
    sql = f"""UPDATE deliveries SET not_before = ?, reason = ?, tries = tries + 1
        WHERE seq = (SELECT seq FROM events WHERE event_id = ?) AND relay = ? AND state = {WAITING}"""
    db.execute(sql, (at_ms, reason, event_id, relay))


def queue(db: sqlite3.Connection, url: str, most: int) -> tuple[int, int | None, list[tuple[str, int]]]:
    """How many events wait for a relay, since when (ms) the oldest, and the reasons of those it refused."""
    relay, served = known_relay(db, url) or (0, False)
    depth, oldest = db.execute(DEPTH if served else DEPTH_OF_OTHERS, (relay,)).fetchone()
    since = db.execute("SELECT added_ms FROM events WHERE seq = ?", (oldest,)).fetchone()
    return int(depth), since[0] if since is not None else None, db.execute(REASONS, (relay, most)).fetchall()


def shortfalls(db: sqlite3.Connection, urls: Iterable[str]) -> dict[int, int]:
    """How many events so many relays lack, by number of relays. Events that none lacks are left out."""
    found = [known_relay(db, url) or (0, False) for url in urls]
    if not found:
        return {}
    lacking = " UNION ALL ".join(_LACKING if served else _LACKING_OF_OTHERS for _, served in found)
    values = [relay for relay, served in found for _ in range(2 if served else 1)]
    sql = (
        f"SELECT short, count(*) FROM (SELECT count(*) AS short FROM ({lacking}) GROUP BY seq) GROUP BY short"
    )
    return dict(db.execute(sql, values).fetchall())


def lost(db: sqlite3.Connection, relay: int, there: Collection[str]) -> set[int]:
    """The events (`seq`) that a relay acknowledged and has lost: those whose ids are not in `there`.

    Tombstones and deletion requests are due again only if something that they deleted is back: a relay
    that obeyed a request has deleted the tombstone too, and may have dropped the request.
    """
    sql = f"""SELECT e.seq, e.event_id FROM deliveries AS h JOIN events AS e ON e.seq = h.seq
        WHERE h.relay = ? AND h.state = {ACKED} AND NOT e.gone AND e.kind <> {DELETE}"""
    again = {seq for seq, event_id in db.execute(sql, (relay,)) if event_id not in there}
    tombstones = {event_id for (event_id,) in db.execute("SELECT event_id FROM events WHERE gone")}
    back = set(there) - tombstones
    about = """SELECT t.seq FROM deletes AS x JOIN events AS t ON t.kind = x.kind AND t.d = x.d
        WHERE x.deletion = ? AND t.gone"""
    for seq, text in db.execute("SELECT seq, event FROM events WHERE kind = ?", (DELETE,)).fetchall():
        if back & deleted_until([event_of(text)])[1]:
            again |= {seq, *(found for (found,) in db.execute(about, (seq,)))}
    return again
