"""A message about several things: each is judged by itself, and what is possibly related comes last."""

from collections.abc import Sequence

from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import select
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

MEMORY = [
    item("User lives in Leeds.", updated_at=NOW - DAY),
    item("User likes Thai food.", "preference", tags=["thai"], updated_at=NOW - 2 * DAY),
    item("User's dog is called Biscuit.", tags=["dog"], key="dog", updated_at=NOW - 30 * DAY),
    item("User works at Acme Bank.", tags=["employer"], key="employer", updated_at=NOW - 4 * DAY),
    item("User writes scripts in Python 3.12.", "tool", tags=["python"], updated_at=NOW - 50 * DAY),
    item("User's llama farm needs a new fence.", "project", tags=["llama"], updated_at=NOW - 6 * DAY),
    item("User's sister is called Marta.", "person", tags=["sister"], updated_at=NOW - 70 * DAY),
    item("User plays the cello.", updated_at=NOW - 8 * DAY),
    item("User cooks dinner for two on weekdays.", updated_at=NOW - 90 * DAY),
    item("User deploys on Tuesdays with Ansible.", "workflow", tags=["deploy"], updated_at=NOW - 10 * DAY),
    item("User drives a red Skoda.", tags=["car"], key="car", updated_at=NOW - 110 * DAY),
    item("User is writing a novel about Venice.", "project", tags=["novel"], updated_at=NOW - 12 * DAY),
]


def found(message: str, items: Sequence[Item] = MEMORY) -> set[str]:
    hits = Ranker().rank(parse(message), items, now_ms=NOW, signals=Signals(own_name="Ruth Okafor"))
    return {hit.item.text.split()[-1].strip(".") for hit in hits if not hit.possible}


class TestSeveralTopics:
    @each_row(
        ("message", "ends"),
        [
            ("Where do I live? And what should I cook tonight?", {"Leeds", "weekdays"}),
            ("tell me about my dog and my employer", {"Biscuit", "Bank"}),
            ("What is my dog called, and where do I live?", {"Biscuit", "Leeds"}),
            ("python llama?", {"3.12", "fence"}),
            ("cello, novel", {"cello", "Venice"}),
            ("my sister, the car, the novel", {"Marta", "Skoda", "Venice"}),
            ("Which dog do I have? Where do I work? When do I deploy?", {"Biscuit", "Bank", "Ansible"}),
            ("which dog do I have, where do I work, and what car do I drive?", {"Biscuit", "Bank", "Skoda"}),
            ("do I have a boat and a car?", {"Skoda"}),
        ],
    )
    def test_each_finds_what_it_asks_for(self, message: str, ends: set[str]) -> None:
        assert found(message) == ends

    def test_a_clause_that_points_back_stays_with_what_it_points_to(self) -> None:
        query = parse("When does Plum go into the fridge, and what does he like to eat?")
        assert len(query.topics) == 1

    def test_a_pair_of_words_is_one_topic(self) -> None:
        assert len(parse("I bought red and green apples").topics) == 1


class TestOneself:
    def test_ones_own_name_is_no_evidence(self) -> None:
        items = [item(f"Ruth {what}") for what in ("sings", "paints", "rows")]
        assert found("Ruth here, where is the harp?", items) == set()

    def test_somebody_elses_name_is(self) -> None:
        items = [*MEMORY, item("Abena lives in Accra")]
        assert found("what does Abena do?", items) == {"Accra"}

    def test_a_day_is_evidence_only_where_nothing_else_is_asked(self) -> None:
        items = [item("Missed the bus", updated_at=1_746_662_400_000), *MEMORY]
        assert "bus" in found("what happened on 8 May 2025?", items)
        assert "bus" not in found("was the harp tuned on 8 May 2025?", items)


class TestOwners:
    ITEMS = (
        item("The cluster runs in two zones", "project", tags=["k8s"]),
        item("Wrote a poem about k8s at school"),
    )

    def test_what_owns_a_name_outdoes_what_mentions_it(self) -> None:
        assert found("who pays for k8s upgrades?", [*MEMORY, *self.ITEMS]) == {"zones"}

    def test_who_asks_for_nothing_else_gets_both_and_the_owner_first(self) -> None:
        hits = Ranker().rank(parse("tell me about k8s"), [*MEMORY, *self.ITEMS], now_ms=NOW)
        assert [hit.item.id for hit in hits][:2] == [one.id for one in self.ITEMS]

    def test_a_changed_last_letter_of_a_stem_is_another_word(self) -> None:
        items = [*MEMORY, item("The server is started by one file", "tool", tags=["compose"])]
        assert found("which components are missing?", items) == set()


