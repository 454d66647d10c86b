"""What Discord offers while one types a slash command: one's own items, personas and commits.

Seen by the one who types alone, so private items are among them. A memory that can not be read offers
nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import discord
from discord import app_commands
from discord.ext import commands

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Mirrored
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.subject import user_subject
from discoclaw.core.text import normalise
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.tools import Tidy

Interaction = discord.Interaction[DiscoClaw]

CHOICES = 25
"""Discord's limit for autocompletion."""
LONGEST_CHOICE = 100


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What the commands work on. `memory` and `rolling` are None when switched off.

    `cleared(session key, message id)` hears of a reset summary. `tidy` consolidates; None: not to be had.
    `mirrored` is the mirror on relays, if there is one.
    """

    memory: Memory | None
    rolling: RollingMemory | None
    choices: Choices
    dm_privacy: DmPrivacy
    cleared: Callable[[str, int], None]
    tidy: Tidy | None = None
    mirrored: Mirrored | None = None


class Completion(commands.Cog):
    """The completions of all commands."""

    def __init__(self, client: DiscoClaw, shelf: CommandContext) -> None:
        self._client = client
        self._shelf = shelf

    async def _complete_items(self, interaction: Interaction, typed: str) -> list[app_commands.Choice[str]]:
        memory = await self._completing(interaction)
        if memory is None:
            return []
        try:
            view = await memory.view(_whose(interaction), self._branch_of(interaction))
        except MemoryFault:
            return []
        wanted = normalise(typed)
        return _choices(
            (item.text, item.id)
            for item in view.active()
            if wanted in normalise(item.text) or wanted in item.id
        )

    async def _complete_branches(
        self, interaction: Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        memory = await self._completing(interaction)
        if memory is None:
            return []
        try:
            branches = await memory.branches(_whose(interaction))
        except MemoryFault:
            return []
        wanted = typed.strip().casefold()
        return _choices(
            (f"{branch.name} – {branch.persona}" if branch.persona else branch.name, branch.name)
            for branch in branches.all.values()
            if wanted in branch.name or wanted in branch.persona.casefold()
        )

    async def _complete_commits(self, interaction: Interaction, typed: str) -> list[app_commands.Choice[str]]:
        memory = await self._completing(interaction)
        if memory is None:
            return []
        try:
            history = await memory.history(_whose(interaction))
        except MemoryFault:
            return []
        wanted = typed.strip().casefold()
        return _choices(
            (f"{commit.id} {commit.timestamp[:10]} {commit.message}", commit.id)
            for commit in reversed(history.commits.values())
            if commit.id.startswith(wanted) or wanted in commit.message.casefold()
        )

    async def _completing(self, interaction: Interaction) -> Memory | None:
        """The store, if the one who types may use it."""
        allowed = await self._client.access.may_talk(interaction.user, interaction.guild)
        return self._shelf.memory if allowed else None

    def _branch_of(self, interaction: Interaction) -> str | None:
        channel: Any = interaction.channel
        return self._client.settings.personas.of(wire.place_of(channel)) if channel is not None else None


def _whose(interaction: Interaction) -> str:
    return user_subject(str(interaction.user.id))


def _choices(named: Iterable[tuple[str, str]]) -> list[app_commands.Choice[str]]:
    found: list[app_commands.Choice[str]] = []
    for name, value in named:
        if len(found) == CHOICES:
            break
        found.append(app_commands.Choice(name=name[:LONGEST_CHOICE], value=value))
    return found
