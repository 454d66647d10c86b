"""The tables of a store in PostgreSQL, and the steps by which an older version becomes this one. Blocking.

    documents  one row a text, by the name its file would have below `data/memory`
    logs       the ledgers and other logs, by the same names: how long each is, and which one (`port.Head`)
    lines      one row a line of a log: the line with its newline, and the byte at which it begins
    changes    one row a change of a text, for followers and for the other processes
    archive_…  the archive of talk (`search/archive_tables`), below
    processes, beats, leases, claims   who uses the store, and what each of them alone may do

A version comes from one sequence, and is new with every write. `changes.xid` is the number of the transaction
that wrote the row: below `pg_snapshot_xmin(pg_current_snapshot())` all have ended, so whoever goes on from
there misses none. The ids alone, or the xids of rows already seen, would skip what commits late.

`bytea`, because a text may hold NUL or what is not UTF-8. No column of `logs` that changes is in an index:
its updates then touch no index at all (HOT).
"""

from contextlib import closing
from dataclasses import dataclass

from discoclaw.core.errors import NewerSchema
from discoclaw.store.postgres.connection import LOST, Connection, Database, as_ours

PARTITIONS = 8
"""Partitions of the lines, the only large table. A lookup locks all of them, and sixteen locks are fast."""

_STORE = (
    "CREATE SEQUENCE versions",
    """CREATE TABLE documents (
        name text COLLATE "C" PRIMARY KEY,
        content bytea NOT NULL,
        version bigint NOT NULL DEFAULT nextval('versions')
    )""",
    """CREATE TABLE logs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" UNIQUE NOT NULL,
        size bigint NOT NULL DEFAULT 0,
        generation bigint NOT NULL DEFAULT nextval('versions'),
        version bigint NOT NULL DEFAULT nextval('versions')
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE lines (
        log bigint NOT NULL,
        position bigint NOT NULL,
        line bytea NOT NULL,
        PRIMARY KEY (log, position)
    ) PARTITION BY HASH (log)""",
    *(
        f"CREATE TABLE lines_{n} PARTITION OF lines FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n})"
        for n in range(PARTITIONS)
    ),
    # `attempt` is the number of one attempt to write: it tells whether a commit took place of which the
    # answer was lost.
    """CREATE TABLE changes (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        name text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        process bigint NOT NULL DEFAULT 0,
        attempt bigint UNIQUE
    )""",
    "CREATE INDEX changes_xid ON changes (xid)",
)

_PROCESSES = (
    """CREATE TABLE processes (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL,
        host text NOT NULL,
        pid integer NOT NULL,
        program text NOT NULL,
        started timestamptz NOT NULL DEFAULT now(),
        until timestamptz NOT NULL,
        heard timestamptz NOT NULL DEFAULT clock_timestamp(),
        seen bigint NOT NULL DEFAULT 0,
        fed timestamptz NOT NULL DEFAULT clock_timestamp(),
        waits text[] NOT NULL DEFAULT '{}'
    ) WITH (fillfactor = 50)""",
    """CREATE TABLE leases (
        name text COLLATE "C" PRIMARY KEY,
        process bigint NOT NULL,
        epoch bigint NOT NULL,
        since timestamptz NOT NULL DEFAULT now()
    )""",
    """CREATE TABLE claims (
        message bigint PRIMARY KEY,
        process bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp()
    )""",
    "CREATE INDEX claims_at ON claims USING brin (at)",
    # For programs older than `_BEATS`, which may still run beside this one.
    f"""CREATE FUNCTION fence(own bigint, held text[], epochs bigint[], margin float) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE ours integer;
    BEGIN
        IF own = 0 THEN
            RETURN;
        END IF;
        IF NOT EXISTS (
            SELECT FROM processes WHERE id = own AND until > clock_timestamp() + margin * interval '1 second'
        ) THEN
            RAISE EXCEPTION 'process % is no longer counted on', own USING ERRCODE = '{LOST}';
        END IF;
        SELECT count(*) INTO ours FROM (
            SELECT FROM leases, unnest(held, epochs) AS h (name, epoch)
            WHERE leases.name = h.name AND leases.epoch = h.epoch FOR SHARE OF leases
        ) AS locked;
        IF ours < cardinality(held) THEN
            RAISE EXCEPTION 'process % lost one of %', own, held USING ERRCODE = '{LOST}';
        END IF;
    END $$""",
)

