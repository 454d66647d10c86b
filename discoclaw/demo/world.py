"""The demo's Discord: your server with two channels, you who own the bot, Sam, and your direct messages.

A page of the browser can't upload a file. A command of the demo's own, `/attach`, can: it takes a file and
sends it as the person who used it.
"""

from collections.abc import Mapping
from typing import Any, Final

import discord
import simcord
from discord import app_commands

from discoclaw.demo.live import LiveEnv, LivePreview, Viewer

GUILD_ID: Final = 100_000_000_000_000_001
PAGES: Final = 4
OTHER_CHANNELS: Final = {"cooking": "Recipes, and what to eat", "general": "Anything else"}
"""What the second channel is called: the first of these names that the first one doesn't have."""


class World:
    """Everything there is before the bot logs in. Ids are the same in every run, so it knows you again."""

    def __init__(self, channel: str) -> None:
        self.env = LiveEnv()
        self.you = self.env.create_user("you")
        self.sam = self.env.create_user("sam", global_name="Sam")
        # Discord offers the commands for admins only to people who may manage the server.
        guild = self.env.create_guild("DiscoClaw demo", id=GUILD_ID, owner=self.you)
        other, topic = next(one for one in OTHER_CHANNELS.items() if one[0] != channel)
        self.general = guild.create_text_channel(channel, topic="Trying out a bot that remembers")
        self.other = guild.create_text_channel(other, topic=topic)
        self.private = self.you.dm_channel
        self.members: Mapping[int, simcord.MemberActor] = {
            one.id: guild.add_member(one) for one in (self.you, self.sam)
        }
        self._channels = {one.id: one for one in (self.general, self.other)}

    def pages(self, port: int, timezone: str) -> Mapping[str, LivePreview]:
        """The pages by what they show, on `port` and those that follow; 0 takes any that are free."""
        you, sam = self.members[self.you.id], self.members[self.sam.id]
        shown: list[tuple[str, simcord.ChannelHandle, list[Viewer]]] = [
            (f"#{self.general.name}", self.general, [you, sam]),
            (f"#{self.other.name}", self.other, [you, sam]),
            ("direct messages", self.private, [self.you]),
            (f"#{self.general.name}, as Sam", self.general, [sam, you]),
        ]
        return {
            name: LivePreview(self.env, channel, viewers, port=port and port + number, timezone=timezone)
            for number, (name, channel, viewers) in enumerate(shown)
        }

    async def say(self, user_id: int, channel_id: int, text: str, name: str, content: bytes) -> None:
        """Send a message with a file as a person, in a channel or in their direct messages."""
        if (channel := self._channels.get(channel_id)) is not None:
            await self.members[user_id].send(channel, text, attachments=[(name, content)])
        else:  # only you have a page for them
            await self.env.send_dm(self.you, text, name, content)

    def attach_command(self) -> app_commands.Command[Any, ..., None]:
        """`/attach`, which only the demo has."""

        @app_commands.command(name="attach", description="Demo only: send a file or a picture as yourself")
        @app_commands.describe(file="A file of your computer", text="What you say with it")
        async def attach(interaction: discord.Interaction, file: discord.Attachment, text: str = "") -> None:
            await interaction.response.defer(ephemeral=True)
            content = await file.read()
            await interaction.delete_original_response()
            assert interaction.channel_id is not None
            await self.say(interaction.user.id, interaction.channel_id, text, file.filename, content)

        return attach
