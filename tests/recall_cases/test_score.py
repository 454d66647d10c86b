"""The figures of cases."""

import pytest

from bench.recall.cases_score import (
    Found,
    figures,
    in_vain,
    lines,
    precision,
    recall,
)
from bench.recall.cases_values import Case

ASKED = Case((), "?", 0, frozenset({"a", "b"}), frozenset({"x", "y"}), None, "asked", "frame")
NEWEST = Case((), "?", 0, frozenset({"a"}), frozenset({"x"}), "a", "newest", "frame")
NOTHING = Case((), "hi", 0, frozenset(), frozenset({"x"}), None, "nothing", "frame")


def test_recall_counts_the_first_twelve():
    assert recall(Found(ASKED, ("a",))) == 0.5
    assert recall(Found(ASKED, (*"cdefghijklm", "a", "b"))) == 0.5
    assert (
        recall(
            Found(
                ASKED,
                ("a", "b"),
            ),
            most=1,
        )
        == 0.5
    )
    assert recall(Found(NOTHING, ())) is None


def test_precision_leaves_out_what_is_tolerated():
    assert precision(Found(ASKED, ("a", "tolerated", "x"))) == 0.5
    assert precision(Found(ASKED, ("tolerated",))) == 0.0
    assert precision(Found(ASKED, ())) == 0.0
    assert precision(Found(NOTHING, ("x",))) is None


def test_what_comes_back_where_nothing_answers_is_counted_and_what_is_tolerated_is_not_in_vain():
    found = Found(NOTHING, ("x", "tolerated"))
    assert (lines(found), in_vain(found)) == (2, 1)
    assert lines(Found(ASKED, ("x",))) is in_vain(Found(ASKED, ("x",))) is None


def test_figures_are_means_over_the_cases_that_count():
    found = figures([Found(ASKED, ("a",)), Found(NEWEST, ("a", "x")), Found(NOTHING, ("x",))])
    assert found.count == 3
    assert found.recall == pytest.approx(0.75)
    assert found.precision == pytest.approx(0.75)
    assert found.leading == 1.0
    assert found.newest_first == 1.0
    assert found.empty == 0.0
    assert found.lines == found.in_vain == 1.0
    assert figures([]).recall is None
