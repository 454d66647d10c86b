"""How vectors and words become one score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.recall.rank import fuse, outstanding
from tests.tables import each_row

scores = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e6), max_size=8)
cosines = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1, 1), max_size=8)


class TestFuse:
    @given(scores)
    def test_without_vectors_the_order_is_that_of_the_words(self, texts: dict[str, float]) -> None:
        fused = fuse(texts, {}, 0.4, 0.6)
        best = max(texts.values(), default=0) or 1
        assert fused == {key: score / best for key, score in texts.items()}

    @given(scores, cosines)
    def test_every_candidate_and_no_other_has_a_share_of_one(
        self, texts: dict[str, float], near: dict[str, float]
    ) -> None:
        fused = fuse(texts, near, 0.4, 0.6)
        assert fused.keys() == texts.keys()
        assert all(0 <= share <= 1 + 1e-9 for share in fused.values())

    @pytest.mark.design(184)
    def test_words_and_vectors_count_as_they_are_weighted(self) -> None:
        texts, near = {"word": 2.0, "meaning": 1.0}, {"word": 0.1, "meaning": 0.3}
        assert fuse(texts, near, 0.4, 0.6) == pytest.approx({"word": 0.4, "meaning": 0.8})
        assert fuse(texts, near, 1.0, 0.0) == pytest.approx({"word": 1.0, "meaning": 0.5})


class TestOutstanding:
    def test_one_that_is_far_nearer_than_all_others_stands_out(self) -> None:
        near = {f"item-{number}": 0.1 + number / 1000 for number in range(20)}
        assert outstanding({**near, "meant": 0.6}) == ["meant"]
        assert outstanding(near) == []

    @each_row("count", [0, 1, 2, 3, 50])
    def test_none_does_where_all_are_alike(self, count: int) -> None:
        assert outstanding({f"item-{number}": 0.1 + 0.2 for number in range(count)}) == []
