"""Slash commands and buttons over the loopback gateway, sharded or not, with an unmodified discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import discord
import pytest
from discord import app_commands

from tests.servers.discord_parrot import Bird, Flock, Parrot, connected
from tests.servers.discord_server import DiscordServer


class Yes(discord.ui.View):
    @discord.ui.button(label="Yes", custom_id="yes")
    async def yes(self, interaction: discord.Interaction[Bird], button: discord.ui.Button[Yes]) -> None:
        await interaction.response.edit_message(content=f"yes, {interaction.user.display_name}", view=None)


class Acting(Bird):
    """Has a command for each way to answer, and keeps what it was asked and what it was refused."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[str] = []
        self.refused: asyncio.Queue[int] = asyncio.Queue()

    async def setup_hook(self) -> None:
        memory = app_commands.Group(name="memory", description="memory")

        @memory.command(description="at once")
        async def show(interaction: discord.Interaction[Bird], about: str, count: int = 1) -> None:
            self.asked.append(about)
            try:
                await interaction.response.send_message(f"{about} x {count}", ephemeral=True)
            except discord.HTTPException as error:
                self.refused.put_nowait(error.code)

        @self.tree.command(description="after a while")
        async def think(interaction: discord.Interaction[Bird]) -> None:
            await interaction.response.defer(thinking=True)
            await interaction.followup.send("thought")
            await interaction.followup.send("and one more thing")
            await interaction.edit_original_response(content="thought it over")

        @self.tree.command(description="with a button")
        async def sure(interaction: discord.Interaction[Bird]) -> None:
            await interaction.response.send_message("sure?", view=Yes())

        self.tree.add_command(memory)


class ActingParrot(Acting, Parrot):
    pass


class ActingFlock(Acting, Flock):
    pass


@asynccontextmanager
async def all_connected(server: DiscordServer, bots: Sequence[Acting]) -> AsyncIterator[None]:
    server.identify_limits.interval_s = 0.0
    async with AsyncExitStack() as stack:
        for bot in bots:
            await stack.enter_async_context(connected(server, bot))
        yield


class TestAnswers:
    async def test_a_command_is_answered_to_its_person_alone(self, server: DiscordServer) -> None:
        talk, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server, ActingParrot()):
            asked = await server.command(alice, talk, "memory show", about="tabs", count=2)
            assert (await server.wait_for_response(asked)).content == "tabs x 2"
            assert server.bot_messages(talk) == []

    async def test_a_deferred_answer_is_filled_in_and_followed(self, server: DiscordServer) -> None:
        talk, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server, ActingParrot()):
            asked = await server.command(alice, talk, "think")
            first = await server.wait_for_response(asked, "thought it over")
            assert [message.content for message in asked.messages] == [
                "thought it over",
                "and one more thing",
            ]
            assert first.versions == ["", "thought", "thought it over"]
            assert server.bot_messages(talk) == asked.messages

    async def test_a_pressed_button_changes_its_message(self, server: DiscordServer) -> None:
        talk, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server, ActingParrot()):
            asked = await server.command(alice, talk, "sure")
            message = await server.wait_for_response(asked, "sure?")
            await server.press(alice, message, "yes")
            assert await server.wait_for_message(talk, "yes, Alice") is message
            assert message.components == []


class TestShards:
    async def test_a_command_goes_to_the_shard_of_its_server_and_from_a_dm_to_shard_0(
        self, server: DiscordServer
    ) -> None:
        guild, alice = server.add_guild("Third", shard=(3, 4)), server.add_user("Alice")
        talk = server.add_channel("talk", guild=guild)
        low, high = ActingFlock([0, 1], 4), ActingFlock([2, 3], 4)
        async with all_connected(server, [low, high]):
            for place in (talk, server.dm(alice)):
                asked = await server.command(alice, place, "memory show", about=place.name)
                assert (await server.wait_for_response(asked)).content == f"{place.name} x 1"
            assert (low.asked, high.asked) == (["Alice"], ["talk"])

    async def test_of_two_clients_with_the_same_shard_one_answers_and_the_other_is_refused(
        self, server: DiscordServer
    ) -> None:
        alice = server.add_user("Alice")
        twins = [ActingFlock([0], 4), ActingFlock([0], 4)]
        twins[1].refused = twins[0].refused
        async with all_connected(server, twins):
            asked = await server.command(alice, server.dm(alice), "memory show", about="tabs")
            async with asyncio.timeout(5):
                assert await twins[0].refused.get() == 40060
            assert [bot.asked for bot in twins] == [["tabs"], ["tabs"]]
            assert len(asked.messages) == 1

    async def test_answers_to_commands_are_not_counted_by_the_rest_limit(self, server: DiscordServer) -> None:
        talk, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server, ActingParrot()):
            server.clock.stop()
            server.rest_limit.per_window = 0
            asked = await server.command(alice, talk, "memory show", about="tabs")
            assert (await server.wait_for_response(asked)).content == "tabs x 1"

    async def test_an_answer_to_what_nobody_asked_is_refused(self, server: DiscordServer) -> None:
        async with connected(server, ActingParrot()) as bot:
            webhook = discord.Webhook.partial(server.application_id, "unknown", client=bot)
            with pytest.raises(discord.NotFound) as caught:
                await webhook.send("more", wait=True)
            assert caught.value.code == 10062
