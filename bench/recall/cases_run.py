"""Asks a system the cases of a part. Knows cases and systems, not the tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.recall.cases import KINDS, cases
from bench.recall.cases_score import MOST, Found, newest_first
from bench.recall.cases_values import Case, Part
from bench.recall.score import LIMIT
from bench.recall.systems import ItemSystem, Ours
from bench.recall.variants import Without
from discoclaw.core.text import clip

Answers = Mapping[str, Sequence[Found]]
"""What a system found, by kind of case."""
LONGEST_SHOWN = 300
"""The most characters of a message in the list of what went wrong."""
SOME = 3
"""How many of the wrong items are listed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The cases that are asked: those of a part, or every `step`-th of them."""

    part: Part = "develop"
    step: int = 1

    def of(self, kind: str) -> Sequence[Case]:
        """The cases of a kind."""
        return cases(kind, self.part)[:: self.step]


def ask_cases(make: Callable[[], ItemSystem], asked: Asked, kinds: Iterable[str] = KINDS) -> Answers:
    """Every case, each with its own memory."""
    answers = {}
    for kind in kinds:
        system = make()
        answers[kind] = [_ask(system, case) for case in asked.of(kind)]
    return answers


def _ask(system: ItemSystem, case: Case) -> Found:
    system.load(case.items)
    ours = system.inner if isinstance(system, Without) else system
    if isinstance(ours, Ours):
        ours.own_name = case.own_name
    return Found(case, tuple(system.search(case.message, LIMIT)))


def misses(answers: Answers) -> Iterable[str]:
    """What one system got wrong, kind by kind."""
    for kind, found in answers.items():
        wrong = [lines for one in found if (lines := _wrong(one))]
        if wrong:
            yield f"\n{kind}: {len(wrong)} of {len(found)}"
        for lines in wrong:
            yield from lines


def _wrong(found: Found) -> list[str]:
    """Lines about what is wrong with what was found; none if nothing is."""
    case, first = found.case, found.ids[:MOST]
    texts = {item.id: item.text for item in case.items}
    lines = [f"      missing  {texts[one]}" for one in sorted(case.must.difference(first))]
    if newest_first(found) == 0.0 and case.first in first:
        lines.append(f"      before what has to be first comes  {texts[found.ids[0]]}")
    instead = [one for one in found.ids if one in case.must_not]
    lines += [f"      in vain  {texts[one]}" for one in instead[:SOME]]
    if len(instead) > SOME:
        lines.append(f"      in vain  and {len(instead) - SOME} more")
    message = " ".join(clip(case.message, LONGEST_SHOWN).split())
    return [f"  {case.name}: {message}", *lines] if lines else []
