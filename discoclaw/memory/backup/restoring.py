"""Restores a backup: prepares a whole folder from it, and puts that in place at once.

1  verified   all of the file, before anything is written
2  unpacked   beside the folder, as plain files, and compared once more
3  erased     what the target's tombstones name and the backup doesn't know yet, by the usual erasing
4  united     what people decided here (opt-outs, erasings) is added to what the backup knows of it
5  converted  into a file of SQLite, or in one transaction into PostgreSQL, if that is the target's store
6  in place   `swap`; the old files are kept under a dated name

Whoever is killed in between leaves the old state, or the new one from the next start on. Callers keep
everybody else from the folder. Blocking.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from discoclaw.core.errors import Refused
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.memory import upgrades
from discoclaw.memory.backup import swap
from discoclaw.memory.backup.layout import ARCHIVE, DURABLE, KEY, PROGRESS, TABLES
from discoclaw.memory.backup.reading import Contents, into, read_file
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.people import choices
from discoclaw.memory.stores import Disks, bring_decisions, shared
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store.files import free_bytes, read_plain, stamp_of, unused_name
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, ROLLING, Disk, Fillable, Tabled, drop
from discoclaw.store.sqlite import FILE as SQLITE
from discoclaw.store.sqlite import SqliteDisk

KEPT, WHY = "old", "before-restore"
"""The name of the folder with the old files, before its date; it is a data folder."""
_OURS = frozenset({".lock", ".holder", ".config.lock"})
"""Files that belong to the process that has the folder."""
_BESIDE = frozenset(
    {*_OURS, TABLES, upgrades.FILE, "archive.sqlite", "outbox", SQLITE, f"{SQLITE}-wal", f"{SQLITE}-shm"}
)
"""Files and folders beside the texts of a store."""
_DECIDED = frozenset({tombstones.FILE, tombstones.KEY, choices.FILE, upgrades.FILE})
"""Files that a target without memory may have: they are kept, or united with what comes."""
_ID = re.compile(rb"(?<![0-9])[0-9]{5,20}(?![0-9])")
_AT_ONCE, _LONGEST_ID = 1 << 20, 20

Erase = Callable[[Path, Sequence[str]], None]
"""Erases subjects from the plain files of a data folder."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a restore: the data folder, and its stores."""

    data: Path
    disks: Disks


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. `kept` is where the old files are; None if there were none.

    `erased` counts who was left out because they were erased here, `left_out` are sentences about the rest.
    """

    kept: Path | None
    erased: int
    left_out: tuple[str, ...]


def refusal(target: Target, contents: Contents, *, replace: bool) -> str | None:
    """Why a backup may not be restored here now; None if it may. Raises Refused, MemoryFault, OSError."""
    for disk in (target.disks.used, *target.disks.beside):
        if waiting := sorted(unfinished(disk)):
            return (
                f"{waiting[0]} was being erased here when that was interrupted; finish it first with "
                f"`discoclaw memory erase {waiting[0]} --yes`, or start the bot"
            )
    if not target.disks.used.remembers:
        return "memory is off here (DISCOCLAW_STORE=none); set a store first"
    if (database := shared(target.disks.used)) is not None:
        if any(size for _, size in database.ledgers.by_age()):
            return (
                "the database has memories already, and they are never overwritten; create an empty database "
                "and name it in DISCOCLAW_STORE"
            )
        if any(one.alive for one in database.together().processes):
            return "processes of the bot use the database; stop all of them first"
    if not replace and (there := next(_memory_in(target, contents), None)) is not None:
        return (
            f"{there} is there already; add --replace to put the backup in its place (what is there now is "
            "kept beside it), or name another folder with --into"
        )
    free, needed = free_bytes(target.data), 2 * contents.size
    if free < needed:
        return (
            f"restoring needs about {needed / 1e6:.1f} MB in {target.data}, and {free / 1e6:.1f} MB are "
            "free; free some space first"
        )
    return None


def restore(path: Path, target: Target, contents: Contents, erase: Erase, *, now_ms: int) -> Restored:
    """Restore a backup that was verified, where nothing speaks against it (`refusal`).

    Raises Refused, MemoryFault and OSError; unless the files were being put in place, nothing has changed.
    """
    data, used = target.data.absolute(), target.disks.used
    made = swap.begin(data)
    try:
        plain = FilesDisk(made / "memory")
        if read_file(path, partial(into, made)) != contents:
            raise Refused(f"{path} was changed meanwhile; nothing was changed here")
        if contents.head.data:
            upgrades.mark(plain.root, contents.head.data)
        gone = _erased_since(target.disks, plain)
        for disk in (used, *target.disks.beside):
            bring_decisions(disk, plain)
        if gone:
            erase(made, gone)
        left_out = _fit(contents, plain, used, erased=bool(gone))
        if isinstance(used, SqliteDisk):
            file = SqliteDisk(plain.root)
            file.fill(_texts(plain.root))
            file.close()
        for disk in (used, *target.disks.beside):
            if not disk.shared:
                disk.close()  # else SQLite would go on with a file that was moved
        kept = unused_name(data / KEPT, WHY, stamp_of(now_ms))
        new = [*_new(made, data, target.disks), *_key(made, data)]
        aside = [*_old(data, kept, target.disks), *_old_key(made, data, kept)]
        swap.put_in_place(data, aside, new, first=lambda: _fill(plain, used))
    except BaseException:
        if not (made / swap.MOVES).exists():
            shutil.rmtree(made, ignore_errors=True)
        raise
    shutil.rmtree(data / "cache", ignore_errors=True)
    return Restored(kept if aside else None, len(gone), left_out)


# ---------------------------------------------------------------------- what is there


def _memory_in(target: Target, contents: Contents) -> Iterator[Path]:
    """Files in the target that a restore would replace. Raises OSError."""
    root = target.disks.root
    for name in sorted(os.listdir(root)) if root.is_dir() else ():
        path = root / name
        if name not in _OURS | _DECIDED and (not path.is_dir() or any(path.rglob("*.*"))):
            yield path
    for folder in sorted(target.disks.placed()):
        yield from _files_in(folder)
    if contents.has(KEY) and (target.data / KEY).exists():
        yield target.data / KEY


def _files_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if path.is_file() or path.is_symlink())


# ---------------------------------------------------------------------- people


def _erased_since(disks: Disks, plain: FilesDisk) -> list[str]:
    """The subjects in what was unpacked that were erased in the target, and not yet when it was backed up."""
    marks = [tombstones.Tombstones(disk) for disk in (disks.used, *disks.beside)]
    for one in marks:
        one.load()
    if not any(one.any() for one in marks):
        return []
    known = tombstones.Tombstones(plain)
    known.load()
    return sorted(
        subject
        for subject in _subjects(plain.root)
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


# ---------------------------------------------------------------------- the new files


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
    if tables.is_dir() and (erased or not _takes(used, tables)):
        why = "because of those who were erased here since" if erased else "which is tables of a database"
        if any(one.stat().st_size for one in tables.glob("*_entries")):
            told.append(f"the archive, {why}")
        shutil.rmtree(tables)
    return tuple(told)


def _takes(used: Disk, tables: Path) -> bool:
    """Whether a store has exactly these tables, of the same version."""
    return isinstance(used, Tabled) and {one.name for one in tables.iterdir()} == used.tables_beside.keys()


def _texts(root: Path, without: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """The unpacked texts that lie in a store, by their names there."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in without and name.partition("/")[0] not in _BESIDE:
            yield name, read_plain(path)


