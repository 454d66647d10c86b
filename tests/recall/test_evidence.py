"""What a message means: names before words, sentences apart, and nothing that others outdo."""

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

OTHERS = [
    "Waters the plants before breakfast",
    "Grandfather told long stories",
    "Naps for twenty minutes after lunch",
    "Answers letters on Sundays",
    "Photographs weddings of friends",
    "Rides along the canal to the sea",
    "Wrote an essay about paper",
    "Keeps bees behind the barn",
]


def shelf(*items: Item | str) -> list[Item]:
    """These items among others, each learned on a day of its own."""
    given = [item(one) if isinstance(one, str) else one for one in (*items, *OTHERS)]
    return [
        Item(
            one.id,
            one.kind,
            one.text,
            one.tags,
            "active",
            one.source,
            NOW - n * DAY,
            NOW - n * DAY,
            one.facets,
        )
        for n, one in enumerate(given)
    ]


def found(message: str, items: Sequence[Item], **signals: object) -> list[str]:
    hits = Ranker().rank(
        parse(message),
        items,
        now_ms=NOW,
        signals=Signals(own_name="Ann", **signals),  # type: ignore[arg-type]
    )
    return [hit.item.text for hit in hits if not hit.possible]


class TestSeveralCluesTogetherAreEvidence:
    def test_two_common_words_find_what_has_both(self) -> None:
        items = shelf("Mara spends her weekends building boats", *(f"Mara likes {n}" for n in range(9)))
        assert found("what does Mara build?", items)[0] == "Mara spends her weekends building boats"

    def test_one_common_word_of_a_question_finds_nothing(self) -> None:
        assert found("what's a good plan to build a rocket engine?", shelf("Builds boats")) == []

    def test_words_of_different_sentences_are_not_together(self) -> None:
        items = shelf("Had a good day at work")
        together = "did I have a good day at work or a bad one?"
        apart = "It was good. The zoo opens at ten. What a day! They work on the pipes again."
        assert found(together, items) == ["Had a good day at work"]
        assert found(apart, items) == []

    def test_a_rare_word_in_passing_is_no_evidence_in_a_long_message(self) -> None:
        items = shelf("Grows tulips")
        assert found("which tulips do I have?", items) == ["Grows tulips"]
        long = (
            "The exam room had squeaky chairs. Somebody sold tulips by the tram stop near the old bakery. "
            "Petrol went up again. The neighbours are drilling since seven."
        )
        assert found(long, items) == []


class TestWhatIsNamedCompletelyIsMeant:
    @each_row(
        ("message", "meant", "alike"),
        [
            ("what is in room 9?", "Room 9 has the anatomy course", "Room 4 has the choir"),
            ("I have to see Dr. Okonkwo", "Dr. Okonkwo is on leave", "Dr. Weissmann calls before nine"),
            ("what was it with EC 196?", "The train EC 196 has a dining car", "Climbed the 196 steps"),
            ("who has WEB-903?", "Ingeborg has WEB-903", "BUS-903 can be closed"),
            ("write to Karl-Heinz Vogt", "Karl-Heinz Vogt asks for readings", "Karl Vogt won the cup"),
            (
                "Je vais place des Tilleuls",
                "Place des Tilleuls : marché",
                "Une photo de l'école des Tilleuls",
            ),
            ("have I read The Salt Calendar?", "Read The Salt Calendar", "Has a lunar calendar and salt"),
        ],
    )
    def test_look_alikes_stay_out(self, message: str, meant: str, alike: str) -> None:
        assert found(message, shelf(meant, alike)) == [meant]

    def test_an_alias_of_common_words_is_evidence(self) -> None:
        items = shelf(item("Writes the scanner in it", "tool", tags=["go"]))
        assert found("do I know any go?", items) == ["Writes the scanner in it"]

    def test_a_name_that_is_a_common_word_is_no_common_word_with_a_capital(self) -> None:
        items = shelf("Takes the Express to the coast", "Likes to express doubts")
        assert found("when does the Express leave?", items)[0] == "Takes the Express to the coast"

    def test_one_among_many_topics_is_never_far_weaker(self) -> None:
        items = shelf(item("Rows locks in it", tags=["billing needs postgres"], key="billing_needs_postgres"))
        long = " ".join(f"{text}, and so it goes on for a while." for text in OTHERS)
        assert "Rows locks in it" in found(f"{long} Why billing_needs_postgres?", items)

    def test_a_part_of_a_longer_name_names_all_that_have_it(self) -> None:
        whole = item("The cellar floods", tags=["kestrel hill"])
        part = item("The roof leaks", tags=["kestrel tower"])
        hits = Ranker().rank(parse("what about Kestrel Hill?"), shelf(whole, part), now_ms=NOW)
        assert [hit.item.text for hit in hits] == ["The cellar floods"]
        hits = Ranker().rank(parse("what about Kestrel?"), shelf(whole, part), now_ms=NOW)
        assert {hit.item.text for hit in hits} == {"The cellar floods", "The roof leaks"}

    def test_a_mistyped_name_is_one_too(self) -> None:
        items = shelf("Dr. Okonkwo is on leave", "Dr. Weissmann calls before nine")
        assert found("I need to see Dr. Oknokwo", items)[0] == "Dr. Okonkwo is on leave"

    def test_what_most_items_are_about_names_none_of_them(self) -> None:
        items = [item(f"Mara likes {thing}", updated_at=NOW - n * DAY) for n, thing in enumerate(OTHERS)]
        assert len(found("what does Mara like?", items)) == len(items)


