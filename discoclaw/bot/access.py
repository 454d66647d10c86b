"""Whether a person may talk to us: the allowlist, with roles looked up where Discord does not send them.

Live messages in a server carry their author's roles; direct messages and history do not. Those are asked
for, once in a while for each person. Knows Discord's members, and nothing about messages.
"""

import logging
import time
from collections.abc import Callable, Sequence

import discord

from discoclaw.bot import wire
from discoclaw.bot.elsewhere import Elsewhere
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatGone, ChatUnavailable
from discoclaw.core.message import Place
from discoclaw.core.policy import Allowlist
from discoclaw.memory.live import LiveConfig

log = logging.getLogger(__name__)

FRESH_S = 300.0
MOST_KNOWN = 10_000


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
        if len(self._known) >= MOST_KNOWN:
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
