"""The net behind the model's judgement of what is personal, in every language it knows."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Kind
from discoclaw.core.languages import ALSO, FUNCTION_WORDS, SPOKEN, UNSPACED, personal
from discoclaw.core.privacy import is_personal, sensitivity
from discoclaw.core.words import fold
from tests.core.ordinary_sentences import ORDINARY
from tests.core.personal_sentences import OPENLY, PRIVATELY
from tests.tables import each_row

ANY_KIND: Kind = "preference"


def all_of(*tables: Mapping[str, Sequence[str]]) -> list[str]:
    return [sentence for table in tables for sentences in table.values() for sentence in sentences]


def learned(text: str, *, inferred: bool = True, privately: bool = False) -> str:
    return sensitivity(
        ANY_KIND, text, inferred=inferred, learned_privately=privately, marked="normal", rule="balanced"
    )


class TestTheLanguages:
    def test_are_those_of_recall_and_five_more(self) -> None:
        assert {*SPOKEN, *ALSO, *UNSPACED} - {"many"} == {
            *FUNCTION_WORDS,
            "hebrew",
            "chinese",
            "japanese",
            "korean",
            "thai",
        }

    @each_row(("table", "least"), [(OPENLY, 8), (PRIVATELY, 3), (ORDINARY, 4)])
    def test_are_all_tested(self, table: Mapping[str, Sequence[str]], least: int) -> None:
        assert {*table} == {*SPOKEN, *ALSO, *UNSPACED} - {"many"}
        assert min(map(len, table.values())) >= least


class TestWhatSomebodySaysInTheOpen:
    @each_row("sentence", all_of(OPENLY))
    def test_is_private_if_it_is_about_health_family_belief_money_or_whereabouts(self, sentence: str) -> None:
        assert learned(sentence) == "private"

    @each_row("sentence", all_of(PRIVATELY))
    def test_is_open_if_it_is_about_politics_sexuality_or_papers(self, sentence: str) -> None:
        assert learned(sentence) == "normal"

    @each_row("sentence", all_of(ORDINARY))
    def test_is_open_if_it_is_where_they_live_and_work_or_technical(self, sentence: str) -> None:
        assert learned(sentence) == "normal"

    @each_row("sentence", all_of(OPENLY))
    def test_stays_as_they_said_it_if_they_used_a_command(self, sentence: str) -> None:
        assert learned(sentence, inferred=False) == "normal"


class TestWhatSomebodySaysInPrivate:
    @each_row("sentence", all_of(OPENLY, PRIVATELY))
    def test_stays_there_whatever_the_matter(self, sentence: str) -> None:
        assert (
            learned(sentence, privately=True)
            == learned(sentence, inferred=False, privately=True)
            == "private"
        )


class TestATechnicalWordBesideIt:
    @each_row(
        ("personal", "technical"),
        [
            ("the children are ill-behaved", "the children of the process are ill-behaved"),
            ("User likes his family", "a family of fonts"),
            ("User's sister is Ann", "the sister project"),
            ("his address? ask him", "his address, IP or MAC"),
            ("er mag Kinder", "er mag Kinder der Klasse Widget"),
            ("su padre", "la clase padre"),
        ],
    )
    def test_makes_it_ordinary_in_the_open(self, personal: str, technical: str) -> None:
        assert is_personal(personal, in_the_open=True)
        assert not is_personal(technical, in_the_open=True)

    def test_changes_nothing_in_private(self) -> None:
        assert is_personal("a child process")

    def test_does_not_matter_further_away(self) -> None:
        assert is_personal("User's sister wrote the server", in_the_open=True)


def written_otherwise(text: str) -> Iterator[str]:
    """The same text in capitals, wide letters, bold ones, and with its accents apart."""
    yield text.upper()
    yield text.swapcase()
    yield "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
    yield "".join(
        chr(0x1D400 + ord(char) - 65)
        if "A" <= char <= "Z"
        else chr(0x1D41A + ord(char) - 97)
        if "a" <= char <= "z"
        else char
        for char in text
    )
    yield unicodedata.normalize("NFD", text)


class TestHowItIsWritten:
    @each_row("sentence", all_of(OPENLY))
    def test_does_not_matter(self, sentence: str) -> None:
        assert all(is_personal(other, in_the_open=True) for other in written_otherwise(sentence))

    @each_row("sentence", all_of(ORDINARY))
    def test_does_not_make_it_personal_either(self, sentence: str) -> None:
        assert not any(is_personal(other, in_the_open=True) for other in written_otherwise(sentence))

    @each_row("sentence", all_of(OPENLY))
    def test_needs_no_accents(self, sentence: str) -> None:
        assert is_personal(fold(sentence), in_the_open=True)

    @given(st.sampled_from(all_of(OPENLY)), st.data())
    def test_does_not_matter_for_any_mixture_of_cases(self, sentence: str, data: st.DataObject) -> None:
        flips = data.draw(st.lists(st.booleans(), min_size=len(sentence), max_size=len(sentence)))
        mixed = "".join(char.swapcase() if flip else char for char, flip in zip(sentence, flips, strict=True))
        assert is_personal(mixed, in_the_open=True)
        assert is_personal(mixed)

    @given(st.text())
    def test_what_counts_in_the_open_counts_in_private(self, text: str) -> None:
        assert is_personal(text) or not is_personal(text, in_the_open=True)


def is_well_formed(word: str) -> bool:
    """Whether a word of the lists is one that can be found."""
    *first, last = word.removesuffix("?").split("_")
    if last.endswith("-") and not first and len(fold(last)) < 3:
        return False  # beginnings are looked up by two letters
    return all(part.strip("-") for part in (*first, last)) and not any(part.endswith("-") for part in first)


class TestTheLists:
    def test_have_words_as_they_are_looked_up(self) -> None:
        words = list(personal(unspaced=False, in_the_open=False))
        assert len(words) > 4_000
        assert [word for word in words if not is_well_formed(word)] == []
