"""Other people's words inside our lines."""

import unicodedata

from hypothesis import given

from discoclaw.show.words import count, line, quoted, short, when, word
from tests.core.builders import ANY_TEXT
from tests.tables import each_row


class TestOneLine:
    @given(ANY_TEXT)
    def test_any_text_is_one_line_that_can_be_encoded_and_hides_nothing(self, text: str) -> None:
        tidy = line(text)
        assert len(tidy.splitlines()) <= 1
        assert tidy.encode("utf-8").decode("utf-8") == tidy
        hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        assert not [c for c in tidy if unicodedata.category(c) in hidden and c not in "\u200c\u200d"]

    @each_row(
        ("text", "shown"),
        [
            ("one\ntwo\r\n\tthree", "one two three"),
            ("\x1b[31mred\x1b[0m", "[31mred [0m"),
            ("abc\u202edef\u2066", "abcdef"),
            ("a\u0085b\u2028c\x0bd", "a b c d"),
            ("\ud800", "\ufffd"),
            ("👩\u200d👧", "👩\u200d👧"),
            ("\U000e0041\u200b hidden", "hidden"),
        ],
    )
    def test_what_would_break_or_hide_is_taken_out(self, text: str, shown: str) -> None:
        assert line(text) == shown

    def test_a_long_text_is_cut(self) -> None:
        assert line("x" * 2000, 10) == "xxxxxxxxx…"


class TestQuotesAndWords:
    @given(ANY_TEXT)
    def test_quoted_text_can_not_end_its_quotes(self, text: str) -> None:
        told = quoted(text)
        assert told[0] == "“"
        assert told[-1] == "”"
        assert not {"“", "”"} & set(told[1:-1])

    @given(ANY_TEXT)
    def test_a_word_has_nothing_that_structure_is_made_of(self, text: str) -> None:
        assert word(text)
        assert not set(" ()[]“”,\"'`*|<>\n") & set(word(text))

    def test_what_is_no_text_is_a_dash(self) -> None:
        assert [word(one) for one in (None, 7, ["x"], "", "\n")] == ["-"] * 5

    def test_names_and_ids_stay_as_they_are(self) -> None:
        assert word("coding-2_über") == "coding-2_über"
        assert word("discord:12/34") == "discord:12/34"
        assert short("durable-2ed36192") == "2ed36192"
        assert short("mine (HEAD)\ncommit") == "mine_HEAD_commit"


class TestFigures:
    def test_times_are_minutes_in_utc(self) -> None:
        assert when(1_770_645_781_234) == "2026-02-09 14:03Z"
        assert when("2026-02-09T15:03:01.234+01:00") == "2026-02-09 14:03Z"

    def test_one_is_no_plural(self) -> None:
        said = [count(1, "item"), count(2, "item"), count(0, "branch"), count(2, "entry"), count(3, "relay")]
        assert said == ["1 item", "2 items", "0 branches", "2 entries", "3 relays"]
