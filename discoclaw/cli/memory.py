"""`discoclaw memory`: what is remembered now, or was at an earlier point.

The commands in this module only read, so they work while the bot runs. The other commands of the group are
in `history`, `verify`, `records`, `change`, `taking_back`, `exchange` and `erase`.
"""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from discoclaw.cli import change, erase, exchange, history, listing, records, taking_back, verify
from discoclaw.cli.common import (
    LOCAL_TIMES,
    AsJson,
    OnBranch,
    inspect_subject,
    item_json,
    local_day,
    nothing_text,
    print_table,
    say,
    say_json,
    view_at_local,
)
from discoclaw.cli.listing import AnySubjectArg, print_list
from discoclaw.core.history import History
from discoclaw.core.item import Item, by_newest
from discoclaw.core.view import View
from discoclaw.show import text
from discoclaw.show.words import line, short

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
memory.command()(verify.verify)
memory.add_typer(records.commands)
memory.add_typer(change.commands)
memory.add_typer(taking_back.commands)
memory.add_typer(exchange.commands)
memory.add_typer(erase.commands)
