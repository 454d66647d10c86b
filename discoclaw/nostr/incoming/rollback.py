"""Whether relays have less than they once had, as the index of what was published tells.

A relay that forgets, lies, or was put back to an older state serves events that are all genuine and yet not
all there are. The index, signed like everything else, says of each unit how many records were published, the
SHA-256 of their addresses, and the time of its newest view. An index that is older than what was served says
less, and nothing is missed then; what was erased since is not missed either. Pure.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.nostr.incoming.sift import Opened
from discoclaw.nostr.names import LEDGER
from discoclaw.nostr.schemas import APP, Address


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing: `missing` of the `records` that the index knows of so many `memories`; and of how many
    memories or conversations the views are `older` than those that were published."""

    missing: int = 0
    records: int = 0
    memories: int = 0
    older: int = 0

    def __bool__(self) -> bool:
        return self.missing > 0 or self.older > 0

    def told(self, relays: Sequence[str]) -> list[str]:
        """Sentences about it."""
        one = len(relays) == 1
        who = relays[0] if one else "every relay"
        found = []
        if self.missing:
            whose = "1 memory" if self.memories == 1 else f"{self.memories:,} memories"
            found.append(
                f"{who} misses {self.missing:,} of {self.records:,} records of {whose} that were published; "
                "they may come from another relay, or it was rolled back"
            )
        if self.older:
            found.append(f"{who} has older versions of {self.older:,} views than were published")
        return found


@dataclass(frozen=True, slots=True)
class Stand:
    """What was served of a unit: the addresses of its records, and the time (s) of its newest view."""

    records: frozenset[str] = frozenset()
    newest: int = 0

    @property
    def digest(self) -> str:
        """As the index has it."""
        return hashlib.sha256("".join(f"{d}\n" for d in sorted(self.records)).encode()).hexdigest()


def stands(units: Mapping[Address, str], times: Mapping[Address, int]) -> dict[str, Stand]:
    """What was served of each unit. `units` has the unit's mark of each address, `times` its time (s)."""
    records: dict[str, set[str]] = {}
    newest: dict[str, int] = {}
    for (kind, d), unit in units.items():
        if kind == APP and d.startswith(LEDGER):
            records.setdefault(unit, set()).add(d)
        else:
            newest[unit] = max(times[kind, d], newest.get(unit, 0))
    return {
        unit: Stand(frozenset(records.get(unit, ())), newest.get(unit, 0)) for unit in {*records, *newest}
    }


def behind(index: Iterable[Opened], there: Mapping[str, Stand], gone: Collection[Opened]) -> Gap:
    """What the index knows and nobody served. `gone` are the tombstones that were served."""
    missing = records = memories = older = 0
    for shard in index:
        later = [one for one in gone if one.event.created_at >= shard.event.created_at]
        erased = sum(one.event.d.startswith(LEDGER) for one in later)
        for unit, count, digest, newest in _entries(shard):
            stand = there.get(unit, Stand())
            lack = max(0, count - len(stand.records))
            if not lack and count == len(stand.records) and digest != stand.digest:
                lack = 1  # at the least: others came in their place
            forgiven = min(lack, erased)
            lack, erased = lack - forgiven, erased - forgiven
            if lack:
                missing, records, memories = missing + lack, records + count, memories + 1
            older += newest > stand.newest and not later
    return Gap(missing, records, memories, older)


def _entries(shard: Opened) -> Iterator[tuple[str, int, str, int]]:
    """Mark, number of records, digest and newest time of each unit; what is none of that is left out."""
    units = shard.body.get("units")
    for unit, entry in units.items() if isinstance(units, Mapping) else ():
        match entry:
            case [int(count), str(digest), int(newest)]:
                yield unit, count, digest, newest
