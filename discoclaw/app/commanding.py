"""What people can do in Discord besides talking: commands and buttons; also handles deleted channels."""

from typing import ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.mirror import Mirror
from discoclaw.app.models import Models
from discoclaw.app.usage import Usage
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.dispatch import Commands
from discoclaw.bot.commands.spec import Catalogue, Need
from discoclaw.bot.deletions import forget_deleted
from discoclaw.bot.presses import Presses
from discoclaw.bot.sync import sync_if_changed
from discoclaw.bot.withdrawn import Telling
from discoclaw.session.live_settings import LiveSettings
from discoclaw.storage import Storage


class Commanding(Feature):
    """The commands of a catalogue, for one client."""

    settings: ClassVar = ("commands_enabled",)

    def __init__(
        self,
        basics: Basics,
        client: DiscoClaw,
        disk: OnDisk,
        archive: Archived,
        context: CommandContext,
        catalogue: Catalogue,
    ) -> None:
        settings, storage = basics.settings, disk.storage
        telling = Telling(client, storage.withdrawals)
        commands = Commands(client, context, telling, catalogue)
        client.presses = Presses(
            context,
            telling,
            owners=settings.owners,
            may_talk=client.access.may_talk,
            commands=commands,
            pending_days=settings.pending_days,
        )
        forget_deleted(client, archive.archiving)

        async def setup() -> None:
            if settings.commands_enabled:
                commands.register()
            async with storage.processes.lease("slash-commands"):
                await sync_if_changed(client.tree, storage.cursors)

        client.setup_hooks.append(setup)


def command_context(
    basics: Basics,
    disk: OnDisk,
    mirror: Mirror,
    usage: Usage,
    models: Models,
    archive: Archived,
    learning: Learning,
    hearing: Hearing,
) -> CommandContext:
    """What the commands work with."""
    settings, storage = basics.settings, disk.storage
    live_settings = LiveSettings(
        storage.places,
        storage.people.changed_by,
        models.named,
        folder=settings.memory_dir,
        clock=basics.clock,
        allowlist=settings.allowlist,
        models=models.names,
        answers=models.answers,
        archives=storage.memory.disk.remembers,
    )
    return CommandContext(
        storage.used,
        storage.summaries,
        storage.people.choices,
        storage.people.last_used,
        live_settings,
        loops=learning.loops,
        hatchery=hearing.hatchery,
        archiving=archive.archiving,
        explained=hearing.explained,
        consolidate=learning.consolidate,
        mirror=mirror.adapter,
        accounts=usage.accounts,
        models_seen=models.seen,
        off=_off(storage, mirror),
    )


def _off(storage: Storage, mirror: Mirror) -> frozenset[Need]:
    """The needs of commands that the settings switch off."""
    off: list[Need] = []
    off += [] if storage.remembers else ["memory", "tidying"]
    off += [] if storage.sums_up else ["summaries"]
    off += [] if mirror.services else ["mirror"]
    return frozenset(off)
