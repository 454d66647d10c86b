"""A whole store that comes as a backup: it replaces the one that is here, or is added to it.

Either way all of the file is verified before anything is written, and unpacked as plain files beside what is
there. Whom the target's tombstones name and the backup doesn't know as erased is erased from these, by the
usual erasing.

    restore  What people decided here (opt-outs, erasings) is added, all is converted into a file of SQLite,
             or in one transaction into PostgreSQL, if that is the target's store, and `memory/folder` puts
             it in place. The old files are kept under a dated name. Whoever is killed in between leaves the
             old state, or the new one from the next start on.
    unite    What isn't here is added, and nothing replaced; only choices and tombstones are combined.
             Histories are added record by record (`take`), so ledgers and durable files get the same bytes as
             there, unless records of several replicas are merged: these are ordered by time. What belongs to
             the other data folder alone is left out: the archive, the outbox, the key, settings, hand edits
             that weren't taken in, copies that were set aside.

A store to be added may also be the folder that `memory export --all` wrote in earlier versions:

    everybody.json         {format, version, exported_at, subjects}
    people/<subject>/      objects, or people/<subject>.json with its history
    rolling/, cursors/ …   all else, as below `data/memory/`

Callers keep everybody else from the target. Blocking.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from discoclaw.core.errors import MemoryFault, Refused, faulting
from discoclaw.core.event import encode_line
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_subject
from discoclaw.memory.conversations import clears
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.groups import INDEX, OF_PERSON, GroupIndex
from discoclaw.memory.exchange.backup import (
    ARCHIVE,
    DURABLE,
    ENDING,
    KEY,
    MEMORY,
    TABLES,
    Contents,
    fits,
    read_file,
)
from discoclaw.memory.exchange.files import GZIP, OTHER_FORMS, Folder, kind_of, parse_json
from discoclaw.memory.exchange.histories import (
    COMMITS,
    EVENTS,
    Records,
    check_version,
    read_ledger,
    read_objects,
)
from discoclaw.memory.exchange.load import load_bytes, read_summary
from discoclaw.memory.folder import (
    MOVES,
    UNPACKED,
    VERSION_FILE,
    Move,
    mark_version,
    prepare,
    put_in_place,
    upgrade,
)
from discoclaw.memory.people import choices
from discoclaw.memory.stores import Disks, bring_decisions, shared
from discoclaw.memory.subjects import follow, ledger
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store.files import (
    free_bytes,
    make_folder,
    opener,
    passing_folder,
    read_plain,
    render_json,
    safe_id,
    stamp_of,
    unused_name,
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
    Log,
    drop,
    is_log,
    joined,
    line_of,
    rewrite,
    values_in,
)
from discoclaw.store.sqlite import FILE as SQLITE
from discoclaw.store.sqlite import SqliteDisk

KEPT, WHY = "old", "before-restore"
"""The name of the folder with the old files, before its date; it is a data folder."""
PROGRESS: Final = (
    *("follow-", "withdrawn-", "heartbeat", "hygiene", INDEX, OF_PERSON, follow.INDEX),
    *("inbox:", "inbox-"),
)
"""The beginnings of cursors that say what was done with this store, which means nothing in another one.

Also the inboxes of shards: where one process has everything, nobody would read them, or clear them of people.
"""
FORMAT = "discoclaw-everybody"
LIST, PEOPLE = "everybody.json", "people"
"""The list of an earlier export of everybody, and its folder of histories."""
_OURS = frozenset({".lock", ".holder", ".config.lock"})
"""Files that belong to the process that has the folder."""
_BESIDE = frozenset(
    {*_OURS, TABLES, VERSION_FILE, "archive.sqlite", "outbox", SQLITE, f"{SQLITE}-wal", f"{SQLITE}-shm"}
)
"""Files and folders beside the texts of a store."""
_DECIDED = frozenset({tombstones.FILE, tombstones.KEY, choices.FILE, VERSION_FILE})
"""Files that a target without memory may have: they are kept, or united with what comes."""
PEOPLE_FIRST, REST = (PROFILES, GROUPS), (TOOLS, USAGE, ANSWERS, CURSORS, ROLLING)
"""The folders that an import takes before and after the histories.