class TestOtherForms:
    @each_row(
        ("message", "text"),
        [
            ("Was für ein Kuchen soll es werden?", "Der Geburtstagskuchen ist bestellt"),
            ("איפה הכלב?", "כלב קטן"),
            ("🐕", "Has a dog"),
            ("Déshumidificateur?", "Un déshumidificateur tourne la nuit"),
        ],
    )
    def test_are_found_too(self, message: str, text: str) -> None:
        hits = Ranker().rank(parse(message), [*MEMORY[3:], item(text)], now_ms=NOW)
        assert text in [hit.item.text for hit in hits]


class TestAccounts:
    """Questions that several memories answer together, most of which share no word with them."""

    THEN = NOW - 40 * DAY
    TRIP = (
        item("User went to Naxos in Greece with Tove.", updated_at=THEN),
        item("The ferry was cancelled because of the wind.", updated_at=THEN + 60_000),
        item("The best meal was grilled octopus.", updated_at=THEN + 120_000),
    )
    BOILER = (
        item("The boiler is a Greenstar from 2011.", tags=["boiler"], updated_at=NOW - 20 * DAY),
        item("A new vessel for the boiler cost 240 pounds.", updated_at=NOW - 21 * DAY),
    )

    @each_row(
        "message",
        ["how was Greece?", "Wie war es in Greece?", "c'était comment, Greece ?", "tell me about Greece"],
    )
    def test_bring_what_was_learned_the_same_day_last(self, message: str) -> None:
        hits = Ranker().rank(parse(message), [*MEMORY, *self.TRIP], now_ms=NOW)
        assert [hit.item.id for hit in hits if not hit.possible] == [self.TRIP[0].id]
        assert {hit.item.id for hit in hits if hit.possible} == {one.id for one in self.TRIP[1:]}

    def test_a_question_for_one_thing_brings_nothing_along(self) -> None:
        hits = Ranker().rank(parse("who went to Greece?"), [*MEMORY, *self.TRIP], now_ms=NOW)
        assert [hit.item.id for hit in hits] == [self.TRIP[0].id]

    def test_need_what_has_only_a_part_of_what_is_asked(self) -> None:
        items = [*MEMORY, *self.BOILER]
        assert found("what's the situation with the boiler?", items) == {"2011", "pounds"}
        assert found("who repaired the boiler?", items) == {"2011"}


class TestPossiblyRelated:
    SAID = (
        item("User's dog is a terrier called Biscuit.", updated_at=NOW - 5 * DAY),
        item("Biscuit must not eat chicken.", updated_at=NOW - 200 * DAY),
        item("Two of Biscuit's teeth were pulled.", updated_at=NOW - 300 * DAY),
    )

    def test_what_mentions_the_best_by_its_name_comes_last(self) -> None:
        hits = Ranker().rank(parse("tell me about my dog"), [*MEMORY[3:], *self.SAID], now_ms=NOW)
        assert [(hit.item.text, hit.possible) for hit in hits] == [
            (self.SAID[0].text, False),
            (self.SAID[1].text, True),
            (self.SAID[2].text, True),
        ]
        assert all(hit.why.startswith("possibly related") for hit in hits[1:])

    def test_a_prompt_says_so_in_its_last_lines(self) -> None:
        made = select(
            Ranker(),
            parse("tell me about my dog"),
            [*MEMORY[3:], *self.SAID],
            max_chars=2000,
            now_ms=NOW,
        )
        lines = [one.line for one in sorted(made.chosen, key=lambda one: one.place)]
        assert [line.endswith("(possibly related) [i2]") for line in lines].count(True) == 1
        assert "possibly" not in lines[0] and all("(possibly related)" in line for line in lines[1:])
        assert [one.called_for for one in made.chosen] == [True, False, False]

    def test_a_question_that_nothing_answers_gets_nothing(self) -> None:
        assert Ranker().rank(parse("what is the wifi password?"), MEMORY, now_ms=NOW) == []
