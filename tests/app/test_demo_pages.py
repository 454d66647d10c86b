"""The demo's pages with a client of a few lines: what each kind of answer needs of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import discord
import pytest
from discord import app_commands
from discord.ext import commands

from discoclaw.demo.world import World
from tests.process.pages import Page


class Question(discord.ui.Modal, title="A question"):
    """Says what was filled in."""

    words: discord.ui.TextInput["Question"] = discord.ui.TextInput(label="Words", custom_id="words")

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"You wrote: {self.words.value}")


@app_commands.command(name="ask", description="Open a modal")
async def ask(interaction: discord.Interaction) -> None:
    await interaction.response.send_modal(Question())


class Client(commands.Bot):
    """What it answers to a message, and to `/think`, is complete when the test says so."""

    def __init__(self) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__("!", intents=intents)
        self.go_on = asyncio.Event()

        @app_commands.command(name="think", description="Answer later")
        async def think(interaction: discord.Interaction) -> None:
            await interaction.response.defer(ephemeral=True)
            await self.go_on.wait()
            await interaction.followup.send("Thought through")

        for command in (ask, think):
            self.tree.add_command(command)

    async def setup_hook(self) -> None:
        await self.tree.sync()

    async def on_message(self, message: discord.Message) -> None:
        if self.user is not None and message.author.id != self.user.id:
            answer = await message.channel.send(f"{message.content}: begun")
            await self.go_on.wait()
            await answer.edit(content=f"{message.content}: done")


@asynccontextmanager
async def pages(client: Client) -> AsyncIterator[dict[str, Page]]:
    """Each page of the demo's Discord, opened."""
    world = World("general")
    await world.env.connect(client)
    shown = world.pages(0, "UTC")
    try:
        async with aiohttp.ClientSession() as session:
            for preview in shown.values():
                await preview.__aenter__()
            yield {name: await Page(session, one.url).open() for name, one in shown.items()}
    finally:
        client.go_on.set()
        for preview in shown.values():
            await preview.close()
        await world.env.shutdown()


async def test_an_answer_is_seen_while_it_grows_and_nobody_waits_for_it() -> None:
    client = Client()
    async with pages(client) as opened:
        await opened["#general"].say("one")
        await opened["#general"].say("two")
        await opened["#general, as Sam"].say("three")
        await opened["direct messages"].say("four")
        for name, words in [("#general", "two"), ("#general", "three"), ("direct messages", "four")]:
            await opened[name].shows(f"{words}: begun", by="TestBot")
        client.go_on.set()
        for name, words in [("#general", "one"), ("#general", "three"), ("direct messages", "four")]:
            await opened[name].shows(f"{words}: done", by="TestBot")


async def test_a_command_that_takes_long_holds_nobody_up() -> None:
    client = Client()
    async with pages(client) as opened:
        yours, of_sam = opened["#general"], opened["#general, as Sam"]
        await yours.command("think")
        await yours.say("meanwhile")
        await yours.shows("meanwhile: begun", by="TestBot")
        client.go_on.set()
        await yours.shows("Thought through", by="TestBot")
        await of_sam.read()
        assert "Thought through" not in of_sam.texts


@pytest.mark.parametrize("page", ["#cooking", "direct messages"])
async def test_a_modal_is_opened_and_answered(page: str) -> None:
    async with pages(Client()) as opened:
        await opened[page].command("ask")
        await opened[page].fill(words="by hand")
        await opened[page].shows("You wrote: by hand", by="TestBot")
