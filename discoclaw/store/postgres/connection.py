"""Connections to a PostgreSQL, and transactions on them. Blocking; for any number of threads.

    read   for single statements, each of which sees one moment
    write  one transaction: afterwards either all of it is durable, or nothing is

One rule for faults: what was certainly not written is tried once more, if the connection was lost or another
transaction was in the way. If the connection is lost during a COMMIT, `write` raises Unsure, and whoever
wrote has to look. Everything else is an OSError with one sentence.

PostgreSQL's errors become ours here: one sentence that names the thing, the reason and the way out, and never
shows the password. A failed connection has no SQLSTATE, so its reason is found in the server's words.

The pool is ours: `psycopg_pool` connects in threads of its own, with doubling pauses, so that its users learn
neither why there is no connection nor, for up to half a minute, that the server is back.
"""

import re
import selectors
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from discoclaw.core.errors import LeaseLost, MemoryFault
from discoclaw.store.port import Presence, seconds

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]

OLDEST = 13
"""The oldest PostgreSQL: it was the first with xid8, by which readers of `changes` miss nothing."""
MOST = 8
"""Connections of one process, beside the `spare` one and two by which it lives and hears of others. Sixteen
processes then need 176, for which no pooler is needed."""
WAIT_S = 2.0
"""How long one waits for a free connection: as long as a reply waits for a disk."""
FULL_S, FULL_PAUSE_S = 1.0, 0.2
"""How long and how often one tries while the server takes no more: half as long, so that a reply does not
take that for a server that doesn't answer. One of ours that becomes free meanwhile is used."""
_LOCK_S, _STATEMENT_S, _SILENCE_S = 8, 30, 10.0
"""The most for waiting for a lock, for a statement, and for any sign of life while a statement runs."""
_OPEN_S = 1.5
"""How long a transaction may be idle: whoever takes the place of a stopped process waits for its own."""
_PARAMETERS: dict[str, Any] = {
    "application_name": "discoclaw",
    "client_encoding": "utf8",
    "connect_timeout": 3,
    "keepalives_idle": 5,  # a split network is noticed within ten seconds
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 9_000,
}
_PREPARE = f"""SELECT set_config('statement_timeout', '{_STATEMENT_S}s', false),
    set_config('lock_timeout', '{_LOCK_S}s', false),
    set_config('idle_in_transaction_session_timeout', '{_OPEN_S}s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)"""
"""Limits of a session. `off` would lose acknowledged commits; what is set higher, for a standby, stays."""


FENCE = "fence(%(own)s::bigint)"
"""The call that raises LeaseLost where this process may not write any more (`schema`)."""


class Connection(psycopg.Connection[Row]):
    """One that does not wait for ever for a server that says nothing."""

    silence_s = _SILENCE_S

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        until = seconds() + self.silence_s
        try:
            state = next(gen)
            while True:
                if ready := (yield state):
                    until = seconds() + self.silence_s
                elif seconds() > until:
                    self.pgconn.finish()
                    raise Silent(f"timeout: no answer for {self.silence_s:.0f} s")
                state = gen.send(ready)
        except StopIteration as end:
            outcome: T = end.value
            return outcome


