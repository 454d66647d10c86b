"""A channel in the simulated Discord with one message to answer, and what the bot did there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import discord

from discoclaw.bot.below.rows import Below
from discoclaw.bot.deliver import DiscordReply


@dataclass
class Stage:
    """`env` is the simulated Discord; `asked` the message we answer, as the bot sees it."""

    env: Any
    channel: discord.TextChannel
    asked: discord.Message
    handle: Any
    person: Any

    def reply(
        self,
        *,
        edit_every_s: float = 0.0,
        now: Callable[[], float] | None = None,
        below: Below | None = None,
    ) -> DiscordReply:
        clock = {"now": now} if now else {}
        return DiscordReply(
            self.channel,
            self.asked,
            edit_every_s=edit_every_s,
            retry_after_s=(0.0, 0.0),
            below=below,
            **clock,
        )

    async def answers(self) -> list[discord.Message]:
        """The bot's messages, oldest first, as Discord has them."""
        history = [message async for message in self.channel.history(oldest_first=True)]
        return [message for message in history if message.author == self.channel.guild.me]

    async def texts(self) -> list[str]:
        """What people see: Discord trims the ends of a message, the simulation does not."""
        return [message.content.strip() for message in await self.answers()]

    def calls(self, method: str, path_end: str = "") -> list[Any]:
        """The bot's requests, in order."""
        return [r for r in self.env.http_requests if r.method == method and r.path.endswith(path_end)]

    @property
    def edits(self) -> int:
        return len(self.calls("PATCH"))

    def fail_sends(self, status: int, times: int | None = None, code: int = 0) -> None:
        self.env.inject_error("POST", "/channels/*/messages", status=status, times=times, code=code)

    def fail_edits(self, status: int, times: int | None = None) -> None:
        self.env.inject_error("PATCH", "/channels/*/messages/*", status=status, times=times)


async def set_stage(env: Any) -> Stage:
    guild = env.create_guild()
    handle = guild.create_text_channel("general")
    ann = guild.add_member(env.create_user("ann"))
    await ann.send(handle, "What do you remember?")
    channel = env.bot.get_channel(handle.id)
    assert isinstance(channel, discord.TextChannel)
    return Stage(env, channel, await anext(channel.history(limit=1)), handle, ann)
