"""`/usage`: what models were used for, for the one who asks; for owners also everybody's.

Nobody else reads it: a text command in a channel is answered in a DM. Knows nothing about how calls are
counted; that is `usage/accounts`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import cast

import discord

from discoclaw.bot.answers import Answer, Carded, Page
from discoclaw.bot.cards.card import GREY, Card, Entry, Menu, Picture, Turn
from discoclaw.bot.cards.turning import written
from discoclaw.bot.commands.call import Call, in_dm
from discoclaw.bot.texts import usage as texts
from discoclaw.core.budgets import Spent
from discoclaw.core.errors import ChatForbidden, MemoryFault, Refused
from discoclaw.core.usage import By, Days, Report, Total, last_days, money, this_month
from discoclaw.show.usage import cautions, used

# ----------------------------------------------------------------------
# The cards of what models were used for, a person's own or everybody's, with a menu of views.

OVERVIEW = "overview"
_OWN: Sequence[By] = ("purpose", "model", "day", "channel")
_ALL: Sequence[By] = ("person", "channel", "server", "purpose", "model", "day")
_MOST_IN_TEXT = 12


def overview(
    sums: Sequence[tuple[str, Total]],
    budgets: Sequence[Spent],
    turn: Turn,
    server: Callable[[str], str],
    *,
    page: int,
) -> Card:
    """A card of what was used in some periods, and what is left of budgets."""
    own = not _everybodys(turn)
    rows = [Entry(*texts.sum_line(when, total)) for when, total in sums]
    left = [Entry(*texts.budget(one, own=own, server=server), apart=not n) for n, one in enumerate(budgets)]
    return Card(title(_everybodys(turn)), [*rows, *left], turn=turn, page=page, most=10, colour=GREY)


def groups(report: Report, kind: By, turn: Turn, server: Callable[[str], str], *, page: int) -> Card:
    """The groups of one kind, dearest first, days newest first. Days without a call are left out."""
    total = report.total
    rows = [Entry(*texts.group(one, kind, total, server)) for one in report.by(kind)]
    summed = f"{texts.RECENT}: {money(total.nano)} · {used(total)}"
    return Card(
        f"{title(_everybodys(turn))} {texts.KINDS[kind]}",
        rows[::-1] if kind == "day" else rows,
        small=[summed if total else texts.NO_CALLS],
        turn=turn,
        page=page,
        most=10,
        colour=GREY,
    )


def picture(data: bytes, total: Total) -> Picture:
    """The picture of the last thirty days."""
    about = f"A bar for each of the last 30 days; together {money(total.nano)}" if total else texts.NO_CALLS
    return Picture("usage.png", data, about)


def views(user_id: str, *, owner: bool) -> Menu:
    """The menu of all views that somebody may see."""
    options = [("Mine", "", written((OVERVIEW, False)))]
    options += [(f"Mine {texts.KINDS[kind]}", "", written((kind, False))) for kind in _OWN]
    if owner:
        options.append(("Everybody's", "", written((OVERVIEW, True))))
        options += [(f"Everybody's {texts.KINDS[kind]}", "", written((kind, True))) for kind in _ALL]
    return Menu(f"usage:{user_id}", "Another view…", options)


def short_text(card: Card) -> str:
    """The card as a text that fits into one message: its first rows, and how many there are."""
    left = len(card.entries) - _MOST_IN_TEXT
    rows = [*card.entries[:_MOST_IN_TEXT], *([Entry(f"and {left} more: `/usage`")] if left > 0 else [])]
    return Card(card.heading, rows, small=card.small, foot=card.foot).as_text()


def title(everybody: bool) -> str:
    """The title of the card and of its picture."""
    return "Everybody's usage" if everybody else "Your usage"


def _everybodys(turn: Turn) -> bool:
    _, everybody = turn.values
    return bool(everybody)


log = logging.getLogger(__name__)

VIEWS = (OVERVIEW, "purpose", "model", "day", "channel", "server", "person")


def _png(report: Report, days: Days, title: str) -> bytes:
    from discoclaw.show.usage_picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(report, days, title=title)


async def usage(call: Call, by: str, everybody: bool) -> Answer:
    owner = call.user_id in call.client.settings.owners
    if everybody and not owner:
        raise Refused(texts.ONLY_YOURS)
    accounts = call.context.accounts
    now, zone = accounts.now(), accounts.rules.zone
    recent, month = last_days(now, zone), this_month(now, zone)
    whose = None if everybody else call.user_id
    try:
        calls = await accounts.calls(min(recent.begin(zone), month.begin(zone)), whose)
    except MemoryFault as fault:
        log.warning("a person's usage can't be shown: %s", fault)
        raise Refused(texts.UNREADABLE) from fault
    report = await asyncio.to_thread(Report.of, calls, zone)
    turn = Turn(call.user_id, "data usage", (by, everybody))
    if by == OVERVIEW:
        today = Days(recent.last, recent.last)
        named = (("Today", today), ("This month", month), (texts.RECENT, recent))
        sums = [(title, report.within(days).total) for title, days in named]
        card = overview(sums, _budgets(call, everybody), turn, _server(call), page=call.page)
    else:
        kind = cast(By, by)
        card = groups(report.within(recent), kind, turn, _server(call), page=call.page)
    drawn = await asyncio.to_thread(_png, report, recent, title(everybody))
    total = report.within(recent).total
    return await _answered(
        call,
        replace(
            card,
            foot=tuple(_notes(call, total, everybody)),
            pictures=[picture(drawn, total)],
            menus=[views(call.user_id, owner=owner)],
        ),
    )


async def _answered(call: Call, card: Card) -> Answer:
    """The card where nobody else reads it; as a text otherwise, with the picture as a file."""
    (picture,) = card.pictures
    file = discord.File(BytesIO(picture.data), filename=picture.name, description=picture.description)
    text = short_text(card)
    if call.in_private:
        return Carded(card, [Page(text, files=(file,))])
    try:
        await in_dm(call, [Page(f"{texts.ASKED} <#{call.channel.id}>.\n{text}", files=(file,))])
    except ChatForbidden:
        raise Refused(texts.DMS_CLOSED) from None
    return texts.SENT


def _budgets(call: Call, everybody: bool) -> Sequence[Spent]:
    """The budgets that calls count for, the one that is nearest to being spent first."""
    accounts = call.context.accounts
    if everybody:
        return accounts.all_spent()
    return sorted(accounts.spent(call.payer), key=lambda one: -one.percent)


def _notes(call: Call, total: Total, everybody: bool) -> Iterator[str]:
    """Notes about the figures."""
    yield from cautions(total)
    if not call.context.accounts.written:
        yield texts.NOT_WRITTEN
    if everybody:
        return
    if not call.context.accounts.rules.names_people:
        yield texts.UNNAMED
    elif call.context.choices.opted_out(call.user_id):
        yield texts.OPTED_OUT


def _server(call: Call) -> Callable[[str], str]:
    """The names of servers, as far as we are in them."""

    def name(guild_id: str) -> str:
        guild = call.client.get_guild(int(guild_id))
        return guild.name if guild is not None else guild_id

    return name
