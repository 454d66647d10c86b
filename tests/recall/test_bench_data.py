"""The benchmark of recall asks what can be answered, and wants nothing where nothing is known."""

import random
import subprocess
import sys
from collections import Counter

import pytest

from bench.recall import data
from bench.recall.data import Person, Question, Talk, Turn
from bench.recall.data_asked import people
from bench.recall.data_items import crowd
from bench.recall.data_talk import scenes
from bench.recall.data_talk_asked import talks
from bench.recall.frames import frames
from bench.recall.grammar import decide, fill, fillers, lines, read, slots, ways
from bench.recall.score import Answer, by_kind, fitting, summarise
from bench.recall.systems import item_systems, talk_systems
from bench.recall.vectors import made_up
from bench.recall.words import shares
from discoclaw.core.privacy import may_show

SEEDS = (data.REPORT_SEED, data.DEVELOP_SEED)
LANGUAGES = set(data.LANGUAGES.values())


@pytest.fixture(scope="module", params=SEEDS)
def persons(request: pytest.FixtureRequest) -> tuple[Person, ...]:
    return people(request.param)


@pytest.fixture(scope="module", params=SEEDS)
def conversations(request: pytest.FixtureRequest) -> tuple[Talk, ...]:
    return talks(request.param)


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)


@pytest.fixture(scope="module")
def turns() -> tuple[Turn, ...]:
    return talks(data.REPORT_SEED)[0].turns


def kinds(questions: list[Question]) -> Counter[str]:
    return Counter(question.kind for question in questions)


class TestItems:
    def test_evidence_is_active_and_may_be_shown_where_it_is_asked_for(
        self, persons: tuple[Person, ...]
    ) -> None:
        for person in persons:
            known = {item.id: item for item in person.items}
            assert len(known) == len(person.items)
            for question in person.questions:
                for name in question.evidence:
                    assert known[name].active
                    assert may_show(known[name], in_dm=question.in_dm)

    def test_what_must_not_come_exists_and_is_no_evidence(self, persons: tuple[Person, ...]) -> None:
        for person in persons:
            known = {item.id for item in person.items}
            for question in person.questions:
                assert question.forbidden <= known
                assert not question.forbidden & question.evidence

    def test_only_the_kinds_that_want_nothing_have_no_evidence(self, persons: tuple[Person, ...]) -> None:
        for person in persons:
            for question in person.questions:
                assert bool(question.evidence) != (question.kind in data.ITEM_MUST_NOT)

    def test_a_correction_leads_to_the_later_statement(self, persons: tuple[Person, ...]) -> None:
        seen = Counter[str]()
        for person in persons:
            known = {item.id: item for item in person.items}
            for question in person.questions:
                if question.kind == data.CORRECTION:
                    (new,), (old,) = question.evidence, question.forbidden
                    assert known[old].created_at < known[new].created_at
                    seen[known[old].status] += 1
        assert set(seen) == {"active", "deprecated"}

    def test_what_is_private_can_not_be_shown_in_the_open(self, persons: tuple[Person, ...]) -> None:
        for person in persons:
            known = {item.id: item for item in person.items}
            for question in person.questions:
                if question.kind == data.PRIVATE:
                    assert not question.in_dm
                    assert all(not may_show(known[name], in_dm=False) for name in question.forbidden)


class TestTalk:
    def test_evidence_is_a_turn_of_the_conversation(self, conversations: tuple[Talk, ...]) -> None:
        for talk in conversations:
            known = {turn.id for turn in talk.turns}
            assert len(known) == len(talk.turns)
            for question in talk.questions:
                assert question.evidence <= known
                assert bool(question.evidence) != (question.kind in data.TALK_MUST_NOT)

    def test_some_answers_share_words_only_through_their_neighbour(
        self, conversations: tuple[Talk, ...]
    ) -> None:
        for talk in conversations:
            texts = {turn.id: turn.text for turn in talk.turns}
            hard = [question for question in talk.questions if question.kind == data.NEIGHBOUR]
            assert hard
            for question in hard:
                said = " ".join(texts[name] for name in question.evidence)
                assert not shares(question.text, said, known=" ".join(talk.speakers))