Files that show a ledger come first, because who writes them anew keeps what no ledger has. What says that
something was done with the histories comes after them, and whose words a summary has, before it.
"""
_UNITED = frozenset(
    {LEDGERS, *PEOPLE_FIRST, *REST, clears.FILE, choices.FILE, tombstones.FILE, tombstones.KEY}
)
"""The folders and files of a store that are united with what is here."""
_ID = re.compile(rb"(?<![0-9])[0-9]{5,20}(?![0-9])")
_AT_ONCE, _LONGEST_ID = 1 << 20, 20

Erase = Callable[[Path, Sequence[str]], None]
"""Erases subjects from the plain files of a data folder."""


# ---------------------------------------------------------------------- unpacking


def _unpacked(path: Path, made: Path, wanted: Callable[[str], bool] = lambda name: True) -> Contents:
    """Verify a backup and unpack it to a data folder of plain files. Raises as `read_file`, and OSError."""
    contents = read_file(path, made, wanted)
    make_folder(made / "memory")
    if contents.head.data:
        mark_version(made / "memory", contents.head.data)
    return contents


def _erased_since(decided: Iterable[Disk], plain: Disk, root: Path) -> list[str]:
    """The subjects in what was unpacked that were erased in the target, and not yet when it was backed up."""
    marks = [tombstones.Tombstones(disk) for disk in decided]
    for one in marks:
        one.load()
    if not any(one.any() for one in marks):
        return []
    known = tombstones.Tombstones(plain)
    known.load()
    return sorted(
        subject
        for subject in _subjects(root)
        if max(one.erased_at(subject) for one in marks) > known.erased_at(subject)
    )


def _subjects(root: Path) -> set[str]:
    """Everybody who may be named in files below a folder: every number there may be somebody's id."""
    ids, named = set[bytes](), set[str]()
    for folder, _, names in os.walk(root):
        for name in names:
            stem = name.partition(".")[0]
            named.update((stem, user_subject(stem)))
            ids.update(_ID.findall(os.fsencode(name)))
            with open(os.path.join(folder, name), "rb") as file:
                rest = b""
                while part := file.read(_AT_ONCE):
                    ids.update(_ID.findall(rest + part))
                    rest = part[-_LONGEST_ID - 1 :]
    numbers = {one.decode("ascii") for one in ids}
    return named | {user_subject(one) for one in numbers} | {group_subject(one) for one in numbers}


