"""What lies below `data/nostr`: the bot's key, the embedded relay, and how the relays are doing.

    key          the secret key, an nsec or an ncryptsec, readable by us alone; only where no setting has one
    relay/       the embedded relay's events
    state.json   what a running bot last noted of its relays, for whoever looks from outside

The key is all that is needed to bring everything back, and nothing brings back the key: whoever loses this
disk needs a copy of it. It is never shown, not in errors either. Blocking.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, Refused, SettingsError
from discoclaw.core.times import valid_ms
from discoclaw.memory.disk.files import render_json, write_atomic
from discoclaw.nostr.event import Keys
from discoclaw.nostr.outgoing.delivery import Standing

log = logging.getLogger(__name__)

NOTED_EVERY_S: Final = 30.0
"""So often a running bot notes how its relays are doing."""
_OLD_MS: Final = 120_000
_LONGEST_KEY: Final = 1_000


def key_path(data_dir: Path) -> Path:
    return data_dir / "nostr" / "key"


def relay_folder(data_dir: Path) -> Path:
    return data_dir / "nostr" / "relay"


def state_path(data_dir: Path) -> Path:
    return data_dir / "nostr" / "state.json"


# ---------------------------------------------------------------------- the key


def keys_of(data_dir: Path, given: str | None, password: str | None) -> Keys | None:
    """The bot's keys: those of the setting, else those of the file; None without either.

    Raises SettingsError, naming which of them is none, and MemoryFault when the file can not be read.
    """
    if given is not None:
        return Keys.parse(given, password)
    path = key_path(data_dir)
    try:
        content = path.read_bytes()[:_LONGEST_KEY]
        open_to_others = os.name != "nt" and path.stat().st_mode & 0o077
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemoryFault(f"{path} can not be read: {error.strerror or error}") from error
    if open_to_others:
        log.warning("%s can be read by others on this machine; `chmod 600` it", path)
    try:
        return Keys.parse(content.decode("ascii"), password, name=str(path))
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: it is no key; put a copy of yours there") from None


def make_key(path: Path, password: str | None = None) -> Keys:
    """A new key in a file that nobody else can read, encrypted if there is a password.

    Raises Refused when something is there already, and MemoryFault when the disk does not take it.
    """
    there = f"{path} is there already, and may be all that opens what was mirrored; move it away first"
    if os.path.lexists(path):
        raise Refused(there)
    keys = Keys.generate()
    text = keys.encrypted(password) if password else keys.nsec()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = write_atomic(
            path, f"{text}\n".encode("ascii"), still=lambda: not os.path.lexists(path), mode=0o600
        )
    except OSError as error:
        raise MemoryFault(f"{path} can not be written: {error.strerror or error}") from error
    if done is None:
        raise Refused(there)
    return keys


# ---------------------------------------------------------------------- how the relays are doing


def note_state(path: Path, standings: Iterable[Standing], now_ms: int) -> None:
    """Note how it stands with each relay. Raises OSError."""
    relays = [
        {
            "url": one.relay.url,
            "address": one.relay.address,
            "connected_since": one.relay.connected_since_ms,
            "last_eose": one.relay.last_eose_ms,
            "error": one.trouble or one.relay.last_error,
            "notice": one.relay.last_notice,
            "rests_s": round(one.rests_s, 1),
        }
        for one in standings
    ]
    write_atomic(path, render_json({"at": now_ms, "relays": relays}))


def read_state(path: Path, now_ms: int) -> Mapping[str, Mapping[str, Any]] | None:
    """What a running bot noted of each relay, by its address; None where none did within two minutes."""
    try:
        value = json.loads(path.read_bytes())
        at, relays = value["at"], value["relays"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if not valid_ms(at) or not 0 <= now_ms - at + _OLD_MS <= 2 * _OLD_MS or not isinstance(relays, list):
        return None
    return {one["url"]: one for one in relays if isinstance(one, Mapping) and isinstance(one.get("url"), str)}
