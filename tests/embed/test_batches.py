"""Texts for one request each."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.embed.providers import MAX_BYTES, MAX_TEXT_CHARS, MAX_TEXTS, batches


class TestBatches:
    @given(st.lists(st.integers(0, 9_000), max_size=150), st.sampled_from("aü漢🐦"))
    def test_hold_every_text_once_in_order_and_no_more_than_they_may(
        self, lengths: list[int], letter: str
    ) -> None:
        texts = [letter * length for length in lengths]
        found = list(batches(texts))
        assert [text for batch in found for text in batch] == [text[:MAX_TEXT_CHARS] for text in texts]
        for batch in found:
            assert 0 < len(batch) <= MAX_TEXTS
            assert sum(len(text.encode()) for text in batch) <= MAX_BYTES

    def test_are_full_before_another_one_begins(self) -> None:
        assert [len(batch) for batch in batches(["x"] * 129)] == [64, 64, 1]
        assert [len(batch) for batch in batches(["x" * MAX_TEXT_CHARS] * 13)] == [12, 1]
