"""The tokeniser of the local model. The golden numbers are those of Hugging Face's `tokenizers` 0.23.3."""

from importlib import resources

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.embed.local import tokens, vocabulary
from tests.tables import each_row

VOCABULARY = vocabulary((resources.files("discoclaw.embed") / "minilm" / "vocab.txt").read_text("utf-8"))

GOLDEN = {
    "": [],
    "Hello, World!": [7592, 1010, 2088, 999],
    "User prefers tabs over spaces.": [5310, 19233, 21628, 2015, 2058, 7258, 1012],
    "unaffable": [14477, 20961, 3468],
    "use node.js & C++ (v3.2)": [
        *[2224, 13045, 1012, 1046, 2015, 1004, 1039, 1009, 1009, 1006, 1058, 2509, 1012, 1016, 1007]
    ],
    "naïve CAFÉ": [15743, 7668],
    "日本語 テスト": [1864, 1876, 1950, 1713, 30233, 30240],
    "한국어": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008],
    "हिन्दी": [1339, 29877, 29863, 29861, 29878],
    "\u200bzero\u00a0width\x07": [5717, 9381],
    "don’t — “really”": [2123, 1521, 1056, 1517, 1523, 2428, 1524],
    "🐦 bird": [100, 4743],
    "x" * 101: [100],
}


class TestTokens:
    @each_row("text", GOLDEN)
    def test_are_those_of_the_reference(self, text: str) -> None:
        assert tokens(text, VOCABULARY, most=128) == [101, *GOLDEN[text], 102]

    def test_the_vocabulary_is_whole(self) -> None:
        assert len(VOCABULARY) == 30_522
        assert (VOCABULARY["[PAD]"], VOCABULARY["the"], VOCABULARY["##ing"]) == (0, 1996, 2075)

    def test_a_long_text_is_cut_and_still_ends(self) -> None:
        found = tokens("tabs and spaces " * 1000, VOCABULARY, most=128)
        assert len(found) == 128
        assert (found[0], found[-1]) == (101, 102)

    @given(st.text(max_size=300))
    def test_any_text_has_a_beginning_and_an_end(self, text: str) -> None:
        found = tokens(text, VOCABULARY, most=32)
        assert 2 <= len(found) <= 32
        assert (found[0], found[-1]) == (101, 102)
        assert set(found) <= set(VOCABULARY.values())