# ---------------------------------------------------------------------- replacing


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. `kept` is where the old files are; None if there were none.

    `erased` counts who was left out because they were erased here, `left_out` are sentences about the rest.
    """

    kept: Path | None
    erased: int
    left_out: tuple[str, ...]


def check(disks: Disks, contents: Contents, *, replace: bool) -> None:
    """Raise Refused, with the way out, if a backup may not be restored here now; MemoryFault, OSError."""
    if (why := _speaks_against(disks, contents, replace=replace)) is not None:
        raise Refused(f"nothing was restored: {why}")


def _speaks_against(disks: Disks, contents: Contents, *, replace: bool) -> str | None:
    for disk in (disks.used, *disks.beside):
        if waiting := sorted(unfinished(disk)):
            return (
                f"{waiting[0]} was being erased here when that was interrupted; finish it first with "
                f"`discoclaw memory erase {waiting[0]} --yes`, or start the bot"
            )
    if not disks.used.remembers:
        return "memory is off here (DISCOCLAW_STORE=none); set a store first"
    if (database := shared(disks.used)) is not None:
        if any(size for _, size in database.ledgers.by_age()):
            return (
                "the database has memories already, and they are never overwritten; create an empty database "
                "and name it in DISCOCLAW_STORE"
            )
        if any(one.alive for one in database.together().processes):
            return "processes of the bot use the database; stop all of them first"
    if not replace and (there := next(_memory_in(disks, contents), None)) is not None:
        return (
            f"{there} is there already; add --replace to put the backup in its place (what is there now is "
            "kept beside it), or name another folder with --into"
        )
    data = disks.root.parent
    free, needed = free_bytes(data), 2 * contents.size
    if free < needed:
        return (
            f"restoring needs about {needed / 1e6:.1f} MB in {data}, and {free / 1e6:.1f} MB are free; "
            "free some space first"
        )
    return None


def restore(path: Path, disks: Disks, contents: Contents, erase: Erase, *, now_ms: int) -> Restored:
    """Restore a backup that was verified, where nothing speaks against it (`check`).

    Raises Refused, MemoryFault and OSError; unless the files were being put in place, nothing has changed.
    """
    data, used = disks.root.parent.absolute(), disks.used
    every = (used, *disks.beside)
    made = prepare(data)
    try:
        if _unpacked(path, made) != contents:
            raise Refused(f"{path} was changed meanwhile; nothing was changed here")
        plain = FilesDisk(made / "memory")
        gone = _erased_since(every, plain, plain.root)
        for disk in every:
            bring_decisions(disk, plain)
        if gone:
            erase(made, gone)
        left_out = _fit(contents, plain, used, erased=bool(gone))
        if isinstance(used, SqliteDisk):
            file = SqliteDisk(plain.root)
            file.fill(_texts_below(plain.root))
            file.close()
        for disk in every:
            if not disk.shared:
                disk.close()  # else SQLite would go on with a file that was moved
        kept = unused_name(data / KEPT, WHY, stamp_of(now_ms))
        aside, new = _moves(made, data, kept, disks)
        put_in_place(data, aside, new, first=lambda: _fill(plain, used))
    except BaseException:
        if not (made / MOVES).exists():
            shutil.rmtree(made, ignore_errors=True)
        raise
    shutil.rmtree(data / "cache", ignore_errors=True)
    return Restored(kept if aside else None, len(gone), left_out)


def _memory_in(disks: Disks, contents: Contents) -> Iterator[Path]:
    """Files that a restore would replace. Raises OSError."""
    root, key = disks.root, disks.root.parent / KEY
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if path.name not in _OURS | _DECIDED and (not path.is_dir() or any(path.rglob("*.*"))):
            yield path
    for folder in sorted(disks.placed()):
        yield from _files_in(folder)
    if contents.has(KEY) and key.exists():
        yield key


def _files_in(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if path.is_file() or path.is_symlink()]


def _fit(contents: Contents, plain: FilesDisk, used: Disk, *, erased: bool) -> tuple[str, ...]:
    """Remove what means nothing in the target's store. Returns sentences about it. Raises OSError.

    `erased`: somebody was erased since, and no erasing reaches the files of tables.
    """
    told = []
    if contents.head.store != used.name:
        cursors = plain.documents(CURSORS)
        if cursors.remove([name for name in cursors.names() if name.startswith(PROGRESS)])[0]:
            told.append("the progress of background loops, which means nothing in another store")
    if used.durable is None and plain.durable is not None and plain.durable.is_dir():
        shutil.rmtree(plain.durable)
        told.append("durable files, which this store doesn't have; the ledgers say the same")
    if used.shared and (plain.root.parent / ARCHIVE).exists():
        drop(plain.documents(""), Path(ARCHIVE).name)
        told.append("the archive, which in PostgreSQL is in tables")
    tables = plain.root / TABLES
    database = shared(used)
    theirs = database.tables_beside.keys() if database is not None else set()
    if tables.is_dir() and (erased or {one.name for one in tables.iterdir()} != theirs):
        why = "because of those who were erased here since" if erased else "which is tables of a database"
        if any(one.stat().st_size for one in tables.glob("*_entries")):
            told.append(f"the archive, {why}")
        shutil.rmtree(tables)
    return tuple(told)


def _texts_below(root: Path, without: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """The unpacked texts that lie in a store, by their names there."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in without and name.partition("/")[0] not in _BESIDE:
            yield name, read_plain(path)


