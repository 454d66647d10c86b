"""Tells the bot's owners when a budget is nearly spent and when it is spent: once for each period and stage.

What was told is on disk, so neither a restart nor another process tells it again. The log has it in any case.
Knows nothing about how a message reaches an owner.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from discoclaw.core.budgets import BACK_MS, Spent
from discoclaw.core.errors import ChatError, ChatUnavailable
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Purge
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import dollars
from discoclaw.memory.cursors import Cursors
from discoclaw.work import Worker, Working

log = logging.getLogger(__name__)

CURSOR: Final = "budgets-told"
LONGEST_S: Final = 600.0
"""The longest pause before Discord is tried again."""

Tell = Callable[[str, str], Awaitable[None]]
"""Sends an owner (user id) a text. Raises ChatError."""


class Telling(Working, Derived):
    """Tells `owners` (user ids) with `tell`. It is a `core.service.Service`."""

    name = "budget notices"

    def __init__(self, owners: Iterable[str], tell: Tell, cursors: Cursors, *, clock: Clock) -> None:
        self._owners = sorted(owners)
        self._tell = tell
        self._cursors = cursors
        self._clock = clock
        self._news: dict[str, Spent] = {}
        """The news of the periods that last still, by key."""
        self._left: dict[str, list[str]] = {}
        """The owners who are still to be told, by the key of the news that this process tells."""
        self._worker = Worker("budget notices", self._say, longest_s=LONGEST_S)

    def news(self, spent: Spent) -> None:
        """A budget is nearly spent, or is spent. Called again and again; never blocks."""
        if (key := _key(spent)) in self._news:
            return
        now = self._clock()
        self._news = {one: known for one, known in self._news.items() if known.until > now - BACK_MS}
        self._news[key] = spent
        self._worker.note(key)

    def purge_ram(self, purge: Purge) -> None:
        """Name somebody who was erased to nobody, also where an owner is still to be told."""
        for key, spent in list(self._news.items()) if purge.erases else ():
            if spent.limit.scope == "person" and spent.whose == purge.user_id != "":
                del self._news[key]

    async def _say(self, key: str) -> None:
        """Tell the owners, unless they were told. Raises ChatUnavailable while Discord can't be reached."""
        if (spent := self._news.get(key)) is None:
            return
        text = notice(spent)
        if key not in self._left:
            if not await self._is_new(key, spent.until):
                return
            log.warning("%s", notice(spent, plain=True))
            self._left[key] = list(self._owners)
        for owner in list(self._left[key]):
            try:
                await self._tell(owner, text)
            except ChatUnavailable:
                raise
            except ChatError as error:
                log.warning("the owner %s can't be told about a budget: %s", owner, error)
            self._left[key].remove(owner)
        del self._left[key]

    async def _is_new(self, key: str, until: int) -> bool:
        """Whether nobody was told yet. Whoever finds that out first, in all processes, is to do it.

        With a disk that fails it is new: rather twice than never.
        """
        known, now = False, self._clock()
        ours = f"{until} {secrets.token_hex(4)}"  # else another process's note would look like our own

        def noted(told: Mapping[str, object]) -> Mapping[str, object] | None:
            nonlocal known
            known = key in told
            recent = {one: note for one, note in told.items() if _until(note) > now - BACK_MS}
            return None if known else {**recent, key: ours}

        await self._cursors.update(CURSOR, noted)
        return not known


def _until(note: object) -> int:
    """Until when (ms) a note that somebody was told counts."""
    first = note.partition(" ")[0] if isinstance(note, str) else ""
    return int(first) if first.isascii() and first.isdigit() else 0


def _key(spent: Spent) -> str:
    """The key under which news is told once. Of people's budgets, only the first in each period is told."""
    limit = spent.limit
    whose = "" if limit.scope == "person" else spent.whose
    return " ".join([limit.scope, whose, limit.period, spent.span.name, str(limit.nano), _stage(spent)])


def _stage(spent: Spent) -> str:
    return "spent" if spent.percent >= 100 else "nearly spent"


def notice(spent: Spent, *, plain: bool = False) -> str:
    """The notice for owners, with Discord's mentions and times; if `plain`, with ids and UTC, for a log."""
    limit = spent.limit
    until = f"at {iso_ms(spent.until)}" if plain else f"<t:{spent.until // 1000}:R>"
    what = f"the budget of {dollars(limit.nano)} a {limit.period}"
    if limit.scope == "person":
        who = spent.whose if plain else f"<@{spent.whose}>"
        first = f"{who} is the first person who has {_stage(spent)} {what}"
    else:
        channel = f"the channel {spent.whose}" if plain else f"<#{spent.whose}>"
        of = {"all": "", "server": f" for the server {spent.whose}", "channel": f" for {channel}"}
        first = f"T{what[1:]}{of[limit.scope]} is {_stage(spent)}"
    less = "from memory alone" if spent.percent >= 100 else "from a smaller model, if there is a cheaper one,"
    return f"{first} ({dollars(spent.nano)} so far). Answers come {less} until it begins anew {until}."
