"""The older scorers keep their values."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.recall.overlap import (
    RECENT_MS,
    best,
    item_tokens,
    key_weighted_overlap,
    overlap,
    ranked,
    tokens,
)
from discoclaw.core.item import Item, durable_line
from discoclaw.core.text import utf16_length
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

    def test_the_key_counts_once_where_key_and_content_have_the_token(self) -> None:
        assert key_weighted_overlap("tea", "tea", "tea") == 2

    def test_letters_of_every_script_are_letters(self) -> None:
        assert key_weighted_overlap("Größe", "größe", "") == 2
        assert key_weighted_overlap("東京", "ort", "東京") == 1

    @given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
    def test_it_lies_between_nothing_and_two(self, query: str, key: str, content: str) -> None:
        assert 0 <= key_weighted_overlap(query, key, content) <= 2


class TestTokens:
    def test_they_are_lower_case_and_at_least_three_long(self) -> None:
        assert tokens("My Dog is in an Old Oak") == {"dog", "old", "oak"}

    def test_stop_words_are_dropped(self) -> None:
        assert tokens("What would you have with the coffee?") == {"coffee"}

    def test_an_items_are_those_of_text_tags_and_kind(self) -> None:
        one = item("Deploys the shop", "tool", tags=["k8s", "kube"])
        assert item_tokens(one) == {"deploys", "shop", "k8s", "kube", "tool"}


class TestOverlap:
    def test_it_is_the_number_of_shared_tokens(self) -> None:
        one = item("User drinks green tea", updated_at=LONG_AGO)
        assert overlap("green tea or green coffee?", one, now_ms=NOW) == 2

    @each_row("term", ["repo", "build", "deploy"])
    def test_a_project_gets_two_more_when_the_query_has_a_project_term(self, term: str) -> None:
        project = item("Heron", "project", updated_at=LONG_AGO)
        assert overlap(f"{term} heron", project, now_ms=NOW) == 3
        assert overlap("heron", project, now_ms=NOW) == 1
        assert overlap(f"{term} heron", item("Heron", updated_at=LONG_AGO), now_ms=NOW) == 1

    @each_row(("age", "score"), [(0, 2), (RECENT_MS, 2), (RECENT_MS + 1, 1)])
    def test_what_changed_within_seven_days_gets_one_more(self, age: int, score: int) -> None:
        assert overlap("tea", item("tea", updated_at=NOW - age), now_ms=NOW) == score

    def test_recency_can_be_left_out(self) -> None:
        assert overlap("tea", item("tea"), now_ms=NOW, recency=False) == 1


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

    def test_only_what_is_active_and_scores_is_there(self) -> None:
        items = [replace(item("green tea"), status="deprecated"), item("coffee", updated_at=LONG_AGO)]
        assert ranked("green tea", items, now_ms=NOW) == []

    def test_a_recent_item_comes_without_a_shared_token_and_that_is_what_recency_costs(self) -> None:
        recent = item("something else")
        assert ranked("green tea", [recent], now_ms=NOW) == [recent]
        assert ranked("green tea", [recent], now_ms=NOW, recency=False) == []


class TestWhatIsInjected:
    def test_it_is_twelve_at_most(self) -> None:
        items = [item(f"tea number {number}", updated_at=LONG_AGO) for number in range(30)]
        assert best("tea", items, now_ms=NOW) == ranked("tea", items, now_ms=NOW)[:12]

    @given(st.integers(0, 900))
    def test_whole_lines_stay_within_the_characters_and_the_next_would_not(self, most: int) -> None:
        items = [
            item(f"tea {'🍵' * (number % 7)} {number}", updated_at=LONG_AGO - number) for number in range(20)
        ]
        order = ranked("tea", items, now_ms=NOW)
        chosen = best("tea", items, now_ms=NOW, max_chars=most)
        assert chosen == order[: len(chosen)]
        assert length(chosen) <= most
        assert len(chosen) == 12 or length(order[: len(chosen) + 1]) > most

    def test_a_line_too_long_for_all_ends_it(self) -> None:
        long, short = item(f"tea cup {'x' * 900}", updated_at=LONG_AGO), item("tea", updated_at=LONG_AGO)
        assert best("tea cup", [long, short], now_ms=NOW, max_chars=500) == []


def length(items: list[Item]) -> int:
    return utf16_length("\n".join(durable_line(one) for one in items))