def _fill(plain: FilesDisk, used: Disk) -> None:
    """Fill a database that processes share, in one transaction; what people decided comes first.

    Raises Refused, MemoryFault and OSError.
    """
    if used.shared and isinstance(used, Tabled):
        bring_decisions(plain, used)
        folder, tables = plain.root / TABLES, dict[str, Path]()
        if folder.is_dir():
            tables = {table: folder / name for name, table in used.tables_beside.items()}
        used.fill(_texts(plain.root, _DECIDED), tables)


# ---------------------------------------------------------------------- where they belong


def _places(root: Path, disks: Disks) -> dict[str, Path]:
    """The folders that an admin placed elsewhere, by their names below `root`."""
    placed = {}
    if not disks.used.shared and disks.used.name == "files":
        placed[ROLLING] = disks.used.documents(ROLLING).folder
        placed[DURABLE] = disks.used.durable or root / DURABLE
    return {name: path for name, path in placed.items() if path.absolute() != root.absolute() / name}


def _new(made: Path, data: Path, disks: Disks) -> Iterator[swap.Move]:
    """Moves of what was prepared to where it belongs; in a database only what lies beside it."""
    root, places = data / "memory", _places(disks.root, disks)
    for path in sorted((made / "memory").iterdir()):
        if path.name in _OURS or (isinstance(disks.used, Fillable) and path.name not in _BESIDE):
            continue
        if path.name == TABLES:
            continue  # they are rows by then
        if path.name in places:
            yield from ((one, places[path.name] / one.name) for one in sorted(path.iterdir()))
        else:
            yield path, root / path.name


def _old(data: Path, kept: Path, disks: Disks) -> Iterator[swap.Move]:
    root = data / "memory"
    for path in sorted(root.iterdir()):
        if path.name not in _OURS:
            yield path, kept / "memory" / path.name
    for name, folder in _places(disks.root, disks).items():
        for path in _files_in(folder):
            yield path, kept / "memory" / name / path.name


def _key(made: Path, data: Path) -> list[swap.Move]:
    return [(made / KEY, data / KEY)] if (made / KEY).exists() else []


def _old_key(made: Path, data: Path, kept: Path) -> list[swap.Move]:
    """The mirror's key that is there, if another one comes."""
    return [(data / KEY, kept / KEY)] if (made / KEY).exists() and (data / KEY).exists() else []
