"""What differs from what is published, signed. Each version gets a later time than the last at its address.

Relays serve stored events page by page, by time, and hundreds in one second cannot be paged through. So our
events are spread over the seconds, and a history is dated as it happened:

    a record           its own time, but not older than `MAX_AGE_S`, which some relays refuse
    calls, clears      their own time, which is part of their payload
    anything else      now, or one second after the last version if that is later: a clock may be set back
    tombstones         one second after the last version; when a person erases, now
    all but the calls  moved to the next second that has fewer than `MAX_PER_SECOND` of our events, at most
                       `MAX_AHEAD_S` ahead

When older versions have to go, a deletion request names the ids of all of them, and everything up to a time.
For a tombstone that is its own second; for a new version that stays, the second before it. Blocking: about
0.3 ms per event. Knows nothing about files or relays.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from discoclaw.core.errors import NostrError
from discoclaw.core.ports import Clock
from discoclaw.nostr.ledgers import is_withheld
from discoclaw.nostr.outbox import OutboxEntry, Row
from discoclaw.nostr.schemas import (
    DELETE,
    LEDGER,
    MAX_DELETIONS,
    SUMMARY,
    UNIQUE,
    Address,
    Codec,
    Deletion,
    EventTemplate,
    tombstone,
)
from discoclaw.nostr.units import DesiredState

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_AHEAD_S: Final = 60
"""Relays may refuse events from further in the future."""
MAX_AGE_S: Final = 300 * 86_400
"""nostr-relay refuses events older than a year; this leaves a margin."""
MAX_PER_SECOND: Final = 100
"""Far below a page of 500 events, so that paging never stalls in one second."""
MAX_IDS: Final = 300
"""Event ids in one deletion request: with the addresses it stays well below the size limit."""
_MAX_SECONDS = 50_000
"""How many seconds are remembered; beyond that, counting starts over."""


@dataclass(frozen=True, slots=True)
class Change:
    """A new version at an address. `last_ts` is the time (s) of the version before it, 0 if there is none.

    `purge`: request the deletion of all older versions. `tombstone`: the new version is empty.
    """

    template: EventTemplate
    last_ts: int = 0
    purge: bool = False
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes to sign. `lost` counts published records that are not on this disk."""

    changes: tuple[Change, ...] = ()
    lost: int = 0


def difference(
    desired: DesiredState,
    published: Mapping[Address, Row],
    *,
    allow_plaintext: bool = False,
    erasing: bool = False,
) -> Difference:
    """The changes that turn what is published of a unit into its desired state.

    `erasing`: records or a summary that are not on disk any more were erased, so they go. Without
    `allow_plaintext`, events that are published as plaintext are replaced, and their versions deleted.
    """
    own = [row for row in published.values() if row.d.startswith(LEDGER)]
    # Another replica has erased all records of the ledger, and nothing was added since.
    is_erased = bool(desired.ledger.size and own) and all(
        [row.tombstone for row in own]
        + [(one.kind, _record_address(one.d)) in published for one in desired.records]
    )
    fresh: list[tuple[EventTemplate, Row | None, bool]] = []
    for one in desired.templates:
        row = published.get((one.kind, one.d))
        # What everybody can read must not stay so if it is not allowed any more.
        hides = row is not None and row.plaintext and not (allow_plaintext and one.plaintext_ok)
        is_new = row is None or row.tombstone or row.digest != one.digest
        if hides or (is_new and not _stays_deleted(one, published, is_erased=is_erased)):
            fresh.append((one, row, hides))
    # An item has become confidential, so older versions of views, which may show it, are deleted too.
    has_turned = any(is_withheld(one) and row is not None and not row.tombstone for one, row, _ in fresh)
    changes = [
        Change(
            one,
            row.ts if row is not None else 0,
            purge=row is not None and not row.tombstone and (has_turned or hides),
        )
        for one, row, hides in fresh
    ]
    addresses = {(one.kind, one.d) for one in desired.templates}
    records = {one.d for one in desired.records}
    removed, lost = [], 0
    for row in published.values():
        if row.tombstone or (row.kind, row.d) in addresses:
            continue
        if not row.d.startswith(LEDGER):
            removed += [row] if row.kind in desired.complete or (erasing and row.kind == SUMMARY) else []
        elif _record_address(row.d) in records or (erasing and desired.full):
            removed.append(row)
        elif desired.full:
            lost += 1
    return Difference((*changes, *tombstones_of(removed)), lost)


def tombstones_of(rows: Iterable[Row]) -> list[Change]:
    """Replace what is published in these rows with tombstones, and request its deletion."""
    live = (row for row in rows if not row.tombstone and row.kind != DELETE)
    return [Change(tombstone(row.kind, row.d), row.ts, purge=True, tombstone=True) for row in live]


def _stays_deleted(template: EventTemplate, published: Mapping[Address, Row], *, is_erased: bool) -> bool:
    """Whether the tombstone at an address is about exactly this content, and not about an earlier one."""
    is_record = template.d.startswith(LEDGER)
    row = published.get((template.kind, _record_address(template.d) if is_record else template.d))
    if row is None or not row.tombstone:
        return False
    if is_record or template.kind in UNIQUE:
        return True
    return is_erased or (template.kind == SUMMARY and template.at < row.ts)


