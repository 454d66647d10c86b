"""White space, lengths, safe names and times: rules shared by files, prompts and Discord."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.text import (
    clip,
    collapse,
    normalise,
    safe_key,
    scrub,
    speaker,
    utf16_length,
    utf16_prefix,
)
from discoclaw.core.times import date_of, iso_ms, ms_of_iso, valid_ms
from tests.core.builders import ANY_TEXT
from tests.tables import each_row

LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z


class TestWhiteSpaceIsThatOfJavaScript:
    @each_row("space", list("\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"))
    def test_a_white_space_of_javascript_is_folded_and_trimmed(self, space: str) -> None:
        assert collapse(f"{space}{space}a{space} b{space}") == "a b"
        assert normalise(f"{space}A{space}{space}b{space}") == "a b"

    @each_row("other", ["\x85", "\x1c", "\x1f", "\u200b", "\u180e"])
    def test_what_only_python_calls_white_space_is_a_character_like_others(self, other: str) -> None:
        assert normalise(f"a{other}b{other}") == f"a{other}b{other}"

    @given(ANY_TEXT)
    def test_both_forms_are_final(self, text: str) -> None:
        assert collapse(collapse(text)) == collapse(text)
        assert normalise(normalise(text)) == normalise(text)


class TestLengthsAreUtf16Units:
    @given(ANY_TEXT)
    def test_the_length_is_that_of_the_encoded_text(self, text: str) -> None:
        assert utf16_length(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2

    @given(st.text("ab🦀é漢", max_size=30), st.integers(-2, 70))
    @pytest.mark.design(240, 247)
    def test_a_prefix_is_never_over_and_never_shorter_than_it_must_be(self, text: str, units: int) -> None:
        prefix = utf16_prefix(text, units)
        assert text.startswith(prefix)
        assert utf16_length(prefix) <= max(0, units)
        assert prefix == text or utf16_length(text[: len(prefix) + 1]) > units

    def test_a_prefix_does_not_cut_an_emoji_in_two(self) -> None:
        assert utf16_prefix("a🦀", 2) == "a"
        assert utf16_prefix("a🦀", 3) == "a🦀"

    @given(st.text("ab 🦀é漢\n", max_size=30), st.integers(0, 70))
    def test_clipped_text_fits_and_shows_that_something_is_missing(self, text: str, units: int) -> None:
        clipped = clip(text, units)
        assert utf16_length(clipped) <= units
        if utf16_length(text) <= units:
            assert clipped == text
        elif units > 0:
            assert clipped.endswith("…")
            assert text.startswith(clipped[:-1])

    def test_nothing_fits_into_no_room(self) -> None:
        assert clip("abc", 0) == ""
        assert clip("abc", 1) == "…"


class TestScrubbedTextCanBeWritten:
    @given(ANY_TEXT)
    def test_it_encodes_as_utf8_and_holds_no_nul(self, text: str) -> None:
        clean = scrub(text)
        clean.encode("utf-8")
        assert "\x00" not in clean
        assert scrub(clean) == clean

    @given(st.text("ab🦀\ufeff\ud83d漢", max_size=20))
    def test_only_the_lone_surrogates_are_replaced(self, text: str) -> None:
        assert scrub(text) == text.replace("\ud83d", "\ufffd")

    def test_two_halves_of_one_character_become_that_character(self) -> None:
        assert scrub("\ud83e\udd80") == "🦀"

    @given(st.text(max_size=40))
    def test_other_text_comes_back_as_it_was(self, text: str) -> None:
        assert scrub(text) == text.replace("\x00", "")


class TestSessionKeysBecomeFileNames:
    def test_the_published_examples_hold(self, durable_vectors: dict) -> None:
        for case in durable_vectors["session_files"]:
            assert safe_key(case["key"]) + ".json" == case["file"]

    @given(ANY_TEXT)
    def test_a_name_never_leaves_its_folder(self, key: str) -> None:
        assert re.fullmatch(r"[A-Za-z0-9:_-]*", safe_key(key))

    @each_row("key", ["../../etc/passwd", "..", ".hidden", "a/../b", "C:\\x", "a\0b", "~"])
    def test_a_hostile_key_is_harmless(self, key: str) -> None:
        name = safe_key(key)
        assert not set(name) & set("./\\~\0")


class TestASpeakersNameCanForgeNothing:
    @each_row(
        ("name", "shown"),
        [
            ("Ann", "Ann"),
            ("  Ann   Lee ", "Ann Lee"),
            ("Ann (owner)", "Ann owner"),
            ("Ann]: hi\n[Bob", "Ann : hi Bob"),
            ("A\u202enn\u0085B\u2028C\x00", "A nn B C"),
            ("Zoë 李 علي 🦀", "Zoë 李 علي 🦀"),
            ("<@123>`x`{y}", "@123 x y"),
            ("", "someone"),
            ("[](){}", "someone"),
            ("\u200b\u2060", "someone"),
        ],
    )
    def test_a_name_is_shown_without_brackets_on_one_line(self, name: str, shown: str) -> None:
        assert speaker(name) == shown

    @each_row(
        "name", ["Ann （owner）", "Ann ⁽owner⁾", "Ann ❨owner❩", "Ann⟮owner⟯", "Ann]: x［Bob", "Ann﹙owner﹚"]
    )
    def test_look_alikes_of_brackets_are_brackets(self, name: str) -> None:
        assert not [char for char in speaker(name) if unicodedata.category(char) in ("Ps", "Pe")]

    @each_row("name", ["\u3164", "\u2800\u2800", "\uffa0", "\u115f\u1160"])
    def test_a_name_of_blanks_is_no_name(self, name: str) -> None:
        assert speaker(name) == "someone"

    @given(ANY_TEXT)
    def test_no_name_at_all_opens_a_bracket_breaks_a_line_or_grows_long(self, name: str) -> None:
        shown = speaker(name)
        assert shown
        assert not set(shown) & set("[](){}<>`\n\r\x85\u2028\u2029")
        assert "(owner)" not in shown.casefold()
        assert len(shown.splitlines()) == 1
        assert utf16_length(shown) <= 48
        shown.encode("utf-8")


class TestTimes:
    @given(st.integers(0, LAST_MS))
    def test_milliseconds_come_back_from_their_text(self, ms: int) -> None:
        text = iso_ms(ms)
        assert ms_of_iso(text) == ms
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
        assert text[:10] == date_of(ms)

    @given(st.integers(0, LAST_MS), st.integers(0, LAST_MS))
    def test_texts_sort_like_the_times_they_tell(self, one: int, other: int) -> None:
        assert (iso_ms(one) < iso_ms(other)) == (one < other)

    def test_a_known_time_is_written_as_documented(self) -> None:
        assert iso_ms(1_770_136_175_000) == "2026-02-03T16:29:35.000Z"

    @each_row(
        "text",
        [
            "2026-02-03T16:29:35",
            "2026-02-03T16:29:35Z",
            "2026-02-03T17:29:35+01:00",
            "2026-02-03 16:29:35.000",
        ],
    )
    def test_other_forms_of_iso_8601_are_understood_and_a_missing_zone_is_utc(self, text: str) -> None:
        assert ms_of_iso(text) == 1_770_136_175_000

    @each_row("text", ["", "now", "2026-13-01", "2026-02-03T16:29:35.000X", "١٢"])
    def test_what_is_no_time_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"isoformat|month"):
            ms_of_iso(text)

    @each_row("value", [0, 1, LAST_MS])
    def test_a_number_from_outside_that_is_a_time(self, value: int) -> None:
        assert valid_ms(value)
        iso_ms(value)

    @each_row("value", [-1, LAST_MS + 1, True, 1.5, "1", None, 10**30])
    def test_a_value_from_outside_that_is_no_time(self, value: object) -> None:
        assert not valid_ms(value)
