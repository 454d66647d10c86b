"""`/usage` and `discoclaw usage`: what models were used for, what it cost, and what is left of budgets.

In Discord a person sees their own, an owner also everybody's, and nobody else reads it. In a terminal an
admin sees everybody's, of as many days as they like. How calls are counted is `usage/accounts`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast, get_args

from discoclaw.commands.caller import Caller, Used
from discoclaw.core.budgets import Spent
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import By, Days, Report, money
from discoclaw.show.answer import GREY, Answer, File, Menu, Reply, Row, Turn, written
from discoclaw.show.markup import ago
from discoclaw.show.usage import cautions, counts, grouped, used

VIEWS: Final = ("overview", "purpose", "model", "day", "channel", "server", "person")
"""How usage is shown: an overview, or divided by one of these."""
OVERVIEW: Final = VIEWS[0]
RECENT = "The last 30 days"
NO_CALLS = "No calls in the last 30 days"
_BRIEF: Final = 5
"""Groups of each kind in the overview of a terminal."""
_IN_BRIEF: Final[Sequence[By]] = ("purpose", "model", "person", "channel")
_OWN: Final[Sequence[By]] = ("purpose", "model", "day", "channel")
_ALL: Final[Sequence[By]] = ("person", "channel", "server", "purpose", "model", "day")


async def usage(caller: Caller, by: str, everybody: bool, picture: bool = True) -> Reply:
    found = await caller.used(everybody)
    report, days, total = found.lately.report, found.lately.days, found.lately.report.total
    if caller.terminal:
        return await _in_terminal(found, by, picture=picture)
    title = "Everybody's usage" if everybody else "Your usage"
    drawn = await asyncio.to_thread(_png, report, days, title)
    about = f"A bar for each of the last 30 days; together {money(total.nano)}" if total else NO_CALLS
    small = []
    if by == OVERVIEW:
        named = (("Today", found.lately.today), ("This month", found.lately.month), (RECENT, total))
        rows = [Row(f"**{when}**{f': {money(one.nano)}' if one else ''}", used(one)) for when, one in named]
        nearest = enumerate(sorted(found.budgets, key=lambda one: -one.percent))
        rows += [_budget(found, one, everybody=everybody, apart=not at) for at, one in nearest]
    else:
        kind = cast(By, by)
        groups = report.by(kind)
        newest = groups[::-1] if kind == "day" else groups
        rows = [*grouped(kind, newest, total, found.names).rows]
        small.append(f"{RECENT}: {money(total.nano)} · {used(total)}" if total else NO_CALLS)
        title = f"{title} by {kind}"
    answer = Answer(
        title,
        rows,
        small=small,
        foot=[*cautions(total), *found.notes],
        files=[File("usage.png", drawn, about)],
        menus=[_views(caller)],
        turn=Turn(caller.user_id, "data usage", (by, everybody)),
        page=caller.page,
        most=10,
        colour=GREY,
    )
    return answer if caller.in_private else await caller.answered_apart(answer)


async def _in_terminal(found: Used, by: str, *, picture: bool) -> Sequence[Answer]:
    """A sum with its picture, and a table for each kind; the first has the JSON of all."""
    report, days, total = found.lately.report, found.lately.days, found.lately.report.total
    shown, kinds = _IN_BRIEF, cast("Sequence[By]", get_args(By))
    if by != OVERVIEW:
        shown = kinds = (cast(By, by),)
    groups = {kind: report.by(kind, days) for kind in kinds}
    data: dict[str, Any] = {
        "since": iso_ms(days.begin(found.zone)),
        "first": days.first.isoformat(),
        "last": days.last.isoformat(),
        "zone": str(found.zone),
        "damagedLines": found.damaged,
        "total": counts(total),
        "by": {kind: grouped(kind, some, total, found.names).data for kind, some in groups.items()},
    }
    told = [f"{days.first} to {days.last}: {f'{money(total.nano)}, ' if total else ''}{used(total)}."]
    told += cautions(total)
    most = _BRIEF if by == OVERVIEW else None
    tables = [
        grouped(kind, groups[kind], total, found.names, most, f"; --by {kind} shows all")
        for kind in (shown if total else ())
    ]
    title = f"Calls of models since {days.first}"
    drawn = [File("usage.png", await asyncio.to_thread(_png, report, days, title))] if picture else []
    return [Answer(typed="\n".join(told), data=data, files=drawn), *tables]


def _png(report: Report, days: Days, title: str) -> bytes:
    from discoclaw.show.usage_picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(report, days, title=title)


def _views(caller: Caller) -> Menu:
    """The menu of all views that somebody may see."""
    options = [("Mine", "", written((OVERVIEW, False)))]
    options += [(f"Mine by {kind}", "", written((kind, False))) for kind in _OWN]
    if caller.owner:
        options.append(("Everybody's", "", written((OVERVIEW, True))))
        options += [(f"Everybody's by {kind}", "", written((kind, True))) for kind in _ALL]
    return Menu(f"usage:{caller.user_id}", "Another view…", options)


def _budget(found: Used, spent: Spent, *, everybody: bool, apart: bool) -> Row:
    """What is left of a budget, how much was spent, and when it begins anew.

    People are told no amounts of what others share with them; who asks about `everybody` is.
    """
    limit, whose = spent.limit, spent.whose
    percent = min(100, spent.percent)
    if not spent.left:
        rest = "spent"
    elif everybody or limit.scope == "person":
        rest = f"{money(spent.left)} of {money(limit.nano)} left"
    else:
        rest = f"{100 - percent} % left"
    match limit.scope:
        case "all":
            of = "Everybody's budget"
        case "person":
            of = f"Budget of <@{whose}>" if everybody else "Your budget"
        case "channel":
            of = f"Budget of {f'<#{whose}>' if everybody else 'this channel'}"
        case "server":
            of = f"Budget of {found.names['server'](whose) if everybody else 'this server'}"
    when = "today" if limit.period == "day" else "this month"
    text = f"**{of} for {when}**: {rest}"
    return Row(text, f"{percent} % spent · begins anew {ago(spent.until)}", apart=apart)
