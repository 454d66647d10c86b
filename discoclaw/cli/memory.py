"""`discoclaw memory`: what is remembered now, or was at an earlier point.

The commands in this module only read, so they work while the bot runs. The other commands of the group are
in `history`, `verify`, `records`, `change`, `taking_back`, `exchange` and `erase`.
"""

import asyncio
import sys
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli import change, exchange, history, listing, records, taking_back
from discoclaw.cli.common import (
    IMPORT_PANEL,
    LOCAL_TIMES,
    AsJson,
    OnBranch,
    SubjectArg,
    inspect_or_fault,
    inspect_subject,
    item_json,
    local_day,
    locked_storage,
    no_memory_text,
    note,
    note_other_stores,
    nothing_text,
    now_ms,
    print_table,
    run_locked,
    say,
    say_json,
    storage_of,
    stores_of,
    view_at_local,
)
from discoclaw.cli.listing import AnySubjectArg, print_list
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Item, by_newest
from discoclaw.core.personal import ON_RELAYS
from discoclaw.core.view import View
from discoclaw.memory.erasing.erase import Erased
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import Inspection, subject_named, subjects, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.settings import Settings
from discoclaw.show import text
from discoclaw.show.words import count, line, memories, short
from discoclaw.store.files import in_thread, stamp_of
from discoclaw.store.port import Disk

# `discoclaw memory verify`: recomputes every hash, reports what is wrong, and repairs it on request.


