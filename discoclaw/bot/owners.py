"""Direct messages to the bot's owners that answer nothing they wrote."""

import discord

from discoclaw.bot.layout import SILENT
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatUnavailable
from discoclaw.show.markup import NOTE


async def tell_owner(client: discord.Client, owner: str, text: str) -> None:
    """Send an owner (user id) a text in small print, which isn't part of the talk. Raises ChatError."""
    if not client.is_ready():
        raise ChatUnavailable("Discord is not connected yet")
    with discord_errors():
        user = client.get_user(int(owner)) or await client.fetch_user(int(owner))
        await user.send(f"{NOTE}{text}", allowed_mentions=SILENT, suppress_embeds=True)
