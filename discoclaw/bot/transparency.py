"""The transparency channel: one pinned message a person, edited in place, showing what is remembered.

A mirror that follows the ledger; it may lag or fail, and nothing else notices. Private items and the
summaries of private places are not shown.
"""

import asyncio
import logging
import re

import discord

from discoclaw.bot import memory_text
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pages import SILENT
from discoclaw.core.errors import ChatError, ChatGone
from discoclaw.core.message import Inbound
from discoclaw.core.text import speaker
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.rolling import NOTHING, RollingMemory
from discoclaw.memory.store import Memory
from discoclaw.memory.subject import user_of

log = logging.getLogger(__name__)

CURSOR = "transparency"
_MARKDOWN = re.compile(r"[*_~|\\]")
TextPlace = discord.TextChannel | discord.Thread | discord.VoiceChannel


class Transparency:
    """Mirrors subjects into the channel `channel_id`; which message is whose is kept in `cursors`."""

    def __init__(
        self,
        client: discord.Client,
        channel_id: str,
        memory: Memory,
        rolling: RollingMemory | None,
        cursors: Cursors,
    ) -> None:
        self._client = client
        self._channel_id = int(channel_id)
        self._memory = memory
        self._rolling = rolling
        self._cursors = cursors
        self._talked_in: dict[str, tuple[str, str]] = {}
        self._names: dict[str, str] = {}
        self._one = asyncio.Lock()

    def heard(self, message: Inbound) -> None:
        """Note where a person last talked with us in public: the summary of that place is shown with them."""
        self._names[message.author.id] = message.author.name
        if not message.place.private:
            self._talked_in[message.author.id] = (message.session_key, f"#{message.place.name}")

    async def mirror(self, subject: str) -> None:
        """Bring one person's message up to date. Raises ChatError or MemoryFault when that fails."""
        user_id = user_of(subject)
        if user_id is None:
            return
        view = await self._memory.view(subject)
        key, place = self._talked_in.get(user_id, ("", ""))
        rolling = await self._rolling.get(key) if self._rolling is not None and key else NOTHING
        text = memory_text.snapshot(await self._name(user_id), user_id, view, rolling, place)
        async with self._one:
            known = dict(await self._cursors.get(CURSOR))
            with discord_errors():
                channel = await self._channel()
                message_id = await self._show(channel, user_id, known.get(user_id), text)
            if known.get(user_id) != message_id:
                await self._cursors.put(CURSOR, {**known, user_id: message_id})

    async def _channel(self) -> TextPlace:
        known = self._client.get_channel(self._channel_id)
        channel = known or await self._client.fetch_channel(self._channel_id)
        if not isinstance(channel, TextPlace):
            raise ChatGone(f"DISCOCLAW_MEMORY_CHANNEL_ID={self._channel_id} is no channel for messages")
        return channel

    async def _show(self, channel: TextPlace, user_id: str, known: object, text: str) -> str:
        """Edit the person's message, or send and pin a new one. Returns its id."""
        if known is None:
            known = await self._pinned(channel, user_id)
        if isinstance(known, str) and known.isdigit():
            try:
                await channel.get_partial_message(int(known)).edit(content=text, allowed_mentions=SILENT)
                return known
            except discord.NotFound:
                log.info("a message of the transparency channel is gone; a new one is made")
        sent = await channel.send(text, allowed_mentions=SILENT)
        try:
            with discord_errors():
                await sent.pin()
        except ChatError as error:
            log.warning("a message of the transparency channel could not be pinned: %s", error)
        return str(sent.id)

    async def _pinned(self, channel: TextPlace, user_id: str) -> str | None:
        """A message of ours about the person that is pinned there, from before our notes were lost."""
        async for message in channel.pins():
            first_line = message.content.partition("\n")[0]
            if message.author == self._client.user and first_line.endswith(f"({user_id})"):
                return str(message.id)
        return None

    async def _name(self, user_id: str) -> str:
        if user_id not in self._names:
            user = self._client.get_user(int(user_id)) if user_id.isdigit() else None
            self._names[user_id] = user.display_name if user is not None else "someone"
        return _MARKDOWN.sub(r"\\\g<0>", speaker(self._names[user_id]))
