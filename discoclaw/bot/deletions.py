"""The archive follows Discord: what was said in a channel or thread goes when that is deleted."""

import discord

from discoclaw.bot.client import DiscoClaw
from discoclaw.session.archiving import Archiving


def forget_deleted(client: DiscoClaw, archiving: Archiving) -> None:
    """Have the archive follow when a channel or a thread is deleted."""

    async def on_guild_channel_delete(channel: discord.abc.GuildChannel) -> None:
        await archiving.forget_channel(str(channel.id))

    async def on_raw_thread_delete(payload: discord.RawThreadDeleteEvent) -> None:
        await archiving.forget_channel(str(payload.thread_id))

    client.add_listener(on_guild_channel_delete)
    client.add_listener(on_raw_thread_delete)
