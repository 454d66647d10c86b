"""The Nostr adapter's configuration, and its files in `data/nostr`. `mirroring` builds it from settings.

    key          the secret key, an nsec or an ncryptsec, readable only by us; used when no setting has a key
    relay/       the embedded relay's events
    state.json   the state of each relay as a running bot last saved it, for the command line

The key is all you need to recover the memory, and nothing recovers the key: keep a copy on another disk.
It is never shown, not even in errors. All but the configuration blocks.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, Refused, SettingsError, faulting
from discoclaw.core.times import valid_ms
from discoclaw.nostr.delivery import RelayStatus
from discoclaw.nostr.event import Keys
from discoclaw.nostr.relays.relay import check_private
from discoclaw.nostr.schemas import Codec
from discoclaw.store.files import render_json, write_atomic

log = logging.getLogger(__name__)

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


# ---------------------------------------------------------------------- the files

STATE_INTERVAL_S: Final = 30.0
"""How often a running bot saves the state of its relays, in seconds."""
_STALE_MS: Final = 120_000
"""State older than this is not used: four saves were missed, so the bot was probably killed."""
_MAX_KEY_BYTES: Final = 1_000


def key_path(data_dir: Path) -> Path:
    return data_dir / "nostr" / "key"


def relay_folder(data_dir: Path) -> Path:
    return data_dir / "nostr" / "relay"


def state_path(data_dir: Path) -> Path:
    return data_dir / "nostr" / "state.json"


# ---------------------------------------------------------------------- the key


def keys_of(data_dir: Path, setting: str | None, password: str | None) -> Keys | None:
    """The bot's keys: those of the setting, else those of the file; None without either.

    Raises SettingsError, naming the one that isn't a key, and MemoryFault when the file can't be read.
    """
    if setting is not None:
        return Keys.parse(setting, password)
    path = key_path(data_dir)
    try:
        content = path.read_bytes()[:_MAX_KEY_BYTES]
        # Windows has no such mode bits.
        open_to_others = os.name != "nt" and path.stat().st_mode & 0o077
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemoryFault(f"cannot read the key file {path}: {error.strerror or error}") from error
    if open_to_others:
        log.warning("%s can be read by other users of this machine; run `chmod 600` on it", path)
    try:
        return Keys.parse(content.decode("ascii"), password, name=str(path))
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not a secret key; replace it with a copy of yours") from None


def make_key(path: Path, password: str | None = None) -> Keys:
    """Generate a key in a new file that only we can read, encrypted if there is a password.

    Raises Refused when the file exists, and MemoryFault when it can't be written.
    """
    exists = f"{path} exists, and may hold the only key to what was mirrored; move it away first"
    if os.path.lexists(path):
        raise Refused(exists)
    keys = Keys.generate()
    text = keys.encrypted(password) if password else keys.nsec()
    with faulting(f"cannot write the key file {path}"):
        # `still` is asked right before the rename: another command may have made a key meanwhile.
        done = write_atomic(path, f"{text}\n".encode("ascii"), still=lambda: not os.path.lexists(path))
    if done is None:
        raise Refused(exists)
    return keys


# ---------------------------------------------------------------------- how the relays are doing


def save_state(path: Path, statuses: Iterable[RelayStatus], now_ms: int) -> None:
    """Save the state of each relay. Raises OSError."""
    relays = [
        {
            "url": one.connection.url,
            "address": one.connection.address,
            "connected_since": one.connection.connected_since_ms,
            "last_eose": one.connection.last_eose_ms,
            "error": one.last_failure or one.connection.last_error,
            "notice": one.connection.last_notice,
            "rests_s": round(one.pause_s, 1),
        }
        for one in statuses
    ]
    write_atomic(path, render_json({"at": now_ms, "relays": relays}))


def read_state(path: Path, now_ms: int) -> Mapping[str, Mapping[str, Any]] | None:
    """The saved state of each relay, by its URL. None if no bot saved it within the last two minutes.

    A file from the future is not used either: after a clock that was set back it would stay valid for long.
    """
    try:
        value = json.loads(path.read_bytes())
        at, relays = value["at"], value["relays"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if not valid_ms(at) or not 0 <= now_ms - at + _STALE_MS <= 2 * _STALE_MS or not isinstance(relays, list):
        return None
    return {one["url"]: one for one in relays if isinstance(one, Mapping) and isinstance(one.get("url"), str)}
