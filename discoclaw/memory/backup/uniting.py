"""Unites a store with another one that came as a whole: adds what isn't there, and replaces nothing.

Only choices and tombstones are combined; who was erased here stays out. Histories are added record by
record, so ledgers and durable files get the same bytes as there, unless records of several replicas are
merged: these are ordered by time. What belongs to the other data folder alone is left out: the archive, the
outbox, the key, settings, hand edits that weren't taken in, copies that were set aside.

The other store comes as a backup, or as the folder that `memory export --all` wrote in earlier versions:

    everybody.json         {format, version, exported_at, subjects}
    people/<subject>/      objects, or people/<subject>.json with its history
    rolling/, cursors/ …   all else, as below `data/memory/`

Everything is checked before anything is written. Blocking.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_subject
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.core.usage import Record, record_of
from discoclaw.memory import upgrades
from discoclaw.memory.backup.layout import MEMORY, PROGRESS, fits
from discoclaw.memory.backup.reading import into, read_file
from discoclaw.memory.backup.swap import UNPACKED
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.exchange.layout import Content, parse_json
from discoclaw.memory.exchange.load import load_file
from discoclaw.memory.exchange.objects import check_version
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.subjects import ledger
from discoclaw.store import private
from discoclaw.store.files import render_json, safe_id
from discoclaw.store.new_folder import passing_folder
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import (
    ANSWERS,
    CURSORS,
    GROUPS,
    LEDGERS,
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

FORMAT = "discoclaw-everybody"
LIST, PEOPLE = "everybody.json", "people"
"""The list of an earlier export of everybody, and its folder of histories."""
_GZIP = b"\x1f\x8b"
_TAKEN = frozenset(
    {LEDGERS, ROLLING, CURSORS, PROFILES, GROUPS, TOOLS, USAGE, ANSWERS}
    | {clears.FILE, choices.FILE, tombstones.FILE, tombstones.KEY}
)
"""The folders and files of a store that are united with what is here."""
_JSON = ".json"
_TEXT = re.compile(r"[A-Za-z0-9:_-]{1,200}\.json")
_MONTH = re.compile(r"\d{4}-\d\d\.jsonl")
_LONGEST_SUMMARY = 20_000

ErasedAt = Callable[[str], int]
"""When (ms) a subject was last erased; -1 when never."""


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Whole:
    """A store that was read and checked, and when (ms) it was written; `disk` reads all but the histories."""

    at: int
    subjects: Mapping[str, Content]
    disk: Disk


def is_whole(path: Path) -> bool:
    """Whether a path looks like a whole store: it is packed as backups are, or a folder with a list."""
    if path.is_file():
        with suppress(OSError), open(path, "rb") as file:
            return file.read(len(_GZIP)) == _GZIP
    return (path / LIST).is_file()


@contextmanager
def opened(path: Path, beside: Path) -> Iterator[Whole]:
    """Read and check a whole store; a backup is unpacked to a temporary folder below `beside`.

    Raises Refused, naming what is wrong, NewerSchema and MemoryFault.
    """
    packed = not path.is_dir()
    with passing_folder(beside / UNPACKED) if packed else nullcontext(path) as folder:
        try:
            whole = _of_backup(path, folder) if packed else _of_folder(path)
            _check(whole.disk)
        except OSError as error:
            raise MemoryFault(f"{path} cannot be read: {error}") from error
        yield whole


def _of_backup(path: Path, made: Path) -> Whole:
    contents = read_file(path, partial(_into, made))
    root, at = made / "memory", contents.head.at
    private.make_folder(root)
    if contents.head.data:
        upgrades.mark(root, contents.head.data)
    upgrades.upgrade(root, at)
    names = [one.subject for one in contents.members if one.subject is not None]
    subjects = {safe_id(name): load_file(root / LEDGERS / f"{name}.jsonl").content() for name in names}
    return Whole(at, subjects, FilesDisk(root))


def _into(made: Path, name: str) -> AbstractContextManager[BinaryIO | None]:
    """Where a member is unpacked to, if it is one that is taken."""
    wanted = name.removeprefix(MEMORY).partition("/")[0] in _TAKEN
    return into(made, name) if wanted else nullcontext()


def _of_folder(folder: Path) -> Whole:
    _refuse_strange(folder)
    head = parse_json(LIST, (folder / LIST).read_bytes())
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Refused(f"{LIST} is not of the format {FORMAT!r}; export it again")
    check_version(LIST, head.get("version"))
    names = head.get("subjects")
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise Refused(f"{LIST} has no list of subjects; export it again")
    try:
        at = ms_of_iso(str(head.get("exported_at")))
    except ValueError:
        raise Refused(f"{LIST} does not say when it was exported; export it again") from None
    subjects = {safe_id(name): _content(folder / PEOPLE / safe_id(name)) for name in names}
    return Whole(at, subjects, FilesDisk(folder))


def _content(path: Path) -> Content:
    return load_file(path if path.is_dir() else path.with_name(f"{path.name}.json")).content()


def _refuse_strange(folder: Path) -> None:
    """Refuse links, and files in the folders of a store that have no name of ours."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):
                raise Refused(f"{place}/{name} is a symbolic link; put a copy of the file in its place")
        part = os.path.basename(place)
        if Path(place).parent == folder and part in _TAKEN:
            for name in files:
                if not fits(f"{MEMORY}{part}/{name}"):
                    raise Refused(f"{place}/{name} has no name of ours; move it out of the folder")


