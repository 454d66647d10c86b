"""What the commands share: reading and changing the data folder, naming people and items, printing.

Looking reads the files and needs nobody's leave. Changing takes the folder's lock, so while the bot runs it
is refused (FolderInUse). Whoever sits at the command line is the admin: everything is shown, and what they
do counts as stated.
"""

import asyncio
import difflib
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from discoclaw import settings as settings_module
from discoclaw.core.draft import Origin, find
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.redact import Redactor
from discoclaw.core.text import normalise
from discoclaw.memory.disk.files import write_atomic
from discoclaw.memory.disk.port import Disk
from discoclaw.memory.subjects.inspect import Inspection, held, subject_named, subjects, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.settings import Settings
from discoclaw.show.words import line, quoted, short
from discoclaw.storage import Storage, build, disks_of

T = TypeVar("T")

CLI_ORIGIN = Origin("stated", evidence="command line")
_UNBROKEN_WIDTH = 4000
CLI_AUTHOR = "cli"
"""What commits say of who made them."""

SubjectArg = Annotated[str, typer.Argument(help="A Discord user id, or a subject as `memory list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
OnBranch = Annotated[str | None, typer.Option("--branch", help="Another branch than the current one.")]


def now_ms() -> int:
    """The system's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


# ---------------------------------------------------------------------- the folder


def all_subjects(settings: Settings) -> list[str]:
    """Every subject of the data folder."""
    with disks_of(settings) as stores:
        return subjects(stores.used)


def inspect_all(settings: Settings) -> list[Inspection]:
    """Every subject as it lies on disk; one that can not be read has that as its fault."""
    with disks_of(settings) as stores:
        return [inspect_or_fault(stores.used, subject) for subject in subjects(stores.used)]


def note_other_stores(settings: Settings) -> None:
    """Say that memories lie in another store than the one that is used, where that is so."""
    # One that can not be read stops whatever writes; here it is only looked at.
    with suppress(OSError), disks_of(settings) as stores:
        for told in stores.elsewhere():
            note(told)


def inspect_or_fault(disk: Disk, subject: str) -> Inspection:
    """One subject as it lies on disk, or an empty one with the reason why it can not be read."""
    try:
        return held(disk, subject)
    except MemoryFault as fault:
        return Inspection(subject, History(), (str(fault),))


def inspect_subject(who: str) -> Inspection:
    """One subject as it lies on disk; its faults go to stderr. Raises Refused and MemoryFault."""
    subject = subject_named(who)
    with disks_of(settings_module.load()) as stores:
        if subject in unfinished(stores.used):
            raise Refused(
                f"the erasing of {subject} was interrupted, so what is left of it is not shown; "
                f"`discoclaw memory erase {subject} --yes` finishes it, and so does the bot's next start"
            )
        one = held(stores.used, subject)
    for fault in one.faults:
        note(fault)
    return one


def existing_subject(who: str) -> str:
    """The subject of somebody of whom there is a memory.

    Raises Refused, naming who comes near: a slip of the keys must not begin a memory of nobody.
    """
    subject, there = subject_named(who), all_subjects(settings_module.load())
    if subject not in there:
        raise Refused(no_memory_text(subject, there))
    return subject


def no_memory_text(subject: str, there: Collection[str]) -> str:
    """What is said of a subject without a memory."""
    if subject in there:
        return f"nothing is recorded of {subject} yet"
    near = difflib.get_close_matches(subject, there, n=1, cutoff=0.8)
    way = f"did you mean {near[0]}?" if near else "`discoclaw memory list` shows everybody"
    return f"nothing is remembered of {subject}; {way}"


def run_locked(work: Callable[[Memory], Awaitable[T]]) -> T:
    """Do something that writes, with the folder locked. Raises FolderInUse, Refused and MemoryFault."""
    return run_on_storage(lambda storage: work(storage.memory))


def run_on_storage(work: Callable[[Storage], Awaitable[T]]) -> T:
    """The same with all that lies on disk."""

    async def done(storage: Storage) -> T:
        return await work(storage)

    with locked_storage() as storage:
        return asyncio.run(done(storage))


@contextmanager
def locked_storage() -> Iterator[Storage]:
    """What lies on disk, with the folder taken for this process; its warnings go to stderr meanwhile."""
    storage = storage_of(settings_module.load())
    with _notes():
        storage.open()
        try:
            yield storage
        finally:
            storage.close()


def storage_of(settings: Settings) -> Storage:
    """What lies on disk, which is not open yet. An admin works on it also where the bot does not use it."""
    return build(settings, clock=now_ms, for_admin=True)


def redactor() -> Redactor:
    """What takes secrets out of text; it knows our own Nostr key, if there is one.

    Raises SettingsError and MemoryFault when that can not be read.
    """
    from discoclaw.mirroring import find_keys, redactor_for  # imports that looking does without

    settings = settings_module.load()
    return redactor_for(settings, find_keys(settings))


def without_secrets(words: str) -> str:
    """Words as they may reach the disk: without what looks like a key."""
    clean = redactor()(words)
    if clean.redacted or clean.flagged:
        note("what looks like a secret key is left out")
    return clean.text


class _Notes(logging.Handler):
    """Shows warnings as notes. The errors of a ledger are left out: whoever meets one is told by name."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "discoclaw.memory.subjects.ledger":
            note(record.getMessage())


@contextmanager
def _notes() -> Iterator[None]:
    handler, log = _Notes(logging.WARNING), logging.getLogger("discoclaw")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


# ---------------------------------------------------------------------- naming


def item_named(items: Collection[Item], wanted: str) -> Item:
    """The one item a person means: by its id or the beginning of it, or by at least 60 % of its text.

    Raises Refused, listing the ids when it could be several, and what comes near when it is none.
    """
    found = find(items, wanted) or _begun(items, wanted)
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"{quoted(wanted, 60)} is {len(found)} items, name one by its id: {_listed(found)}")
    near = _near(items, wanted)
    hint = f"; near is {_listed(near)}" if near else "; `discoclaw memory show` lists all with their ids"
    raise Refused(f"no item is {quoted(wanted, 60)}, by id or at least 60 % of its text{hint}")


def _begun(items: Collection[Item], wanted: str) -> list[Item]:
    prefix = wanted.strip().casefold().removeprefix("durable-")
    return [item for item in items if prefix and short(item.id).startswith(prefix)]


def _near(items: Collection[Item], wanted: str) -> list[Item]:
    plain = normalise(wanted)
    inside = [item for item in items if plain and plain in normalise(item.text)]
    if inside:
        return inside
    by_name = {name: item for item in items for name in (short(item.id), normalise(item.text))}
    names = difflib.get_close_matches(plain, by_name, n=3)
    return list({by_name[name].id: by_name[name] for name in names}.values())


def _listed(items: Collection[Item]) -> str:
    some = [f"{short(item.id)} {quoted(item.text, 60)}" for item in items][:10]
    return "; ".join([*some, *([f"and {len(items) - 10} more"] if len(items) > 10 else [])])


# ---------------------------------------------------------------------- printing


def say(text: str) -> None:
    """Print what is already fit for a terminal: what `show` made, or words of our own."""
    typer.echo(text)


def say_json(value: object) -> None:
    """Print JSON, in a form that also a terminal without UTF-8 takes."""
    plain = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(value, ensure_ascii=plain, indent=2))


