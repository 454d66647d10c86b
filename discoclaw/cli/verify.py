"""`discoclaw memory verify`: hash everything anew, say what is wrong, and repair it when asked to."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.house import (
    AsJson,
    everybody,
    held_or_why,
    locked,
    nobody,
    note,
    now_ms,
    say,
    say_json,
)
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.memory import ledger
from discoclaw.memory.files import in_thread, stamp_of
from discoclaw.memory.inspect import Held, subject_named, unfinished
from discoclaw.memory.store import Memory
from discoclaw.settings import Settings
from discoclaw.show.words import count, line


def verify(
    who: Annotated[str | None, typer.Argument(help="A Discord user id; without it, everybody.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write damaged ledgers anew; the original is kept beside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Hash every ledger anew, and compare the durable files with them. Exit code 1 when something is wrong.

    --repair keeps the lines that verify, accepts that commits on the others are lost, and brings the
    durable file in line as the bot would. The bot has to be stopped for it.

    Example: discoclaw memory verify --repair
    """
    settings = settings_module.load()
    named = subject_named(who) if who is not None else None
    checked = [_checked(settings, name) for name in _names(settings, named)]
    done: dict[str, list[str]] = {}
    if repair and any(one.faults for one in checked):
        with locked() as memory:
            for one in checked:
                if one.faults:
                    done[one.subject] = asyncio.run(_repair(memory, one))
        checked = [_checked(settings, one.subject) if one.faults else one for one in checked]
    if as_json:
        say_json([_json(one) | {"repaired": done.get(one.subject, [])} for one in checked])
    else:
        _tell(checked, done)
    if any(one.faults for one in checked):
        raise typer.Exit(1)


def _names(settings: Settings, who: str | None) -> list[str]:
    """Who is to be checked. Raises Refused for somebody of whom there is nothing."""
    there = sorted({*everybody(settings), *unfinished(settings.memory_dir)})
    if who is not None and who not in there:
        raise Refused(nobody(who, there))
    return there if who is None else [who]


def _checked(settings: Settings, subject: str) -> Held:
    one = held_or_why(settings, subject)
    if subject not in unfinished(settings.memory_dir):
        return one
    fault = "its erasing was interrupted; the bot finishes it at its next start"
    return replace(one, faults=(*one.faults, fault))


async def _repair(memory: Memory, one: Held) -> list[str]:
    """Repair one subject; what was done, in sentences. What can not be repaired is a note."""
    path = memory.ledger_folder / f"{one.subject}.jsonl"
    now = now_ms()
    try:
        mended = await in_thread(ledger.repair, path, now_ms=now, stamp=stamp_of(now))
        await memory.view(one.subject)  # the durable file comes in line
        after = await in_thread(ledger.read, path)
    except OSError as error:
        note(f"{one.subject}: {path} can not be repaired: {error}")
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


def _tell(checked: list[Held], done: dict[str, list[str]]) -> None:
    for one in checked:
        for step in done.get(one.subject, []):
            say(f"{one.subject}: {step}")
        for fault in one.faults:
            say(f"{one.subject}: {line(fault)}")
    commits = count(sum(len(one.commits) for one in checked), "commit")
    faulty = sum(bool(one.faults) for one in checked)
    say(f"{count(len(checked), 'memory')} with {commits} checked, {faulty or 'none'} with something to say.")


def _json(one: Held) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "commits": len(one.commits),
        "faults": list(one.faults),
        "damage": [{"line": damage.line, "reason": damage.reason} for damage in one.damage],
        "torn_bytes": one.torn,
        "orphans": one.history.orphans(),
        "accepted_as_lost": sorted(one.history.accepted),
    }
