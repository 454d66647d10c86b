"""`discoclaw memory verify`: recomputes every hash, reports what is wrong, and repairs it on request."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    inspect_or_fault,
    locked_storage,
    no_memory_text,
    note,
    note_other_stores,
    now_ms,
    say,
    say_json,
    storage_of,
    stores_of,
)
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.memory.disk.files import in_thread, stamp_of
from discoclaw.memory.disk.port import Disk
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import Inspection, subject_named, subjects, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.settings import Settings
from discoclaw.show.words import count, line


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
