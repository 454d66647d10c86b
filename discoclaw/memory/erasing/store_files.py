"""Every part that holds something about people, in one registry, and the files of a store among them.

What is named after the subject of an erasing leaves each folder there is, whichever part keeps it: a new
folder is listed nowhere. Only what has another name, or many people in it, has a part of its own here. An
erasing visits these in their order, so that after being killed it finds again what it has to do. Last, it
destroys what a database still stores of removed rows.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import TypeVar

from discoclaw.core.errors import LeaseLost, MemoryFault
from discoclaw.core.purge import NOTHING_PURGED, Derived, Outcome, Phase, Purge, Purged
from discoclaw.core.subject import dm_of, group_of, user_of
from discoclaw.core.times import snowflake_at
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.cursors import read_surely, sessions_in
from discoclaw.memory.erasing.groups import GroupRecords
from discoclaw.memory.kept import JSON, called, json_names, remove_named
from discoclaw.memory.subjects.entries import Entries
from discoclaw.store.files import in_thread, render_json, session_name, sweep
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import CHOICES, CURSORS, DURABLE, INTENTS, LEDGERS, ROLLING, Disk, Documents

log = logging.getLogger(__name__)
T = TypeVar("T")

OUTSIDE = ("transparency",)
"""Cursors about content outside, by user id. An entry is removed with that content, in a later step."""


STAY = frozenset({CHOICES, CURSORS, INTENTS})
"""The folders whose texts named after a person outlive an erasing, or are removed by `CursorFiles`."""
_OF_ONE = re.compile(
    r"(access|asked|facts|groups-of|hatching|hygiene(?!-due-)|people|questions|summary|tidied|withdrawn)-"
)
_ASIDE = re.compile(r"\.json\.corrupt-")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class Registry:
    """Every part that holds something about people, and the way of a purge through them.

    `files` are the store's own, visited last: by then no other part writes anything of the person. `cursors`
    are the cursors of each store.
    """

    def __init__(self, files: Iterable[Derived] = (), cursors: Iterable[Documents] = ()) -> None:
        self._parts: list[Derived] = []
        self._files = list(files)
        self._cursors = list(cursors)

    def add(self, *parts: Derived) -> None:
        """Register parts behind those that are there. One that is there already is not visited twice."""
        self._parts += [part for part in parts if part not in self._parts]

    def ram(self, purge: Purge) -> Purged:
        """Remove it from the RAM of all parts, even if one of them fails. Never blocks."""
        return self._at_once(purge, "ram")

    async def disk(self, purge: Purge, *, local: bool | None = None, elsewhere: bool = False) -> Purged:
        """Remove it from the disk of all parts, even if one of them fails; `left` says what stays and why.

        With `local`, only from the parts that are this machine's alone, or from all others. `elsewhere`:
        another process does it too, so the files of the store are left to that one. Raises LeaseLost.
        """
        removed = NOTHING_PURGED
        for part in self:
            if local not in (None, part.local) or (elsewhere and part in self._files and not part.local):
                continue
            try:
                outcome = part.purge(purge, "disk")
                if (done := await outcome if isawaitable(outcome) else outcome) is not None:
                    removed += done
            except LeaseLost:
                raise  # whoever has the lease now goes on
            except (MemoryFault, OSError) as error:
                removed += Purged(left=(str(error),))
        return removed

    def done(self, purge: Purge) -> None:
        """Tell all parts that everything is gone which a purge's subject took back so far."""
        self._at_once(purge, "done")

    def _at_once(self, purge: Purge, phase: Phase) -> Purged:
        removed = NOTHING_PURGED
        for part in self:
            try:
                outcome = part.purge(purge, phase)
                assert not isawaitable(outcome)
                if outcome is not None:
                    removed += outcome
            except Exception:  # deliberately broad: whatever fails in one part, it has to leave the others
                log.exception("%s: %s could not be purged (%s)", purge.subject, part.name, phase)
        return removed

    def outside(self, subject: str) -> set[str]:
        """Names of the steps that an erasing of a subject has to take outside. Blocking. Raises OSError."""
        return {step for part in self for step in part.outside(subject)}

    def sessions_on_disk(self, subject: str) -> set[str]:
        """The conversations with words of a subject that cursors name. Blocking. Raises OSError."""
        return {session for folder in self._cursors for session in sessions_in(folder, subject)}

    def __iter__(self) -> Iterator[Derived]:
        return iter((*self._parts, *self._files))


class OnDisk(Derived):
    """What lies in one place; `remove` carries out an erasing there. It blocks, and raises OSError."""

    def __init__(self, name: str, remove: Callable[[Purge], Purged], *, local: bool = False) -> None:
        self.name = name
        self.local = local
        self._remove = remove

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        return in_thread(self._remove, purge) if phase == "disk" and purge.erases else None


