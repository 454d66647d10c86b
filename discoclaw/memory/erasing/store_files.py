"""The files of one store that have something about people, each kind as one part of the registry.

An erasing visits them in this order, so that after being killed it finds again what it has to do. Last, it
destroys what a database still stores of removed rows.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from discoclaw.core.purge import Derived, Purge, Purged
from discoclaw.core.subject import dm_of, group_of, user_of
from discoclaw.core.times import snowflake_at
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.cursors import people_of, read_surely
from discoclaw.memory.erasing.groups import GroupRecords
from discoclaw.memory.kept import JSON, called, json_names, remove_named
from discoclaw.store.files import in_thread, render_json, session_name, sweep
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING, TOOLS, Disk, Documents

T = TypeVar("T")

OUTSIDE = ("transparency",)
"""Cursors about content outside, by user id. An entry is removed with that content, in a later step."""


_OF_ONE = re.compile(
    r"(access|asked|facts|groups-of|hatching|hygiene(?!-due-)|people|questions|summary|tidied|withdrawn)-"
)
_ASIDE = re.compile(r"\.json\.corrupt-")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class OnDisk(Derived):
    """What lies in one place; `remove` carries out an erasing there. It blocks, and raises OSError."""

    def __init__(self, name: str, remove: Callable[[Purge], Purged], *, local: bool = False) -> None:
        self.name = name
        self.local = local
        self._remove = remove

    def erase(self, purge: Purge) -> Purged:
        try:
            return self._remove(purge)
        except OSError as error:
            return Purged(left=(str(error),))


def files_of(disk: Disk, snapshots: Documents, *, local: bool = False) -> list[Derived]:
    """The parts of one store; `snapshots` lie beside all stores. `local`: no other process uses it."""

    def named(name: str, folder: Documents, names: Callable[[Purge], Collection[str]]) -> OnDisk:
        """The texts of a folder that are named after a person."""
        return OnDisk(name, lambda purge: remove_named(folder, names(purge)))

    parts: list[Derived] = [
        GroupRecords(disk, snapshots),
        named("ledgers", disk.documents(LEDGERS), _lines),
        named("tool calls", disk.documents(TOOLS), _lines),
        named("summaries", disk.documents(ROLLING), _summaries),
        named("profiles", disk.documents(PROFILES), _user),
        *([named("durable files", FileDocuments(disk.durable), _user)] if disk.durable is not None else []),
        named("group files", disk.documents(GROUPS), _group),
        CopiesAside(disk),
        CursorFiles(disk.documents(CURSORS), sound=disk.shared),
        OnDisk("clears and answers", partial(_unname, disk)),
        OnDisk("freed space", partial(_wipe, disk)),
    ]
    for part in parts:
        part.local = local
    return parts


def files_beside(
    snapshots: Documents, listed: Callable[[], Iterable[tuple[Path, Iterable[str]]]], *, shared: bool
) -> list[Derived]:
    """The parts that lie beside the stores: views' snapshots, and what killed writes left (`listed`).

    Leftovers may have anybody's words. If a store is `shared`, another process may remove group records.
    """
    return [
        OnDisk("snapshots", partial(_remove_snapshots, snapshots, shared), local=True),
        OnDisk("leftovers", lambda purge: Purged(left=tuple(sweep(listed())[1])), local=True),
    ]


def _lines(purge: Purge) -> set[str]:
    return {f"{purge.subject}.jsonl"}


def _summaries(purge: Purge) -> set[str]:
    return {session_name(key) for key in purge.sessions} if user_of(purge.subject) is not None else set()


def _user(purge: Purge) -> set[str]:
    user = user_of(purge.subject)
    return {f"{user}{JSON}"} if user is not None else set()


def _group(purge: Purge) -> set[str]:
    group = group_of(purge.subject)
    return {f"{group}{JSON}"} if group is not None else set()


def _unname(disk: Disk, purge: Purge) -> Purged:
    """Remove a person from clears and answers, and what a killed writer or an editor left beside them."""
    if (user := user_of(purge.subject)) is None:
        return Purged()
    clears.erase(disk.log(clears.FILE), user)
    answers.erase(disk, user)
    folder = disk.documents("")
    copies = [name for name in called(folder, {clears.FILE}) if name != clears.FILE]
    return Purged(left=tuple(folder.remove(copies)[1]))


def _wipe(disk: Disk, purge: Purge) -> Purged:
    """Destroy what a database still stores of removed rows."""
    disk.wipe()
    return Purged()


def _remove_snapshots(folder: Documents, shared: bool, purge: Purge) -> Purged:
    """Remove a subject's snapshot, and those of groups that may have the person's words."""
    done = remove_named(folder, {f"{purge.subject}{JSON}"})
    if shared and user_of(purge.subject) is not None:
        groups = [one for one in folder.names() if group_of(one.lstrip(".#~")) is not None]
        done += Purged(left=tuple(folder.remove(groups)[1]))
    return done


class CursorFiles(Derived):
    """The cursors of one store: where people talked, whose words a summary has, what a mirror shows of them.

    If the store's texts are all `sound`, those about one person name no other. The cursor `people-<session>`
    says whose words are in a summary, and under which names; for a summary by an earlier version, the
    sessions in the person's own cursor do. The cursors `summary-<session>` are not removed but advanced to
    the time of the erasing: they hold only ids of messages, and old talk must count as seen. The person's DM
    needs none: the cursor's name identifies the person, and the tombstone covers everything that was said
    there.
    """

    name = "cursors"

    def __init__(self, folder: Documents, *, sound: bool = False) -> None:
        self._folder = folder
        self._sound = sound

    def sessions_on_disk(self, subject: str) -> Iterable[str]:
        user = user_of(subject)
        if user is None:
            return ()
        learned = read_surely(self._folder, session_name(f"facts-{user}"))
        found = {dm_of(user), *(key for key, seen in learned.items() if isinstance(seen, str))}
        for name in json_names(self._folder):
            value = read_surely(self._folder, name) if name.startswith("people-") else {}
            session = value.get("session")
            if isinstance(session, str) and user in people_of(value):
                found.add(session)
        return found - {""}

    def outside(self, subject: str) -> Collection[str]:
        user = user_of(subject)
        return {step for step in OUTSIDE if user in read_surely(self._folder, session_name(step))}

    def erase(self, purge: Purge) -> Purged:
        user = user_of(purge.subject)
        names = {purge.subject} if user is None else {purge.subject, user}
        own = {session_name(f"summary-{dm_of(name)}") for name in names}
        gone = own | {session_name(f"people-{key}") for key in purge.sessions}
        seen = {session_name(f"summary-{key}") for key in purge.sessions} - own
        kept = {session_name(step) for step in purge.outside}
        ours = tuple(f"-{name}{JSON}" for name in names)
        try:
            gone |= {name for name in json_names(self._folder) if name.endswith(ours)}
        except OSError as error:
            return Purged(left=(f"{self._folder.folder}: {error}",))
        removed, stays = remove_named(self._folder, gone), list[str]()
        try:
            for name in json_names(self._folder):
                if name in seen:
                    stays += self._rewrite(name, _advanced, purge.at)
                elif name not in kept and not (self._sound and _OF_ONE.match(name)):
                    stays += self._rewrite(name, _without, names)
        except OSError as error:
            stays = [f"{self._folder.folder}: {error}"]
        return removed + Purged(left=tuple(stays))

    def _rewrite(
        self, name: str, change: Callable[[str, Mapping[str, object], T], Mapping[str, object]], by: T
    ) -> list[str]:
        """Change one cursor. An unreadable one is removed: it may be lost, and it may name anybody."""
        try:
            before = read_surely(self._folder, name)
            after = change(name, before, by)
            if not after:
                return self._folder.remove([name])[1]
            if after != before:
                self._folder.write(name, render_json(after))
        except OSError as error:
            return [f"{self._folder.folder / name}: {error.strerror or error}"]
        return []


def _advanced(file: str, value: Mapping[str, object], at: int) -> Mapping[str, object]:
    known = value.get("upTo")
    up_to = int(known) if isinstance(known, str) and known.isascii() and known.isdigit() else 0
    return {"upTo": str(max(up_to, snowflake_at(at)))}


def _without(file: str, value: Mapping[str, object], names: Collection[str]) -> Mapping[str, object]:
    """A cursor without a subject, if it has people or conversations in it; the loops' have other keys."""
    if file.startswith(("facts-", "summary-", "people-")):
        return value
    theirs = frozenset({*names, *map(dm_of, names)})
    return {key: _rest(one, theirs) for key, one in value.items() if key not in theirs}


