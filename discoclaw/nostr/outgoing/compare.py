"""What has to be published: the difference between what is wanted and what stands there already.

What is published of a ledger and not on this disk stays: a disk may have been lost, and that deletes nothing
on relays; only an erasing does. A record of which less is left than was published, since it is withheld now,
is no exception: what was more of it goes.

What is on this disk and was deleted on relays was erased by another replica. It is not published again; what
is new since then is. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from discoclaw.nostr.names import INDEX, LEDGER
from discoclaw.nostr.outgoing.ledger_view import is_withheld
from discoclaw.nostr.outgoing.outbox import Row, UnitIndex
from discoclaw.nostr.outgoing.scribe import Publication
from discoclaw.nostr.outgoing.views import Look
from discoclaw.nostr.schemas import APP, DELETE, SUMMARY, UNIQUE, Address, Wanted

Known = Mapping[Address, Row]
"""What is published, by kind and `d`."""
MOST_UNITS: Final = 250
"""Units in one event of the index: about 130 bytes each."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is to be signed. `lost` are published records that are not on this disk any more."""

    changes: tuple[Publication, ...] = ()
    lost: int = 0


def difference(look: Look, known: Known, *, in_clear: bool = False, erasing: bool = False) -> Difference:
    """The difference between what is wanted of a unit and all that is known of it.

    `erasing`: what is not on disk any more of its ledger, or its summary, was erased. `in_clear`: what may be
    in clear, is; what is and may not be is replaced, and asked to be deleted.
    """
    is_over = _is_over(look, known)
    fresh = [
        one
        for one in look.wanted
        if _closes(one, known, in_clear=in_clear)
        or (_is_new(one, known) and not _stays_gone(one, known, is_over=is_over))
    ]
    live = {(one.kind, one.d): row for one in fresh if (row := known.get((one.kind, one.d))) is not None}
    # An item has become confidential: what views said of it before has to go like the records.
    turned = any(is_withheld(one) and _is_live(live.get((one.kind, one.d))) for one in fresh)
    changes = []
    for one in fresh:
        row = live.get((one.kind, one.d))
        purge = _is_live(row) and (turned or _closes(one, known, in_clear=in_clear))
        changes.append(Publication(one, row.ts if row is not None else 0, purge))
    gone, lost = _gone(look, known, erasing=erasing)
    return Difference((*changes, *(Publication.away(row.kind, row.d, row.ts) for row in gone)), lost)


def all_gone(known: Known) -> list[Publication]:
    """Nothing of all that is known is to stand there any more."""
    return [Publication.away(row.kind, row.d, row.ts) for row in _live(known)]


def _is_new(wanted: Wanted, known: Known) -> bool:
    row = known.get((wanted.kind, wanted.d))
    return row is None or row.gone or row.digest != wanted.digest


def _closes(wanted: Wanted, known: Known, *, in_clear: bool) -> bool:
    """Whether what stands there can be read by anybody, and that is not to be so."""
    row = known.get((wanted.kind, wanted.d))
    return row is not None and row.clear and not (in_clear and wanted.open)


def _is_over(look: Look, known: Known) -> bool:
    """Whether all that a ledger holds was erased by another replica, and nothing was added since."""
    published = [row for row in known.values() if row.d.startswith(LEDGER)]
    return (
        look.seen.size > 0
        and len(published) > 0
        and all(row.gone for row in published)
        and all((one.kind, _head(one.d)) in known for one in look.records)
    )


def _stays_gone(wanted: Wanted, known: Known, *, is_over: bool) -> bool:
    """Whether what was deleted under an address is this very thing, and no later one."""
    row = known.get((wanted.kind, _head(wanted.d) if wanted.d.startswith(LEDGER) else wanted.d))
    if not (row is not None and row.gone):
        return False
    if wanted.d.startswith(LEDGER) or wanted.kind in UNIQUE:
        return True
    return is_over or (wanted.kind == SUMMARY and wanted.at < row.ts)


def _is_live(row: Row | None) -> bool:
    return row is not None and not row.gone


def _live(known: Known) -> Iterator[Row]:
    return (row for row in known.values() if not row.gone and row.kind != DELETE)


def _gone(look: Look, known: Known, *, erasing: bool) -> tuple[list[Row], int]:
    """What stands there and is not wanted any more, and how much is kept though it is not on this disk."""
    wanted = {(one.kind, one.d) for one in look.wanted}
    heads = {one.d for one in look.records}
    gone, lost = [], 0
    for row in _live(known):
        if (row.kind, row.d) in wanted:
            continue
        if not row.d.startswith(LEDGER):
            gone += [row] if row.kind in look.settled or (erasing and row.kind == SUMMARY) else []
        elif _head(row.d) in heads or (erasing and look.whole):
            gone.append(row)
        elif look.whole:
            lost += 1
    return gone, lost


def _head(d: str) -> str:
    """The address of a record, given that of one of its parts."""
    return ":".join(d.split(":")[:4])


# ---------------------------------------------------------------------- the index


def index(units: Mapping[str, UnitIndex]) -> Look:
    """The events that say what is published of every unit, by which a relay that serves less is found out.

    Units are divided by the beginning of their marks, so long that each part fits into one event.
    """
    digits = 1
    while max(_sizes(units, digits), default=0) > MOST_UNITS:
        digits += 1
    parts: dict[str, dict[str, list[object]]] = {}
    for mark, one in sorted(units.items()):
        parts.setdefault(mark[:digits], {})[mark] = [one.records, one.digest, one.newest]
    wanted = [Wanted(APP, f"{INDEX}{part}", {"units": found}) for part, found in sorted(parts.items())]
    return Look(views=tuple(wanted), settled=frozenset({APP}))


def _sizes(units: Iterable[str], digits: int) -> Iterable[int]:
    counts: dict[str, int] = {}
    for mark in units:
        counts[mark[:digits]] = counts.get(mark[:digits], 0) + 1
    return counts.values()
