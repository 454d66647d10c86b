"""Plain questions, and names in long messages: what a person asks for is found, however they put it."""

import random
from collections.abc import Sequence

from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import parse
from discoclaw.recall.named_items import find
from discoclaw.recall.rank import MOST_FOUND, Ranker
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

LIFE = [
    item("User sleeps badly when the moon is full.", tags=["moon"]),
    item("User has a test in probability theory on Monday.", tags=["statistics"]),
    item("Long walks make User happy.", tags=["walks"]),
    item("User is in love with Clara.", "person", tags=["clara"]),
    item("User spends weekends building wooden boats.", tags=["boats"]),
    item("User wrote a bird tracker.", "project", tags=["go"]),
]


def found(message: str, items: Sequence[Item], *, search: bool = False) -> list[str]:
    query = parse(message, search=search)
    hits = Ranker().rank(query, items, now_ms=NOW, signals=Signals(own_name=None if search else "petra"))
    return [hit.item.text for hit in hits if not hit.possible]


class TestQuestionsThatLookLikeCourtesies:
    @each_row(
        ("message", "text"),
        [
            ("How do I sleep?", LIFE[0]),
            ("I need help with my sleep", LIFE[0]),
            ("When is my test?", LIFE[1]),
            ("what makes me happy", LIFE[2]),
            ("who do I love?", LIFE[3]),
            ("What do I do at the weekend?", LIFE[4]),
        ],
    )
    def test_a_question_about_oneself_is_answered(self, message: str, text: Item) -> None:
        assert found(message, LIFE) == [text.text]

    @each_row(
        "message",
        [
            "What a good day I had!",
            "how nice, I love it",
            "Sleep well!",
            "this is a test",
            "happy weekend, see you",
            "off to sleep, good night",
        ],
    )
    def test_what_only_sounds_like_one_still_asks_for_nothing(self, message: str) -> None:
        assert found(message, LIFE) == []

    @each_row(("typed", "text"), [("test tomorrow", LIFE[1]), ("sleep morning", LIFE[0]), ("go", LIFE[5])])
    def test_a_search_is_never_a_courtesy(self, typed: str, text: Item) -> None:
        assert found(typed, LIFE, search=True) == [text.text]
        assert text in find(LIFE, typed).meant


class TestWordsThatMostMemoriesHave:
    WORK = tuple(
        item(text, updated_at=NOW + n * DAY)
        for n, text in enumerate(
            [
                "User works at Siemens.",
                "User's work laptop is old.",
                "User works at night.",
                "User works on Fridays.",
            ]
        )
    )
    HOME = tuple(item(f"User owns a thing{n}", updated_at=NOW - n * DAY) for n in range(1, 4))

    @each_row("others", [2, 3])
    def test_who_asks_for_nothing_else_means_it(self, others: int) -> None:
        """Of six memories four are about work, or of eight five: the fifth decided that none was found."""
        more = [item("User's sister works at a bank.")] if others == 3 else []
        items = [*self.WORK, *more, *self.HOME[:others]]
        assert set(found("where do I work?", items)) == {one.text for one in (*self.WORK, *more)}

    def test_beside_something_rarer_it_says_nothing(self) -> None:
        items = [*self.WORK, item("User's sister works at a bank."), *self.HOME]
        assert found("does my thing2 work?", items) == ["User owns a thing2"]

    def test_an_alias_in_passing_does_not_push_out_what_has_more_of_the_question(self) -> None:
        bridge = item("User's project Heron is written in Rust", "project", updated_at=NOW + DAY)
        items = [item("User is an engineer at Siemens", tags=["work"]), bridge, *self.HOME]
        assert bridge.text in found("which projects do I work on?", items)


class TestNamesInLongMessages:
    def test_what_is_named_is_found_beside_what_has_nearly_all_words(self) -> None:
        key = item("The spare key lies there", tags=["view"], updated_at=NOW + DAY)
        words = " ".join(f"grain{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
        fillers = [item(f"User saw film number{n}", updated_at=NOW - n * DAY) for n in range(100)]
        items = [key, item(f"Bakes with {words}"), *fillers]
        message = f"I bake with {words.replace(' ', ', ')}. What about the view?"
        assert "The spare key lies there" in found(message, items)


class TestManyEqualOnes:
    MET = tuple(
        item(f"User met Mara at the lake number{n}", updated_at=NOW + n * DAY) for n in range(MOST_FOUND + 50)
    )
    FILMS = tuple(item(f"User saw film number{n + 1000}") for n in range(1200))

    def test_the_newest_are_found_in_whatever_order_they_are_stored(self) -> None:
        items = [*self.MET, *self.FILMS]
        hits = found("what about Mara?", items)
        assert hits[0] == self.MET[-1].text
        assert hits == found("what about Mara?", items[::-1])
        random.Random(3).shuffle(items)
        assert hits == found("what about Mara?", items)


class TestMessagesWithoutBound:
    WORDS = tuple(f"word{one}{other}" for one in "abcdefgh" for other in "abcdefgh")

    def test_a_line_that_is_repeated_is_judged_once(self) -> None:
        assert len(parse("a cat\n" * 900).topics) == 1

    def test_however_many_are_named_few_are_looked_at(self) -> None:
        dice = random.Random(5)
        items = [
            item(f"User keeps thing{n}", tags=[" ".join(dice.sample(self.WORDS, 3)) for _ in range(16)])
            for n in range(4 * MOST_FOUND)
        ]
        considered = Ranker().consider(parse(" ".join(self.WORDS)), items, now_ms=NOW)
        assert len(considered) <= 2 * MOST_FOUND


class TestAMemoryThatShrank:
    def test_what_was_taken_out_does_not_make_a_name_tell_more(self) -> None:
        """A name tells something if a tenth of the memory has it at most: of what is there now."""
        named = [item(f"Number{n} was there", tags=["harbour"]) for n in range(11)]
        items = [*named, *(item(f"User saw film{n}") for n in range(105))]
        ranker, query = Ranker(), parse("the harbour, and film99 too")
        ranker.rank(query, VisibleItems(items), now_ms=NOW)
        fewer = VisibleItems(items[:-12])
        after = ranker.consider(query, fewer, now_ms=NOW)
        assert after == Ranker().consider(query, fewer, now_ms=NOW)
