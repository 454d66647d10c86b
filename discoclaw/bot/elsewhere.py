"""What lies on the servers of other processes' shards, of which Discord tells this client nothing by itself.

    roles      each process notes which of its servers have a role of the allowlist (cursor `role-servers`),
               so that Discord can be asked about a person who writes a direct message
    channels   Discord is asked on which server a channel is; until it has answered, there is no link to it

A client that has all shards knows all servers, and none of this asks for anything.
"""

import asyncio
import logging
from typing import Any, Final

import discord

from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone
from discoclaw.core.policy import Allowlist
from discoclaw.core.shards import Shards
from discoclaw.memory.cursors import Cursors

log = logging.getLogger(__name__)

CURSOR: Final = "role-servers"
MOST_KNOWN: Final = 10_000
MOST_ASKED: Final = 20
"""How many channels are asked for at the same time; others when they are next shown."""
DM: Final = ""


def knows_all(client: discord.Client) -> bool:
    """Whether a client has all shards, and so knows all servers of the bot."""
    ids: Any = getattr(client, "shard_ids", None)
    return not ids or len(ids) == client.shard_count


class Elsewhere:
    """The servers that `client` does not know. It hears of the gateway's sessions (`client.Hearer`).

    In `cursors`, processes tell each other of their servers.
    """

    def __init__(self, client: discord.Client, allowlist: Allowlist, cursors: Cursors) -> None:
        self._client = client
        self._allowlist = allowlist
        self._cursors = cursors
        self._loop: asyncio.AbstractEventLoop | None = None
        self._servers: dict[int, str | None] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}

    @property
    def knows_all(self) -> bool:
        """Whether there are none: the client has all shards."""
        return knows_all(self._client)

    # ------------------------------------------------------------------ roles

    def began(self, shards: Shards) -> None:
        """Do nothing: the session's servers are not known yet."""

    async def ready(self, shards: Shards) -> None:
        """Note which of our servers have a role of the allowlist."""
        self._loop = asyncio.get_running_loop()
        if self.knows_all:
            return
        ours = {
            role: str(guild.id)
            for guild in self._client.guilds
            for role in self._allowlist.roles
            if guild.get_role(int(role)) is not None
        }
        if ours.items() - (await self._cursors.get(CURSOR)).items():
            await self._cursors.update(CURSOR, lambda known: {**known, **ours})

    def resumed(self, shards: Shards) -> None:
        """Do nothing: the session's servers are the same."""

    async def has_role(self, user_id: int) -> bool:
        """Whether somebody has a role of the allowlist on a server of another process. Raises ChatError."""
        if self.knows_all:
            return False
        known = await self._cursors.get(CURSOR)
        servers = {str(server) for role, server in known.items() if role in self._allowlist.roles}
        for server in sorted(servers):
            if self._client.get_guild(int(server)) is not None:
                continue
            try:
                with discord_errors():
                    member = await self._client.http.get_member(int(server), user_id)
            except (ChatForbidden, ChatGone):
                continue  # not a member there, or the bot is no longer
            if self._allowlist.person(str(user_id), (*map(str, member["roles"]), server)):
                return True
        return False

    # ------------------------------------------------------------------ channels

    def server_of(self, channel_id: int) -> str | None:
        """The server of a channel that the client does not know; DM if it has none, None if nobody knows.

        For any thread.
        """
        if self.knows_all:
            return DM  # it knows all channels but direct messages, and old threads
        if channel_id in self._servers:
            return self._servers[channel_id]
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, channel_id)
        return None

    def _begin(self, channel_id: int) -> None:
        new = channel_id not in self._asking and channel_id not in self._servers
        if new and len(self._asking) < MOST_ASKED:
            task = asyncio.create_task(self._ask(channel_id), name=f"asks for channel {channel_id}")
            self._asking[channel_id] = task
            task.add_done_callback(lambda _: self._asking.pop(channel_id))

    async def _ask(self, channel_id: int) -> None:
        if len(self._servers) >= MOST_KNOWN:
            self._servers.clear()
        try:
            with discord_errors():
                channel = await self._client.fetch_channel(channel_id)
        except (ChatForbidden, ChatGone, discord.InvalidData):
            self._servers[channel_id] = None
        except ChatError as error:
            log.info("it is not known where the channel %s is: %s", channel_id, error)
        else:
            guild = getattr(channel, "guild", None)
            self._servers[channel_id] = str(guild.id) if guild is not None else DM
