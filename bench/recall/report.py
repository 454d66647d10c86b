"""The tables of a run, for people; and the same as JSON. Knows figures, not how they came about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.recall import data
from bench.recall.score import CUTS, SIZES, Answer, Summary, by_kind, summarise

KINDS = (*data.ITEM_KINDS, data.NEIGHBOUR, *data.LANGUAGES.values())
MUST_NOT = data.ITEM_MUST_NOT

Answers = Mapping[str, Sequence[Answer]]
Times = Mapping[str, Mapping[int, tuple[float, float]]]


def overview(title: str, answers: Answers) -> Table:
    """A row a system: recall, precision, silence, time."""
    some = summarise(next(iter(answers.values())))
    table = Table(title=f"{title}: {some.answered} questions, {some.must_not} messages that want nothing")
    table.add_column("system")
    for column in (*(f"R@{cut}" for cut in CUTS), "R 2000c", "P@12", "P 2000c", "P all"):
        table.add_column(column, justify="right")
    for column in ("stale", "vain: mean", "vain: empty", "p50 ms", "p95 ms"):
        table.add_column(column, justify="right")
    for name, every in answers.items():
        table.add_row(name, *_cells(summarise(every)))
    return table


def _cells(one: Summary) -> list[str]:
    shares = [*one.recall.values(), one.recall_fitting, one.precision_12, one.precision_fitting]
    shares += [one.precision_all]
    return [
        *map(_share, shares),
        "–" if one.stale is None else _share(one.stale),
        f"{one.returned:.1f}",
        _share(one.silent),
        f"{one.p50:.2f}",
        f"{one.p95:.2f}",
    ]


def kinds(title: str, answers: Answers) -> Table:
    """A row a kind: recall in 2,000 characters, or how often nothing came where nothing should."""
    table = Table(title=f"{title}, by kind: recall in 2,000 characters; below the line the share left empty")
    table.add_column("kind")
    table.add_column("questions", justify="right")
    for name in answers:
        table.add_column(name, justify="right")
    for some in (KINDS, MUST_NOT):
        columns = [by_kind(every, some) for every in answers.values()]
        for kind in columns[0]:
            count = sum(one.question.kind == kind for one in next(iter(answers.values())))
            table.add_row(kind, str(count), *(_share(column[kind]) for column in columns))
        table.add_section()
    return table


def times(title: str, measured: Times) -> Table:
    """A row a system: median and 95th percentile by number of documents."""
    table = Table(title=title)
    table.add_column("system")
    for size in SIZES:
        table.add_column(f"{size:,}", justify="right")
    for name, sizes in measured.items():
        table.add_row(name, *(f"{p50:.2f} / {p95:.2f}" for p50, p95 in sizes.values()))
    return table


def misses(answers: Sequence[Answer], texts: Mapping[str, str]) -> Iterable[str]:
    """What one system did not bring within 2,000 characters, and what it brought in vain, kind by kind."""
    for kind in (*KINDS, *MUST_NOT):
        wrong = [one for one in answers if one.question.kind == kind and _wrong(one)]
        if wrong:
            yield f"\n{kind}: {len(wrong)}"
        for one in wrong:
            yield f"  {one.asked}: {one.question.text}"
            missing = sorted(one.question.evidence.difference(one.ids[: one.fitting]))
            yield from (f"      missing  {texts[name]}" for name in missing)
            if one.stale:
                yield from (f"      stale    {texts[name]}" for name in sorted(one.question.forbidden))
            if one.must_not or missing:
                yield from (f"      instead  {texts[name]}" for name in one.ids[:3])


def _wrong(one: Answer) -> bool:
    return bool(one.ids) if one.must_not else one.stale or one.recall(one.fitting) < 1


def to_json(answers: Answers, measured: Times) -> dict[str, Any]:
    """Every figure of the tables, by system."""
    return {
        name: {
            **asdict(summarise(every)),
            "kinds": by_kind(every, (*KINDS, *MUST_NOT)),
            "latency": {str(size): pair for size, pair in measured[name].items()},
        }
        for name, every in answers.items()
    }


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1"
