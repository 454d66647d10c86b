"""`discoclaw usage`: what models were used for, by whom, and what it cost."""

import asyncio
import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.caller import Admin
from discoclaw.cli.common import (
    AsJson,
    Force,
    channel_of,
    name_of,
    note,
    now_ms,
    print_answer,
    save,
    say,
    stores_of,
)
from discoclaw.commands import usage as commands
from discoclaw.commands.caller import Used
from discoclaw.core.usage import NOTHING, By, Call, Days, Lately, Report, last_days
from discoclaw.core.zones import local
from discoclaw.settings import Settings
from discoclaw.show.answer import Answer
from discoclaw.show.words import count
from discoclaw.usage.log import KEPT_MONTHS, UsageLog

_MOST_DAYS: Final = 31 * (KEPT_MONTHS + 1)
"""A report of more days would begin with days of which nothing is kept."""
_SINCE = re.compile(r"(\d{1,5})d|(\d{4}-\d\d-\d\d)")


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
    days, zone = _days(since, settings), settings.zone
    with stores_of(settings) as stores:
        disk = stores.used
        records, damaged = UsageLog(disk).read(days.begin(zone))
        report = Report.of((one for one in records if isinstance(one, Call)), zone)
        names: dict[By, Callable[[str], str]] = {
            "person": partial(name_of, disk=disk),
            "channel": partial(channel_of, disk=disk),
        }
        admin = Admin(usage=Used(Lately(days, NOTHING, NOTHING, report), zone, names, damaged=damaged))
        told = asyncio.run(commands.usage(admin, by or commands.OVERVIEW, True, picture is not None))
    answers = [told] if isinstance(told, Answer) else [one for one in told if isinstance(one, Answer)]
    if picture is not None:
        save(picture, answers[0].files[0].data, force=force)
    if as_json:
        print_answer(answers[0], as_json)
        return
    if damaged:
        note(f"{count(damaged, 'line')} of the usage log could not be read")
    for one in answers:
        print_answer(one, as_json)
    if picture is not None:
        say(f"Drew {picture}.")


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
