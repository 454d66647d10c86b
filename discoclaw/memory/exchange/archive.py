"""An archive: memory that comes from elsewhere as a whole, and the one way in which it is loaded.

    a backup       or the folder that `memory export --all` wrote in earlier versions     `opened`
    relays         what the mirror published, as far as relays still have it              `nostr/recovery`
    a person's     one or several histories or lists of memories, recognised by `load`

Loading checks every history before anything is written, and then adds what isn't here:

    1  profiles and groups    they show a ledger, and who writes them anew keeps what no ledger has
    2  histories              record by record (`take`), so ledgers and durable files get the same bytes as
                              there, unless records of several replicas are merged: these are ordered by time
    3  the other texts        they say what was done with the histories; whose words a summary has comes
                              before the summary

Nothing that is here is replaced, and logs get the lines they lack. An archive that is `ours`, as relays have
it, is a copy of this very memory: of two versions of a text both count, and one history that can't be loaded
holds up no other. What belongs to the other data folder alone is left out: the archive of talk, the outbox,
the key, settings, hand edits that weren't taken in, copies that were set aside.

An export of earlier versions is a folder:

    everybody.json         {format, version, exported_at, subjects}
    people/<subject>/      objects, or people/<subject>.json with its history
    rolling/, cursors/ …   all else, as below `data/memory/`

Callers keep everybody else from the target. Knows nothing about relays or the command line.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault, Refused, faulting
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import History
from discoclaw.core.profile import MOST_MEMBERS, MOST_NAMES, Group, Profile
from discoclaw.core.subject import group_of, group_subject, person_of, user_of
from discoclaw.core.times import valid_ms
from discoclaw.memory.conversations import clears
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.exchange.backup import ENDING, MEMORY, fits
from discoclaw.memory.exchange.files import GZIP, OTHER_FORMS, Folder, kind_of, parse_json
from discoclaw.memory.exchange.histories import (
    COMMITS,
    EVENTS,
    Records,
    check_version,
    read_ledger,
    read_objects,
)
from discoclaw.memory.exchange.load import Content, load_bytes, read_summary
from discoclaw.memory.exchange.restore import PROGRESS, Erase, erased_since, unpack
from discoclaw.memory.exchange.take import Report, records_for
from discoclaw.memory.folder import UNPACKED, upgrade
from discoclaw.memory.people import choices
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import (
    in_thread,
    make_folder,
    opener,
    passing_folder,
    read_in_thread,
    render_json,
    safe_id,
    stamp_of,
)
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
    is_log,
    joined,
    line_of,
    rewrite,
    values_in,
)

FORMAT = "discoclaw-everybody"
LIST, PEOPLE = "everybody.json", "people"
"""The list of an earlier export of everybody, and its folder of histories."""
FIRST, REST = (PROFILES, GROUPS), (TOOLS, USAGE, ANSWERS, CURSORS, ROLLING)
"""The folders that are loaded before and after the histories."""
_UNITED = frozenset({LEDGERS, *FIRST, *REST, clears.FILE, choices.FILE, tombstones.FILE, tombstones.KEY})
"""The folders and files of a backup that are unpacked to be loaded."""
PARALLEL = 4
"""Histories that are written in parallel: while the disk syncs one, the next is assembled."""
STATED = Origin("stated")


@dataclass(slots=True)
class Archive:
    """Memory that was read and checked: histories by subject, other texts and logs by their names in a store.

    `ours`: it is a copy of the memory here, so its texts are united with those here.
    """

    subjects: dict[str, Content]
    texts: Mapping[str, bytes] = field(default_factory=dict)
    ours: bool = False


@dataclass(slots=True)
class Loaded:
    """The result: a report for each subject, and the names of texts and logs that are new or changed here."""

    reports: dict[str, Report] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def count(self, folder: str) -> int:
        """How many texts of a folder are new."""
        return sum(name.startswith(f"{folder}/") for name in self.texts)


# ---------------------------------------------------------------------- loading


async def load(
    archive: Archive,
    memory: Memory,
    *,
    now_ms: Callable[[], int],
    origin: Origin = STATED,
    tell: Callable[[int], None] = lambda done: None,
) -> Loaded:
    """Add what the archive has to a memory that nobody else uses, and report it.

    `origin` is who imports, `tell` is told of each history that is done. Loading the same again changes
    nothing, and goes on after a kill. Raises Refused and MemoryFault, before anything is written if the
    archive is the reason; of one that is `ours` only what concerns all of it, the rest is in the reports.
    """
    disk, unsure, loaded = memory.disk, memory.erased_anybody(), Loaded()
    works = {
        subject: _work(one, memory.erased_at(subject), origin) for subject, one in archive.subjects.items()
    }
    for subject in () if archive.ours else works:
        lines = memory.ledgers.log(subject)
        await memory.act(subject, works[subject], dry=True)
        if damage := (await read_in_thread(ledger.read, lines)).damage:
            raise MemoryFault(f"{lines.path.name}, {damage[0]}; run `discoclaw memory verify --repair` first")

    async def bring(*folders: str) -> None:
        try:
            loaded.texts += await in_thread(bring_texts, archive, disk, folders, unsure, now_ms())
        except OSError as error:
            what, again = ("relays have", "recover") if archive.ours else ("was read", "import it")
            raise MemoryFault(
                f"cannot write what {what}: {error}; free some space on the disk and {again} again"
            ) from error

    async def add(waiting: Iterator[str]) -> None:
        for subject in waiting:
            try:
                loaded.reports[subject] = one = await _add(
                    memory, subject, archive.subjects[subject], works[subject], now_ms
                )
                if one.records or one.items:
                    loaded.texts += await _shown(memory, subject)
            except (Refused, MemoryFault) as fault:
                if archive.ours and not isinstance(fault.__cause__, OSError):
                    loaded.reports[subject] = Report(refused=str(fault))
                elif archive.ours or isinstance(fault, Refused):
                    raise  # with `ours` the disk fails, so the others would fail too
                else:
                    people = "person" if len(works) == 1 else "people"
                    raise MemoryFault(
                        f"{fault}; {len(loaded.reports)} of {len(works)} {people} had been imported before. "
                        "Repeat the import once that is fixed: nothing is imported twice"
                    ) from fault
            tell(1)

    await bring("", *FIRST)
    # All writers take from one iterator, so a large ledger holds up only one of them.
    waiting, faults = iter(sorted(works)), list[Exception]()
    try:  # a group would raise an ExceptionGroup, which callers of MemoryFault don't catch
        async with asyncio.TaskGroup() as group:
            for _ in range(PARALLEL):
                group.create_task(add(waiting))
    except* (Refused, MemoryFault) as failed:
        faults += failed.exceptions
    if faults:
        raise faults[0]
    await bring(*REST)
    loaded.reports = {subject: loaded.reports[subject] for subject in works}
    loaded.texts = list(dict.fromkeys(loaded.texts))
    return loaded


def preview(archive: Archive, disk: Disk, *, now_ms: int) -> Loaded:
    """Report what `load` would do. Nothing is written, so a bot may be using the store. Blocking.

    Raises MemoryFault and OSError.
    """
    decided = tombstones.Tombstones(disk)
    decided.load()
    folders = ("", *FIRST, *REST)
    loaded = Loaded(texts=bring_texts(archive, disk, folders, decided.any(), now_ms, dry=True))
    for subject, content in archive.subjects.items():
        lines = disk.ledgers.log(subject)
        with faulting(f"{lines.path.name} cannot be read"):
            here = ledger.read(lines)
        try:
            if here.damage:
                raise Refused(
                    f"{lines.path.name}, {here.damage[0]}; run `discoclaw memory verify --repair` first"
                )
            work = _work(content, decided.erased_at(subject), STATED)
            loaded.reports[subject] = work(History(here.records), now_ms, sys.maxsize)[1]
        except Refused as refusal:
            loaded.reports[subject] = Report(refused=str(refusal))
    return loaded


def _work(
    content: Content, erased_at: int, origin: Origin
) -> Callable[[History, int, int], tuple[list[Record], Report]]:
    """What makes the records that are added to one subject, when the store asks for them."""
    return lambda history, now_ms, most: records_for(
        content, history, now_ms=now_ms, max_items=most, origin=origin, erased_at=erased_at
    )


async def _add(
    memory: Memory,
    subject: str,
    content: Content,
    work: Callable[[History, int, int], tuple[list[Record], Report]],
    now_ms: Callable[[], int],
) -> Report:
    """Add one history or list of memories. Raises Refused and MemoryFault; nothing has changed then."""
    lines = memory.ledgers.log(subject)
    if isinstance(content, Records):
        with faulting(f"{lines.path.name} cannot be read"):
            if await read_in_thread(_is_here, memory, subject, content):
                return Report(known=len(content.records), notes=content.notes)
            size = await read_in_thread(lines.size)
        if not size:  # so that a durable file that is left counts as a picture of these records
            records, report = await read_in_thread(work, History(), now_ms(), memory.max_items)
            if not records or await memory.restore(subject, records):
                return report
    return await memory.act(subject, work)


def _is_here(memory: Memory, subject: str, content: Records) -> bool:
    """Whether a ledger has each of these lines, and its durable file is there. Lines are not verified.

    A kill may have come between ledger and file. Of most histories nothing is new, and comparing text is far
    cheaper than reading a history.
    """
    if content.gaps or content.unmarked:
        return False
    user_id, folder = user_of(subject), memory.disk.durable
    if user_id is not None and folder is not None and not (folder / f"{user_id}.json").exists():
        return False
    here = frozenset(memory.ledgers.log(subject).read().splitlines())
    return all(encode_line(one).rstrip(b"\n") in here for one in content.records)


async def _shown(memory: Memory, subject: str) -> list[str]:
    """Have the profile or group show what the ledger says now. Returns its name if that changed it.

    Raises MemoryFault.
    """
    user_id, channel_id = user_of(subject), group_of(subject)
    if user_id is None and channel_id is None:
        return []
    kind: type[Profile] | type[Group] = Profile if user_id is not None else Group
    folder, name = PROFILES if user_id is not None else GROUPS, f"{user_id or channel_id}.json"
    documents = memory.disk.documents(folder)
    with faulting(f"cannot write {folder}/{name}"):
        if (before := await read_in_thread(documents.find, name)) is None:
            return []
        view = await memory.view(subject)

        def show(known: bytes | None) -> bytes | None:
            with suppress(ValueError, RecursionError):
                return render_json(kind.from_json(json.loads(known or b"")).with_view(view).to_json())
            return None

        after = await in_thread(documents.change, name, show)
    return [f"{folder}/{name}"] if after != before else []


# ---------------------------------------------------------------------- texts


def bring_texts(
    archive: Archive,
    disk: Disk,
    folders: Iterable[str],
    unsure: bool,
    now_ms: int,
    *,
    dry: bool = False,
) -> list[str]:
    """Add what these folders of a store lack. Returns the names of what is new or changed. Blocking.

    `unsure`: somebody was erased here, so a summary of unknown authors stays out. With `dry` nothing is
    written. Raises OSError and MemoryFault.
    """
    brought = []
    for folder in folders:
        documents = disk.documents(folder)
        for full in sorted(name for name in archive.texts if name.rpartition("/")[0] == folder):
            name, found = full.rpartition("/")[2], archive.texts[full]
            if full == choices.FILE:
                if choices.add_missing(choices.people_of(found), disk, dry=dry):
                    brought.append(full)
                continue
            if is_log(full):
                lines = disk.log(full)
                if (before := lines.read()) != _with_lines(found, before):
                    brought.append(full)
                    if not dry:
                        rewrite(lines, partial(_with_lines, found))
                continue
            here = documents.find(name)
            if here is None:
                if folder == ROLLING and unsure and person_of(name.removesuffix(".json")) is None:
                    authors = archive.texts.get(f"{CURSORS}/people-{name}")
                    if authors is None or not people_of(_cursor(name, authors)):
                        continue
                new_text = found
                if folder == GROUPS:  # as its ledger here has it, if there is one
                    group = Group.from_json(parse_json(name, found))
                    known = ledger.read(disk.ledgers.log(group_subject(Path(name).stem)))
                    if known.records:
                        new_text = render_json(group.with_view(known.history.shown()).to_json())
            elif not archive.ours:
                continue
            else:
                try:
                    value = json.loads(here)
                    if (united := _UNITED_AS[folder](value, json.loads(found))) == value:
                        continue
                    new_text = render_json(united)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    if not dry:
                        documents.keep_aside(name, "corrupt", stamp_of(now_ms))
                    new_text = found
            brought.append(full)
            if not dry:
                if folder == GROUPS:
                    members = Group.from_json(json.loads(new_text)).members
                    GroupIndex(disk).note(group_subject(Path(name).stem), [user_id for user_id, _ in members])
                documents.write(name, new_text)
    return brought


def _with_lines(found: bytes, before: bytes) -> bytes:
    """A log with the lines that it lacks; what isn't a line of ours stays out."""

    def keys(content: bytes) -> dict[tuple[str, bool, bool], object]:
        # Whom a line is about may be known in one store only. A hold becomes a call; `to` may be withdrawn.
        lines = (one for one in values_in(content) if isinstance(one, dict) and "id" in one)
        return {(str(one["id"]), "hold" in one, "to" in one): one for one in lines}

    known = keys(before)
    return joined(before, b"".join(line_of(one) for key, one in keys(found).items() if key not in known))


