"""A whole store as one folder, written and read: how people's memories move to another store.

    everybody.json         {format, version, exported_at, subjects}; written last, when the rest is complete
    people/<subject>/      objects, or people/<subject>.json with its history
    rolling/, cursors/     the same files as in a store of plain files
    tools/, clears.jsonl, usage/   the same (see `logs`)
    profiles/, groups/     the same (see `write_profiles`)
    choices.json, tombstones.jsonl, tombstone.key

A history is restored record by record, so ledgers and durable files get the same bytes as before, unless
records of several replicas were merged into one: these are then ordered by time. What exists already is never
replaced, except choices and tombstones, which are combined. Not included: backup copies, snapshots and other
caches, and the archive of conversations, which is independent of the store. Blocking.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_subject
from discoclaw.core.times import iso_ms, ms_of_iso, valid_ms
from discoclaw.core.usage import Record, record_of
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.disk.files import render_json, safe_id
from discoclaw.memory.disk.new_folder import new_folder
from discoclaw.memory.disk.plain import FileDocuments, FilesDisk
from discoclaw.memory.disk.port import (
    CURSORS,
    GROUPS,
    NO_LOG,
    PROFILES,
    ROLLING,
    TOOLS,
    USAGE,
    Disk,
    Documents,
    joined,
    line_of,
    rewrite,
    values_in,
)
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.cursor_files import people_of
from discoclaw.memory.erasing.group_index import INDEX, OF_PERSON, GroupIndex
from discoclaw.memory.exchange.export import export_json, put_objects
from discoclaw.memory.exchange.layout import Content, parse_json
from discoclaw.memory.exchange.load import load_file
from discoclaw.memory.exchange.objects import check_version
from discoclaw.memory.people import choices, tool_calls
from discoclaw.memory.subjects import changed, ledger
from discoclaw.memory.subjects.inspect import Inspection

# The logs of tool calls, cleared summaries and usage, in the folder of a whole store (see `everybody`).

ErasedAt = Callable[[str], int]
"""When (ms) a subject was last erased; -1 when never."""
_MONTH = re.compile(r"\d{4}-\d\d\.jsonl")


def write_logs(disk: Disk, target: Disk) -> None:
    """Copy the logs of a store to another one that has none."""
    take_logs(disk, target, lambda subject: -1)


def check_logs(disk: Disk) -> None:
    """Raise Refused for a log that belongs to nobody."""
    folder = disk.documents(TOOLS)
    for name in folder.names():
        if tool_calls.subject_of(name) is None:
            raise Refused(f"{folder.folder / name} has no name of ours; move it out of the folder")


def take_logs(source: Disk, target: Disk, erased_at: ErasedAt) -> None:
    """Add the lines of a store to another one to which nobody else writes meanwhile.

    Lines from before the person they are about was erased are left out.
    """
    for name in source.documents(TOOLS).names():
        if (subject := tool_calls.subject_of(name)) is None:
            continue
        calls = tool_calls.read(tool_calls.log_of(source, subject))
        young = [one for one in calls if one.at > erased_at(subject)]
        if young:
            tool_calls.add(tool_calls.log_of(target, subject), young)
    marks = [_logs_without_erased(one, erased_at) for one in clears.read(source.log(clears.FILE))]
    if known := [one for one in marks if one is not None]:
        clears.add(target.log(clears.FILE), known)
    for name in filter(_MONTH.fullmatch, source.documents(USAGE).names()):
        _take_usage(source, target, f"{USAGE}/{name}", erased_at)
    answers.take(source, target, erased_at)


def _take_usage(source: Disk, target: Disk, name: str, erased_at: ErasedAt) -> None:
    """Add a month's usage: what was spent stays, also where its person was erased and is no longer named."""
    records = [one for one in map(record_of, values_in(source.log(name).read())) if one is not None]

    def with_new(before: bytes) -> bytes:
        known = {_key(one) for one in map(record_of, values_in(before)) if one is not None}
        new = [one for one in records if _key(one) not in known]
        return joined(before, b"".join(line_of(_unnamed(one, erased_at).to_json()) for one in new))

    rewrite(target.log(name), with_new)


def _key(record: Record) -> tuple[type[Record], str]:
    return type(record), record.id


def _unnamed(record: Record, erased_at: ErasedAt) -> Record:
    user = record.payer.user
    if user is None or erased_at(user_subject(user)) < record.at:
        return record
    return replace(record, payer=record.payer.without(user))


def _logs_without_erased(clear: Clear, erased_at: ErasedAt) -> Clear | None:
    """A clear without the name of somebody who was erased later; None if it was in their direct messages."""

    def gone(user_id: str | None) -> bool:
        return user_id is not None and erased_at(user_subject(user_id)) >= clear.at

    if gone(person_of(clear.session)):
        return None
    return replace(clear, by=None) if gone(clear.by) else clear


FORMAT = "discoclaw-everybody"
VERSION = 1
LIST, PEOPLE = "everybody.json", "people"

