"""Slash commands are sent to Discord only when they changed: syncing at every start meets a rate limit."""

import hashlib
import json
import logging
from typing import Any

import discord
from discord import app_commands

from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError
from discoclaw.memory.cursors import Cursors

log = logging.getLogger(__name__)

CURSOR = "slash-commands"


async def sync_if_changed(tree: app_commands.CommandTree[Any], cursors: Cursors) -> bool:
    """Sync when our commands differ from those last synced, or Discord no longer has them.

    Returns whether it synced. A failure is a warning: text commands work without it.
    """
    local = [command.to_dict(tree) for command in tree.get_commands()]
    digest = hashlib.sha256(json.dumps(local, sort_keys=True, default=str).encode()).hexdigest()
    known = await cursors.get(CURSOR)
    try:
        with discord_errors():
            remote = {(command.name, command.type) for command in await tree.fetch_commands()}
            here = {(command["name"], discord.AppCommandType(command["type"])) for command in local}
            if known.get("sha256") == digest and remote == here:
                return False
            await tree.sync()
    except ChatError as error:
        log.warning("slash commands could not be synced: %s", error)
        return False
    await cursors.put(CURSOR, {"sha256": digest})
    log.info("slash commands were synced with Discord")
    return True