# Of a copy of this memory: what becomes of the JSON that is here and of the one that was found.


def _united_profile(value: Any, new: Any) -> Any:
    """Names by time, without repetitions in a row, and the earlier `first_seen`.

    Notes and preferences are those on this disk: they are a view of the ledger, which is loaded later.
    """
    here, found = Profile.from_json(value), Profile.from_json(new)
    names: list[tuple[str, int]] = []
    for name, at in sorted({*here.display_names, *found.display_names}, key=lambda one: (one[1], one[0])):
        if not names or names[-1][0] != name:
            names.append((name, at))
    if len(names) > MOST_NAMES:
        names = [names[0], *names[1 - MOST_NAMES :]]
    united = replace(
        here,
        display_names=tuple(names),
        first_seen=min(here.first_seen, found.first_seen),
        other={**found.other, **here.other},
    )
    return united.to_json() if united != here else value


def _united_group(value: Any, new: Any) -> Any:
    """Members ordered by when they spoke last, so members that are new here come first.

    Themes and decisions are those on this disk: they are a view of the ledger, which is loaded later.
    """
    here, found = Group.from_json(value), Group.from_json(new)
    known = {user_id for user_id, _ in here.members}
    members = [*(one for one in found.members if one[0] not in known), *here.members]
    united = replace(
        here,
        purpose=here.purpose if here.purpose is not None else found.purpose,
        members=tuple(members[-MOST_MEMBERS:]),
        other={**found.other, **here.other},
    )
    return united.to_json() if united != here else value


