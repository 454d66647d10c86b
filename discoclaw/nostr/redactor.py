"""What a redactor knows once there are keys: which are ours, and whose a key is that somebody pasted.

Knows nothing about where text comes from or goes.
"""

from collections.abc import Iterable
from contextlib import suppress

from discoclaw.core.errors import SettingsError
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.nostr.event import Keys, npub_of_nsec, public_key

SHORTEST = 32
"""Characters of a secret; what is shorter may be a word, and stands in ordinary text."""


def redactor_of(
    keys: Keys | None, *, secrets: Iterable[str | None] = (), owner: str | None = None
) -> Redactor:
    """A redactor that shows nothing of our secret key, nor of other `secrets` as the settings have them.

    `owner` is the owner's public key (npub or hex), which is not flagged, nor is ours. Without any key
    nothing is known. Raises SettingsError when the owner's is none.
    """
    others = [one.strip().removeprefix("hex:") for one in secrets if one is not None]
    known = {public_key(owner)} if owner is not None else set[str]()
    if keys is None and not others and not known:
        return PLAIN
    own = {one for one in others if len(one) >= SHORTEST}
    for one in (keys, *map(_keys, own)):
        if one is not None:
            own |= {one.secret_hex(), one.nsec()}
    if keys is not None:
        known.add(keys.public)
    return Redactor(frozenset(own), lambda: known, npub_of_nsec)


def _keys(secret: str) -> Keys | None:
    """A secret as a key, where it is one as it stands: then it may be pasted in another form."""
    with suppress(SettingsError):
        return Keys.parse(secret)
    return None
