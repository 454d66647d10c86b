"""The tokeniser: text of every script becomes terms that can meet the terms of another text."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.languages import ENGLISH_TOO
from discoclaw.core.words import STOP_WORDS, _stem, fold, guess, terms
from tests.core.builders import ANY_TEXT
from tests.counting import counted
from tests.tables import each_row


def meet(one: str, other: str) -> bool:
    """Whether two texts share a term."""
    return not set(terms(one)).isdisjoint(terms(other))


MOST_S = 10.0
"""Of a processor, for 100,000 characters: they take 0.2. By the square of their number it'd be minutes."""


def steps(text: str) -> int:
    """The lines of DiscoClaw that run for the terms of a text. What a pattern does is none of them."""
    with counted() as counts:
        terms(text)
    return counts.steps.total()


def seconds(text: str) -> float:
    """The time of the processor that the terms of a text take, however busy the machine is."""
    begin = time.thread_time()
    terms(text)
    return time.thread_time() - begin


class TestEveryScriptHasTerms:
    @each_row(
        ("query", "text"),
        [
            ("cafe", "We met at the Café Müller"),
            ("MÜLLER", "we met at the cafe muller"),
            ("Ελλάδα", "ταξίδι στην ελλαδα"),
            ("ёлка", "У нас дома елка"),
            ("Москва", "он живёт в МОСКВА сити"),
            ("हिन्दी", "वह हिन्दी बोलता है"),
            ("قهوة", "يحب قهوة الصباح"),
            ("שוקולד", "היא אוהבת שוקולד מריר"),
            ("北京", "他住在北京市"),
            ("コーヒー", "毎朝コーヒーを飲む"),
            ("ｺｰﾋｰ", "毎朝コーヒーを飲む"),
            ("커피", "아침마다 커피를 마신다"),
            ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
            ("ກາເຟ", "ຂ້ອຍມັກດື່ມກາເຟ"),
            ("Straße", "STRASSE"),
            ("ｐｙｔｈｏｎ", "Python"),
            ("𝗣𝘆𝘁𝗵𝗼𝗻", "Python"),
            ("ℂ𝕠𝕗𝕗𝕖𝕖", "coffee"),
        ],
    )
    def test_a_word_meets_a_text_that_holds_it(self, query: str, text: str) -> None:
        assert meet(query, text)

    @each_row(
        ("one", "other"),
        [("北京", "東京"), ("हिन्दी", "मराठी"), ("커피", "녹차"), ("กาแฟ", "น้ำส้ม"), ("кофе", "чай")],
    )
    def test_other_words_of_the_same_script_do_not_meet(self, one: str, other: str) -> None:
        assert not meet(one, other)

    def test_a_vowel_sign_belongs_to_its_word(self) -> None:
        assert terms("हिन्दी") == ["हिन्दी"]
        assert not meet("कि", "का")

    def test_scripts_without_spaces_become_pairs_of_neighbours(self) -> None:
        assert terms("東京都") == ["東京", "京都"]
        assert terms("茶") == ["茶"]
        assert terms("iPhone手机壳2") == ["iphon", "手机", "机壳", "2"]

    @each_row("text", ["", "   ", "🦀🎉", "?!… —", "\u200b", "\ud83d"])
    def test_text_without_words_has_no_terms(self, text: str) -> None:
        assert terms(text) == []


class TestEnglishWordsMeetInTheirForms:
    @each_row(
        ("one", "other"),
        [
            ("deploying", "deployed"),
            ("repositories", "repository"),
            ("cat", "cats"),
            ("What's the cat's name?", "the cat is called Tom"),
            ("isn’t Anna’s dog", "Annas dog"),
        ],
    )
    def test_forms_of_a_word_meet(self, one: str, other: str) -> None:
        assert meet(one, other)

    def test_names_of_tools_stay_whole_and_are_found_by_their_parts(self) -> None:
        assert terms("C++") == ["c++"]
        assert terms("C#") == ["c#"]
        assert terms("k8s") == ["k8s"]
        assert meet("node", "Node.js")
        assert meet("node.js", "we run node.js here")
        assert meet("example", "mail.example.com")
        assert meet("node-18", "the build on node 18")
        assert not meet("C++", "C#")

    def test_numbers_are_terms(self) -> None:
        assert terms("Room 7, 2026-02-03") == ["room", "7", "2026", "02", "03"]


