"""The vectors of archived messages, whatever they are stored in. Blocking.

A message that is deleted, edited, or taken back loses its vector in the same transaction as its words. The
signs of vectors choose which of them are compared (`signatures`). Raises what an implementation raises.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from discoclaw.core.entry import Entry
from discoclaw.search.signatures import cosines

T = TypeVar("T")

FEWEST_TERMS = 2
"""A message of fewer terms gets no vector: "haha" and "me too" are near to everything that is as short."""
NEAREST = 150
"""How many of the nearest signatures are compared by their vectors."""
NEAR = 30
"""How many of these are candidates."""
USUAL = 64
"""From how many messages the usual cosine of a question is taken."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider of vectors: `model`, and `most` texts a day, None for any number.

    `here`: it runs on this machine, so that it may see private talk.
    """

    model: str
    here: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to embed, the newest first. `spent`: more are waiting, but not for today.

    `token` tells whether the model was replaced since.
    """

    entries: tuple[Entry, ...] = ()
    spent: bool = False
    token: int = 0


class VectorReader(Protocol):
    """Reads the vectors of one archive for a question. There may be none."""

    def nearest(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        """The ids of the messages at these places whose signs differ least from a question's; ties by id."""
        ...

    def some(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        """At most so many ids of these places, spread over all of them; the same ones for the same ids.

        None if the vectors have another length than the question.
        """
        ...

    def vectors(self, numbers: Collection[int], length: int) -> list[tuple[int, bytes]]:
        """The vectors of messages, if they have this length; in the order of the ids."""
        ...


class VectorWriter(Protocol):
    """The tables of vectors of one archive, in one transaction."""

    def state(self) -> tuple[str, int]:
        """The model that made the vectors, and their length, 0 if that is not known yet."""
        ...

    def starts(self) -> int:
        """How often other processes removed all vectors, to make new ones: a number that only grows."""
        ...

    def start_over(self, dims: int) -> None:
        """Remove all vectors, to make new ones of another length; 0 if that is not known yet."""
        ...

    def set_dims(self, dims: int) -> None:
        """Set the length of the vectors."""
        ...

    def sent(self, day: int) -> int:
        """How many texts were sent on a day."""
        ...

    def spend(self, texts: int, day: int) -> None:
        """Count texts as sent on a day, before they are: a provider may charge for what fails, too."""
        ...

    def waiting(self, place: str | None, without: Collection[int], most: int) -> list[int]:
        """The newest messages of a place (None for any) that need a vector, but for those with these ids."""
        ...

    def entries(self, numbers: Collection[int]) -> tuple[Entry, ...]:
        """The messages of these ids, the newest first."""
        ...

    def leave_out(self, ids: Iterable[str]) -> None:
        """Remove messages from those that need a vector."""
        ...

    def put(self, made: Mapping[Entry, bytes]) -> None:
        """Store vectors, and remove their messages from those that need one.

        What became of a message meanwhile decides: of one that is gone, or has another text by now, nothing
        is stored.
        """
        ...


class StoredVectors(Protocol):
    """The vectors of one archive."""

    @property
    def size(self) -> int:
        """The bytes in RAM."""
        ...

    @property
    def dims(self) -> int:
        """The length of the vectors, 0 if there are none, or if that is not known yet. Never blocks."""
        ...

    def compares(self, length: int) -> bool:
        """Whether a question's vector of this length may be compared with these. Never blocks."""
        ...

    def change(self, work: Callable[[VectorWriter], T], nothing: T, *, model: str | None = None) -> T:
        """Return what work in one transaction returns, or `nothing` if there is no archive, or no tables.

        With a model the tables are made if there are none, and vectors of another model are removed first.
        Raises MemoryFault.
        """
        ...


# ---------------------------------------------------------------------- making


def take(
    writer: VectorWriter,
    provider: Provider,
    *,
    most: int,
    day: int,
    without: Collection[int],
    open_places: Collection[str],
) -> Batch:
    """Up to `most` messages to embed on a day (a number), but for those with the ids in `without`.

    A provider elsewhere gets only those of the open places.
    """
    left = most if provider.most is None else min(most, provider.most - writer.sent(day))
    found: list[int] = []
    for place in (None,) if provider.here else open_places:
        found += writer.waiting(place, without, max(1, left))
    entries = writer.entries(sorted(found, reverse=True)[: max(0, left)])
    return Batch(entries, spent=left <= 0 and bool(found))


def keep(writer: VectorWriter, provider: Provider, made: Mapping[Entry, bytes]) -> None:
    """Store vectors of one length. Vectors of another length are removed, to be made again."""
    model, dims = writer.state()
    if not made or model != provider.model:
        return
    length = len(next(iter(made.values())))
    if dims not in (0, length):
        writer.start_over(length)
    if dims != length:
        writer.set_dims(length)
    writer.put(made)


# ---------------------------------------------------------------------- asking


def near(reader: VectorReader, question: Sequence[float], places: Sequence[str]) -> dict[int, float]:
    """The ids of the messages at these places that are nearest to a question, best first, and the cosines."""
    found = cosines_of(reader, question, reader.nearest(question, places, NEAREST))
    return dict(sorted(found.items(), key=lambda one: (-one[1], -one[0]))[:NEAR])


def usual(
    reader: VectorReader, question: Sequence[float], places: Sequence[str], *, without: Collection[int]
) -> float:
    """The mean cosine of a question with what was said at these places, but for the nearest messages."""
    some = set(reader.some(question, places, USUAL)).difference(without)
    found = cosines_of(reader, question, sorted(some))
    return math.fsum(found.values()) / len(found) if found else 0.0


def cosines_of(reader: VectorReader, question: Sequence[float], numbers: Collection[int]) -> dict[int, float]:
    """The cosines of a question with those of the messages that have a vector of its length."""
    rows = reader.vectors(numbers, len(question)) if numbers else []
    return dict(zip((row[0] for row in rows), cosines(question, [row[1] for row in rows]), strict=True))
