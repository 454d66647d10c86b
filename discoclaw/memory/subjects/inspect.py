"""Inspects memory on disk without changing it, also while the bot runs; for the command line.

Read-only: nothing is adopted, repaired or kept aside. A path stands for the plain files below it (`root`,
`data/memory`). Blocking.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import NewerSchema, Refused, faulting
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.subject import group_subject, user_of, user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory import cursors
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.ledger import Damage, Loaded, read
from discoclaw.store.files import Linked, read_plain, safe_id, stamp_now
from discoclaw.store.plain import disk_at
from discoclaw.store.port import GROUPS, INTENTS, PROFILES, Disk

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?P<m>:\d\d(?P<s>:\d\d(?P<ms>\.\d+)?)?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)
_RECORD = re.compile(r"([A-Za-z0-9_-]{1,58})\.json")
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1000, 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True)
class Inspection:
    """A subject as it is on disk. `faults` are sentences, empty if nothing is wrong.

    `damage` are the lines of the ledger that do not verify, `torn` the bytes of an unfinished last line.
    `notes` are sentences about what the bot repairs by itself, such as what a crash left.
    """

    subject: str
    history: History
    faults: tuple[str, ...]
    damage: tuple[Damage, ...] = ()
    torn: int = 0
    notes: tuple[str, ...] = ()

    @property
    def view(self) -> View:
        """The view of HEAD's branch."""
        return self.history.shown()

    @property
    def commits(self) -> tuple[Commit, ...]:
        """All commits, of all branches, in order."""
        return tuple(self.history.commits.values())


def subject_named(name: str) -> str:
    """The subject that a name on the command line means: "123", "user-123" or "<@123>"; "group:7", "<#7>".

    Raises MemoryFault if the name is invalid.
    """
    plain = name.strip().removesuffix(">")
    for mark in ("group:", "<#"):
        if plain.startswith(mark):
            return safe_id(group_subject(plain.removeprefix(mark)))
    plain = plain.removeprefix("<@").lstrip("!")
    return safe_id(user_subject(plain) if plain.isdigit() else plain)


def subjects(where: Path | Disk) -> list[str]:
    """Every subject with a ledger or a durable file, sorted. Raises MemoryFault."""
    disk = disk_at(where)
    with faulting("nobody's memory can be read"):
        ledgers = {subject for subject, _ in disk.ledgers.by_age()}
    files = disk.durable.glob("*.json") if disk.durable is not None else ()
    return sorted(ledgers | {user_subject(path.stem) for path in files})


def recorded(where: Path | Disk) -> list[str]:
    """Every subject with any record: a memory, a profile or a group file.

    Sorted. Raises MemoryFault.
    """
    disk = disk_at(where)
    found = set(subjects(disk))
    with faulting("can't read which people are known"):
        for folder, of in ((PROFILES, user_subject), (GROUPS, group_subject)):
            names = (_RECORD.fullmatch(name) for name in disk.documents(folder).names())
            found |= {of(name[1]) for name in names if name is not None}
    return sorted(found)


def unfinished(where: Path | Disk) -> set[str]:
    """Subjects whose erasing was interrupted: some of their files may still exist. Raises MemoryFault."""
    intents = disk_at(where).documents(INTENTS)
    with faulting(f"can't read {intents.folder}"):
        names = [name for name in intents.names() if name.endswith(".json")]
    return {
        name.removesuffix(".json") for name in names if "at" in (cursors.read(intents, name) or {"at": 0})
    }


def held(where: Path | Disk, subject: str) -> Inspection:
    """Read and verify one subject. A missing ledger is an empty memory. Raises MemoryFault.

    A running bot writes ledger and file one after the other, so an apparent mismatch is checked a second
    time.
    """
    disk = disk_at(where)
    with faulting(f"can't read the memory of {subject}"):
        first = _held(disk, subject)
        return _held(disk, subject) if first.faults or first.notes else first


