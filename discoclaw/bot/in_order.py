"""Takes in the messages of a conversation one after another, and before them what was missed there.

The answers of a conversation then come in the order of its questions, also if one message takes longer than
the next one: Discord may have to be asked who wrote it, and the store whether another process has it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import discord

from discoclaw.core.message import Inbound

if TYPE_CHECKING:
    from discoclaw.bot.client import DiscoClaw


async def _nothing(message: Inbound) -> None:
    """Nothing is read later."""


class InOrder:
    """The order in which `client` takes in messages. `missed` is awaited before each of them."""

    def __init__(self, client: "DiscoClaw") -> None:
        self._client = client
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self.missed: Callable[[Inbound], Awaitable[None]] = _nothing

    async def taken(self, message: discord.Message) -> Inbound | None:
        """A message as the parts inside know it. None if it is not to be handled, or was before."""
        turn = self._turns.setdefault(message.channel.id, asyncio.Lock())
        async with turn:
            heard = await self._client.heard(message)
            if heard is None:
                self._client.pass_over(message)
                return None
            await self.missed(heard)
            first = await self._client.talk.first_time(heard)
            # Once we can answer nobody any more, it stays unhandled: the next start reads it again.
            return heard if first and not self._client.is_closed() else None
