"""A backup takes the place of what is here.

All of the file is verified before anything is written, and unpacked as plain files beside what is there.
Whom the target's tombstones name and the backup doesn't know as erased is erased from these, by the usual
erasing. What people decided here (opt-outs, erasings) is added, all is converted into a file of SQLite, or in
one transaction into PostgreSQL, if that is the target's store, and `memory/folder` puts it in place. The old
files are kept under a dated name. Whoever is killed in between leaves the old state, or the new one from the
next start on.

Callers keep everybody else from the target. Blocking.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from discoclaw.core.errors import Refused
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.groups import INDEX, OF_PERSON
from discoclaw.memory.exchange.backup import ARCHIVE, KEY, OUTBOX_FOLDER, TABLES, Contents, read_file
from discoclaw.memory.folder import MOVES, VERSION_FILE, Move, mark_version, prepare, put_in_place
from discoclaw.memory.people import choices
from discoclaw.memory.stores import Disks, bring_decisions, shared
from discoclaw.memory.subjects import follow
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store.files import free_bytes, make_folder, read_plain, stamp_of, unused_name
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, DURABLE, ROLLING, Disk, drop
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
_OURS = frozenset({".lock", ".holder", ".config.lock"})
"""Files that belong to the process that has the folder."""
_BESIDE = frozenset(
    {*_OURS, TABLES, VERSION_FILE, "archive.sqlite", OUTBOX_FOLDER, SQLITE, f"{SQLITE}-wal", f"{SQLITE}-shm"}
)
"""Files and folders beside the texts of a store."""
_DECIDED = frozenset({tombstones.FILE, tombstones.KEY, choices.FILE, VERSION_FILE})
"""Files that a target without memory may have: they are kept, or united with what comes."""
_ID = re.compile(rb"(?<![0-9])[0-9]{5,20}(?![0-9])")
_AT_ONCE, _LONGEST_ID = 1 << 20, 20

Erase = Callable[[Path, Sequence[str]], None]
"""Erases subjects from the plain files of a data folder."""


def unpack(path: Path, made: Path, wanted: Callable[[str], bool] = lambda name: True) -> Contents:
    """Verify a backup and unpack it to a data folder of plain files. Raises as `read_file`, and OSError."""
    contents = read_file(path, made, wanted)
    make_folder(made / "memory")
    if contents.head.data:
        mark_version(made / "memory", contents.head.data)
    return contents


def erased_since(decided: Iterable[Disk], plain: Disk, root: Path) -> list[str]:
    """The subjects in what was unpacked that were erased in the target, and not yet when it was backed up."""
    marks = [tombstones.Tombstones(disk) for disk in decided]
    for one in marks:
        one.load()
    if not any(one.any() for one in marks):
        return []
    known = tombstones.Tombstones(plain)
    known.load()
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
    numbers = {one.decode("ascii") for one in ids}  # every number there may be somebody's id
    named |= {of(one) for one in numbers for of in (user_subject, group_subject)}
    return sorted(
        subject
        for subject in named
        if max(one.erased_at(subject) for one in marks) > known.erased_at(subject)
    )


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
    why, data, needed = "", disks.root.parent, 2 * contents.size
    waiting = sorted(one for disk in (disks.used, *disks.beside) for one in unfinished(disk))
    database = shared(disks.used)
    if waiting:
        why = (
            f"{waiting[0]} was being erased here when that was interrupted; finish it first with "
            f"`discoclaw memory erase {waiting[0]} --yes`, or start the bot"
        )
    elif not disks.used.remembers:
        why = "memory is off here (DISCOCLAW_STORE=none); set a store first"
    elif database is not None and any(size for _, size in database.ledgers.by_age()):
        why = (
            "the database has memories already, and they are never overwritten; create an empty database "
            "and name it in DISCOCLAW_STORE"
        )
    elif database is not None and any(one.alive for one in database.together().processes):
        why = "processes of the bot use the database; stop all of them first"
    elif not replace and (there := next(_memory_in(disks, contents), None)) is not None:
        why = (
            f"{there} is there already; add --replace to put the backup in its place (what is there now is "
            "kept beside it), or name another folder with --into"
        )
    elif (free := free_bytes(data)) < needed:
        why = (
            f"restoring needs about {needed / 1e6:.1f} MB in {data}, and {free / 1e6:.1f} MB are free; "
            "free some space first"
        )
    if why:
        raise Refused(f"nothing was restored: {why}")


def restore(path: Path, disks: Disks, contents: Contents, erase: Erase, *, now_ms: int) -> Restored:
    """Restore a backup that was verified, where nothing speaks against it (`check`).

    Raises Refused, MemoryFault and OSError; unless the files were being put in place, nothing has changed.
    """
    data, used = disks.root.parent.absolute(), disks.used
    every = (used, *disks.beside)
    made = prepare(data)
    plain = FilesDisk(made / "memory")

    def fill() -> None:
        """Fill a database that processes share, in one transaction; what people decided comes first."""
        if (database := shared(used)) is not None:
            bring_decisions(plain, database)
            folder, tables = plain.root / TABLES, dict[str, Path]()
            if folder.is_dir():
                tables = {table: folder / name for name, table in database.tables_beside.items()}
            database.fill(_texts_below(plain.root, _DECIDED), tables)

    try:
        if unpack(path, made) != contents:
            raise Refused(f"{path} was changed meanwhile; nothing was changed here")
        gone = erased_since(every, plain, plain.root)
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
        put_in_place(data, aside, new, first=fill)
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
