"""The tables of the cases and of what a prompt holds, for people; and the same as JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.recall.cases_run import Answers
from bench.recall.cases_score import Figures, figures
from bench.recall.prompts import Contents

COLUMNS = {
    "recall": "R@12",
    "precision": "P",
    "leading": "leading",
    "newest_first": "newest first",
    "empty": "empty",
    "lines": "lines",
    "in_vain": "in vain",
}
COUNTS = ("lines", "in_vain")
"""The figures that are no shares."""
TOLD = {
    "names": ("recall", "precision"),
    "clues": ("recall", "precision", "leading"),
    "replaced": ("recall", "newest_first"),
    "nothing": ("empty",),
    "preferences": ("recall", "precision"),
    "topics": ("recall", "precision"),
    "gathered": ("recall", "precision"),
    "owners": ("recall", "newest_first"),
    "oneself": ("recall", "precision"),
    "unanswerable": ("lines", "in_vain"),
    "inflected": ("recall", "precision"),
    "latest": ("recall", "newest_first"),
}
"""What tells most about each kind, for the tables that have no room for everything."""


def by_kind(title: str, answers: Mapping[str, Answers]) -> Table:
    """A row for each kind of case and system."""
    table = Table(title=title)
    table.add_column("kind")
    table.add_column("cases", justify="right")
    table.add_column("system")
    for column in COLUMNS.values():
        table.add_column(column, justify="right")
    for kind in next(iter(answers.values())):
        for number, (name, every) in enumerate(answers.items()):
            one = figures(every[kind])
            first = (kind, str(one.count)) if not number else ("", "")
            table.add_row(*first, name, *(_told(one, field) for field in COLUMNS))
        table.add_section()
    return table


def in_short(title: str, answers: Mapping[str, Answers], kinds: Iterable[str]) -> Table:
    """A row a system, with what tells most about each of those kinds."""
    shown = {kind: TOLD[kind] for kind in kinds}
    table = Table(title=title)
    table.add_column("system")
    for kind, told in shown.items():
        for number, field in enumerate(told):
            table.add_column(f"{'' if number else kind}\n{COLUMNS[field]}", justify="right")
    for name, every in answers.items():
        of = {kind: figures(every[kind]) for kind in shown}
        table.add_row(name, *(_told(of[kind], one) for kind, told in shown.items() for one in told))
    return table


def prompts(title: str, found: Iterable[Contents]) -> Table:
    """A row for each kind of message, size of memory and system."""
    table = Table(title=title)
    for column in ("asked", "memory", "system"):
        table.add_column(column, no_wrap=True)
    for column in ("prompts", "found", "share of\nlines", "share of\ncharacters", "standing"):
        table.add_column(column, justify="right")
    for column in ("tokens\nin vain", "empty", "lines", "characters"):
        table.add_column(column, justify="right")
    last = ""
    for one in found:
        if last and one.asked != last:
            table.add_section()
        last = one.asked
        shares = (one.found, one.of_lines, one.of_characters, one.standing)
        means = (f"{one.tokens_in_vain:.0f}", share(one.empty), f"{one.lines:.1f}", f"{one.characters:.0f}")
        table.add_row(one.asked, f"{one.memory:.0f}", one.system, str(one.count), *map(share, shares), *means)
    return table


def to_json(answers: Mapping[str, Answers]) -> dict[str, dict[str, dict[str, Any]]]:
    """Every figure, by system and kind."""
    return {
        name: {kind: asdict(figures(found)) for kind, found in every.items()}
        for name, every in answers.items()
    }


def _told(found: Figures, field: str) -> str:
    value: float | None = getattr(found, field)
    return f"{value:.1f}" if field in COUNTS and value is not None else share(value)


def share(value: float | None) -> str:
    """A share as it stands in a table: three digits, without the zero before the point."""
    if value is None:
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1"
