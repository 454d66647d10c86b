"""The Discord client, and what it shows about memory without being asked."""

from functools import partial
from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.app.sole import Sole
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.connected import finding
from discoclaw.bot.questions import Questions
from discoclaw.bot.receipts import Receipts
from discoclaw.bot.transparency import CURSOR as TRANSPARENCY
from discoclaw.bot.transparency import Transparency
from discoclaw.core.bot_memory import BOT
from discoclaw.loops.consolidate import suggest
from discoclaw.memory.subjects.follow import Follower
from discoclaw.storage import Storage


class Chat(Feature):
    """The transparency channel, questions about contradictions, and receipts; none of them without a memory.

    The client is closed after the last answer was sent.
    """

    settings: ClassVar = (
        "token",
        "allow_users",
        "allow_roles",
        "channels",
        "discord_api",
        "discord_gateway",
        "edit_interval_s",
        "answer_buttons",
        "memory_channel",
        "receipts",
        "log_level",
    )

    def __init__(
        self, basics: Basics, client: DiscoClaw, disk: OnDisk, models: Models, learning: Learning
    ) -> None:
        settings, storage = basics.settings, disk.storage
        client.access.live = storage.live
        self.health = (lambda: [finding(client, client.connected, client.shards_served)],)
        self.services = (client.threads, Part(closing=client.close))
        self.joins = (client.threads,)
        if not storage.remembers:
            return
        receipts = Receipts(client, storage.places.receipts)
        client.ready_hooks.append(receipts.connected)
        self._show(receipts, receipts)
        if settings.memory_channel is not None:
            mirror = Transparency(
                client,
                settings.memory_channel,
                storage.memory,
                storage.summaries,
                storage.cursors,
                storage.consent,
            )
            follower = _transparency(client, mirror, storage)
            self._show(_sole("transparency", follower, client, storage), mirror, follower)
            learning.followers.append(follower)
        follower = _questions(client, storage, models, learning)
        self._show(_sole("questions", follower, client, storage), follower)
        learning.followers.append(follower)

    def _show(self, service: Receipts | Sole, *joins: Receipts | Follower | Transparency) -> None:
        """Add something to show: a service, and the parts that listen to changes or to an erasing."""
        self.services = (service, *self.services)
        self.joins = (*self.joins, *joins)


def _sole(name: str, follower: Follower, client: DiscoClaw, storage: Storage) -> Sole:
    """A follower that one process has. It catches up when Discord can be reached."""

    async def start() -> None:
        await follower.start()
        if client.is_ready():  # another process had it until now
            await follower.catch_up()

    return Sole(name, [Part(start, follower.settle, follower.close)], storage.processes)


def _transparency(client: DiscoClaw, mirror: Transparency, storage: Storage) -> Follower:
    """A follower that updates the pinned messages of the transparency channel."""
    memory = storage.memory
    follower = Follower("transparency", mirror.mirror, ledgers=memory.ledgers, cursors=storage.cursors)

    async def catch_up() -> None:
        for subject in memory.pending_erasures(TRANSPARENCY):
            follower.touch(subject)  # its message still has to be deleted
        if await mirror.has_renewals():
            follower.touch(BOT)
        await follower.catch_up()

    mirror.touch = follower.touch

    client.heard_hooks.append(mirror.heard)
    client.ready_hooks.append(catch_up)
    return follower


def _questions(client: DiscoClaw, storage: Storage, models: Models, learning: Learning) -> Follower:
    """A follower that asks people in a DM about contradictions in their memory."""
    memory, cursors = storage.memory, storage.cursors
    suggestion = partial(suggest, models.facts)
    choices, asked_back = storage.people.choices, learning.asked_back
    questions = Questions(client, client.access, memory, choices, cursors, asked_back, suggestion)
    follower = Follower("questions", questions.ask, ledgers=memory.ledgers, cursors=cursors)
    client.ready_hooks.append(follower.catch_up)
    return follower
