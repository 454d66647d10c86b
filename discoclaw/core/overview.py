"""A running bot as its admin is shown it, as values: where it is, what waits, how far it is, whom it knows.

Knows nothing about Discord, disks and pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from discoclaw.core.health import State

Talks: TypeAlias = Literal["answers", "hears nothing", "can't write", "can't see"]
"""The bot's abilities in a channel."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a server."""

    id: str
    name: str
    talks: Talks


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the bot is in. `members` is None if Discord has not said how many there are.

    `channels` are at most as many as are shown, `more` the number of the others.
    """

    id: str
    name: str
    members: int | None
    available: bool
    channels: tuple[Channel, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """A connection to Discord. `latency_ms` is None as long as nothing was measured."""

    id: int
    connected: bool
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Connected:
    """The bot's servers. `total` counts servers, `servers` are those of the page `number` of `pages`."""

    ready: bool
    shards: tuple[Shard, ...]
    total: int
    servers: tuple[Server, ...] = ()
    number: int = 1
    pages: int = 1

    @property
    def down(self) -> int:
        """How many shards are not connected."""
        return sum(not one.connected for one in self.shards)


@dataclass(frozen=True, slots=True)
class Queue:
    """Work that waits. `about` says of what, `running` how much of it is under way (None: not known).

    `oldest` is when (ms) the oldest began to wait, `trouble` what is wrong with it.
    """

    name: str
    about: str
    waiting: int
    running: int | None = None
    oldest: int | None = None
    state: State = "good"
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Work with an end: `done` of `total` by now. `total` is None if that is not known."""

    name: str
    text: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A person, and how much the bot remembers about them. None: it was not counted.

    `changed` is when (ms) it last changed, `faults` whether the person's history has faults.
    """

    id: str
    name: str
    memories: int | None = None
    forgotten: int | None = None
    personas: int | None = None
    changes: int | None = None
    changed: int | None = None
    faults: bool = False
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class People:
    """Some of the people, those whose memory changed last first, and how many there are."""

    total: int
    shown: Sequence[Known]
    number: int
    """The number of the page, from 1 on."""
    pages: int
