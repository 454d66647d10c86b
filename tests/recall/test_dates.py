"""Dates as terms: however a date is written, it meets the same date."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.recall.document import date_terms, dates_in
from tests.core.builders import ANY_TEXT
from tests.tables import each_row

EIGHTH_OF_MAY = frozenset({"d:2023", "d:05", "d:2023-05", "d:05-08", "d:2023-05-08"})
MAY_2023 = frozenset({"d:2023", "d:05", "d:2023-05"})


class TestADateMeetsItselfInOtherWords:
    @each_row(
        "text",
        [
            "on 8 May 2023",
            "May 8, 2023",
            "May 8th 2023",
            "8th of May 2023",
            "2023-05-08",
            "2023/5/8",
            "am 8. Mai 2023",
            "le 8 mai 2023",
            "el 8 de mayo de 2023",
            "em 8 de maio de 2023",
            "8 maggio 2023",
            "8 мая 2023",
            "2023年5月8日",
        ],
    )
    def test_a_day(self, text: str) -> None:
        assert dates_in(text) == EIGHTH_OF_MAY

    @each_row("text", ["in May 2023", "Mai 2023", "2023-05", "mayo de 2023", "2023年5月"])
    def test_a_month(self, text: str) -> None:
        assert dates_in(text) == MAY_2023

    def test_a_time_has_the_terms_of_its_day(self) -> None:
        assert date_terms(1_683_504_000_000) == EIGHTH_OF_MAY

    def test_a_day_without_a_year_meets_that_day_of_every_year(self) -> None:
        assert dates_in("8 May") == {"d:05", "d:05-08"}
        assert dates_in("8 May") <= EIGHTH_OF_MAY


class TestOtherWordsAreNoDates:
    @each_row("text", ["this may be it", "I think this may take a while"])
    def test_a_verb_is_no_month(self, text: str) -> None:
        assert dates_in(text) == frozenset()

    @each_row(
        "text",
        [
            "may I ask",
            "they march on",
            "Mark 3",
            "version 3.12.1",
            "192.168.2023.1",
            "room 7",
            "the year",
            "",
            "it may 2 be true",
        ],
    )
    def test_nothing_is_found(self, text: str) -> None:
        assert dates_in(text) <= {"d:05", "d:05-02"}

    def test_a_month_that_is_no_month_is_left_out(self) -> None:
        assert dates_in("2023-13-45") == {"d:2023"}

    @given(ANY_TEXT)
    def test_any_text_is_taken(self, text: str) -> None:
        assert all(term.startswith("d:") for term in dates_in(text))

    @given(st.integers(-(10**18), 10**18))
    def test_any_time_is_taken(self, at_ms: int) -> None:
        assert all(term.startswith("d:") for term in date_terms(at_ms))
