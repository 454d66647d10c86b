"""The older scorers keep their values."""

import json
from pathlib import Path

import pytest

from bench.recall.overlap import (
    RECENT_MS,
    key_weighted_overlap,
    overlap,
    ranked,
)
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "knowledge.json").read_text(encoding="utf-8"))
LONG_AGO = NOW - 100 * DAY


class TestKeyWeightedOverlap:
    @each_row("case", GOLDEN["key_weighted_overlap"]["cases"])
    def test_the_golden_values_hold(self, case: dict[str, object]) -> None:
        score = key_weighted_overlap(str(case["query"]), str(case["key"]), str(case["content"]))
        assert score == pytest.approx(case["score"], abs=1e-6)

    @each_row("query", ["", "   ", "!?", "++"])
    def test_a_query_without_a_token_scores_nothing(self, query: str) -> None:
        assert key_weighted_overlap(query, "key", "content") == 0


class TestOverlap:
    @each_row("term", ["repo", "build", "deploy"])
    def test_a_project_gets_two_more_when_the_query_has_a_project_term(self, term: str) -> None:
        project = item("Heron", "project", updated_at=LONG_AGO)
        assert overlap(f"{term} heron", project, now_ms=NOW) == 3
        assert overlap("heron", project, now_ms=NOW) == 1
        assert overlap(f"{term} heron", item("Heron", updated_at=LONG_AGO), now_ms=NOW) == 1

    @each_row(("age", "score"), [(0, 2), (RECENT_MS, 2), (RECENT_MS + 1, 1)])
    def test_what_changed_within_seven_days_gets_one_more(self, age: int, score: int) -> None:
        assert overlap("tea", item("tea", updated_at=NOW - age), now_ms=NOW) == score


class TestTheOrder:
    def test_it_is_by_score_then_newer_first_then_by_id(self) -> None:
        two = item("green tea", updated_at=LONG_AGO)
        newer = item("black tea", updated_at=LONG_AGO + 1)
        same = sorted(
            (item("tea one", updated_at=LONG_AGO), item("tea two", updated_at=LONG_AGO)),
            key=lambda one: one.id,
        )
        found = ranked("green tea", [*reversed(same), newer, two], now_ms=NOW)
        assert found == [two, newer, *same]

    def test_a_recent_item_comes_without_a_shared_token_and_that_is_what_recency_costs(self) -> None:
        recent = item("something else")
        assert ranked("green tea", [recent], now_ms=NOW) == [recent]
        assert ranked("green tea", [recent], now_ms=NOW, recency=False) == []
