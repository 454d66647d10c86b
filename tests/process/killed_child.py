"""Clears, takes back and erases in processes that are killed between any two of their writes.

Run as `python -m tests.process.killed_child`. A line of the input is what `run` takes, as JSON: see
`in_forks`.
A write is a call of the port to the store (`Counted`), a change to a file, or a commit in an SQLite file.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.draft import Origin
from discoclaw.core.subject import user_subject
from discoclaw.search.archive import Amend, Archive
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.session.archiving import words_of
from discoclaw.settings import Settings
from discoclaw.storage import Storage, build, disks_of
from tests.memory.kills import in_forks

WRITING = {"append", "cut", "replace", "keep_aside", "write", "change", "remove", "wipe", "write_at_once"}
_BEGINNINGS = ("COMMIT", "VACUUM", "INSERT", "UPDATE", "DELETE", "PRAGMA wal_checkpoint")


class Counted:
    """A store, or a part of it, that says what it is about to write. To everybody else it is the store."""

    def __init__(self, port: Any, before: Callable[[str], None], about: str = "") -> None:
        self._port = port
        self._before = before
        self._about = about

    @property
    def __class__(self) -> Any:
        return type(self._port)

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise AttributeError

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name in ("ledgers", "tables"):
            return Counted(found, self._before, name)
        if name in ("log", "documents"):
            return lambda folder: Counted(found(folder), self._before, str(Path(folder).parent / folder))
        if name == "hold":
            return lambda *given: (Counted((held := found(*given))[0], self._before, self._about), *held[1:])
        if name not in WRITING:
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._before(f"{name} {self._about}")
            return found(*args, **kwargs)

        return counted


class Doom:
    """Kills this process right before its `step`th write from `begin` on; 0 is never."""

    def __init__(self, step: int, data: Path) -> None:
        self._step = step
        self._data = data
        self._begun = False
        self.kinds: list[str] = []
        connect = sqlite3.connect

        def watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            db = connect(*args, **kwargs)
            db.set_trace_callback(lambda statement: self._statement(db, statement))
            return db

        sqlite3.connect = watched  # type: ignore[assignment]
        sys.addaudithook(self._look)

    def begin(self) -> None:
        self._begun = True

    def before(self, kind: str) -> None:
        if not self._begun:
            return
        self.kinds.append(kind)
        if len(self.kinds) == self._step:
            os.kill(os.getpid(), signal.SIGKILL)

    def _look(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("os.rename", "os.remove") and str(self._data) in str(args[0]):
            self.before(f"{event} {Path(args[0]).parent.relative_to(self._data.parent)}")

    def _statement(self, db: sqlite3.Connection, statement: str) -> None:
        if statement.startswith(_BEGINNINGS) and (statement.startswith("COMMIT") or not db.in_transaction):
            self.before(" ".join(statement.split()[:3]))


async def _act(storage: Storage, what: str, ann: str, session: str, word: str) -> None:
    if what == "clear":
        await storage.summaries.clear(session, by=ann)
    elif what == "forget":
        subject = user_subject(ann)
        (item,) = (one for one in (await storage.memory.view(subject)).active() if word in one.text)
        await storage.memory.change(subject, "why", lambda draft: draft.deprecate(item, Origin("stated")))
    elif what == "opt out":
        await storage.people.choices.choose(ann, opted_out=True)
    else:
        await storage.memory.erase(user_subject(ann))


def run(
    step: int, given: dict[str, Any], now: int, what: str, ann: str, session: str, word: str = "zsh"
) -> list[str]:
    settings = Settings(_env_file=None, **given)
    doom = Doom(step, settings.data_dir)
    if what == "edit":
        archive = Archive(ArchiveFile(settings.memory_dir / "archive.sqlite", clock=lambda: now))
        doom.begin()
        archive.write([Amend("1", ann, "a cat")], words=words_of, consent=UNLIMITED)
        return doom.kinds
    stores = disks_of(settings)
    counted: Any = Counted(stores.used, doom.before)
    storage = build(settings, clock=lambda: now, stores=replace(stores, used=counted), for_admin=True)

    async def live() -> None:
        storage.open()
        await storage.processes.start()
        storage.load()
        await storage.purger.start()
        doom.begin()
        await _act(storage, what, ann, session, word)
        await storage.purger.settle()

    asyncio.run(live())
    return doom.kinds


if __name__ == "__main__":
    in_forks(run)
