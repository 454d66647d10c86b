"""`discoclaw memory list`, and what commands about one person show when none is named: who there is."""

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    inspect_all,
    local_time,
    note,
    note_other_stores,
    print_table,
    say,
    say_json,
    stores_of,
)
from discoclaw.core.history import History
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import user_of
from discoclaw.core.times import iso_ms
from discoclaw.memory.subjects.inspect import Inspection, recorded
from discoclaw.show.words import line
from discoclaw.store.port import GROUPS, PROFILES, Disk

AnySubjectArg = Annotated[
    str | None,
    typer.Argument(
        metavar="WHO",
        help="A Discord user id, or a subject as `memory list` shows it; without one, everybody is listed.",
    ),
]

_COLUMNS = ("subject", "name", "branch", "active", "forgotten", "commits")


def list_(as_json: AsJson = False) -> None:
    """List every person and channel that the bot remembers something about.

    Example: discoclaw memory list
    """
    print_list(as_json=as_json)


def print_list(*, as_json: bool, then: str = "") -> None:
    """Print who there is. `then` is the command for which one of them has to be named."""
    settings = settings_module.load()
    with stores_of(settings) as stores:
        there = _with_records(inspect_all(settings), stores.used)
        rows = [_row(one, stores.used) for one in there]
        where = stores.used.documents("").folder if stores.used.shared else stores.root
    note_other_stores(settings)
    for one in there:
        if not one.commits:
            for fault in one.faults:
                note(f"{one.subject}: {fault}")
    if as_json:
        say_json([row | {"last_change": _last_change_iso(one)} for row, one in zip(rows, there, strict=True)])
        return
    if not there:
        say(f"Nothing is remembered in {where}.")
        return
    columns = [name for name in _COLUMNS if name != "name" or any(row["name"] for row in rows)]
    table = Table(*columns, "last change")
    for row, one in zip(rows, there, strict=True):
        last = local_time(one.view.updated_at) if one.view.commits else ""
        table.add_row(*_cells([*(row[name] for name in columns), last]))
    print_table(table)
    if then:
        say(f"Say whose, for example: discoclaw memory {then} {there[0].subject}")


def _cells(values: Iterable[object]) -> list[Text]:
    return [Text(line(str(value))) for value in values]


def _with_records(there: list[Inspection], disk: Disk) -> list[Inspection]:
    """All subjects on disk, with those that have a profile but nothing remembered yet."""
    known = {one.subject: one for one in there}
    return [known.get(subject) or Inspection(subject, History(), ()) for subject in recorded(disk)]


def _row(one: Inspection, disk: Disk) -> dict[str, Any]:
    active = len(one.view.active())
    return {
        "subject": one.subject,
        "name": name_of(user_of(one.subject), disk),
        "branch": one.history.branches.current,
        "active": active,
        "forgotten": len(one.view.items) - active,
        "commits": len(one.commits),
    }


def name_of(user_id: str | None, disk: Disk) -> str:
    """The name in a person's profile; "" if there is none."""
    return _known(disk, PROFILES, user_id, lambda value: Profile.from_json(value).name)


def channel_of(channel_id: str | None, disk: Disk) -> str:
    """The topic of a channel; "" if it is not known."""
    return _known(disk, GROUPS, channel_id, lambda value: Group.from_json(value).purpose or "")


def _known(disk: Disk, folder: str, name: str | None, read: Callable[[object], str]) -> str:
    try:
        return "" if name is None else read(json.loads(disk.documents(folder).read(f"{name}.json")))
    except (OSError, ValueError, RecursionError):  # `memory get` says what is wrong with it
        return ""


def _last_change_iso(one: Inspection) -> str:
    return iso_ms(one.view.updated_at)[:16] + "Z" if one.view.commits else ""