class TestStopWordsAreNoEvidence:
    def test_a_question_word_says_nothing(self) -> None:
        assert terms("What do you know about me, and why is that?") == []

    def test_a_contraction_is_as_empty_as_its_words(self) -> None:
        assert terms("I've don't it's that’s you're") == []

    def test_single_latin_letters_say_nothing(self) -> None:
        assert terms("x y z") == []

    def test_the_list_holds_words_as_the_tokeniser_sees_them(self) -> None:
        english = STOP_WORDS["english"]
        assert [word for word in english if terms(word) or terms(word.upper())] == []


class TestNoTextIsTooMuch:
    @each_row(
        "text",
        [
            "a" * 100_000,
            "word " * 20_000,
            "漢" * 100_000,
            "a." * 50_000,
            "a'" * 50_000,
            "é" * 100_000,
            "c+" * 50_000,
        ],
    )
    def test_twice_as_much_takes_twice_as_long(self, text: str) -> None:
        assert steps(text[:20_000]) <= 2 * steps(text[:10_000]) + 50
        assert seconds(text) < MOST_S

    @each_row("text", ["aあ" * 50_000, "1漢" * 2_000])
    def test_changing_between_scripts_all_the_time_is_no_trap(self, text: str) -> None:
        assert len(terms(text)) >= len(text) // 2
        assert steps(text[:4_000]) <= 2 * steps(text[:2_000]) + 50
        assert seconds(text) < MOST_S

    @given(ANY_TEXT)
    def test_any_text_gives_terms_that_are_not_empty_and_no_stop_words(self, text: str) -> None:
        assert all(term and not term.isspace() for term in terms(text))

    @given(st.text(max_size=40))
    def test_case_is_no_difference(self, text: str) -> None:
        assert terms(text.casefold()) == terms(text)

    @given(st.text("qx7 漢字.'-+", max_size=30), st.text("qx7 漢字.'-+", max_size=30))
    def test_texts_side_by_side_have_the_terms_of_both(self, one: str, other: str) -> None:
        assert terms(f"{one} {other}") == terms(one) + terms(other)

    @given(st.text(max_size=40))
    def test_folding_is_final(self, text: str) -> None:
        assert fold(fold(text)) == fold(text)


class TestWordsThatTwoLanguagesShare:
    @each_row(
        ("query", "text"),
        [
            ("car", "User drives a red car."),
            ("Ben?", "User's friend Ben plays golf."),
            ("war games", "User collects games about war."),
            ("AI companies", "User invests in AI company shares."),
            ("todo lists", "User keeps a todo list."),
            ("Mother's Day", "User forgot the day of the mothers."),
            ("vitamin C tablets", "User takes a tablet of vitamin C."),
        ],
    )
    def test_an_english_word_is_no_function_word_because_another_language_has_it(
        self, query: str, text: str
    ) -> None:
        assert set(terms(query)) - {"mother"} <= set(terms(text)) and terms(query)

    def test_with_clearer_words_beside_it_it_is_one(self) -> None:
        assert terms("Was war das, und wo bist du?") == []
        assert terms("mon chat et ton car") == ["chat"]

    def test_short_words_that_english_lacks_still_tell(self) -> None:
        assert guess(["o", "usuario", "faz", "a", "feijoada", "com", "laranja"]) == "portuguese"
        assert terms("go on") == []

    def test_what_is_shortened_tells_the_language_too(self) -> None:
        assert guess(["user's", "friend", "plays", "la", "paloma"]) == "english"

    def test_the_list_holds_only_words_that_others_have(self) -> None:
        others = set().union(*(words for name, words in STOP_WORDS.items() if name != "english"))
        assert others - STOP_WORDS["english"] >= ENGLISH_TOO


def test_words_are_stemmed_in_many_threads_as_in_one() -> None:
    """A stemmer keeps the word that it works on: two threads in one raised IndexError."""

    def stemmed(thread: int) -> list[str]:
        return [_stem("english", f"nationalizations{thread}x{number}ingly") for number in range(500)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            together = list(threads.map(stemmed, range(8)))
    finally:
        sys.setswitchinterval(before)
    _stem.cache_clear()
    assert together == [stemmed(thread) for thread in range(8)]
