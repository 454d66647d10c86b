"""Reads what was said while the bot was away: after a start, and after a connection that was lost for good.

The inboxes say where each conversation was left. Discord says in which channels anything is newer; only these
are read, and those with talk of the last days, where something may have been edited or deleted: three at a
time, and first those in which somebody writes now (`gaps` reads one).
"""

import asyncio
import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.gaps import Bounds, Gaps
from discoclaw.core.errors import ChatForbidden, ChatGone
from discoclaw.core.health import UnderWay
from discoclaw.core.message import Inbound
from discoclaw.core.ports import Clock
from discoclaw.core.shards import Shards
from discoclaw.session.refill import HISTORY_WAIT_S
from discoclaw.session.talk import CatchUp
from discoclaw.show.words import count
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)

AT_ONCE: Final = 3
"""The most channels that are read at the same time."""
MOST_CHANNELS: Final = 500
"""The most channels that are read after one gap: those with the newest messages."""
TAKING_S: Final = 10.0
"""How long a message waits until what was missed before it is taken in: Discord is asked about people and
threads meanwhile, and a recording is transcribed."""
DM_DAYS: Final = 30
"""Discord does not list direct messages: those are asked for whose person has talked with us since. Those of
others are read when they write again (`Inboxes.since`)."""


class Absence:
    """Catches up with what `client` missed. It is a `core.service.Service`."""

    def __init__(self, client: DiscoClaw, catch_up: CatchUp, bounds: Bounds, *, clock: Clock) -> None:
        self._client = client
        self._gaps = Gaps(client, catch_up, bounds, clock=clock)
        self._bounds = bounds
        self._worker = Worker("catching up", self._read, at_once=AT_ONCE, idle=self._report)
        self._reading: dict[str, bool] = {}
        """The channels that are being read, and whether all that was missed there is known by now."""
        self._passed: set[str] = set()
        """Channels for which a message has waited in vain: until they are read, none waits there again."""

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Do nothing: Discord's READY starts the work."""

    async def settle(self) -> None:
        """Wait until everything was read."""
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Stop. What was not read is read after the next start."""
        await self._worker.close(0)

    def under_way(self) -> UnderWay | None:
        """How far it is; None if nothing is left to read."""
        left = self._worker.waiting + len(self._reading)
        if not left:
            return None
        asked = self._gaps.asked_count
        text = f"{asked} of these messages ask for an answer; {count(left, 'channel')} still to read"
        return UnderWay("Reading what was missed", text, self._gaps.read_count)

    # ------------------------------------------------------------------ when

    def began(self, shards: Shards) -> None:
        """A new session of the gateway: nothing of what was missed will be sent again."""
        self._client.talk.inboxes.fall_behind(shards)

    async def ready(self, shards: Shards) -> None:
        """Note all channels of these shards in which something may have been missed."""
        inboxes = self._client.talk.inboxes
        channels = sorted(self._behind(shards) | self._unheard(shards), key=lambda pair: -pair[1])
        inboxes.all_reached(shards)
        for channel_id, _ in channels[:MOST_CHANNELS]:
            self._worker.note(channel_id)
        self._worker.hurry()  # those that could not be read before, too
        for channel_id, _ in channels[MOST_CHANNELS:]:
            self._give_up(channel_id)
        if len(channels) > 1:
            log.info("catching up: reading %d channels", min(len(channels), MOST_CHANNELS))

    def resumed(self, shards: Shards) -> None:
        """The session goes on, and nothing was missed; but answers may not have reached Discord."""
        for inbox in self._client.talk.inboxes.all_interrupted().values():
            if shards.have(inbox.guild_id):
                self._worker.note(inbox.channel_id, first=True)

    async def read_before(self, message: Inbound) -> None:
        """Take in what was missed in a conversation before this message, so that answers keep their order.

        If its history can't be read in time, the message doesn't wait for that; nor if something hangs.
        """
        channel_id, place = message.place.channel_id, message.place
        if place.kind == "dm" and not message.author.allowed:
            return  # nothing is kept about strangers
        if channel_id not in self._reading and self._client.talk.inboxes.has_gap(message.session_key, place):
            self._worker.note(channel_id, first=True)
        if channel_id in self._passed or not self._worker.busy(channel_id):
            return
        if await self._is_read(channel_id, HISTORY_WAIT_S):
            return
        if not (self._reading.get(channel_id) and await self._is_read(channel_id, TAKING_S)):
            self._passed.add(channel_id)

    async def _is_read(self, channel_id: str, within_s: float) -> bool:
        """Wait until nothing of a channel is being read. False if that takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._worker.settle(channel_id)
                return True
        return False

    def _behind(self, shards: Shards) -> set[tuple[str, int]]:
        """The channels with a gap: their ids, and their newest messages as far as we know them."""
        inboxes, found = self._client.talk.inboxes, set[tuple[str, int]]()
        for key, inbox in inboxes.behind(shards).items():
            channel = self._client.get_channel(int(inbox.channel_id))
            newest = getattr(channel, "last_message_id", None) or inbox.newest
            days = DM_DAYS * 24 if channel is None else self._bounds.hours
            recent = inbox.newest >= self._gaps.oldest(days)
            if recent or newest > inbox.newest or inboxes.interrupted(key):
                found.add((inbox.channel_id, max(newest, inbox.newest)))
            else:
                self._client.talk.caught_up(key)
        return found

    def _unheard(self, shards: Shards) -> set[tuple[str, int]]:
        """The channels in which nothing was heard before the gap, and something was said since."""
        inboxes, found = self._client.talk.inboxes, set[tuple[str, int]]()
        for channel in self._channels(shards):
            since, newest = inboxes.since(str(channel.guild.id)), channel.last_message_id or 0
            if not since or newest <= since:
                continue
            place = wire.place_of(channel)
            key = place.session_key("")
            if not inboxes.knows(key) and self._client.listens(channel):
                inboxes.reach(key, place)
                found.add((str(channel.id), newest))
        return found

    def _channels(self, shards: Shards) -> Iterator[Any]:
        """All channels and threads of the servers of these shards that can hold messages."""
        for guild in (one for one in self._client.guilds if shards.have(str(one.id))):
            yield from (one for one in guild.channels if isinstance(one, discord.abc.Messageable))
            yield from guild.threads

    # ------------------------------------------------------------------ reading

    async def _read(self, channel_id: str) -> None:
        self._reading[channel_id] = False
        try:
            await self._gaps.read(channel_id, lambda: self._reading.update({channel_id: True}))
        except (ChatForbidden, ChatGone) as error:
            if self._reading[channel_id]:  # it can be read, and something else failed
                raise
            log.info("the channel %s cannot be caught up with: %s", channel_id, error)
            self._give_up(channel_id)
        finally:
            del self._reading[channel_id]
            self._passed.discard(channel_id)

    def _give_up(self, channel_id: str) -> None:
        """Leave the gap of a channel that can't be read unread, and its questions unanswered."""
        inboxes = self._client.talk.inboxes
        for key, inbox in {**inboxes.behind(), **inboxes.all_interrupted()}.items():
            if inbox.channel_id == channel_id:
                inboxes.end(key, map(str, inboxes.interrupted(key)), True)
                self._client.talk.caught_up(key)

    async def _report(self, channels: Collection[str]) -> None:
        """Say in the log what was caught up with."""
        if self._gaps.read_count or self._gaps.asked_count:
            log.info(
                "caught up: %d missed messages in %d channels, %d of them to be answered",
                self._gaps.read_count,
                len(channels),
                self._gaps.asked_count,
            )
        self._gaps.read_count = self._gaps.asked_count = 0
