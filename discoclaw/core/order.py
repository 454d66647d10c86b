"""The order of a set of records, which is the same on every replica that has the same records.

A record comes after those it depends on: a commit after its parents, a ref after its head. Apart from that,
records are ordered by (time, id). Two replicas are thus united by putting their lines together and sorting.
Pure. Knows nothing about branches.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping

from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.times import ms_of_iso


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Records in the order of their set, each once."""
    unique: dict[str, Record] = {}
    for record in records:
        first = unique.setdefault(record.id, record)
        if record.hash < first.hash:  # ids don't cover messages: of two such records always pick the same one
            unique[record.id] = record
    if _is_ordered(unique.values()):  # nearly always; sorting ten thousand records takes a while
        return tuple(unique.values())
    ordered = _by_rest(unique, _rests_on)
    # A merge's second parent is not part of its id, so a forged one could close a cycle. It is ignored then.
    circle = {key: record for key, record in unique.items() if key not in ordered}
    return (*ordered.values(), *_by_rest(circle, _follows).values())


def _by_rest(unique: Mapping[str, Record], rests_on: Callable[[Record], Iterable[str]]) -> dict[str, Record]:
    """Records by (time, id), each after those it depends on; without those that depend on themselves."""
    keys = {key: (ms_of_iso(record.timestamp), key) for key, record in unique.items()}
    before = {
        key: {one for one in rests_on(record) if one in unique and one != key}
        for key, record in unique.items()
    }
    behind: dict[str, list[str]] = {}
    for key, needed in before.items():
        for one in needed:
            behind.setdefault(one, []).append(key)
    ready = [keys[key] for key, needed in before.items() if not needed]
    heapq.heapify(ready)
    ordered: dict[str, Record] = {}
    while ready:
        _, key = heapq.heappop(ready)
        ordered[key] = unique[key]
        for other in behind.get(key, ()):
            before[other].discard(key)
            if not before[other]:
                heapq.heappush(ready, keys[other])
    return ordered


def union(one: Iterable[Record], other: Iterable[Record]) -> tuple[Record, ...]:
    """The records of two replicas together. The order of the arguments makes no difference."""
    return in_order([*one, *other])


def _rests_on(record: Record) -> list[str]:
    merged = record.metadata.get("merged") if isinstance(record, Commit) else None
    return [*_follows(record), merged] if isinstance(merged, str) else _follows(record)


def _follows(record: Record) -> list[str]:
    one = record.head if isinstance(record, Ref) else record.parent_id
    return [one] if one is not None else []


def _is_ordered(records: Iterable[Record]) -> bool:
    """Whether records are in order already, as those of one replica are. Saves sorting in the usual case."""
    last, seen = -1, set()
    for record in records:
        now = ms_of_iso(record.timestamp)
        if now <= last:
            return False
        last = now
        seen.add(record.id)
        if any(one not in seen for one in _rests_on(record)):
            return False
    return True
