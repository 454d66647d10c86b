"""The result of a recovery, as values and as sentences for the person who asked for it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discoclaw.memory.exchange.take import Report
from discoclaw.nostr.event import sha256
from discoclaw.nostr.outbox import UnitInventory
from discoclaw.nostr.schemas import LEDGER, DecryptedEvent


def shortfall(
    inventory: Iterable[DecryptedEvent],
    served: Mapping[str, UnitInventory],
    tombstones: Collection[DecryptedEvent],
    relays: Sequence[str],
) -> tuple[str, ...]:
    """Sentences about what the inventory lists and none of these relays (URLs) served: were they rolled back?

    `tombstones` are those that were served. Malformed entries of the inventory are left out.
    """
    missing = records = memories = older = 0
    for shard in inventory:
        later = [one for one in tombstones if one.event.created_at >= shard.event.created_at]
        erased = sum(one.event.d.startswith(LEDGER) for one in later)
        units = shard.body.get("units")
        for unit, entry in units.items() if isinstance(units, Mapping) else ():
            match entry:
                case [int(count), str(digest), int(newest)]:
                    pass
                case _:
                    continue
            here = served.get(unit, UnitInventory(0, sha256(""), 0))
            lack = max(0, count - here.records)
            if not lack and count == here.records and digest != here.digest:
                lack = 1  # at least one: others came in its place
            # A tombstone doesn't say to which unit it belonged, so each one explains one missing record.
            explained = min(lack, erased)
            lack, erased = lack - explained, erased - explained
            if lack:
                missing, records, memories = missing + lack, records + count, memories + 1
            older += newest > here.newest and not later
    who, lines = relays[0] if len(relays) == 1 else "every relay", list[str]()
    if missing:
        of = "1 memory" if memories == 1 else f"{memories:,} memories"
        lines.append(
            f"{who} lacks {missing:,} of {records:,} published records of {of}; it may have been rolled "
            "back, so recover again with another relay"
        )
    if older:
        lines.append(f"{who} has older versions of {older:,} views than were published")
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a recovery. `stage` is "fetching", "reading" or "writing". `total` is None if unknown.

    `per_s` is the rate per second since the stage began.
    """

    stage: str
    done: int
    total: int | None
    per_s: float


@dataclass(frozen=True, slots=True)
class RelayReport:
    """Counts of what a relay served. `complete`: that is all it has; if not, `reason` says why we don't know.

    `events` counts events of ours. `lacks` counts current events that the relay didn't serve. `bad` counts
    what was dropped, by kind.
    """

    url: str
    events: int
    complete: bool
    reason: str = ""
    lacks: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The result of a recovery: what was found on relays, and what of it is new here.

    `events` counts different events of ours, `current` those that count. `ledgers` has what was done for each
    subject. `unreadable` counts events that can't be used, by reason; they are kept. `erased_elsewhere` has,
    for subjects on this disk, how many of how many of their records are deleted on relays. `shortfall` has
    sentences about what the inventory lists and nobody served. `files` names changed files. With `dry`
    nothing was written.
    """

    relays: tuple[RelayReport, ...]
    events: int
    current: int
    ledgers: Mapping[str, Report] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    unreadable: Mapping[str, int] = field(default_factory=dict)
    erased_elsewhere: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shortfall: tuple[str, ...] = ()
    dry: bool = False

    @property
    def records(self) -> int:
        """The number of records that are new here."""
        return sum(one.records for one in self.ledgers.values())

    @property
    def subjects(self) -> int:
        """The number of memories in which something is new here."""
        return sum(one.records > 0 for one in self.ledgers.values())

    @property
    def is_complete(self) -> bool:
        """Whether it is everything, as far as we can know.

        At least one relay served everything it has, nothing in the inventory is missing, and nothing was
        refused, lost or withheld.
        """
        has_gaps = any(one.refused or one.lost or one.withheld for one in self.ledgers.values())
        return any(one.complete for one in self.relays) and not self.shortfall and not has_gaps

    def warnings(self) -> list[str]:
        """Sentences about everything that is not as it should be, each with the way out."""
        lines = []
        for one in self.relays:
            if not one.complete:
                some = f"served {_many(one.events, 'event')}, but maybe not everything it has"
                lines.append(f"{one.url} {some if one.events else 'served nothing'}: {one.reason}")
            elif one.lacks:
                lines.append(
                    f"{one.url} lacks {one.lacks:,} of {_many(self.current, 'event')} that others have; "
                    "`discoclaw nostr push` sends them to it"
                )
            if dropped := sum(one.bad.values()):
                kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(one.bad.items()))
                lines.append(
                    f"{one.url} also sent {_many(dropped, 'event')} that failed the checks ({kinds})"
                )
        lines += self.shortfall
        for why, count in self.unreadable.items():
            lines.append(f"{_many(count, 'event')} cannot be used and are kept in quarantine: {why}")
        if withheld := sum(one.withheld for one in self.ledgers.values()):
            lines.append(
                f"{_many(withheld, 'record')} never left the disk that wrote them, because they are "
                "confidential or contain a key; only that disk has them"
            )
        for subject, ledger in self.ledgers.items():
            if ledger.erased:
                lines.append(
                    f"{subject}: {_many(ledger.erased, 'record')} erased here are still on relays; "
                    f"`discoclaw memory erase {subject}` requests their deletion again"
                )
            if ledger.refused:
                lines.append(f"{subject}: nothing was restored: {ledger.refused}")
            if ledger.lost:
                lost = _many(ledger.lost, "commit")
                lines.append(
                    f"{subject}: {lost} on no relay; later ones are restored; "
                    "if a relay with the missing ones comes back, recover again"
                )
        for subject, (gone, here) in self.erased_elsewhere.items():
            lines.append(
                f"{subject}: {gone:,} of {_many(here, 'record')} here were erased by another replica; "
                f"they stay here until you run `discoclaw memory erase {subject}`"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "relays": [
                {
                    "url": one.url,
                    "events": one.events,
                    "complete": one.complete,
                    "reason": one.reason,
                    "lacks": one.lacks,
                    "dropped": dict(one.bad),
                }
                for one in self.relays
            ],
            "events": self.events,
            "records": self.records,
            "memories": {subject: one.records for subject, one in self.ledgers.items() if one.records},
            "files": list(self.files),
            "warnings": self.warnings(),
            "sure": self.is_complete,
            "dry_run": self.dry,
        }


def _many(number: int, what: str) -> str:
    """A number of things: "1 event", "1,234 events"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
