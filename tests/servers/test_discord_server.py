"""The loopback Discord against an unmodified discord.py, which is the judge of what Discord is.

Only the two class attributes that name discord.py's servers are changed, and put back.
"""

from __future__ import annotations

import asyncio

import discord
import pytest

from tests.servers.discord_parrot import Parrot, connected, text_channel
from tests.servers.discord_server import DiscordServer


class TestConnecting:
    async def test_a_wrong_token_at_the_gateway_closes_with_4004(self, server: DiscordServer) -> None:
        async with Parrot() as bot:
            await bot.login(server.token)
            bot.http.token = "another token"
            with pytest.raises(discord.ConnectionClosed) as caught:
                await bot.connect()
            assert caught.value.code == 4004

    async def test_a_privileged_intent_that_is_not_allowed_closes_with_4014(
        self, server: DiscordServer
    ) -> None:
        server.gateway.disallowed_intents = discord.Intents(members=True).value
        async with Parrot() as bot:
            with pytest.raises(discord.PrivilegedIntentsRequired):
                await bot.start(server.token)

    async def test_a_route_it_does_not_know_is_refused_and_remembered(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        with pytest.raises(discord.DiscordServerError) as caught:
            await bot.guilds[0].invites()
        assert caught.value.status == 501
        assert [call.path for call in server.unknown] == [f"/guilds/{server.guild_id}/invites"]
        server.unknown.clear()


class TestTalking:
    async def test_what_discord_refuses_is_refused(self, server: DiscordServer, bot: Parrot) -> None:
        channel = text_channel(bot)
        said = await server.say(server.owner, server.channel(channel.id), "mine")
        with pytest.raises(discord.HTTPException, match="2000 or fewer"):
            await channel.send("😀" * 1001)
        with pytest.raises(discord.HTTPException, match="empty message"):
            await channel.send("")
        with pytest.raises(discord.Forbidden):
            await channel.get_partial_message(said.id).edit(content="yours")
        await server.delete(said)
        with pytest.raises(discord.NotFound):
            await channel.fetch_message(said.id)
        with pytest.raises(discord.HTTPException, match="Unknown message"):
            await channel.send("too late", reference=channel.get_partial_message(said.id))

    async def test_allowed_mentions_decide_who_is_pinged(self, server: DiscordServer, bot: Parrot) -> None:
        channel, alice = text_channel(bot), server.add_user("Alice")
        loud = await channel.send(alice.mention)
        quiet = await channel.send(alice.mention, allowed_mentions=discord.AllowedMentions.none())
        assert [user.id for user in loud.mentions] == [alice.id]
        assert quiet.mentions == []

    async def test_without_the_content_intent_texts_come_empty(self, server: DiscordServer) -> None:
        talk, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server, Parrot(reads=False)) as bot:
            for text in ("a secret", f"{server.bot.mention} hello"):
                heard = asyncio.create_task(bot.wait_for("message"))
                await asyncio.sleep(0)
                await server.say(alice, talk, text)
                await heard
            assert bot.heard == ["", f"{server.bot.mention} hello"]