def _fill(plain: FilesDisk, used: Disk) -> None:
    """Fill a database that processes share, in one transaction; what people decided comes first.

    Raises Refused, MemoryFault and OSError.
    """
    if (database := shared(used)) is not None:
        bring_decisions(plain, database)
        folder, tables = plain.root / TABLES, dict[str, Path]()
        if folder.is_dir():
            tables = {table: folder / name for name, table in database.tables_beside.items()}
        database.fill(_texts_below(plain.root, _DECIDED), tables)


def _moves(made: Path, data: Path, kept: Path, disks: Disks) -> tuple[list[Move], list[Move]]:
    """The moves of the old files to where they are kept, and of what was prepared to where it belongs.

    Of what is in a database by then, only those of what lies beside it.
    """
    root, placed = data / "memory", dict[str, Path]()
    used = disks.used
    if used.name == "files":  # an admin may have placed these elsewhere
        placed = {
            ROLLING: used.documents(ROLLING).folder,
            DURABLE: used.durable or root / DURABLE,
        }
        placed = {name: folder for name, folder in placed.items() if folder.absolute() != root / name}
    aside = [(one, kept / "memory" / one.name) for one in sorted(root.iterdir()) if one.name not in _OURS]
    for name, folder in placed.items():
        aside += [(one, kept / "memory" / name / one.name) for one in _files_in(folder)]
    new = list[Move]()
    for path in sorted((made / "memory").iterdir()):
        rows = used.name != "files" and path.name not in _BESIDE
        if rows or path.name in _OURS or path.name == TABLES:
            continue
        if path.name in placed:
            new += [(one, placed[path.name] / one.name) for one in sorted(path.iterdir())]
        else:
            new.append((path, root / path.name))
    if (made / KEY).exists():
        new.append((made / KEY, data / KEY))
        aside += [(data / KEY, kept / KEY)] if (data / KEY).exists() else []
    return aside, new


# ---------------------------------------------------------------------- adding


@dataclass(slots=True)
class Whole:
    """A store that was read and checked, as plain files in a data folder of its own.

    `subjects` are the histories in it, and `unsure` says whether words of unknown authors may be those of
    somebody who was erased here.
    """

    data: Path
    disk: Disk
    subjects: dict[str, Records] = field(default_factory=dict)
    unsure: bool = False

    def without_erased(self, here: Disk, erase: Erase) -> None:
        """Erase from it who was erased here since.

        Their histories stay in `subjects`, where an import counts what it leaves out.
        """
        decided = tombstones.Tombstones(here)
        decided.load()
        self.unsure = decided.any()
        if gone := _erased_since([here], self.disk, self.data / "memory"):
            erase(self.data, gone)
            self.subjects |= _histories(self.disk)  # groups no longer have their words

    def take(self, target: Disk, folders: Sequence[str]) -> Mapping[str, int]:
        """Add what these folders lack in a store to which nobody else writes.

        Returns how many texts each of them got. Raises OSError.
        """
        added = dict.fromkeys(folders, 0)
        for folder in folders:
            source, there = self.disk.documents(folder), target.documents(folder)
            known = set(there.names())
            if folder == ROLLING:  # the clears hide some of them
                _unite(self.disk.log(clears.FILE), target.log(clears.FILE))
            for name in source.names():
                full = f"{folder}/{name}"
                if is_log(name):
                    _unite(self.disk.log(full), target.log(full))
                elif name not in known and _is_taken(folder, name):
                    if folder == ROLLING and self.unsure and not self._knows_people(name):
                        continue
                    content = source.read(name)
                    there.write(name, _group(full, content, target) if folder == GROUPS else content)
                    added[folder] += 1
        return added

    def _knows_people(self, name: str) -> bool:
        """Whether it is known whose words are in a summary."""
        if person_of(name.removesuffix(".json")) is not None:
            return True
        with suppress(FileNotFoundError):
            return bool(people_of(_cursor(name, self.disk.documents(CURSORS).read(f"people-{name}"))))
        return False


