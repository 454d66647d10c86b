"""The loopback Discord against an unmodified discord.py, which is the judge of what Discord is.

Only the two class attributes that name discord.py's servers are changed, and put back.
"""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import discord
import pytest
from discord.ext import commands

from tests.servers.discord_parrot import Parrot, connected, text_channel
from tests.servers.discord_server import DiscordServer


class TestConnecting:
    async def test_a_bot_logs_in_and_finds_the_guild_with_its_channels_roles_and_members(
        self, server: DiscordServer
    ) -> None:
        keeper = server.add_role("keeper")
        alice = server.add_user("Alice", roles=[keeper])
        talk = server.add_channel("talk", topic="anything")
        secret = server.add_channel("secret", private_to=[alice])
        bob = server.add_user("Bob")
        async with connected(server) as bot:
            guild = bot.get_guild(server.guild_id)
            assert bot.user.id == server.bot.id
            assert bot.application_id == server.application_id
            assert [channel.name for channel in guild.text_channels] == ["talk", "secret"]
            assert guild.get_channel(talk.id).topic == "anything"
            assert guild.get_member(alice.id).get_role(keeper.id).name == "keeper"
            assert guild.get_channel(secret.id).permissions_for(guild.get_member(alice.id)).view_channel
            assert not guild.get_channel(secret.id).permissions_for(guild.get_member(bob.id)).view_channel
            assert guild.get_channel(secret.id).permissions_for(guild.me).view_channel

    async def test_a_wrong_token_is_a_login_failure(self, server: DiscordServer) -> None:
        async with Parrot() as bot:
            with pytest.raises(discord.LoginFailure):
                await bot.start("another token")

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

    async def test_what_joins_later_is_told(self, server: DiscordServer, bot: Parrot) -> None:
        carol, late = server.add_user("Carol"), server.add_channel("late")
        await server.say(carol, late, "hello")
        await server.wait_for_message(late, "hello, Carol")
        assert bot.guilds[0].get_member(carol.id).name == "carol"

    async def test_members_are_found_over_the_gateway_by_name(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        found = await bot.guilds[0].query_members("ali", limit=5)
        assert [member.display_name for member in found] == ["Alice"]

    async def test_a_route_it_does_not_know_is_refused_and_remembered(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        with pytest.raises(discord.DiscordServerError) as caught:
            await bot.guilds[0].invites()
        assert caught.value.status == 501
        assert [call.path for call in server.unknown] == [f"/guilds/{server.guild_id}/invites"]
        server.unknown.clear()

    async def test_the_hooks_of_discord_py_are_put_back(self) -> None:
        before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
        async with DiscordServer() as server:
            with server.redirected():
                assert server.rest_base == discord.http.Route.BASE
        assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)


class TestTalking:
    async def test_a_message_is_heard_and_the_reply_points_back_to_it(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        talk, alice = server.channel(text_channel(bot).id), server.add_user("Alice")
        said = await server.say(alice, talk, "hello there")
        answer = await server.wait_for_message(talk, contains="hello, Alice")
        assert answer.reply_to is said
        assert bot.heard == ["hello there"]

    async def test_ids_are_made_of_the_time_and_increase(self, server: DiscordServer, bot: Parrot) -> None:
        first, second = [await text_channel(bot).send(text) for text in ("one", "two")]
        assert first.id < second.id
        assert abs((discord.utils.utcnow() - first.created_at).total_seconds()) < 5

    async def test_an_edit_is_waited_for_like_a_message(self, server: DiscordServer, bot: Parrot) -> None:
        sent = await text_channel(bot).send("thinking")
        talk = server.channel(sent.channel.id)
        waiting = asyncio.create_task(server.wait_for_message(talk, contains="thought"))
        await sent.edit(content="thought")
        seen = await waiting
        assert seen.versions == ["thinking", "thought"]
        assert (await sent.fetch()).edited_at is not None

    async def test_a_wait_in_vain_says_what_was_there(self, server: DiscordServer, bot: Parrot) -> None:
        sent = await text_channel(bot).send("something else")
        with pytest.raises(TimeoutError, match="something else"):
            await server.wait_for_message(server.channel(sent.channel.id), "gold", timeout=0.01)

    async def test_deleting_editing_and_reacting_by_a_user_are_events(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        talk, alice = server.channel(text_channel(bot).id), server.add_user("Alice")
        said = await server.say(alice, talk, "a typo")
        edited = asyncio.create_task(bot.wait_for("message_edit"))
        reacted = asyncio.create_task(bot.wait_for("reaction_add"))
        deleted = asyncio.create_task(bot.wait_for("message_delete"))
        await asyncio.sleep(0)
        await server.edit(said, "no typo")
        await server.react(alice, said, "🛑")
        await server.delete(said)
        assert (await edited)[1].content == "no typo"
        assert str((await reacted)[0].emoji) == "🛑"
        assert (await deleted).id == said.id

    async def test_typing_is_recorded(self, server: DiscordServer, bot: Parrot) -> None:
        async with text_channel(bot).typing():
            pass
        assert await server.wait_for_request("POST", f"/channels/{text_channel(bot).id}/typing")

    async def test_a_pin_is_listed_and_leaves_a_system_message(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        sent = await text_channel(bot).send("remember me")
        await sent.pin()
        assert [pin.content async for pin in text_channel(bot).pins()] == ["remember me"]
        newest = await anext(text_channel(bot).history(limit=1))
        assert newest.type is discord.MessageType.pins_add
        await sent.unpin()
        assert [pin async for pin in text_channel(bot).pins()] == []

    async def test_history_comes_in_pages_before_after_and_around(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        channel, alice = text_channel(bot), server.add_user("Alice")
        said = [await server.say(alice, server.channel(channel.id), str(n)) for n in range(7)]
        middle = discord.Object(said[3].id)
        assert [m.content async for m in channel.history(limit=3)] == ["6", "5", "4"]
        assert [m.content async for m in channel.history(limit=2, before=middle)] == ["2", "1"]
        assert [m.content async for m in channel.history(limit=2, after=middle)] == ["4", "5"]
        assert [m.content async for m in channel.history(limit=3, around=middle)] == ["4", "3", "2"]

    async def test_reactions_of_the_bot_are_set_and_taken_back(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        sent = await text_channel(bot).send("well?")
        await sent.add_reaction("👍")
        assert [reaction.me for reaction in (await sent.fetch()).reactions] == [True]
        await sent.remove_reaction("👍", bot.user)
        assert (await sent.fetch()).reactions == []

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


class TestPlaces:
    async def test_a_direct_message_is_answered_where_it_was_said(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        alice = server.add_user("Alice")
        await server.say(alice, server.dm(alice), "hello")
        assert await server.wait_for_message(server.dm(alice), "hello, Alice")

    async def test_the_bot_opens_the_same_direct_channel_as_the_user(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        alice = server.add_user("Alice")
        sent = await (await bot.fetch_user(alice.id)).send("psst")
        assert sent.channel.id == server.dm(alice).id

    async def test_a_message_in_a_thread_is_answered_there(self, server: DiscordServer, bot: Parrot) -> None:
        alice, talk = server.add_user("Alice"), server.channel(text_channel(bot).id)
        thread = server.add_thread(talk, "aside", owner=alice)
        await server.say(alice, thread, "hello")
        answer = await server.wait_for_message(thread, "hello, Alice")
        assert answer.channel is thread
        assert bot.guilds[0].get_thread(thread.id).parent_id == talk.id

    async def test_the_bot_opens_a_thread_from_a_message_and_archives_it(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        sent = await text_channel(bot).send("let us go aside")
        thread = await sent.create_thread(name="aside")
        await thread.send("here")
        assert thread.id == sent.id
        assert [found.id for found in await bot.guilds[0].active_threads()] == [thread.id]
        starter = await anext(thread.history(oldest_first=True))
        assert starter.type is discord.MessageType.thread_starter_message
        await thread.edit(archived=True)
        assert [found.id async for found in text_channel(bot).archived_threads()] == [thread.id]

    async def test_a_thread_that_was_there_before_is_in_the_guild(self, server: DiscordServer) -> None:
        thread = server.add_thread(server.add_channel("talk"), "old")
        async with connected(server) as bot:
            assert bot.guilds[0].get_thread(thread.id).name == "old"


class TestFiles:
    async def test_an_upload_is_kept_and_can_be_read_again(self, server: DiscordServer, bot: Parrot) -> None:
        file = discord.File(io.BytesIO(b"\x00bytes"), "note.txt", description="a note")
        sent = await text_channel(bot).send("see", file=file)
        kept = server.bot_messages(server.channel(sent.channel.id))[0].attachments[0]
        assert (kept.filename, kept.data, kept.description) == ("note.txt", b"\x00bytes", "a note")
        assert await sent.attachments[0].read() == b"\x00bytes"
        assert server.requests[-1].json["content"] == "see"
        assert server.requests[-1].files == {"files[0]": ("note.txt", b"\x00bytes")}

    async def test_an_edit_keeps_and_adds_files(self, server: DiscordServer, bot: Parrot) -> None:
        sent = await text_channel(bot).send(file=discord.File(io.BytesIO(b"1"), "one.txt"))
        edited = await sent.add_files(discord.File(io.BytesIO(b"2"), "two.txt"))
        assert [await each.read() for each in edited.attachments] == [b"1", b"2"]

    async def test_a_file_of_a_user_is_read_by_the_bot(self, server: DiscordServer, bot: Parrot) -> None:
        heard = asyncio.create_task(bot.wait_for("message"))
        await asyncio.sleep(0)
        await server.say(server.owner, server.channel(text_channel(bot).id), "", files={"a.png": b"image"})
        attachment = (await heard).attachments[0]
        assert attachment.content_type == "image/png"
        assert await attachment.read() == b"image"


class TestCommands:
    async def test_hybrid_commands_are_synced_globally_and_for_a_guild(
        self, server: DiscordServer, bot: Parrot
    ) -> None:
        @bot.hybrid_command(description="say how it is")
        async def status(ctx: commands.Context[Parrot], loud: bool = False) -> None:
            await ctx.send("fine")

        first = await bot.tree.sync()
        again = await bot.tree.sync()
        bot.tree.copy_global_to(guild=bot.guilds[0])
        await bot.tree.sync(guild=bot.guilds[0])
        assert [command.name for command in first] == ["status"]
        assert [command.id for command in first] == [command.id for command in again]
        assert [option["name"] for option in server.commands[None][0]["options"]] == ["loud"]
        assert [command["name"] for command in server.commands[server.guild_id]] == ["status"]


BOT_OF_ITS_OWN = """
import discord
client = discord.Client(intents=discord.Intents.all(), guild_ready_timeout=0.05)

@client.event
async def on_message(message):
    if message.content == "leave":
        await client.close()
    elif message.author != client.user:
        await message.reply("from another process")

client.run("test-token", log_handler=None)
"""


async def test_a_bot_in_another_process_is_reached(server: DiscordServer, tmp_path: Path) -> None:
    (tmp_path / "lonebot.py").write_text(BOT_OF_ITS_OWN)
    talk, alice = server.add_channel("talk"), server.add_user("Alice")
    process = await asyncio.create_subprocess_exec(*server.launch_args("lonebot"), cwd=tmp_path)
    try:
        await server.wait_for_gateway("identify", timeout=20)
        await server.say(alice, talk, "anyone?")
        await server.wait_for_message(talk, "from another process", timeout=10)
        await server.say(alice, talk, "leave")
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        assert [call.status for call in server.requests if call.status >= 400] == []
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
