"""Slash commands and menus that Discord still offers, but that the bot no longer has, or has changed.

Discord's apps keep a list of commands for a while after an update of the bot.
"""

import logging
from typing import Any

import discord
from discord import app_commands

from discoclaw.bot.errors import discord_errors
from discoclaw.core.errors import ChatError

log = logging.getLogger(__name__)

OUTDATED = (
    "That command has changed since Discord showed it to you. Reload Discord to see it as it is now; "
    "`!memory help` lists all of them."
)


def answer_outdated(tree: app_commands.CommandTree[Any]) -> None:
    """Have the tree tell people so; without that, Discord says that the bot did not respond."""
    of_others = tree.on_error

    async def on_error(interaction: discord.Interaction[Any], error: app_commands.AppCommandError) -> None:
        if not isinstance(error, app_commands.CommandNotFound | app_commands.CommandSignatureMismatch):
            await of_others(interaction, error)
            return
        log.info("a command that Discord still offers is out of date: %s", error)
        if interaction.type is discord.InteractionType.autocomplete:
            return  # takes nothing but choices
        try:
            with discord_errors():
                await interaction.response.send_message(OUTDATED, ephemeral=True)
        except ChatError as unsent:
            log.warning("somebody could not be told that a command is out of date: %s", unsent)

    tree.error(on_error)
