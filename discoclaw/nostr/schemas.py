"""What is published: kinds, addresses (`d` tags), templates, the codec that signs and reads them.

    30078  ledger records, profiles, groups, the inventory of what is mirrored  NIP-44     (Snowclaw, NIP-78)
    30093  aman_preference          a person's preferences, as text             secretbox  newest counts
    30094  aman_summary             a conversation's rolling summary            secretbox  newest counts
    30095  aman_tool_history        one tool call                               secretbox  `d` hashes it
    30096  aman_clear_context       hides earlier summaries and tool calls      secretbox  `d` hashes it
    30097  aman_subscription_state  a channel's topics                          secretbox  newest counts
    5      deletion requests (NIP-09)

Our own fields begin with `x_`: readers of both schemas accept unknown fields. Times are in whole seconds. An
event's `created_at` equals its `ts` tag and strictly rises from version to version of an address. So two
versions never tie, which matters because NIP-01 and Aman break ties differently (lowest id, highest id).

Addresses have the forms of Snowclaw and Aman, with pseudonyms instead of ids, and our own below `discoclaw:`.
A pseudonym is an HMAC-SHA256 of a Discord id under a key derived from the bot's secret key. The holder of the
secret key can test whether a pseudonym belongs to an id. Nobody else can, and two bots use different
pseudonyms for the same person.
Pure: knows nothing about relays or files.
"""

import hashlib
import hmac
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from discoclaw.core.errors import NostrError, UnreadableContent
from discoclaw.nostr.event import (
    NIP44,
    SECRETBOX,
    Event,
    Keys,
    SecretBox,
    canonical,
    check_length,
    object_of,
    padded,
    sha256,
)

log = logging.getLogger(__name__)

APP: Final = 30078
PREFERENCE, SUMMARY, TOOL, CLEAR, TOPICS = 30093, 30094, 30095, 30096, 30097
DELETE: Final = 5
KIND_NAMES: Mapping[int, str] = {
    PREFERENCE: "aman_preference",
    SUMMARY: "aman_summary",
    TOOL: "aman_tool_history",
    CLEAR: "aman_clear_context",
    TOPICS: "aman_subscription_state",
}
UNIQUE = (TOOL, CLEAR)
"""Kinds whose address is a hash of their content, so that an address never has a second version."""
OWN_KINDS = (APP, *KIND_NAMES)
"""The kinds that the bot writes, apart from deletion requests."""
VERSION: Final = "1"
ERASED: Final = "x_erased"
Address = tuple[int, str]
"""Kind and `d` tag: together with the author, NIP-01's identity of an addressable event."""
MAX_DELETIONS: Final = 100
"""Addresses in one deletion request."""


@dataclass(frozen=True, slots=True)
class EventTemplate:
    """An event before it gets its time, encryption and signature: what should be published at one address.

    `body` is the payload in field order. The field that holds the schema's time is None here and filled in
    when the event is signed, except for the kinds of `UNIQUE`, where it is part of the hashed payload.
    `at` is the lowest allowed `created_at` (s). `hk` is the history key of Aman's kinds. `plaintext_ok`
    says that it may be published unencrypted if an admin allows that. `group` is the `h` tag (NIP-29).
    """

    kind: int
    d: str
    body: Mapping[str, Any]
    at: int = 0
    hk: str = ""
    plaintext_ok: bool = False
    group: str = ""
    digest: str = field(init=False)
    """SHA-256 of everything that matters. When it differs from the published one, a new version is due."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", sha256(canonical([self.kind, self.d, self.body, self.group])))


def _time_field(kind: int) -> str:
    """The field with the time of one of Aman's kinds."""
    return "created_at" if kind in UNIQUE else "updated_at"


