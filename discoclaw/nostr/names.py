"""Whom an event is about, without saying who: pseudonyms, and the addresses (`d`) made of them.

A pseudonym is an HMAC-SHA256 of a Discord id under a key that only the bot's secret key gives. Who knows the
secret key can ask about an id; nobody else can, and two bots name the same person differently.
Forms of `d`: those of Snowclaw and Aman with pseudonyms for ids, and ours below `discoclaw:`.
"""

import hashlib
import hmac
import re
from functools import lru_cache
from typing import Final

from discoclaw.core.errors import NostrError
from discoclaw.nostr.event import Keys

LEDGER, INDEX, CHOICES = "discoclaw:ledger:", "discoclaw:index:", "discoclaw:choices:"
NPUB, GROUP = "snowclaw:memory:npub:", "snowclaw:memory:group:"
CONFIG: Final = "snowclaw:config:"
LENGTHS = (16, 32, 64)
"""Hex digits of a pseudonym that are read; 32 are written."""

_DM, _THREAD, _CHANNEL = "discord:dm:", "discord:thread:", "discord:channel:"
_HEX = re.compile(r"[0-9a-f]+")


class Names:
    """The pseudonyms of one bot."""

    def __init__(self, keys: Keys) -> None:
        self._people = keys.derived("pseudonym")
        self._marks = keys.derived("mark")
        self._name = lru_cache(maxsize=65_536)(self._compute)

    def _compute(self, what: str) -> str:
        return hmac.new(self._people, what.encode("utf-8"), hashlib.sha256).hexdigest()

    def user(self, user_id: str) -> str:
        """A person's pseudonym: 64 hex digits, of which events show the first 32."""
        return self._name(f"discord:user:{user_id}")

    def channel(self, channel_id: str) -> str:
        """A channel's pseudonym; a thread goes by its parent where memory is meant."""
        return self._name(f"discord:channel:{channel_id}")

    def thread(self, thread_id: str) -> str:
        """The pseudonym of a thread's conversation."""
        return self._name(f"discord:thread:{thread_id}")

    def subject(self, subject: str) -> str:
        """The pseudonym of a ledger's subject, 32 digits."""
        if subject.startswith("user-"):
            return self.user(subject.removeprefix("user-"))[:32]
        if subject.startswith("group-"):
            return self.channel(subject.removeprefix("group-"))[:32]
        return self._name(f"subject:{subject}")[:32]

    def matches(self, pseudonym: str, user_id: str) -> bool:
        """Whether 16, 32 or 64 hex digits name this person."""
        return _fits(pseudonym, self.user(user_id))

    def matches_channel(self, pseudonym: str, channel_id: str) -> bool:
        """Whether 16, 32 or 64 hex digits name this channel."""
        return _fits(pseudonym, self.channel(channel_id))

    def mark(self, text: str) -> str:
        """A keyed hash of anything, 32 hex digits: the same for the same text, and nothing of it."""
        return hmac.new(self._marks, text.encode("utf-8"), hashlib.sha256).hexdigest()[:32]

    # ------------------------------------------------------------------ addresses

    def history_key(self, session_key: str) -> str:
        """The `hk` of a conversation: `user:…` for a DM, `group:…` for a channel or thread."""
        for prefix, kind, name in (
            (_DM, "user", self.user),
            (_THREAD, "group", self.thread),
            (_CHANNEL, "group", self.channel),
        ):
            if session_key.startswith(prefix):
                return f"{kind}:{name(session_key.removeprefix(prefix))[:32]}"
        raise NostrError(f"{session_key!r} is no conversation that has a history key")

    def user_key(self, user_id: str) -> str:
        """The `hk` of a person."""
        return f"user:{self.user(user_id)[:32]}"

    def group_key(self, channel_id: str) -> str:
        """The `hk` of a channel."""
        return f"group:{self.channel(channel_id)[:32]}"

    def ledger_prefix(self, subject: str) -> str:
        """What the addresses of all records of a subject begin with."""
        return f"{LEDGER}{self.subject(subject)}:"

    def record(self, subject: str, record_id: str, part: int = 0) -> str:
        """The address of a ledger's record; of a large one, of each part behind the first."""
        whole = f"{self.ledger_prefix(subject)}{self.mark(f'{subject}:{record_id}')}"
        return f"{whole}:{part}" if part else whole

    def profile(self, user_id: str) -> str:
        return f"{NPUB}{self.user(user_id)[:32]}"

    def group(self, channel_id: str) -> str:
        return f"{GROUP}{self.channel(channel_id)[:32]}"


def _fits(pseudonym: str, whole: str) -> bool:
    lower = pseudonym.lower()
    return len(lower) in LENGTHS and bool(_HEX.fullmatch(lower)) and whole.startswith(lower)
