"""What is published, in the words of two public schemas and ours, and how it is read again.

    30078  ledger records, profiles, groups, the index of what is mirrored   NIP-44    (Snowclaw, NIP-78)
    30093  aman_preference         what a person likes, as text              box       LWW
    30094  aman_summary            a conversation's rolling summary          box       LWW
    30095  aman_tool_history       one call of a tool                        box       d unique by content
    30096  aman_clear_context      summaries and calls until then are hidden box       d unique by content
    30097  aman_subscription_state what a channel is about                   box       LWW
    5      requests to delete (NIP-09)

Fields of ours begin with `x_`. Time is whole seconds, `created_at` is the tag `ts`, and both strictly rise
for one address, so that no two versions ever tie. Pure; knows nothing about relays or files.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from discoclaw.core.errors import NostrError, NotOpened
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.sealed import NIP44, SECRETBOX, Box, canonical, check_length, object_of, padded, sha256

log = logging.getLogger(__name__)

APP: Final = 30078
PREFERENCE, SUMMARY, TOOL, CLEAR, TOPICS = 30093, 30094, 30095, 30096, 30097
DELETE: Final = 5
NAMES_OF: Mapping[int, str] = {
    PREFERENCE: "aman_preference",
    SUMMARY: "aman_summary",
    TOOL: "aman_tool_history",
    CLEAR: "aman_clear_context",
    TOPICS: "aman_subscription_state",
}
UNIQUE = (TOOL, CLEAR)
"""Kinds whose address is a hash of what they say: never a second version."""
OURS = (APP, *NAMES_OF)
"""The kinds that the bot writes, apart from deletions."""
VERSION: Final = "1"
ERASED: Final = "x_erased"
_TIMES = {
    PREFERENCE: "updated_at",
    SUMMARY: "updated_at",
    TOPICS: "updated_at",
    TOOL: "created_at",
    CLEAR: "created_at",
}
Address = tuple[int, str]
"""Kind and `d`."""
MOST_DELETED: Final = 100
"""Addresses in one request to delete."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to stand under one address, (kind, d).

    `body` is the payload in field order; where its schema has a time, that is written when it is signed, and
    None here (in a kind of `UNIQUE` it is fixed). `at` is the least time (s) it may have. `hk` is the history
    key of Aman's kinds. `open`: may be published in clear where an admin allows that. `group` is the `h` tag.
    """

    kind: int
    d: str
    body: Mapping[str, Any]
    at: int = 0
    hk: str = ""
    open: bool = False
    group: str = ""
    digest: str = field(init=False)
    """SHA-256 of all that matters: another one means that a new version is to be published."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", sha256(canonical([self.kind, self.d, self.body, self.group])))


def unique(kind: int, hk: str, body: Mapping[str, Any], *, salt: str, at: int, open: bool = False) -> Wanted:
    """A tool call or a clear marker: its address is the SHA-256 of its payload.

    `salt` is a keyed hash of what it says: without it, whoever sees the address could guess short payloads.
    """
    payload = {**body, "x_salt": salt} if salt else dict(body)
    return Wanted(kind, f"{hk}:{sha256(canonical(payload))}", payload, at, hk, open)


def tombstone(kind: int, d: str) -> Wanted:
    """What takes the place of something that was erased: nothing but that."""
    if kind == APP:
        return Wanted(APP, d, {ERASED: True})
    hk = d.rpartition(":")[0]
    empty: dict[int, dict[str, Any]] = {
        PREFERENCE: {"preference": "", "updated_at": None},
        SUMMARY: {"summary": "", "message_count": 0, "updated_at": None},
        TOOL: {
            "tool_name": "",
            "success": False,
            "content": "",
            "sender_id": None,
            "group_id": None,
            "created_at": None,
        },
        CLEAR: {"sender_id": None, "created_at": None},
        TOPICS: {"topics": [], "updated_at": None},
    }
    return Wanted(kind, d, {"history_key": hk, **empty[kind], ERASED: True}, hk=hk)


@dataclass(frozen=True, slots=True)
class Pen:
    """Signs what is wanted. `in_clear`: Aman's kinds that are `open` go out as plain JSON, without `enc`."""

    keys: Keys
    box: Box
    in_clear: bool = False

    def sign(self, wanted: Wanted, ts: int) -> Event:
        """The event of this time (s). Raises NostrError; nothing is published then."""
        if wanted.kind == APP:
            tags = [["d", wanted.d], *([["h", wanted.group]] if wanted.group else []), ["encrypted", NIP44]]
            return self.keys.sign(APP, self.keys.seal(check_length(canonical(wanted.body))), tags, ts)
        if wanted.kind not in NAMES_OF:
            raise NostrError(f"events of kind {wanted.kind} are none of ours")
        body = {
            key: ts if key == _TIMES[wanted.kind] and value is None else value
            for key, value in wanted.body.items()
        }
        text, clear = check_length(canonical(body)), self.in_clear and wanted.open
        tags = aman_tags(wanted.kind, wanted.d, wanted.hk, ts, sealed=not clear)
        return self.keys.sign(wanted.kind, text if clear else self.box.seal(padded(text)), tags, ts)

    def delete(self, gone: Sequence["Gone"], ts: int) -> Event:
        """A request to delete addresses: every version whose id is known, and all there is until `ts`."""
        tags: list[list[str]] = []
        for one in gone[:MOST_DELETED]:
            tags += [["e", event_id] for event_id in one.ids]
            tags.append(["a", f"{one.kind}:{self.keys.public}:{one.d}"])
        tags += [["k", str(kind)] for kind in sorted({one.kind for one in gone})]
        return self.keys.sign(DELETE, "", tags, ts)

    def read(self, event: Event) -> dict[str, Any]:
        """The payload of an event of ours. Raises NotOpened, with the reason."""
        if event.kind == APP:
            if event.tag("encrypted") != NIP44:
                raise NotOpened("it is not encrypted as ours are")
            return object_of(self.keys.open(event.content))
        check_aman(event)
        enc = event.tag("enc")
        return object_of(event.content if enc is None else self.box.open(event.content))