def unique(
    kind: int, hk: str, body: Mapping[str, Any], *, salt: str, at: int, plaintext_ok: bool = False
) -> EventTemplate:
    """The template of a tool call or clear marker, whose address ends in the SHA-256 of its content.

    That is exactly what a reader decrypts, so that everybody who can read the event can check its address.
    `salt` is a keyed hash of the payload. Without it, anybody who sees the address could guess short
    payloads. Earlier versions left out the padding, so no reader of ours insists on it.
    """
    # Aman hashes the payload as serialised, in field order, so the salt has to be part of it.
    payload = {**body, "x_salt": salt} if salt else dict(body)
    template = EventTemplate(kind, hk, payload, at, hk, plaintext_ok)
    return replace(template, d=f"{hk}:{sha256(content_of(template, canonical(payload)))}")


def content_of(template: EventTemplate, text: str) -> str:
    """The content of an event before its encryption, given its JSON.

    Padding hides its length. An address that is a hash has to fit the plaintext too, so it goes without.
    """
    return text if template.kind in UNIQUE and template.plaintext_ok else padded(text)


def tombstone(kind: int, d: str) -> EventTemplate:
    """An empty version that replaces erased content.

    A relay that ignores deletions still replaces the event.
    """
    if kind == APP:
        return EventTemplate(APP, d, {ERASED: True})
    # Every address of Aman's kinds begins with the history key.
    hk = d.rpartition(":")[0]
    empty: dict[int, dict[str, Any]] = {
        PREFERENCE: {"preference": ""},
        SUMMARY: {"summary": "", "message_count": 0},
        TOOL: {"tool_name": "", "success": False, "content": "", "sender_id": None, "group_id": None},
        CLEAR: {"sender_id": None},
        TOPICS: {"topics": []},
    }
    body = {"history_key": hk, **empty[kind], _time_field(kind): None, ERASED: True}
    return EventTemplate(kind, d, body, hk=hk)


@dataclass(frozen=True, slots=True)
class Codec:
    """Turns templates into signed events, and events back into payloads.

    With `allow_plaintext`, templates that are `plaintext_ok` become plain JSON without the `enc` tag.
    """

    keys: Keys
    box: SecretBox
    allow_plaintext: bool = False

    def encode(self, template: EventTemplate, ts: int) -> Event:
        """The signed event with this `created_at` (s).

        Raises NostrError, and never falls back to plaintext.
        """
        kind, d = template.kind, template.d
        if kind == APP:
            tags = [["d", d], *([["h", template.group]] if template.group else []), ["encrypted", NIP44]]
            return self.keys.sign(APP, self.keys.seal(check_length(canonical(template.body))), tags, ts)
        if kind not in KIND_NAMES:
            raise NostrError(f"the bot does not publish events of kind {kind}")
        body = dict(template.body)
        if body.get(_time_field(kind), 0) is None:
            body[_time_field(kind)] = ts
        text, plain = check_length(canonical(body)), self.allow_plaintext and template.plaintext_ok
        # In Aman's order, and its readers take an event with `enc` for encrypted.
        tags = [["d", d], ["k", KIND_NAMES[kind]], ["hk", template.hk], ["v", VERSION], ["ts", str(ts)]]
        tags += [] if plain else [["enc", SECRETBOX]]
        return self.keys.sign(kind, text if plain else self.box.seal(content_of(template, text)), tags, ts)

    def deletion(self, gone: Sequence["Deletion"], ts: int) -> Event:
        """A request to delete addresses (NIP-09): all versions whose id is known, and everything up to `ts`.

        Both `e` and `a` tags are needed: some relays ignore `a`, or cut a `d` with colons at the first one.
        Only the first 100 addresses are named.
        """
        tags: list[list[str]] = []
        for one in gone[:MAX_DELETIONS]:
            tags += [["e", event_id] for event_id in one.ids]
            tags.append(["a", f"{one.kind}:{self.keys.public}:{one.d}"])
        tags += [["k", str(kind)] for kind in sorted({one.kind for one in gone})]
        return self.keys.sign(DELETE, "", tags, ts)

    def decode(self, event: Event) -> dict[str, Any]:
        """The payload of one of our events. Raises UnreadableContent with the reason."""
        if event.kind == APP:
            if event.tag("encrypted") != NIP44:
                raise UnreadableContent("it is not encrypted with NIP-44")
            return object_of(self.keys.open(event.content))
        # All tags of its kind, with consistent values.
        missing = [name for name in ("d", "k", "hk", "v", "ts") if not event.tag(name)]
        if missing:
            raise UnreadableContent(f"the tag {missing[0]} is missing")
        if event.tag("k") != KIND_NAMES.get(event.kind):
            raise UnreadableContent(f"the tag k does not match kind {event.kind}")
        version, enc = event.tag("v"), event.tag("enc")
        if version != VERSION:
            raise UnreadableContent(f"unknown schema version {str(version)[:20]!r}; expected {VERSION!r}")
        if event.tag("ts") != str(event.created_at):
            raise UnreadableContent("the tag ts differs from created_at")
        if enc not in (None, SECRETBOX):
            raise UnreadableContent(f"unknown encryption {enc[:20]!r}; expected {SECRETBOX!r}")
        return object_of(event.content if enc is None else self.box.open(event.content))