def _record_address(d: str) -> str:
    """The address of a record, given that of one of its parts."""
    return ":".join(d.split(":")[:4])


# ---------------------------------------------------------------------- signing


class SecondSlots:
    """Counts how many of our events have each second, as far as this process signed them."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._turn = 0

    def reserve(self, earliest: int, latest: int, count: int = 1) -> int:
        """The first second from `earliest` to `latest` with room for so many events, which are counted there.

        If all are full, they get more events in turn. A `latest` before `earliest` counts as equal to it.
        """
        if len(self._counts) >= _MAX_SECONDS:
            self._counts.clear()
        latest, room = max(earliest, latest), MAX_PER_SECOND - min(count, MAX_PER_SECOND)
        second = next((one for one in range(earliest, latest + 1) if self._counts.get(one, 0) <= room), None)
        if second is None:
            self._turn += 1
            second = earliest + self._turn % (latest - earliest + 1)
        self.add(second, count)
        return second

    def add(self, second: int, count: int = 1) -> None:
        """Count so many more events in a second."""
        self._counts[second] = self._counts.get(second, 0) + count


class EventSigner:
    """Signs with one codec. `versions` returns the ids of all versions ever signed for an address."""

    def __init__(self, codec: Codec, *, clock: Clock, versions: Callable[[int, str], Sequence[str]]) -> None:
        self._codec = codec
        self._clock = clock
        self._versions = versions
        self._seconds = SecondSlots()

    def sign(self, changes: Sequence[Change], *, erasing: bool = False) -> list[OutboxEntry]:
        """The signed events of all changes, with their deletion requests.

        `erasing`: tombstones get the current time. What can't be signed is left out and logged.
        """
        signed: list[OutboxEntry] = []
        for change in changes:
            if not change.purge:
                signed += self._entries(change, self.time(change))
        for are_tombstones in (False, True):
            # Sorted by time, so that one second after the last of a group is not far ahead for its others.
            purges = [one for one in changes if one.purge and one.tombstone is are_tombstones]
            for group in _chunks(sorted(purges, key=lambda change: change.last_ts), MAX_DELETIONS):
                signed += self._group(group, are_tombstones=are_tombstones, erasing=erasing)
        return signed

    def time(self, change: Change) -> int:
        """The time (s) for a version that deletes no older ones."""
        template, now = change.template, self._now
        if template.kind in UNIQUE:  # the time is part of the payload
            at = max(template.at, change.last_ts + 1)
            self._seconds.add(at)
            return at
        # A record from a machine with a wrong clock may lie in the future, where relays refuse it.
        at = template.at if template.at <= now + MAX_AHEAD_S else 0
        if change.last_ts or not template.d.startswith(LEDGER):
            earliest = max(now, change.last_ts + 1, at)
        else:
            earliest = max(at or now, now - MAX_AGE_S)
        return self._seconds.reserve(earliest, now + MAX_AHEAD_S)

    def _group(
        self, changes: Sequence[Change], *, are_tombstones: bool, erasing: bool
    ) -> Iterator[OutboxEntry]:
        """Changes that get the same second, and the deletion requests for their older versions."""
        now = self._now
        floor = now if erasing or not are_tombstones else now - MAX_AGE_S
        earliest = max([floor, *(change.last_ts + 1 for change in changes)])
        # One second for all, so that one request, which deletes up to a time, covers the whole group.
        ts = self._seconds.reserve(earliest, now + MAX_AHEAD_S, len(changes))
        for change in changes:
            yield from self._entries(change, ts)
        for deletions in self._requests(changes):
            try:
                yield OutboxEntry(self._codec.deletion(deletions, ts if are_tombstones else ts - 1), "")
            except NostrError as error:
                log.error("cannot sign a deletion request, so older versions stay on relays: %s", error)

    def _requests(self, changes: Sequence[Change]) -> Iterator[list[Deletion]]:
        """The older versions to delete, divided into requests that are not too long."""
        request: list[Deletion] = []
        count = 0
        for kind, d in ((change.template.kind, change.template.d) for change in changes):
            for ids in list(_chunks(self._versions(kind, d), MAX_IDS)) or [[]]:
                if request and (count + len(ids) > MAX_IDS or len(request) == MAX_DELETIONS):
                    yield request
                    request, count = [], 0
                request.append(Deletion(kind, d, tuple(ids)))
                count += len(ids)
        if request:
            yield request

    def _entries(self, change: Change, ts: int) -> Iterator[OutboxEntry]:
        template = change.template
        try:
            yield OutboxEntry(self._codec.encode(template, ts), template.digest, change.tombstone)
        except NostrError as error:
            log.error(
                "cannot sign the event at %d %s, so it is not mirrored: %s", template.kind, template.d, error
            )

    @property
    def _now(self) -> int:
        return self._clock() // 1000


def _chunks(values: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