def files_of(
    disk: Disk, snapshots: Documents, entries: Entries | None = None, *, local: bool = False
) -> list[Derived]:
    """The parts of one store; `snapshots` lie beside all stores. `local`: no other process uses it.

    `entries` are the subjects in RAM, if this is the store that is used.
    """

    def wiped(purge: Purge) -> Purged:
        disk.wipe()  # what a database still stores of removed rows
        return NOTHING_PURGED

    parts: list[Derived] = [
        GroupRecords(disk, snapshots, entries),
        OnDisk("named files", partial(_remove_named, disk)),
        CopiesAside(disk),
        CursorFiles(disk.documents(CURSORS), sound=disk.shared),
        OnDisk("clears and answers", partial(_unname, disk)),
        OnDisk("freed space", wiped),
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


def _remove_named(disk: Disk, purge: Purge) -> Purged:
    """Remove what is named after a subject or its id from all folders, and a person's summaries."""
    ids = {purge.subject, purge.user_id, group_of(purge.subject)} - {"", None}
    names = {f"{one}{ending}" for one in ids for ending in (JSON, ".jsonl")}
    places = {one.folder: one for one in map(disk.documents, disk.folders() - STAY)}
    if disk.durable is not None:  # it may lie elsewhere
        places[disk.durable] = FileDocuments(disk.durable)
    done = NOTHING_PURGED
    if purge.user_id:
        done += remove_named(disk.documents(ROLLING), set(map(session_name, purge.sessions)))
    for folder in places.values():
        done += remove_named(folder, names)
    return done


def _unname(disk: Disk, purge: Purge) -> Purged:
    """Remove a person from clears and answers, and what a killed writer or an editor left beside them."""
    if not purge.user_id:
        return NOTHING_PURGED
    clears.erase(disk.log(clears.FILE), purge.user_id)
    answers.erase(disk, purge.user_id)
    folder = disk.documents("")
    copies = [name for name in called(folder, {clears.FILE}) if name != clears.FILE]
    return Purged(left=tuple(folder.remove(copies)[1]))


def _remove_snapshots(folder: Documents, shared: bool, purge: Purge) -> Purged:
    """Remove a subject's snapshot, and those of groups that may have the person's words."""
    done = remove_named(folder, {f"{purge.subject}{JSON}"})
    if shared and purge.user_id:
        groups = [one for one in folder.names() if group_of(one.lstrip(".#~")) is not None]
        done += Purged(left=tuple(folder.remove(groups)[1]))
    return done


class CursorFiles(Derived):
    """The cursors of one store: where people talked, whose words a summary has, what a mirror shows of them.

    If the store's texts are all `sound`, those about one person name no other. The cursors
    `summary-<session>` are not removed but advanced to the time of the erasing: they hold only ids of
    messages, and old talk must count as seen. The person's DM needs none: the cursor's name identifies the
    person, and the tombstone covers everything that was said there.
    """

    name = "cursors"

    def __init__(self, folder: Documents, *, sound: bool = False) -> None:
        self._folder = folder
        self._sound = sound

    def outside(self, subject: str) -> Collection[str]:
        user = user_of(subject)
        return {step for step in OUTSIDE if user in read_surely(self._folder, session_name(step))}

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        return in_thread(self._erase, purge) if phase == "disk" and purge.erases else None

    def _erase(self, purge: Purge) -> Purged:
        """Remove a person from all of them. Raises OSError."""
        user = user_of(purge.subject)
        names = {purge.subject} if user is None else {purge.subject, user}
        own = {session_name(f"summary-{dm_of(name)}") for name in names}
        gone = own | {session_name(f"people-{key}") for key in purge.sessions}
        seen = {session_name(f"summary-{key}") for key in purge.sessions} - own
        kept = {session_name(step) for step in purge.outside}
        ours = tuple(f"-{name}{JSON}" for name in names)
        gone |= {name for name in json_names(self._folder) if name.endswith(ours)}
        removed, stays = remove_named(self._folder, gone), list[str]()
        for name in json_names(self._folder):
            if name in seen:
                stays += self._rewrite(name, _advanced, purge.at)
            elif name not in kept and not (self._sound and _OF_ONE.match(name)):
                stays += self._rewrite(name, _without, names)
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
    """Damaged documents of all folders, kept beside the good ones. Durable files are their person's own."""

    name = "damaged copies"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        # An erasing removes what is named after the person, with the files themselves.
        wanted = phase == "disk" and not purge.erases and not purge.open_only
        return in_thread(self._remove, purge) if wanted else None

    def _remove(self, purge: Purge) -> Purged:
        """Remove the copies that have the words; for somebody who wants no memory, all copies."""
        left = list[str]()
        for folder in map(self._disk.documents, self._disk.folders() - STAY - {LEDGERS, DURABLE}):
            copies = [name for name in folder.names() if _ASIDE.search(name)]
            gone = [one for one in copies if purge.everything or _holds(folder.read(one), purge)]
            left += folder.remove(gone)[1]
        return Purged(left=tuple(left))


def _holds(content: bytes, purge: Purge) -> bool:
    """Whether a damaged file has the words, as text or as JSON writes it."""
    text = content.decode("utf-8", "ignore")
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return purge.words.hold(text) or purge.words.hold(plain)
