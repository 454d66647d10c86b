"""One group in RAM: its file as it was read, and what was seen since. Knows nothing about files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from discoclaw.core.profile import MOST_MEMBERS, Group


@dataclass(slots=True)
class Entry:
    """One group in RAM. Until it is `read`, it has only what was seen since the start."""

    group: Group = field(default=Group())
    members: dict[str, str] = field(default_factory=dict)
    """Names by id; the last speaker comes last."""
    topic: str | None = None
    content: bytes = b""
    read: bool = False
    unsaved: bool = False
    written: int = 0
    """When (ms) the file was last written."""
    told: tuple[tuple[object, ...], str] | None = None
    """The notes for prompts, and the view they were made from."""
    people: tuple[str, Mapping[str, frozenset[str]]] | None = None
    """The people whose words each item rests on, as of the commit that is named."""


def trimmed(members: dict[str, str]) -> bool:
    """Drop the members who have been silent longest. Returns whether there were too many."""
    crowded = len(members) > MOST_MEMBERS
    while len(members) > MOST_MEMBERS:
        del members[next(iter(members))]
    return crowded
