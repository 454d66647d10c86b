"""How good an answer of ids is: recall, precision, silence, time. Knows data and systems, not the tables.

Recall is the share of a question's evidence that came back. Precision is strict: the share of evidence among
what came back, so that something related but not asked for counts as wrong; where nothing came back it is 0.
A question about nothing known has no recall; what counts is how much came back, and how often nothing did.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.figure import without_garbage
from bench.recall.data import Person, Question, Talk, Turn
from bench.recall.data_items import crowd
from bench.recall.systems import ItemSystem, TalkSystem
from discoclaw.core.item import Item, durable_line
from discoclaw.core.privacy import may_show
from discoclaw.core.text import utf16_length
from discoclaw.core.times import date_of

CUTS = (5, 12, 20)
MAX_CHARS = 2000
LIMIT = 60
"""More than 2,000 characters hold, and more than anybody would read."""
SIZES = (200, 2_000, 10_000)


class Searching(Protocol):
    """What both sorts of systems have."""

    def search(self, query: str, limit: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system returned to one question: ids, best first; how many fit the characters; ms it took."""

    asked: str
    question: Question
    ids: tuple[str, ...]
    fitting: int
    ms: float

    @property
    def must_not(self) -> bool:
        return not self.question.evidence

    @property
    def stale(self) -> bool:
        return not self.question.forbidden.isdisjoint(self.ids)

    def recall(self, most: int) -> float:
        return len(self.question.evidence.intersection(self.ids[:most])) / len(self.question.evidence)

    def precision(self, most: int) -> float:
        found = self.ids[:most]
        return len(self.question.evidence.intersection(found)) / len(found) if found else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Many answers of one system in figures; shares lie in 0…1, `p50` and `p95` are ms a question."""

    answered: int
    must_not: int
    recall: dict[int, float]
    recall_fitting: float
    precision_12: float
    precision_fitting: float
    precision_all: float
    stale: float | None
    returned: float
    silent: float
    p50: float
    p95: float


def ask_items(make: Callable[[], ItemSystem], people: Iterable[Person]) -> list[Answer]:
    """Every question about every person, to a fresh system each."""
    answers = []
    for person in people:
        for in_dm in (True, False):
            questions = [one for one in person.questions if one.in_dm is in_dm]
            items = [item for item in person.items if item.active and may_show(item, in_dm=in_dm)]
            system = make()
            system.load(items)
            lines = {item.id: durable_line(item) for item in items}
            answers += _ask(system, person.name, questions, lines)
    return answers


def ask_talks(make: Callable[[], TalkSystem], talks: Iterable[Talk]) -> list[Answer]:
    """Every question about every conversation, to a fresh system each."""
    answers = []
    for talk in talks:
        system = make()
        system.load(talk.turns)
        lines = {turn.id: turn_line(turn) for turn in talk.turns}
        answers += _ask(system, talk.name, talk.questions, lines)
    return answers


def turn_line(turn: Turn) -> str:
    """A turn as it would be shown: "- 2025-05-08 Ann: words"."""
    return f"- {date_of(turn.at_ms)} {turn.speaker}: {turn.text}"


def _ask(system: Searching, name: str, questions: Sequence[Question], lines: dict[str, str]) -> list[Answer]:
    if questions:
        system.search(
            questions[0].text, LIMIT
        )  # what a system learns of its documents is not the question's time
    answers = []
    with without_garbage():
        for question in questions:
            began = time.perf_counter()
            ids = tuple(system.search(question.text, LIMIT))
            took = (time.perf_counter() - began) * 1e3
            answers.append(Answer(name, question, ids, fitting(ids, lines), took))
    return answers


def fitting(ids: Sequence[str], lines: dict[str, str]) -> int:
    """How many whole lines stay within the characters, in their order, until one does not."""
    used = -1
    for number, one in enumerate(ids):
        used += utf16_length(lines[one]) + 1
        if used > MAX_CHARS:
            return number
    return len(ids)


def summarise(answers: Sequence[Answer]) -> Summary:
    """The figures of one system."""
    real = [one for one in answers if not one.must_not]
    vain = [one for one in answers if one.must_not]
    at_risk = [one for one in real if one.question.forbidden]
    times = sorted(one.ms for one in answers)
    return Summary(
        answered=len(real),
        must_not=len(vain),
        recall={cut: _mean(one.recall(cut) for one in real) for cut in CUTS},
        recall_fitting=_mean(one.recall(one.fitting) for one in real),
        precision_12=_mean(one.precision(12) for one in real),
        precision_fitting=_mean(one.precision(one.fitting) for one in real),
        precision_all=_mean(one.precision(LIMIT) for one in real),
        stale=_mean(one.stale for one in at_risk) if at_risk else None,
        returned=_mean(len(one.ids) for one in vain),
        silent=_mean(not one.ids for one in vain),
        p50=times[len(times) // 2],
        p95=times[int(len(times) * 0.95)],
    )


def by_kind(answers: Sequence[Answer], kinds: Iterable[str]) -> dict[str, float]:
    """Recall in 2,000 characters for each kind; for kinds that want nothing, how often nothing came."""
    figures = {}
    for kind in kinds:
        some = [one for one in answers if one.question.kind == kind]
        if some:
            vain = some[0].must_not
            figures[kind] = _mean(not one.ids if vain else one.recall(one.fitting) for one in some)
    return figures


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(found) if (found := list(values)) else 0.0


def latency(
    make: Callable[[], ItemSystem], size: int, queries: Sequence[str], seed: int
) -> tuple[float, float]:
    """Median and 95th percentile, ms a query, among `size` items of one person, once they were seen."""
    system = make()
    system.load(crowd(size, seed))
    return _times(system, queries)


def talk_latency(
    make: Callable[[], TalkSystem], size: int, queries: Sequence[str], seed: int
) -> tuple[float, float]:
    """The same among `size` turns; their words are those of items, said by two people in turn."""
    system = make()
    items = crowd(size, seed)
    turns = [Turn(f"t{n:05}", ("Ann", "Ben")[n % 2], one.text, one.created_at) for n, one in enumerate(items)]
    system.load(sorted(turns, key=lambda turn: turn.at_ms))
    return _times(system, queries)


def _times(system: Searching, queries: Sequence[str]) -> tuple[float, float]:
    system.search("warm", LIMIT)
    took = []
    with without_garbage():
        for query in queries:
            began = time.perf_counter()
            system.search(query, LIMIT)
            took.append((time.perf_counter() - began) * 1e3)
    took.sort()
    return took[len(took) // 2], took[int(len(took) * 0.95)]


def memory_per_1000(make: Callable[[], ItemSystem], seed: int, *, size: int = 10_000) -> float:
    """Bytes that a system keeps for 1,000 items, the items themselves left out."""
    items: list[Item] = crowd(size, seed)
    tracemalloc.start()
    try:
        system = make()
        system.load(items)
        system.search("where is the passport", LIMIT)
        return tracemalloc.get_traced_memory()[0] / size * 1000
    finally:
        tracemalloc.stop()
