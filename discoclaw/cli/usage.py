"""`discoclaw usage`: what models were used for, by whom, and what it cost."""

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final, get_args

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    Force,
    channel_of,
    name_of,
    note,
    now_ms,
    print_answer,
    put,
    save,
    say,
    say_json,
    stores_of,
)
from discoclaw.core.errors import Refused
from discoclaw.core.subject import user_of
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import By, Call, Days, Report, last_days, money
from discoclaw.core.zones import local
from discoclaw.memory.subjects.inspect import subject_named
from discoclaw.settings import Settings
from discoclaw.show.usage import as_csv, cautions, counts, grouped, used
from discoclaw.show.words import count, line
from discoclaw.usage.accounts import calls_since
from discoclaw.usage.log import KEPT_MONTHS, UsageLog

_MOST_DAYS: Final = 31 * (KEPT_MONTHS + 1)
"""A report of more days would begin with days of which nothing is kept."""
_BRIEF: Final = 5
"""Groups of each kind that are shown if no kind is asked for."""
_SINCE = re.compile(r"(\d{1,5})d|(\d{4}-\d\d-\d\d)")
_OVERVIEW: Final[Sequence[By]] = ("purpose", "model", "person", "channel")


def usage(
    since: Annotated[
        str, typer.Option(help="So many days, today included (7d), or a day to begin with (2026-11-01).")
    ] = "30d",
    by: Annotated[
        By | None, typer.Option(help="Show all groups of one kind; by default the dearest of some.")
    ] = None,
    as_json: AsJson = False,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the days as a picture, a PNG file.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Show what models were used for, by whom, and what it cost.

    Days are those of DISCOCLAW_TIMEZONE, as for budgets. Lines of the usage log are kept for 13 months.

    Example: discoclaw usage --since 7d --by person

    Example: discoclaw usage --since 2026-11-01 --json --picture usage.png
    """
    settings = settings_module.load()
    days = _days(since, settings)
    kinds: Sequence[By] = (by,) if by is not None else get_args(By) if as_json else _OVERVIEW
    with stores_of(settings) as stores:
        disk = stores.used
        records, damaged = UsageLog(disk).read(days.begin(settings.zone))
        report = Report.of((one for one in records if isinstance(one, Call)), settings.zone)
        names: dict[By, Callable[[str], str]] = {
            "person": partial(name_of, disk=disk),
            "channel": partial(channel_of, disk=disk),
        }
        most = _BRIEF if by is None and not as_json else None
        groups = {
            kind: grouped(kind, report.by(kind, days), report.total, names, most, f"; --by {kind} shows all")
            for kind in kinds
        }
    if picture is not None:
        from discoclaw.show.usage_picture import png  # importing Pillow takes a second on a slow disk

        save(picture, png(report, days, title=f"Calls of models since {days.first}"), force=force)
    if as_json:
        say_json(
            {
                "since": iso_ms(days.begin(settings.zone)),
                "first": days.first.isoformat(),
                "last": days.last.isoformat(),
                "zone": str(settings.zone),
                "damagedLines": damaged,
                "total": counts(report.total),
                "by": {kind: one.data for kind, one in groups.items()},
            }
        )
        return
    if damaged:
        note(f"{count(damaged, 'line')} of the usage log could not be read")
    total = report.total
    say(f"{days.first} to {days.last}: {f'{money(total.nano)}, ' if total else ''}{used(total)}.")
    for text in cautions(total):
        say(text)
    for one in groups.values() if total else ():
        print_answer(one, as_json=False)
    if picture is not None:
        say(f"Drew {picture}.")


def export_calls(who: str, path: Path, *, force: bool) -> None:
    """Write a table of the calls of models that were for a person. Raises Refused and MemoryFault."""
    user_id = user_of(subject_named(who))
    with stores_of(settings_module.load()) as stores:
        calls = calls_since(UsageLog(stores.used), 0, user_id) if user_id is not None else []
    if not calls:
        raise Refused(
            f"no calls of models are written down for {line(who, 60)}; "
            "`discoclaw usage --by person` shows who has some"
        )
    if put(as_csv(calls), path, force=force):
        say(f"Exported {count(len(calls), 'call')} to {path}.")


def _days(since: str, settings: Settings) -> Days:
    """The days that `--since` means."""
    today = local(now_ms(), settings.zone).date()
    found = _SINCE.fullmatch(since.strip().lower())
    try:
        number = int(found[1]) if found is not None and found[1] else 0
        first = date.fromisoformat(found[2]) if found is not None and found[2] else None
    except ValueError:
        found, first = None, None
    if found is None or (first is None and not number):
        raise typer.BadParameter(f"--since {since!r} isn't a time; write for example 7d or {today:%Y-%m-01}")
    if first is None:
        return last_days(now_ms(), settings.zone, min(number, _MOST_DAYS))
    if first > today:
        raise typer.BadParameter(f"--since {since!r} is after today ({today})")
    return Days(max(first, today - timedelta(days=_MOST_DAYS)), today)
