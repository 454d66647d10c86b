"""`python -m bench.recall [--seed N] [--json] [--misses] [--without] …`: how well memory is found, how fast.

Prints tables, and writes nothing. Even seeds are for reports, odd ones for development; make a ranker better
with an odd seed and look at an even one afterwards. The cases have a part to develop with, and a final part,
which is looked at once, at the end. Nothing is asserted: the figures are for a person to judge.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from bench.recall import report, report_cases, score
from bench.recall.cases import FRAMED, OF_PEOPLE
from bench.recall.cases_run import Asked, misses
from bench.recall.data import DEVELOP_SEED, REPORT_SEED
from bench.recall.runs import Questions, Run, learn, of_cases, of_items, of_prompts, of_talk
from bench.recall.systems import OURS, WITH_VECTORS, ours_for_items
from bench.recall.variants import worthless
from bench.recall.vectors import HOW_TO_GET, of_the_model
from discoclaw.embed import local

WIDTH = 170
SETS = ("items", "talk", "cases", "prompts")
PROMPTS = """what a prompt of 2,000 characters holds
found: of what was asked for; share: of what is there; four characters count as a token"""


def main() -> None:
    """Ask every system everything, and print the tables."""
    asked = _arguments()
    progress = Console(stderr=True, highlight=False)
    vectors = None if asked.no_vectors else of_the_model(asked.vectors)
    if vectors is None and not asked.no_vectors:
        progress.print(f"Not installed: {', '.join(local.missing())}; {HOW_TO_GET}", soft_wrap=True)
    cases = Asked("final" if asked.final else "develop", asked.every)
    run = Run(asked.seed, cases, asked.without, vectors, say=progress.print)
    wanted = asked.only or [name for name in SETS if not (asked.without and name == "prompts")]
    if vectors is not None:
        learn(run, wanted)
    shown = Shown(run, wanted, with_misses=asked.misses)
    if asked.json:
        print(json.dumps({"seed": run.seed, "part": cases.part, **shown.figures()}, indent=2))
    else:
        shown.print(Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=sys.modules[__name__].__doc__)
    parser.add_argument("--seed", type=int, default=REPORT_SEED, help=f"development: {DEVELOP_SEED}")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--misses", action="store_true", help="list what ours got wrong")
    parser.add_argument("--without", action="store_true", help="ours alone, with each step left out in turn")
    parser.add_argument("--only", choices=SETS, action="append", help="one of the sets; may be given again")
    final = "the final cases instead of those to develop with: look at them once, at the end"
    parser.add_argument("--final", action="store_true", help=final)
    quick = "only every n-th case, for a quick look"
    parser.add_argument("--every", type=int, default=1, metavar="N", help=quick)
    parser.add_argument("--no-vectors", action="store_true", help="leave out the rows with vectors")
    kept = "an existing folder that keeps the vectors for the next run"
    parser.add_argument("--vectors", type=Path, metavar="FOLDER", help=kept)
    return parser.parse_args()


class Shown:
    """The results of the wanted sets: as JSON, or as tables."""

    def __init__(self, run: Run, wanted: Sequence[str], *, with_misses: bool) -> None:
        self._run = run
        self._with_misses = with_misses
        makers = {"items": of_items, "talk": of_talk}
        self._questions = {name: make(run) for name, make in makers.items() if name in wanted}
        self._cases = of_cases(run) if "cases" in wanted else {}
        self._prompts = of_prompts(run) if "prompts" in wanted else []

    def figures(self) -> dict[str, object]:
        """Every figure of the tables."""
        found: dict[str, object] = {
            name: report.to_json(one.answers, one.times) for name, one in self._questions.items()
        }
        if self._cases:
            found["cases"] = report_cases.to_json(self._cases)
        if self._prompts:
            found["prompts"] = [asdict(one) for one in self._prompts]
        return found

    def print(self, console: Console) -> None:
        """The tables; and what ours got wrong, if that is wanted."""
        for name, questions in self._questions.items():
            self._print_questions(console, name, questions)
        if self._cases:
            self._print_cases(console)
        if self._prompts:
            console.print(report_cases.prompts(PROMPTS, self._prompts))
        if "items" in self._questions:
            for name, make in ours_for_items().items():
                kept = score.memory_per_1000(make, self._run.seed)
                console.print(f"{name}: keeps {kept / 1000:,.0f} kB for 1,000 items, besides the items")
        if self._run.without:
            self._print_worthless(console)

    def _print_questions(self, console: Console, name: str, found: Questions) -> None:
        console.print(report.overview(f"{name}, seed {self._run.seed}", found.answers))
        if not self._run.without:
            console.print(report.kinds(name, found.answers))
            console.print(report.times(f"ms a query among so many {name}, p50 / p95", found.times))
        if self._with_misses:
            for row in _ours(found.answers):
                _print_lines(console, row, report.misses(found.answers[row], found.texts))

    def _print_cases(self, console: Console) -> None:
        asked = self._run.cases
        title = f"cases, part {asked.part}" + (f", one in {asked.step}" if asked.step > 1 else "")
        if self._run.without:
            for kinds in (FRAMED, OF_PEOPLE):
                console.print(report_cases.in_short(title, self._cases, kinds))
        else:
            console.print(report_cases.by_kind(title, self._cases))
        if self._with_misses:
            for row in _ours(self._cases):
                _print_lines(console, row, misses(self._cases[row]))

    def _print_worthless(self, console: Console) -> None:
        """Which steps changed nothing at all in what was found."""
        everywhere: dict[str, list[object]] = {}
        talk: dict[str, object] = {}
        for name, questions in self._questions.items():
            for row, answers in questions.answers.items():
                ids = [one.ids for one in answers]
                if name == "talk":
                    talk[row] = ids
                else:
                    everywhere.setdefault(row, []).append(ids)
        for row, by_kind in self._cases.items():
            everywhere.setdefault(row, []).append([one.ids for found in by_kind.values() for one in found])
        for what, found in (("memories", everywhere), ("talk", talk)):
            for row in worthless(found):
                console.print(f"{row} finds the same of {what}: that step is worth nothing here")


def _ours(rows: Iterable[str]) -> list[str]:
    return [name for name in rows if name in (OURS, WITH_VECTORS)]


def _print_lines(console: Console, name: str, lines: Iterable[str]) -> None:
    console.print(f"\nWhat “{name}” got wrong:", markup=False)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