class TestWhatHasMostOfAQuestionOutdoesTheRest:
    def test_what_has_clearly_less_is_another_matter(self) -> None:
        items = shelf("Brother wants a telescope for the next birthday", "Brother wants to emigrate")
        assert found("what does my brother want for the next birthday?", items) == [items[0].text]

    def test_where_nothing_has_most_of_it_all_clues_count(self) -> None:
        items = shelf("Climbs in the quarry", "Plays chess with Bram")
        message = "could I take climbing gear, a chess board and my telescope through airport security?"
        assert set(found(message, items)) == {"Climbs in the quarry", "Plays chess with Bram"}


class TestAboutOthersNothingIsKnown:
    @each_row(
        "message",
        [
            "what's the capital of Mongolia?",
            "which elements did Marie Curie find?",
            "Albert Camus: when did he get the Nobel Prize?",
        ],
    )
    def test_a_word_in_common_with_a_stranger_says_nothing(self, message: str) -> None:
        items = shelf("Writes names in capital letters", "Aunt Marie mends radios", "Friend Albert fences")
        assert found(message, items) == []

    def test_only_what_the_stranger_rules_out_is_said_to_be_about_others(self) -> None:
        items = shelf("Writes names in capital letters", "Has a good day on Monday")
        message = "What's the capital of Mongolia? Was it a good plan to ask the bank for a loan of money?"
        hits = Ranker().consider(parse(message), items, now_ms=NOW, signals=Signals(own_name="Ann"))
        why = {hit.item.text: hit.dropped for hit in hits}
        assert why["Writes names in capital letters"] == "about others than mongolia"
        assert why["Has a good day on Monday"] == "no real evidence"

    def test_an_acronym_is_no_stranger(self) -> None:
        items = shelf("The shipping company answers within four hours")
        assert found("the shipping company is late, what does the SLA say?", items) == [items[0].text]

    @each_row(
        "message",
        ["Guten Morgen!", "thanks, that helped a lot", "Gute Nacht, bis morgen", "hey, good to see you",
         "à demain, bonne nuit", "merci beaucoup, c'est parfait", "¡buenas noches!", "доброе утро",
         "that's a good one", "na, wie geht's?"],
    )  # fmt: skip
    def test_courtesies_ask_for_nothing(self, message: str) -> None:
        items = shelf(
            "Likes a good morning walk", "Helped at the food bank", "Mag guten Kaffee am Morgen",
            "Part demain chez sa tante", "A beaucoup de patience", "Пьёт чай утром", "Sale de noche",
            "Geht am Abend joggen",
        )  # fmt: skip
        assert found(message, items) == []


class TestLearnedTogether:
    def together(self, *texts: str, minute: int = NOW) -> list[Item]:
        return [*(item(text, updated_at=minute + n) for n, text in enumerate(texts)), *shelf()]

    def test_a_neighbour_earns_a_share(self) -> None:
        said = self.together("Tove named the boat Selkie", "Tove paints the canoe green")
        alone = item("Tove likes seaweed", updated_at=NOW + DAY)
        assert found("which colours do Tove and her canoe club prefer?", [alone, *said]) == [
            "Tove paints the canoe green",
            "Tove named the boat Selkie",
            "Tove likes seaweed",
        ]

    def test_that_alone_is_no_evidence(self) -> None:
        said = self.together("Had a name day", "Is building a canoe with Tove")
        assert found("how is the canoe that I'm building with Tove, by name?", said) == [
            "Is building a canoe with Tove"
        ]

    def test_an_import_of_many_has_nothing_in_common(self) -> None:
        said = self.together("Tove paints the canoe green", *(f"Tove likes kelp {n}" for n in range(9)))
        alone = item("Tove likes seaweed", updated_at=NOW + DAY)
        fillers = [item(f"Owns a number {n}", updated_at=NOW - n * DAY) for n in range(100, 130)]
        hits = found("which colours do Tove and her canoe club prefer?", [alone, *said, *fillers])
        assert hits[:2] == ["Tove paints the canoe green", "Tove likes seaweed"]