PROGRESS: Final = (
    *("follow-", "withdrawn-", "heartbeat", "hygiene", INDEX, OF_PERSON, changed.INDEX),
    *("inbox:", "inbox-"),
)
"""The beginnings of cursors that say what was done with this store, which means nothing in another one.

Also the inboxes of shards: where one process has everything, nobody would read them, or clear them of people.
"""
_TEXT = re.compile(r"[A-Za-z0-9:_-]{1,200}\.json")
_LONGEST_SUMMARY = 20_000


# ---------------------------------------------------------------------- out


def write_everybody(
    disk: Disk, people: list[Inspection], folder: Path, format_: Literal["json", "objects"], *, now_ms: int
) -> int:
    """Write a whole store as a folder, completely or not at all; return the number of memories.

    `people` are all the people in the store. Raises Refused if the path exists, or if somebody's memory is
    damaged; MemoryFault if the disk fails.
    """
    if faulty := [one for one in people if one.faults]:
        raise Refused(
            f"{faulty[0].subject}: {faulty[0].faults[0]}; "
            "`discoclaw memory verify --repair` brings it in line, so that nothing is lost on the way"
        )
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise Refused(f"{folder} is there already; name a new folder, or empty it first")
        return _write(disk, people, folder.absolute(), format_, now_ms)
    except OSError as error:
        raise MemoryFault(f"{folder} could not be written: {error}") from error


def _write(disk: Disk, people: list[Inspection], folder: Path, format_: str, now_ms: int) -> int:
    memories, people = 0, [one for one in people if one.history.records]
    with new_folder(folder) as made:
        target = FilesDisk(made)
        for one in people:
            place = made / PEOPLE / one.subject
            if format_ == "objects":
                memories += put_objects(one.history, place)
            else:
                content, count = export_json(one.history, one.subject, history_too=True, now_ms=now_ms)
                FileDocuments(place.parent).write(f"{place.name}.json", content)
                memories += count
        for part in (ROLLING, CURSORS):
            source = disk.documents(part)
            for name in filter(_TEXT.fullmatch, source.names()):
                if name.startswith(PROGRESS):
                    continue
                target.documents(part).write(name, source.read(name))
        write_logs(disk, target)
        write_profiles(disk, target)
        _write_decisions(disk, target)
        subjects = [one.subject for one in people]
        head = {"format": FORMAT, "version": VERSION, "exported_at": iso_ms(now_ms), "subjects": subjects}
        target.documents("").write(LIST, render_json(head))
    return memories


def _write_decisions(disk: Disk, target: Disk) -> None:
    here, there = disk.documents(""), target.documents("")
    choices.export(disk, target)
    if tombstones.KEY in here.names():
        there.write(tombstones.KEY, here.read(tombstones.KEY))
    if marks := disk.log(tombstones.FILE).read():
        target.log(tombstones.FILE).append(marks, after=NO_LOG)


# ---------------------------------------------------------------------- in


@dataclass(frozen=True, slots=True)
class Everybody:
    """A folder that was read. `exported_at` is in ms; `disk` reads its other files."""

    what: str
    exported_at: int
    subjects: Mapping[str, Content]
    disk: Disk


def is_everybody(path: Path) -> bool:
    """Whether a path is a folder with a whole store."""
    return path.is_dir() and (path / LIST).is_file()


def load_everybody(folder: Path) -> Everybody:
    """Read and check a folder. Raises Refused, naming what is wrong, and MemoryFault. Writes nothing."""
    try:
        _refuse_links(folder)
        head = parse_json(LIST, (folder / LIST).read_bytes())
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise Refused(f"{LIST} is not of the format {FORMAT!r}; export it again")
        check_version(LIST, head.get("version"))
        names, when = head.get("subjects"), head.get("exported_at")
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise Refused(f"{LIST} has no list of subjects; export it again")
        try:
            at = ms_of_iso(when) if isinstance(when, str) else -1
        except ValueError:
            at = -1
        if at < 0:
            raise Refused(f"{LIST} does not say when it was exported; export it again")
        subjects = {safe_id(name): _content(folder / PEOPLE, name) for name in names}
        for part in (ROLLING, CURSORS):
            _check_texts(FileDocuments(folder / part), _summary if part == ROLLING else _cursor)
        check_logs(FilesDisk(folder))
        check_profiles(FilesDisk(folder))
        _check_decisions(FilesDisk(folder))
    except OSError as error:
        raise MemoryFault(f"{folder} cannot be read: {error}") from error
    return Everybody(f"the store in {folder.name}", at, subjects, FilesDisk(folder))


def _content(people: Path, name: str) -> Content:
    path = people / safe_id(name)
    imported = load_file(path if path.is_dir() else path.with_name(f"{name}.json"))
    return imported.content()


def _refuse_links(folder: Path) -> None:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):
                raise Refused(f"{place}/{name} is a symbolic link; put a copy of the file in its place")


def _check_texts(texts: Documents, read: Callable[[str, bytes], object]) -> None:
    for name in texts.names():
        if not _TEXT.fullmatch(name):
            raise Refused(f"{texts.folder / name} has no name of ours; move it out of the folder")
        read(f"{texts.folder.name}/{name}", texts.read(name))


def _check_decisions(disk: Disk) -> None:
    """Raise MemoryFault if it is unclear who opted out or was erased: these people would be remembered."""
    choices.read(disk)
    tombstones.check(disk)


