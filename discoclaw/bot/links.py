"""Links to messages, as Discord's client opens them. Knows which channels the client knows, nothing else."""

import discord

from discoclaw.bot.access import Elsewhere
from discoclaw.core.item import Source

BY_COMMAND = "from your command"
ASIDE = "what you asked me with a command"
"""Discord shows that to its person only, and has no address for it."""
NO_LINK = "another channel (ask again in a moment for the link)"


def message_link(client: discord.Client, channel_id: str, message_id: str) -> str:
    """The address of a message; an unknown channel is taken for a direct message.

    "" while it is not known on which server its channel is: one of another process's shards, maybe.
    """
    channel = client.get_channel(int(channel_id)) if channel_id.isdigit() else None
    guild, elsewhere = getattr(channel, "guild", None), getattr(client, "elsewhere", None)
    server: str | None = str(guild.id) if guild is not None else ""
    if channel is None and channel_id.isdigit() and isinstance(elsewhere, Elsewhere):
        server = elsewhere.server_of(int(channel_id))
    return message_address(server or None, channel_id, message_id) if server is not None else ""


def message_address(guild_id: str | None, channel_id: str, message_id: str) -> str:
    """The address of a message on a server; None is for direct messages."""
    return f"https://discord.com/channels/{guild_id or '@me'}/{channel_id}/{message_id}"


def source_words(client: discord.Client, source: Source, words: str = "where you said it") -> str:
    """A link to where an item was said, that is a few words; without `words` an address, with no preview."""
    if source.type == "manual":
        return BY_COMMAND
    if not source.channel_id.isdigit():
        return ASIDE
    link = message_link(client, source.channel_id, source.message_id)
    if not words:
        return f"<{link}>" if link else NO_LINK
    return f"[{words}]({link})" if link else words
