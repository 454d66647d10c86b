"""The mirror on Nostr relays, if the settings name any."""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.app.sole import Sole
from discoclaw.core.ports import MirrorControl, NoMirror
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.mirroring import check_shared, nostr_config
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.event import Keys
from discoclaw.nostr.sharing import OthersChanges, SharingAdapter


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
        self.services = (Sole("mirror", [Part(start, adapter.settle, adapter.close)], storage.processes),)
