"""`/usage`: what models were used for, for the one who asks; for owners also everybody's.

Nobody else reads it: a text command in a channel is answered in a DM. Knows nothing about how calls are
counted; that is `usage/accounts`.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from discoclaw.bot.commands.call import Call, in_dm
from discoclaw.commands.table import VIEWS
from discoclaw.core.budgets import Limit, Spent
from discoclaw.core.errors import ChatForbidden, MemoryFault, Refused
from discoclaw.core.usage import By, Days, Report, Total, money
from discoclaw.show.answer import GREY, Answer, File, Menu, Reply, Row, Turn, written
from discoclaw.show.markup import ago, words
from discoclaw.show.usage import cautions, grouped, used

log = logging.getLogger(__name__)

ONLY_YOURS = "only my owners can see everybody's usage; `/usage` alone shows yours"
UNREADABLE = "I can't read what was written down about calls of models just now; try again later"
UNNAMED = "I don't write down whom calls are for, so I can't tell which were yours."
NOT_WRITTEN = "I don't write down what models are used for: nothing is stored here (DISCOCLAW_STORE=none)."
RECENT = "The last 30 days"
NO_CALLS = "No calls in the last 30 days"
OPTED_OUT = "You have opted out, so I don't write down which calls are for you."
SENT = "I sent it to you in a DM."
DMS_CLOSED = "I can't send you DMs, and your usage is nobody else's business; use `/usage` here instead"
_LONGEST = 60
OVERVIEW = VIEWS[0]
_OWN: Sequence[By] = ("purpose", "model", "day", "channel")
_ALL: Sequence[By] = ("person", "channel", "server", "purpose", "model", "day")


async def usage(call: Call, by: str, everybody: bool) -> Reply:
    owner = call.user_id in call.client.settings.owners
    if everybody and not owner:
        raise Refused(ONLY_YOURS)
    accounts = call.context.accounts
    try:
        found = await accounts.lately(None if everybody else call.user_id)
    except MemoryFault as fault:
        log.warning("a person's usage can't be shown: %s", fault)
        raise Refused(UNREADABLE) from fault
    total, title = found.report.total, "Everybody's usage" if everybody else "Your usage"
    drawn = await asyncio.to_thread(_png, found.report, found.days, title)
    about = f"A bar for each of the last 30 days; together {money(total.nano)}" if total else NO_CALLS
    small = []
    if by == OVERVIEW:
        named = (("Today", found.today), ("This month", found.month), (RECENT, total))
        rows = [Row(f"**{when}**{f': {money(one.nano)}' if one else ''}", used(one)) for when, one in named]
        left = accounts.all_spent() if everybody else accounts.spent(call.payer)
        nearest = enumerate(sorted(left, key=lambda one: -one.percent))
        rows += [_budget(call, one, everybody=everybody, apart=not at) for at, one in nearest]
    else:
        kind = cast(By, by)
        groups = found.report.by(kind)
        newest = groups[::-1] if kind == "day" else groups
        rows = [*grouped(kind, newest, total, {"server": partial(_server, call)}).rows]
        small.append(f"{RECENT}: {money(total.nano)} · {used(total)}" if total else NO_CALLS)
        title = f"{title} by {kind}"
    answer = Answer(
        title,
        rows,
        small=small,
        foot=tuple(_notes(call, total, everybody)),
        files=[File("usage.png", drawn, about)],
        menus=[_views(call.user_id, owner=owner)],
        turn=Turn(call.user_id, "data usage", (by, everybody)),
        page=call.page,
        most=10,
        colour=GREY,
    )
    if call.in_private:
        return answer
    try:
        await in_dm(call, replace(answer, above=[f"You asked for this in <#{call.channel.id}>."]))
    except ChatForbidden:
        raise Refused(DMS_CLOSED) from None
    return SENT


def _png(report: Report, days: Days, title: str) -> bytes:
    from discoclaw.show.usage_picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(report, days, title=title)


def _views(user_id: str, *, owner: bool) -> Menu:
    """The menu of all views that somebody may see."""
    options = [("Mine", "", written((OVERVIEW, False)))]
    options += [(f"Mine by {kind}", "", written((kind, False))) for kind in _OWN]
    if owner:
        options.append(("Everybody's", "", written((OVERVIEW, True))))
        options += [(f"Everybody's by {kind}", "", written((kind, True))) for kind in _ALL]
    return Menu(f"usage:{user_id}", "Another view…", options)


def _notes(call: Call, total: Total, everybody: bool) -> Iterator[str]:
    """Notes about the figures."""
    yield from cautions(total)
    if not call.context.accounts.written:
        yield NOT_WRITTEN
    if everybody:
        return
    if not call.context.accounts.rules.names_people:
        yield UNNAMED
    elif call.context.choices.opted_out(call.user_id):
        yield OPTED_OUT


# ---------------------------------------------------------------------- rows


def _budget(call: Call, spent: Spent, *, everybody: bool, apart: bool) -> Row:
    """What is left of a budget, how much was spent, and when it begins anew.

    People are told no amounts of what others share with them; who asks about `everybody` is.
    """
    limit = spent.limit
    percent = min(100, spent.percent)
    if not spent.left:
        rest = "spent"
    elif everybody or limit.scope == "person":
        rest = f"{money(spent.left)} of {money(limit.nano)} left"
    else:
        rest = f"{100 - percent} % left"
    when = "today" if limit.period == "day" else "this month"
    whose = _whose(call, limit, spent.whose, everybody=everybody)
    return Row(
        f"**{whose} for {when}**: {rest}", f"{percent} % spent · begins anew {ago(spent.until)}", apart=apart
    )


def _whose(call: Call, limit: Limit, whose: str, *, everybody: bool) -> str:
    match limit.scope:
        case "all":
            return "Everybody's budget"
        case "person":
            return f"Budget of <@{whose}>" if everybody else "Your budget"
        case "channel":
            return f"Budget of {f'<#{whose}>' if everybody else 'this channel'}"
        case "server":
            return f"Budget of {_server(call, whose) if everybody else 'this server'}"


def _server(call: Call, guild_id: str) -> str:
    """The name of a server, if we are in it."""
    guild = call.client.get_guild(int(guild_id))
    return words(guild.name if guild is not None else guild_id, _LONGEST)
