"""Pseudonyms for people and channels, and the addresses (`d` tags) of events built from them.

A pseudonym is an HMAC-SHA256 of a Discord id under a key derived from the bot's secret key. The holder of the
secret key can test whether a pseudonym belongs to an id. Nobody else can, and two bots use different
pseudonyms for the same person. The addresses have the forms of Snowclaw and Aman, with pseudonyms instead
of ids, and our own below `discoclaw:`.
"""

import hashlib
import hmac
import re
from functools import lru_cache
from typing import Final

from discoclaw.core.errors import NostrError
from discoclaw.nostr.event import Keys

LEDGER, INVENTORY, CHOICES = "discoclaw:ledger:", "discoclaw:index:", "discoclaw:choices:"
NPUB, GROUP = "snowclaw:memory:npub:", "snowclaw:memory:group:"
CONFIG: Final = "snowclaw:config:"
LENGTHS = (16, 32, 64)
"""Accepted lengths of a pseudonym, in hex digits. We write 32; others may write 16 or 64."""

_DM, _THREAD, _CHANNEL = "discord:dm:", "discord:thread:", "discord:channel:"
_HEX = re.compile(r"[0-9a-f]+")


class Names:
    """The pseudonyms and addresses of one bot."""

    def __init__(self, keys: Keys) -> None:
        self._people = keys.derived("pseudonym")
        self._hash_key = keys.derived("mark")
        # A recovery computes the same few pseudonyms for each of up to 100,000 events.
        self._name = lru_cache(maxsize=65_536)(self._compute)

    def _compute(self, what: str) -> str:
        return hmac.new(self._people, what.encode("utf-8"), hashlib.sha256).hexdigest()

    def user(self, user_id: str) -> str:
        """A person's pseudonym, 64 hex digits. Events show the first 32."""
        return self._name(f"discord:user:{user_id}")

    def channel(self, channel_id: str) -> str:
        """A channel's pseudonym. For memory, a thread uses its parent channel's."""
        return self._name(f"discord:channel:{channel_id}")

    def thread(self, thread_id: str) -> str:
        """The pseudonym of a thread, for its conversation's summary and tool calls."""
        return self._name(f"discord:thread:{thread_id}")

    def subject(self, subject: str) -> str:
        """The pseudonym of a ledger's subject, 32 hex digits."""
        if subject.startswith("user-"):
            return self.user(subject.removeprefix("user-"))[:32]
        if subject.startswith("group-"):
            return self.channel(subject.removeprefix("group-"))[:32]
        return self._name(f"subject:{subject}")[:32]

    def matches(self, pseudonym: str, user_id: str) -> bool:
        """Whether 16, 32 or 64 hex digits are this person's pseudonym."""
        return _fits(pseudonym, self.user(user_id))

    def matches_channel(self, pseudonym: str, channel_id: str) -> bool:
        """Whether 16, 32 or 64 hex digits are this channel's pseudonym."""
        return _fits(pseudonym, self.channel(channel_id))

    def keyed_hash(self, text: str) -> str:
        """A keyed hash of any text, 32 hex digits. Without the bot's key it cannot be linked to the text."""
        return hmac.new(self._hash_key, text.encode("utf-8"), hashlib.sha256).hexdigest()[:32]

    # ------------------------------------------------------------------ addresses

    def history_key(self, session_key: str) -> str:
        """The `hk` tag of a conversation: `user:…` for a DM, `group:…` for a channel or thread.

        Raises NostrError for any other session key.
        """
        for prefix, kind, name in (
            (_DM, "user", self.user),
            (_THREAD, "group", self.thread),
            (_CHANNEL, "group", self.channel),
        ):
            if session_key.startswith(prefix):
                return f"{kind}:{name(session_key.removeprefix(prefix))[:32]}"
        raise NostrError(f"{session_key!r} has no history key: it is not a DM, channel or thread")

    def user_key(self, user_id: str) -> str:
        """The `hk` tag of a person."""
        return f"user:{self.user(user_id)[:32]}"

    def group_key(self, channel_id: str) -> str:
        """The `hk` tag of a channel."""
        return f"group:{self.channel(channel_id)[:32]}"

    def ledger_prefix(self, subject: str) -> str:
        """The common prefix of the addresses of a subject's records."""
        return f"{LEDGER}{self.subject(subject)}:"

    def record(self, subject: str, record_id: str, part: int = 0) -> str:
        """The address of a ledger's record. `part` is 0 for the first part of a large record."""
        address = f"{self.ledger_prefix(subject)}{self.keyed_hash(f'{subject}:{record_id}')}"
        return f"{address}:{part}" if part else address

    def profile(self, user_id: str) -> str:
        """The address of a person's profile."""
        return f"{NPUB}{self.user(user_id)[:32]}"

    def group(self, channel_id: str) -> str:
        """The address of a channel's group memory."""
        return f"{GROUP}{self.channel(channel_id)[:32]}"


def _fits(pseudonym: str, full: str) -> bool:
    lower = pseudonym.lower()
    return len(lower) in LENGTHS and bool(_HEX.fullmatch(lower)) and full.startswith(lower)