def print_table(table: Table) -> None:
    """A table as wide as the terminal; where the output goes elsewhere, no line of it is broken."""
    out = Console(highlight=False, soft_wrap=True)
    wide = Console(width=_UNBROKEN_WIDTH, highlight=False, soft_wrap=True)
    (out if out.is_terminal else wide).print(table)


def note(text: str) -> None:
    """Say something on stderr that is no error."""
    typer.echo(f"note: {line(text)}", err=True)


def save(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises Refused or MemoryFault with the reason."""
    check_outside(path)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise MemoryFault(f"{path} can not be written: {error.strerror or error}") from error


def check_outside(path: Path) -> None:
    """Raise Refused for a file among those of the memory: it would become somebody's, or replace it."""
    settings = settings_module.load()
    for folder in filter(None, (settings.memory_dir, settings.durable_dir, settings.summary_dir)):
        if path.resolve().is_relative_to(folder.resolve()):
            raise Refused(f"{path} is among the files of the memory itself; name another place")


def item_json(item: Item) -> dict[str, Any]:
    """An item for programs: DNAM's fields, and what the ledger knows beside them."""
    facets = item.facets
    return item.to_json() | {
        "author": facets.author,
        "sensitivity": facets.sensitivity,
        "key": facets.key,
        "links": sorted(facets.links),
    }
