"""`discoclaw memory`: the verbs that have parameters of their own, and so aren't made from the table alone.

Those that look only read, so they work while the bot runs. Those that change lock the data folder, so they
are refused then; what they record counts as stated by the person, and is marked as made by "cli". Verbs that
take a memory out of a store, or bring one in, are in `exchange`.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import typer

from discoclaw import settings as settings_module
from discoclaw.cli import exchange
from discoclaw.cli.caller import Admin, answer_of, look, shared_verbs
from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    IMPORT_PANEL,
    LOCAL_TIMES,
    AnySubjectArg,
    AsJson,
    Force,
    OnlyBranch,
    RecordArg,
    SubjectArg,
    existing_subject,
    hand_out,
    inspect_or_fault,
    inspect_subject,
    local_time,
    locked_storage,
    no_memory_text,
    note,
    note_other_stores,
    now_ms,
    print_answer,
    print_list,
    run_change,
    run_on_storage,
    say,
    say_json,
    storage_of,
    stores_of,
    without_secrets,
)
from discoclaw.commands import data, history, questions
from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.item import Facets
from discoclaw.core.profile import Group, Part, Profile, key_of
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.times import iso_ms
from discoclaw.memory.people import choices
from discoclaw.memory.people.groups import KINDS
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import Inspection, recorded, subject_named, subjects, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.answer import Reply, below
from discoclaw.show.words import line, quoted, short, when
from discoclaw.storage import Storage
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


# ---------------------------------------------------------------------- how it came about


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
    picture = format_ == "png"
    if picture and output is None and sys.stdout.isatty():
        raise Refused("a picture can't be shown in the terminal; write it to a file: --output graph.png")
    form = "picture" if picture else format_
    answer = look(who, lambda admin: history.graph(admin, form))
    if output is None and not picture:
        say(answer.files[0].data.decode().rstrip("\n"))
    else:
        hand_out(answer, output or Path("-"), force=force)


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

        def inspected(name: str) -> Inspection:
            one = inspect_or_fault(disk, name)
            if name not in unfinished(disk):
                return one
            fault = "erasing it was interrupted; the bot finishes that when it next starts"
            return replace(one, faults=(*one.faults, fault))

        checked = [inspected(name) for name in (names if named is None else [named])]
        # The lock is only taken if there is something to repair, so a check works while the bot runs.
        if repair and any(one.faults or one.notes for one in checked):
            with locked_storage() as storage:
                for one in checked:
                    if one.faults or one.notes:
                        done[one.subject] = asyncio.run(_repair(storage.memory, one))
            checked = [inspected(one.subject) if one.faults or one.notes else one for one in checked]
    told = [(one, done.get(one.subject, [])) for one in checked]
    print_answer(asyncio.run(history.verify(Admin(inspected=told))), as_json)


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


# ---------------------------------------------------------------------- changing it

_OPTIONS: Mapping[str, Part | None] = {"--note": None, "--theme": "theme", "--decision": "decision"}


@memory.command("set", rich_help_panel=CHANGE_PANEL)
def set_(
    who: RecordArg,
    note_: Annotated[str | None, typer.Option("--note", help="For a person: a note of one sentence.")] = None,
    theme: Annotated[
        str | None, typer.Option("--theme", help="For a channel: what people talk about there.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option("--decision", help="For a channel: what has been decided.")
    ] = None,
) -> None:
    """Add a note about a person, or a theme or decision of a channel. The model always reads it.

    A channel's purpose is its topic in Discord. `discoclaw memory undo` removes a note again.

    Example: discoclaw memory set 123456789012345678 --note "Prefers to be called Annie."
    """
    subject = subject_named(who)
    given = {name: text for name, text in zip(_OPTIONS, (note_, theme, decision), strict=True) if text}
    if len(given) != 1:
        raise typer.BadParameter("use exactly one of them", param_hint=" / ".join(_OPTIONS))
    ((option, text),) = given.items()
    if user_of(subject) is None and group_of(subject) is None:
        raise Refused(f"{subject} is neither a person nor a channel, so it has no record")
    if (user_of(subject) is None) == (option == "--note"):
        fits = "--theme or --decision" if option == "--note" else "--note"
        raise Refused(f"{subject} has no {option.removeprefix('--')}s; use {fits}")
    with stores_of(settings_module.load()) as stores:
        there = recorded(stores.used)
    if subject not in there:
        raise Refused(no_memory_text(subject, there))
    clean = without_secrets(text)

    def state(draft: Draft) -> str:
        if option == "--note":
            item, done = draft.upsert("fact", clean, CLI_ORIGIN, facets=Facets(category="core"))
        else:
            part = _OPTIONS[option]
            assert part is not None
            facets = Facets(author="stated", key=key_of(part, clean), category="core")
            item, done = draft.upsert(KINDS[part], clean, CLI_ORIGIN, facets=facets)
        what = f"the {option.removeprefix('--')} {short(item.id)} {quoted(item.text)}"
        return f"{subject} already had {what}." if done == "unchanged" else f"{subject} now has {what}."

    async def work(storage: Storage) -> str:
        try:
            return await storage.memory.change(subject, "noted by hand", state, by=CLI_AUTHOR)
        finally:  # the record's file is updated before the process ends
            await storage.people.profiles.close()
            await storage.people.groups.close()

    say(run_on_storage(work))


Typed = Literal["keep", "new", "both"]
_HOW: Final = {typed: how for how, typed in questions.TYPED.items()}


@memory.command(rich_help_panel=CHANGE_PANEL)
def settle(
    who: SubjectArg,
    conflict: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id, as the list shows it.")
    ] = None,
    answer: Annotated[Typed | None, typer.Argument(metavar="keep|new|both", help="What is right.")] = None,
    branch: OnlyBranch = None,
    as_json: AsJson = False,
) -> None:
    """List questions about things that can't both be true, or answer one for the person.

    keep: the old text is right. new: the new one is. both: keep each as an item. Listing works while the bot
    runs.

    Example: discoclaw memory settle 123456789012345678 c5230d5b new
    """
    if conflict is not None and answer is None:
        raise typer.BadParameter("say what is right", param_hint="keep|new|both")
    if conflict is None or answer is None:  # listing only reads, so it works while the bot runs
        print_answer(look(who, questions.settle, persona_here=branch), as_json)
        return
    subject, how = existing_subject(who), _HOW[answer]

    async def work(storage: Storage) -> Reply:
        admin = Admin(subject, persona_here=branch, memory=storage.memory)
        return await questions.settle(admin, conflict, how)

    settled, taken_back = run_change(subject, work)
    print_answer(answer_of(below(settled, taken_back.splitlines())), as_json=False)


# ---------------------------------------------------------------------- everything about somebody


@memory.command(rich_help_panel=IMPORT_PANEL)
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
        found = (
            inspect_subject(subject, may_be_new=True) if not yes else inspect_or_fault(stores.used, subject)
        )
    if not yes:
        asking = Admin(subject, found=found, memory=storage_of(settings).memory)
        stored = asyncio.run(data.erase(asking))
        if not sys.stdin.isatty():
            raise Refused(f"this would erase {subject} for good: {stored}; confirm it with --yes")
        say(f"This erases {subject} for good: {stored}.")
        if not typer.confirm("Erase?"):
            raise Refused("nothing was erased")
    done = run_on_storage(
        lambda storage: data.erase(Admin(subject, found=found, memory=storage.memory), yes=True)
    )
    print_answer(answer_of(done), as_json=False)


shared_verbs(memory)
memory.add_typer(exchange.commands)