def _check(disk: Disk) -> None:
    """Raise Refused for a text that is not what it should be.

    Raises MemoryFault if it is unclear who opted out or was erased: these people would be remembered.
    """
    for part, read in (
        (ROLLING, _summary),
        (CURSORS, _cursor),
        (PROFILES, partial(_of_id, Profile.from_json)),
        (GROUPS, partial(_of_id, Group.from_json)),
    ):
        for name, content in _texts(disk.documents(part)):
            read(f"{part}/{name}", content)
    choices.read(disk)
    tombstones.check(disk)


def _texts(source: Documents, target: Documents | None = None) -> Iterator[tuple[str, bytes]]:
    """The texts of a folder that are taken, as far as the target has none of that name.

    No copies that were set aside are, and no cursors about that store alone.
    """
    known = set(target.names()) if target is not None else ()
    without = PROGRESS if source.folder.name == CURSORS else ()
    for name in source.names():
        if _TEXT.fullmatch(name) and not name.startswith(without) and name not in known:
            yield name, source.read(name)


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


def _of_id(read: Callable[[object], object], name: str, content: bytes) -> None:
    try:
        safe_id(Path(name).stem)
        read(parse_json(name, content))
    except (ValueError, MemoryFault) as error:
        raise Refused(f"{name} is not what it should be ({error}); move it out") from error


# ---------------------------------------------------------------------- taking


def take(whole: Whole, disk: Disk, erased_at: ErasedAt, *, any_erased: bool) -> tuple[int, int]:
    """Add summaries, cursors, logs and profiles to a store to which nobody else writes meanwhile.

    Data about people who were erased here after it was written is left out. Returns how many summaries and
    cursors are new. Raises OSError.
    """
    _take_logs(whole.disk, disk, erased_at)
    _take_profiles(whole, disk, erased_at)
    cursors, summaries = whole.disk.documents(CURSORS), whole.disk.documents(ROLLING)
    stored = brought = 0
    for name, content in _texts(cursors, disk.documents(CURSORS)):
        value = _cursor(name, content)
        left = _without_erased(value, whole.at, erased_at)
        subject = user_subject(name.removesuffix(_JSON).rpartition("-")[2])
        if left and erased_at(subject) < whole.at:
            disk.documents(CURSORS).write(name, content if left == value else render_json(left))
            brought += 1
    for name, content in _texts(summaries, disk.documents(ROLLING)):
        told, said = _people(cursors, name), _summary(name, content)["updatedAt"]
        gone = any_erased if told is None else any(erased_at(user_subject(one)) >= said for one in told)
        if not gone:
            disk.documents(ROLLING).write(name, content)
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


def _without_erased(value: Mapping[str, Any], at: int, erased_at: ErasedAt) -> dict[str, Any]:
    """A cursor without those of its keys that are people who were erased after it was written."""
    return {key: one for key, one in value.items() if max(erased_at(key), erased_at(user_subject(key))) < at}


def _take_profiles(whole: Whole, disk: Disk, erased_at: ErasedAt) -> None:
    """Add the files that don't exist yet, except of people who were erased after it was written.

    The ledgers have to be imported first. Raises OSError.
    """
    profiles, groups = disk.documents(PROFILES), disk.documents(GROUPS)
    for name, content in _texts(whole.disk.documents(PROFILES), profiles):
        if erased_at(user_subject(name.removesuffix(_JSON))) < whole.at:
            profiles.write(name, content)
    for name, content in _texts(whole.disk.documents(GROUPS), groups):
        subject, before = group_subject(name.removesuffix(_JSON)), Group.from_json(json.loads(content))
        group = before.with_view(ledger.read(disk.ledgers.log(subject)).history.shown())
        for user_id, _ in before.members:
            if erased_at(user_subject(user_id)) >= whole.at:
                group = group.without(user_id)
        GroupIndex(disk).note(subject, [user_id for user_id, _ in group.members])
        groups.write(name, content if group == before else render_json(group.to_json()))


# ---------------------------------------------------------------------- logs


def _take_logs(source: Disk, target: Disk, erased_at: ErasedAt) -> None:
    """Add the lines of a store to another one to which nobody else writes meanwhile.

    Lines from before the person they are about was erased are left out.
    """
    for name in source.documents(TOOLS).names():
        if (subject := tool_log.subject_of(name)) is None:
            continue
        calls = tool_log.CALLS.read(tool_log.log_of(source, subject))
        young = [one for one in calls if one.at > erased_at(subject)]
        if young:
            tool_log.CALLS.add(tool_log.log_of(target, subject), young)
    marks = [_clear_without_erased(one, erased_at) for one in clears.CLEARS.read(source.log(clears.FILE))]
    if known := [one for one in marks if one is not None]:
        clears.CLEARS.add(target.log(clears.FILE), known)
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


def _clear_without_erased(clear: Clear, erased_at: ErasedAt) -> Clear | None:
    """A clear without the name of somebody who was erased later; None if it was in their direct messages."""

    def gone(user_id: str | None) -> bool:
        return user_id is not None and erased_at(user_subject(user_id)) >= clear.at

    if gone(person_of(clear.session)):
        return None
    return replace(clear, by=None) if gone(clear.by) else clear
