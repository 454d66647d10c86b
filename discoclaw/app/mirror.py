"""The mirror on Nostr relays, if the settings name any."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.app.sole import Sole
from discoclaw.core.health import Finding
from discoclaw.core.ports import MirrorControl, NoMirror
from discoclaw.core.times import span
from discoclaw.memory.disk.files import read_in_thread

if TYPE_CHECKING:
    from discoclaw.nostr.adapter import NostrAdapter
    from discoclaw.nostr.event import Keys
    from discoclaw.nostr.outgoing.delivery import RelayStatus
    from discoclaw.nostr.relays.relay import Relay

OLD_MS: Final = 3_600_000
"""An event that has been waiting for longer for a relay is a warning."""


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


class Mirror(Feature):
    """`adapter` mirrors changes on disk; without relays it says that there is none, and `nostr` is None.

    `relays` tells how they are now.
    """

    settings: ClassVar = (
        "nostr_mode",
        "nostr_relays",
        "nostr_key",
        "nostr_key_password",
        "nostr_box_key",
        "nostr_min_acks",
        "nostr_timeout_s",
        "nostr_flush_s",
        "nostr_in_clear",
        "nostr_groups",
        "owner_pubkey",
        "owner_secret_key",
        "owner_key_password",
    )
    nostr: "NostrAdapter | None" = None

    def __init__(self, basics: Basics, keys: "Keys | None", disk: OnDisk) -> None:
        self.adapter: MirrorControl = NoMirror()
        self.relays: Callable[[], Relays] = Relays
        if not basics.settings.mirrors:
            return
        from discoclaw.mirroring import check_shared, nostr_config
        from discoclaw.nostr.adapter import NostrAdapter
        from discoclaw.nostr.sharing import OthersChanges, SharingAdapter

        config = nostr_config(basics.settings, keys)
        storage = disk.storage
        shared = storage.memory.disk.shared
        if shared:
            check_shared(basics.settings)
        adapter = (SharingAdapter if shared else NostrAdapter)(
            config,
            storage.memory,
            clock=basics.clock,
            redactor=basics.redactor,
            live=storage.live,
            consent=storage.consent,
        )
        self.joins = (adapter.mirror, OthersChanges(adapter.mirror)) if shared else (adapter.mirror,)

        async def start() -> None:
            await adapter.open()
            await adapter.hydrate()
            await read_in_thread(storage.load)  # the mirror may have restored opt-outs
            await adapter.start()

        self.adapter = self.nostr = adapter
        self.relays = lambda: _relays(adapter.relays, adapter.known, basics.clock())
        self.health = (lambda: [self.relays().finding()],)
        self.services = (Sole("mirror", [Part(start, adapter.settle, adapter.close)], storage.processes),)


def _relays(relays: "Sequence[Relay]", known: "Sequence[RelayStatus]", now_ms: int) -> Relays:
    queues = [one.queue for one in known]
    since = [one.since for one in queues if one.since is not None and one.depth]
    connected = sum(one.connected for one in relays)
    return Relays(
        connected,
        len(relays) - connected,
        max((one.depth for one in queues), default=0),
        max(now_ms - min(since), 0) if since else 0,
        sum(count for one in queues for _, count in one.parked),
    )