def is_whole(path: Path) -> bool:
    """Whether a path looks like a whole store: packed or called as backups are, or a folder with a list."""
    if path.is_file():
        with suppress(OSError), open(path, "rb") as file:
            start = file.read(512)
            named = path.name.endswith((ENDING, ".tgz", ".tar")) and kind_of(start) not in OTHER_FORMS
            return start.startswith(GZIP) or named
    return (path / LIST).is_file()


@contextmanager
def opened(path: Path, beside: Path, *, now_ms: int) -> Iterator[Whole]:
    """Read and check a whole store, which lies in a temporary folder below `beside` meanwhile.

    Raises Refused, naming what is wrong, NewerSchema and MemoryFault.
    """
    with passing_folder(beside / UNPACKED) as made:
        root = made / "memory"
        with faulting(f"{path} cannot be read"):
            if path.is_dir():
                _copy_folder(path, root)
            else:
                _unpacked(path, made, lambda name: name.removeprefix(MEMORY).partition("/")[0] in _UNITED)
            upgrade(root, now_ms)
            whole = Whole(made, FilesDisk(root))
            whole.subjects = _histories(whole.disk)
            _check(whole.disk)
        yield whole


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
    tree = Folder(folder, {PEOPLE, EVENTS, COMMITS, *names, *PEOPLE_FIRST, *REST}, most=None)

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
        elif name.partition("/")[0] in {*PEOPLE_FIRST, *REST}:
            raise Refused(f"{folder / name} has no name of ours; move it out of the folder")


def _check(disk: Disk) -> None:
    """Raise Refused for a text that is not what it should be.

    Raises MemoryFault if it is unclear who opted out or was erased: these people would be remembered.
    """
    for part, read in (
        (ROLLING, read_summary),
        (CURSORS, _cursor),
        (PROFILES, partial(_of_id, Profile.from_json)),
        (GROUPS, partial(_of_id, Group.from_json)),
    ):
        documents = disk.documents(part)
        for name in documents.names():
            if _is_taken(part, name):
                read(f"{part}/{name}", documents.read(name))
    choices.read(disk)
    tombstones.check(disk)


def _is_taken(folder: str, name: str) -> bool:
    """Whether a text is taken: no copy that was set aside, and no cursor about that store alone."""
    return name.endswith(".json") and not (folder == CURSORS and name.startswith(PROGRESS))


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


def _group(name: str, content: bytes, target: Disk) -> bytes:
    """A group's file as its ledger here has it, if there is one. Its members are noted."""
    subject, group = group_subject(Path(name).stem), Group.from_json(parse_json(name, content))
    GroupIndex(target).note(subject, [user_id for user_id, _ in group.members])
    known = ledger.read(target.ledgers.log(subject))
    return render_json(group.with_view(known.history.shown()).to_json()) if known.records else content


def _unite(source: Log, target: Log) -> None:
    """Add the lines of a log that another one lacks; what isn't a line of ours stays out. Raises OSError."""

    def keys(content: bytes) -> dict[tuple[str, bool, bool], object]:
        # Whom a line is about may be known in one store only. A hold becomes a call; `to` may be withdrawn.
        lines = (one for one in values_in(content) if isinstance(one, dict) and "id" in one)
        return {(str(one["id"]), "hold" in one, "to" in one): one for one in lines}

    def with_new(before: bytes) -> bytes:
        known, there = keys(before), keys(source.read())
        return joined(before, b"".join(line_of(one) for key, one in there.items() if key not in known))

    rewrite(target, with_new)
