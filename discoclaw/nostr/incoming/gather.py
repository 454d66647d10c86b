"""Everything of ours that relays have, fetched, sifted, opened and understood; nothing is written.

Works in batches, in threads, so that a running program goes on meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from discoclaw.core.errors import RelayUnreachable
from discoclaw.core.subject import group_of, user_of
from discoclaw.nostr.event import Event
from discoclaw.nostr.incoming.read_views import ReadViews
from discoclaw.nostr.incoming.rebuild import RebuiltLedger, ledgers
from discoclaw.nostr.incoming.recovered import FromRelay, Progress
from discoclaw.nostr.incoming.restore_views import Views
from discoclaw.nostr.incoming.sift import Opened, Sieve, Sifted, Unread, is_tombstone, opened
from discoclaw.nostr.incoming.units import UnitsOf, completed
from discoclaw.nostr.names import CHOICES, GROUP, INDEX, LEDGER, NPUB, Names
from discoclaw.nostr.relays.paging import Fetched, Take
from discoclaw.nostr.relays.wire import Filter
from discoclaw.nostr.schemas import APP, DELETE, OURS, Address, Pen

BATCH = 256
"""Events that are opened at once: about a twentieth of a second."""
FORMS = (LEDGER, INDEX, CHOICES, NPUB, GROUP)
"""What our addresses of kind 30078 begin with; others are somebody else's use of the same key."""

Tell = Callable[[Progress], None]


class Source(Protocol):
    """A relay, as far as it is read from."""

    @property
    def url(self) -> str: ...

    async def fetch(self, filters: Iterable[Filter], take: Take | None = None) -> Fetched:
        """All it has, in batches, verified; the result says whether it is all."""
        ...


class Stage:
    """Tells how far one stage is, with how many a second."""

    def __init__(self, name: str, tell: Tell | None, total: int | None = None) -> None:
        self._name, self._tell, self._total = name, tell, total
        self._time = asyncio.get_running_loop().time
        self._since = self._time()
        self.done = 0
        self.add(0)

    def add(self, number: int) -> None:
        """So many more are done."""
        self.done += number
        if self._tell is not None:
            took = self._time() - self._since
            self._tell(Progress(self._name, self.done, self._total, self.done / took if took > 0 else 0.0))


@dataclass(frozen=True, slots=True)
class Understood:
    """What the events that count say. `units` names the unit of each address, where that is known."""

    said: tuple[Opened, ...]
    gone: tuple[Opened, ...]
    index: tuple[Opened, ...]
    ledgers: dict[str, RebuiltLedger]
    views: Views
    units: dict[Address, str]
    unread: tuple[Unread, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that was found, and where."""

    sieve: Sieve
    relays: tuple[FromRelay, ...]
    sifted: Sifted
    found: Understood

    @property
    def addresses_gone(self) -> set[Address]:
        """The addresses under which something was deleted."""
        deleted = {(one.kind, one.d) for one in self.sifted.deleted}
        return deleted | {one.address for one in self.found.gone}


async def gather(
    relays: Sequence[Source],
    pen: Pen,
    names: Names,
    *,
    subjects: Sequence[str] = (),
    gone: Iterable[Event] = (),
    tell: Tell | None = None,
) -> Gathered:
    """Fetch and understand everything of ours. `subjects` are those that are known here already, `gone` our
    own tombstones and requests to delete, so that what a relay still serves does not come back.

    Raises RelayUnreachable when no relay serves anything, naming each and the reason.
    """
    sieve = Sieve(pen.keys.public)
    fetched = await _fetched(relays, sieve, tell)
    results = list(zip(relays, fetched, strict=True))
    if not any(result.complete or result.count for result in fetched):
        why = "; ".join(f"{relay.url}: {result.reason}" for relay, result in results)
        raise RelayUnreachable(f"no relay could be read, so nothing was done: {why or 'none is set'}")
    sieve.know(gone)
    sifted = await asyncio.to_thread(sieve.sifted)
    counting = [event.id for event in sifted.held]
    told = tuple(_told(relay, result, sieve, counting) for relay, result in results)
    said, unread = await _opened(pen, sifted, tell)
    return Gathered(sieve, told, sifted, await asyncio.to_thread(_understood, said, unread, names, subjects))


def _understood(
    said: Iterable[Opened], unread: Iterable[Unread], names: Names, subjects: Sequence[str]
) -> Understood:
    gone: list[Opened] = []
    index: list[Opened] = []
    records: list[Opened] = []
    views: list[Opened] = []
    for one in said:
        ours = one.event.kind == APP
        if is_tombstone(one):
            gone.append(one)
        elif ours and one.event.d.startswith(INDEX):
            index.append(one)
        else:
            (records if ours and one.event.d.startswith(LEDGER) else views).append(one)
    found, unusable = ledgers(records, names)
    subjects = [*found, *subjects]
    reader = ReadViews(names, people=_some(user_of, subjects), channels=_some(group_of, subjects))
    unusable += reader.read(views)
    left_out = {one.event.id for one in unusable}
    usable = tuple(one for one in (*records, *views) if one.event.id not in left_out)
    said_so = reader.units | {
        one.address: ledger.subject for ledger in found.values() for one in ledger.events
    }
    known = UnitsOf(names, {*subjects, *reader.units.values()}, reader.views.summaries)
    units = completed(said_so, (one.address for one in (*usable, *gone)), known)
    return Understood(usable, tuple(gone), tuple(index), found, reader.views, units, (*unread, *unusable))


def _some(id_of: Callable[[str], str | None], subjects: Iterable[str]) -> list[str]:
    return [key for subject in subjects if (key := id_of(subject)) is not None]


async def _fetched(relays: Sequence[Source], sieve: Sieve, tell: Tell | None) -> list[Fetched]:
    stage = Stage("fetching", tell)
    filters = [Filter(kinds=(DELETE, *OURS), authors=(sieve.public,))]

    async def one(relay: Source) -> Fetched:
        async def take(events: list[Event]) -> None:
            stage.add(sieve.take(relay.url, events))

        return await relay.fetch(filters, take)

    return list(await asyncio.gather(*map(one, relays)))


async def _opened(pen: Pen, sifted: Sifted, tell: Tell | None) -> tuple[list[Opened], list[Unread]]:
    ours = [one for one in sifted.held if one.kind != APP or one.d.startswith(FORMS)]
    stage = Stage("reading", tell, len(ours))
    said: list[Opened] = []
    unread: list[Unread] = []
    for start in range(0, len(ours), BATCH):
        batch = ours[start : start + BATCH]
        good, bad = await asyncio.to_thread(opened, pen, batch)
        said += good
        unread += bad
        stage.add(len(batch))
    return said, unread


def _told(relay: Source, result: Fetched, sieve: Sieve, counting: Sequence[str]) -> FromRelay:
    events, lacks = sieve.count_of(relay.url), sieve.lacks(relay.url, counting)
    return FromRelay(relay.url, events, result.complete, result.reason, lacks, result.bad)
