"""Rollback detection: whether relays have less than was published, according to the inventory.

A relay that forgets, lies, or was restored from a backup serves genuine events, but not all of them. The
signed inventory says for each unit how many records were published, the SHA-256 of their addresses, and
the time of the newest view. An inventory that is older than the served events lists less, so nothing
counts as missing then. What was erased since doesn't either. Pure.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.nostr.incoming.selection import DecryptedEvent
from discoclaw.nostr.names import LEDGER
from discoclaw.nostr.schemas import APP, Address


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Counts of what the inventory lists and no relay serves.

    `missing` of `records` in `memories` subjects; and the number of units whose views are `older` than
    published.
    """

    missing: int = 0
    records: int = 0
    memories: int = 0
    older: int = 0

    def __bool__(self) -> bool:
        return self.missing > 0 or self.older > 0

    def warnings(self, relays: Sequence[str]) -> list[str]:
        """Sentences about it. `relays` are URLs."""
        who = relays[0] if len(relays) == 1 else "every relay"
        lines = []
        if self.missing:
            memories = "1 memory" if self.memories == 1 else f"{self.memories:,} memories"
            lines.append(
                f"{who} lacks {self.missing:,} of {self.records:,} published records of {memories}; it "
                "may have been rolled back, so recover again with another relay"
            )
        if self.older:
            lines.append(f"{who} has older versions of {self.older:,} views than were published")
        return lines


@dataclass(frozen=True, slots=True)
class ServedUnit:
    """A unit as relays serve it: the addresses of its records, and the time (s) of its newest view."""

    records: frozenset[str] = frozenset()
    newest: int = 0

    @property
    def digest(self) -> str:
        """The digest of the records as the inventory has it."""
        return hashlib.sha256("".join(f"{d}\n" for d in sorted(self.records)).encode()).hexdigest()


def served_units(units: Mapping[Address, str], times: Mapping[Address, int]) -> dict[str, ServedUnit]:
    """Each unit as relays serve it. By address, `units` has the unit's hash and `times` the time (s)."""
    records: dict[str, set[str]] = {}
    newest: dict[str, int] = {}
    for (kind, d), unit in units.items():
        if kind == APP and d.startswith(LEDGER):
            records.setdefault(unit, set()).add(d)
        else:
            newest[unit] = max(times[kind, d], newest.get(unit, 0))
    return {
        unit: ServedUnit(frozenset(records.get(unit, ())), newest.get(unit, 0))
        for unit in {*records, *newest}
    }


def shortfall(
    inventory: Iterable[DecryptedEvent],
    served: Mapping[str, ServedUnit],
    tombstones: Collection[DecryptedEvent],
) -> Shortfall:
    """Count what the inventory lists and no relay served. `tombstones` are those that were served."""
    missing = records = memories = older = 0
    for shard in inventory:
        later = [one for one in tombstones if one.event.created_at >= shard.event.created_at]
        erased = sum(one.event.d.startswith(LEDGER) for one in later)
        for unit, count, digest, newest in _entries(shard):
            here = served.get(unit, ServedUnit())
            lack = max(0, count - len(here.records))
            if not lack and count == len(here.records) and digest != here.digest:
                lack = 1  # at least one: others came in its place
            # A tombstone doesn't say to which unit it belonged, so each one explains one missing record.
            explained = min(lack, erased)
            lack, erased = lack - explained, erased - explained
            if lack:
                missing, records, memories = missing + lack, records + count, memories + 1
            older += newest > here.newest and not later
    return Shortfall(missing, records, memories, older)


def _entries(shard: DecryptedEvent) -> Iterator[tuple[str, int, str, int]]:
    """Hash, number of records, digest and newest time of each unit. Malformed entries are left out."""
    units = shard.body.get("units")
    for unit, entry in units.items() if isinstance(units, Mapping) else ():
        match entry:
            case [int(count), str(digest), int(newest)]:
                yield unit, count, digest, newest
