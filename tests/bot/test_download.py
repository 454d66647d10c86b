"""Downloads over real sockets: an unmodified discord.py, a loopback Discord, and a server that lies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from discoclaw.bot import wire
from discoclaw.bot.files import Download
from discoclaw.core.errors import ChatError, ChatGone, ChatUnavailable, FileTooLarge
from discoclaw.core.message import FileRef, TextFile, Unreadable
from discoclaw.session.files.reading import Limits, Reader
from tests.servers.discord_parrot import Parrot, connected, redirected_server, text_channel
from tests.servers.discord_server import DiscordServer

MOST = 100_000


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with redirected_server() as running:
        yield running


@pytest.fixture
async def bot(server: DiscordServer) -> AsyncIterator[Parrot]:
    server.add_channel("talk")
    server.add_user("Alice")
    async with connected(server) as running:
        yield running


async def attached(server: DiscordServer, bot: Parrot, data: bytes) -> FileRef:
    """A file that somebody sent, as it arrives."""
    channel = text_channel(bot)
    said = await server.say(server.owner, server.channel(channel.id), "look", files={"a.txt": data})
    (file,) = wire.files_of(await channel.fetch_message(said.id))
    return file


@asynccontextmanager
async def liar(server: DiscordServer) -> AsyncIterator[str]:
    """A server beside Discord's: an endless file, a redirection, a file that never comes, an error."""

    async def answered(request: web.Request) -> web.StreamResponse:
        kind = request.match_info["kind"]
        if kind == "redirection":
            raise web.HTTPFound(f"{server.rest_base}/users/@me")
        if kind == "error":
            raise web.HTTPBadGateway
        if kind == "never":
            await asyncio.Event().wait()
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    app = web.Application()
    app.router.add_get("/{kind}", answered)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


class TestDownloads:
    async def test_a_file_is_read_as_it_was_sent(self, server: DiscordServer, bot: Parrot) -> None:
        file = await attached(server, bot, b"words")
        reader = Reader(Download(bot, server.rest_base), Limits())
        assert await reader.read(file) == TextFile("a.txt", "words")

    async def test_a_file_larger_than_stated_is_given_up(self, server: DiscordServer, bot: Parrot) -> None:
        file = replace(await attached(server, bot, b"x" * (MOST + 1)), size=1)
        found = await Reader(Download(bot, server.rest_base), Limits(bytes=MOST)).read(file)
        assert isinstance(found, Unreadable) and "is larger than 0.1 MB" in found.why

    async def test_an_address_that_expired_is_asked_for_again(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        file = await attached(server, bot, b"words")
        expired = replace(file, url=file.url.replace(file.id, "1"))
        assert await Download(bot, server.rest_base).download(expired, MOST) == b"words"

    async def test_a_file_whose_message_was_deleted_is_gone(self, server: DiscordServer, bot: Parrot) -> None:
        file = await attached(server, bot, b"words")
        await server.delete(server.channel(text_channel(bot).id).messages[int(file.message_id)])
        expired = replace(file, url=file.url.replace(file.id, "1"))
        with pytest.raises(ChatGone):
            await Download(bot, server.rest_base).download(expired, MOST)


class TestNothingElseIsFetched:
    async def test_than_what_discord_keeps(self, bot: Parrot) -> None:
        for url in (
            "http://127.0.0.1:1/secret",
            "http://169.254.169.254/latest/meta-data",
            "https://cdn.discordapp.com.evil.example/a.png",
            "https://cdn.discordapp.com@evil.example/a.png",
            "http://cdn.discordapp.com/a.png",
            "https://cdn.discordapp.com:8443/a.png",
            "file:///etc/passwd",
            "",
            "https://cdn.discordapp.com\\@evil.example/a.png",
            "https://[cdn.discordapp.com/a.png",
            "https://cdn.discordapp.com:port/a.png",
        ):
            with pytest.raises(ChatError, match="not where Discord keeps files"):
                await Download(bot).download(FileRef("1", "2", "3", "a.png", 9, url=url), MOST)

    async def test_than_what_another_discord_keeps(self, server: DiscordServer, bot: Parrot) -> None:
        """What else listens on its machine is none of its files."""
        for url in ("http://127.0.0.1:1/secret", "file:///etc/passwd", ""):
            with pytest.raises(ChatError, match="not where Discord keeps files"):
                await Download(bot, server.rest_base).download(FileRef("1", "2", "3", "a", 9, url=url), MOST)

    async def test_from_a_server_that_lies(self, server: DiscordServer, bot: Parrot) -> None:
        before = len(server.requests)
        async with liar(server) as address:
            for kind, error in (
                ("endless", FileTooLarge),
                ("redirection", ChatUnavailable),
                ("error", ChatUnavailable),
                ("never", ChatUnavailable),
            ):
                file = FileRef("1", "2", "3", "a.png", 9, url=f"{address}/{kind}")
                within_s = 0.2 if kind == "never" else 10
                with pytest.raises(error):
                    await Download(bot, address, within_s=within_s).download(file, MOST)
        assert len(server.requests) == before  # a redirection was not followed
