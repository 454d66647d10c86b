"""What came of a recovery, as values and as sentences for whoever asked for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discoclaw.nostr.incoming.restore import RestoredLedger
from discoclaw.nostr.incoming.rollback import Gap


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: `stage` is "fetching", "reading" or "writing". `total` is None while nobody knows.

    `per_s`: so many a second, since this stage began.
    """

    stage: str
    done: int
    total: int | None
    per_s: float


@dataclass(frozen=True, slots=True)
class FromRelay:
    """What a relay served. `complete`: that is all it has; else `reason` says why nobody knows.

    `events` counts those of ours, `lacks` what counts and others served, or what all of them had to.
    """

    url: str
    events: int
    complete: bool
    reason: str = ""
    lacks: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found, and what of it is new here.

    `events` counts different events of ours; `held` those that count. `unread` counts what could not be used,
    by the reason; it is kept. `erased_elsewhere` has subjects that are here, with how many of how many of
    their records are deleted on the relays. `files` are the names of files that changed. With `dry` nothing
    was written.
    """

    relays: tuple[FromRelay, ...]
    events: int
    held: int
    ledgers: tuple[RestoredLedger, ...] = ()
    files: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    erased_elsewhere: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    behind: Gap = field(default_factory=Gap)
    dry: bool = False

    @property
    def records(self) -> int:
        """Records that are new here."""
        return sum(one.records for one in self.ledgers)

    @property
    def subjects(self) -> int:
        """Memories of which something is new here."""
        return sum(one.records > 0 for one in self.ledgers)

    @property
    def nothing(self) -> bool:
        """Whether nothing is new here."""
        return not self.records and not self.files

    @property
    def sure(self) -> bool:
        """Whether it is everything, as far as can be known: some relay served all it has, nothing that the
        index knows is missing, and nothing was refused or lost."""
        less = any(one.refused or one.lost for one in self.ledgers)
        return any(one.complete for one in self.relays) and not self.behind and not less

    def warnings(self) -> list[str]:
        """Sentences about what is not as it should be."""
        return [*self._of_relays(), *self._of_memories()]

    def _of_relays(self) -> list[str]:
        told = []
        for one in self.relays:
            if not one.complete:
                some = f"served {_many(one.events, 'event')}, but maybe not all it has"
                told.append(f"{one.url} {some if one.events else 'served nothing'}: {one.reason}")
            elif one.lacks:
                told.append(
                    f"{one.url} lacks {one.lacks:,} of {_many(self.held, 'event')} that others have; "
                    "`discoclaw nostr push` gives them to it"
                )
            if dropped := sum(one.bad.values()):
                kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(one.bad.items()))
                told.append(f"{one.url} also sent {dropped:,} that were dropped unread ({kinds})")
        return told + self.behind.told([one.url for one in self.relays])

    def _of_memories(self) -> list[str]:
        told = [
            f"{_many(count, 'event')} can not be used, and are kept apart: {why}"
            for why, count in self.unread.items()
        ]
        if withheld := sum(one.withheld for one in self.ledgers):
            told.append(
                f"{_many(withheld, 'record')} never left the disk that wrote them, being confidential or "
                "holding a key; if that disk is gone, so are they"
            )
        for one in self.ledgers:
            if one.erased:
                told.append(
                    f"{one.subject}: {_many(one.erased, 'record')} erased here are still on relays; "
                    f"`discoclaw memory erase {one.subject}` once more has them deleted there too"
                )
            if one.refused:
                told.append(f"{one.subject}: nothing was taken: {one.refused}")
            if one.lost:
                told.append(
                    f"{one.subject}: {_many(len(one.lost), 'commit')} on no relay; what follows is kept; "
                    "once a relay is back that has them, recover again"
                )
        for subject, (gone, here) in self.erased_elsewhere.items():
            told.append(
                f"{subject}: {gone:,} of {_many(here, 'record')} here were erased elsewhere; they stay "
                f"until `discoclaw memory erase {subject}` erases them here too"
            )
        return told

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
            "memories": {one.subject: one.records for one in self.ledgers if one.records},
            "files": list(self.files),
            "warnings": self.warnings(),
            "sure": self.sure,
            "dry_run": self.dry,
        }


def _many(number: int, what: str) -> str:
    """A number of things: "1 event", "1,234 events"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
