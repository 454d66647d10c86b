"""`discoclaw memory`: see what is remembered, and where it came from.

The commands in here read the files and never change them, so they work while the bot runs.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli import change, exchange, records, verify
from discoclaw.cli.common import (
    AsJson,
    OnBranch,
    SubjectArg,
    all_subjects,
    inspect_all,
    inspect_subject,
    item_json,
    item_named,
    no_memory_text,
    note,
    note_other_stores,
    print_table,
    save,
    say,
    say_json,
)
from discoclaw.core import compare
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source, by_newest
from discoclaw.core.times import date_of, iso_ms
from discoclaw.core.view import Fold, View, fold
from discoclaw.memory.disk.port import Disk
from discoclaw.memory.subjects.inspect import Inspection, recorded, view_at
from discoclaw.show import graph as graphs
from discoclaw.show import text
from discoclaw.show.words import line, short
from discoclaw.storage import disks_of

out = Console(highlight=False, soft_wrap=True)

memory = typer.Typer(
    help="See what is remembered, where it came from, and how it was before; change, merge and undo it.",
    no_args_is_help=True,
)

Point = "A commit (id, its first digits, HEAD~2), a branch, or a time (2026-02-03, 2026-02-03T16:29, UTC)."


# ---------------------------------------------------------------------- what there is


@memory.command("list")
def list_(as_json: AsJson = False) -> None:
    """Everybody of whom something is remembered, and every channel.

    Example: discoclaw memory list
    """
    settings = settings_module.load()
    with disks_of(settings) as stores:
        there = _with_records(inspect_all(settings), stores.used)
    rows = [_summary(one) for one in there]
    note_other_stores(settings)
    for one in there:
        if not one.commits:
            for fault in one.faults:
                note(f"{one.subject}: {fault}")
    if as_json:
        say_json(rows)
        return
    if not rows:
        say(f"Nothing is remembered under {settings.memory_dir}.")
        return
    columns = ("subject", "branch", "active", "forgotten", "commits", "last_change")
    table = Table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        table.add_row(*(Text(line(str(row[column]))) for column in columns))
    print_table(table)


def _with_records(there: list[Inspection], disk: Disk) -> list[Inspection]:
    """The same, and those of whom only a record says who they are."""
    held = {one.subject: one for one in there}
    return [held.get(subject) or Inspection(subject, History(), ()) for subject in recorded(disk)]


@memory.command()
def show(who: SubjectArg, as_json: AsJson = False) -> None:
    """What is remembered of one person, newest first, forgotten items last.

    Example: discoclaw memory show 123456789012345678
    """
    one = inspect_subject(who)
    if as_json:
        told = [item_json(item) for item in one.view.items.values()]
        say_json({"subject": one.subject, "branch": one.history.branches.current, "items": told})
        return
    if not one.view.items:
        say(_nothing(one))
        return
    items = sorted(one.view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    marks = {item.id: _marks(item) for item in items}
    table = Table(Column("id", no_wrap=True), "kind", "text", Column("updated", no_wrap=True))
    if any(marks.values()):
        table.add_column("")
    for item in items:
        row = [short(item.id), item.kind, item.text, date_of(item.updated_at), marks[item.id]]
        cells = [Text(line(cell)) for cell in row[: len(table.columns)]]
        table.add_row(*cells, style=None if item.active else "dim")
    print_table(table)


def _marks(item: Item) -> str:
    secret = "" if item.facets.sensitivity == "normal" else item.facets.sensitivity
    return ", ".join(filter(None, ["" if item.active else "forgotten", secret]))


@memory.command()
def view(
    who: SubjectArg,
    at: Annotated[str | None, typer.Option("--at", help=f"{Point} A date means the end of that day.")] = None,
    branch: OnBranch = None,
    as_json: AsJson = False,
) -> None:
    """What is or was remembered: now, at a commit, at a time, or on another branch.

    Example: discoclaw memory view 123456789012345678 --at 2026-02-03
    """
    one = inspect_subject(who)
    shown = _at(one.history, at, branch)
    if as_json:
        say_json({"subject": one.subject, **_view_json(shown)})
    elif not shown.items and at is None and branch is None:
        say(_nothing(one))
    else:
        say(text.view(shown))


def _at(history: History, at: str | None, branch: str | None) -> View:
    if at is not None:
        return view_at(history, at, branch=branch)
    return history.view(history.branch(branch).head) if branch is not None else history.shown()


@memory.command()
def branches(who: SubjectArg, as_json: AsJson = False) -> None:
    """The branches (personas) of one person, the current one marked with a star.

    Example: discoclaw memory branches 123456789012345678
    """
    history = inspect_subject(who).history
    there = history.branches
    counts = {name: len(history.view(branch.head).active()) for name, branch in there.all.items()}
    if not as_json:
        say(text.branches(there, counts))
        return
    rows = [
        asdict(branch) | {"current": name == there.current, "active": counts[name]}
        for name, branch in there.all.items()
    ]
    say_json({"current": there.current, "branches": rows})


@memory.command()
def stats(who: SubjectArg, as_json: AsJson = False) -> None:
    """How much is remembered of one person, of what kind, since when, and made by whom.

    Example: discoclaw memory stats 123456789012345678
    """
    one = inspect_subject(who)
    if as_json:
        say_json({"subject": one.subject} | text.stats_json(one.history))
    else:
        say(text.stats(one.history) if one.commits else _nothing(one))


# ---------------------------------------------------------------------- how it came about


@memory.command()
def log(
    who: SubjectArg,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line for each commit.")] = False,
    branch: Annotated[str | None, typer.Option("--branch", help="Only this branch; else all.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="So many commits.")] = None,
    as_json: AsJson = False,
) -> None:
    """The history of one person's memory, newest first.

    Example: discoclaw memory log 123456789012345678 --oneline --branch main --limit 20
    """
    one = inspect_subject(who)
    if as_json:
        say_json([commit.to_json() for commit in _commits(one.history, branch)[::-1][:limit]])
    elif not one.history.records:
        say(_nothing(one))
    else:
        say(text.log(one.history, branch=branch, oneline=oneline, limit=limit))


def _commits(history: History, branch: str | None) -> list[Commit]:
    if branch is None:
        return list(history.commits.values())
    return list(history.chain(history.branch(branch).head))


@memory.command()
def diff(
    who: SubjectArg,
    old: Annotated[str, typer.Argument(metavar="FROM", help=Point)],
    new: Annotated[str | None, typer.Argument(metavar="TO", help="The same; without it, now.")] = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two points: + came, - went, ~ says something else.

    Example: discoclaw memory diff 123456789012345678 HEAD~3
    """
    history = inspect_subject(who).history
    found = compare.diff(view_at(history, old), view_at(history, new) if new is not None else history.shown())
    if as_json:
        say_json([change.change_json(one) for one in found])
    else:
        say(text.changes(found))


