"""Subjects (who a ledger is about) and the session keys of direct messages, as every layer writes them.

A subject is `user-<Discord id>`, `group-<channel id>` or `bot`. Knows nothing about files.
"""

import unicodedata

from discoclaw.core.text import visible

_DM = "discord:dm:"


def user_subject(user_id: str) -> str:
    """The subject of a person, by Discord user id."""
    return f"user-{user_id}"


def user_of(subject: str) -> str | None:
    """The Discord user id of a person's subject; None for other subjects."""
    return subject.removeprefix("user-") if subject.startswith("user-") else None


def group_subject(channel_id: str) -> str:
    """The subject of a group, by the id of its Discord channel. A thread belongs to its parent's."""
    return f"group-{channel_id}"


def group_of(subject: str) -> str | None:
    """The channel id of a group's subject; None for other subjects."""
    return subject.removeprefix("group-") if subject.startswith("group-") else None


def dm_of(user_id: str) -> str:
    """The session key of a person's DM."""
    return f"{_DM}{user_id}"


def person_of(session_key: str) -> str | None:
    """The user id of the person whose DM a session is; None if it is not a DM."""
    return session_key.removeprefix(_DM) if session_key.startswith(_DM) else None


# The bot's own memory: its subject, and the keys that are reserved for it.

BOT = "bot"
SOUL_PREFIX = "soul:"
TRAIT_PREFIX = "personality:"

HUMAN = "human"
"""Key in the metadata of a commit of `BOT`: the user id of the owner whose words it is based on.

When that person has their memory erased, what the bot learned from them is erased too.
"""


def is_bot_key(key: str | None) -> bool:
    """Whether a key is reserved for the bot, whatever its case, width or invisible characters.

    Normalised that way because a model would read such a look-alike as the real key.
    """
    if key is None:
        return False
    plain = unicodedata.normalize("NFKC", visible(key)).strip().casefold()
    return plain.startswith((SOUL_PREFIX, TRAIT_PREFIX))