def view_at(
    history: History,
    wanted: str,
    *,
    branch: str | None = None,
    to_utc: Callable[[int], int] | None = None,
) -> View:
    """The view at a point that a person names: a time, else a commit or a branch as `History.commit` has it.

    `branch` is the branch that a time shows (by default the one that was HEAD then), and that HEAD means in
    a name like HEAD~2. `to_utc` is as for `end_of`. Raises Refused if there is no such point.
    """
    ms = end_of(wanted, to_utc)
    if ms is None:
        return history.view(history.commit(wanted, on=history.branch(branch).name if branch else None).id)
    then = history.until(ms)
    if branch is None:
        return then.shown()
    name = history.branch(branch).name
    if name not in then.branches.all:
        raise Refused(f"the branch {name!r} was not there on {wanted.strip()}")
    return then.view(then.branch(name).head)


def end_of(text: str, to_utc: Callable[[int], int] | None = None) -> int | None:
    """The last millisecond (since 1970) of an ISO time. A date means its whole day.

    A time without a zone is in UTC; with `to_utc`, in the zone that this function converts from. None if the
    text does not look like a time. Raises Refused if it does, but there is no such time.
    """
    plain = text.strip()
    found = _TIME.fullmatch(plain.upper())
    if found is None:
        return None
    try:
        start = ms_of_iso(plain.upper())
    except ValueError as error:
        raise Refused(
            f"{plain!r} is not a time ({error}); use for example 2026-02-03 or 2026-02-03T16:29"
        ) from None
    if len(plain) == len("2026-02-03"):
        end = start + _DAY_MS - 1
    elif found["ms"]:
        end = start
    else:
        end = start + (_SECOND_MS if found["s"] else _MINUTE_MS if found["m"] else _HOUR_MS) - 1
    return end if to_utc is None or found["zone"] else to_utc(end)


def _held(disk: Disk, subject: str) -> Inspection:
    lines = disk.ledgers.log(subject)
    path, loaded = lines.path, read(lines)
    history = loaded.history
    faults = [f"{path.name}, {damage}" for damage in loaded.damage]
    if loaded.torn:
        faults.append(f"{path.name}: an unfinished last line of {loaded.torn} bytes, which is left out")
    if loaded.damage:
        told = {damage.reason for damage in loaded.damage}
        for commit, parent in history.orphans().items():
            reason = f"commit {commit} follows {parent}, which is not here"
            faults += [f"{path.name}: {reason}"] if reason not in told else []
    user, notes = user_of(subject), list[str]()
    if disk.durable is not None and user is not None and not faults:
        durable = disk.durable / f"{user}.json"
        if history.commits or stamp_now(durable) is not None:
            faults, notes = _judged(durable, loaded)
    return Inspection(subject, history, tuple(faults), loaded.damage, loaded.torn, tuple(notes))


def _judged(path: Path, loaded: Loaded) -> tuple[list[str], list[str]]:
    """The faults of a durable file, and what the bot will change in it although nothing is wrong."""
    history, name, renewed = loaded.history, path.name, "the bot writes it again when it next uses it"
    view, branches = history.shown(), history.branches
    try:
        content = read_plain(path)
        if content == durable_file.render(view):
            return [], []
        file = durable_file.parse(content, now_ms=view.updated_at)
    except FileNotFoundError:
        return [], [f"{name} is missing; {renewed}"]
    except (Linked, NewerSchema) as why:
        return [f"{name} is left as it is: {why}"], []
    except durable_file.Unreadable as unreadable:
        return [f"can't read {name}: {unreadable}; the bot sets it aside and writes it again"], []
    if not history.records:
        untold = sum(item.active and item.id in file.unmarked for item in file.items)
        private = f", {untold} of them as learned in private, because they don't say where" if untold else ""
        what = f"{name} has {len(file.items)} items and no ledger yet"
        return [f"{what}; the bot takes them over when it next reads it{private}"], []
    foreign = file.version != durable_file.VERSION
    edited = durable_file.edit_of(
        file,
        None if foreign else durable_file.shown_by(loaded.records, file, content),
        branches,
        lambda branch: history.view(branches.all[branch].head),
        foreign=foreign,
        now_ms=0,
        max_items=sys.maxsize,
    )
    if edited is None and not foreign and not file.rejected:
        return [], [f"{name} shows an older state; {renewed}"]
    told = f"{name} was edited; the bot adopts the edit when it next reads it"
    return [told, *(f"{name}, {rejected}" for rejected in file.rejected)], []
