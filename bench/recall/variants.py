"""Ours with one step left out, each a row of its own: what every step of the pipeline is worth.

A step is left out by putting something idle in its place while a variant loads and searches, so the program
itself needs no switches for it. A step of a mechanism is one row in `STEPS`: a constant or a function of a
module, where it is looked up, and what is idle instead. One process, one thread, one system at a time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from bench.recall import systems
from discoclaw.core import visible, words
from discoclaw.recall import document, evidence, index, rank, talk, terms

T = TypeVar("T", contravariant=True)
WITHOUT = " without "
Step = tuple[Any, str, Any]
"""Where, under which name, and what stands there instead."""


class System(Protocol[T]):
    """Finds something."""

    def load(self, documents: Sequence[T]) -> None: ...
    def search(self, query: str, limit: int) -> list[str]: ...


def _text_alone(*given: Any) -> document.Document:
    return replace(_DOCUMENT(*given), marks=frozenset(), given=(), written=())


def _loose(one: str, other: str, shared: int) -> bool:
    """Whether one word is the beginning of the other, or they differ in their last letters."""
    shorter, longer = sorted((shared + len(one), shared + len(other)))
    return (shared == shorter and longer - shorter <= shorter // 2) or shared == longer - 1


_DOCUMENT, _ASKED_OF, _OUTSTANDING = document._document, terms.asked_of, rank.outstanding
_NO_WORDS: Mapping[str, frozenset[str]] = {language: frozenset() for language in words.STOP_WORDS}

STEPS: dict[str, tuple[Step, ...]] = {
    "function words": ((words, "STOP_WORDS", _NO_WORDS),),
    "stems": ((words, "_stem", lambda language, word: word),),
    "courtesies": ((words.Tokens, "asks_nothing", False),),
    "rarity": ((terms, "rarity", lambda containing, total: 1.0),),
    "short-text k1, b": ((index, "K1", 1.2), (index, "B", 0.75)),
    "aliases, kind, speaker": ((document, "_document", _text_alone),),
    "dates": (
        (document, "dates_in", lambda text: frozenset()),
        (document, "date_terms", lambda at_ms: frozenset()),
    ),
    "other words": ((terms, "others_for", lambda term: ()),),
    "other spellings": ((terms.Vocabulary, "near", lambda self, term: ()),),
    "strict endings": ((terms, "_endings", _loose),),
    "sentence by sentence": ((document, "_BREAK", re.compile(r"(?!)")),),
    "evidence": (
        (evidence, "_is_evidence", lambda has, topic, many, *, strange: True),
        (evidence, "_undone", lambda evident, found: set(evident)),
    ),
    "evidence of common words": ((terms, "is_common", lambda term: False),),
    "two terms together": ((evidence, "TOGETHER", 2.0),),
    "more evidence in long messages": ((evidence, "IN_PASSING", 0.0),),
    "complete names": ((evidence.Matches, "_name", lambda self, found: None),),
    "nearly the score of what is named": ((evidence, "NEARLY", 0.0),),
    "clearly less": ((evidence, "CLEARLY_LESS", 0.0),),
    "weak ones dropped": ((rank, "WEAK", 0.0),),
    "names of others": ((rank, "asked_of", lambda *given, own_name=None: _ASKED_OF(*given)),),
    "another of the same name": ((terms, "_without_namesakes", lambda asked, names: list(asked)),),
    "learned together": ((rank, "learned_together", lambda found, known: None),),
    "links": ((rank, "along_links", lambda found, known: None),),
    "latest first": ((rank, "latest_first", lambda found: None),),
    "topics of a sentence": ((document, "_parts", lambda sentence, tokens: [tokens]),),
    "questions after a comma": ((document, "_asked_apart", lambda listed: [", ".join(listed)]),),
    "forms of other languages": ((words.Tokens, "forms", lambda self, languages=(): {}),),
    "accounts": ((document, "_ACCOUNT", re.compile(r"(?!)")),),
    "learned beside it": ((rank, "_learned_beside", lambda one, items: []),),
    "words of one day": ((visible.VisibleItems, "days", property(lambda self: dict(self.texts))),),
    "mentions of the best": ((rank, "MOST_MENTIONS", 0),),
    "possibly related": ((rank, "with_possible", lambda found, cosines, naming: None),),
    "neighbours": ((talk, "NEIGHBOUR", 0.0),),
    "named speaker": ((talk, "SPEAKER", 1.0),),
    "talk by its meaning": ((talk, "_fused", lambda ranked, meant, around: list(ranked)),),
    "talk found by its meaning alone": ((talk, "MOST_BY_MEANING", 0),),
    "clearly nearer than usual": ((talk, "CLEARLY", -1.0),),
    "fused vectors": ((rank, "fuse", lambda texts, cosines, *weights: texts),),
    "outstanding vectors": ((rank, "outstanding", lambda cosines, floor: []),),
    "floor of the cosine": ((rank, "outstanding", lambda cosines, floor: _OUTSTANDING(cosines)),),
    "names left out of the vector": ((systems, "question", lambda message, names: message),),
}  # fmt: skip
MEANING_OF_TALK = {
    "talk by its meaning",
    "talk found by its meaning alone",
    "clearly nearer than usual",
}
TALK_ALONE = {"neighbours", "named speaker", *MEANING_OF_TALK}
VECTORS_ALONE = {
    "fused vectors",
    "outstanding vectors",
    "floor of the cosine",
    "names left out of the vector",
}
ITEMS_ALONE = {
    "complete names",
    "nearly the score of what is named",
    "weak ones dropped",
    "names of others",
    "learned together",
    "links",
    "latest first",
    "words of one day",
    "mentions of the best",
    "accounts",
    "learned beside it",
    "possibly related",
}
FOR_ITEMS_WITH_VECTORS = tuple(name for name in STEPS if name not in TALK_ALONE)
FOR_ITEMS = tuple(name for name in FOR_ITEMS_WITH_VECTORS if name not in VECTORS_ALONE)
FOR_TALK = tuple(name for name in STEPS if name not in ITEMS_ALONE | VECTORS_ALONE | MEANING_OF_TALK)
FOR_TALK_WITH_VECTORS = (
    *FOR_TALK,
    *(name for name in STEPS if name in MEANING_OF_TALK | {"names left out of the vector"}),
)


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