def _united_cursor(here: Any, found: Any) -> Any:
    """The authors of a summary from both: one too many is harmless, one too few would survive an erasure.

    Of how far a summary is, the further one.
    """
    if "people" in found:
        return {**here, **found, "people": sorted(people_of(here) | people_of(found))}

    def up_to(value: Any) -> int:
        text = value.get("upTo")
        return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else -1

    return found if up_to(found) > up_to(here) else here


def _later_summary(here: Any, found: Any) -> Any:
    if not isinstance(here["summary"], str) or not valid_ms(here["updatedAt"]):
        raise ValueError("not a summary")
    return found if found["updatedAt"] > here["updatedAt"] else here


_UNITED_AS: Mapping[str, Callable[[Any, Any], Any]] = {
    PROFILES: _united_profile,
    GROUPS: _united_group,
    CURSORS: _united_cursor,
    ROLLING: _later_summary,
}


# ---------------------------------------------------------------------- reading one from a backup


class StoreTexts(Mapping[str, bytes]):
    """The texts and logs of a store that are loaded, each read when it is asked for. Raises OSError.

    No copy that was set aside is among them, and no cursor about that store alone.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __getitem__(self, name: str) -> bytes:
        folder, _, file = name.rpartition("/")
        if is_log(name):
            return self._disk.log(name).read()
        if (content := self._disk.documents(folder).find(file)) is None:
            raise KeyError(name)
        return content

    def __iter__(self) -> Iterator[str]:
        if self._disk.log(clears.FILE).size():
            yield clears.FILE
        for folder in (*FIRST, *REST):
            for name in self._disk.documents(folder).names():
                alone = folder == CURSORS and name.startswith(PROGRESS)
                if is_log(name) or (name.endswith(".json") and not alone):
                    yield f"{folder}/{name}"

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True)
class Unpacked(Archive):
    """An archive that lies as plain files in a data folder of its own."""

    data: Path = field(kw_only=True)
    disk: Disk = field(kw_only=True)

    def without_erased(self, here: Disk, erase: Erase) -> None:
        """Erase from it who was erased here since. Raises MemoryFault.

        Their histories stay in `subjects`, where loading counts what it leaves out.
        """
        if gone := erased_since([here], self.disk, self.data / "memory"):
            erase(self.data, gone)
            self.subjects |= _histories(self.disk)  # groups no longer have their words


def is_whole(path: Path) -> bool:
    """Whether a path looks like a whole store: packed or called as backups are, or a folder with a list."""
    if path.is_file():
        with suppress(OSError), open(path, "rb") as file:
            start = file.read(512)
            named = path.name.endswith((ENDING, ".tgz", ".tar")) and kind_of(start) not in OTHER_FORMS
            return start.startswith(GZIP) or named
    return (path / LIST).is_file()


@contextmanager
def opened(path: Path, beside: Path, *, now_ms: int) -> Iterator[Unpacked]:
    """Read and check a whole store, which lies in a temporary folder below `beside` meanwhile.

    Raises Refused, naming what is wrong, NewerSchema and MemoryFault: for a text that is not what it should
    be, and if it is unclear who opted out or was erased, as these people would be remembered.
    """
    with passing_folder(beside / UNPACKED) as made:
        root = made / "memory"
        with faulting(f"{path} cannot be read"):
            if path.is_dir():
                _copy_folder(path, root)
            else:
                unpack(path, made, lambda name: name.removeprefix(MEMORY).partition("/")[0] in _UNITED)
            upgrade(root, now_ms)
            disk = FilesDisk(root)
            texts, subjects = StoreTexts(disk), dict[str, Content](_histories(disk))
            for name in texts:
                if (check := _CHECKS.get(name.partition("/")[0])) is not None and not is_log(name):
                    check(name, texts[name])
            choices.read(disk)
            tombstones.check(disk)
        yield Unpacked(subjects, texts, data=made, disk=disk)


def _histories(disk: Disk) -> dict[str, Records]:
    """The histories in a store. Raises Refused for one that can't be trusted."""
    subjects = sorted(subject for subject, _ in disk.ledgers.by_age())
    return {one: read_ledger(f"{one}.jsonl", disk.ledgers.log(one).read()) for one in subjects}


