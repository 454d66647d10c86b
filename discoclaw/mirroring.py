"""From settings to the Nostr adapter's configuration: whether to mirror, with which key, to which relays."""

from discoclaw.core.errors import SettingsError
from discoclaw.core.redact import Redactor
from discoclaw.nostr.config import NostrConfig, key_path, keys_of, make_key
from discoclaw.nostr.event import Keys, SecretBox, public_key, redactor_of
from discoclaw.nostr.mirror import RelayCopies
from discoclaw.nostr.schemas import Codec, Names
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.store.port import Disk


def find_keys(settings: Settings) -> Keys | None:
    """The bot's key, from the settings or else from `data/nostr/key`; None if neither has one.

    Blocking. Raises SettingsError when it isn't a key, and MemoryFault when the file can't be read.
    """
    key, password = settings.nostr_key, settings.nostr_key_password
    return keys_of(
        settings.data_dir,
        key.get_secret_value() if key is not None else None,
        password.get_secret_value() if password is not None else None,
    )


def find_or_make_keys(settings: Settings) -> Keys | None:
    """The same. A bot that mirrors to its embedded relay gets a new key if it has none. Blocking.

    For other relays none is made: there may be an older key, which alone opens what was mirrored.
    """
    keys = find_keys(settings)
    if keys is None and settings.mirrors and EMBEDDED in settings.nostr_relays:
        keys = make_key(key_path(settings.data_dir))
    return keys


def nostr_config(settings: Settings, keys: Keys | None, *, shared: bool = False) -> NostrConfig:
    """What is mirrored, by the bot, or by a command even with NOSTR_MODE=off. Raises SettingsError.

    `shared`: several processes mirror, which need one key and relays that belong to none of them.
    """
    if keys is None:
        raise SettingsError(
            "NOSTR_RELAYS is set, but NOSTR_SECRET_KEY is not; run `discoclaw nostr new-key` to make a key"
        )
    if shared and settings.nostr_key is None:
        raise SettingsError(
            "NOSTR_SECRET_KEY is not set; processes that share a store need the same key, so set it for each"
        )
    if shared and EMBEDDED in settings.nostr_relays:
        raise SettingsError(
            f"NOSTR_RELAYS={EMBEDDED}: an embedded relay belongs to one process, and several share this "
            "store; name other relays"
        )
    box, owner = settings.nostr_box_key, settings.owner_pubkey
    secret_box = SecretBox.parse(box.get_secret_value()) if box is not None else SecretBox.of(keys)
    return NostrConfig(
        codec=Codec(keys, secret_box, allow_plaintext=settings.nostr_in_clear),
        relays=settings.nostr_relays,
        data_dir=settings.data_dir,
        outbox=settings.outbox_path,
        canonical=settings.nostr_mode == "canonical",
        owner=public_key(owner) if owner is not None else None,
        owners=settings.owners,
        min_acks=settings.nostr_min_acks,
        timeout_s=settings.nostr_timeout_s,
        flush_s=settings.nostr_flush_s,
        groups=settings.nostr_groups,
    )


def redactor_for(settings: Settings, keys: Keys | None) -> Redactor:
    """A redactor that knows all keys in the settings, so that no text shows one. Raises SettingsError."""
    settings_keys = (settings.nostr_box_key, settings.owner_secret_key, settings.transcribe_key)
    secrets = [one.get_secret_value() for one in settings_keys if one is not None]
    return redactor_of(keys, secrets=secrets, owner=settings.owner_pubkey)


def relay_copies(settings: Settings, disk: Disk) -> RelayCopies:
    """What an erasure has to reach on relays: now, or later if nothing is mirrored now."""

    def names() -> Names | None:
        keys = find_keys(settings)
        return Names(keys) if keys is not None else None

    return RelayCopies(settings.outbox_path, disk, names, elsewhere=disk.shared and settings.mirrors)
