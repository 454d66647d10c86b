"""Reads the messages that a message links to: the port `Linked`.

A link is a request like any other. The message is read if the person who sent the link may read it, if we
listen where it is, and if everybody who reads along where the link was posted may read it there too: what a
hidden channel says is not told in an open one, whoever asks. A message that a person may not read is refused
with the same words as one that does not exist.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.past import channel_of
from discoclaw.bot.wire import discord_errors
from discoclaw.core.attached import Unreadable
from discoclaw.core.errors import ChatError, ChatUnavailable
from discoclaw.core.message import Inbound, Place, Said
from discoclaw.core.own_words import split_added

log = logging.getLogger(__name__)

MOST: Final = 3
WITHIN_S: Final = 3.0
"""The longest an answer waits for all of them."""
NAME: Final = "linked message"
_GONE = (
    "I can't read the message that you linked: it's gone, or one of us may not read that channel. "
    "Please copy what matters."
)
_DEAF = "I can't read the message that you linked, because I don't listen in that channel."
_HIDDEN = (
    "I won't read the message that you linked here, because not everybody here may read where it was "
    "written. Please ask me there, or in a direct message."
)
_LATE = "I couldn't read the message that you linked: Discord doesn't answer. Please try again in a moment."
_MANY = f"I read {MOST} links to messages at a time. Please send the others in another message."
_LINK = re.compile(
    r"https://(?:(?:canary|ptb)\.)?discord(?:app)?\.com/channels/(@me|\d{15,20})/(\d{15,20})/(\d{15,20})"
)
_Link = tuple[str, str, str]
"""Server (or "@me"), channel, message."""


class _Refused(Exception):
    """A message is not read; the text is the sentence for the person."""


class Links:
    """Reads linked messages with `client`."""

    def __init__(self, client: DiscoClaw) -> None:
        self._client = client

    async def messages(self, message: Inbound) -> Sequence[Said | Unreadable]:
        """The messages that a message links to, or for each why it is not read."""
        asked = split_added(message.text)[0] or message.text  # a page that they link to asks for nothing
        links = list(dict.fromkeys(_LINK.findall(asked)))
        read = await asyncio.gather(*(self._one(link, message) for link in links[:MOST]))
        return [*read, Unreadable(NAME, _MANY)] if len(links) > MOST else read

    async def _one(self, link: _Link, message: Inbound) -> Said | Unreadable:
        try:
            async with asyncio.timeout(WITHIN_S):
                return await self._read(link, message)
        except _Refused as refused:
            return Unreadable(NAME, str(refused))
        except (ChatUnavailable, TimeoutError):
            return Unreadable(NAME, _LATE)
        except (ChatError, discord.ClientException):
            return Unreadable(NAME, _GONE)
        except Exception:  # deliberately broad: whatever is wrong with a link, the reply goes on without it
            log.exception("a linked message could not be read")
            return Unreadable(NAME, _LATE)

    async def _read(self, link: _Link, message: Inbound) -> Said:
        """The message behind a link. Raises _Refused, ChatError and ClientException."""
        guild_id, channel_id, message_id = link
        if guild_id == "@me" and (message.place.kind != "dm" or channel_id != message.place.channel_id):
            raise _Refused(_GONE)
        channel = await channel_of(self._client, channel_id)
        if guild_id != "@me":
            await self._check(channel, guild_id, message)
        with discord_errors():
            found = await channel.fetch_message(int(message_id))
        return await self._client.meant_by(found)

    async def _check(self, channel: "wire.Channel", guild_id: str, message: Inbound) -> None:
        """Whether a message of a server's channel may be read here. Raises _Refused, and as `_read`."""
        if not isinstance(channel, wire.GuildPlace) or str(channel.guild.id) != guild_id:
            raise _Refused(_GONE)
        member = await wire.member_of(channel.guild, int(message.author.id))
        if member is None or not await wire.can_read(channel, member):
            raise _Refused(_GONE)
        if not self._client.listens(channel):
            raise _Refused(_DEAF)
        if not self._all_may_read(channel, message.place):
            raise _Refused(_HIDDEN)

    def _all_may_read(self, there: wire.GuildPlace, here: Place) -> bool:
        """Whether all who read where a link was posted may read the channel that it leads to."""
        if here.kind in ("dm", "aside"):
            return True
        channel = self._client.get_channel(int(here.channel_id))
        return isinstance(channel, wire.GuildPlace) and wire.all_read(channel, there)
