"""Discord: the client, its commands and buttons, and what it shows about memory by itself."""

from functools import partial
from typing import ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.learning import Learning
from discoclaw.app.mirror import Mirror
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.app.talk import Talking
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.dispatch import Commands
from discoclaw.bot.commands.spec import Need
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.deletions import forget_deleted
from discoclaw.bot.presses import Presses
from discoclaw.bot.questions import Questions
from discoclaw.bot.receipts import Receipts
from discoclaw.bot.sync import sync_if_changed
from discoclaw.bot.transparency import CURSOR as TRANSPARENCY
from discoclaw.bot.transparency import Transparency
from discoclaw.loops.consolidate import suggest
from discoclaw.memory.subjects.follow import Follower
from discoclaw.storage import Storage


class Chat(Feature):
    """Everything that people see. The client is closed after the last answer went out."""

    settings: ClassVar = (
        "token",
        "allow_users",
        "allow_roles",
        "channels",
        "discord_api",
        "discord_gateway",
        "edit_interval_s",
        "memory_channel",
        "commands_enabled",
        "receipts",
        "log_level",
    )

    def __init__(
        self,
        basics: Basics,
        client: DiscoClaw,
        disk: OnDisk,
        mirror: Mirror,
        models: Models,
        archive: Archived,
        learning: Learning,
        talk: Talking,
    ) -> None:
        settings, storage = basics.settings, disk.storage
        client.talk = talk.talk
        forget_deleted(client, archive.archiving)
        context = CommandContext(
            storage.used,
            storage.summaries,
            storage.people.choices,
            storage.people.last_used,
            settings.dm_privacy,
            cleared=learning.loops.reset,
            hatchery=talk.hatchery,
            archiving=archive.archiving,
            explained=talk.explained,
            consolidate=learning.consolidate,
            mirror=mirror.adapter,
            off=_off(storage, mirror),
        )
        client.presses = Presses(context, owners=settings.owners, may_talk=client.access.may_talk)

        async def setup() -> None:
            if settings.commands_enabled:
                Commands(client, context, CATALOGUE).register()
            await sync_if_changed(client.tree, storage.cursors)

        client.setup_hooks.append(setup)
        services: list[Receipts | Follower | Part] = []
        if storage.remembers:
            if settings.memory_channel is not None:
                services.append(_transparency(client, settings.memory_channel, storage))
            services.append(_questions(client, storage, models))
            learning.followers += [one for one in services if isinstance(one, Follower)]
            if settings.receipts:
                receipts = Receipts(client)
                storage.memory.join(receipts)
                services.append(receipts)
        self.services = (*services, Part(closing=client.close))


def _off(storage: Storage, mirror: Mirror) -> frozenset[Need]:
    """What the settings switch off, of what commands need."""
    off: list[Need] = []
    off += [] if storage.remembers else ["memory", "tidying"]
    off += [] if storage.sums_up else ["summaries"]
    off += [] if mirror.services else ["mirror"]
    return frozenset(off)


def _transparency(client: DiscoClaw, channel_id: str, storage: Storage) -> Follower:
    """The pinned messages in the transparency channel."""
    memory = storage.memory
    mirror = Transparency(client, channel_id, memory, storage.summaries, storage.cursors)
    follower = Follower("transparency", mirror.mirror, ledgers=memory.ledgers, cursors=storage.cursors)

    async def catch_up() -> None:
        for subject in memory.pending_erasures(TRANSPARENCY):
            follower.touch(subject)  # its message is still to be deleted
        await follower.catch_up()

    memory.join(mirror, follower)
    client.heard_hooks.append(mirror.heard)
    client.ready_hooks.append(catch_up)
    return follower


def _questions(client: DiscoClaw, storage: Storage, models: Models) -> Follower:
    """The questions about contradictions that people get in a DM."""
    memory = storage.memory
    suggestion = partial(suggest, models.facts)
    choices, cursors = storage.people.choices, storage.cursors
    questions = Questions(client, client.access, memory, choices, cursors, suggestion)
    follower = Follower("questions", questions.ask, ledgers=memory.ledgers, cursors=cursors)
    memory.join(follower)
    client.ready_hooks.append(follower.catch_up)
    return follower
