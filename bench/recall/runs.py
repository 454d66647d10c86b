"""Runs the rows of each table over everything that is asked: people, talk, cases, prompts. Prints nothing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from bench.recall import report, score
from bench.recall.cases import KINDS
from bench.recall.cases_run import Answers, Asked, ask_cases
from bench.recall.data import Person, Question
from bench.recall.data_asked import people
from bench.recall.data_talk_asked import talks
from bench.recall.prompts import Contents, contents
from bench.recall.systems import (
    WITH_VECTORS,
    ItemSystem,
    OurArchive,
    Ours,
    TalkSystem,
    item_systems,
    ours_for_items,
    ours_for_talk,
    talk_systems,
)
from bench.recall.variants import (
    FOR_ITEMS,
    FOR_ITEMS_WITH_VECTORS,
    FOR_TALK,
    FOR_TALK_WITH_VECTORS,
    leave_one_out,
)
from bench.recall.vectors import Vectors, made_up, question

TIMED = {200: 200, 2_000: 60, 10_000: 30}
"""How many queries are timed among so many documents."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked of which systems. `without`: ours alone, with each step left out in turn.

    `say` is told what is done.
    """

    seed: int
    cases: Asked
    without: bool
    vectors: Vectors | None
    say: Callable[[str], None]

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes of memory among which the rows are timed."""
        return () if self.without else score.SIZES

    def item_rows(self) -> Mapping[str, Callable[[], ItemSystem]]:
        """The systems that find items."""
        if not self.without:
            return item_systems(self.vectors)
        rows: dict[str, Callable[[], ItemSystem]] = {}
        for name, make in ours_for_items(self.vectors).items():
            steps = FOR_ITEMS_WITH_VECTORS if name == WITH_VECTORS else FOR_ITEMS
            rows |= {name: make, **leave_one_out(make, steps, name)}
        return rows

    def talk_rows(self) -> Mapping[str, Callable[[], TalkSystem]]:
        """The systems that find turns."""
        if not self.without:
            return talk_systems(self.vectors)
        rows: dict[str, Callable[[], TalkSystem]] = {}
        for name, make in ours_for_talk(self.vectors).items():
            steps = FOR_TALK_WITH_VECTORS if name == WITH_VECTORS else FOR_TALK
            rows |= {name: make, **leave_one_out(make, steps, name)}
        return rows


@dataclass(frozen=True, slots=True)
class Questions:
    """What was found for the questions of a set, how long it took by size, and the texts by id."""

    answers: report.Answers
    times: report.Times
    texts: Mapping[str, str] = field(repr=False)


def learn(run: Run, wanted: Collection[str]) -> None:
    """Embed what the wanted sets ask and find, so that no row waits for it."""
    assert run.vectors is not None
    texts: list[str] = []
    if not {"items", "prompts"}.isdisjoint(wanted):
        for person in people(run.seed):
            texts += [item.text for item in person.items]
            texts += [Ours().embedded(one.text) for one in person.questions]
    if "talk" in wanted:
        for talk in talks(run.seed):
            texts += [turn.text for turn in talk.turns]
            texts += [question(one.text, talk.speakers) for one in talk.questions]
    if not {"cases", "prompts"}.isdisjoint(wanted):
        for case in [case for kind in KINDS for case in run.cases.of(kind)]:
            asked = question(case.message, [case.own_name])
            texts += [*(item.text for item in case.items), asked]
    run.say(f"vectors: {run.vectors.learn(filter(None, texts))} made")


def of_items(run: Run) -> Questions:
    """The questions about people."""
    every = people(run.seed)
    queries = _some([one for person in every for one in person.questions])
    rows = run.item_rows()
    timed = {**rows, WITH_VECTORS: lambda: Ours(made_up())}
    answers, times = {}, {}
    for name, make in rows.items():
        answers[name] = score.ask_items(make, every)
        times[name] = {
            size: score.latency(timed[name], size, queries[: TIMED[size]], run.seed) for size in run.sizes
        }
        run.say(f"items: {name}")
    return Questions(answers, times, {item.id: item.text for person in every for item in person.items})


def of_talk(run: Run) -> Questions:
    """The questions about earlier messages."""
    every = talks(run.seed)
    queries = _some([one for talk in every for one in talk.questions])
    rows = run.talk_rows()
    timed = {**rows, WITH_VECTORS: lambda: OurArchive(made_up())}
    answers, times = {}, {}
    for name, make in rows.items():
        answers[name] = score.ask_talks(make, every)
        times[name] = {
            size: score.talk_latency(timed[name], size, queries[: TIMED[size]], run.seed)
            for size in run.sizes
        }
        run.say(f"talk: {name}")
    texts = {turn.id: score.turn_line(turn) for talk in every for turn in talk.turns}
    return Questions(answers, times, texts)


def of_cases(run: Run) -> dict[str, Answers]:
    """The cases, by system."""
    found = {}
    for name, make in run.item_rows().items():
        found[name] = ask_cases(make, run.cases)
        run.say(f"cases: {name}")
    return found


def of_prompts(run: Run) -> list[Contents]:
    """What prompts hold, chosen by ours."""
    every: Sequence[Person] = people(run.seed)
    return contents(ours_for_items(run.vectors), every, run.cases, run.seed, say=run.say)


def _some(questions: Sequence[Question]) -> list[str]:
    """Queries of all kinds, spread over all questions."""
    most = max(TIMED.values())
    return [one.text for one in questions[:: max(1, len(questions) // most)]]
