"""docs/dev/measurements.md: the rows that `python -m bench --docs` writes, and the README beside them."""

import re
from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.docs import BEGIN, END, PAGE, renewed
from bench.figure import Figure

EMPTY = f"Before.\n{BEGIN}{END}After.\n"
ROOT = Path(__file__).parent.parent


def figure(name: str, ours: float) -> Figure:
    return Figure(name, ours, 2.0, "ms", "echo bot", "<= 3x", met=ours <= 6, paired=ours / 2)


def test_a_run_replaces_the_rows_of_its_parts_and_no_others() -> None:
    page = renewed(
        EMPTY, {"turn": [figure("a", 4.0), figure("b", 8.0)], "commit": [figure("c", 1.0)]}, "x", NAMES
    )
    page = renewed(page, {"turn": [figure("d", 5.0)]}, "y", NAMES)
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [
        "| `turn` | d | 5 ms | 2 ms, echo bot | 2.50× (pairs) | <= 3x | y |",
        "| `commit` | c | 1 ms | 2 ms, echo bot | 0.50× (pairs) | <= 3x | x |",
    ]
    assert page.startswith("Before.\n")
    assert page.endswith("After.\n")


def test_a_missed_target_is_marked() -> None:
    assert "<= 3x, missed |" in renewed(EMPTY, {"turn": [figure("b", 8.0)]}, "x", NAMES)


def test_a_page_without_a_place_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        renewed("Nothing here.\n", {}, "x", NAMES)


@pytest.mark.parametrize(
    ("said", "row"),
    [
        (r"needs about ([\d.]+) MB of RAM", r"\| `resident` \| resident at start \| ([\d.]+) MB"),
        (
            r"takes about ([\d.]+) ms per message",
            r"\| `turn` \| message to model request, 0 others known, CPU \| ([\d.]+) ms",
        ),
    ],
)
def test_the_readme_says_what_was_measured(said: str, row: str) -> None:
    """A number for people is rounded: it may be a third away."""
    told = re.search(said, (ROOT / "README.md").read_text("utf-8"))
    measured = re.search(row, PAGE.read_text("utf-8"))
    assert told
    assert measured
    assert float(told[1]) == pytest.approx(float(measured[1]), rel=1 / 3)
