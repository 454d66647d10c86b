"""`discoclaw memory`, the verbs that look: what is remembered, how it came about, and whether it is intact.

They only read, so they work while the bot runs; `verify --repair` alone takes the lock. The verbs that change
a memory are in `change`, those that take one out of a store or bring one in in `exchange`.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from discoclaw import settings as settings_module
from discoclaw.cli import change, exchange
from discoclaw.cli.caller import shared_verbs
from discoclaw.cli.common import (
    ITEM,
    LOCAL_TIMES,
    AnySubjectArg,
    AsJson,
    Force,
    ItemArg,
    OnlyBranch,
    RecordArg,
    SubjectArg,
    inspect_or_fault,
    inspect_subject,
    item_named,
    local_day,
    local_time,
    locked_storage,
    no_memory_text,
    note,
    note_other_stores,
    now_ms,
    print_answer,
    print_list,
    save,
    say,
    say_json,
    storage_of,
    stores_of,
)
from discoclaw.commands.history import item_json
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.item import Item, by_newest
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.times import iso_ms
from discoclaw.core.view import Fold, fold
from discoclaw.memory.people import choices
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import Inspection, recorded, subject_named, subjects, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import graph as graphs
from discoclaw.show import text
from discoclaw.show.answer import Answer, Grid
from discoclaw.show.words import count, line, short, when
from discoclaw.store.files import in_thread, stamp_of
from discoclaw.store.port import GROUPS, PROFILES, Disk

T = TypeVar("T")

memory = typer.Typer(no_args_is_help=True)


# ---------------------------------------------------------------------- what is remembered


@memory.command("list")
def list_(as_json: AsJson = False) -> None:
    """List every person and channel that the bot remembers something about.

    Example: discoclaw memory list
    """
    print_list(as_json=as_json)


@memory.command()
def show(who: AnySubjectArg = None, as_json: AsJson = False) -> None:
    """Show what the bot remembers about one person, newest first and forgotten items last.

    Example: discoclaw memory show 123456789012345678
    """
    if who is None:
        print_list(as_json=as_json, then="show")
        return
    one = inspect_subject(who)
    branch, items = one.history.branches.current, list(one.view.items.values())
    value = {"subject": one.subject, "branch": branch, "items": [item_json(item) for item in items]}
    items.sort(key=lambda item: (not item.active, by_newest(item)))
    marks = []
    for item in items:
        level = "" if item.facets.sensitivity == "normal" else item.facets.sensitivity
        marks.append(", ".join(filter(None, ["" if item.active else "forgotten", level])))
    columns = ["id", "kind", "text", "updated", *([""] if any(marks) else [])]
    rows = [
        [short(item.id), item.kind, item.text, local_day(item.updated_at), mark][: len(columns)]
        for item, mark in zip(items, marks, strict=True)
    ]
    faint = [number for number, item in enumerate(items) if not item.active]
    nothing = f"Nothing is remembered about {one.subject} on the branch {branch}."
    typed = Grid(columns, rows, ("id", "updated"), faint=faint) if items else nothing
    print_answer(Answer(typed=typed, data=value), as_json)


# ---------------------------------------------------------------------- how it came about


@memory.command()
def why(who: SubjectArg, item: ItemArg, branch: OnlyBranch = None, as_json: AsJson = False) -> None:
    """Show where an item comes from: every event about it, with its commit, source and evidence.

    Works for removed items too, as long as the history has them.

    Example: discoclaw memory why 123456789012345678 3720777d
    """
    history = inspect_subject(who).history
    options = [*(["--branch", branch] if branch else []), *(["--json"] if as_json else [])]
    reached = None if branch is None else history.ancestors(history.branch(branch).head)
    commits = [one for one in history.commits.values() if reached is None or one.id in reached]

    # Removed items are tried last: their ids and texts must not make those of present ones ambiguous.
    there: dict[str, Item] = {}
    for other in history.branches.all.values() if branch is None else ():
        there |= history.view(other.head).items
    there |= history.view(history.branch(branch or history.branches.current).head).items
    again = ["discoclaw", "memory", "why", who, ITEM, *options]
    try:
        found = item_named(there.values(), item, again)
    except Refused:
        working, gone = Fold(), dict[str, Item]()  # the removed ones, as they were before
        for commit in commits:
            for event in commit.events:
                before = dict(working.items) if event.verb == "forget" else {}
                working.apply(event)
                gone |= {key: one for key, one in before.items() if key not in working.items}
        if not gone:
            raise
        found = item_named((gone | there).values(), item, again)

    # A URL as the link would need the id of the server, which a ledger does not contain.
    told = text.why(history, found, link=str, branch=branch, times=LOCAL_TIMES)
    bare = fold(history.commits.values()).triples
    events = [
        {"commit": commit.id, "branch": commit.branch, "message": commit.message, "event": event.to_json()}
        for commit in commits
        for event in commit.events
        if found.id
        in (event.ext.get("item", {}).get("id"), bare.get(event.id), bare.get(event.parent_id or ""))
    ]
    print_answer(Answer(typed=told, data={"item": item_json(found), "events": events}), as_json)


@memory.command()
def graph(
    who: AnySubjectArg = None,
    format_: Annotated[
        Literal["mermaid", "timeline", "png"], typer.Option("--format", help="The format of the graph.")
    ] = "mermaid",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file; by default, or with -, it is printed."),
    ] = None,
    force: Force = False,
) -> None:
    """Draw the history as a graph: as Mermaid's gitGraph, as a timeline in text, or as a picture.

    A picture needs a file or a redirected output.

    Example: discoclaw memory graph 123456789012345678 --format png --output graph.png
    """
    if str(output) == "-":
        output = None
    if who is None:
        if output is not None:
            raise typer.BadParameter("name the one person whose history is to be drawn")
        print_list(as_json=False, then="graph")
        return
    one = inspect_subject(who)
    if format_ == "png":
        if output is None and sys.stdout.isatty():
            raise Refused("a picture can't be shown in the terminal; write it to a file: --output graph.png")
        from discoclaw.show.picture import png  # importing Pillow takes a second on a slow disk

        made = png(one.history, title=one.subject)
    else:  # ends with exactly one newline, in a file as on the terminal
        drawn = (
            graphs.mermaid(one.history)
            if format_ == "mermaid"
            else graphs.timeline(one.history, times=LOCAL_TIMES)
        )
        made = (drawn.rstrip("\n") + "\n").encode()
    if output is not None:
        save(output, made, force=force)
        say(f"Wrote the history of {one.subject} to {output}.")
    elif format_ == "png":
        sys.stdout.buffer.write(made)
        sys.stdout.buffer.flush()
    else:
        say(made.decode().rstrip("\n"))


# ---------------------------------------------------------------------- whether it is intact


@memory.command()
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
        if (damaged := stores.check()) is not None:
            if not repair:
                raise MemoryFault(damaged)
            for step in storage_of(settings).memory.rescue():
                note(step)
        note_other_stores(settings)
        erasing = unfinished(disk)
        names = sorted({*subjects(disk), *erasing})  # one that is being erased may have no ledger left
        if named is not None and named not in names:
            raise Refused(no_memory_text(named, names))

        def look(name: str) -> Inspection:
            one = inspect_or_fault(disk, name)
            if name not in unfinished(disk):
                return one
            fault = "erasing it was interrupted; the bot finishes that when it next starts"
            return replace(one, faults=(*one.faults, fault))

        checked = [look(name) for name in (names if named is None else [named])]
        # The lock is only taken if there is something to repair, so a check works while the bot runs.
        if repair and any(one.faults or one.notes for one in checked):
            with locked_storage() as storage:
                for one in checked:
                    if one.faults or one.notes:
                        done[one.subject] = asyncio.run(_repair(storage.memory, one))
            checked = [look(one.subject) if one.faults or one.notes else one for one in checked]
    faulty = sum(bool(one.faults) for one in checked)
    if as_json:
        say_json(
            [
                {
                    "subject": one.subject,
                    "commits": len(one.commits),
                    "faults": list(one.faults),
                    "notes": list(one.notes),
                    "damage": [{"line": damage.line, "reason": damage.reason} for damage in one.damage],
                    "torn_bytes": one.torn,
                    "orphans": one.history.orphans(),
                    "accepted_as_lost": sorted(one.history.accepted),
                    "repaired": done.get(one.subject, []),
                }
                for one in checked
            ]
        )
    else:
        for one in checked:
            for step in done.get(one.subject, []):
                say(f"{one.subject}: {step}")
            for fault in (*one.faults, *one.notes):
                say(f"{one.subject}: {line(fault)}")
        commits = count(sum(len(one.commits) for one in checked), "commit")
        found = f"found problems in {faulty}" if faulty else "no problems"
        say(f"Checked {count(len(checked), 'memory')} with {commits}: {found}.")
    if faulty:
        raise typer.Exit(1)


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


# ---------------------------------------------------------------------- the record of a person or a channel


@memory.command()
def get(who: RecordArg, as_json: AsJson = False) -> None:
    """Show the record of a person (names, notes, …) or a channel (purpose, members, themes, decisions).

    Example: discoclaw memory get 123456789012345678
    """
    settings = settings_module.load()
    one = inspect_subject(who, may_be_new=True)
    seen = one.view
    more = {
        "branch": one.history.branches.current,
        "items": len(seen.active()),
        "last_change": iso_ms(seen.updated_at) if seen.commits else "",
    }
    with stores_of(settings) as stores:
        disk = stores.used
        if (user_id := user_of(one.subject)) is not None:
            profile = _read(disk, PROFILES, user_id, Profile.from_json, Profile()).with_view(seen)
            chosen = (choices.read(disk, [user_id]) or {}).get(user_id, {})
            # As it is published, and what only an admin sees.
            record = profile.published(is_owner=user_id in settings.owners)
            record = {**record, "opted_out": bool(chosen.get("opted_out", False)), **more}
        elif (group_id := group_of(one.subject)) is not None:
            group = _read(disk, GROUPS, group_id, Group.from_json, Group()).with_view(seen)
            record = {**group.to_json(), **more}
        else:
            raise Refused(
                f"{one.subject} is neither a person nor a channel; `discoclaw memory show` shows its items"
            )
        there = recorded(disk)
    if one.subject not in there:
        raise Refused(no_memory_text(one.subject, there))
    if as_json:
        say_json({"subject": one.subject, **record})
        return
    lines = [one.subject]  # then a single value on one line, and several below their name
    for name, value in record.items():
        title, shown = name.replace("_", " "), _in_words(name, value)
        if isinstance(shown, list):
            lines += [title, *(f"  - {each}" for each in shown)]
        elif shown:
            lines.append(f"{title:<12} {shown}")
    say("\n".join(lines))


def _read(disk: Disk, folder: str, name: str, parse: Callable[[object], T], otherwise: T) -> T:
    """The record in a file. One that cannot be parsed is noted and left alone. Raises MemoryFault."""
    path = disk.documents(folder).folder / f"{name}.json"
    try:
        return parse(json.loads(disk.documents(folder).read(path.name)))
    except FileNotFoundError:
        return otherwise
    except OSError as error:
        raise MemoryFault(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        note(f"{path} is not a record ({error}); the bot will set it aside when it next reads it")
        return otherwise


def _in_words(name: str, value: Any) -> str | list[str]:
    """The value of one field of a record as text; "" or [] if there is none."""

    def plain(one: Any) -> str:
        return line(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False))

    if name == "first_seen":
        return local_time(value * 1000) if value else ""
    if name == "last_change":
        return when(value, LOCAL_TIMES) if value else ""
    if name in ("display_names", "decisions"):
        return [f"{line(text)} ({local_time(at * 1000)})" for text, at in value]
    if name == "members":
        return [f"{line(called)} ({line(user_id)})" for user_id, called in value]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return [f"{line(str(key))}: {plain(one)}" for key, one in value.items()]
    if isinstance(value, list):
        return [plain(one) for one in value]
    return plain(value) if value is not None else ""


shared_verbs(memory)
memory.add_typer(change.commands)
memory.add_typer(exchange.commands)