def verify(
    who: Annotated[str | None, typer.Argument(help="A Discord user id; by default, everybody.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rewrite damaged ledgers, and keep the originals beside them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the hashes of every ledger, and compare the durable files with them.

    The exit code is 1 if anything is wrong. A durable file that is missing or outdated, as after a crash,
    is reported but not wrong: the bot writes it again. --repair keeps the lines that verify, accepts that
    commits on the other lines are lost, and updates the durable file as the bot would. From a damaged
    database it saves every readable row, and keeps the original. Stop the bot before you repair.

    Example: discoclaw memory verify --repair
    """
    settings = settings_module.load()
    named = subject_named(who) if who is not None else None
    done: dict[str, list[str]] = {}
    with stores_of(settings) as stores:
        disk = stores.used
        _look_at_whole(settings, stores, repair)
        note_other_stores(settings)
        # The lock is only taken if there is something to repair, so a check works while the bot runs.
        checked = [_checked(disk, name) for name in _names(disk, named)]
        if repair and any(map(_to_repair, checked)):
            with locked_storage() as storage:
                for one in checked:
                    if _to_repair(one):
                        done[one.subject] = asyncio.run(_repair(storage.memory, one))
            checked = [_checked(disk, one.subject) if _to_repair(one) else one for one in checked]
    if as_json:
        say_json([_json(one) | {"repaired": done.get(one.subject, [])} for one in checked])
    else:
        _tell(checked, done)
    if any(one.faults for one in checked):
        raise typer.Exit(1)


def _look_at_whole(settings: Settings, stores: Disks, repair: bool) -> None:
    """Raise MemoryFault if the whole store is damaged or, with `repair`, save what can be read."""
    why = stores.check()
    if why is not None and not repair:
        raise MemoryFault(why)
    for step in storage_of(settings).memory.rescue() if why is not None else ():
        note(step)


def _names(disk: Disk, who: str | None) -> list[str]:
    """The subjects to check. Raises Refused for one without a memory."""
    there = sorted({*subjects(disk), *unfinished(disk)})  # one that is being erased may have no ledger left
    if who is not None and who not in there:
        raise Refused(no_memory_text(who, there))
    return there if who is None else [who]


def _checked(disk: Disk, subject: str) -> Inspection:
    one = inspect_or_fault(disk, subject)
    if subject not in unfinished(disk):
        return one
    fault = "erasing it was interrupted; the bot finishes that when it next starts"
    return replace(one, faults=(*one.faults, fault))


def _to_repair(one: Inspection) -> bool:
    """Whether --repair has something to do for a subject."""
    return bool(one.faults or one.notes)


async def _repair(memory: Memory, one: Inspection) -> list[str]:
    """Repair one subject. Returns what was done, as sentences; what cannot be repaired is noted on stderr."""
    lines, now = memory.ledgers.log(one.subject), now_ms()
    try:
        mended = await in_thread(ledger.repair, lines, now_ms=now, stamp=stamp_of(now))
        await memory.view(one.subject)  # which updates the durable file
        after = await in_thread(ledger.read, lines)
    except OSError as error:
        note(f"{one.subject}: can't repair {lines.path}: {error.strerror or error}")
        return []
    except MemoryFault as fault:
        note(f"{one.subject}: {fault}")
        return []
    if mended is None:
        return []
    steps = [f"left out {line(str(damage))}" for damage in mended.damage]
    if one.torn:
        steps.append(f"left out an unfinished last line of {one.torn} bytes")
    lost = sorted(after.history.accepted - one.history.accepted)
    steps += [f"recorded that the commit {commit} is lost; what follows it stays" for commit in lost]
    return [*steps, f"rewrote the ledger; the original is {mended.kept_as}"]


def _tell(checked: list[Inspection], done: dict[str, list[str]]) -> None:
    for one in checked:
        for step in done.get(one.subject, []):
            say(f"{one.subject}: {step}")
        for fault in (*one.faults, *one.notes):
            say(f"{one.subject}: {line(fault)}")
    commits = count(sum(len(one.commits) for one in checked), "commit")
    faulty = sum(bool(one.faults) for one in checked)
    if faulty:
        say(f"Checked {count(len(checked), 'memory')} with {commits}: found problems in {faulty}.")
    else:
        say(f"Checked {count(len(checked), 'memory')} with {commits}: no problems.")


def _json(one: Inspection) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "commits": len(one.commits),
        "faults": list(one.faults),
        "notes": list(one.notes),
        "damage": [{"line": damage.line, "reason": damage.reason} for damage in one.damage],
        "torn_bytes": one.torn,
        "orphans": one.history.orphans(),
        "accepted_as_lost": sorted(one.history.accepted),
    }


# `discoclaw memory erase`: destroys everything that is stored about one person.

commands = typer.Typer()


@commands.command(rich_help_panel=IMPORT_PANEL)
def erase(
    who: SubjectArg,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")] = False,
) -> None:
    """Erase everything stored about one person: ledger, files, copies, and summaries they are part of.

    This cannot be undone, and what they have said until now is not learned again. Without --yes the command
    shows what would be erased, and asks for confirmation.

    Example: discoclaw memory erase 123456789012345678 --yes
    """
    subject, settings = subject_named(who), settings_module.load()
    with stores_of(settings) as stores:
        if not (stores.used.shared or settings.memory_dir.is_dir()):
            raise Refused(no_memory_text(subject, ()))
        if not yes:
            _confirm(subject)
        size = _size(inspect_or_fault(stores.used, subject).history)

    async def work(memory: Memory) -> Erased:
        return await memory.erase(subject)

    done = run_locked(work)
    if done.left:
        raise MemoryFault(
            f"{count(len(done.left), 'file')} of {subject} couldn't be removed; the bot tries again when it "
            "starts, and remembers nothing about them until then"
        )
    if done.waiting:
        raise MemoryFault(
            f"{subject} is not erased yet: another process still has something in RAM, and doesn't answer. A "
            "running bot finishes it; `discoclaw status` shows the processes"
        )
    removed = f"{size + '; ' if size else ''}{count(done.removed, 'file')} removed"
    sentences = [f"{subject} is erased: {removed if done.removed else 'there was nothing to remove'}."]
    if done.soul:
        sentences.append("The bot's personality was based on their words, so it is erased too.")
    if ON_RELAYS in done.todo:
        sentences.append(
            "When the bot next runs, it overwrites the copies on relays and requests their deletion, "
            "which a relay may ignore."
        )
    if set(done.todo) - {ON_RELAYS}:
        sentences.append("The bot will remove what it posted in Discord when it next runs.")
    say(" ".join(sentences))


def _size(history: History) -> str:
    """The size of a ledger in words; "" if there is none."""
    if not history.records:
        return ""
    made, there = count(len(history.commits), "commit"), count(len(history.branches.all), "branch")
    return f"{memories(history.items().values())}, {made} on {there}"


def _confirm(subject: str) -> None:
    """Show what would be erased and ask. Raises Refused if the answer is no, or if nobody can be asked."""
    one = inspect_subject(subject, may_be_new=True)
    stored = f"{_size(one.history) or 'no ledger'}, and the summaries they are part of"
    if ON_RELAYS in storage_of(settings_module.load()).memory.personal.outside(subject):
        stored += "; the bot requests the deletion of the copies on relays, which a relay may ignore"
    if not sys.stdin.isatty():
        raise Refused(f"this would erase {subject} for good: {stored}; confirm it with --yes")
    say(f"This erases {subject} for good: {stored}.")
    if not typer.confirm("Erase?"):
        raise Refused("nothing was erased")


memory = typer.Typer(no_args_is_help=True)


memory.command("list")(listing.list_)


@memory.command()
def show(who: AnySubjectArg = None, as_json: AsJson = False) -> None:
    """Show what the bot remembers about one person, newest first and forgotten items last.

    Example: discoclaw memory show 123456789012345678
    """
    if who is None:
        print_list(as_json=as_json, then="show")
        return
    one = inspect_subject(who)
    if as_json:
        items = [item_json(item) for item in one.view.items.values()]
        say_json({"subject": one.subject, "branch": one.history.branches.current, "items": items})
        return
    if not one.view.items:
        say(nothing_text(one))
        return
    ranked = sorted(one.view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    marks = {item.id: _marks(item) for item in ranked}
    table = Table(Column("id", no_wrap=True), "kind", "text", Column("updated", no_wrap=True))
    if any(marks.values()):
        table.add_column("")
    for item in ranked:
        row = [short(item.id), item.kind, item.text, local_day(item.updated_at), marks[item.id]]
        cells = [Text(line(cell)) for cell in row[: len(table.columns)]]
        table.add_row(*cells, style=None if item.active else "dim")
    print_table(table)


def _marks(item: Item) -> str:
    level = "" if item.facets.sensitivity == "normal" else item.facets.sensitivity
    return ", ".join(filter(None, ["" if item.active else "forgotten", level]))


@memory.command()
def view(
    who: AnySubjectArg = None,
    at: Annotated[
        str | None, typer.Option("--at", help=f"{history.POINT} A date means the end of that day.")
    ] = None,
    branch: OnBranch = None,
    as_json: AsJson = False,
) -> None:
    """Show what is or was remembered: now, at a commit, at a time, or on another branch.

    Example: discoclaw memory view 123456789012345678 --at 2026-02-03
    """
    if who is None:
        print_list(as_json=as_json, then="view")
        return
    one = inspect_subject(who)
    shown = _view_at(one.history, at, branch)
    if as_json:
        say_json({"subject": one.subject, **_view_json(shown)})
    elif not shown.items and at is None and branch is None:
        say(nothing_text(one))
    elif not shown.items and at is not None:
        say(f"Nothing was remembered about {one.subject} then.")
    else:
        say(text.view(shown, times=LOCAL_TIMES))


def _view_at(history: History, at: str | None, branch: str | None) -> View:
    if at is not None:
        return view_at_local(history, at, branch=branch)
    return history.view(history.branch(branch).head) if branch is not None else history.shown()


def _view_json(view: View) -> dict[str, Any]:
    return {
        "commit": view.head,
        "items": [item_json(item) for item in view.items.values()],
        "conflicts": [asdict(conflict) for conflict in view.conflicts],
    }


@memory.command()
def branches(who: AnySubjectArg = None, as_json: AsJson = False) -> None:
    """List the branches (personas) of one person. The current one is marked with a star.

    Example: discoclaw memory branches 123456789012345678
    """
    if who is None:
        print_list(as_json=as_json, then="branches")
        return
    history = inspect_subject(who).history
    there = history.branches
    counts = {name: len(history.view(branch.head).active()) for name, branch in there.all.items()}
    if not as_json:
        say(text.branches(there, counts))
        return
    rows = [
        asdict(branch) | {"private": branch.private, "current": name == there.current, "active": counts[name]}
        for name, branch in there.all.items()
    ]
    say_json({"current": there.current, "branches": rows})


@memory.command()
def stats(who: AnySubjectArg = None, as_json: AsJson = False) -> None:
    """Show statistics about one person's memory: how many items of which kinds, since when, made by whom.

    Example: discoclaw memory stats 123456789012345678
    """
    if who is None:
        print_list(as_json=as_json, then="stats")
        return
    one = inspect_subject(who)
    if as_json:
        say_json({"subject": one.subject} | text.stats_json(one.history))
    else:
        say(text.stats(one.history, times=LOCAL_TIMES) if one.commits else nothing_text(one))


memory.add_typer(history.commands)
memory.command()(verify)
memory.add_typer(records.commands)
memory.add_typer(change.commands)
memory.add_typer(taking_back.commands)
memory.add_typer(exchange.commands)
memory.add_typer(commands)
