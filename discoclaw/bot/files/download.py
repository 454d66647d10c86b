"""Downloads attachments, from where Discord keeps them and nowhere else: the port `Files`.

The address comes with a message, and so from Discord. It is checked all the same, and redirections are not
followed: whatever is fetched goes to a model, and our network is nobody else's.
"""

from typing import Final, cast

import aiohttp
import discord
from yarl import URL

from discoclaw.bot import wire, words
from discoclaw.bot.past import channel_of
from discoclaw.bot.wire import discord_errors
from discoclaw.core.attached import FileRef
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable, FileTooLarge
from discoclaw.http import Failed, content, within

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
        session = self._session()
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

    def _session(self) -> aiohttp.ClientSession | None:
        """discord.py's own connections. Its `get_from_cdn` takes any size, and follows redirections."""
        return cast("aiohttp.ClientSession | None", getattr(self._client.http, "_HTTPClient__session", None))

    def _is_discords(self, url: URL) -> bool:
        if self._api is not None and url.is_absolute() and url.origin() == self._api.origin():
            return True
        return url.scheme == "https" and url.host in HOSTS and url.port == 443


def _ours(failed: Failed) -> ChatError:
    what = f"Discord's file server {failed}"
    if failed.why == "too long":
        return FileTooLarge(what)
    return ChatGone(what) if failed.status in _EXPIRED else ChatUnavailable(what)
