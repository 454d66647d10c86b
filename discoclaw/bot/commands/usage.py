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
from discoclaw.bot.cards import usage as cards
from discoclaw.bot.cards.card import Card, Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.privately import in_dm
from discoclaw.bot.texts import usage as texts
from discoclaw.core.budgets import Spent
from discoclaw.core.errors import ChatForbidden, MemoryFault, Refused
from discoclaw.core.usage_report import By, Days, Report, Total, last_days, this_month
from discoclaw.show.usage import cautions

log = logging.getLogger(__name__)

VIEWS = (cards.OVERVIEW, "purpose", "model", "day", "channel", "server", "person")


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
    if by == cards.OVERVIEW:
        today = Days(recent.last, recent.last)
        named = (("Today", today), ("This month", month), (texts.RECENT, recent))
        sums = [(title, report.within(days).total) for title, days in named]
        card = cards.overview(sums, _budgets(call, everybody), turn, _server(call), page=call.page)
    else:
        kind = cast(By, by)
        card = cards.groups(report.within(recent), kind, turn, _server(call), page=call.page)
    drawn = await asyncio.to_thread(_png, report, recent, cards.title(everybody))
    total = report.within(recent).total
    return await _answered(
        call,
        replace(
            card,
            foot=tuple(_notes(call, total, everybody)),
            pictures=[cards.picture(drawn, total)],
            menus=[cards.views(call.user_id, owner=owner)],
        ),
    )


async def _answered(call: Call, card: Card) -> Answer:
    """The card where nobody else reads it; as a text otherwise, with the picture as a file."""
    (picture,) = card.pictures
    file = discord.File(BytesIO(picture.data), filename=picture.name, description=picture.description)
    text = cards.short_text(card)
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
