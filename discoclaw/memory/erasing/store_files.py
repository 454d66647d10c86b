"""The files of one store that have something about people, each kind as one part of the registry.

An erasing visits them in this order, so that after being killed it finds again what it has to do. Last, it
destroys what a database still stores of removed rows.
"""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Removed, Withdrawn
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import group_of, user_of
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.erasing.cursor_files import CursorFiles
from discoclaw.memory.erasing.files import JSON, NamedFiles, called, remove_named
from discoclaw.memory.erasing.groups import GroupRecords
from discoclaw.store.files import in_thread, session_name
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING, TOOLS, Disk, Documents
from discoclaw.store.temporary import sweep

_ASIDE = re.compile(r"\.json\.corrupt-")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def files_of(disk: Disk, snapshots: Documents, *, local: bool = False) -> list[PersonalData]:
    """The parts of one store; `snapshots` lie beside all stores. `local`: no other process uses it."""
    durable = FileDocuments(disk.durable) if disk.durable is not None else None
    parts: list[PersonalData] = [
        GroupRecords(disk, snapshots),
        NamedFiles("ledgers", disk.documents(LEDGERS), _lines),
        NamedFiles("tool calls", disk.documents(TOOLS), _lines),
        NamedFiles("summaries", disk.documents(ROLLING), _summaries),
        NamedFiles("profiles", disk.documents(PROFILES), _user),
        *([NamedFiles("durable files", durable, _user)] if durable is not None else []),
        NamedFiles("group files", disk.documents(GROUPS), _group),
        CopiesAside(disk),
        CursorFiles(disk.documents(CURSORS), sound=disk.shared),
        ClearLines(disk),
        FreedSpace(disk),
    ]
    for part in parts:
        part.local = local
    return parts


def _lines(erasure: Erasure) -> set[str]:
    return {f"{erasure.subject}.jsonl"}


def _summaries(erasure: Erasure) -> set[str]:
    return {session_name(key) for key in erasure.sessions} if user_of(erasure.subject) is not None else set()


def _user(erasure: Erasure) -> set[str]:
    user = user_of(erasure.subject)
    return {f"{user}{JSON}"} if user is not None else set()


def _group(erasure: Erasure) -> set[str]:
    group = group_of(erasure.subject)
    return {f"{group}{JSON}"} if group is not None else set()


class ClearLines(PersonalData):
    """The logs of clears and of answers: people's names, and the clears of their direct messages."""

    name = "clears and answers"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lines = disk.log(clears.FILE)
        self._folder = disk.documents("")

    def erase(self, erasure: Erasure) -> Removed:
        """Remove a person, and what a killed writer or an editor left beside the lines."""
        user = user_of(erasure.subject)
        if user is None:
            return Removed()
        try:
            clears.erase(self._lines, user)
            answers.erase(self._disk, user)
            copies = [name for name in called(self._folder, {clears.FILE}) if name != clears.FILE]
            return Removed(left=tuple(self._folder.remove(copies)[1]))
        except OSError as error:
            return Removed(left=(str(error),))


class CopiesAside(PersonalData):
    """Damaged summaries and files of groups and profiles that were kept beside the good ones."""

    name = "damaged copies"

    def __init__(self, disk: Disk) -> None:
        self._folders = [disk.documents(name) for name in (ROLLING, GROUPS, PROFILES)]

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        """Remove the copies that have the words; for somebody who wants no memory, all copies."""
        if not withdrawal.open_only:
            await in_thread(self._withdraw, withdrawal)
        return NOTHING_WITHDRAWN

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        """Raises OSError."""
        for folder in self._folders:
            copies = [name for name in folder.names() if _ASIDE.search(name)]
            gone = [one for one in copies if withdrawal.everything or _holds(folder.read(one), withdrawal)]
            if left := folder.remove(gone)[1]:
                raise OSError("; ".join(left))


def _holds(content: bytes, withdrawal: Withdrawal) -> bool:
    """Whether a damaged file has the words, as text or as JSON writes it."""
    text = content.decode("utf-8", "ignore")
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return withdrawal.words.hold(text) or withdrawal.words.hold(plain)


class Snapshots(PersonalData):
    """The snapshots of views. In a store that is `shared`, another process may have removed group records."""

    name = "snapshots"
    local = True

    def __init__(self, folder: Documents, *, shared: bool) -> None:
        self._folder = folder
        self._shared = shared

    def erase(self, erasure: Erasure) -> Removed:
        """Remove a subject's snapshot, and those of groups that may have the person's words."""
        done = remove_named(self._folder, {f"{erasure.subject}{JSON}"})
        if self._shared and user_of(erasure.subject) is not None:
            try:
                groups = [one for one in self._folder.names() if group_of(one.lstrip(".#~")) is not None]
                done += Removed(left=tuple(self._folder.remove(groups)[1]))
            except OSError as error:
                done += Removed(left=(f"{self._folder.folder}: {error}",))
        return done


class Leftovers(PersonalData):
    """The temporary files of killed writes, which may have anybody's words, in all folders."""

    name = "leftovers"
    local = True

    def __init__(self, listed: Callable[[], Iterable[tuple[Path, Iterable[str]]]]) -> None:
        self._listed = listed

    def erase(self, erasure: Erasure) -> Removed:
        return Removed(left=tuple(sweep(self._listed())[1]))


class FreedSpace(PersonalData):
    """The remains of removed rows in a database."""

    name = "freed space"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def erase(self, erasure: Erasure) -> Removed:
        try:
            self._disk.wipe()
        except OSError as error:
            return Removed(left=(str(error),))
        return Removed()
