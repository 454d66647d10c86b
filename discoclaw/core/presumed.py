"""Which items are private only because the file they came in with doesn't say that they are open.

Such a file was imported, or is a durable file that was taken over. Pure.
"""

from collections.abc import Iterable

from discoclaw.core.event import Commit

PRESUMED = "presumed_private"
"""Key in a commit's metadata: the ids of these items, sorted."""


def presumed_private(commits: Iterable[Commit]) -> set[str]:
    """The ids of these items, shared since or not."""
    named = (commit.metadata.get(PRESUMED) for commit in commits)
    return {one for ids in named if isinstance(ids, list) for one in ids if isinstance(one, str)}


def kept_private(count: int) -> str:
    """The note about them for an admin. Only the people themselves can share them."""
    return (
        f"{count} kept private and out of channels, because the file doesn't say where that was said "
        "(in Discord, people share theirs with `!memory share imported`)"
    )
