"""Whether a person may talk to us: the allowlist, with roles looked up where Discord does not send them.

Live messages in a server carry their author's roles; direct messages and history do not. Those are asked
for, once in a while for each person. Knows Discord's members, and nothing about messages.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.message import Place
from discoclaw.core.policy import Allowlist
from discoclaw.core.ports import Hearer
from discoclaw.core.shards import Shards
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.live import LiveConfig

log = logging.getLogger(__name__)


# ----------------------------------------------------------------------
# What lies on the servers of other processes' shards, of which Discord tells this client nothing by itself.
#
#     roles      each process notes which of its servers have a role of the allowlist (cursor `role-servers`),
#                so that Discord can be asked about a person who writes a direct message
#     channels   Discord is asked on which server a channel is; until it has answered, there is no link to it
#
# A client that has all shards knows all servers, and none of this asks for anything.

CURSOR: Final = "role-servers"
MOST_CHANNELS: Final = 10_000
MOST_ASKED: Final = 20
"""How many channels are asked for at the same time; others when they are next shown."""
DM: Final = ""


def knows_all(client: discord.Client) -> bool:
    """Whether a client has all shards, and so knows all servers of the bot."""
    ids: Any = getattr(client, "shard_ids", None)
    return not ids or len(ids) == client.shard_count


class Elsewhere(Hearer):
    """The servers that `client` does not know.

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
        if len(self._servers) >= MOST_CHANNELS:
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


# ----------------------------------------------------------------------


FRESH_S = 300.0
MOST_PEOPLE = 10_000


class Access:
    """The allowlist at work. The roles that people have on the servers of `client` and `elsewhere` count.

    `live` is what live configuration says about channels.
    """

    def __init__(
        self,
        allowlist: Allowlist,
        client: discord.Client,
        live: LiveConfig,
        elsewhere: Elsewhere,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.allowlist = allowlist
        self._client = client
        self._now = now
        self._known: dict[tuple[int, int], tuple[bool, float]] = {}
        self._live = live
        self._elsewhere = elsewhere

    async def refresh(self) -> None:
        """Take over a change of the live configuration that was made in its file."""
        await self._live.look()

    def listens(self, place: Place) -> bool:
        """Whether we hear what is said in a place; that says nothing about whom we answer there."""
        listen = self._live.policy(place).listen
        return self.allowlist.channel(place.group_id, place.channel_id) if listen is None else listen

    def deaf(self, place: Place) -> bool:
        """Whether live configuration says not to listen there."""
        return self._live.policy(place).listen is False

    async def may_say(self, message: discord.Message, *, strict: bool = False) -> bool:
        """Whether a message is by a person who may talk. A webhook isn't one, whatever author it names."""
        return not wire.is_webhook(message) and await self.may_talk(
            message.author, message.guild, strict=strict
        )

    async def may_talk(
        self, user: discord.abc.User, guild: discord.Guild | None = None, *, strict: bool = False
    ) -> bool:
        """Whether the allowlist names a person, by id or by a role on `guild` (on any server, in a DM).

        Of a server that we aren't in we know no roles; there it is as in a DM.
        If Discord cannot be asked, the last known answer holds; with `strict` that is a ChatUnavailable.
        """
        if user.bot:
            return False
        if guild is not None and self._client.get_guild(guild.id) is None:
            guild = None
        elif isinstance(user, discord.Member):
            allowed = self._allows(user)
            self._note((user.id, user.guild.id), allowed)
            return allowed
        where = (user.id, guild.id if guild is not None else 0)
        if self.allowlist.person(str(user.id)):
            return True
        if not self.allowlist.roles:
            return False
        allowed, until = self._known.get(where, (False, 0.0))
        if self._now() < until:
            return allowed
        try:
            allowed = await (self._ask([guild], user.id) if guild is not None else self._anywhere(user.id))
        except ChatError as error:  # the next message asks again
            if strict:
                raise ChatUnavailable(f"the roles of {user.id} could not be looked up: {error}") from error
            log.warning("the roles of %s could not be looked up: %s", user.id, error)
            return allowed
        self._note(where, allowed)
        return allowed

    def _note(self, where: tuple[int, int], allowed: bool) -> None:
        if len(self._known) >= MOST_PEOPLE:
            self._known.clear()
        self._known[where] = (allowed, self._now() + FRESH_S)

    def _allows(self, member: discord.Member) -> bool:
        return self.allowlist.person(str(member.id), (str(role.id) for role in member.roles))

    async def _anywhere(self, user_id: int) -> bool:
        """Ask all servers, also those of other processes' shards. Raises ChatError."""
        if await self._elsewhere.has_role(user_id):
            return True
        guilds = self._client.guilds
        return bool(guilds or self._elsewhere.knows_all) and await self._ask(guilds, user_id)

    async def _ask(self, guilds: Sequence[discord.Guild], user_id: int) -> bool:
        """Ask the servers that have one of the roles. Raises ChatError when Discord cannot say."""
        for guild in guilds:
            if guild.unavailable:
                continue
            if not any(guild.get_role(int(role)) for role in self.allowlist.roles):
                continue
            try:
                with discord_errors():
                    member = guild.get_member(user_id) or await guild.fetch_member(user_id)
            except ChatGone:
                continue  # not a member there
            if self._allows(member):
                return True
        if not guilds or any(guild.unavailable for guild in guilds):
            raise ChatUnavailable("not all servers have told us of their roles yet")
        return False
