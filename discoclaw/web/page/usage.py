"""What models were used for in the last thirty days, as the page shows it: sums, bars, and what is left."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from discoclaw.core.budgets import Spent
from discoclaw.core.usage_report import By, Days, Group, Report, Total, last_days, this_month
from discoclaw.usage.accounts import Accounts

MOST_GROUPS: Final = 25
"""The most people, channels or servers that are listed."""
NOBODY: Final[Mapping[By, str]] = {
    "person": "nobody in particular",
    "channel": "direct messages, and what the bot does by itself",
    "server": "direct messages, and what the bot does by itself",
}
"""What groups are called that have no id."""
HEIGHT: Final = 100
"""The height of the highest bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What was used on a day, and how high its bar is."""

    day: str
    total: Total
    height: float


@dataclass(frozen=True, slots=True)
class Groups:
    """The dearest groups of a kind, and how many more there are."""

    kind: By
    groups: Sequence[Group]
    more: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums of all calls: today, this month, the last thirty days; and what is spent of budgets."""

    today: Total
    month: Total
    recent: Total
    bars: Sequence[Bar]
    groups: Sequence[Groups]
    budgets: Sequence[Spent]

    def people(self) -> list[str]:
        """The ids of all people who are listed."""
        listed = {one.key for groups in self.groups if groups.kind == "person" for one in groups.groups}
        limited = {one.whose for one in self.budgets[:MOST_GROUPS] if one.limit.scope == "person"}
        return sorted(one for one in listed | limited if one)


async def usage_of(accounts: Accounts) -> Usage:
    """What the accounts say. Raises MemoryFault."""
    now, zone = accounts.now(), accounts.rules.zone
    recent, month = last_days(now, zone), this_month(now, zone)
    calls = await accounts.calls(min(recent.begin(zone), month.begin(zone)))
    budgets = accounts.all_spent()
    return await asyncio.to_thread(lambda: _added(Report.of(calls, zone), recent, month, budgets))


def _added(report: Report, recent: Days, month: Days, budgets: Sequence[Spent]) -> Usage:
    shown = report.within(recent)
    kinds: tuple[By, ...] = ("purpose", "model", "person", "channel", "server")
    return Usage(
        report.within(Days(recent.last, recent.last)).total,
        report.within(month).total,
        shown.total,
        _bars(shown, recent),
        [_groups(shown, kind) for kind in kinds],
        budgets,
    )


def _bars(report: Report, days: Days) -> list[Bar]:
    """A bar for each day: of what was paid, or of tokens if everything was free."""
    groups = report.by("day", days)
    values = [one.total.nano if report.total.nano else one.total.tokens for one in groups]
    highest = max(*values, 1)
    return [
        Bar(one.key or "", one.total, round(HEIGHT * value / highest, 1))
        for one, value in zip(groups, values, strict=True)
    ]


def _groups(report: Report, kind: By) -> Groups:
    found = report.by(kind)
    return Groups(kind, found[:MOST_GROUPS], max(0, len(found) - MOST_GROUPS))
