"""Downloads attachments, from where Discord keeps them and nowhere else: the port `Files`.

The address comes with a message, and so from Discord. It is checked all the same, and redirections are not
followed: whatever is fetched goes to a model, and our network is nobody else's.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Final, cast

import aiohttp
import discord
from yarl import URL

from discoclaw.bot import wire, words
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable, FileTooLarge
from discoclaw.core.message import FileRef, Inbound, Place, Said, Unreadable
from discoclaw.core.own_words import split_added
from discoclaw.http import Failed, content, within

log = logging.getLogger(__name__)

HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
WITHIN_S: Final = 30.0
PASTE: Final = "message.txt"
"""The file that Discord's app makes of a long message: its text is talk, and has Discord's markup."""
_EXPIRED: Final = (403, 404)


class Download:
    """Downloads with `client`'s connections. `api`: another Discord's address, which keeps files too."""

    def __init__(self, client: discord.Client, api: str | None = None, *, within_s: float = WITHIN_S) -> None:
        self._client = client
        self._within_s = within_s
        self._api = URL(api) if api is not None else None

    async def download(self, file: FileRef, most: int) -> bytes:
        """A file's content. Raises `FileTooLarge` if it has more than `most` bytes, and other ChatErrors.

        An address that has expired is asked for again, once. A long message is as people read it.
        """
        data = await self._content(file, most)
        if file.name != PASTE:
            return data
        guild = getattr(self._client.get_channel(int(file.channel_id)), "guild", None)
        return words.resolved(
            data.decode("utf-8", "surrogateescape"), words.names_in(guild, self._client)
        ).encode("utf-8", "surrogateescape")

    async def _content(self, file: FileRef, most: int) -> bytes:
        try:
            async with within(self._within_s):
                try:
                    return await self._get(file.url, most)
                except (ChatGone, ChatForbidden):
                    url = await self._renewed(file)
                    if url == file.url:
                        raise
                    return await self._get(url, most)
        except Failed as failed:
            raise _ours(failed) from None

    async def _renewed(self, file: FileRef) -> str:
        """The address of a file now. Raises ChatError."""
        channel = await channel_of(self._client, file.channel_id)
        with discord_errors():
            message = await channel.fetch_message(int(file.message_id))
        for one in wire.attachments(message):
            if str(one.id) == file.id:
                return one.url
        raise ChatGone("the message has no such file any more")

    async def _get(self, url: str, most: int) -> bytes:
        # discord.py's own connections. Its `get_from_cdn` takes any size, and follows redirections.
        found = getattr(self._client.http, "_HTTPClient__session", None)
        session = cast("aiohttp.ClientSession | None", found)
        if not session:  # a simulated Discord, which has its files in RAM
            with discord_errors():
                data = await self._client.http.get_from_cdn(url)
            if len(data) > most:
                raise FileTooLarge(f"{len(data)} bytes")
            return data
        try:
            address = URL(url)
        except ValueError:
            raise ChatError("that isn't an address, and so not where Discord keeps files") from None
        if not self._is_discords(address):
            raise ChatError(f"{address.host} is not where Discord keeps files")
        http = self._client.http
        try:
            with discord_errors():
                async with session.get(
                    address, allow_redirects=False, proxy=http.proxy, proxy_auth=http.proxy_auth
                ) as response:
                    return await content(response, most)
        except Failed as failed:
            raise _ours(failed) from None

    def _is_discords(self, url: URL) -> bool:
        if self._api is not None and url.is_absolute() and url.origin() == self._api.origin():
            return True
        return url.scheme == "https" and url.host in HOSTS and url.port == 443


def _ours(failed: Failed) -> ChatError:
    what = f"Discord's file server {failed}"
    if failed.why == "too long":
        return FileTooLarge(what)
    return ChatGone(what) if failed.status in _EXPIRED else ChatUnavailable(what)


# ----------------------------------------------------------------------
# Reads the messages that a message links to: the port `Linked`.
#
# A link is a request like any other. The message is read if the person who sent the link may read it, if we
# listen where it is, and if everybody who reads along where the link was posted may read it there too: what
# a hidden channel says is not told in an open one, whoever asks. A message that a person may not read is
# refused with the same words as one that does not exist.

MOST: Final = 3
ANSWERED_WITHIN_S: Final = 3.0
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
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                guild_id, channel_id, message_id = link
                if guild_id == "@me" and (
                    message.place.kind != "dm" or channel_id != message.place.channel_id
                ):
                    raise _Refused(_GONE)
                channel = await channel_of(self._client, channel_id)
                if guild_id != "@me":
                    if not isinstance(channel, wire.GuildPlace) or str(channel.guild.id) != guild_id:
                        raise _Refused(_GONE)
                    member = await wire.member_of(channel.guild, int(message.author.id))
                    if member is None or not await wire.can_read(channel, member):
                        raise _Refused(_GONE)
                    if not self._client.listens(channel):
                        raise _Refused(_DEAF)
                    if not self._all_may_read(channel, message.place):
                        raise _Refused(_HIDDEN)
                with discord_errors():
                    found = await channel.fetch_message(int(message_id))
                return await self._client.meant_by(found)
        except _Refused as refused:
            return Unreadable(NAME, str(refused))
        except (ChatUnavailable, TimeoutError):
            return Unreadable(NAME, _LATE)
        except (ChatError, discord.ClientException):
            return Unreadable(NAME, _GONE)
        except Exception:  # deliberately broad: whatever is wrong with a link, the reply goes on without it
            log.exception("a linked message could not be read")
            return Unreadable(NAME, _LATE)

    def _all_may_read(self, there: wire.GuildPlace, here: Place) -> bool:
        """Whether all who read where a link was posted may read the channel that it leads to."""
        if here.kind in ("dm", "aside"):
            return True
        channel = self._client.get_channel(int(here.channel_id))
        return isinstance(channel, wire.GuildPlace) and wire.all_read(channel, there)
