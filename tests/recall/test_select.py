"""What goes into a prompt: standing items, then what was found, whole lines under a budget."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import KINDS, STANDING, Item, durable_line
from discoclaw.core.text import utf16_length
from discoclaw.core.visible import is_standing
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import Chosen, select
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row


def chosen(query: str, items: Sequence[Item], max_chars: int = 2000) -> tuple[Chosen, ...]:
    return select(Ranker(), parse(query), items, max_chars=max_chars, now_ms=NOW).chosen


def texts(query: str, items: Sequence[Item], max_chars: int = 2000) -> list[str]:
    return [one.item.text for one in chosen(query, items, max_chars)]


WORDS = ["tea", "coffee", "Oslo", "Linz", "🦀🦀", "東京", "lives in", "garden", "x" * 90, "short answers"]
ITEMS = st.lists(
    st.builds(
        item,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
        st.sampled_from(KINDS),
        updated_at=st.integers(NOW, NOW + 3),
    ),
    max_size=20,
    unique_by=lambda one: one.id,
)
QUERIES = st.lists(st.sampled_from([*WORDS, "nothing"]), max_size=3).map(" ".join)


class TestTheBudget:
    @given(QUERIES, ITEMS, st.integers(0, 1500))
    def test_it_is_never_exceeded_in_utf16_units(self, query: str, items: list[Item], max_chars: int) -> None:
        shown = chosen(query, items, max_chars)
        assert utf16_length("\n".join(one.line for one in shown)) <= max_chars

    @given(QUERIES, ITEMS, st.integers(0, 1500))
    def test_lines_are_whole_and_no_item_is_shown_twice(
        self, query: str, items: list[Item], max_chars: int
    ) -> None:
        shown = chosen(query, items, max_chars)
        assert [one.line for one in shown] == [
            durable_line(one.item, until_ms=one.until)
            + (" (possibly related)" if one.possible and not is_standing(one.item) else "")
            + f" [i{one.place}]"
            for one in shown
        ]
        assert sorted(one.place for one in shown) == list(range(1, len(shown) + 1))
        assert len({one.item.id for one in shown}) == len(shown)
        assert {one.item.id for one in shown} <= {one.id for one in items}

    @given(QUERIES, ITEMS, st.integers(0, 1500), st.randoms(use_true_random=False))
    def test_the_order_of_the_items_makes_no_difference(
        self, query: str, items: list[Item], max_chars: int, chance: random.Random
    ) -> None:
        shuffled = list(items)
        chance.shuffle(shuffled)
        assert chosen(query, shuffled, max_chars) == chosen(query, items, max_chars)

    def test_a_line_that_does_not_fit_is_passed_over_for_a_shorter_one(self) -> None:
        long, short = item("tea " * 40 + "ceremony"), item("likes tea", updated_at=NOW - DAY)
        assert texts("tea", [long, short], 80) == ["likes tea"]

    def test_a_line_fits_to_the_last_unit(self) -> None:
        one = item("likes 🦀 tea")
        room = utf16_length(f"{durable_line(one)} [i1]") + 1
        assert texts("tea", [one], room) == ["likes 🦀 tea"]
        assert texts("tea", [one], room - 2) == []

    def test_no_budget_shows_nothing(self) -> None:
        assert chosen("tea", [item("likes tea"), item("be brief", "preference")], 0) == ()

    def test_the_best_is_kept_when_room_is_short(self) -> None:
        items = [item(f"tea number {n} is fine", updated_at=NOW + n) for n in range(50)]
        items.append(item("oolong tea is the favourite", updated_at=NOW - DAY))
        assert texts("which oolong tea?", items, 200)[0] == "oolong tea is the favourite"


class TestAFewStandingItemsAreAlwaysThere:
    STANDING_TEXTS = ("Never use emojis", "Answer briefly")

    @pytest.fixture
    def items(self) -> list[Item]:
        return [
            item("Answer briefly", "preference", updated_at=NOW - DAY),
            item("Never use emojis", "constraint", updated_at=NOW - 2 * DAY),
            item("The cat is named Tom"),
            item("Works at Acme", "project"),
        ]

    @each_row("query", ["", "hello", "what is 2 + 2?", "what's the cat's name?"])
    def test_whatever_is_asked(self, items: list[Item], query: str) -> None:
        assert set(self.STANDING_TEXTS) <= set(texts(query, items))

    def test_nothing_else_is_there_without_a_reason(self, items: list[Item]) -> None:
        assert texts("what is 2 + 2?", items) == list(self.STANDING_TEXTS)
        assert texts("what's the cat's name?", items) == [*self.STANDING_TEXTS, "The cat is named Tom"]

    def test_each_says_why_it_is_there(self, items: list[Item]) -> None:
        shown = chosen("what's the cat's name? no emojis", items)
        assert {one.item.text: one.why for one in shown} == {
            "Never use emojis": "emoji",
            "Answer briefly": "standing",
            "The cat is named Tom": "cat, name",
        }

    def test_they_leave_half_of_the_room_to_what_was_found(self) -> None:
        many = [
            item(f"Standing wish {n} about style{n}", "preference", updated_at=NOW + n) for n in range(60)
        ]
        facts = [item(f"The cat has toy{n}", updated_at=NOW - n) for n in range(60)]
        shown = chosen("is the cat well?", [*many, *facts], 1000)
        kinds = [one.item.kind in STANDING for one in shown]
        assert 3 < sum(kinds) < len(kinds) - 3
        assert shown[kinds.index(False)].item.text == "The cat has toy0"

    def test_constraints_take_all_of_the_room_when_nothing_was_found(self) -> None:
        many = [item(f"Standing rule {n} about x{n}", "constraint", updated_at=NOW + n) for n in range(60)]
        room = sum(utf16_length(one.line) + 1 for one in chosen("nothing", many, 1000))
        assert room > 900

    def test_constraints_that_do_not_fit_into_their_half_fill_what_is_left(self) -> None:
        many = [item(f"Standing rule {n} about x{n}", "constraint", updated_at=NOW + n) for n in range(60)]
        shown = chosen("cat", [*many, item("The cat is Tom")], 1000)
        assert "The cat is Tom" in [one.item.text for one in shown]
        assert sum(utf16_length(one.line) + 1 for one in shown) > 900

    def test_the_newest_come_first_and_those_that_are_asked_for_before_them(self) -> None:
        items = [
            item(f"Wish {n}: {w}", "preference", updated_at=NOW + n)
            for n, w in enumerate(["tea", "oolong", "mate"])
        ]
        assert texts("nothing", items) == ["Wish 2: mate", "Wish 1: oolong", "Wish 0: tea"]
        assert texts("tea?", items)[0] == "Wish 0: tea"

    def test_constraints_that_a_person_stated_come_before_all_others(self) -> None:
        rule = item("Never mention work", "constraint", updated_at=NOW - DAY)
        wishes = [item(f"Wish {w}", "preference") for w in ("tea", "mate")]
        assert texts("tea?", [*wishes, rule])[:2] == ["Never mention work", "Wish tea"]


class TestTheSameIsNotSaidTwice:
    def test_other_spelling_and_filler_words_are_no_news(self) -> None:
        items = [
            item("Likes green tea.", updated_at=NOW + 1),
            item("The user likes green tea"),
            item("likes GREEN tea!", "project"),
        ]
        assert texts("green tea", items) == ["Likes green tea."]

    def test_a_preference_is_not_repeated_as_a_fact(self) -> None:
        items = [item("Prefers dark mode", "preference"), item("prefers dark mode")]
        assert [one.item.kind for one in chosen("dark mode", items)] == ["preference"]

    @each_row(
        ("one", "other"),
        [
            ("Prefers tabs over spaces", "Prefers spaces over tabs"),
            ("Moved from Bonn to Oslo", "Moved from Oslo to Bonn"),
            ("Eats meat", "Does not eat meat"),
            ("Wants comments in the code", "Wants no comments in the code"),
            ("Drives to Bonn before noon", "Drives to Bonn after noon"),
        ],
    )
    def test_words_in_another_order_or_denied_say_something_else(self, one: str, other: str) -> None:
        items = [item(one), item(other, updated_at=NOW + 1)]
        assert set(texts("tabs spaces bonn oslo meat comments code noon", items)) == {one, other}

    def test_items_without_any_term_are_told_apart_by_their_text(self) -> None:
        assert len(texts("nothing", [item("🦀", "preference"), item("🎉", "preference")])) == 2


class TestAskingWhatIsRemembered:
    ITEMS = (
        item("Answer briefly", "preference", updated_at=NOW - 3 * DAY),
        item("The cat is named Tom", updated_at=NOW - 2 * DAY),
        item("Works at Acme", "project", updated_at=NOW - DAY),
    )

    @each_row(
        "query",
        [
            "What do you remember about me?",
            "what do you know about me",
            "Who am I?",
            "Tell me everything you have learned about me so far!",
            "show my memory",
            "list all the facts you stored about me",
            "I want to know what you remember about me",
        ],
    )
    def test_everything_is_shown_newest_first_after_what_stands(self, query: str) -> None:
        assert parse(query).everything
        assert texts(query, self.ITEMS) == ["Answer briefly", "Works at Acme", "The cat is named Tom"]
        assert {one.why for one in chosen(query, self.ITEMS)} == {"asked for everything"}

    @each_row(
        "query",
        [
            "",
            "what do you remember about my cat?",
            "remember that I like tea",
            "do you know how to make tea?",
            "what do you know about Mongolia?",
            "I know my way around Oslo",
            "how does your memory work?",
            "I don't know what I want",
            "let me know if you need me",
            "I never know what I should do",
            "you know " * 20_000,
            "remember note " * 8_000,
        ],
    )
    def test_asking_for_something_in_particular_is_a_search_like_any(self, query: str) -> None:
        assert not parse(query).everything

    def test_the_budget_holds(self) -> None:
        many = [item(f"note {n} about thing{n}", updated_at=NOW + n) for n in range(200)]
        shown = chosen("what do you remember about me?", many, 500)
        assert utf16_length("\n".join(one.line for one in shown)) <= 500
        assert shown[0].item.text == "note 199 about thing199"


class TestWhatANewerItemReplaced:
    LINZ = item("User lives in Linz.", updated_at=NOW - 90 * DAY)
    GRAZ = item("User lives in Graz.", updated_at=NOW)
    QUAY = item("The quay was flooded.", updated_at=NOW - 200 * DAY)

    def test_comes_behind_it_and_says_until_when_it_held(self) -> None:
        shown = chosen("where do I live, and did I live in Linz?", [self.LINZ, self.GRAZ])
        assert [one.line for one in shown] == [
            "- [fact] User lives in Graz. (src: manual, updated 2026-02-02) [i1]",
            "- [fact] (until 2026-02) User lives in Linz. (src: manual, updated 2025-11-04) [i2]",
        ]

    def test_stays_out_where_room_is_short(self) -> None:
        items, asked = [self.LINZ, self.GRAZ, self.QUAY], "Is the quay flooded? And Linz?"
        assert texts(asked, items) == ["The quay was flooded.", "User lives in Graz.", "User lives in Linz."]
        assert texts(asked, items, 180) == ["The quay was flooded.", "User lives in Graz."]

    def test_brings_along_what_replaced_it(self) -> None:
        shown = chosen("Linz?", [self.LINZ, self.GRAZ])
        assert {one.item.text: one.why for one in shown} == {
            "User lives in Graz.": "newer than one that fits",
            "User lives in Linz.": "linz",
        }
        assert [one.called_for for one in shown] == [False, True]

    def test_its_line_is_what_was_reckoned_with(self) -> None:
        whole = sum(utf16_length(one.line) + 1 for one in chosen("live in Linz?", [self.LINZ, self.GRAZ]))
        assert len(texts("live in Linz?", [self.LINZ, self.GRAZ], whole)) == 2
        assert texts("live in Linz?", [self.LINZ, self.GRAZ], whole - 1) == ["User lives in Graz."]

    def test_says_so_among_what_is_always_there(self) -> None:
        before = item("User's budget is 20 euros.", "constraint", updated_at=NOW - DAY)
        after = item("User's budget is 30 euros.", "constraint")
        lines = [one.line for one in chosen("hello", [before, after])]
        assert "(until 2026-02) User's budget is 20 euros." in lines[1]

    def test_two_that_are_true_together_say_nothing(self) -> None:
        cats = [
            item(f"User has a cat called {name}.", updated_at=NOW + n)
            for n, name in enumerate(("Tom", "Miso"))
        ]
        assert [one.until for one in chosen("what are my cats called?", cats)] == [None, None]
        assert texts("what are my cats called?", cats)[0] == "User has a cat called Miso."

    def test_of_two_that_may_both_be_true_the_one_that_is_named_comes_first(self) -> None:
        teas = [item("User drinks oolong."), item("User drinks sencha.", updated_at=NOW + DAY)]
        assert texts("oolong or what do I drink?", teas)[0] == "User drinks oolong."
        assert texts("what do I drink?", teas)[0] == "User drinks sencha."

    def test_a_memory_in_which_all_are_near_equal_is_compared_in_part(self) -> None:
        cities = [item(f"User lives in City{n}.", updated_at=NOW + n) for n in range(500)]
        shown = chosen("do I live in City7 or City19?", cities)
        assert shown[0].item.text == "User lives in City499."
        assert {one.item.text for one in shown} >= {"User lives in City7.", "User lives in City19."}
