"""`discoclaw memory verify`: hash everything anew, say what is wrong, and repair it when asked to."""

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
from discoclaw.storage import disks_of


def verify(
    who: Annotated[str | None, typer.Argument(help="A Discord user id; without it, everybody.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write damaged ledgers anew; the original is kept beside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Hash every ledger anew, and compare the durable files with them. Exit code 1 when something is wrong.

    --repair keeps the lines that verify, accepts that commits on the others are lost, and brings the
    durable file in line as the bot would. Of a database that is damaged it saves what can be read, and keeps
    the damaged one. The bot has to be stopped for it.

    Example: discoclaw memory verify --repair
    """
    settings = settings_module.load()
    named = subject_named(who) if who is not None else None
    done: dict[str, list[str]] = {}
    with disks_of(settings) as stores:
        disk = stores.used
        _look_at_whole(settings, stores, repair)
        note_other_stores(settings)
        checked = [_checked(disk, name) for name in _names(disk, named)]
        if repair and any(one.faults for one in checked):
            with locked_storage() as storage:
                for one in checked:
                    if one.faults:
                        done[one.subject] = asyncio.run(_repair(storage.memory, one))
            checked = [_checked(disk, one.subject) if one.faults else one for one in checked]
    if as_json:
        say_json([_json(one) | {"repaired": done.get(one.subject, [])} for one in checked])
    else:
        _tell(checked, done)
    if any(one.faults for one in checked):
        raise typer.Exit(1)


def _look_at_whole(settings: Settings, stores: Disks, repair: bool) -> None:
    """Raise MemoryFault for a store that is damaged as a whole; or save what can be read of it."""
    why = stores.check()
    if why is not None and not repair:
        raise MemoryFault(why)
    for step in storage_of(settings).memory.rescue() if why is not None else ():
        note(step)


def _names(disk: Disk, who: str | None) -> list[str]:
    """Who is to be checked. Raises Refused for somebody of whom there is nothing."""
    there = sorted({*subjects(disk), *unfinished(disk)})
    if who is not None and who not in there:
        raise Refused(no_memory_text(who, there))
    return there if who is None else [who]


def _checked(disk: Disk, subject: str) -> Inspection:
    one = inspect_or_fault(disk, subject)
    if subject not in unfinished(disk):
        return one
    fault = "its erasing was interrupted; the bot finishes it at its next start"
    return replace(one, faults=(*one.faults, fault))


async def _repair(memory: Memory, one: Inspection) -> list[str]:
    """Repair one subject; what was done, in sentences. What can not be repaired is a note."""
    lines, now = memory.ledgers.log(one.subject), now_ms()
    try:
        mended = await in_thread(ledger.repair, lines, now_ms=now, stamp=stamp_of(now))
        await memory.view(one.subject)  # the durable file comes in line
        after = await in_thread(ledger.read, lines)
    except OSError as error:
        note(f"{one.subject}: {lines.path} can not be repaired: {error}")
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
    steps += [f"the commit {commit} is lost, which is noted; what follows it stays" for commit in lost]
    return [*steps, f"written anew; what was there is kept as {mended.kept_as}"]


def _tell(checked: list[Inspection], done: dict[str, list[str]]) -> None:
    for one in checked:
        for step in done.get(one.subject, []):
            say(f"{one.subject}: {step}")
        for fault in one.faults:
            say(f"{one.subject}: {line(fault)}")
    commits = count(sum(len(one.commits) for one in checked), "commit")
    faulty = sum(bool(one.faults) for one in checked)
    say(f"{count(len(checked), 'memory')} with {commits} checked, {faulty or 'none'} with something to say.")


def _json(one: Inspection) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "commits": len(one.commits),
        "faults": list(one.faults),
        "damage": [{"line": damage.line, "reason": damage.reason} for damage in one.damage],
        "torn_bytes": one.torn,
        "orphans": one.history.orphans(),
        "accepted_as_lost": sorted(one.history.accepted),
    }