# A row of `processes` is its process's right to write. Nothing changes it but what takes that away, by
# setting `until` to -infinity while no transaction has locked it FOR SHARE, as each that writes does. So a
# process says in another row that it lives. One of an older program has none there; its `until` moves on.
_BEATS = (
    """CREATE TABLE beats (
        process bigint PRIMARY KEY,
        until timestamptz NOT NULL,
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        heard timestamptz NOT NULL DEFAULT clock_timestamp(),
        seen bigint NOT NULL,
        fed timestamptz NOT NULL DEFAULT clock_timestamp(),
        waits text[] NOT NULL DEFAULT '{}'
    ) WITH (fillfactor = 50)""",
    """CREATE VIEW members AS SELECT id, kind, host, pid, program, started,
        least(processes.until, coalesce(beats.until, 'infinity')) AS until,
        coalesce(beats.heard, processes.heard) AS heard, coalesce(beats.seen, processes.seen) AS seen,
        coalesce(beats.fed, processes.fed) AS fed, coalesce(beats.waits, processes.waits) AS waits
        FROM processes LEFT JOIN beats ON process = id""",
    # It raises by itself, so that it can be part of a statement that writes. No process is 0.
    f"""CREATE FUNCTION fence(own bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF own = 0 THEN
            RETURN;
        END IF;
        PERFORM FROM processes WHERE id = own AND until > '-infinity' FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'process % is no longer counted on', own USING ERRCODE = '{LOST}';
        END IF;
    END $$""",
)

# ---------------------------------------------------------------------- the archive of talk
# archive_state    one row: how many entries there are, how many terms they have together, and about their
#                  vectors: the model that made them, their length, how often all of them were removed, how
#                  many texts were sent on which day, and the entry below which none was looked at yet.
#                  Whoever writes locks it first, so that one transaction at a time changes the archive
# archive_entries  one row a message; `place` says who may find it: a channel's id, or a person's, negative,
#                  for their direct messages. `seq` is the order in which they were stored
# archive_terms    each term, and how many entries have it; none that no entry has
# archive_words    one row for each term of each entry: how often it is there, and how long the entry is
# archive_signs    the signs of the vectors, and an order of the messages that has nothing to do with time
# archive_vectors  the vectors, with a byte for each number
# archive_unembedded  the messages that still need one
#
# Why a table of terms, and no full-text index of PostgreSQL's, is in docs/dev/decisions.md.

_ARCHIVE = (
    """CREATE TABLE archive_state (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        entries bigint NOT NULL DEFAULT 0,
        length bigint NOT NULL DEFAULT 0,
        tokens bigint NOT NULL DEFAULT 0,
        model text NOT NULL DEFAULT '',
        dims integer NOT NULL DEFAULT 0,
        starts bigint NOT NULL DEFAULT 0,
        day bigint NOT NULL DEFAULT 0,
        sent bigint NOT NULL DEFAULT 0,
        unlisted bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50)""",
    "INSERT INTO archive_state DEFAULT VALUES",
    """CREATE TABLE archive_entries (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id bigint NOT NULL UNIQUE,
        session_key text COLLATE "C" NOT NULL,
        channel_id text COLLATE "C" NOT NULL,
        group_id text COLLATE "C",
        guild_id text COLLATE "C",
        author_id text COLLATE "C" NOT NULL,
        name text NOT NULL,
        text text NOT NULL,
        sent_at bigint NOT NULL,
        by_us boolean NOT NULL,
        to_id text COLLATE "C" NOT NULL,
        place bigint NOT NULL,
        terms text NOT NULL,
        length integer NOT NULL,
        own integer NOT NULL,
        marks integer NOT NULL
    )""",
    "CREATE INDEX archive_entries_in_order ON archive_entries (session_key, id)",
    "CREATE INDEX archive_entries_by_place ON archive_entries (place, id)",
    "CREATE INDEX archive_entries_by_time ON archive_entries (sent_at)",
    "CREATE INDEX archive_entries_by_channel ON archive_entries (channel_id)",
    "CREATE INDEX archive_entries_by_author ON archive_entries (author_id)",
    "CREATE INDEX archive_entries_by_addressee ON archive_entries (to_id) WHERE to_id <> ''",
    """CREATE TABLE archive_terms (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        term text COLLATE "C" NOT NULL UNIQUE,
        entries bigint NOT NULL
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE archive_words (
        seq bigint NOT NULL,
        place bigint NOT NULL,
        term integer NOT NULL,
        times integer NOT NULL,
        tokens integer NOT NULL,
        PRIMARY KEY (term, place, seq) INCLUDE (times, tokens)
    )""",
    """CREATE TABLE archive_vectors (
        id bigint PRIMARY KEY REFERENCES archive_entries (id) ON DELETE CASCADE,
        vector bytea NOT NULL
    )""",
    """CREATE TABLE archive_signs (
        id bigint PRIMARY KEY REFERENCES archive_vectors (id) ON DELETE CASCADE,
        place bigint NOT NULL,
        mixed bigint NOT NULL,
        signs bit varying NOT NULL
    )""",
    "CREATE INDEX archive_signs_mixed ON archive_signs (place, mixed)",
    """CREATE TABLE archive_unembedded (
        id bigint PRIMARY KEY REFERENCES archive_entries (id) ON DELETE CASCADE,
        place bigint NOT NULL
    )""",
    "CREATE INDEX archive_unembedded_by_place ON archive_unembedded (place, id)",
)
TABLES = (
    *("archive_state", "archive_entries", "archive_terms", "archive_words"),
    *("archive_vectors", "archive_signs", "archive_unembedded"),
)
"""The tables, each after those that it refers to."""
COUNTED = (("archive_entries", "seq"), ("archive_terms", "id"))
"""The columns that PostgreSQL numbers."""


