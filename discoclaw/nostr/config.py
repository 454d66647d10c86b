"""The Nostr adapter's configuration: codec, relays, paths, options. `mirroring` builds it from settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from discoclaw.nostr.event import Keys
from discoclaw.nostr.relays.relay import check_private
from discoclaw.nostr.schemas import Codec

EMBEDDED: Final = "embedded"
"""In place of a relay's address: the relay inside this program."""


@dataclass(frozen=True, slots=True)
class NostrConfig:
    """What to mirror, and where to. Raises SettingsError if a relay must not get plaintext.

    `data_dir` is the bot's data folder, `outbox` the outbox's file. `owner` is the public key (hex) whose
    events configure the bot; `owners` are user ids. `canonical`: recover from the relays at each start.
    If the `codec` allows plaintext, preferences without anything private are published unencrypted. `groups`
    maps channel ids to groups on a NIP-29 relay.
    """

    codec: Codec
    relays: tuple[str, ...]
    data_dir: Path
    outbox: Path
    canonical: bool = False
    owner: str | None = None
    owners: frozenset[str] = frozenset()
    min_acks: int = 1
    timeout_s: float = 10.0
    flush_s: float = 300.0
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> Keys:
        return self.codec.keys

    def __post_init__(self) -> None:
        if self.codec.allow_plaintext:
            check_private(one for one in self.relays if one != EMBEDDED)
