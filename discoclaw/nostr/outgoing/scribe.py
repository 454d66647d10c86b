"""Signs what is to be published, each version at a time that is later than the last one of its address.

Records are dated by the second in which they were made: a history that is published all at once is spread as
it was lived, and comes out the same again. It has to be, since relays serve a page of events at a time, and
hundreds within a second can not be paged through. So

    a record           its own time, but not older than `OLDEST_S`, which some relays refuse
    calls, clears      their own time, which is part of what they say
    anything else      now, or a second behind the last version if that is later: a clock may go back
    tombstones         a second behind the last version; where a person erases, now
    all but the calls  the next second that has fewer than `MOST_A_SECOND` of ours, at most `AHEAD_S` ahead

What an address has of older versions may have to go: then a request to delete names the ids of all, and
everything until then. That of a tombstone is of its own second; where a new version stays, of the second
before it. Blocking: about 0.3 ms for each event. Knows nothing about files or relays.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from discoclaw.core.errors import NostrError
from discoclaw.core.ports import Clock
from discoclaw.nostr.names import LEDGER
from discoclaw.nostr.outgoing.outbox import Put
from discoclaw.nostr.schemas import MOST_DELETED, UNIQUE, Gone, Pen, Wanted, tombstone

log = logging.getLogger(__name__)
T = TypeVar("T")

AHEAD_S: Final = 60
"""Seconds: what is further in the future, relays may refuse."""
OLDEST_S: Final = 300 * 86_400
"""Seconds: what is older than a year, some relays refuse."""
MOST_A_SECOND: Final = 100
MOST_IDS: Final = 300
"""Ids of events in one request to delete: with the addresses it stays well below the size of an event."""
_MOST_SECONDS = 50_000


@dataclass(frozen=True, slots=True)
class Publication:
    """A new version of an address. `last` is the time (s) of the one before; 0 when there was none.

    `purge`: all older versions are to be deleted. `gone`: nothing is to stand there any more.
    """

    wanted: Wanted
    last: int = 0
    purge: bool = False
    gone: bool = False

    @classmethod
    def away(cls, kind: int, d: str, last: int) -> "Publication":
        """Nothing is to stand under an address any more."""
        return cls(tombstone(kind, d), last, purge=True, gone=True)


class Seconds:
    """How many of our events have which second, as far as they were signed here."""

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}
        self._turn = 0

    def take(self, least: int, most: int, count: int = 1) -> int:
        """A second with room for so many events: the first from `least` on; at most `most`, if that is later.

        Where all are full, one after another.
        """
        if len(self._taken) >= _MOST_SECONDS:
            self._taken.clear()
        most, room = max(least, most), MOST_A_SECOND - min(count, MOST_A_SECOND)
        second = next((one for one in range(least, most + 1) if self._taken.get(one, 0) <= room), None)
        if second is None:
            self._turn += 1
            second = least + self._turn % (most - least + 1)
        self.note(second, count)
        return second

    def note(self, second: int, count: int = 1) -> None:
        """A second has so many more."""
        self._taken[second] = self._taken.get(second, 0) + count


class Scribe:
    """Signs with one pen. `versions` gives the ids of all versions of an address that were ever signed."""

    def __init__(self, pen: Pen, *, clock: Clock, versions: Callable[[int, str], Sequence[str]]) -> None:
        self._pen = pen
        self._clock = clock
        self._versions = versions
        self._seconds = Seconds()

    def sign(self, changes: Sequence[Publication], *, at_once: bool = False) -> list[Put]:
        """Signed events for all of these, with the requests to delete that go with them.

        `at_once`: tombstones are of now. What can not be signed is left out, and said.
        """
        signed: list[Put] = []
        for change in changes:
            if not change.purge:
                signed += self._put(change, self.time(change))
        for gone in (False, True):
            some = [change for change in changes if change.purge and change.gone is gone]
            for group in _chunks(sorted(some, key=lambda change: change.last), MOST_DELETED):
                signed += self._group(group, gone=gone, at_once=at_once)
        return signed

    def time(self, change: Publication) -> int:
        """The time (s) of a version that leaves older ones alone."""
        wanted, now = change.wanted, self._now
        if wanted.kind in UNIQUE:  # its time is part of what it says
            at = max(wanted.at, change.last + 1)
            self._seconds.note(at)
            return at
        at = wanted.at if wanted.at <= now + AHEAD_S else 0
        if change.last or not wanted.d.startswith(LEDGER):
            least = max(now, change.last + 1, at)
        else:
            least = max(at or now, now - OLDEST_S)
        return self._seconds.take(least, now + AHEAD_S)

    def _group(self, changes: Sequence[Publication], *, gone: bool, at_once: bool) -> Iterator[Put]:
        """Changes of one second, and the requests to delete what was there before."""
        now = self._now
        floor = now if at_once or not gone else now - OLDEST_S
        least = max([floor, *(change.last + 1 for change in changes)])
        ts = self._seconds.take(least, now + AHEAD_S, len(changes))
        for change in changes:
            yield from self._put(change, ts)
        for some in self._requests(changes):
            try:
                yield Put(self._pen.delete(some, ts if gone else ts - 1), "")
            except NostrError as error:
                log.error("a request to delete is not sent: %s", error)

    def _requests(self, changes: Sequence[Publication]) -> Iterator[list[Gone]]:
        """What to delete, in requests that are not too long."""
        request: list[Gone] = []
        count = 0
        for kind, d in ((change.wanted.kind, change.wanted.d) for change in changes):
            for ids in list(_chunks(self._versions(kind, d), MOST_IDS)) or [[]]:
                if request and (count + len(ids) > MOST_IDS or len(request) == MOST_DELETED):
                    yield request
                    request, count = [], 0
                request.append(Gone(kind, d, tuple(ids)))
                count += len(ids)
        if request:
            yield request

    def _put(self, change: Publication, ts: int) -> Iterator[Put]:
        try:
            yield Put(self._pen.sign(change.wanted, ts), change.wanted.digest, change.gone)
        except NostrError as error:
            wanted = change.wanted
            log.error("what should stand at %d %s is not mirrored: %s", wanted.kind, wanted.d, error)

    @property
    def _now(self) -> int:
        return self._clock() // 1000


def _chunks(values: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
