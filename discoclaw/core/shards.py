"""Discord's shards: which of them a process serves, and which one an event comes to.

    auto        every shard, as many as Discord recommends
    0-3/8       shards 0 to 3 of 8; lists too: `0,4-5/8`
    2:4/16      the third of four equal parts of 16 shards; parts are numbered from 0

"of" may stand for "/", as in `0-3of8`, where a name can hold no slash.
Knows nothing about Discord's connections.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

AUTO: Final = "auto"
MOST: Final = 100_000
"""More shards than anybody has: a number beyond is a typo."""
_FORMS: Final = "use auto, 0-3/8 (shards 0 to 3 of 8) or 2:4/16 (the third of four parts of 16)"
_PART: Final = re.compile(r"(\d+):(\d+)", re.ASCII)
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards with these `ids`, of `count`. With one shard in all, it gets everything."""

    ids: tuple[int, ...]
    count: int

    @property
    def all(self) -> bool:
        """Whether there is no other shard."""
        return len(self.ids) == self.count

    def have(self, guild_id: str | None) -> bool:
        """Whether a server's events come to one of them. None stands for direct messages: shard 0."""
        return shard_of(guild_id, self.count) in self.ids

    def only(self, shard_id: int) -> "Shards":
        """One of them."""
        return Shards((shard_id,), self.count)

    def __str__(self) -> str:
        runs: list[list[int]] = []
        for one in self.ids:
            if runs and runs[-1][-1] == one - 1:
                runs[-1][1:] = [one]
            else:
                runs.append([one])
        return f"{','.join('-'.join(map(str, run)) for run in runs)}/{self.count}"


EVERY: Final = Shards((0,), 1)
"""The only shard: what a client has that does not shard."""
Wanted: TypeAlias = Shards | Literal["auto"]


def every(count: int) -> Shards:
    """All of so many shards."""
    return Shards(tuple(range(count)), count)


def shard_of(guild_id: str | None, count: int) -> int:
    """The shard, of so many, that a server's events come to, or those of direct messages."""
    return (int(guild_id) >> 22) % count if guild_id is not None else 0


def wanted(text: str) -> Wanted:
    """The shards that a text names. Raises ValueError with what is wrong."""
    plain = "".join(text.split()).lower()
    if plain == AUTO:
        return AUTO
    which, slash, number = plain.replace("of", "/").rpartition("/")
    if not slash or not which or not (number.isascii() and number.isdigit()):
        raise ValueError(_FORMS)
    count = int(number) if len(number) < 10 else MOST + 1
    if not 0 < count <= MOST:
        raise ValueError(f"the number of all shards must be from 1 to {MOST:,}")
    if part := _PART.fullmatch(which):
        return _part(int(part[1]), int(part[2]), count)
    return Shards(_ids(which, count), count)


def _part(number: int, parts: int, count: int) -> Shards:
    """One of several equal parts; the first ones are smaller where they cannot be equal."""
    if number >= parts:
        raise ValueError(f"there is no part {number} of {parts}; parts are numbered from 0")
    if parts > count:
        raise ValueError(f"{count} shards cannot be {parts} parts: some would have none")
    return Shards(tuple(range(number * count // parts, (number + 1) * count // parts)), count)


def _ids(which: str, count: int) -> tuple[int, ...]:
    found: set[int] = set()
    for run in which.split(","):
        if (ends := _RANGE.fullmatch(run)) is None:
            raise ValueError(f"{run!r} is not a shard or a range of shards; {_FORMS}")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last < first:
            raise ValueError(f"{run} runs backwards; write {last}-{first}")
        if last >= count:
            raise ValueError(f"there is no shard {last} of {count}; shards are numbered from 0")
        if twice := found & set(range(first, last + 1)):
            raise ValueError(f"shard {min(twice)} is named twice")
        found |= set(range(first, last + 1))
    return tuple(sorted(found))