class TestTheLatestWordWins:
    def test_of_near_ties_the_newest_comes_first(self) -> None:
        items = [
            item("Lives in a flat in Linz", updated_at=NOW - 300 * DAY),
            item("Lives in Graz, on a hill now", updated_at=NOW - DAY),
            item("Lives in Wels", updated_at=NOW - 600 * DAY),
            *shelf()[2:],
        ]
        assert found("where do I live?", items)[0] == "Lives in Graz, on a hill now"

    def test_a_better_match_is_no_near_tie(self) -> None:
        items = [
            item("Kites are in the shed by the pond", updated_at=NOW - 300 * DAY),
            item("The pond froze", updated_at=NOW),
            *shelf()[2:],
        ]
        assert found("are the kites in the shed by the pond?", items)[0].startswith("Kites")


NAMES = [
    "kestrel",
    "room 9",
    "salt calendar",
    "go",
    "the blue heron",
    "東京 駅",
    "café noir",
    "мир",
    "سلام",
    "🦀 crab",
]
WORDS = ["tea", "plan", "works", "kestrel", "room", "blue", "Oslo", "月", "noir", "go"]
ITEMS = st.lists(
    st.builds(
        lambda words, tags, age: item(" ".join(words), tags=tags, updated_at=NOW - age * DAY),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
        st.lists(st.sampled_from(NAMES), max_size=3),
        st.integers(0, 400),
    ),
    max_size=30,
    unique_by=lambda one: one.id,
)
MESSAGES = st.lists(st.sampled_from([*NAMES, *WORDS, "where is", "and what of"]), min_size=1, max_size=8)


class TestWhateverIsAsked:
    @given(ITEMS, MESSAGES, st.sampled_from(NAMES))
    def test_an_item_whose_alias_is_named_is_never_left_out(
        self, items: list[Item], words: list[str], name: str
    ) -> None:
        meant = item("Something else entirely", tags=[name], updated_at=NOW - 500 * DAY)
        named = [one for one in items if one.id != meant.id and name not in one.tags]
        few = named[: len(named) // 3]  # a name of most items names none of them
        longer = {tag for one in few for tag in one.tags if set(name.split()) < set(tag.split())}
        if not longer:
            message = f"{' '.join(words)}? what of {name}"
            assert meant.text in found(message, [*few, meant, *shelf()])

    @given(ITEMS, MESSAGES, st.randoms(use_true_random=False))
    def test_the_order_of_storing_makes_no_difference(
        self, items: list[Item], words: list[str], chance: random.Random
    ) -> None:
        shuffled = chance.sample(items, len(items))
        assert found(" ".join(words), shuffled) == found(" ".join(words), items)

    @each_row("cosine", [0.9, float("nan"), 0.0, -1.0])
    def test_a_memory_of_near_equal_items_is_found_by_words_alone(self, cosine: float) -> None:
        items = [item(f"Likes tea {n}", updated_at=NOW - n * DAY) for n in range(40)]
        cosines = {one.id: cosine for one in items}
        assert found("what's with tea 7?", items, cosines=cosines, floor=0.4)[0] == "Likes tea 7"
        assert found("what about the zebra?", items, cosines=cosines, floor=0.4) == []

    def test_odd_names_are_ranked_like_others(self) -> None:
        key = "_".join(f"word{n}" for n in range(40))
        items = [
            item("Has a long key", key=key),
            item("Has many names", tags=[f"alias {n}" for n in range(1000)], updated_at=NOW - DAY),
            item("Kestrel", updated_at=NOW - 2 * DAY),
            item("Kestrel sings", tags=["kestrel"], updated_at=NOW - 3 * DAY),
            *shelf(),
        ]
        assert found(f"what is {key}?", items) == ["Has a long key"]
        assert found("what of alias 3?", items) == ["Has many names"]
        assert found("kestrel", items) == ["Kestrel", "Kestrel sings"]