@memory.command()
def why(
    who: SubjectArg,
    item: Annotated[str, typer.Argument(help="An item's id or its beginning, or 60 % of its text.")],
    branch: Annotated[str | None, typer.Option("--branch", help="Only this branch; else all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Where an item comes from: every event that touched it, with its commit, source and evidence.

    Also of an item that was removed, as long as it is in the history.

    Example: discoclaw memory why 123456789012345678 3720777d
    """
    history = inspect_subject(who).history
    found = _item_ever(history, item, branch)
    if as_json:
        say_json({"item": item_json(found), "events": _touched(history, found, branch)})
    else:
        say(text.why(history, found, link=_link, branch=branch))


def _link(source: Source) -> str:
    """Discord's addresses name the server, which a ledger does not know."""
    return str(source)


def _item_ever(history: History, wanted: str, branch: str | None) -> Item:
    """The item a person means, of those that are, or else of those that ever were. Raises Refused."""
    own = history.branch(branch or history.branches.current)
    here = history.view(own.head).items
    there: dict[str, Item] = {}
    if branch is None:
        for other in history.branches.all.values():
            there |= history.view(other.head).items
    try:
        return item_named((there | dict(here)).values(), wanted)
    except Refused:
        gone = _gone(history, branch)
        if not gone:
            raise
        return item_named((gone | there | dict(here)).values(), wanted)


def _gone(history: History, branch: str | None) -> dict[str, Item]:
    """The items that were removed, as they were last."""
    working, found = Fold(), dict[str, Item]()
    for commit in _reached(history, branch):
        for event in commit.events:
            before = dict(working.items) if event.event_type == "forget" else {}
            working.apply(event)
            found |= {key: item for key, item in before.items() if key not in working.items}
    return found


def _reached(history: History, branch: str | None) -> list[Commit]:
    """The commits that a branch rests on, or all, oldest first."""
    reached = None if branch is None else history.ancestors(history.branch(branch).head)
    return [commit for commit in history.commits.values() if reached is None or commit.id in reached]


def _touched(history: History, item: Item, branch: str | None) -> list[dict[str, Any]]:
    """The events that touched an item, oldest first, each with its commit."""
    bare = fold(history.commits.values()).triples
    return [
        {"commit": commit.id, "branch": commit.branch, "message": commit.message, "event": event.to_json()}
        for commit in _reached(history, branch)
        for event in commit.events
        if item.id
        in (event.ext.get("item", {}).get("id"), bare.get(event.id), bare.get(event.parent_id or ""))
    ]


@memory.command()
def graph(
    who: SubjectArg,
    format_: Annotated[
        Literal["mermaid", "timeline", "png"], typer.Option("--format", help="What to make.")
    ] = "mermaid",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else, or with -, it is printed.")
    ] = None,
) -> None:
    """The history as a graph: Mermaid's gitGraph, a timeline in text, or a picture.

    A picture goes to a file, or to where the output is sent.

    Example: discoclaw memory graph 123456789012345678 --format png --output graph.png
    """
    one = inspect_subject(who)
    if str(output) == "-":
        output = None
    if format_ == "png":
        if output is None and sys.stdout.isatty():
            raise Refused("a picture needs a file: --output graph.png")
        from discoclaw.show.picture import png  # Pillow is a second of imports on a slow disk

        made = png(one.history, title=one.subject)
    else:
        drawn = graphs.mermaid(one.history) if format_ == "mermaid" else graphs.timeline(one.history)
        made = (drawn.rstrip("\n") + "\n").encode()
    if output is not None:
        save(output, made)
        say(f"The history of {one.subject} is in {output}.")
    elif format_ == "png":
        sys.stdout.buffer.write(made)
        sys.stdout.buffer.flush()
    else:
        say(made.decode().rstrip("\n"))


# ---------------------------------------------------------------------- inside


def _summary(one: Inspection) -> dict[str, Any]:
    active = len(one.view.active())
    return {
        "subject": one.subject,
        "branch": one.history.branches.current,
        "active": active,
        "forgotten": len(one.view.items) - active,
        "commits": len(one.commits),
        "last_change": iso_ms(one.view.updated_at)[:16] + "Z" if one.view.commits else "",
    }


def _view_json(view: View) -> dict[str, Any]:
    return {
        "commit": view.head,
        "items": [item_json(item) for item in view.items.values()],
        "conflicts": [asdict(conflict) for conflict in view.conflicts],
    }


def _nothing(one: Inspection) -> str:
    """What is said of somebody whose memory is empty, or who is not there at all."""
    if one.history.records:
        return f"Nothing is remembered of {one.subject} on the branch {one.history.branches.current}."
    told = no_memory_text(one.subject, all_subjects(settings_module.load()))
    return f"{told[:1].upper()}{told[1:]}{'' if told.endswith('?') else '.'}"


memory.command()(verify.verify)
memory.add_typer(records.commands)
memory.add_typer(change.commands)
memory.add_typer(exchange.commands)
