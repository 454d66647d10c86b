"""What follows memories, in one process at a time: questions and a channel in Discord, Nostr relays.

Without relays, nothing of `nostr` is imported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Final

from discoclaw.app.models import Models
from discoclaw.app.services import Part, Sole
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.questions import Questions
from discoclaw.bot.reminders import Deliverer
from discoclaw.core.health import Finding
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.times import span
from discoclaw.loops.consolidate import suggest
from discoclaw.memory.changes import Listener
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.subjects.follow import Follower
from discoclaw.reminders.due import Reminding
from discoclaw.settings import Settings
from discoclaw.storage import Storage
from discoclaw.store.files import read_in_thread

if TYPE_CHECKING:
    from discoclaw.nostr.adapter import NostrAdapter
    from discoclaw.nostr.event import Keys

OLD_MS: Final = 3_600_000
"""An event that has been waiting for longer for a relay is a warning."""


# ---------------------------------------------------------------------- in Discord


def questions_of(client: DiscoClaw, storage: Storage, models: Models, asked_back: AskedBack) -> Follower:
    """A follower that asks people in a DM about contradictions in their memory."""
    memory, cursors, choices = storage.memory, storage.cursors, storage.people.choices
    suggestion = partial(suggest, models.facts)
    questions = Questions(client, client.access, memory, choices, cursors, asked_back, suggestion)
    return Follower("questions", questions.ask, ledgers=memory.ledgers, cursors=cursors)


def touch_all(followers: Sequence[Follower], user_id: str) -> None:
    """Have what is shown of somebody brought up to date after a run of a loop, even if it changed nothing."""
    for follower in followers:
        follower.touch(user_subject(user_id))


def sole_follower(name: str, follower: Follower, client: DiscoClaw, storage: Storage) -> Sole:
    """A follower that one process has. It catches up when Discord can be reached."""

    async def start() -> None:
        await follower.start()
        if client.is_ready():  # another process had it until now
            await follower.catch_up()

    return Sole(name, [Part(start, follower.settle, follower.close)], storage.processes)


def reminding_of(client: DiscoClaw, storage: Storage, zone: tzinfo, clock: Clock) -> Reminding:
    """What gives people their reminders."""
    opted_out, deliver = storage.people.choices.opted_out, Deliverer(client, client.access)
    return Reminding(storage.memory, storage.cursors, opted_out, deliver, zone=zone, clock=clock)


def sole_reminding(reminding: Reminding, client: DiscoClaw, storage: Storage) -> Sole:
    """The service that gives reminders, in one of the processes that share a store."""

    async def start() -> None:
        await reminding.start()
        if client.is_ready():  # another process had it until now
            await reminding.ready()

    return Sole("reminders", [Part(start, reminding.settle, reminding.close)], storage.processes)


# ---------------------------------------------------------------------- the mirror on Nostr relays


def mirror_of(
    settings: Settings, keys: "Keys | None", storage: Storage, *, clock: Clock, redactor: Redactor
) -> "NostrAdapter | None":
    """The mirror, None if the settings name no relays. Raises SettingsError."""
    if not settings.mirrors:
        return None
    from discoclaw.mirroring import nostr_config
    from discoclaw.nostr.adapter import NostrAdapter, SharingAdapter

    shared = storage.memory.disk.shared
    config = nostr_config(settings, keys, shared=shared)
    return (SharingAdapter if shared else NostrAdapter)(
        config, storage.memory, clock=clock, redactor=redactor, live=storage.live, consent=storage.consent
    )


def mirroring(nostr: "NostrAdapter", storage: Storage) -> Sole:
    """The mirror as the service of one process."""

    async def start() -> None:
        await nostr.open()
        await nostr.hydrate()
        await read_in_thread(storage.load)  # the mirror may have restored opt-outs
        await nostr.start()

    return Sole("mirror", [Part(start, nostr.settle, nostr.close)], storage.processes)


def mirrored(nostr: "NostrAdapter | None", storage: Storage) -> list[Derived | Listener]:
    """What the mirror does when memories change or are erased."""
    if nostr is None:
        return []
    from discoclaw.nostr.adapter import OthersChanges

    return [nostr.mirror, OthersChanges(nostr.mirror)] if storage.memory.disk.shared else [nostr.mirror]


@dataclass(frozen=True, slots=True)
class Relays:
    """The relays: connected or not, and how many events wait for the one that lacks most.

    The oldest of all has waited `oldest_ms`, and `refused` are those that a relay refused for good.
    """

    connected: int = 0
    away: int = 0
    waiting: int = 0
    oldest_ms: int = 0
    refused: int = 0

    def finding(self) -> Finding:
        """How they are. No answer depends on them."""
        if not self.connected + self.away:
            return Finding("relays", "good", "another process mirrors")
        text = f"{self.connected} of {self.connected + self.away} connected, {self.waiting} events wait"
        if self.oldest_ms > OLD_MS:
            text += f", the oldest for {span(self.oldest_ms)}"
        if self.refused:
            text += f", {self.refused} were refused for good"
        if self.away or self.refused or self.oldest_ms > OLD_MS:
            return Finding("relays", "warning", text, "see `discoclaw nostr status`")
        return Finding("relays", "good", text)


def relays_now(nostr: "NostrAdapter", clock: Clock) -> Relays:
    """How the relays of a mirror are now."""
    queues = [one.queue for one in nostr.known]
    since = [one.since for one in queues if one.since is not None and one.depth]
    connected = sum(one.connected for one in nostr.relays)
    return Relays(
        connected,
        len(nostr.relays) - connected,
        max((one.depth for one in queues), default=0),
        max(clock() - min(since), 0) if since else 0,
        sum(count for one in queues for _, count in one.parked),
    )
