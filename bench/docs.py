"""The table in `PAGE`: `python -m bench --docs [names]` replaces the rows that it measured.

Each row says on which commit and machine it was measured, because rows may be of different runs.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figure import Figure

PAGE = Path(__file__).parent.parent / "docs" / "dev" / "measurements.md"
BEGIN = "<!-- What `python -m bench --docs` measured; it replaces the rows of the parts that it ran. -->\n"
END = "<!-- the end of what it measured -->\n"
HEAD = "| part | figure | ours | baseline | ratio | target | measured on |\n|---|---|---|---|---|---|---|\n"
ROW = re.compile(r"^\| `(\w+)` \| .*\n", re.MULTILINE)


def renew(measured: Mapping[str, Sequence[Figure]], machine: Mapping[str, Any], names: Sequence[str]) -> None:
    """Write the page with these figures of each part. `names` are all parts, in the order of the rows."""
    where = "{}; Python {python}, {system}, {cores} cores, load {load:.1f}".format(_commit(), **machine)
    PAGE.write_text(renewed(PAGE.read_text("utf-8"), measured, where, names), "utf-8")


def renewed(page: str, measured: Mapping[str, Sequence[Figure]], where: str, names: Sequence[str]) -> str:
    """The page with the rows of these parts replaced. Raises ValueError if it has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{PAGE.name} lacks the lines between which the table stands")
    rows: dict[str, str] = {}
    for found in ROW.finditer(table):
        rows[found[1]] = rows.get(found[1], "") + found[0]
    for name, figures in measured.items():
        rows[name] = "".join(_row(name, one, where) for one in figures)
    return before + begin + HEAD + "".join(rows.get(name, "") for name in names) + end + after


def _row(part: str, one: Figure, where: str) -> str:
    ratio = f"{one.ratio:.2f}×" + (" (pairs)" if one.paired is not None else "")
    target = one.target + (", missed" if one.met is False else "")
    cells = (
        f"`{part}`",
        one.name,
        amount(one.ours, one.unit),
        f"{amount(one.baseline, one.unit)}, {one.beside}",
    )
    return f"| {' | '.join((*cells, ratio, target, where))} |\n"


def amount(value: float, unit: str) -> str:
    """A number with three digits, and its unit."""
    return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def _commit() -> str:
    """The commit that is checked out, with a mark if files differ from it."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(words, cwd=PAGE.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no checkout"