def _rest(value: object, theirs: Collection[str]) -> object:
    """The rest of a part of a cursor: of the subjects in a list, or of a map by subject."""
    if isinstance(value, dict):
        return {key: _rest(one, theirs) for key, one in value.items() if key not in theirs}
    if isinstance(value, list):
        return [_rest(one, theirs) for one in value if not (isinstance(one, str) and one in theirs)]
    return value


class CopiesAside(Derived):
    """Damaged summaries and files of groups and profiles that were kept beside the good ones."""

    name = "damaged copies"

    def __init__(self, disk: Disk) -> None:
        self._folders = [disk.documents(name) for name in (ROLLING, GROUPS, PROFILES)]

    async def purge_disk(self, purge: Purge) -> None:
        """Remove the copies that have the words; for somebody who wants no memory, all copies."""

        def remove() -> None:
            for folder in self._folders:
                copies = [name for name in folder.names() if _ASIDE.search(name)]
                gone = [one for one in copies if purge.everything or _holds(folder.read(one), purge)]
                if left := folder.remove(gone)[1]:
                    raise OSError("; ".join(left))

        if not purge.open_only:
            await in_thread(remove)


def _holds(content: bytes, purge: Purge) -> bool:
    """Whether a damaged file has the words, as text or as JSON writes it."""
    text = content.decode("utf-8", "ignore")
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return purge.words.hold(text) or purge.words.hold(plain)