def in_clear(event: Event) -> bool:
    """Whether an event of ours can be read by anybody: only where an admin allows that."""
    return event.kind in NAMES_OF and event.tag("enc") is None


def wanted_of(event: Event, body: Mapping[str, Any]) -> Wanted:
    """What an event of ours was signed from, given its payload: of the same digest."""
    when = _TIMES.get(event.kind)
    if event.kind in UNIQUE and body.get(ERASED) is not True:
        when = None  # its time is part of what it says
    plain = {key: None if key == when else value for key, value in body.items()}
    return Wanted(
        event.kind, event.d, plain, event.created_at, event.tag("hk") or "", group=event.tag("h") or ""
    )


@dataclass(frozen=True, slots=True)
class Gone:
    """An address that is to be deleted, with the ids of all its versions that we know."""

    kind: int
    d: str
    ids: tuple[str, ...] = ()


def aman_tags(kind: int, d: str, hk: str, ts: int, *, sealed: bool) -> list[list[str]]:
    """The tags of Aman's kinds, in their order; `enc` stands there only if the content is encrypted."""
    tags = [["d", d], ["k", NAMES_OF[kind]], ["hk", hk], ["v", VERSION], ["ts", str(ts)]]
    return [*tags, ["enc", SECRETBOX]] if sealed else tags


def check_aman(event: Event) -> None:
    """Raise NotOpened unless an event has every tag its kind needs, and they agree with it."""
    missing = [name for name in ("d", "k", "hk", "v", "ts") if not event.tag(name)]
    if missing:
        raise NotOpened(f"it lacks the tag {missing[0]}")
    if event.tag("k") != NAMES_OF.get(event.kind):
        raise NotOpened(f"its tag k is not that of kind {event.kind}")
    if event.tag("v") != VERSION:
        raise NotOpened(f"it is of version {str(event.tag('v'))[:20]!r}, which this version does not know")
    if event.tag("ts") != str(event.created_at):
        raise NotOpened("its tag ts is not its time")
    if event.tag("enc") not in (None, SECRETBOX):
        raise NotOpened(
            f"it is encrypted as {str(event.tag('enc'))[:20]!r}, which this version does not know"
        )


def newest(events: Iterable[Event]) -> dict[Address, Event]:
    """Of each address the version that holds: the latest; of a tie the lowest id (NIP-01)."""
    held: dict[Address, Event] = {}
    for event in events:
        address = (event.kind, event.d)
        known = held.get(address)
        if known is None or supersedes(event, known):
            held[address] = event
    return held


def supersedes(event: Event, held: Event) -> bool:
    """Whether an event takes the place of another one of its address."""
    return (-event.created_at, event.id) < (-held.created_at, held.id)


def deleted_until(deletions: Iterable[Event]) -> tuple[dict[Address, int], set[str]]:
    """Until when (s) each address is deleted, and the ids of events that are: of our own requests.

    `a` is split at the first two colons only: identifiers of both schemas have colons in them.
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
                if author == event.pubkey and kind.isascii() and kind.isdigit():
                    address = (int(kind), d)
                    until[address] = max(event.created_at, until.get(address, 0))
    return until, ids


def tool_body(
    hk: str,
    *,
    tool_name: str,
    success: bool,
    content: str,
    sender: str | None,
    group: str | None,
    at: int,
    **extra: Any,
) -> dict[str, Any]:
    """The payload of a tool call, in Aman's order; `sender` and `group` are pseudonyms, `at` is in s."""
    return {
        "history_key": hk,
        "tool_name": tool_name,
        "success": success,
        "content": content,
        "sender_id": sender,
        "group_id": group,
        "created_at": at,
        **{f"x_{key}": value for key, value in extra.items()},
    }


def clear_body(hk: str, *, sender: str | None, at: int, **extra: Any) -> dict[str, Any]:
    """The payload of a clear marker; `at` is in s."""
    return {
        "history_key": hk,
        "sender_id": sender,
        "created_at": at,
        **{f"x_{key}": value for key, value in extra.items()},
    }
