"""Shared by all commands: reading and changing the data folder, finding people and items, listing, printing.

Commands that only read work while the bot runs. Commands that change something take the folder's lock, so
while the bot runs they are refused (FolderInUse). Somebody with a shell on the machine can read the files
anyway, so they are treated as the admin: everything is shown, and what they enter counts as stated.
"""

import asyncio
import difflib
import json
import logging
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault, Refused, faulting
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.matching import find_one
from discoclaw.core.profile import Group, Profile
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_of
from discoclaw.core.text import normalise
from discoclaw.core.times import iso_ms
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.inspect import (
    Inspection,
    held,
    recorded,
    subject_named,
    subjects,
    unfinished,
)
from discoclaw.recall.named_items import find
from discoclaw.settings import Settings
from discoclaw.show.answer import Answer, Grid
from discoclaw.show.purge import Reader, purge_report
from discoclaw.show.words import Times, line, quoted, short
from discoclaw.storage import Storage, build, disks_of, other_folders
from discoclaw.store.files import in_thread, new_file, read_in_thread
from discoclaw.store.port import GROUPS, PROFILES, Disk

T = TypeVar("T")

CLI_ORIGIN = Origin("stated", evidence="command line")
CHANGE_PANEL = "Change (stop the bot first)"
IMPORT_PANEL = "Import and erase (stop the bot first)"
CLI_AUTHOR = "cli"
"""Stored in commits as the one who made them."""
_UNBROKEN_WIDTH = 4000
"""Width of a table that does not go to a terminal, so that programs get one line for each row."""

