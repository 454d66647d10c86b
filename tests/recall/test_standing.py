"""Which standing items go into a prompt, where all of them would be too many."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.core.text import utf16_length
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import FEW, NO_ROOM, SAID, SHARE, WAITS, Selection, select
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

ROOM = 2000
TOPICS = [
    "User wants type hints in Python code.",
    "User wants aisle seats on planes.",
    "User prefers metric units when cooking.",
    "User likes furniture of solid wood.",
    "User dislikes horror films.",
    "User prefers CTEs to subqueries in SQL.",
    "User likes houseplants that survive drought.",
    "User drinks dry white wine only.",
    "User wants campsites with no loudspeakers.",
    "User reads news about Africa first.",
    "User polishes the doorbell once a month.",
    "User feeds the ducks on the way home.",
]
SHORT, INFORMAL = "User wants short answers.", "User likes to be addressed informally."


def learned(text: str, kind: str = "preference", updated_at: int = NOW) -> Item:
    """An item that the bot learned from talk."""
    return item(text, kind, updated_at=updated_at, author="inferred")


MANY = [learned(text, updated_at=NOW + n) for n, text in enumerate(TOPICS)]


def selected(message: str, items: Sequence[Item], room: int = ROOM, **known: Any) -> Selection:
    now, signals = NOW + DAY, Signals(**known)
    return select(Ranker(), parse(message), items, max_chars=room, now_ms=now, signals=signals)


def texts(message: str, items: Sequence[Item], room: int = ROOM) -> list[str]:
    return [one.item.text for one in selected(message, items, room).chosen]


class TestOfMany:
    def test_what_is_about_a_topic_waits_for_it(self) -> None:
        assert texts("tell me a joke", MANY) == []
        assert texts("write a Python function that sorts a list", MANY) == [TOPICS[0]]
        assert texts("suggest a film for tonight", MANY) == [TOPICS[4]]

    def test_what_says_how_to_answer_is_always_there(self) -> None:
        always = [learned(SHORT), learned(INFORMAL, updated_at=NOW - DAY)]
        for message in ("tell me a joke", "suggest a film", "which wine should I buy?", ""):
            assert set(texts(message, [*MANY, *always])) >= {SHORT, INFORMAL}

    def test_what_the_message_calls_for_comes_before_what_is_always_there(self) -> None:
        assert texts("suggest a film", [*MANY, learned(SHORT)]) == [TOPICS[4], SHORT]

    def test_any_word_of_a_brief_message_calls_for_one(self) -> None:
        assert texts("what's in the news today?", MANY) == [TOPICS[9]]

    def test_one_does_not_outdo_the_others_of_its_topic(self) -> None:
        films = ["User watches films in the original.", "User wants a film for Sundays to be short."]
        found = texts("a film for a rainy Sunday, please", [*MANY, *map(learned, films)])
        assert set(found) == {TOPICS[4], *films}

    def test_a_name_that_nothing_has_leaves_them_in(self) -> None:
        assert texts("suggest a film from Korea for me", MANY) == [TOPICS[4]]

    def test_a_common_word_of_a_long_message_calls_for_none(self) -> None:
        long = (
            "I walked along the river, past the mill and the orchard, when a heron flew up. That made news."
        )
        assert texts(long, MANY) == []

    def test_constraints_that_the_person_stated_never_wait(self) -> None:
        rules = [item(f"Never mention subject{n}", "constraint") for n in range(5)]
        assert set(texts("suggest a film", [*MANY, *rules])) == {TOPICS[4], *(one.text for one in rules)}

    def test_constraints_that_were_concluded_wait_unless_they_could_do_harm(self) -> None:
        tent = learned("User's tent sleeps two at most.", "constraint")
        nuts = learned("User is allergic to nuts.", "constraint")
        noix = learned("L'utilisateur est allergique aux crevettes.", "constraint")
        assert texts("what is for lunch?", [*MANY, tent, nuts]) == [nuts.text]
        assert texts("what is for lunch?", [*MANY, tent, noix]) == [noix.text]
        assert texts("where to put up the tent?", [*MANY, tent]) == [tent.text]

    def test_an_allergy_is_there_however_many_came_later(self) -> None:
        nuts = learned("User is allergic to nuts.", "constraint", updated_at=NOW - DAY)
        own = [item(f"Wants cover{n} on books", "preference", updated_at=NOW + n) for n in range(250)]
        assert texts("what is for lunch?", [*own, nuts])[0] == nuts.text

    @each_row(
        "text",
        [
            "User can't eat gluten.",
            "User avoids lactose.",
            "L'utilisateur est cœliaque.",
            "L'utilisatrice est enceinte.",
            "La usuaria está embarazada.",
            "El usuario tiene asma.",
            "User verträgt keine Milch.",
            "User takes blood thinners.",
            "User is a recovering alcoholic.",
            "المستخدم لديه حساسية من المكسرات",
        ],
    )
    def test_what_could_do_harm_never_waits(self, text: str) -> None:
        assert texts("what is for lunch?", [*MANY, learned(text, "constraint")]) == [text]

    def test_core_memories_never_wait(self) -> None:
        note = item("Has been the treasurer for years.", category="core")
        assert texts("tell me a joke", [*MANY, note]) == [note.text]

    def test_what_the_person_stated_comes_into_the_share_before_what_was_concluded(self) -> None:
        own = [item(f"Wants cover{n} on books", "preference", updated_at=NOW - n) for n in range(30)]
        shown = texts("tell me a joke", [*MANY, learned(SHORT), *own])
        assert shown == [SHORT, *(one.text for one in own[: len(shown) - 1])]
        cost = sum(utf16_length(one.line) + 1 for one in selected("tell me a joke", [*MANY, *own]).chosen)
        assert cost <= max(ROOM * SHARE, FEW * 70)

    def test_what_was_used_lately_comes_first(self) -> None:
        own = [item(f"Wants cover{n} on books", "preference", updated_at=NOW - n) for n in range(30)]
        used = {own[-1].id: NOW + 5}
        assert selected("tell me a joke", own, accessed=used).chosen[0].item == own[-1]

    def test_more_room_leaves_all_of_them_in(self) -> None:
        assert set(texts("tell me a joke", MANY, 10_000)) == set(TOPICS)

    def test_the_more_there_are_the_fewer_stand_without_a_reason(self) -> None:
        ending = ", and has done so for many a year."
        long = [learned(one.text[:-1] + ending, updated_at=one.updated_at) for one in MANY]
        counts = [len(texts("tell me a joke", long[:count])) for count in range(2 * FEW + 1)]
        assert counts == [0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0]

    def test_who_asks_for_everything_is_given_them(self) -> None:
        assert set(texts("what do you remember about me?", MANY)) == set(TOPICS)

    def test_in_a_language_without_a_list_the_newest_fill_the_share(self) -> None:
        text = "Użytkownik nie lubi tego, co jest w {}, i chce ciszy"
        polish = [learned(text.format(n), updated_at=NOW + n) for n in range(30)]
        assert texts("co słychać?", polish)[0] == polish[-1].text
        assert len(texts("co słychać?", polish)) >= FEW


class TestWhatIsLeftOut:
    def test_waits_for_its_topic(self) -> None:
        assert set(selected("tell me a joke", MANY).left_out().values()) == {WAITS}

    def test_has_no_room_if_the_message_calls_for_it(self) -> None:
        films = [learned(f"User wants films with actor{n}.") for n in range(60)]
        made = selected("suggest a film", [*MANY, *films])
        reasons = made.left_out()
        assert {reasons[one.id] for one in films if one.id in reasons} == {NO_ROOM}
        assert reasons[MANY[0].id] == WAITS

    def test_of_too_many_constraints_the_newest_and_those_called_for_stay(self) -> None:
        rules = [item(f"Never mention subject{n}", "constraint", updated_at=NOW + n) for n in range(60)]
        made = selected("and subject3?", rules)
        shown = [one.item.text for one in made.chosen]
        assert shown[:2] == ["Never mention subject3", "Never mention subject59"]
        assert set(made.left_out().values()) == {NO_ROOM}
        assert len(shown) + len(made.left_out()) == 60

    def test_that_it_is_said_already_comes_first(self) -> None:
        rule = item("Never mention work", "constraint")
        again = item("never mention WORK!", "constraint", updated_at=NOW + 1)
        assert selected("hi", [*MANY, rule, again]).left_out()[rule.id] == SAID


WORDS = ["tea", "oolong", "film", "wine", "short", "answers", "Linz", "nuts", "x" * 60]
STANDING = st.lists(
    st.builds(
        item,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
        st.sampled_from(["preference", "constraint"]),
        updated_at=st.integers(NOW, NOW + 3),
        author=st.sampled_from(["stated", "inferred"]),
    ),
    max_size=40,
    unique_by=lambda one: one.id,
)
MESSAGES = st.sampled_from(["", "tea?", "which film with wine", "hello there"])


class TestAlways:
    @given(STANDING, MESSAGES)
    def test_what_answers_is_never_pushed_out(self, standing: list[Item], message: str) -> None:
        answer = learned("The zeppelin is in the shed", "fact")
        assert answer.text in texts(f"{message}\nWhere is the zeppelin?", [*standing, answer])

    @given(STANDING, MESSAGES)
    def test_a_person_with_few_loses_none(self, standing: list[Item], message: str) -> None:
        few = [one for one in standing if len(one.text) < 80][:FEW]
        made = selected(message, few)
        assert set(made.left_out().values()) <= {SAID}

    @given(STANDING, MESSAGES)
    def test_each_is_there_or_has_its_reason(self, standing: list[Item], message: str) -> None:
        made = selected(message, standing)
        shown = {one.item.id for one in made.chosen}
        assert shown | made.left_out().keys() == {one.id for one in standing}
        stated = [one for one in standing if one.kind == "constraint" and one.facets.author == "stated"]
        assert not {one.id for one in stated} & made.waiting

    @given(STANDING, MESSAGES, st.randoms(use_true_random=False))
    def test_the_order_of_storing_makes_no_difference(
        self, standing: list[Item], message: str, chance: random.Random
    ) -> None:
        shuffled = list(standing)
        chance.shuffle(shuffled)
        assert selected(message, shuffled).chosen == selected(message, standing).chosen
