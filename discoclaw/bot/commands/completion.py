"""What Discord offers while somebody types a slash command: memories, personas, changes, channels, zones.

Only the person who types sees it, so private memories are among them. A memory that cannot be read, and one
that is switched off, offers nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import islice
from typing import Any

import discord
from discord import app_commands

from discoclaw.bot import wire
from discoclaw.bot.commands.call import Interaction
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.reading import DM
from discoclaw.bot.commands.spec import Completes
from discoclaw.bot.readers import may_read
from discoclaw.bot.texts.history import teller
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.subject import user_subject
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.yours import yours
from discoclaw.core.zones import names_like
from discoclaw.recall.meant import holds
from discoclaw.session.deadline import in_time
from discoclaw.show.words import day, line

CHOICES = 25
"""Discord's limit for autocompletion."""
LONGEST_CHOICE = 100

Named = Iterable[tuple[str, str]]
"""What is shown, and the value it stands for."""


class Completion:
    """The completions of all parameters."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._of: Mapping[Completes, Callable[[Interaction, str], Coroutine[Any, Any, Named]]] = {
            "memory": self._memories,
            "persona": self._personas,
            "change": self._changes,
            "channel": self._channels,
            "zone": self._zones,
            "model": self._models,
        }

    async def complete(
        self, what: Completes, interaction: Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        """What fits what was typed so far; nothing for somebody who may not talk to the bot."""
        if not await interaction.client.access.may_talk(interaction.user, interaction.guild):
            return []
        try:
            if what != "model":
                self._context.require("memory")
            await interaction.client.look(interaction)
            found = await in_time(self._of[what](interaction, typed))
        except (MemoryFault, Refused):
            return []
        return [
            app_commands.Choice(name=name[:LONGEST_CHOICE], value=value)
            for name, value in islice(found, CHOICES)
        ]

    async def _memories(self, interaction: Interaction, typed: str) -> Named:
        view = await self._context.store.view(_subject(interaction), self._persona_of(interaction))
        wanted = normalise(typed)
        return (
            (yours(item.text), item.id)
            for item in view.active()
            if holds(f"{item.text} you your", typed) or wanted in item.id
        )

    async def _personas(self, interaction: Interaction, typed: str) -> Named:
        branches = await self._context.store.branches(_subject(interaction))
        wanted = typed.strip().casefold()
        return [
            (f"{branch.name} – {branch.persona}" if branch.persona else branch.name, branch.name)
            for branch in branches.all.values()
            if wanted in branch.name or wanted in branch.persona.casefold()
        ]

    async def _changes(self, interaction: Interaction, typed: str) -> Named:
        history = await self._context.store.history(_subject(interaction))
        done_by = teller(history, in_private=True)
        wanted = typed.strip().casefold()
        return [
            (f"{line(done, 60)}, {day(ms_of_iso(commit.timestamp))} ({commit.id})", commit.id)
            for commit in reversed(history.commits.values())
            for done in [done_by(commit)]
            if commit.id.startswith(wanted) or wanted in done.casefold()
        ]

    async def _channels(self, interaction: Interaction, typed: str) -> Named:
        """The channels that the person can read, of those the bot listens in. Threads have to be typed."""
        guild, person, wanted = interaction.guild, interaction.user, typed.strip().lstrip("#").casefold()
        own = [("our direct messages", DM)] if wanted in "our direct messages" or wanted == DM else []
        if guild is None or not isinstance(person, discord.Member):
            return own
        return own + [
            (f"#{channel.name}", str(channel.id))
            for channel in guild.channels
            if wanted in channel.name.casefold()
            and isinstance(channel, discord.abc.Messageable)
            and interaction.client.listens(channel)
            and may_read(channel, person)
        ]

    def _persona_of(self, interaction: Interaction) -> str | None:
        channel: Any = interaction.channel
        return self._context.places.of(wire.place_of(channel)) if channel is not None else None

    async def _models(self, interaction: Interaction, typed: str) -> Named:
        """The models that are known, and what was typed: any name may be one."""
        wanted = typed.strip().casefold()
        known = [name for name in self._context.settings.models if wanted in name.casefold()]
        return [(name, name) for name in known] or [(typed, typed)]

    async def _zones(self, interaction: Interaction, typed: str) -> Named:
        """The server's zone, until something is typed."""
        if not typed.strip():
            return [(interaction.client.settings.timezone,) * 2]
        return [(name, name) for name in await asyncio.to_thread(names_like, typed, CHOICES)]


def _subject(interaction: Interaction) -> str:
    return user_subject(str(interaction.user.id))
