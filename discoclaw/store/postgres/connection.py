"""Connections to a PostgreSQL, and transactions on them. Blocking; for any number of threads.

    read   for single statements, each of which sees one moment
    write  one transaction: afterwards either all of it is durable, or nothing is

One rule for faults: what was certainly not written is tried once more, if the connection was lost or another
transaction was in the way. If the connection is lost during a COMMIT, `write` raises Unsure, and whoever
wrote has to look. Everything else is an OSError with one sentence.

The pool is ours: `psycopg_pool` connects in threads of its own, with doubling pauses, so that its users learn
neither why there is no connection nor, for up to half a minute, that the server is back.
"""

import selectors
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from discoclaw.core.errors import MemoryFault
from discoclaw.store.fence import Presence, fences, seconds
from discoclaw.store.postgres.errors import REPEATED, Full, Silent, Unsure, as_ours, is_lost

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]

OLDEST = 13
"""The oldest PostgreSQL: it was the first with xid8, by which readers of `changes` miss nothing."""
MOST = 8
"""Connections of one process, beside the `spare` one and the one by which it stays alive. Sixteen processes
then need 160, for which no pooler is needed."""
WAIT_S = 2.0
"""How long one waits for a free connection: as long as a reply waits for a disk."""
FULL_S, FULL_PAUSE_S = 1.0, 0.2
"""How long and how often one tries while the server takes no more: half as long, so that a reply does not
take that for a server that doesn't answer. One of ours that becomes free meanwhile is used."""
_LOCK_S, _STATEMENT_S, _SILENCE_S = 8, 30, 10.0
"""The most for waiting for a lock, for a statement, and for any sign of life while a statement runs."""
_OPEN_S = 1.5
"""How long a transaction may be idle: less than `Presence.margin_s`, so no stopped process can commit."""
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
    """A database, and the connections to it. `presence` is what this process is to it (`store/fence`)."""

    def __init__(self, url: str, *, most: int = MOST) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # whose text may show the password
            raise MemoryFault(
                "DISCOCLAW_STORE is no address of a database; it looks like "
                "postgresql://user:password@host/database"
            ) from None
        self.presence = Presence()
        self.place = _place(given)
        self.where = f"PostgreSQL {self.place}"
        self._address = make_conninfo("", **(_PARAMETERS | given))
        self._free = threading.BoundedSemaphore(most)
        self._holds = threading.BoundedSemaphore(max(most // 2, 1))
        self._most = most
        self._idle: list[Connection] = []
        self._closed = False
        self._given = threading.Condition()

    def __repr__(self) -> str:
        return f"Database({self.where})"

    # ------------------------------------------------------------------ transactions

    def read(self, work: Callable[[Connection], T], *, spare: bool = False) -> T:
        """Return what `work` reads; each of its statements sees one moment. It may run twice.

        `spare`: on a connection for which nobody has to wait. Raises OSError.
        """
        return self._run(work, spare=spare)

    def write(self, work: Callable[[Connection], T], *, fenced: bool = True) -> T:
        """Let `work` write in one transaction. It may run twice; its last statement is followed by the fence.

        Raises OSError, of which Unsure, and LeaseLost.
        """

        def written(db: Connection) -> T:
            db.execute("BEGIN")
            outcome = work(db)
            self.commit(db, fenced=fenced)
            return outcome

        return self._run(written)

    def _run(self, work: Callable[[Connection], T], *, spare: bool = False) -> T:
        """Let `work` use a connection, and once more if nothing was written and it may succeed now."""
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

    def commit(self, db: Connection, *, fenced: bool = True) -> None:
        """Commit the transaction of a connection, if this process may write. Raises psycopg.Error, Unsure."""
        if fenced and self.presence.epoch:
            db.execute(f"SELECT {FENCE}", self.fence())
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

    def fence(self) -> dict[str, Any]:
        """The parameters of `FENCE`, for this process and the running task."""
        held = fences()
        return {
            "own": self.presence.epoch,
            "held": [one.lease for one in held],
            "epochs": [one.epoch for one in held],
            "margin": self.presence.margin_s,
        }

    # ------------------------------------------------------------------ connections

    @contextmanager
    def connection(self, *, spare: bool = False) -> Iterator[Connection]:
        """A connection for one thread, in autocommit mode; a transaction left open is rolled back.

        Raises OSError.
        """
        db = self.take(spare=spare)
        try:
            yield db
        finally:
            self.give(db, spare=spare)

    def take(self, *, hold: bool = False, spare: bool = False) -> Connection:
        """A connection, to be given back with `give`. Raises OSError.

        To `hold` one while others are needed too takes one of half of them, so that some are left. A `spare`
        one is beside them all: for the one thread whose waiting would say that the store is out of reach.
        While it is out of reach, this fails at once.
        """
        if not self.presence.answers:
            raise OSError(f"{self.where}: it could not be reached lately, and is not asked until it is back")
        if hold and not self._holds.acquire(timeout=_LOCK_S):
            raise OSError(f"{self.where}: too much is written at the same time")
        if not spare and not self._free.acquire(timeout=WAIT_S):
            if hold:
                self._holds.release()
            raise OSError(f"{self.where}: all {self._most} connections of this process are in use")
        try:
            return self._idle_or_new()
        except BaseException:
            self._release(hold, spare)
            raise

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

    def give(self, db: Connection, *, hold: bool = False, spare: bool = False) -> None:
        """Take back a connection."""
        try:
            with suppress(psycopg.Error):
                if not db.closed and db.info.transaction_status != pq.TransactionStatus.IDLE:
                    db.execute("ROLLBACK")
            if self._closed or db.closed or db.info.transaction_status != pq.TransactionStatus.IDLE:
                db.close()
            else:
                with self._given:
                    self._idle.append(db)
                    self._given.notify()
        finally:
            self._release(hold, spare)

    def _release(self, hold: bool, spare: bool) -> None:
        if not spare:
            self._free.release()
        if hold:
            self._holds.release()

    def connect(self) -> Connection:
        """A new connection beside the pool; its owner closes it. Raises OSError."""
        with as_ours(self.where):
            db = Connection.connect(self._address, autocommit=True)
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


FENCE = "fence(%(own)s::bigint, %(held)s::text[], %(epochs)s::bigint[], %(margin)s::float8)"
"""The call that raises LeaseLost where this process or this task may not write any more (`schema`)."""


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