class Database:
    """A database, and the connections to it. `presence` is what this process is to it (`store/port`)."""

    def __init__(self, url: str, *, most: int = MOST, silence_s: float = _SILENCE_S) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # whose text may show the password
            raise MemoryFault(
                "DISCOCLAW_STORE isn't an address of a database; it looks like "
                "postgresql://user:password@host/database"
            ) from None
        self.presence = Presence()
        self.place = _place(given)
        self.where = f"PostgreSQL {self.place}"
        self._address = make_conninfo("", **(_PARAMETERS | given))
        self._silence_s = silence_s
        self._free = threading.BoundedSemaphore(most)
        self._most = most
        self._idle: list[Connection] = []
        self._closed = False
        self._given = threading.Condition()

    def __repr__(self) -> str:
        return f"Database({self.where})"

    def beside(self, silence_s: float) -> "Database":
        """The database for one thread that waits for nothing else this process does, and is never fenced.

        `silence_s` is how long it waits for an answer.
        """
        return Database(self._address, most=1, silence_s=silence_s)

    # ------------------------------------------------------------------ transactions

    def read(self, work: Callable[[Connection], T], *, spare: bool = False) -> T:
        """Return what `work` reads; each of its statements sees one moment.

        It runs once more if nothing was written and it may succeed now.
        `spare`: on a connection for which nobody has to wait. Raises OSError.
        """
        with as_ours(self.where):
            try:
                with self.connection(spare=spare) as db:
                    return work(db)
            except psycopg.Error as error:
                if is_lost(error):
                    self._drop_idle()  # the others are as old
                if isinstance(error, Silent) or not (is_lost(error) or error.sqlstate in REPEATED):
                    raise
            with self.connection(spare=spare) as db:
                return work(db)

    def rows(self, query: str, given: Any = (), *, spare: bool = False) -> list[Row]:
        """The rows of one statement, none of one that returns none; it runs as `read` says."""

        def work(db: Connection) -> list[Row]:
            found = db.execute(query, given)
            return found.fetchall() if found.description is not None else []

        return self.read(work, spare=spare)

    def write(self, work: Callable[[Connection], T], *, fenced: bool = True) -> T:
        """Let `work` write in one transaction. It may run twice; its last statement is followed by the fence.

        Raises OSError, of which Unsure, and LeaseLost.
        """

        def written(db: Connection) -> T:
            db.execute("BEGIN")
            outcome = work(db)
            self.commit(db, fenced=fenced)
            return outcome

        return self.read(written)

    def commit(self, db: Connection, *, fenced: bool = True) -> None:
        """Commit the transaction of a connection, if this process may write. Raises psycopg.Error, Unsure."""
        if fenced and self.presence.process:
            db.execute(f"SELECT {FENCE}", {"own": self.presence.process})
        with self.unsure():
            db.execute("COMMIT")

    @contextmanager
    def unsure(self) -> Iterator[None]:
        """For a statement that commits: a connection that is lost meanwhile is Unsure."""
        try:
            yield
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            raise Unsure(
                f"{self.where}: the connection broke off; it may or may not be written ({error})"
            ) from None

    # ------------------------------------------------------------------ connections

    @contextmanager
    def connection(self, *, spare: bool = False) -> Iterator[Connection]:
        """A connection for one thread, in autocommit mode. After an error it is not used again.

        So a transaction left open ends, and nobody goes on with a server that takes only reads by now. A
        `spare` one is beside the others: for the one thread whose waiting would say that the store is out
        of reach. While it is out of reach, this fails at once. Raises OSError.
        """
        if not self.presence.answers:
            raise OSError(f"{self.where}: it could not be reached lately, and is not asked until it is back")
        if not spare and not self._free.acquire(timeout=WAIT_S):
            raise OSError(f"{self.where}: all {self._most} connections of this process are in use")
        try:
            db = self._idle_or_new()
            sound = False
            try:
                yield db
                sound = db.info.transaction_status == pq.TransactionStatus.IDLE
            finally:
                if self._closed or not sound:
                    db.close()
                else:
                    with self._given:
                        self._idle.append(db)
                        self._given.notify()
        finally:
            if not spare:
                self._free.release()

    def _idle_or_new(self) -> Connection:
        """A connection that is free, or a new one; while the server has none left, the first of these."""
        until = seconds() + FULL_S
        while True:
            with self._given:
                db = self._idle.pop() if self._idle else None
            if db is not None:
                if not _spoken_to(db):
                    return db
                db.close()  # the server has ended it
                continue
            try:
                return self.connect()
            except Full:
                if seconds() >= until:
                    raise
                with self._given:
                    self._given.wait_for(lambda: bool(self._idle), FULL_PAUSE_S)

    def connect(self) -> Connection:
        """A new connection beside the pool; its owner closes it. Raises OSError."""
        with as_ours(self.where):
            db = Connection.connect(self._address, autocommit=True)
        db.silence_s = self._silence_s
        try:
            with as_ours(self.where):
                if (version := db.info.server_version) < OLDEST * 10_000:
                    raise MemoryFault(
                        f"{self.where}: version {version // 10_000} is too old; update to {OLDEST} or later"
                    )
                if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
                    raise MemoryFault(
                        f"{self.where}: the database has the encoding {encoding}; create one with "
                        "ENCODING 'UTF8' TEMPLATE template0"
                    )
                db.execute(_PREPARE)
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def patient(self) -> Iterator[Connection]:
        """A new connection on which a statement may take as long as it likes. Raises OSError."""
        with closing(self.connect()) as db, as_ours(self.where):
            db.silence_s = float("inf")
            db.execute(
                "SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)"
            )
            yield db

    def close(self) -> None:
        """Close all connections: those in use when they are given back."""
        self._closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        with self._given:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()


