"""The hash of a cached answer's key."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.session.caching import fnv1a64, response_key
from tests.tables import each_row

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "knowledge.json").read_text(encoding="utf-8"))


class TestTheHash:
    @each_row("case", GOLDEN["fnv1a64"])
    def test_is_the_golden_one(self, case: dict[str, str]) -> None:
        assert fnv1a64(case["text"].encode()) == case["hex"]

    @given(st.binary(), st.binary())
    def test_goes_on_where_it_stopped(self, one: bytes, more: bytes) -> None:
        """One byte more is one round more: the definition, written a second time."""
        value = int(fnv1a64(one), 16)
        for byte in more:
            value = ((value ^ byte) * (2**40 + 2**8 + 0xB3)) % 2**64
        assert fnv1a64(one + more) == value.to_bytes(8, "big").hex()


class TestAKey:
    @each_row("case", GOLDEN["cache_keys"]["cases"])
    def test_is_the_golden_one(self, case: dict[str, str]) -> None:
        assert response_key(case["model"], case["context"], case["user"]) == case["hex"]

    def test_says_where_one_part_ends(self) -> None:
        keys = {response_key("ab", "c", "d"), response_key("a", "bc", "d"), response_key("a", "b", "cd")}
        assert len(keys) == 3

    def test_can_be_made_of_any_text(self) -> None:
        assert len(response_key("m", "\ud800", "🐦")) == 16
