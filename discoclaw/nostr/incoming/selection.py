"""Selects the events that count: of all that relays served, the newest version at each address.

Relays may serve anything, in any order and any number of times. Events change nothing if the bot's key didn't
sign them, if they are of another kind or have no address, or if they are older versions. If a deletion
request of ours, or a tombstone, is about the newest version, the address is deleted: an older version that
some relay still serves does not come back. nostr-relay, for one, serves replaced versions and accepts deleted
events again. Pure: knows relays by their URL only, and nothing about files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import UnreadableContent
from discoclaw.nostr.event import Event
from discoclaw.nostr.schemas import DELETE, ERASED, OWN_KINDS, Address, Codec, deleted_until, supersedes


@dataclass(frozen=True, slots=True)
class DecryptedEvent:
    """A selected event and its payload."""

    event: Event
    body: Mapping[str, Any]

    @property
    def address(self) -> Address:
        return self.event.kind, self.event.d


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """An event of ours that can't be used, and the reason."""

    event: Event
    why: str


@dataclass(frozen=True, slots=True)
class Selection:
    """`current` are the events that count, `deleted` those that would count if we had not deleted them.

    `older` are other versions that relays still serve, `deletions` our own deletion requests.
    """

    current: tuple[Event, ...]
    deleted: tuple[Event, ...]
    older: tuple[Event, ...]
    deletions: tuple[Event, ...]


@dataclass(slots=True)
class EventCollector:
    """Collects what relays serve, in any order. `public` is the bot's public key in hex."""

    public: str
    _newest: dict[Address, Event] = field(default_factory=dict)
    _older: list[Event] = field(default_factory=list)
    _deletions: dict[str, Event] = field(default_factory=dict)
    _relays: list[str] = field(default_factory=list)
    _served: dict[str, int] = field(
        default_factory=dict
    )  # event id -> relays, as bits: a recovery holds 100,000 events

    def add(self, relay: str, events: Iterable[Event]) -> int:
        """Add the events of a relay. Returns how many of them are ours and new."""
        if relay not in self._relays:
            self._relays.append(relay)
        bit, new = self._bit(relay), 0
        for event in events:
            known = self._served.get(event.id, 0)
            if not known and not self._keep(event):
                continue  # not ours
            new += not known
            self._served[event.id] = known | bit
        return new

    def add_known(self, events: Iterable[Event]) -> None:
        """Add events of ours from the outbox, whether a relay serves them or not."""
        for event in events:
            if event.id not in self._served:
                self._keep(event)

    def _bit(self, relay: str) -> int:
        return 1 << self._relays.index(relay) if relay in self._relays else 0

    def _keep(self, event: Event) -> bool:
        """Keep an event if it is ours. Returns whether it is."""
        if event.pubkey != self.public:
            return False
        if event.kind == DELETE:
            self._deletions[event.id] = event
            return True
        if event.kind not in OWN_KINDS or not event.d:
            return False
        address = (event.kind, event.d)
        known = self._newest.get(address)
        if known is None or supersedes(event, known):
            self._newest[address] = event
        if known is not None:
            self._older.append(known if self._newest[address] is event else event)
        return True

    @property
    def count(self) -> int:
        """The number of different events of ours, older versions included."""
        return len(self._served)

    def count_of(self, relay: str) -> int:
        """How many of these a relay served."""
        bit = self._bit(relay)
        return sum(bool(bits & bit) for bits in self._served.values())

    def missing(self, relay: str, ids: Iterable[str]) -> int:
        """How many of the events with these ids a relay did not serve."""
        bit = self._bit(relay)
        return sum(not self._served.get(event_id, 0) & bit for event_id in ids)

    def relays_of(self, event_id: str) -> set[str]:
        """The relays that served an event."""
        bits = self._served.get(event_id, 0)
        return {relay for number, relay in enumerate(self._relays) if bits & 1 << number}

    def select(self) -> Selection:
        """Select from everything added so far."""
        deletions = tuple(self._deletions.values())
        until, ids = deleted_until(deletions)
        current: list[Event] = []
        deleted: list[Event] = []
        for address, event in self._newest.items():
            is_deleted = event.created_at <= until.get(address, -1) or event.id in ids
            (deleted if is_deleted else current).append(event)
        return Selection(tuple(current), tuple(deleted), tuple(self._older), deletions)


def decrypted(codec: Codec, events: Iterable[Event]) -> tuple[list[DecryptedEvent], list[UnreadableEvent]]:
    """The decrypted events, and those that can't be read. Blocking: about 0.2 ms per event."""
    found: list[DecryptedEvent] = []
    unreadable: list[UnreadableEvent] = []
    for event in events:
        try:
            found.append(DecryptedEvent(event, codec.decode(event)))
        except UnreadableContent as why:
            unreadable.append(UnreadableEvent(event, str(why)))
    return found, unreadable


def is_tombstone(one: DecryptedEvent) -> bool:
    """Whether an event only says that something was erased at its address."""
    return one.body.get(ERASED) is True
