"""Ours with one step left out, each a row of its own: what every step of the pipeline is worth.

A step is left out by putting something idle in its place while a variant loads and searches, so the program
itself needs no switches for it. A step of a mechanism is one row in `STEPS`: a constant or a function of a
module, where it is looked up, and what is idle instead. One process, one thread, one system at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from bench.recall import systems
from discoclaw.core import words
from discoclaw.recall import document, query, rank, score, spelling, talk

T = TypeVar("T", contravariant=True)
WITHOUT = " without "
Step = tuple[Any, str, Any]
"""Where, under which name, and what stands there instead."""


class System(Protocol[T]):
    """Finds something."""

    def load(self, documents: Sequence[T]) -> None: ...
    def search(self, query: str, limit: int) -> list[str]: ...


def _text_alone(*given: Any) -> document.Document:
    made = _DOCUMENT(*given)
    return document.Document(made.id, made.bag, made.length, frozenset(), made.dates, made.when)


_DOCUMENT = document._document
_NO_WORDS: Mapping[str, frozenset[str]] = {language: frozenset() for language in words.STOP_WORDS}

STEPS: dict[str, tuple[Step, ...]] = {
    "function words": ((words, "STOP_WORDS", _NO_WORDS),),
    "stems": ((words, "_stem", lambda language, word: word),),
    "rarity": ((score, "rarity", lambda containing, total: 1.0),),
    "short-text k1, b": ((score, "K1", 1.2), (score, "B", 0.75)),
    "aliases, kind, speaker": ((document, "_document", _text_alone),),
    "dates": (
        (document, "dates_in", lambda text: frozenset()),
        (document, "date_terms", lambda at_ms: frozenset()),
        (query, "dates_in", lambda text: frozenset()),
    ),
    "other words": ((score, "others_for", lambda term: ()),),
    "other spellings": ((spelling.Vocabulary, "near", lambda self, term: ()),),
    "evidence": ((score, "MOST_OF_IT", 0.0), (rank, "WEAK", 0.0)),
    "evidence of common words": ((score, "is_common", lambda term: False),),
    "weak ones dropped": ((rank, "WEAK", 0.0),),
    "names of others": ((query, "names_in", lambda text: frozenset()),),
    "links": ((rank, "_along_links", lambda found, known: None),),
    "neighbours": ((talk, "NEIGHBOUR", 0.0),),
    "named speaker": ((talk, "SPEAKER", 1.0),),
    "fused vectors": ((rank, "fuse", lambda texts, cosines, *weights: texts),),
    "outstanding vectors": ((rank, "outstanding", lambda cosines: []),),
    "names left out of the vector": ((systems, "question", lambda message, names: message),),
}  # fmt: skip
TALK_ALONE = ("neighbours", "named speaker")
ITEMS_ALONE = ("links", "weak ones dropped", "names of others")
VECTORS_ALONE = ("fused vectors", "outstanding vectors", "names left out of the vector")
FOR_ITEMS_WITH_VECTORS = tuple(name for name in STEPS if name not in TALK_ALONE)
FOR_ITEMS = tuple(name for name in FOR_ITEMS_WITH_VECTORS if name not in VECTORS_ALONE)
FOR_TALK = tuple(name for name in STEPS if name not in (*ITEMS_ALONE, *VECTORS_ALONE))


@dataclass(frozen=True, slots=True)
class Without(Generic[T]):
    """A system without a step."""

    inner: System[T]
    steps: tuple[Step, ...]

    def load(self, documents: Sequence[T]) -> None:
        with _replaced(self.steps):
            self.inner.load(documents)

    def search(self, query: str, limit: int) -> list[str]:
        with _replaced(self.steps):
            return self.inner.search(query, limit)


def leave_one_out(
    make: Callable[[], System[T]], steps: Sequence[str], whole: str
) -> dict[str, Callable[[], System[T]]]:
    """A system for each step, without it. `whole` is the row of the system with all of them."""

    def without(name: str) -> Callable[[], System[T]]:
        return lambda: Without(make(), STEPS[name])

    return {f"{whole}{WITHOUT}{name}": without(name) for name in steps}


def worthless(found: Mapping[str, object]) -> list[str]:
    """The rows of `leave_one_out` that found exactly what the whole system found, of all rows of a set."""
    return [
        name
        for name, ids in found.items()
        if (whole := name.partition(WITHOUT)[0]) in found and whole != name and found[whole] == ids
    ]


@contextmanager
def _replaced(steps: Sequence[Step]) -> Iterator[None]:
    before = [(place, name, getattr(place, name)) for place, name, _ in steps]
    try:
        for place, name, idle in steps:
            setattr(place, name, idle)
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