SubjectArg = Annotated[
    str, typer.Argument(metavar="WHO", help="A Discord user id, or a subject as `memory list` shows it.")
]
RecordArg = Annotated[
    str,
    typer.Argument(
        metavar="WHO", help="A Discord user id, group:CHANNEL_ID, or a subject as `memory list` shows it."
    ),
]
AnySubjectArg = Annotated[
    str | None,
    typer.Argument(
        metavar="WHO",
        help="A Discord user id, or a subject as `memory list` shows it; without one, everybody is listed.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]
OnBranch = Annotated[str | None, typer.Option("--branch", help="Use this branch, not the current one.")]
OnlyBranch = Annotated[
    str | None, typer.Option("--branch", help="Look only at this branch, not all of them.")
]


def now_ms() -> int:
    """The current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


# ---------------------------------------------------------------------- times


def _local(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone()


def local_time(time_ms: int) -> str:
    """A time (ms since 1970) in the system's zone: `2026-02-09 15:03`."""
    return f"{_local(time_ms):%Y-%m-%d %H:%M}"


def local_day(time_ms: int) -> str:
    """A day in the system's zone: `2026-02-09`."""
    return f"{_local(time_ms):%Y-%m-%d}"


LOCAL_TIMES = Times(local_time, local_day)


def local_to_utc(time_ms: int) -> int:
    """A time (ms) that was read as if it were UTC, but was typed in the system's zone, as ms since 1970."""
    naive = datetime.fromtimestamp(time_ms / 1000, UTC).replace(tzinfo=None)
    try:
        return int(naive.timestamp()) * 1000 + time_ms % 1000
    except (ValueError, OverflowError, OSError):  # within a day of what dates can be
        return time_ms


# ---------------------------------------------------------------------- the folder


_folders = list[Path]()


def place(settings: Settings) -> Path:
    """The data folder, as a command names it."""
    return settings.data_dir.absolute()


def stores_of(settings: Settings) -> Disks:
    """The stores that the settings configure. When the command ends, it names their folder."""
    uses(settings)
    return disks_of(settings)


def uses(settings: Settings) -> None:
    """Have the command name this data folder when it ends."""
    _folders.append(place(settings))


def name_folders() -> None:
    """Say on stderr which data folder this command used, so that nobody takes it for another one."""
    for folder in dict.fromkeys(_folders):
        note(f"data folder: {folder}")
    _folders.clear()


def all_subjects(settings: Settings) -> list[str]:
    """Every subject that has a ledger in the data folder."""
    with stores_of(settings) as stores:
        return subjects(stores.used)


def inspect_all(settings: Settings) -> list[Inspection]:
    """Every subject as it is on disk. One that cannot be read is empty, and has the reason as its fault."""
    with stores_of(settings) as stores:
        return [inspect_or_fault(stores.used, subject) for subject in subjects(stores.used)]


def note_other_stores(settings: Settings) -> None:
    """Note on stderr if there are memories in another store (DISCOCLAW_STORE) or another data folder."""
    # An unreadable store stops commands that write; this is only a hint.
    with suppress(OSError), stores_of(settings) as stores:
        for text in (*stores.elsewhere(), *other_folders(settings)):
            note(text)


def inspect_or_fault(disk: Disk, subject: str) -> Inspection:
    """One subject as it is on disk, or an empty one with the reason why it cannot be read as its fault."""
    try:
        return held(disk, subject)
    except MemoryFault as fault:
        return Inspection(subject, History(), (str(fault),))


def inspect_subject(who: str, *, may_be_new: bool = False) -> Inspection:
    """One subject as it is on disk. Its faults are noted on stderr.

    Raises Refused if it is being erased, or if `who` names none, or one without a memory that may not be new.
    Raises MemoryFault if it cannot be read.
    """
    subject = subject_named(who)
    with stores_of(settings_module.load()) as stores:
        if subject in unfinished(stores.used):
            raise Refused(
                f"{subject} was being erased when that was interrupted, so nothing is shown; "
                f"finish it with `discoclaw memory erase {subject} --yes`, or start the bot"
            )
        one = held(stores.used, subject)
    if not (one.history.records or one.faults or may_be_new):
        raise Refused(no_memory_text(subject, all_subjects(settings_module.load())))
    for fault in one.faults:
        note(fault)
    return one


def existing_subject(who: str) -> str:
    """The subject that `who` names, if it has a memory.

    Raises Refused otherwise, with the most similar one: a typo must not start a memory about nobody.
    """
    subject, there = subject_named(who), all_subjects(settings_module.load())
    if subject not in there:
        raise Refused(no_memory_text(subject, there))
    return subject


def no_memory_text(subject: str, there: Collection[str]) -> str:
    """The message for a subject without a memory. `there` are the subjects that have one."""
    if subject in there:
        return f"nothing is recorded about {subject} yet"
    # Strict, since ids are long numbers that all look alike.
    near = difflib.get_close_matches(subject, there, n=1, cutoff=0.8)
    way = f"did you mean {near[0]}?" if near else "`discoclaw memory list` shows everybody"
    return f"there is no memory of {subject}; {way}"


def run_on_storage(work: Callable[[Storage], Awaitable[T]], settings: Settings | None = None) -> T:
    """Run something with all that lies on disk, which this process locks; by default where it is configured.

    Raises FolderInUse while the bot runs, and whatever `work` raises.
    """

    async def done(storage: Storage) -> T:
        await storage.processes.start()
        await read_in_thread(storage.memory.catch_up)
        try:
            result = await work(storage)
            await storage.purger.settle()
        finally:
            await storage.processes.close()
        return result

    with locked_storage(settings) as storage:
        return asyncio.run(done(storage))


def run_change(subject: str, work: Callable[[Storage], Awaitable[T]]) -> tuple[T, str]:
    """Run a change of one subject. Returns what it returns, and as one or more lines what it took back.

    What was taken back is removed from everywhere; "" if that was nothing. Raises as `run_on_storage`.
    """
    reader = Reader(  # somebody at a terminal, who sees every conversation by its key
        name=lambda session: session,
        persona="branch",
        forget=lambda branch, item: f"`discoclaw memory forget {subject} {item} --branch {branch}`",
    )

    async def done(storage: Storage) -> tuple[T, str]:
        await in_thread(storage.load)  # who opted out
        result, report = await storage.purger.told(subject, work(storage))
        return result, purge_report(report, reader)

    return run_on_storage(done)


@contextmanager
def locked_storage(settings: Settings | None = None) -> Iterator[Storage]:
    """Everything on disk, with the folder locked by this process. Warnings go to stderr meanwhile.

    Raises FolderInUse while the bot runs, and MemoryFault if the store cannot be opened.
    """
    if settings is None:
        uses(settings := settings_module.load())
    storage = storage_of(settings)
    with warnings_as_notes():
        storage.open(beside=True)
        try:
            yield storage
        finally:
            storage.close()


def storage_of(settings: Settings) -> Storage:
    """Everything on disk, not open yet. It is there for an admin even where the bot does not use it."""
    return build(settings, clock=now_ms, for_admin=True)


def redactor() -> Redactor:
    """The redactor, which knows the bot's Nostr key if there is one.

    Raises SettingsError or MemoryFault if that key cannot be read.
    """
    from discoclaw.mirroring import find_keys, redactor_for  # slow imports, which reading does not need

    settings = settings_module.load()
    return redactor_for(settings, find_keys(settings))


def without_secrets(words: str) -> str:
    """Text with everything removed that looks like a key, so that it may be stored."""
    clean = redactor()(words)
    if clean.redacted or clean.flagged:
        note("left out what looks like a secret key")
    return clean.text


class _Notes(logging.Handler):
    """Shows warnings of the log as notes. Those about ledgers are left out, as commands report them."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "discoclaw.memory.subjects.ledger":
            note(record.getMessage())


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    handler, log = _Notes(logging.WARNING), logging.getLogger("discoclaw")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


# ---------------------------------------------------------------------- an item that somebody names

ITEM = "<item>"
"""Stands for an item's id in a command that is to be typed again."""
MOST_LISTED = 10


def item_named(items: Collection[Item], wanted: str, again: Sequence[str]) -> Item:
    """The item that a person names: by id, by the first digits of it, or by at least 60 % of its text.

    `again` is the command as words, with `ITEM` where it names the item. Raises Refused if there is not
    exactly one, with the candidates and the command to type for each: in a terminal a question can't have
    buttons.
    """

    def listed(some: Collection[Item]) -> str:
        lines = [
            f"`{shlex.join([short(item.id) if word is ITEM else word for word in again])}` "
            f"for {quoted(item.text, 60)}"
            for item in list(some)[:MOST_LISTED]
        ]
        more = len(some) - len(lines)
        return "; ".join([*lines, *([f"and {more} more"] if more else [])])

    prefix = wanted.strip().casefold().removeprefix("durable-")
    found = find_one(items, wanted)
    found = found or [item for item in items if prefix and short(item.id).startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"{quoted(wanted, 60)} matches {len(found)} items; type {listed(found)}")
    # By some of its words, by similar ones, or by a mistyped id.
    similar, by_id = find(list(items), wanted), {short(item.id): item for item in items}
    near = [*similar.meant, *similar.near]
    near = near or [by_id[one] for one in difflib.get_close_matches(normalise(wanted), by_id, n=3)]
    hint = (
        f"did you mean one of these? Type {listed(near)}"
        if near
        else "`discoclaw memory show` lists them with their ids"
    )
    raise Refused(f"no item matches {quoted(wanted, 60)}, by its id or 60 % of its text; {hint}")


# ---------------------------------------------------------------------- who there is

_COLUMNS = ("subject", "name", "branch", "active", "forgotten", "commits")


def print_list(*, as_json: bool, then: str = "") -> None:
    """Print every person and channel. `then` is the command for which one of them has to be named."""
    settings = settings_module.load()
    with stores_of(settings) as stores:
        disk = stores.used
        known = {one.subject: one for one in inspect_all(settings)}
        # With those who have a profile, and nothing remembered yet.
        there = [known.get(subject) or Inspection(subject, History(), ()) for subject in recorded(disk)]
        rows: list[dict[str, Any]] = [
            {
                "subject": one.subject,
                "name": name_of(user_of(one.subject), disk),
                "branch": one.history.branches.current,
                "active": (active := len(one.view.active())),
                "forgotten": len(one.view.items) - active,
                "commits": len(one.commits),
            }
            for one in there
        ]
        where = disk.documents("").folder if disk.shared else stores.root
    note_other_stores(settings)
    for one in there:
        if not one.commits:
            for fault in one.faults:
                note(f"{one.subject}: {fault}")
    changed = [one.view.updated_at if one.view.commits else None for one in there]
    if as_json:
        iso = (iso_ms(at)[:16] + "Z" if at is not None else "" for at in changed)
        say_json([row | {"last_change": at} for row, at in zip(rows, iso, strict=True)])
        return
    if not there:
        say(f"Nothing is remembered in {where}.")
        return
    columns = [name for name in _COLUMNS if name != "name" or any(row["name"] for row in rows)]
    cells = [
        [*(str(row[name]) for name in columns), local_time(at) if at is not None else ""]
        for row, at in zip(rows, changed, strict=True)
    ]
    print_grid(Grid([*columns, "last change"], cells))
    if then:
        say(f"Say whose, for example: discoclaw memory {then} {there[0].subject}")


def name_of(user_id: str | None, disk: Disk) -> str:
    """The name in a person's profile; "" if there is none."""
    return _known(disk, PROFILES, user_id, lambda value: Profile.from_json(value).name)


def channel_of(channel_id: str | None, disk: Disk) -> str:
    """The topic of a channel; "" if it is not known."""
    return _known(disk, GROUPS, channel_id, lambda value: Group.from_json(value).purpose or "")


def _known(disk: Disk, folder: str, name: str | None, read: Callable[[object], str]) -> str:
    try:
        return "" if name is None else read(json.loads(disk.documents(folder).read(f"{name}.json")))
    except (OSError, ValueError, RecursionError):  # `memory get` says what is wrong with it
        return ""


# ---------------------------------------------------------------------- printing


def say(text: str) -> None:
    """Print a text that is safe for a terminal: one that `show` made, or our own words."""
    typer.echo(text)


def say_json(value: object) -> None:
    """Print JSON. Non-ASCII characters are escaped unless the output is UTF-8."""
    plain = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(value, ensure_ascii=plain, indent=2))


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print what a verb answers: its JSON for programs; for people a table or a text, and what follows it.

    Raises typer.Exit(1) if it failed.
    """
    if as_json:
        say_json(answer.data)
    else:
        if isinstance(answer.typed, Grid):
            print_grid(answer.typed)
            below = "\n".join(answer.foot)
        else:
            told = [answer.typed, *answer.foot] if answer.typed else [answer.as_text(in_private=True)]
            below = "\n".join(told)
        if below:
            say(below)
    if answer.failed:
        raise typer.Exit(1)


def hand_out(answer: Answer, path: Path, *, force: bool) -> None:
    """Write the file of an answer, or to stdout for `-`; then say where it is. Raises as `put`."""
    if put(answer.files[0].data, path, force=force):
        assert isinstance(answer.typed, str)
        say(answer.typed.replace("{path}", str(path)))


def print_grid(grid: Grid) -> None:
    """Print a table as wide as the terminal. If the output goes elsewhere, its rows are not wrapped."""
    table = Table(
        *(
            Column(name, no_wrap=name in grid.whole, justify="right" if name in grid.right else "left")
            for name in grid.columns
        )
    )
    for number, row in enumerate(grid.rows):
        cells = (Text(line(cell)) for cell in row)
        table.add_row(*cells, style="dim" if number in grid.faint else None)
    out = Console(highlight=False, soft_wrap=True)
    wide = Console(width=_UNBROKEN_WIDTH, highlight=False, soft_wrap=True)
    (out if out.is_terminal else wide).print(table)


def note(text: str) -> None:
    """Print a remark to stderr that is not an error."""
    typer.echo(f"note: {line(text)}", err=True)


def save(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file completely or not at all; replace one only by `force`. Raises Refused or MemoryFault."""
    check_outside(path)
    with faulting(f"can't write {path}"), new_file(path, replace=force) as file:
        file.write(content)


def put(content: bytes, path: Path, *, force: bool) -> bool:
    """Write a file, or to stdout for `-`; return whether it was a file. Raises Refused or MemoryFault."""
    if str(path) != "-":
        save(path, content, force=force)
        return True
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return False


def check_outside(path: Path) -> None:
    """Raise Refused for a path inside the memory's folders, where a file could pass for somebody's memory."""
    settings = settings_module.load()
    for folder in filter(None, (settings.memory_dir, settings.durable_dir, settings.summary_dir)):
        if path.resolve().is_relative_to(folder.resolve()):
            raise Refused(f"{path} is inside the folder of the memory itself; choose another place")