def _cursor(name: str, content: bytes) -> dict[str, Any]:
    value = parse_json(name, content)
    if not isinstance(value, dict):
        raise Refused(f"{name} is not a cursor; move it out of the folder")
    return value


def _summary(name: str, content: bytes) -> dict[str, Any]:
    value = _cursor(name, content)
    text = value.get("summary")
    if not isinstance(text, str) or len(text) > _LONGEST_SUMMARY or not valid_ms(value.get("updatedAt")):
        raise Refused(f"{name} is not a rolling summary; move it out of the folder")
    return value


def take_texts(everybody: Everybody, disk: Disk, erased_at: ErasedAt, *, any_erased: bool) -> tuple[int, int]:
    """Add summaries, cursors, logs and profiles to a store to which nobody else writes meanwhile.

    Data about people who were erased here after the export is left out. Returns how many summaries and
    cursors are new. Raises OSError.
    """
    take_logs(everybody.disk, disk, erased_at)
    take_profiles(everybody.disk, disk, erased_at, exported_at=everybody.exported_at)
    cursors, taken = everybody.disk.documents(CURSORS), disk.documents(CURSORS)
    brought, known = 0, set(taken.names())
    for name in cursors.names():
        value = _without_erased(_cursor(name, cursors.read(name)), everybody.exported_at, erased_at)
        subject = user_subject(name.removesuffix(".json").rpartition("-")[2])
        if name not in known and value and erased_at(subject) < everybody.exported_at:
            same = value == json.loads(cursors.read(name))
            taken.write(name, cursors.read(name) if same else render_json(value))
            brought += 1
    summaries, kept = everybody.disk.documents(ROLLING), disk.documents(ROLLING)
    stored, known = 0, set(kept.names())
    for name in summaries.names():
        content = summaries.read(name)
        told = _people(cursors, name)
        said = _summary(name, content)["updatedAt"]
        gone = any_erased if told is None else any(erased_at(user_subject(one)) >= said for one in told)
        if name not in known and not gone:
            kept.write(name, content)
            stored += 1
    return stored, brought


def _people(cursors: Documents, name: str) -> set[str] | None:
    """The ids of the users whose words are in a summary; None if unknown."""
    person = person_of(name.removesuffix(".json"))
    if person is not None:
        return {person}
    try:
        return people_of(_cursor(name, cursors.read(f"people-{name}"))) or None
    except FileNotFoundError:
        return None


def _without_erased(value: Mapping[str, Any], exported_at: int, erased_at: ErasedAt) -> dict[str, Any]:
    """A cursor without those of its keys that are people who were erased after the export."""
    return {
        key: one
        for key, one in value.items()
        if max(erased_at(key), erased_at(user_subject(key))) < exported_at
    }


# ---------------------------------------------------------------------- profiles

_JSON = ".json"


def write_profiles(disk: Disk, target: Disk) -> None:
    """Copy the files of all people and groups. Raises OSError."""
    for part in (PROFILES, GROUPS):
        source = disk.documents(part)
        for name in source.names():
            if name.endswith(_JSON) and not name.startswith((".", "#")):
                target.documents(part).write(name, source.read(name))


def check_profiles(disk: Disk) -> None:
    """Raise Refused, naming the file, for one that is not a profile. Raises OSError."""
    for part, read in ((PROFILES, Profile.from_json), (GROUPS, Group.from_json)):
        folder = disk.documents(part)
        for name in folder.names():
            where = f"{part}/{name}"
            try:
                safe_id(name.removesuffix(_JSON))
                read(parse_json(where, folder.read(name)))
            except (ValueError, MemoryFault) as error:
                raise Refused(f"{where} is not what it should be ({error}); move it out") from error


def take_profiles(source: Disk, disk: Disk, erased_at: ErasedAt, *, exported_at: int) -> None:
    """Add the files that don't exist yet, except of people who were erased after the export (ms).

    The ledgers have to be imported first. Raises OSError.
    """
    for user_id, content in _new(source.documents(PROFILES), disk.documents(PROFILES)):
        if erased_at(user_subject(user_id)) < exported_at:
            disk.documents(PROFILES).write(f"{user_id}{_JSON}", content)
    for group_id, content in _new(source.documents(GROUPS), disk.documents(GROUPS)):
        before = Group.from_json(parse_json(group_id, content))
        view = History(ledger.read(disk.ledgers.log(group_subject(group_id))).records).shown()
        group = before.with_view(view)
        for user_id, _ in before.members:
            if erased_at(user_subject(user_id)) >= exported_at:
                group = group.without(user_id)
        GroupIndex(disk).note(group_subject(group_id), [user_id for user_id, _ in group.members])
        same = group == before
        disk.documents(GROUPS).write(f"{group_id}{_JSON}", content if same else render_json(group.to_json()))


def _new(source: Documents, target: Documents) -> Iterator[tuple[str, bytes]]:
    """The files that don't exist yet, by id."""
    known = set(target.names())
    for name in source.names():
        if name not in known:
            yield name.removesuffix(_JSON), source.read(name)
