"""Threads that we open for answers: opened below the question, renamed, and found again.

Discord gives a thread that grows out of a message that message's id.
Knows nothing about what is said in them.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

import discord

from discoclaw.bot.errors import discord_errors
from discoclaw.core.errors import ChatError, ChatGone

log = logging.getLogger(__name__)

DELETED = "Deleted question"
"""The name of a thread whose question was deleted: its first name, or its title, would still tell it."""


@dataclass(slots=True)
class OpenThreads:
    """The port `Threads`, and what the answers need to open one. `told`: channels where it was said that
    there are none."""

    client: discord.Client
    told: set[int] = field(default_factory=set)

    async def open(self, message: discord.Message, name: str) -> discord.Thread:
        """The thread below a message; a new one unless there is one. Raises ChatError."""
        if (thread := await self.below(message)) is not None:
            return thread
        if not isinstance(message.channel, discord.TextChannel):
            raise ChatGone("there are no threads in a channel of this kind")
        with discord_errors():
            return await message.create_thread(name=name)

    async def below(self, message: discord.Message) -> discord.Thread | None:
        """The thread that grew out of a message, if one did. Raises ChatError."""
        if message.guild is None:
            return None
        if (known := message.guild.get_thread(message.id)) is not None:
            return known
        if not message.flags.has_thread:
            return None
        try:
            with discord_errors():
                found: Any = await message.guild.fetch_channel(message.id)
        except ChatGone:
            return None
        return found if isinstance(found, discord.Thread) else None

    async def rename(self, thread_id: str, before: str, after: str) -> None:
        """Rename a thread unless somebody has renamed it. Raises ChatError."""
        with discord_errors():
            thread = await self.client.fetch_channel(int(thread_id))
            if isinstance(thread, discord.Thread) and thread.name == before:
                await thread.edit(name=after)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """A question was deleted: the thread that we opened below it no longer tells what it was."""
        thread = self.client.get_channel(payload.message_id)
        user = self.client.user
        if isinstance(thread, discord.Thread) and user is not None and thread.owner_id == user.id:
            try:
                with discord_errors():
                    await thread.edit(name=DELETED)
            except ChatError as error:
                log.info("the thread %s of a deleted question keeps its name: %s", thread.id, error)
