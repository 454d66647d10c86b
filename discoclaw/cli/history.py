"""`discoclaw memory log | diff | why | graph`: how a memory came about.

The commands only read, so they work while the bot runs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from discoclaw.cli.change import change_json
from discoclaw.cli.common import (
    LOCAL_TIMES,
    AsJson,
    Force,
    SubjectArg,
    inspect_subject,
    item_json,
    nothing_text,
    save,
    say,
    say_json,
    view_at_local,
)
from discoclaw.cli.listing import AnySubjectArg, print_list
from discoclaw.cli.naming import ITEM, item_named
from discoclaw.core import compare
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source
from discoclaw.core.view import Fold, fold
from discoclaw.show import graph as graphs
from discoclaw.show import text

commands = typer.Typer()

POINT = (
    "A commit (its id, the first digits of it, or HEAD~2), a branch, or a local time (2026-02-03 or "
    "2026-02-03T16:29)."
)


@commands.command()
def log(
    who: AnySubjectArg = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="Show each commit on one line.")] = False,
    branch: Annotated[
        str | None, typer.Option("--branch", help="Show only this branch, not all of them.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Show at most this many commits.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the history of one person's memory, newest first.

    Example: discoclaw memory log 123456789012345678 --oneline --branch main --limit 20
    """
    if who is None:
        print_list(as_json=as_json, then="log")
        return
    one = inspect_subject(who)
    if as_json:
        say_json([commit.to_json() for commit in _commits(one.history, branch)[::-1][:limit]])
    elif not one.history.records:
        say(nothing_text(one))
    else:
        say(text.log(one.history, branch=branch, oneline=oneline, limit=limit, times=LOCAL_TIMES))


def _commits(history: History, branch: str | None) -> list[Commit]:
    if branch is None:
        return list(history.commits.values())
    return list(history.chain(history.branch(branch).head))


@commands.command()
def diff(
    who: SubjectArg,
    old: Annotated[str, typer.Argument(metavar="FROM", help=POINT)],
    new: Annotated[
        str | None, typer.Argument(metavar="TO", help="The same; by default, the present.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two points: + was added, - removed or forgotten, ~ changed.

    Example: discoclaw memory diff 123456789012345678 HEAD~3
    """
    history = inspect_subject(who).history
    later = view_at_local(history, new) if new is not None else history.shown()
    found = compare.diff(view_at_local(history, old), later)
    if as_json:
        say_json([change_json(one) for one in found])
    else:
        say(text.changes(found))


@commands.command()
def why(
    who: SubjectArg,
    item: Annotated[
        str, typer.Argument(help="An item: its id, the first digits of it, or 60 % of its text.")
    ],
    branch: Annotated[
        str | None, typer.Option("--branch", help="Look only at this branch, not all of them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show where an item comes from: every event about it, with its commit, source and evidence.

    Works for removed items too, as long as the history has them.

    Example: discoclaw memory why 123456789012345678 3720777d
    """
    history = inspect_subject(who).history
    options = [*(["--branch", branch] if branch else []), *(["--json"] if as_json else [])]
    found = _item_ever(history, item, branch, ["discoclaw", "memory", "why", who, ITEM, *options])
    if as_json:
        say_json({"item": item_json(found), "events": _touched(history, found, branch)})
    else:
        say(text.why(history, found, link=_link, branch=branch, times=LOCAL_TIMES))


def _link(source: Source) -> str:
    """The source as it is. A URL would need the id of the server, which a ledger does not contain."""
    return str(source)


def _item_ever(history: History, wanted: str, branch: str | None, again: Sequence[str]) -> Item:
    """The item that a person names, among present ones or else among removed ones. Raises Refused."""
    own = history.branch(branch or history.branches.current)
    here = history.view(own.head).items
    there: dict[str, Item] = {}
    if branch is None:
        for other in history.branches.all.values():
            there |= history.view(other.head).items
    # Removed items are tried last: their ids and texts must not make those of present ones ambiguous.
    try:
        return item_named((there | dict(here)).values(), wanted, again)
    except Refused:
        gone = _removed(history, branch)
        if not gone:
            raise
        return item_named((gone | there | dict(here)).values(), wanted, again)


def _removed(history: History, branch: str | None) -> dict[str, Item]:
    """The items that were removed, as they were before, by id."""
    working, found = Fold(), dict[str, Item]()
    for commit in _reached(history, branch):
        for event in commit.events:
            before = dict(working.items) if event.verb == "forget" else {}
            working.apply(event)
            found |= {key: item for key, item in before.items() if key not in working.items}
    return found


def _reached(history: History, branch: str | None) -> list[Commit]:
    """The commits that a branch is based on, or all of them, oldest first."""
    reached = None if branch is None else history.ancestors(history.branch(branch).head)
    return [commit for commit in history.commits.values() if reached is None or commit.id in reached]


def _touched(history: History, item: Item, branch: str | None) -> list[dict[str, Any]]:
    """The events about an item, oldest first, each with its commit."""
    bare = fold(history.commits.values()).triples
    return [
        {"commit": commit.id, "branch": commit.branch, "message": commit.message, "event": event.to_json()}
        for commit in _reached(history, branch)
        for event in commit.events
        if item.id
        in (event.ext.get("item", {}).get("id"), bare.get(event.id), bare.get(event.parent_id or ""))
    ]


@commands.command()
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
        as_text = graphs.mermaid if format_ == "mermaid" else _timeline
        made = (as_text(one.history).rstrip("\n") + "\n").encode()
    if output is not None:
        save(output, made, force=force)
        say(f"Wrote the history of {one.subject} to {output}.")
    elif format_ == "png":
        sys.stdout.buffer.write(made)
        sys.stdout.buffer.flush()
    else:
        say(made.decode().rstrip("\n"))


def _timeline(history: History) -> str:
    return graphs.timeline(history, times=LOCAL_TIMES)
