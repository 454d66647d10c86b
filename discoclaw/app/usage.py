"""Usage: what each call of a model used and cost, and the budgets that bound it."""

import ipaddress
from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Final
from urllib.parse import urlsplit

import discord

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.bot.owners import tell_owner
from discoclaw.core.budgets import SMALL_FROM
from discoclaw.core.health import Finding
from discoclaw.core.usage import NOBODY
from discoclaw.usage.accounts import Accounts, Rules
from discoclaw.usage.log import UsageLog
from discoclaw.usage.metered import Rates
from discoclaw.usage.price_table import prices
from discoclaw.usage.telling import Telling

OWN_NAMES: Final = ("localhost", ".local", ".internal", ".lan")


class Usage(Feature):
    """`accounts` count every call. Raises SettingsError if the file of prices can't be used.

    It starts before everything that calls models, and closes after it.
    """

    settings: ClassVar = ("budget", "prices")

    def __init__(self, basics: Basics, disk: OnDisk, client: discord.Client) -> None:
        settings, storage = basics.settings, disk.storage
        store = storage.memory.disk
        self._own_prices = settings.prices
        prices(self._own_prices)  # a wrong file stops the start, whichever models there are
        telling = Telling(settings.owners, partial(tell_owner, client), storage.cursors, clock=basics.clock)
        self.accounts = Accounts(
            UsageLog(store) if store.remembers else None,
            clock=basics.clock,
            rules=Rules(settings.budget, settings.zone, names_people=storage.remembers),
            consent=storage.consent,
            news=telling.news,
        )
        self.services = (self.accounts, telling)
        self.joins = (self.accounts, telling)
        self.health = (self._health,)

    def _health(self) -> Iterator[Finding]:
        """Whether the budgets of everything are nearly spent."""
        for one in self.accounts.spent(NOBODY):  # and not of each person, who are many
            if one.percent >= SMALL_FROM:
                text = f"{one.percent} % of the budget of this {one.limit.period} is spent"
                yield Finding("the budget", "warning", text, "see DISCOCLAW_BUDGET")

    def rates(self, address: str | None, *, free: bool = False) -> Rates:
        """What the models behind an address cost; None is their vendor's.

        Those on this machine or its network are free.
        """
        return Rates(prices(self._own_prices, free=free or is_own(address)))


def is_own(address: str | None) -> bool:
    """Whether an address is on this machine or its network, so that nobody charges for what is there."""
    host = urlsplit(address or "").hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(OWN_NAMES))
    return found.is_loopback or found.is_private
