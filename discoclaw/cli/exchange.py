"""`discoclaw memory export | import | erase`: memory goes along, comes in, or goes for good."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    CLI_ORIGIN,
    AsJson,
    SubjectArg,
    all_subjects,
    check_outside,
    inspect_all,
    inspect_subject,
    no_memory_text,
    note,
    note_other_stores,
    now_ms,
    redactor,
    run_locked,
    run_on_storage,
    save,
    say,
    say_json,
)
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record
from discoclaw.core.history import History
from discoclaw.core.subject import person_of, user_of, user_subject
from discoclaw.memory import exchange
from discoclaw.memory.disk.port import CURSORS
from discoclaw.memory.erasing.erase import Erased
from discoclaw.memory.exchange import Content, Imported, Report
from discoclaw.memory.people import last_used as access
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import Inspection, subject_named, unfinished
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.words import count, line
from discoclaw.storage import Storage, disks_of

commands = typer.Typer()
PANEL = "Bring in, erase (the bot has to be stopped)"

Format = Literal["json", "markdown", "objects", "snapshot"]
_NAMES: Mapping[Format, str] = {
    "json": "memories.json",
    "markdown": "memories.md",
    "objects": "memories",
    "snapshot": "snapshot.json",
}


# ---------------------------------------------------------------------- out


@commands.command()
def export(
    who: Annotated[
        str | None, typer.Argument(help="A Discord user id, or a subject as `memory list` shows it.")
    ] = None,
    everybody_: Annotated[
        bool, typer.Option("--all", help="Everybody with their whole history, and all that the store holds.")
    ] = False,
    format_: Annotated[
        Format,
        typer.Option("--format", help="All but markdown, which is for reading, can be imported again."),
    ] = "json",
    history: Annotated[
        bool, typer.Option("--history", help="Every commit too, not only what holds.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file, or - for stdout; objects: a folder, or a .zip file."),
    ] = None,
) -> None:
    """Everything that is remembered of one person, private items too, as a file (memories.json).

    Objects are a folder of events and commits, which are the whole history; a snapshot is a plain list of
    what holds now, for other programs. With --all it is a folder (everybody) from which `memory import` fills
    another store, as DISCOCLAW_STORE names them.

    Example: discoclaw memory export 123456789012345678 --history --output ann.json
    """
    if everybody_ == (who is not None):
        raise typer.BadParameter("name one person, or say --all")
    if who is None:
        _export_all(output or Path("everybody"), format_)
        return
    one = inspect_subject(who)
    if not one.history.records:
        raise Refused(no_memory_text(one.subject, all_subjects(settings_module.load())))
    path = output or Path(_NAMES[format_])
    if format_ == "objects" and path.suffix != ".zip" and str(path) != "-":
        check_outside(path)
        number = exchange.write_objects(one.history, path)
    else:
        content, number = _exported(one, format_, history)
        if str(path) == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            return
        save(path, content)
    say(f"Exported {count(number, 'memory')} of {one.subject} to {path}.")


def _export_all(folder: Path, format_: Format) -> None:
    if format_ == "snapshot":
        raise Refused("a snapshot is of one person; use --format json or objects with --all")
    if format_ == "markdown":
        raise Refused("markdown can not be imported again; use --format json or objects with --all")
    check_outside(folder)
    settings = settings_module.load()
    with disks_of(settings) as stores:
        if waiting := sorted(unfinished(stores.used)):
            raise Refused(
                f"the erasing of {waiting[0]} was interrupted; `discoclaw memory erase {waiting[0]} --yes` "
                "finishes it, and so does the bot's next start"
            )
        note_other_stores(settings)
        people = inspect_all(settings)
        number = exchange.write_everybody(stores.used, people, folder, format_, now_ms=now_ms())
    say(f"Exported {count(number, 'memory')} of {count(len(people), 'subject')} to {folder}.")


def _exported(one: Inspection, format_: Format, history: bool) -> tuple[bytes, int]:
    if format_ == "objects":
        return exchange.export_objects(one.history)
    if format_ == "snapshot":
        with disks_of(settings_module.load()) as stores:
            accessed = access.kept(stores.used.documents(CURSORS), one.subject)
        return exchange.export_snapshot(one.history, accessed)
    make = exchange.export_json if format_ == "json" else exchange.export_markdown
    return make(one.history, one.subject, history_too=history, now_ms=now_ms())


# ---------------------------------------------------------------------- in


@commands.command("import", rich_help_panel=PANEL)
def import_(
    path: Annotated[Path, typer.Argument(help="A file, a zip file or a folder.")],
    who: Annotated[
        str | None, typer.Option("--as", help="Whose it is, or which one of several people to bring in.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring memories in: an export, objects, a durable file, or a whole data folder.

    A history becomes one with what is here; memories without one are added to the current branch, and where
    they say otherwise than what is held, a question is left for `settle`. Twice is once. When anything in it
    can not be trusted, nothing at all is imported.

    Example: discoclaw memory import ann.json --as 123456789012345678
    """
    if exchange.is_everybody(path):
        _import_all(path, who, as_json)
        return
    imported = exchange.load_file(path, redactor())
    plan = _plan(imported, who)
    settings = settings_module.load()
    summaries = imported.summaries if who is None else {}
    done: dict[str, Report] = {}

    async def work(storage: Storage) -> int:
        await _take_all(storage.memory, plan, done, settings.max_items)
        people = {user for subject in all_subjects(settings) if (user := user_of(subject)) is not None}
        return await _bring_summaries(storage, summaries, people)

    brought = run_on_storage(work)
    _say_imported(imported.what, done, as_json, summaries=brought)
    if summaries and not as_json:
        say(f"{count(brought, 'summary')} of conversations imported, {len(summaries) - brought} left out.")