# ---------------------------------------------------------------------- making them

STEPS: tuple[tuple[str, ...], ...] = ((*_STORE, *_PROCESSES, *_ARCHIVE), _BEATS)
"""The statements that lead from each version to the next, from none at all on."""

_CLUSTER = "(SELECT system_identifier || '/' || current_database() FROM pg_control_system())"
_ABOUT = """CREATE TABLE discoclaw (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    cluster text NOT NULL DEFAULT '',
    forgotten bigint NOT NULL DEFAULT 0
)"""
"""One row: the version of the tables, the cluster they are in, and below which xid changes were removed."""

_LOCK = 0x446973636F
"""The number of the lock under which tables are made: "Disco"."""


def prepare(database: Database, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Make the tables, or bring them to this version. Several processes may do this at the same time.

    Raises NewerSchema, MemoryFault and OSError.
    """
    if database.read(lambda db: _found(db, database, len(steps))) == (len(steps), True):
        return
    with database.patient() as db, db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        version, at_home = _found(db, database, len(steps))
        if version is None:
            db.execute(_ABOUT)
            db.execute("INSERT INTO discoclaw (version) VALUES (0)")
        for step in steps[version or 0 :]:
            for statement in step:
                db.execute(statement)
        if not at_home:
            settle_in(db)
        db.execute(f"UPDATE discoclaw SET version = %s, cluster = {_CLUSTER}", (len(steps),))


def _found(db: Connection, database: Database, newest: int) -> tuple[int | None, bool]:
    """The version of the tables, None if there are none, and whether they are where they were made.

    Raises NewerSchema.
    """
    if db.execute("SELECT to_regclass('discoclaw')").fetchone() == (None,):
        return None, True
    row = db.execute(f"SELECT version, cluster = {_CLUSTER} FROM discoclaw").fetchone()
    version, at_home = row or (0, True)
    if version > newest:
        raise NewerSchema(
            f"{database.where}: its tables have version {version}, newer than this program; update it"
        )
    return version, at_home


def settle_in(db: Connection) -> None:
    """Drop what means nothing in a database that was restored from a backup: its xids, and who used it."""
    db.execute("TRUNCATE changes, processes, beats, leases")
    db.execute("UPDATE discoclaw SET forgotten = pg_current_xact_id()::text::bigint")


# ---------------------------------------------------------------------- one look, which makes no tables

_LOOK = """
    SELECT current_setting('server_version'),
        pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
        has_schema_privilege(current_schema(), 'CREATE'), pg_database_size(current_database()),
        to_regclass('discoclaw') IS NOT NULL
"""
_MAY_WRITE = """
    SELECT bool_and(has_table_privilege(name, 'SELECT, INSERT, UPDATE, DELETE'))
    FROM unnest(%s::text[]) AS name
"""
_TABLES = ["documents", "logs", "lines", "changes", "processes", "beats", "leases", "claims"]


@dataclass(frozen=True, slots=True)
class Look:
    """A database. `tables` is the version of its tables, None if there are none; `newest` is this program's.

    `may_write`: this user may change what is in them, or make them where there are none. `size` is in bytes.
    """

    where: str
    server: str
    read_only: bool
    may_write: bool
    size: int
    tables: int | None
    newest: int = len(STEPS)


def look(url: str) -> Look:
    """Look at the database of an address. Raises OSError and MemoryFault, which never show its password."""
    with closing(Database(url, most=1)) as database, database.connection() as db, as_ours(database.where):
        ((server, read_only, may_write, size, there),) = db.execute(_LOOK).fetchall()
        tables = None
        if there:
            found = db.execute("SELECT version FROM discoclaw").fetchone()
            tables = int(found[0]) if found else 0
            if tables == len(STEPS):  # another version may have other tables
                ((may_write,),) = db.execute(_MAY_WRITE, (_TABLES,)).fetchall()
        return Look(database.where, server, read_only, bool(may_write), size, tables)
