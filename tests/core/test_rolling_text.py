"""The text of a summary: what is a section and what is prose, and what leaves when there is no room."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.rolling_text import (
    DECIDED,
    HEADINGS,
    NOW,
    OPEN,
    Line,
    Notes,
    beginning,
    fitted,
    ordered,
    read,
    says_nothing,
    sentences,
)
from discoclaw.core.text import utf16_length
from tests.tables import each_row

WORDS = st.text("abcäß漢字🦞é -.,:()#*\"'[]!?1290", min_size=1, max_size=30)
DAYS = st.integers(1, 28).map(lambda day: f"2026-11-{day:02}")
LINES = st.builds(
    lambda section, day, words, done: read(
        f"{HEADINGS[section]}\n- {day} Ann: x{words}{' (done)' if done else ''}"
    ).lines[0],
    st.integers(0, len(HEADINGS) - 1),
    DAYS | st.just(""),
    WORDS,
    st.booleans(),
)
SECTIONS = st.lists(LINES, max_size=12, unique_by=lambda line: line.text).map(
    lambda lines: Notes(lines=ordered(lines))
)
SENTENCES = st.lists(
    st.text("abc äß漢🦞", min_size=1, max_size=40).map(lambda s: f"x{s.strip()}."), max_size=12
)


class TestReading:
    def test_sections_and_their_lines(self) -> None:
        text = """\
            Here is the summary:
            **Now**
            * 2026-11-19 Anna: moves the bot to Postgres 16
            ## Open:
            - Thu 2026-11-18 10:30, Ben: which region? (done)
              - 2026-11-19 Cleo: who pays?
                and when
            Decided: none
            Who wants what:
            - none
            """
        notes = read("\n".join(line.removeprefix(" " * 12) for line in text.splitlines()))
        assert notes == Notes(
            lines=(
                Line(NOW, "2026-11-19", "Anna: moves the bot to Postgres 16"),
                Line(OPEN, "2026-11-19", "Cleo: who pays? and when"),
                Line(OPEN, "2026-11-18", "Ben: which region?", done=True),
            )
        )
        assert str(notes) == (
            "Now:\n- 2026-11-19 Anna: moves the bot to Postgres 16\n"
            "Open:\n- 2026-11-19 Cleo: who pays? and when\n- 2026-11-18 Ben: which region? (done)"
        )

    def test_of_the_prose_above_only_titles_are_left_out(self) -> None:
        text = "Anna and Ben booked the flights.\nStill to do:\nHere it is:\nOpen:\n- Ben: looks for a hotel"
        notes = read(text)
        assert str(notes) == "Anna and Ben booked the flights.\nOpen:\n- Ben: looks for a hotel"
        assert read(str(notes)) == notes

    @each_row("marks", [".", "- ", "…"])
    def test_a_line_of_marks_without_end_is_read_in_one_pass(self, marks: str) -> None:
        assert not says_nothing(f"Now:\n- {marks * 200_000}x")

    @each_row("marks", ['"', ")", "\u201d"])
    def test_so_is_prose_of_them(self, marks: str) -> None:
        text = f"One.{marks} {marks * 100_000}x"
        assert sentences(text) == [f"One.{marks}", f"{marks * 100_000}x"]
        assert utf16_length(fitted(text, 300)) <= 300

    @each_row(
        ("text", "first"),
        [
            ("- one\n- two\n- three", "- one\n- two"),
            ("- one\n" + "x" * 50, "- one\n" + "x" * 11),
            ("short", "short"),
        ],
    )
    def test_the_first_lines_of_a_text_without_end(self, text: str, first: str) -> None:
        assert beginning(text, 17) == first

    def test_a_line_without_a_date_stays_below_what_it_followed(self) -> None:
        notes = read("Decided:\n- first\n- 2026-11-01 old\n- with it\n- 2026-11-09 new")
        assert [line.text for line in notes.lines] == ["first", "new", "old", "with it"]
        assert {line.section for line in notes.lines} == {DECIDED}

    @each_row("text", ["They talk. Open is what Ann asks.", "Nowadays: tabs.", "- one\n- two"])
    def test_all_else_is_prose(self, text: str) -> None:
        assert read(text) == Notes(text)

    @each_row(
        "text", ["", " \n\n", "none", "(none)", "N/A", "Now:\nOpen:\n- none\nDecided: nothing", "- \n*", "…"]
    )
    def test_what_says_nothing(self, text: str) -> None:
        assert says_nothing(text)

    @each_row("text", ["Tabs.", "👍", "Now:\n- tabs", "none of them came", "無"])
    def test_what_says_something(self, text: str) -> None:
        assert not says_nothing(text)

    def test_a_line_of_a_section_counts_as_one_sentence(self) -> None:
        assert sentences("One. Two!\nNow:\n- 2026-11-19 Ann: a. b.") == [
            "One.",
            "Two!",
            "Now:",
            "- 2026-11-19 Ann: a. b.",
        ]

    @given(SECTIONS)
    def test_what_was_written_is_read_as_the_same(self, notes: Notes) -> None:
        assert read(str(notes)) == notes


class TestFitting:
    def test_done_lines_go_first_and_then_the_oldest(self) -> None:
        text = (
            "Now:\n- 2026-11-04 newest\nOpen:\n- 2026-11-03 settled (done)\n- 2026-11-01 oldest\n"
            "Decided:\n- 2026-11-02 middle"
        )
        left = [{line.text for line in read(fitted(text, units)).lines} for units in range(len(text), 24, -1)]
        steps = [now for before, now in zip([set(), *left], left, strict=False) if now != before]
        assert steps == [
            {"newest", "settled", "oldest", "middle"},
            {"newest", "oldest", "middle"},
            {"newest", "middle"},
            {"newest"},
        ]

    @given(SECTIONS, st.integers(1, 300))
    def test_no_line_is_ever_cut(self, notes: Notes, units: int) -> None:
        whole, kept = str(notes).splitlines(), fitted(str(notes), units)
        assert utf16_length(kept) <= units
        if any(utf16_length(f"{HEADINGS[line.section]}\n{line}\n") <= units for line in notes.lines):
            assert set(kept.splitlines()) <= set(whole)
        assert fitted(kept, units) == kept

    @given(SECTIONS, st.integers(40, 300))
    def test_nothing_stays_that_is_needed_less_than_what_went(self, notes: Notes, units: int) -> None:
        kept = set(read(fitted(str(notes), units)).lines)
        gone = [line for line in notes.lines if line not in kept and utf16_length(str(line)) + 20 <= units]
        dated = [line for line in kept if line.date]
        for line in gone:
            if line.date:
                assert all((not one.done, one.date) >= (not line.done, line.date) for one in dated)

    @given(SENTENCES, st.integers(20, 200))
    def test_prose_loses_its_first_sentences(self, parts: list[str], units: int) -> None:
        text = " ".join(parts)
        kept = fitted(text, units)
        assert utf16_length(kept) <= units
        if parts and utf16_length(parts[-1]) <= units:
            assert any(kept == " ".join(parts[at:]) for at in range(len(parts)))
        assert fitted(kept, units) == kept

    @each_row("text", ["x" * 900, "word " * 200, "Now:\n- 2026-11-19 " + "y" * 900])
    def test_only_what_is_too_long_by_itself_is_cut(self, text: str) -> None:
        assert 95 <= len(fitted(text, 100)) <= 100
        assert fitted(text, 100).endswith("…")

    def test_a_line_that_fits_nowhere_takes_no_other_with_it(self) -> None:
        assert fitted(f"Now:\n- 2026-11-19 {'y' * 900}\n- 2026-11-01 tea", 100) == "Now:\n- 2026-11-01 tea"

    def test_prose_before_sections_takes_half_of_the_room(self) -> None:
        text = f"{'One two three. ' * 20}\nNow:\n- 2026-11-19 tea\n- 2026-11-01 {'old ' * 30}"
        kept = fitted(text, 120)
        assert kept == "One two three. One two three. One two three. One two three.\nNow:\n- 2026-11-19 tea"