def _import_all(path: Path, who: str | None, as_json: bool) -> None:
    """Bring in a whole store, or one person of it."""
    whole = exchange.load_everybody(path)
    only = subject_named(who) if who is not None else None
    plan = {subject: one for subject, one in whole.subjects.items() if only in (None, subject)}
    if only is not None and not plan:
        raise Refused(f"{whole.what} holds nothing of {only}")
    max_items = settings_module.load().max_items
    done: dict[str, Report] = {}

    async def work(memory: Memory) -> tuple[int, int]:
        if only is None:
            try:
                memory.bring_decisions(whole.disk)
            except MemoryFault as fault:
                note(str(fault))
        await _take_all(memory, plan, done, max_items)
        if only is not None:
            return 0, 0
        erased = memory.erased_anybody()
        return exchange.take_texts(whole, memory.disk, memory.erased_at, any_erased=erased)

    summaries, cursors = run_locked(work)
    _say_imported(whole.what, done, as_json, summaries=summaries, cursors=cursors)
    if only is None and not as_json:
        say(f"{count(summaries, 'summary')} of conversations and {count(cursors, 'cursor')} imported.")


async def _take_all(
    memory: Memory, plan: Mapping[str, Content], done: dict[str, Report], max_items: int
) -> None:
    """Add to each subject what it gets; into `done` goes what came of it. Raises Refused and MemoryFault."""
    for subject, content in plan.items():
        await _try(memory, subject, content, max_items)
    for subject, content in plan.items():
        try:
            done[subject] = await memory.act(subject, _Take(content, memory.erased_at(subject)))
        except MemoryFault as fault:
            raise MemoryFault(
                f"{fault}; {len(done)} of {count(len(plan), 'person')} came in before that: "
                "import once more when that is mended, nothing comes in twice"
            ) from fault


def _say_imported(what: str, done: Mapping[str, Report], as_json: bool, **more: int) -> None:
    if as_json:
        people = {subject: asdict(report) for subject, report in done.items()}
        say_json({"what": what, "people": people, **more})
        return
    for subject, report in done.items():
        for told in (*report.notes, *report.rejected):
            note(f"{subject}: {told}")
        say(f"{subject}: {_told(subject, report)}")


def _plan(imported: Imported, who: str | None) -> dict[str, Content]:
    """Which subject gets what. Raises Refused when a file does not say, and nobody did."""
    if who is not None:
        subject = subject_named(who)
        if len(imported.subjects) == 1:
            return {subject: next(iter(imported.subjects.values()))}
        return {subject: imported.content(user_of(subject))}
    if None in imported.subjects:
        raise Refused(f"{imported.what} does not say of whom it speaks; say it with --as")
    return {user_subject(user): content for user, content in imported.subjects.items() if user is not None}


class _Take:
    """What an import adds to one subject, as the store asks for it."""

    def __init__(self, content: Content, erased_at: int) -> None:
        self._content = content
        self._erased_at = erased_at

    def __call__(self, history: History, now: int, max_items: int) -> tuple[list[Record], Report]:
        return exchange.records_for(
            self._content,
            history,
            now_ms=now,
            max_items=max_items,
            origin=CLI_ORIGIN,
            erased_at=self._erased_at,
        )


