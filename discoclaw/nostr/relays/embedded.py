"""A relay within this program, for whoever has none: `nostr-sdk`'s, listening on this machine only, on disk.

    <folder>/events-<n>/     an LMDB database; the highest n that holds `complete` is in use

Why numbers: LMDB does not destroy what is deleted in it (deleting, even wiping, leaves the bytes in free
pages), so `forget` copies what is to stay into a new database and removes the old one. A kill in the middle
leaves either the old or the new one in use, and the start removes the other.

The library's relay asks the database through this program's event loop, and ends the whole process where an
LMDB file is cut short, or where the process ends while its threads still hold the database. So such a file is
padded before it is opened, and `stop` waits until the database was let go of.
It ignores deletions by address (`a`) where the identifier holds a colon, as ours all do, and answers an older
version of what it has with "error: unknown".
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
from discoclaw.memory.disk.files import sync_folder

log = logging.getLogger(__name__)

_MOST_ROWS: Final = 500
"""Events of one answer; the library gives no more, whatever is asked of it."""
_COPY: Final = 200
"""Events that are in RAM at once while copying."""
_COMPLETE: Final = "complete"
_STEP_S: Final = 0.01
_PATIENCE: Final = 500
"""Steps that the library is waited for: five seconds."""
_NAME = re.compile(r"events-(\d{1,9})")
_ERRORS = (nostr_sdk.NostrSdkError, OSError)
_LMDB_MAGIC: Final = 0xBEEFC0DE
_MOST_BYTES: Final = 2**35
"""Of a database: how much address space the library gives it."""


class EmbeddedRelay:
    """A relay under `folder`, on 127.0.0.1 and `port`; 0 for any free port. `url` is known once it runs."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.url = ""
        self._folder = folder
        self._port = port
        self._number = 0
        self._relay: nostr_sdk.LocalRelay | None = None
        # Only the library holds the database, so that it can be seen when it holds it no more.
        self._held: Callable[[], object] = lambda: None
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        """Listen. Raises SettingsError when the folder or the port can not be used."""
        # Its callbacks into Python need to know their loop, and it keeps only one for all.
        nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
        async with self._busy:
            try:
                self._number = await asyncio.to_thread(self._prepare)
                database = await self._open(self._number)
                await database.count(nostr_sdk.Filter())  # a damaged one shows it here
            except _ERRORS as error:
                place = f"the relay's folder {self._folder}"
                raise SettingsError(
                    f"NOSTR_RELAYS=embedded: {place} can not be used: {_why(error)}; "
                    "move it away, and a new one is made"
                ) from None
            failed = await self._listen(database, self._port)
            del database
            if failed:
                self._relay = None
                await self._silence()
                where = f"port {self._port} of this machine"
                raise SettingsError(f"NOSTR_RELAYS=embedded: no relay can listen on {where}: {failed}")

    async def stop(self) -> None:
        """Listen no more, and let go of the files."""
        async with self._busy:
            await self._silence()

    async def forget(self, ids: Collection[str]) -> None:
        """Destroy events, given by id, and every byte of what was deleted or replaced before.

        Connections break off meanwhile, and the port stays the same. Raises NostrError when it was not
        possible; the relay has what it had then. That an event was deleted is known afterwards only by the
        deletion, which is kept: sent again, the event would be taken.
        """
        async with self._busy:
            if self._relay is None:
                raise NostrError("the embedded relay does not run, so nothing in it can be destroyed")
            await self._silence()
            failed = ""
            database = await self._open(self._number)
            try:
                database = await self._rewritten(database, frozenset(ids))
            except _ERRORS as error:
                failed = f"the embedded relay can not forget: {_why(error)}"
            failed = await self._listen_again(database) or failed
            if failed:
                raise NostrError(failed)
            await asyncio.to_thread(self._prepare)

    async def _listen(self, database: nostr_sdk.NostrLmdb, port: int) -> str:
        """Why it can not; "" when it does. No error, since that would hold on to the database."""
        self._held = weakref.ref(database)
        builder = (
            nostr_sdk.LocalRelayBuilder()
            .addr("127.0.0.1")
            .database(database)
            .rate_limit(nostr_sdk.RateLimit(max_reqs=1_000, notes_per_minute=1_000_000))
            .default_filter_limit(_MOST_ROWS)
            .max_filter_limit(_MOST_ROWS)
        )
        self._relay = (builder.port(port) if port else builder).build()
        try:
            await self._relay.run()
            self.url = str(await self._relay.url())
        except _ERRORS as error:
            return _why(error)
        return ""

    async def _listen_again(self, database: nostr_sdk.NostrLmdb) -> str:
        """The same, on the port it had, as soon as that is free: it is not at once."""
        port = int(self.url.rpartition(":")[2])
        for _ in range(_PATIENCE):
            if not (failed := await self._listen(database, port)):
                return ""
            await asyncio.sleep(_STEP_S)
        self._relay = None
        return f"the embedded relay does not come back on port {port}: {failed}"

    async def _silence(self) -> None:
        """Listen no more, and wait until the library holds the database no more.

        It must not when the process ends. A shutdown is lost on it at times, and so is said again.
        """
        for _ in range(_PATIENCE):
            if self._relay is None and self._held() is None:
                return
            if self._relay is not None:
                self._relay.shutdown()
                if not await _listens(self.url):
                    self._relay = None
            await asyncio.sleep(_STEP_S)
        self._relay = None
        log.error("the embedded relay does not let go of its database")

    async def _open(self, number: int) -> nostr_sdk.NostrLmdb:
        place = self._folder / f"events-{number}"
        place.mkdir(parents=True, exist_ok=True)
        return await nostr_sdk.NostrLmdb.open(str(place))

    async def _rewritten(self, old: nostr_sdk.NostrLmdb, without: frozenset[str]) -> nostr_sdk.NostrLmdb:
        """A new database, to be used from now on, with all that the old one shows but for these."""
        number = await asyncio.to_thread(self._next_number)
        new = await self._open(number)
        async for events in _all(old):
            kept = [event for event in events if event.id().to_hex() not in without]
            await asyncio.gather(*map(new.save_event, kept))  # together they are one transaction
        await asyncio.to_thread(_declare_complete, self._folder / f"events-{number}")
        self._number = number
        return new

    def _next_number(self) -> int:
        """One that no database has, not even one of which a copying was not finished."""
        return max(self._databases(), default=0) + 1

    def _databases(self) -> dict[int, Path]:
        return {int(name[1]): path for path in self._folder.iterdir() if (name := _NAME.fullmatch(path.name))}

    def _prepare(self) -> int:
        """Remove all databases but the one to be used, and say which that is. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = {
            int(name[1]): path for path in self._folder.iterdir() if (name := _NAME.fullmatch(path.name))
        }
        complete = [number for number, path in found.items() if (path / _COMPLETE).exists()]
        chosen = max(complete, default=max(found, default=0) + 1)
        for number, path in found.items():
            if number != chosen:
                shutil.rmtree(path)
        place = self._folder / f"events-{chosen}"
        if chosen not in found:
            place.mkdir(mode=0o700)
            _declare_complete(place)
        _pad(place / "data.mdb")
        return chosen


async def _listens(url: str) -> bool:
    """Whether somebody takes connections there."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def _all(database: nostr_sdk.NostrLmdb) -> AsyncIterator[list[nostr_sdk.Event]]:
    """Every event, newest first, some of them twice."""
    bound = nostr_sdk.Filter()
    while events := await database.query(bound.limit(_COPY)):
        yield events
        oldest = min(event.created_at().as_secs() for event in events)
        second = nostr_sdk.Timestamp.from_secs(oldest)
        yield await database.query(nostr_sdk.Filter().since(second).until(second))
        if not oldest:
            return
        bound = nostr_sdk.Filter().until(nostr_sdk.Timestamp.from_secs(oldest - 1))


