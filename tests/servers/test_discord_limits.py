"""What the loopback Discord counts, met by an unmodified discord.py: session starts, REST calls, nonces."""

from __future__ import annotations

import asyncio
import logging

import discord
import pytest

from tests.servers.discord_limits import Violation
from tests.servers.discord_parrot import Flock, Parrot, connected, text_channel
from tests.servers.discord_server import DiscordServer


class TestIdentify:
    async def test_a_shard_that_comes_too_early_is_refused_and_noted(self, server: DiscordServer) -> None:
        server.clock.stop()
        refused = asyncio.Event()

        async def early(shard_id: int | None) -> None:
            if bot.hooks.count((1, False)) == 2:
                refused.set()
                server.clock.advance(server.identify_limits.interval_s)

        async with connected(server, bot := Flock([0, 1], 2, turn=early)):
            assert refused.is_set()
            await server.wait_for_shard(1, 2)
        assert server.violations == [Violation((1, 2), 0.0)]
        assert len(server.received("identify")) == 3

    async def test_each_identify_is_counted_and_a_resume_is_not(self, server: DiscordServer) -> None:
        server.identify_limits.interval_s = 0.0
        server.identify_limits.max_concurrency = 16
        async with connected(server, Flock([0, 1], 2)) as bot:
            server.drop_sockets()
            await server.wait_for_gateway("resume", count=2)
            limits = await bot.fetch_session_start_limits()
            assert (limits.total, limits.remaining, limits.max_concurrency) == (1000, 998, 16)
            assert 0 < limits.reset_after <= 24 * 3600 * 1000
            server.clock.advance(24 * 3600)
            assert (await bot.fetch_session_start_limits()).remaining == 1000

    async def test_when_none_are_left_all_sessions_end(self, server: DiscordServer) -> None:
        server.identify_limits.interval_s = 0.0
        server.identify_limits.remaining = 1
        async with Flock([0], 1) as bot, Flock([0], 1) as other:
            running = asyncio.create_task(bot.start(server.token))
            await server.wait_for_shard(0, 1)
            for starting in (other.start(server.token), running):
                with pytest.raises(discord.ConnectionClosed) as caught:
                    async with asyncio.timeout(5):
                        await starting
                assert caught.value.code == 4004


class TestRestLimit:
    async def test_the_calls_of_all_clients_are_counted_together(
        self, server: DiscordServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        talk = server.add_channel("talk")
        server.identify_limits.interval_s = 0.0
        async with connected(server, Flock([0], 1)) as first, connected(server, Flock([0], 1)) as second:
            server.clock.stop()
            server.rest_limit.per_window = 3
            with caplog.at_level(logging.WARNING, "discord.http"):
                sending = [
                    asyncio.create_task(text_channel(bot).send(f"{name} {number}"))
                    for name, bot in (("first", first), ("second", second))
                    for number in (1, 2)
                ]
                await server.wait_for_request("POST", f"/channels/{talk.id}/messages", count=4)
                server.clock.advance(1.0)
                await asyncio.gather(*sending)
            statuses = sorted(call.status for call in server.requests if call.method == "POST")
            assert statuses == [200, 200, 200, 200, 429]
            assert "Global rate limit has been hit" in caplog.text
            assert len(server.bot_messages(talk)) == 4


class TestNonce:
    async def test_the_same_nonce_in_a_channel_is_one_message(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        channel = text_channel(bot)
        first = await channel.send("once", nonce="answer-1")
        again = await channel.send("once more", nonce="answer-1")
        assert (again.id, again.content) == (first.id, "once")
        kept = server.bot_messages(server.channel(channel.id))
        assert [message.content for message in kept] == ["once"]
