"""Short names: they stand for what was shown, and for nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.titles import ShortIds
from tests.core.builders import ANY_TEXT
from tests.examples import FEW
from tests.tables import each_row

IDS = st.lists(ANY_TEXT, max_size=12)


class TestShortIds:
    def test_are_given_in_order_and_once(self) -> None:
        short = ShortIds("i", ["a", "b", "a"])
        assert [short.of(one) for one in ("b", "a", "c")] == ["i2", "i1", "i3"]
        assert short.knows("c") and not short.knows("i1")

    @each_row("written", ["m2", "M2", " m2\n", "[m2]", "(m2)", "([M2])"])
    def test_may_be_written_in_the_ways_of_models(self, written: str) -> None:
        assert ShortIds("m", ["a", "b"]).meant(written) == "b"

    @each_row(
        "written",
        ["", "m", "2", "m0", "m3", "m02", "m-2", "m2.0", "i2", "m2x", "m1, m2", "b", "м2", "m٢", "»m2"],
    )
    def test_mean_nothing_unless_they_were_given(self, written: str) -> None:
        assert ShortIds("m", ["a", "b"]).meant(written) is None

    @FEW
    @given(IDS, ANY_TEXT)
    def test_lead_back_to_just_what_they_were_given_for(self, ids: list[str], other: str) -> None:
        short = ShortIds("i", ids)
        assert [short.meant(short.of(one)) for one in ids] == ids
        assert len({short.of(one) for one in ids}) == len(set(ids))
        assert short.meant(other) in (None, *ids)
        assert short.knows(other) == (other in ids)
