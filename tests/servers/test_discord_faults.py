"""What goes wrong at Discord, as the loopback Discord plays it and an unmodified discord.py takes it."""

from __future__ import annotations

import asyncio
import logging

import discord
import pytest

from tests.servers.discord_parrot import Parrot, connected, text_channel
from tests.servers.discord_server import DiscordServer

CHANNEL_MESSAGES = "/channels/*/messages"


class TestGatewayFaults:
    @pytest.mark.parametrize("code", [4000, None], ids=["closed with 4000", "line cut"])
    async def test_a_message_missed_in_an_outage_is_replayed_after_resume(
        self, server: DiscordServer, bot: Parrot, code: int | None
    ) -> None:
        talk, alice = server.channel(text_channel(bot).id), server.add_user("Alice")
        resumed = asyncio.create_task(bot.wait_for("resumed"))
        async with server.outage(code):
            said = await server.say(alice, talk, "hello, are you there?")
            assert bot.heard == []
        assert (await server.wait_for_message(talk, "hello, Alice")).reply_to is said
        await resumed
        data = (await server.wait_for_gateway("resume")).data
        assert (data["token"], data["session_id"]) == (server.token, next(iter(server.gateway.sessions)))
        assert len(server.received("identify")) == 1
        assert bot.heard == ["hello, are you there?"]

    async def test_dropped_sockets_are_resumed(self, server: DiscordServer, bot: Parrot) -> None:
        server.drop_sockets()
        await server.wait_for_gateway("resume")
        await server.say(server.owner, server.channel(text_channel(bot).id), "hello")
        await server.wait_for_message(server.channel(text_channel(bot).id), "hello, Owner")
        assert bot.heard == ["hello"]
        assert len(server.received("identify")) == 1

    async def test_an_invalidated_session_is_identified_anew(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        server.invalidate_sessions()
        await server.wait_for_gateway("identify", count=2)
        await bot.wait_for("ready")
        await server.say(server.owner, server.channel(text_channel(bot).id), "hello")
        await server.wait_for_message(server.channel(text_channel(bot).id), "hello, Owner")
        assert server.received("resume") == []

    async def test_a_session_lost_during_the_outage_is_identified_anew(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        async with server.outage():
            server.invalidate_sessions()
        await server.wait_for_gateway("identify", count=2)
        assert len(server.received("resume")) == 1

    async def test_a_request_to_reconnect_is_followed_by_resume(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        server.ask_to_reconnect()
        await server.wait_for_gateway("resume")
        assert len(server.received("identify")) == 1

    async def test_a_client_without_acks_closes_and_resumes(self, server: DiscordServer) -> None:
        server.gateway.heartbeat_interval = 0.05
        async with connected(server, Parrot(heartbeat_timeout=0.3)):
            await server.wait_for_gateway("heartbeat", count=3)
            assert server.received("resume") == []
            server.mute_acks = True
            await server.wait_for_gateway("resume")


class TestRestFaults:
    async def test_a_rate_limit_is_waited_out_and_then_the_message_is_sent(
        self, server: DiscordServer, bot: Parrot, caplog: pytest.LogCaptureFixture
    ) -> None:
        wait = {"retry_after": 0.1, "global": False}
        server.fail_next("POST", CHANNEL_MESSAGES, 429, json=wait, times=2)
        began = asyncio.get_running_loop().time()
        with caplog.at_level(logging.WARNING, "discord.http"):
            await text_channel(bot).send("patience")
        assert asyncio.get_running_loop().time() - began >= 0.2
        assert [call.status for call in server.requests if call.method == "POST"] == [429, 429, 200]
        assert server.faults == []
        assert len(server.bot_messages(server.channel(text_channel(bot).id))) == 1

    @pytest.mark.parametrize(
        ("status", "error"),
        [(403, discord.Forbidden), (404, discord.NotFound), (503, discord.DiscordServerError)],
    )
    async def test_an_ordered_failure_is_met_once(
        self, server: DiscordServer, bot: Parrot, status: int, error: type[discord.HTTPException]
    ) -> None:
        server.fail_next("POST", CHANNEL_MESSAGES, status)
        with pytest.raises(error):
            await text_channel(bot).send("no")
        assert (await text_channel(bot).send("yes")).content == "yes"

    async def test_an_answer_lost_after_the_deed_does_not_send_twice(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        server.fail_next("POST", CHANNEL_MESSAGES, 500, applied=True)
        await text_channel(bot).send("once")
        assert len(server.bot_messages(server.channel(text_channel(bot).id))) == 1
        assert [call.status for call in server.requests if call.method == "POST"] == [500, 200]