def _spoken_to(db: Connection) -> bool:
    """Whether the server said something on an idle connection: it then says goodbye, or has ended it."""
    if db.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(db.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


def _place(given: Mapping[str, Any]) -> str:
    """Host and name of a database for messages, without user and password."""
    port = f":{given['port']}" if given.get("port") else ""
    return f"{given.get('host') or 'localhost'}{port}/{given.get('dbname') or given.get('user') or ''}"


# ---------------------------------------------------------------------- errors

LOST = "ZL001"
"""The SQLSTATE that the function `fence` raises."""
REPEATED = frozenset({"40001", "40P01"})
"""SQLSTATEs after which the same transaction may succeed: it lost against another one."""

_STATES = {
    "22021": "a name holds a character that a database cannot store",
    "25006": "the database only takes reads; use the primary server (target_session_attrs=read-write), "
    "or see its default_transaction_read_only",
    "25P03": "the transaction took too long, so the server ended it",
    "42501": "a right is missing; let this user own the database (ALTER DATABASE … OWNER TO …)",
    "42P07": "it has a table of another program; create a database for DiscoClaw alone",
    "53100": "the disk of the database server is full; free some space there",
    "53200": "the database server is out of memory",
    "53300": "the database server has no connection left; raise its max_connections",
    "55P03": "another process holds what is to be written, and doesn't let go",
    "57014": "the database server took too long",
    "57P01": "the database server is being shut down",
    "57P02": "the database server is restarting after a crash",
    "57P03": "the database server is starting or stopping",
    "58030": "the disk of the database server fails",
    "XX001": "a table of the database is damaged; restore a backup",
    "XX002": "an index of the database is damaged; rebuild it (REINDEX DATABASE)",
}
_WORDS = (
    ("password authentication failed", "the password or the user is wrong; see DISCOCLAW_STORE"),
    ("no password supplied", "it wants a password; put one into DISCOCLAW_STORE (user:password@host)"),
    ("no encryption", "it accepts no connection without encryption; add ?sslmode=require to DISCOCLAW_STORE"),
    ("SSL off", "it accepts no connection without encryption; add ?sslmode=require to DISCOCLAW_STORE"),
    ("does not support SSL", "it offers no encryption, which sslmode asks for; enable ssl on the server"),
    ("no pg_hba.conf entry", "it accepts no connection from here; add a line to its pg_hba.conf"),
    ("certificate", "its certificate is not accepted; see sslmode and sslrootcert"),
    ("too many clients", _STATES["53300"]),
    ("remaining connection slots", _STATES["53300"]),
    ("too many connections", _STATES["53300"]),
    ("is starting up", _STATES["57P03"]),
    ("is shutting down", _STATES["57P03"]),
    ("in recovery mode", _STATES["57P02"]),
    ("not yet accepting", _STATES["57P03"]),
    ("translate host name", "its host name is unknown; see DISCOCLAW_STORE"),
    ("resolve host", "its host name is unknown; see DISCOCLAW_STORE"),
    ("Connection refused", "nothing listens there; start the database server, or see DISCOCLAW_STORE"),
    ("closed the connection unexpectedly", "it closes new connections; see whether the database server runs"),
    ("timeout", "it doesn't answer"),
    ("timed out", "it doesn't answer"),
)
_MISSING = re.compile(r'(database|role) "([^"]*)" does not exist')


class Silent(psycopg.OperationalError):
    """The server said nothing for too long."""


class Full(OSError):
    """The server takes no more connections."""


class Unsure(OSError):
    """The connection broke off while the transaction was being committed: it may be written or not."""


def is_lost(error: BaseException) -> bool:
    """Whether an error means that the connection is gone, rather than that the server said no."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate[:3] in ("57P", "25P") or error.sqlstate[:2] == "08"


@contextmanager
def as_ours(where: str) -> Iterator[None]:
    """Convert psycopg's errors to OSErrors that say what to do. `where` names the database."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == LOST:
            why = "another process may do this work by now"
            raise LeaseLost(f"nothing was written: {why} ({_said(error)})") from None
        reason = explained(error)
        kind = Full if reason.startswith(_STATES["53300"]) else OSError
        raise kind(f"{where}: {reason}") from None
    except UnicodeEncodeError as error:  # a name with a lone surrogate
        raise OSError(f"{where}: {_STATES['22021']} ({error})") from None


def explained(error: psycopg.Error) -> str:
    """The reason and the way out, or the server's own words."""
    said = _said(error)
    if (found := _MISSING.search(said)) is not None:
        kind, name = found.groups()
        if kind == "role":
            return f"there is no user {name!r}; create it (CREATE ROLE … LOGIN), or see DISCOCLAW_STORE"
        return f"there is no database {name!r}; create it (CREATE DATABASE …), or see DISCOCLAW_STORE"
    if (reason := _STATES.get(error.sqlstate or "")) is not None:
        return f"{reason} ({said})"
    if "No space left" in said or "File too large" in said:
        return f"{_STATES['53100']} ({said})"
    if error.sqlstate is None:
        for words, reason in _WORDS:
            if words in said:
                return f"{reason} ({said})"
    return said


def _said(error: psycopg.Error) -> str:
    """The first line of what the server said."""
    said = error.diag.message_primary or str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0]
