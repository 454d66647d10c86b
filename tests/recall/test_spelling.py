"""Other spellings: what nobody wrote is looked for in what somebody did."""

from discoclaw.core.words import terms
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.terms import Vocabulary
from tests.core.builders import NOW, item
from tests.tables import each_row

SHELF = [
    item("Plays the violin in an orchestra"),
    item("Bought a red bicycle"),
    item("Teaches chemistry in Hamburg"),
    item("Die Katzen heißen Mia und Tom"),
    item("用户的猫叫小白"),
    item("Lives beside the harbour"),
]


def found(query: str) -> list[str]:
    return [hit.item.text for hit in Ranker().rank(parse(query), SHELF, now_ms=NOW) if not hit.possible]


class TestASlipOfTheKeysIsForgiven:
    @each_row("slip", ["bicylce", "bicyccle", "biccycle", "bicicle"])
    def test_one_letter_missed_added_changed_or_two_swapped(self, slip: str) -> None:
        assert dict(Vocabulary(["bicycl", "violin", "biolog"]).near(terms(slip)[0])).keys() == {"bicycl"}

    def test_the_item_is_found(self) -> None:
        assert found("where is my bicylce?") == ["Bought a red bicycle"]
        assert found("hamberg") == ["Teaches chemistry in Hamburg"]

    def test_another_ending_is_the_same_word_in_any_language(self) -> None:
        assert found("Katze") == ["Die Katzen heißen Mia und Tom"]
        assert found("the violinist") == ["Plays the violin in an orchestra"]

    def test_one_han_character_is_a_part_of_a_word(self) -> None:
        assert found("猫") == ["用户的猫叫小白"]


class TestOtherWordsStayApart:
    @each_row("other", ["viola", "cat", "chess", "harvest", "red wine?", "orchid", "c3po", "x"])
    def test_a_word_that_only_begins_alike_is_another(self, other: str) -> None:
        assert Vocabulary(["violin", "chemistri", "harbour", "orchestra", "12345"]).near(other) == ()

    def test_numbers_have_one_spelling(self) -> None:
        assert Vocabulary(["12345", "12346"]).near("12344") == ()

    def test_what_somebody_wrote_exactly_is_not_looked_for_elsewhere(self) -> None:
        shelf = [*SHELF, item("Sells bicycles"), item("Met a bicyclist")]
        texts = [hit.item.text for hit in Ranker().rank(parse("bicyclist"), shelf, now_ms=NOW)]
        assert texts == ["Met a bicyclist"]

    def test_an_exact_word_counts_more_than_a_near_one(self) -> None:
        hits = Ranker().rank(parse("violins at the harbor"), SHELF, now_ms=NOW)
        assert [hit.item.text for hit in hits] == [
            "Plays the violin in an orchestra",
            "Lives beside the harbour",
        ]
