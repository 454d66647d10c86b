"""What has to be published: the difference between the desired state and what is published already.

A ledger record that is published but not on this disk stays published: the disk may have been lost, and
only an erasure deletes anything on relays. There is one exception: when a record is withheld now and needs
fewer events than before, the extra ones are removed.

A record that is on this disk but was deleted on relays was erased by another replica. It is not published
again; what was added since then is. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from discoclaw.nostr.names import INVENTORY, LEDGER
from discoclaw.nostr.outgoing.ledger_view import is_withheld
from discoclaw.nostr.outgoing.outbox import Row, UnitInventory
from discoclaw.nostr.outgoing.signing import Change
from discoclaw.nostr.outgoing.views import DesiredState
from discoclaw.nostr.schemas import APP, DELETE, SUMMARY, UNIQUE, Address, EventTemplate

Published = Mapping[Address, Row]
"""What is published, by kind and `d`."""
MAX_UNITS: Final = 250
"""Units in one event of the inventory. At about 130 bytes each, that stays below the size limit."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes to sign. `lost` counts published records that are not on this disk."""

    changes: tuple[Change, ...] = ()
    lost: int = 0


def difference(
    desired: DesiredState, published: Published, *, allow_plaintext: bool = False, erasing: bool = False
) -> Difference:
    """The changes that turn what is published of a unit into its desired state.

    `erasing`: records or a summary that are not on disk any more were erased, so they go. Without
    `allow_plaintext`, events that are published as plaintext are replaced, and their versions deleted.
    """
    is_erased = _is_erased(desired, published)
    fresh = [
        one
        for one in desired.templates
        if _hides_plaintext(one, published, allow_plaintext=allow_plaintext)
        or (_is_new(one, published) and not _stays_deleted(one, published, is_erased=is_erased))
    ]
    live = {(one.kind, one.d): row for one in fresh if (row := published.get((one.kind, one.d))) is not None}
    # An item has become confidential, so older versions of views, which may show it, are deleted too.
    has_turned = any(is_withheld(one) and _is_live(live.get((one.kind, one.d))) for one in fresh)
    changes = []
    for one in fresh:
        row = live.get((one.kind, one.d))
        purge = _is_live(row) and (
            has_turned or _hides_plaintext(one, published, allow_plaintext=allow_plaintext)
        )
        changes.append(Change(one, row.ts if row is not None else 0, purge))
    removed, lost = _removed(desired, published, erasing=erasing)
    tombstones = (Change.tombstone_at(row.kind, row.d, row.ts) for row in removed)
    return Difference((*changes, *tombstones), lost)


def all_tombstones(published: Published) -> list[Change]:
    """A tombstone for everything that is published."""
    return [Change.tombstone_at(row.kind, row.d, row.ts) for row in _live(published)]


def _is_new(template: EventTemplate, published: Published) -> bool:
    row = published.get((template.kind, template.d))
    return row is None or row.tombstone or row.digest != template.digest


def _hides_plaintext(template: EventTemplate, published: Published, *, allow_plaintext: bool) -> bool:
    """Whether the published version is plaintext, and must not be any more."""
    row = published.get((template.kind, template.d))
    return row is not None and row.plaintext and not (allow_plaintext and template.plaintext_ok)


def _is_erased(desired: DesiredState, published: Published) -> bool:
    """Whether another replica erased all records of the ledger, and nothing was added since."""
    records = [row for row in published.values() if row.d.startswith(LEDGER)]
    return (
        desired.ledger.size > 0
        and len(records) > 0
        and all(row.tombstone for row in records)
        and all((one.kind, _record_address(one.d)) in published for one in desired.records)
    )


def _stays_deleted(template: EventTemplate, published: Published, *, is_erased: bool) -> bool:
    """Whether the tombstone at an address is about exactly this content, and not about an earlier one."""
    is_record = template.d.startswith(LEDGER)
    row = published.get((template.kind, _record_address(template.d) if is_record else template.d))
    if not (row is not None and row.tombstone):
        return False
    if is_record or template.kind in UNIQUE:
        return True
    return is_erased or (template.kind == SUMMARY and template.at < row.ts)


def _is_live(row: Row | None) -> bool:
    return row is not None and not row.tombstone


def _live(published: Published) -> Iterator[Row]:
    return (row for row in published.values() if not row.tombstone and row.kind != DELETE)


def _removed(desired: DesiredState, published: Published, *, erasing: bool) -> tuple[list[Row], int]:
    """What has to be removed, and how many records are kept although they are not on this disk."""
    addresses = {(one.kind, one.d) for one in desired.templates}
    records = {one.d for one in desired.records}
    removed, lost = [], 0
    for row in _live(published):
        if (row.kind, row.d) in addresses:
            continue
        if not row.d.startswith(LEDGER):
            removed += [row] if row.kind in desired.complete or (erasing and row.kind == SUMMARY) else []
        elif _record_address(row.d) in records or (erasing and desired.full):
            removed.append(row)
        elif desired.full:
            lost += 1
    return removed, lost


def _record_address(d: str) -> str:
    """The address of a record, given that of one of its parts."""
    return ":".join(d.split(":")[:4])


# ---------------------------------------------------------------------- the inventory


def inventory(units: Mapping[str, UnitInventory]) -> DesiredState:
    """The events that say what is published of every unit.

    With them, recovery notices a relay that serves less.

    Units are sharded by the first hex digits of their hash, as many as needed for each shard to fit an event.
    """
    digits = 1
    while max(_shard_sizes(units, digits), default=0) > MAX_UNITS:
        digits += 1
    shards: dict[str, dict[str, list[object]]] = {}
    for unit, one in sorted(units.items()):
        shards.setdefault(unit[:digits], {})[unit] = [one.records, one.digest, one.newest]
    templates = [
        EventTemplate(APP, f"{INVENTORY}{shard}", {"units": found}) for shard, found in sorted(shards.items())
    ]
    return DesiredState(views=tuple(templates), complete=frozenset({APP}))


def _shard_sizes(units: Iterable[str], digits: int) -> Iterable[int]:
    counts: dict[str, int] = {}
    for unit in units:
        counts[unit[:digits]] = counts.get(unit[:digits], 0) + 1
    return counts.values()
