"""Long texts become messages: nothing lost, nothing too long, no code fence cut open."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.bot.split import Attachment, Message, Piece, Splitter, join, split
from tests.bot.fences import read


def units(text: str) -> int:
    """What Discord counts, computed without our own code."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def texts(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces]


WORDS = st.sampled_from(
    ["memory", "is", "a", "ledger", "of", "`events`", "größer", "👩‍👩‍👧", "e\u0301", "。", "`a b"]
)
LINES = st.lists(WORDS, max_size=60).map(" ".join)
LANGUAGES = st.sampled_from(["", "py", "python title=x", "c++", "x" * 40, "😀"])
MARKS = st.sampled_from(
    ["```", "~~~", "````", "~~~~~", "> ```", "- ```", "1. ```", "  ```", "      ```", "> - ~~~"]
)
FENCES = st.builds(lambda mark, language: mark + language, MARKS, LANGUAGES)
ODDITIES = st.sampled_from(
    [
        "",
        "   ",
        "\r",
        "so: ```json",
        "x```",
        "``` a",
        "``",
        "`" * 20,
        "> quoted",
        "> ",
        "🇩🇪" * 90,
        "x" * 700,
        "  in",
    ]
)
MESSY = st.lists(st.one_of(LINES, FENCES, MARKS, ODDITIES), max_size=60).map("\n".join)
ANY_TEXT = st.text(alphabet=st.sampled_from("`~> -\n\r\tab.1😀\u0301\u200d\ud800"), max_size=900)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Well-formed Markdown: paragraphs and closed code blocks."""
    parts = []
    for _ in range(draw(st.integers(1, 8))):
        parts.append(draw(LINES.filter(lambda line: line.count("`") % 2 == 0)))
        mark = draw(st.sampled_from(["```", "~~~", "````"]))
        code = draw(
            st.lists(st.sampled_from(["if x:", "    return 1", "", "\t# ok", "y = '👍'"]), max_size=60)
        )
        parts.append("\n".join([mark + draw(st.sampled_from(["", "py"])), *code, mark]))
    return "\n\n".join(parts)


class TestNothingIsLost:
    @given(MESSY | ANY_TEXT | documents())
    @settings(max_examples=100, deadline=None)
    def test_the_pieces_joined_are_the_text(self, text: str) -> None:
        for limit in (200, 2000):
            assert join(split(text, limit, file_over=600)) == (text if split(text, limit) else "")

    @given(MESSY | ANY_TEXT)
    @settings(max_examples=75, deadline=None)
    def test_only_white_space_that_does_not_fit_is_left_out_of_the_messages(self, text: str) -> None:
        for piece in split(text, 200):
            assert not (piece.lead + piece.trail).strip(" \t\r\n")
            if isinstance(piece, Message) and piece.trail:
                assert units(piece.text) == 200 or piece.closed

    def test_indentation_and_blank_lines_in_code_are_kept(self) -> None:
        code = "".join(f"def f{i}():\n    if x:\n        return {i}\n\n\n" for i in range(60))
        pieces = split(f"```py\n{code}```")
        bodies = [piece.text.removeprefix("```py\n").removesuffix("```") for piece in pieces]
        assert len(pieces) == 2
        assert "".join(bodies) == code

    def test_a_blank_text_gives_no_message(self) -> None:
        assert split("") == split(" \n\t\r\n" * 2000) == split("\ufeff\u200b") == []

    def test_white_space_longer_than_a_message_does_not_become_a_message(self) -> None:
        text = " " * 5000 + "a" + "\n" * 5000 + "b" + " " * 5000
        assert [piece.text.strip() for piece in split(text)] == ["a", "b"]
        assert join(split(text)) == text


class TestEachMessageIsAccepted:
    @given(MESSY | ANY_TEXT | documents())
    @settings(max_examples=100, deadline=None)
    def test_it_is_neither_too_long_nor_blank(self, text: str) -> None:
        for limit in (200, 2000):
            for piece in split(text, limit, file_over=600):
                assert 0 < units(piece.text) <= limit
                assert piece.text.strip()

    @given(MESSY | ANY_TEXT | documents())
    @settings(max_examples=100, deadline=None)
    def test_no_code_fence_is_left_open(self, text: str) -> None:
        for limit in (200, 2000):
            for piece in split(text, limit, file_over=600):
                assert not read(piece.text).open

    @given(documents())
    @settings(max_examples=75, deadline=None)
    def test_code_stays_code_and_words_stay_words(self, text: str) -> None:
        shown = [line for piece in split(text, 250, file_over=10**6) for line in read(piece.text).code]
        assert shown == read(text).code

    @given(MESSY)
    @settings(max_examples=100, deadline=None)
    def test_a_text_that_fits_is_one_message_as_it_is(self, text: str) -> None:
        if units(text) <= 2000 and text.strip() and not read(text).open:
            assert split(text) == [Message(text)]

    @given(MESSY)
    @settings(max_examples=50, deadline=None)
    def test_the_same_text_is_split_the_same_way(self, text: str) -> None:
        assert split(text, 300) == split(text, 300)

    def test_exactly_2000_units_are_one_message_and_one_more_are_two(self) -> None:
        assert len(split("😀" * 1000)) == 1
        assert [units(text) for text in texts(split("😀" * 1000 + "a"))] == [2000, 1]

    def test_a_limit_without_room_for_fences_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 200"):
            split("x", 199)


class TestCodeFences:
    def test_a_cut_block_is_closed_and_opened_again_in_its_language(self) -> None:
        first, second = texts(split("```python\n" + "x = 1\n" * 400 + "```\nDone."))
        assert first.startswith("```python\nx = 1\n") and first.endswith("\nx = 1\n```")
        assert second.startswith("```python\nx = 1\n") and second.endswith("\nx = 1\n```\nDone.")

    def test_a_block_that_fits_the_next_message_is_not_cut(self) -> None:
        block = "```py\n" + "y = 22\n\n" * 180 + "```"
        assert texts(split("Some words.\n\n" * 60 + block)) == ["Some words.\n\n" * 60, block]

    def test_a_block_in_a_longer_fence_may_hold_shorter_ones(self) -> None:
        inner = "```py\nprint()\n```\n" * 150
        for text in texts(split(f"````markdown\n{inner}````")):
            assert text.startswith("````markdown\n") and text.rstrip().endswith("````")

    def test_tildes_are_closed_by_tildes(self) -> None:
        first, second = texts(split("~~~sh\n" + "ls\n```\n" * 350 + "~~~"))
        assert first.endswith("\n~~~")
        assert second.startswith("~~~sh\n")

    def test_a_language_of_3000_characters_is_not_repeated(self) -> None:
        pieces = split("```" + "x" * 3000 + "\ncode\n```")
        assert pieces[1].text.startswith("```\nx")
        assert all(units(piece.text) <= 2000 and not read(piece.text).open for piece in pieces)

    def test_of_an_info_string_only_the_language_is_repeated(self) -> None:
        assert split("```py title=a.py\n" + "x = 1\n" * 400 + "```")[1].text.startswith("```py\n")

    def test_a_fence_in_a_list_keeps_its_indentation(self) -> None:
        first, second = texts(split("- ```py\n" + "  x = 1\n" * 300 + "  ```\n- next"))
        assert first.endswith("\n  ```")
        assert second.startswith("  ```py\n  x = 1\n")

    def test_a_fence_in_a_quote_stays_in_the_quote(self) -> None:
        first, second = texts(split("> ```py\n" + "> x = 1\n" * 300 + "> ```\nafter"))
        assert first.endswith("\n> ```")
        assert second.startswith("> ```py\n> x = 1\n")

    def test_a_block_that_was_never_closed_is_closed_so_that_it_shows(self) -> None:
        (piece,) = split("Look:\n```py\nx = 1")
        assert (piece.text, piece.source) == ("Look:\n```py\nx = 1\n```", "Look:\n```py\nx = 1")

    def test_closing_marks_behind_code_are_seen_as_discord_sees_them(self) -> None:
        text = "Here: ```json\n{}```\nand more"
        assert split(text) == [Message(text)]

    def test_no_empty_block_is_left_at_a_cut(self) -> None:
        for shift in range(90):
            around_closer = "```py\n" + "x = 1\n" * 320 + "#" * shift + "\n```\n" + "z" * 200
            around_opener = "w" * (600 + shift) + "\n```py\n" + "x" * 3000 + "\n```"
            for text in texts(split(around_closer) + split(around_opener)):
                assert "```py\n```" not in text

    def test_words_behind_an_unclosed_quoted_block_are_not_taken_into_it(self) -> None:
        for shift in range(120):
            text = "> ```py\n" + "> x = 1\n" * 235 + "> " + "#" * shift + "\nafter " + "w" * 200
            for piece in split(text):
                assert "```py\nafter" not in piece.text


class TestLongCode:
    CODE = "".join(f"value_{i} = {i}\n" for i in range(400))

    def test_it_becomes_a_file_between_the_words_around_it(self) -> None:
        pieces = split(f"Before.\n\n```python\n{self.CODE}```\n\nAfter.")
        assert texts(pieces) == ["Before.\n\n", "`code.py` (400 lines)", "After."]
        assert isinstance(pieces[1], Attachment)
        assert (pieces[1].name, pieces[1].content) == ("code.py", self.CODE)

    def test_two_messages_of_code_are_still_messages(self) -> None:
        assert all(
            isinstance(piece, Message) for piece in split("```\n" + "x" * 3900 + "\n```", file_over=3901)
        )
        assert isinstance(split("```\n" + "x" * 3900 + "\n```", file_over=3900)[0], Attachment)

    @pytest.mark.parametrize(
        ("language", "name"),
        [
            ("TypeScript", "code.ts"),
            ("rs", "code.rs"),
            ("", "code.txt"),
            ("exe", "code.txt"),
            ("../x", "code.txt"),
        ],
    )
    def test_its_name_follows_the_language_if_that_is_a_known_one(self, language: str, name: str) -> None:
        (piece,) = split(f"```{language}\n{self.CODE}```")
        assert isinstance(piece, Attachment) and piece.name == name

    def test_an_indented_one_is_a_file_too(self) -> None:
        pieces = split(f"- Run:\n\n    ```py\n{self.CODE}    ```\n- Done.")
        assert texts(pieces) == ["- Run:\n\n", "`code.py` (400 lines)", "- Done."]

    def test_an_unclosed_one_is_a_file_too(self) -> None:
        (piece,) = split(f"```py\n{self.CODE}")
        assert isinstance(piece, Attachment) and piece.content == self.CODE


class TestWhereItCuts:
    def test_between_paragraphs_first(self) -> None:
        paragraph = "Word after word. " * 50
        assert texts(split(f"{paragraph}\n\n{paragraph}\n\n{paragraph}")) == [
            f"{paragraph}\n\n{paragraph}\n\n",
            paragraph,
        ]

    def test_then_between_lines_preferring_one_that_is_not_indented(self) -> None:
        items = "".join(f"- item {i}\n  - below it\n" for i in range(200))
        assert all(text.startswith("- item") for text in texts(split(items)))

    def test_then_between_sentences(self) -> None:
        assert all(text.rstrip().endswith(".") for text in texts(split("This is a sentence. " * 300)))

    def test_then_between_words(self) -> None:
        assert all(text.split(" ")[0] == "word" for text in texts(split("word " * 1000)))

    def test_a_short_line_before_a_giant_word_is_not_a_message_of_its_own(self) -> None:
        assert units(split("See:\n" + "x" * 5000)[0].text) == 2000

    @pytest.mark.parametrize("letter", ["👩‍👩‍👧", "🇩🇪", "👍🏽", "e\u0301\u0302", "❤️", "\r\n"])
    def test_never_inside_what_is_seen_as_one_letter(self, letter: str) -> None:
        for shift in range(12):
            text = "x" * shift + "z" + letter * 600
            pieces = split(text)
            assert join(pieces) == text
            assert all(not text.strip().replace(letter, "").strip("xz\r\n") for text in texts(pieces))

    def test_not_inside_inline_code(self) -> None:
        for shift in range(40):
            for text in texts(split("x" * shift + " `code with many spaces in it` here" * 120)):
                assert text.count("`") % 2 == 0

    def test_no_cut_makes_a_fence_of_marks_inside_a_line(self) -> None:
        for shift in range(40):
            pieces = split("x" * shift + " word ``` word" * 400) + split(
                "word " * 390 + "x" * shift + " ``` end" * 3
            )
            pieces += split("word " * 390 + "x" * shift + " ``` " + "z" * 90)
            assert all(
                not read(piece.text).open and not piece.opened and not piece.closed for piece in pieces
            )


def letter_by_letter(text: str) -> list[Piece]:
    splitter, pieces = Splitter(200, file_over=500), []
    for char in text:
        splitter.add(char)
        while piece := splitter.settled():
            pieces.append(piece)
            splitter.accept(piece)
    while piece := splitter.rest():
        pieces.append(piece)
        splitter.accept(piece)
    return pieces


class TestATextThatIsStillBeingWritten:
    @given(MESSY | documents(), st.lists(st.integers(1, 400), min_size=1, max_size=40))
    @settings(max_examples=100, deadline=None)
    def test_settled_pieces_are_those_of_the_finished_text(self, text: str, steps: list[int]) -> None:
        splitter, at, turn, pieces = Splitter(200, file_over=500), 0, 0, []
        while at < len(text):
            step = steps[turn % len(steps)]
            splitter.add(text[at : at + step])
            at, turn = at + step, turn + 1
            while piece := splitter.settled():
                pieces.append(piece)
                splitter.accept(piece)
        while piece := splitter.rest():
            pieces.append(piece)
            splitter.accept(piece)
        assert pieces == split(text, 200, file_over=500)

    @given(MESSY | documents())
    @settings(max_examples=75, deadline=None)
    def test_every_draft_is_a_message_discord_takes(self, text: str) -> None:
        splitter = Splitter(200, file_over=500)
        for at in range(0, len(text), 37):
            splitter.add(text[at : at + 37])
            if draft := splitter.draft():
                assert 0 < units(draft.text) <= 200 and draft.text.strip() and not read(draft.text).open
                assert splitter.left.startswith(draft.source)

    @pytest.mark.parametrize(
        "behind",
        [
            "```py\nx\n```\n",
            "> ```\n> x\nno",
            "\n\n  \n- a",
            "` ``` ` x",
            "👩‍👩‍👧\u0301",
            "\n" * 90 + "  - x",
        ],
    )
    def test_what_comes_just_behind_a_cut_is_waited_for(self, behind: str) -> None:
        for shift in range(60):
            text = "word " * 30 + "x" * shift + "\n" * (shift % 3) + behind + " and some words after it" * 9
            assert letter_by_letter(text) == split(text, 200, file_over=500)

    def test_marks_in_code_are_not_taken_for_its_end_before_their_line_is_written(self) -> None:
        text = "```py\n" + "x = 1\n" * 60 + "```no\n" + "x = 1\n" * 60 + "```\n"
        assert letter_by_letter(text) == split(text, 200, file_over=500)
        assert len(split(text, 200, file_over=500)) == 1

    def test_the_first_message_settles_soon_after_it_is_full(self) -> None:
        splitter = Splitter()
        splitter.add("Some words here. " * 125)
        assert splitter.settled() is not None

    def test_a_half_written_fence_is_not_shown(self) -> None:
        splitter = Splitter()
        splitter.add("Look:\n``")
        assert splitter.draft() == Message("Look:\n")


class TestAMillionCharacters:
    @pytest.mark.parametrize(
        "unit",
        [
            "`",
            "~",
            "x",
            "\n",
            "x\n",
            "😀",
            "👩‍👩‍👧",
            "```\n",
            "``` ",
            "- ```\n",
            "> ```\n",
            "`a b` ",
            "a ```b ",
            "a\u0301",
        ],
    )
    def test_are_split_in_linear_time(self, unit: str) -> None:
        small, large = unit * (125_000 // len(unit)), unit * (1_000_000 // len(unit))
        started = time.process_time()
        split(small)
        between = time.process_time()
        pieces = split(large)
        ended = time.process_time()
        assert join(pieces) == (large if pieces else "")
        assert ended - between < max(2.0, 24 * (between - started))
