"""The mirror on Nostr relays, if the settings name any."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.app.sole import Sole
from discoclaw.core.health import Finding
from discoclaw.core.ports import MirrorControl, NoMirror
from discoclaw.core.times import span
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.mirroring import check_shared, nostr_config
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.event import Keys
from discoclaw.nostr.outgoing.delivery import RelayStatus
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.sharing import OthersChanges, SharingAdapter

OLD_MS: Final = 3_600_000
"""An event that has been waiting for longer for a relay is a warning."""


class Mirror(Feature):
    """`adapter` mirrors changes on disk; without relays there is none, and `report` says so."""

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

    def __init__(self, basics: Basics, keys: Keys | None, disk: OnDisk) -> None:
        self.adapter: MirrorControl = NoMirror()
        config = nostr_config(basics.settings, keys)
        if config is None:
            return
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

        self.adapter = adapter
        self.health = (lambda: _relays(adapter.relays, adapter.known, basics.clock()),)
        self.services = (Sole("mirror", [Part(start, adapter.settle, adapter.close)], storage.processes),)


def _relays(relays: Sequence[Relay], known: Sequence[RelayStatus], now_ms: int) -> Iterator[Finding]:
    """How the relays are, and how long something has been waiting for them. No answer depends on them."""
    if not relays:
        yield Finding("relays", "good", "another process mirrors")
        return
    away = sum(not one.connected for one in relays)
    waiting, oldest = waiting_for(known, now_ms)
    refused = sum(count for one in known for _, count in one.queue.parked)
    text = f"{len(relays) - away} of {len(relays)} connected, {waiting} events wait"
    if oldest > OLD_MS:
        text += f", the oldest for {span(oldest)}"
    if refused:
        text += f", {refused} were refused for good"
    if away or refused or oldest > OLD_MS:
        yield Finding("relays", "warning", text, "see `discoclaw nostr status`")
    else:
        yield Finding("relays", "good", text)


def waiting_for(known: Sequence[RelayStatus], now_ms: int) -> tuple[int, int]:
    """How many events wait for the relay that lacks most, and for how long (ms) the oldest one has."""
    queues = [one.queue for one in known]
    since = [one.since for one in queues if one.since is not None and one.depth]
    return max((one.depth for one in queues), default=0), now_ms - min(since) if since else 0
