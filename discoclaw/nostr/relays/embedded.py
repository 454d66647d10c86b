"""A relay inside this program, for people without one: nostr-sdk's LocalRelay, on loopback, with a database.

    <folder>/events-<n>/     an LMDB database; the one with the highest n that contains `complete` is in use

LMDB does not destroy what is deleted: even after wiping, the bytes stay in free pages. So `purge` copies
what is left into a new database and removes the old one. After a kill in the middle, either the old or the
new one is in use, and the next start removes the other.

What the library requires of us:
- Its relay calls the database through this program's event loop.
- It ends the whole process when an LMDB file is cut short, or when the process ends while the library's
  threads still hold the database. So a short file is padded before it is opened, and `stop` waits for them.
- A connection that is just being opened misses a shutdown, and goes on reading from the old database. So
  clients connect to a port of ours, which forwards them, and we cut their connections ourselves.
- It ignores deletions by address (`a`) when the identifier contains a colon, as all of ours do.
- It answers an older version of an event with "error: unknown".
"""

import asyncio
import contextlib
import logging
import os
import re
import shutil
import struct
import weakref
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Final

import nostr_sdk

from discoclaw.core.errors import NostrError, SettingsError
from discoclaw.store.files import close_files, make_folder, opener, read_in_thread, sync_folder

log = logging.getLogger(__name__)

_MAX_EVENTS: Final = 500
"""Events in one answer. The library's default, which it keeps even for a larger `limit`."""
_COPY_BATCH: Final = 200
"""Events held in memory at once while copying."""
_COMPLETE: Final = "complete"
_STEP_S: Final = 0.01
_MAX_STEPS: Final = 500
"""Steps to wait for the library: five seconds."""
_NAME = re.compile(r"events-(\d{1,9})")
_ERRORS = (nostr_sdk.NostrSdkError, OSError)
_LMDB_MAGIC: Final = 0xBEEFC0DE
_MAX_MAP_BYTES: Final = 2**35
"""Address space that the library gives a database; a larger size in a file is damage."""


class EmbeddedRelay:
    """A relay with its database in `folder`, on 127.0.0.1. Port 0 means any free port.

    `url` is known once it runs.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.url = ""
        self._folder = folder
        self._port = port
        self._number = 0
        self._relay: nostr_sdk.LocalRelay | None = None
        self._relay_port = 0
        self._forward = PortForward()
        # Weak, so that only the library holds the database and we can see when it lets go of it.
        self._database_ref: Callable[[], object] = lambda: None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Open the database and listen. Raises SettingsError when the folder or the port can't be used."""
        # The library's callbacks into Python need the event loop, and it keeps one for the whole process.
        nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
        async with self._lock:
            try:
                self._number = await read_in_thread(self._prepare)
                database = await self._open(self._number)
                await database.count(nostr_sdk.Filter())  # a damaged database fails here
            except _ERRORS as error:
                raise SettingsError(
                    f"NOSTR_RELAYS=embedded: cannot use the relay's folder {self._folder}: "
                    f"{_error_text(error)}; move it away, and a new one is made"
                ) from None
            failed = await self._serve(database)
            del database
            if not failed:
                try:
                    self.url = f"ws://127.0.0.1:{await self._forward.open(self._port)}"
                    return
                except OSError as error:
                    failed = _error_text(error)
            await self._stop_serving()
            where = f"port {self._port} of this machine"
            raise SettingsError(f"NOSTR_RELAYS=embedded: cannot listen on {where}: {failed}")

    async def stop(self) -> None:
        """Stop listening, and wait until the files are closed."""
        async with self._lock:
            await self._forward.close()
            await self._stop_serving()

    async def purge(self, ids: Collection[str]) -> None:
        """Destroy the events with these ids, and every byte of what was deleted or replaced before.

        Connections are lost meanwhile, and the port stays the same. Raises NostrError when it fails; the
        relay then has what it had before. Afterwards only the deletion requests, which are kept, tell that
        an event was deleted: the relay would accept the event if somebody sent it again.
        """
        async with self._lock:
            if self._relay is None:
                raise NostrError("the embedded relay does not run, so nothing can be purged from it")
            await self._stop_serving()
            failed = ""
            try:
                database = await self._open(self._number)
            except _ERRORS as error:
                raise NostrError(
                    f"the embedded relay cannot open its database: {_error_text(error)}"
                ) from None
            try:
                # A number that no database has, finished or not.
                number = max(await read_in_thread(self._databases), default=0) + 1
                new = await self._open(number)
                async for events in _all(database):
                    kept = [event for event in events if event.id().to_hex() not in ids]
                    await asyncio.gather(*map(new.save_event, kept))  # together they become one transaction
                await read_in_thread(_mark_complete, self._folder / f"events-{number}")
                self._number, database = number, new
                del new  # or the library would not close it
            except _ERRORS as error:
                failed = f"the embedded relay cannot purge: {_error_text(error)}"
            failed = await self._serve(database) or failed
            if failed:
                raise NostrError(failed)
            await read_in_thread(self._prepare)

    async def _serve(self, database: nostr_sdk.NostrLmdb) -> str:
        """Serve this database.

        Returns why it failed, or "". An exception would keep the database open in its traceback.
        """
        self._database_ref = weakref.ref(database)
        self._relay = (
            nostr_sdk.LocalRelayBuilder()
            .addr("127.0.0.1")
            .database(database)
            # The library's default of 60 events a minute would refuse most of our own mirror.
            .rate_limit(nostr_sdk.RateLimit(max_reqs=1_000, notes_per_minute=1_000_000))
            .default_filter_limit(_MAX_EVENTS)
            .max_filter_limit(_MAX_EVENTS)
            .build()
        )
        try:
            await self._relay.run()
            self._relay_port = int(str(await self._relay.url()).rpartition(":")[2])
        except _ERRORS as error:
            self._relay = None
            return _error_text(error)
        self._forward.lead_to(self._relay_port)
        return ""

    async def _stop_serving(self) -> None:
        """Cut all connections, and wait until the library has closed the database.

        The library sometimes misses a shutdown, so it is repeated until nobody accepts connections.
        """
        self._forward.cut()
        for _ in range(_MAX_STEPS):
            if self._relay is None and self._database_ref() is None:
                return
            if self._relay is not None:
                self._relay.shutdown()
                if not await _listens(self._relay_port):
                    self._relay = None
            await asyncio.sleep(_STEP_S)
        self._relay = None
        log.error("the embedded relay did not close its database within %.0f s", _MAX_STEPS * _STEP_S)

    async def _open(self, number: int) -> nostr_sdk.NostrLmdb:
        place = self._folder / f"events-{number}"
        make_folder(place)
        database = await nostr_sdk.NostrLmdb.open(str(place))
        close_files(place)  # the library makes them readable by everybody
        return database

    def _databases(self) -> dict[int, Path]:
        """All databases by their number."""
        return {int(name[1]): path for path in self._folder.iterdir() if (name := _NAME.fullmatch(path.name))}

    def _prepare(self) -> int:
        """Remove all databases but the one in use, and return its number. Raises OSError."""
        make_folder(self._folder)
        found = self._databases()
        complete = [number for number, path in found.items() if (path / _COMPLETE).exists()]
        chosen = max(complete, default=max(found, default=0) + 1)
        for number, path in found.items():
            if number != chosen:
                shutil.rmtree(path)
        place = self._folder / f"events-{chosen}"
        if chosen not in found:
            make_folder(place)
            _mark_complete(place)
        _pad(place / "data.mdb")
        return chosen