def _declare_complete(place: Path) -> None:
    """From now on this database is the one to be used. Raises OSError."""
    with (place / _COMPLETE).open("wb") as file:
        os.fsync(file.fileno())
    sync_folder(place)
    sync_folder(place.parent)


def _pad(file: Path) -> None:
    """Give an LMDB file that was cut short its length again, with zeros. Raises OSError.

    LMDB reads its file as memory, and what is missing there ends the process; for zeros it has an error.
    The first two pages are meta pages: a header of 16 bytes, magic, version, address and size of the map, two
    databases of 48 bytes, of which the first begins with the size of a page, and the last page in use.
    """
    with contextlib.suppress(FileNotFoundError), file.open("r+b") as data:
        head = data.read(65_536 + 152)
        if len(head) < 152:
            return
        magic, page = struct.unpack_from("=I20xI", head, 16)
        if magic != _LMDB_MAGIC or not 256 <= page <= 65_536:
            return  # no such file, which LMDB sees itself
        metas = [head[start : start + 152] for start in (0, page)]
        last = max(struct.unpack_from("=Q", meta, 136)[0] for meta in metas if len(meta) == 152)
        if data.seek(0, os.SEEK_END) < (last + 1) * page <= _MOST_BYTES:
            data.truncate((last + 1) * page)


def _why(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