class TestTheSeed:
    def test_the_same_seed_gives_the_same_in_another_process(self) -> None:
        code = (
            "from bench.recall.data_asked import people; from bench.recall.data_talk_asked import talks\n"
            "import hashlib\n"
            "said = [f'{one.text} {one.kind} {sorted(one.evidence)} {sorted(one.forbidden)}'"
            " for some in (*people(7), *talks(7)) for one in some.questions]\n"
            "print(hashlib.sha256('\\n'.join(said).encode()).hexdigest())"
        )
        runs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "PATH": ""},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(runs) == 1

    def test_the_seeds_for_reports_and_for_development_share_few_questions(self) -> None:
        report, develop = (
            {
                question.text
                for one in (*people(seed), *talks(seed))
                for question in one.questions
                if question.kind not in LANGUAGES
            }
            for seed in SEEDS
        )
        assert len(report & develop) <= len(report) // 50


class TestTheTexts:
    def test_every_slot_has_a_list_or_is_made(self) -> None:
        made = {"rel", "name", "rel0", "when", "date", "day", "price", "port", "A"}
        for one in (*frames(), *scenes()):
            texts = (*one.ask, *getattr(one, "facts", ()), *getattr(one, "takes", ()))
            for slot in {slot for text in texts for slot in slots(text)} - made:
                assert len(fillers(slot)) >= 10, slot

    def test_no_list_has_a_filler_twice(self) -> None:
        for name in read("lists"):
            texts = [one.text for one in fillers(name)]
            assert len(texts) == len(set(texts)), name

    def test_alternatives_are_counted_and_chosen(self, dice: random.Random) -> None:
        assert ways("[a|b] c [d|e|]") == 6
        assert {decide("[a|b]", dice) for _ in range(50)} == {"a", "b"}
        assert fill("to {city} ?", {"city": fillers("city")[0]}, dice) == "to Lisbon?"


class TestTheFigures:
    def answer(self, ids: str, evidence: str, fits: int = 99) -> Answer:
        question = Question("?", "x" if evidence else "vain", frozenset(evidence), frozenset("z"))
        return Answer("p", question, tuple(ids), min(fits, len(ids)), 1.0)

    def test_recall_precision_and_silence_are_as_by_hand(self) -> None:
        answers = [self.answer("abc", "ad"), self.answer("", "a"), self.answer("z", "a")]
        summary = summarise([*answers, self.answer("q", ""), self.answer("", "")])
        assert summary.recall[12] == pytest.approx(0.5 / 3)
        assert summary.precision_all == pytest.approx((1 / 3) / 3)
        assert summary.stale == pytest.approx(1 / 3)
        assert (summary.returned, summary.silent) == (0.5, 0.5)

    def test_what_does_not_fit_is_not_recalled(self) -> None:
        assert by_kind([self.answer("xa", "a", fits=1)], ["x", "other"]) == {"x": 0.0}

    def test_lines_are_counted_until_one_does_not_fit(self) -> None:
        assert fitting(["a", "b", "c"], {"a": "x" * 999, "b": "x" * 1000, "c": ""}) == 2
        assert fitting(["a", "b"], {"a": "x" * 1000, "b": "🦀" * 500}) == 1


class TestTheSystems:
    @pytest.mark.parametrize("name", item_systems(made_up()))
    def test_each_finds_an_item_by_its_own_words(self, name: str) -> None:
        items = crowd(100, data.REPORT_SEED)
        system = item_systems(made_up())[name]()
        system.load(items)
        assert items[7].id in system.search(items[7].text, 5)
        assert len(system.search(items[7].text, 3)) <= 3

    @pytest.mark.parametrize("name", talk_systems(made_up()))
    def test_each_finds_a_turn_by_its_own_words(self, name: str, turns: tuple[Turn, ...]) -> None:
        longest = max(turns, key=lambda turn: len(turn.text))
        system = talk_systems(made_up())[name]()
        system.load(turns)
        assert longest.id in system.search(longest.text, 5)

    @pytest.mark.parametrize("name", item_systems(made_up()))
    @pytest.mark.parametrize("query", ["", '"', "AND OR NOT", "* ^ (", "💥"])
    def test_none_breaks_on_odd_queries(self, name: str, query: str) -> None:
        system = item_systems(made_up())[name]()
        system.load(crowd(20, data.REPORT_SEED))
        assert isinstance(system.search(query, 5), list)


def around(name: str) -> int:
    return len(lines(read("manners")[name]))


def phrasings(templates: tuple[str, ...]) -> int:
    return sum(ways(template) for text in templates for template in lines(text))