async def _listens(port: int) -> bool:
    """Whether anybody accepts connections on this port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def _all(database: nostr_sdk.NostrLmdb) -> AsyncIterator[list[nostr_sdk.Event]]:
    """Every event in batches, newest first. Events of a batch's oldest second come twice.

    Paging by time alone would miss events when a batch ends inside a second.
    """
    bound = nostr_sdk.Filter()
    while events := await database.query(bound.limit(_COPY_BATCH)):
        yield events
        oldest = min(event.created_at().as_secs() for event in events)
        second = nostr_sdk.Timestamp.from_secs(oldest)
        yield await database.query(nostr_sdk.Filter().since(second).until(second))
        if not oldest:
            return
        bound = nostr_sdk.Filter().until(nostr_sdk.Timestamp.from_secs(oldest - 1))


def _mark_complete(place: Path) -> None:
    """Make this database the one in use. Raises OSError."""
    with open(place / _COMPLETE, "wb", opener=opener) as file:
        os.fsync(file.fileno())
    sync_folder(place)
    sync_folder(place.parent)


def _pad(file: Path) -> None:
    """Restore the length of an LMDB file that was cut short, with zeros. Raises OSError.

    LMDB maps its file into memory: reading beyond the end kills the process, but reading zeros is an error.
    The first two pages are meta pages: a header of 16 bytes, magic, version, address and size of the map, two
    databases of 48 bytes, of which the first begins with the size of a page, and the last page in use.
    """
    with contextlib.suppress(FileNotFoundError), file.open("r+b") as data:
        head = data.read(65_536 + 152)
        if len(head) < 152:
            return
        magic, page = struct.unpack_from("=I20xI", head, 16)
        if magic != _LMDB_MAGIC or not 256 <= page <= 65_536:
            return  # not an LMDB file, which LMDB itself reports
        metas = [head[start : start + 152] for start in (0, page)]
        last = max(struct.unpack_from("=Q", meta, 136)[0] for meta in metas if len(meta) == 152)
        if data.seek(0, os.SEEK_END) < (last + 1) * page <= _MAX_MAP_BYTES:
            data.truncate((last + 1) * page)


def _error_text(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200] or type(error).__name__


# ---------------------------------------------------------------------- the port

_CHUNK_BYTES: Final = 65_536


class PortForward:
    """Listens on 127.0.0.1. A connection waits until `lead_to` has said where to, and ends with `cut`."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._target = 0
        self._leads = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self, port: int) -> int:
        """Listen on this port, 0 for any free one. Returns the port. Raises OSError."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = asyncio.create_task(self._serve(reader, writer))
            self._connections.add(connection)
            connection.add_done_callback(self._connections.discard)
            connection.add_done_callback(lambda _: writer.close())  # also when it never began

        self._server = await asyncio.start_server(connected, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    def lead_to(self, target: int) -> None:
        """Pass connections on to this port from now on, also those that wait."""
        self._target = target
        self._leads.set()

    def cut(self) -> None:
        """End all connections. New ones wait for the next `lead_to`."""
        self._leads.clear()
        for connection in self._connections:
            connection.cancel()

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await self._leads.wait()
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
            with contextlib.closing(target_writer):
                await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the reader's end, and then close the writer, so that the other direction ends too."""
    with contextlib.closing(writer), contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
