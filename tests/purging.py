"""Takes one part through the phases of a purge, as the registry of all parts does."""

from inspect import isawaitable

from discoclaw.core.purge import NOTHING_PURGED, Derived, Purge, Purged


def from_ram(part: Derived, purge: Purge) -> Purged:
    """Have it leave the RAM of a part, which must not block."""
    outcome = part.purge(purge, "ram")
    assert not isawaitable(outcome)
    return outcome or NOTHING_PURGED


async def from_disk(part: Derived, purge: Purge) -> Purged:
    """Have it leave the disk of a part."""
    outcome = part.purge(purge, "disk")
    return (await outcome if isawaitable(outcome) else outcome) or NOTHING_PURGED


async def from_all(part: Derived, purge: Purge) -> Purged:
    """Have it leave a part, from the first phase to the last."""
    removed = from_ram(part, purge) + await from_disk(part, purge)
    part.purge(purge, "done")
    return removed
