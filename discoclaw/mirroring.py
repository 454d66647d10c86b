"""From settings to the Nostr door: whether there is one, with which key, and to which relays."""

from discoclaw.core.errors import SettingsError
from discoclaw.core.redact import Redactor
from discoclaw.memory.disk.port import Disk
from discoclaw.nostr.adapter import NostrConfig
from discoclaw.nostr.event import Keys, public_key
from discoclaw.nostr.folder import key_path, keys_of, make_key
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.erase_step import RelayCopies
from discoclaw.nostr.redactor import redactor_of
from discoclaw.nostr.sealed import Box
from discoclaw.settings import EMBEDDED, Settings


def keys_here(settings: Settings) -> Keys | None:
    """The bot's key, of the settings or of the file `data/nostr/key`, if there is one.

    Blocking. Raises SettingsError when it is none, and MemoryFault when the file can not be read.
    """
    given, password = settings.nostr_key, settings.nostr_key_password
    return keys_of(
        settings.data_dir,
        given.get_secret_value() if given is not None else None,
        password.get_secret_value() if password is not None else None,
    )


def keys_for(settings: Settings) -> Keys | None:
    """The same; a bot that mirrors to its own relay is given a key when it has none."""
    keys = keys_here(settings)
    if keys is None and settings.nostr_mode != "off" and EMBEDDED in settings.nostr_relays:
        keys = make_key(key_path(settings.data_dir))
    return keys


def nostr_config(settings: Settings, keys: Keys | None) -> NostrConfig | None:
    """What is to be mirrored; None where nothing is. Raises SettingsError."""
    if settings.nostr_mode == "off" or not settings.nostr_relays:
        return None
    if keys is None:
        raise SettingsError(
            "NOSTR_SECRET_KEY is not set, and NOSTR_RELAYS is; `discoclaw nostr new-key` makes a key"
        )
    return nostr_config_with(settings, keys)


def nostr_config_with(settings: Settings, keys: Keys) -> NostrConfig:
    """What a command mirrors, also where the bot is told not to. Raises SettingsError."""
    box, owner = settings.nostr_box_key, settings.owner_pubkey
    return NostrConfig(
        keys=keys,
        relays=settings.nostr_relays,
        data_dir=settings.data_dir,
        outbox=settings.outbox_path,
        canonical=settings.nostr_mode == "canonical",
        box=Box.parse(box.get_secret_value()) if box is not None else None,
        owner=public_key(owner) if owner is not None else None,
        owners=settings.owners,
        min_acks=settings.nostr_min_acks,
        timeout_s=settings.nostr_timeout_s,
        flush_s=settings.nostr_flush_s,
        in_clear=settings.nostr_in_clear,
        groups=settings.nostr_groups,
    )


def redactor_for(settings: Settings, keys: Keys | None) -> Redactor:
    """What takes secrets out of text. It knows our own keys, so that nothing of them is shown."""
    secrets = (settings.nostr_box_key, settings.owner_secret_key)
    told = [one.get_secret_value() for one in secrets if one is not None]
    return redactor_of(keys, secrets=told, owner=settings.owner_pubkey)


def relay_copies(settings: Settings, disk: Disk) -> RelayCopies:
    """What an erasing has to reach on relays, now or, where nobody mirrors, later."""

    def names() -> Names | None:
        keys = keys_here(settings)
        return Names(keys) if keys is not None else None

    return RelayCopies(settings.outbox_path, disk, names)
