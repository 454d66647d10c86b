"""A redactor that knows Nostr keys: which are ours, and whose key somebody pasted.

Knows nothing about where text comes from or goes.
"""

from collections.abc import Iterable
from contextlib import suppress

from discoclaw.core.errors import SettingsError
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.nostr.event import Keys, npub_of_nsec, public_key

MIN_SECRET_CHARS = 32
"""A shorter secret may be an ordinary word, and redacting it would damage ordinary text."""


def redactor_of(
    keys: Keys | None, *, secrets: Iterable[str | None] = (), owner: str | None = None
) -> Redactor:
    """A redactor that removes our secret key and the other `secrets` of the settings from any text.

    `owner` is the owner's public key (npub or hex). It is not flagged as unknown, and neither is ours.
    Without any key or secret the result is `PLAIN`. Raises SettingsError when `owner` isn't a public key.
    """
    others = [one.strip().removeprefix("hex:") for one in secrets if one is not None]
    known = {public_key(owner)} if owner is not None else set[str]()
    if keys is None and not others and not known:
        return PLAIN
    own = {one for one in others if len(one) >= MIN_SECRET_CHARS}
    for one in (keys, *map(_keys, own)):
        if one is not None:
            own |= {one.secret_hex(), one.nsec()}
    if keys is not None:
        known.add(keys.public)
    return Redactor(frozenset(own), lambda: known, npub_of_nsec)


def _keys(secret: str) -> Keys | None:
    """A secret as a key pair if it is one: it may then be pasted in another form, hex instead of nsec."""
    with suppress(SettingsError):
        return Keys.parse(secret)
    return None