def _copy_folder(folder: Path, root: Path) -> None:
    """Copy an earlier export of everybody to the files of a store. Raises Refused, MemoryFault, OSError."""
    head = parse_json(LIST, Folder(folder, (), most=None).read(LIST))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Refused(f"{LIST} is not of the format {FORMAT!r}; export it again")
    check_version(LIST, head.get("version"))
    subjects = head.get("subjects")
    if not isinstance(subjects, list) or not all(isinstance(one, str) for one in subjects):
        raise Refused(f"{LIST} has no list of subjects; export it again")
    names = [safe_id(name) for name in subjects]
    tree = Folder(folder, {PEOPLE, EVENTS, COMMITS, *names, *FIRST, *REST}, most=None)

    def put(name: str, content: bytes) -> None:
        make_folder((root / name).parent)
        with open(root / name, "xb", opener=opener) as file:
            file.write(content)

    for name in names:
        if (file := f"{PEOPLE}/{name}.json") in tree.names:
            content = load_bytes(f"{name}.json", tree.read(file)).content()
        elif any(one.startswith(f"{PEOPLE}/{name}/") for one in tree.names):
            content = read_objects(tree, f"{PEOPLE}/{name}/")
        else:
            raise Refused(f"{file} is missing; export it again")
        if not isinstance(content, Records):
            raise Refused(f"{file} has no history; export it again")
        put(f"{LEDGERS}/{name}.jsonl", b"".join(map(encode_line, content.records)))
    for name in tree.names - {LIST}:
        if fits(MEMORY + name):
            put(name, tree.read(name))
        elif name.partition("/")[0] in {*FIRST, *REST}:
            raise Refused(f"{folder / name} has no name of ours; move it out of the folder")


def _cursor(name: str, content: bytes) -> Mapping[str, object]:
    value = parse_json(name, content)
    if not isinstance(value, dict):
        raise Refused(f"{name} is not a cursor; move it out of the folder")
    return value


def _of_id(read: Callable[[object], object], name: str, content: bytes) -> None:
    try:
        safe_id(Path(name).stem)
        read(parse_json(name, content))
    except (ValueError, MemoryFault) as error:
        raise Refused(f"{name} is not what it should be ({error}); move it out") from error


_CHECKS: Mapping[str, Callable[[str, bytes], object]] = {
    ROLLING: read_summary,
    CURSORS: _cursor,
    PROFILES: partial(_of_id, Profile.from_json),
    GROUPS: partial(_of_id, Group.from_json),
}
"""What a text of a folder has to be. Each raises Refused for another one."""