async def _try(memory: Memory, subject: str, content: Content, max_items: int) -> None:
    """Raise whatever will stand against an import before the first record of anybody is written."""
    lines = memory.ledgers.log(subject)
    history = await memory.history(subject)
    if damage := ledger.read(lines).damage:
        raise MemoryFault(f"{lines.path.name}, {damage[0]}; run `discoclaw memory verify --repair` first")
    _Take(content, memory.erased_at(subject))(history, now_ms(), max_items)


async def _bring_summaries(storage: Storage, summaries: Mapping[str, str], people: set[str]) -> int:
    """Store summaries of conversations that have none; how many.

    Nobody knows whose words are in the summary of a channel. So it is as if everybody known here had part in
    it, for when one of them is erased, and it is left out where anybody was. Raises MemoryFault.
    """
    memory, rolling, cursors = storage.memory, storage.conversations.rolling, storage.cursors
    brought = 0
    for name, summary in summaries.items():
        person = person_of(name)
        gone = memory.erased_anybody() if person is None else memory.erased_at(user_subject(person)) >= 0
        if gone or (await rolling.get(name)).summary:
            continue
        note_of = {"session": name, "people": sorted(people)}
        if person is None and not await cursors.put(f"people-{name}", note_of):
            raise MemoryFault(f"whose words are in the summary of {name} could not be noted")
        brought += await rolling.put(name, summary, generation=await rolling.generation(name))
    return brought


def _told(subject: str, report: Report) -> str:
    return "; ".join(_parts(subject, report)) + "."


def _parts(subject: str, report: Report) -> Iterator[str]:
    if report.nothing:
        yield "nothing new"
    if report.records:
        named = f", branches {', '.join(map(line, report.branches))}" if report.branches else ""
        yield f"{count(report.records, 'record')} imported ({count(report.commits, 'commit')}{named})"
    if report.items:
        yield f"{count(report.items, 'memory')} imported"
    if report.conflicts:
        yield f"{report.conflicts} to settle (`discoclaw memory settle {subject}`)"
    if report.known:
        yield f"{report.known} known already"
    if report.erased:
        yield f"{report.erased} left out, since they were erased here"
    if report.redacted:
        yield f"{report.redacted} with what looks like a secret key taken out"
    if report.rejected:
        yield f"{len(report.rejected)} not taken"


# ---------------------------------------------------------------------- for good


@commands.command(rich_help_panel=PANEL)
def erase(
    who: SubjectArg,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
) -> None:
    """Erase every byte that is kept of one person: ledger, files, copies, summaries they are part of.

    There is no way back, and what they said until now is not learned again. Without --yes it says what would
    go, and asks.

    Example: discoclaw memory erase 123456789012345678 --yes
    """
    subject = subject_named(who)
    if not settings_module.load().memory_dir.is_dir():
        raise Refused(no_memory_text(subject, ()))
    if not yes:
        _ask(subject)

    async def work(memory: Memory) -> Erased:
        return await memory.erase(subject)

    done = run_locked(work)
    if done.left:
        raise MemoryFault(
            f"{count(len(done.left), 'file')} of {subject} could not be removed; that is tried again at the "
            "next start, and nothing is remembered of them until then"
        )
    what = f"{count(done.removed, 'file')} removed" if done.removed else "there was nothing to remove"
    outside = "; the bot removes what it showed in Discord when it next runs" if done.todo else ""
    with_it = "; the bot's personality, which rested on their words, went with it" if done.soul else ""
    say(f"{subject} is erased: {what}{with_it}{outside}.")


def _ask(subject: str) -> None:
    """Say what would go, and ask for leave. Raises Refused when there is nobody to ask, or they say no."""
    one = inspect_subject(subject)
    there = one.history.branches.all
    items = {key for branch in there.values() for key in one.history.view(branch.head).items}
    figures = (
        f"{count(len(items), 'memory')}, {count(len(one.commits), 'commit')} on {count(len(there), 'branch')}"
    )
    kept = f"{figures if one.history.records else 'no ledger'}, and the summaries they are part of"
    if not sys.stdin.isatty():
        raise Refused(f"this would erase {subject} for good: {kept}; say --yes to do it")
    say(f"This erases {subject} for good: {kept}.")
    if not typer.confirm("Erase?"):
        raise Refused("nothing was erased")