@dataclass(frozen=True, slots=True)
class DecryptedEvent:
    """An event of ours and its payload."""

    event: Event
    body: Mapping[str, Any]

    @property
    def address(self) -> Address:
        return self.event.kind, self.event.d

    @property
    def is_tombstone(self) -> bool:
        """Whether it only says that something was erased at its address."""
        return self.body.get(ERASED) is True


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """An event of ours that can't be used, and the reason."""

    event: Event
    why: str


def is_plaintext(event: Event) -> bool:
    """Whether everybody can read the content of an event of ours."""
    return event.kind in KIND_NAMES and event.tag("enc") is None


def template_of(event: Event, body: Mapping[str, Any]) -> EventTemplate:
    """The template from which an event with this payload was made; its digest is the same."""
    time_field = _time_field(event.kind) if event.kind in KIND_NAMES else None
    if event.kind in UNIQUE and body.get(ERASED) is not True:
        time_field = None  # here the time is part of the payload, and of the address
    plain = {key: None if key == time_field else value for key, value in body.items()}
    return EventTemplate(
        event.kind, event.d, plain, event.created_at, event.tag("hk") or "", group=event.tag("h") or ""
    )


@dataclass(frozen=True, slots=True)
class Deletion:
    """An address to delete, with the ids of all versions that we know."""

    kind: int
    d: str
    ids: tuple[str, ...] = ()


def supersedes(event: Event, other: Event) -> bool:
    """Whether an event replaces another one at the same address."""
    return (-event.created_at, event.id) < (-other.created_at, other.id)


def deleted_until(deletions: Iterable[Event]) -> tuple[dict[Address, int], set[str]]:
    """The targets of deletion requests: up to which time (s) for each address, and ids of single events.

    The requests have to be of one author. `a` is split at the first two colons only: the identifiers of both
    schemas contain colons.
    """
    until: dict[Address, int] = {}
    ids: set[str] = set()
    for event in deletions:
        for tag in event.tags:
            if len(tag) < 2:
                continue
            if tag[0] == "e":
                ids.add(tag[1])
            elif tag[0] == "a" and len(parts := tag[1].split(":", 2)) == 3:
                kind, author, d = parts
                # NIP-09: a request deletes only events of its own author.
                if author == event.pubkey and kind.isascii() and kind.isdigit():
                    address = (int(kind), d)
                    until[address] = max(event.created_at, until.get(address, 0))
    return until, ids


# ---------------------------------------------------------------------- pseudonyms and addresses

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


def fits(pseudonym: str, full: str) -> bool:
    """Whether 16, 32 or 64 hex digits are the beginning of this pseudonym, or all of it."""
    lower = pseudonym.lower()
    return len(lower) in LENGTHS and bool(_HEX.fullmatch(lower)) and full.startswith(lower)
