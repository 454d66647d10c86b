"""`python -m bench.recall [--seed N] [--json] [--misses]`: how well memory is found, and how fast.

Prints and writes nothing. Even seeds are for reports, odd ones for development; make a ranker better with
an odd seed and look at an even one afterwards. Nothing is asserted: the figures are for a person to judge.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from bench.recall import report, score
from bench.recall.data import DEVELOP_SEED, REPORT_SEED, Question
from bench.recall.data_asked import people
from bench.recall.data_talk_asked import talks
from bench.recall.score import SIZES
from bench.recall.systems import (
    ITEM_SYSTEMS,
    OURS_FOR_ITEMS,
    OURS_FOR_TALK,
    TALK_SYSTEMS,
    ItemSystem,
    OurArchive,
    Ours,
    TalkSystem,
)
from bench.recall.variants import FOR_ITEMS, FOR_TALK, leave_one_out

WIDTH = 170
TIMED = {200: 200, 2_000: 60, 10_000: 30}
"""How many queries are timed among so many documents."""


def main() -> None:
    """Ask every system everything, and print the tables."""
    asked = _arguments()
    progress = Console(stderr=True, highlight=False)
    of_items, of_talk = ITEM_SYSTEMS, TALK_SYSTEMS
    if asked.without:
        of_items = {**OURS_FOR_ITEMS, **leave_one_out(Ours, FOR_ITEMS)}
        of_talk = {**OURS_FOR_TALK, **leave_one_out(OurArchive, FOR_TALK)}
    sizes = SIZES if not asked.without else ()
    sets = {
        "items": lambda: _items(of_items, asked.seed, sizes, progress),
        "talk": lambda: _talk(of_talk, asked.seed, sizes, progress),
    }
    wanted = asked.only or list(sets)
    made = {name: sets[name]() for name in wanted}
    if asked.json:
        figures = {name: report.to_json(answers, times) for name, (answers, times, _) in made.items()}
        print(json.dumps({"seed": asked.seed, **figures}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    for name, (answers, times, texts) in made.items():
        console.print(report.overview(f"{name}, seed {asked.seed}", answers))
        if not asked.without:
            console.print(report.kinds(name, answers))
            console.print(report.times(f"ms a query among so many {name}, p50 / p95", times))
        if asked.misses:
            _print_misses(console, answers, texts)
    if "items" in wanted:
        _print_memory(console, asked.seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=sys.modules[__name__].__doc__)
    parser.add_argument("--seed", type=int, default=REPORT_SEED, help=f"development: {DEVELOP_SEED}")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--misses", action="store_true", help="list what ours, else the last, got wrong")
    parser.add_argument("--without", action="store_true", help="ours alone, with each step left out in turn")
    parser.add_argument("--only", choices=("items", "talk"), action="append", help="one of the two sets")
    return parser.parse_args()


Made = tuple[report.Answers, report.Times, dict[str, str]]


def _items(
    systems: Mapping[str, Callable[[], ItemSystem]], seed: int, sizes: Sequence[int], progress: Console
) -> Made:
    every = people(seed)
    queries = _some([one for person in every for one in person.questions])
    answers, times = {}, {}
    for name, make in systems.items():
        answers[name] = score.ask_items(make, every)
        times[name] = {size: score.latency(make, size, queries[: TIMED[size]], seed) for size in sizes}
        progress.print(f"items: {name}")
    return answers, times, {item.id: item.text for person in every for item in person.items}


def _talk(
    systems: Mapping[str, Callable[[], TalkSystem]], seed: int, sizes: Sequence[int], progress: Console
) -> Made:
    every = talks(seed)
    queries = _some([one for talk in every for one in talk.questions])
    answers, times = {}, {}
    for name, make in systems.items():
        answers[name] = score.ask_talks(make, every)
        times[name] = {size: score.talk_latency(make, size, queries[: TIMED[size]], seed) for size in sizes}
        progress.print(f"talk: {name}")
    return answers, times, {turn.id: score.turn_line(turn) for talk in every for turn in talk.turns}


def _some(questions: Sequence[Question]) -> list[str]:
    """Queries of all kinds, spread over all questions."""
    most = max(TIMED.values())
    return [one.text for one in questions[:: max(1, len(questions) // most)]]


def _print_misses(console: Console, answers: report.Answers, texts: dict[str, str]) -> None:
    ours = [name for name in answers if name in {**OURS_FOR_ITEMS, **OURS_FOR_TALK}]
    name = ours[0] if ours else list(answers)[-1]
    console.print(f"\nWhat “{name}” got wrong:", markup=False)
    for line in report.misses(answers[name], texts):
        console.print(line, markup=False, soft_wrap=True)


def _print_memory(console: Console, seed: int) -> None:
    for name, make in OURS_FOR_ITEMS.items():
        kept = score.memory_per_1000(make, seed)
        console.print(f"{name}: keeps {kept / 1000:,.0f} kB for 1,000 items, besides the items")


if __name__ == "__main__":
    main()
