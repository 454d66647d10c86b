"""Ranking: the right memory first, nothing without evidence, the same answer every time."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discoclaw.core.item import KINDS, Item
from discoclaw.core.visible import VisibleItems
from discoclaw.core.words import is_common, terms
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Fade, Ranker
from discoclaw.recall.select import select
from tests.core.builders import DAY, NOW, item
from tests.counting import Counts, counted, grown
from tests.tables import each_row

HOBBIES = [
    "climbing",
    "chess",
    "pottery",
    "sailing",
    "archery",
    "baking",
    "fencing",
    "knitting",
    "surfing",
    "painting",
]
PLACES = ["Oslo", "Lima", "Kyoto", "Quito", "Dakar", "Turin", "Perth", "Cork", "Malmö", "Gdańsk"]
FRIENDS = ["Anouk", "Bram", "Chidi", "Dalia", "Emre", "Freya", "Goran", "Hana", "Igor", "Jola"]

HUNDREDS = [
    item(f"{friend} does {hobby} in {place}", updated_at=NOW + number * DAY)
    for number, (friend, hobby, place) in enumerate(
        [(FRIENDS[i % 10], HOBBIES[(i // 10) % 10], PLACES[(i * 7 + i // 20) % 10]) for i in range(199)]
    )
]


def rank(query: str, items: Sequence[Item]) -> list[str]:
    return [hit.item.text for hit in Ranker().rank(parse(query), items, now_ms=NOW) if not hit.possible]


def shelf(*texts: str) -> list[Item]:
    """Items of which the first is the oldest."""
    return [item(text, updated_at=NOW + number * DAY) for number, text in enumerate(texts)]


def oracle(query: str, items: Sequence[Item]) -> list[tuple[str, float]]:
    """The ranking of items that are learned in one minute, by a query of one sentence, written a second time.

    BM25 as its paper has it, with this house's constants; then evidence, names, what was learned together.
    """
    k1, b, count = 0.9, 0.4, len(items)
    bags = [terms(one.text) for one in items]
    aliases = [{term for tag in one.tags for term in terms(tag)} for one in items]
    marks = [aliases[i] | set(terms(one.kind)) for i, one in enumerate(items)]
    mean = sum(max(1, len(words)) for words in bags) / max(1, count)
    asked = list(dict.fromkeys(terms(query)))
    holders = {q: [i for i in range(count) if q in bags[i] or q in marks[i]] for q in asked}
    idf = {q: math.log(1 + (count - len(has) + 0.5) / (len(has) + 0.5)) for q, has in holders.items()}
    everywhere = {q for q in asked if count >= 8 and len(holders[q]) * 2 > count}
    plain = [q for q in asked if holders[q] and not is_common(q)]
    if plain and everywhere.issuperset(plain):  # nothing rarer is asked for that anything has
        everywhere = {q for q in everywhere if is_common(q)}
        idf |= {q: min(idf[q], max(idf[one] for one in plain)) for q in asked if is_common(q)}
    elif not plain and everywhere.issuperset(q for q in asked if holders[q]):
        everywhere = set()
    share = {q: 0.0 if q in everywhere else idf[q] * (0.3 if is_common(q) else 1.0) for q in asked}
    few = max(3, 0.1 * count)  # a name of more items names none of them
    names = {q for q in asked if share[q] and 0 < sum(q in alias for alias in aliases) <= few}
    telling = {q for q in asked if share[q] and not is_common(q)}

    def is_named(i: int, q: str) -> bool:
        """Where more is asked, what owns a name is meant, and what only mentions it is not."""
        owned = any(q in alias for alias in aliases)
        return q in aliases[i] or q in (bags[i][:2] if owned and telling - {q} else bags[i])

    terms_of: dict[int, set[str]] = {}
    scores: dict[int, float] = {}
    coverage: dict[int, float] = {}
    evident: set[int] = set()
    named: set[int] = set()
    for i in range(count):
        shared = [q for q in asked if i in holders[q]]
        if not shared:
            continue
        having = {q for q in names if is_named(i, q)}
        named |= {i} if having else set()
        terms_of[i] = set(shared)
        norm = k1 * (1 - b + b * max(1, len(bags[i])) / mean)
        scores[i] = 0.0
        for q in shared:
            part = (k1 + 1) / (1 + norm) if q in bags[i] else 1.0  # once, however often it is there
            scores[i] += idf[q] * (max(1.0, part) if q in having else part)  # in full in a long text too
        scores[i] *= 1.25 if names & aliases[i] else 1.1 if i in named else 1.0
        coverage[i] = sum(share[q] for q in shared) / (sum(share.values()) or 1.0)
        specific = [q for q in shared if q not in everywhere and not is_common(q)]
        two = len(shared) > 1 and coverage[i] >= 0.2
        if i in named or specific or two or coverage[i] >= 0.5:
            evident.add(i)
    best_named = max((scores[i] for i in named), default=0.0)
    by_name = max((coverage[i] for i in named), default=0.0) + 1e-9
    most = max((coverage[i] for i in evident if len(terms_of[i]) > 1), default=0.0)
    best_terms = [terms_of[i] for i in evident if most >= 0.75 and coverage[i] >= most - 1e-9]
    given = {i for i in named if names & aliases[i]}
    meant = {
        i
        for i in evident
        if i in given
        or (
            (i in named or scores[i] >= 0.9 * best_named or coverage[i] > by_name)
            and (coverage[i] >= 0.7 * most or not any(terms_of[i] <= one for one in best_terms))
        )
    }
    for i in scores:
        if items[i].kind == "project" and {"build", "project"} & set(asked):
            scores[i] *= 1.15
    words = dict(scores)
    if 1 < len(scores) <= 8:
        shares = {i: max((scores[j] for j in meant if j != i), default=0.0) for i in scores}
        scores |= {i: scores[i] + 0.3 * shares[i] for i in meant}
    best = max((scores[i] for i in meant), default=0.0)
    kept = {i: scores[i] for i in meant if scores[i] >= 0.2 * best or i in given}
    if not kept:
        return []
    top = max(kept, key=lambda i: (round(kept[i], 9), items[i].updated_at, items[i].id))
    alike = {i for i in kept if len(terms_of[i] & terms_of[top]) >= 0.6 * len(terms_of[top])}
    found = [
        (items[i], best if i in alike and words[i] >= 0.9 * words[top] else score)
        for i, score in kept.items()
    ]
    found.sort(key=lambda pair: (-round(pair[1], 9), -pair[0].updated_at, pair[0].id))
    return [(one.id, score) for one, score in found]


VOCABULARY = ["apple", "pear", "plum", "fig", "kiwi", "build", "ωμέγα", "東京", "c++"]
ITEMS = st.lists(
    st.builds(
        item,
        st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join),
        st.sampled_from([kind for kind in KINDS if kind != "fact"]),
        tags=st.lists(st.sampled_from(VOCABULARY), max_size=2),
        updated_at=st.integers(NOW, NOW + 3),
    ),
    max_size=14,
    unique_by=lambda one: one.id,
)
QUERIES = st.lists(st.sampled_from([*VOCABULARY, "project", "cherry", "the"]), max_size=4).map(" ".join)


class TestTheOrderIsThatOfBm25:
    @given(QUERIES, ITEMS)
    def test_scores_and_order_are_those_of_a_second_implementation(
        self, query: str, items: list[Item]
    ) -> None:
        having = [len(set(terms(query)) & {*terms(one.text), *one.tags}) for one in items]
        assume("the" in query.split() or max(having, default=0) != 1)  # a list of topics
        hits = [hit for hit in Ranker().rank(parse(query), items, now_ms=NOW) if not hit.possible]
        expected = oracle(query, items)
        assert [hit.item.id for hit in hits] == [one for one, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected])
        assert all(hit.score > 0 for hit in hits)

    @given(QUERIES, ITEMS)
    def test_why_names_the_words_both_share(self, query: str, items: list[Item]) -> None:
        for hit in Ranker().rank(parse(query), items, now_ms=NOW):
            why = hit.why.split(", ")
            assert why
            assert set(why) <= {*terms(query), *(["possibly related"] if hit.possible else [])}

    @given(QUERIES, ITEMS, ITEMS)
    def test_what_was_ranked_before_makes_no_difference(
        self, query: str, before: list[Item], items: list[Item]
    ) -> None:
        used = Ranker()
        used.rank(parse(query), before, now_ms=NOW)
        assert used.rank(parse(query), items, now_ms=NOW) == Ranker().rank(parse(query), items, now_ms=NOW)

    def test_an_item_whose_text_changed_is_ranked_by_its_new_text(self) -> None:
        recall = Ranker()
        old = item("likes tea")
        recall.rank(parse("tea"), [old], now_ms=NOW)
        new = Item(old.id, old.kind, "likes coffee", (), "active", old.source, NOW, NOW, old.facets)
        assert recall.rank(parse("tea"), [new], now_ms=NOW) == []
        assert [hit.item.text for hit in recall.rank(parse("coffee"), [new], now_ms=NOW)] == ["likes coffee"]


class TestTheRightItemIsFound:
    @each_row(
        ("query", "text"),
        [
            ("what's my cat called again?", "The cat is named Schrödinger"),
            ("when did the wombat's surgery happen", "Wombat surgery took place on 8 May 2023"),
            ("Who is Schrodinger?", "The cat is named Schrödinger"),
            ("how do I deploy the blog", "The blog is deployed with Ansible"),
            ("小白是谁", "用户的猫叫小白"),
            ("где живёт бабушка", "Бабушка живёт в Твери"),
        ],
    )
    def test_among_two_hundred(self, query: str, text: str) -> None:
        items = [*HUNDREDS[:100], item(text, updated_at=NOW - 999 * DAY), *HUNDREDS[100:]]
        assert len(items) == 200
        assert rank(query, items)[0] == text

    def test_words_of_a_pair_beat_one_of_them(self) -> None:
        friend, hobby = "Emre", "sailing"
        first = rank(f"is {friend} any good at {hobby}?", HUNDREDS)[0]
        assert friend in first
        assert hobby in first

    def test_a_tag_is_a_name_of_the_item(self) -> None:
        cluster = item("Runs the Kubernetes cluster at work", tags=["k8s", "kube"], updated_at=NOW - DAY)
        for query in ("is k8s down?", "restart kube"):
            assert rank(query, [*HUNDREDS, cluster]) == [cluster.text]

    def test_tags_do_not_make_an_item_weaker(self) -> None:
        plain, named = (
            item("Runs a cluster", updated_at=NOW),
            item("Runs the cluster", tags=["k8s", "kube", "prod"]),
        )
        hits = Ranker().rank(parse("cluster"), [plain, named], now_ms=NOW)
        assert hits[0].score == hits[1].score

    def test_the_kind_is_a_word_too(self) -> None:
        items = [*HUNDREDS, item("Uses Helix", "tool"), item("Uses fish", "tool")]
        assert set(rank("which tools do I use?", items)) == {"Uses Helix", "Uses fish"}

    def test_a_project_comes_first_when_the_talk_is_of_building(self) -> None:
        fact, project = item("Falcon is blue", updated_at=NOW + DAY), item("Falcon is green", "project")
        assert rank("falcon", [fact, project])[0] == fact.text
        assert rank("does the falcon build deploy?", [fact, project])[0] == project.text

    @each_row("count", [26, 2000])
    def test_every_item_is_a_candidate_never_only_the_newest(self, count: int) -> None:
        oldest = item("The wifi password is on the fridge", updated_at=NOW - 3000 * DAY)
        newer = [
            item(f"note {number} about batch {number % 97}", updated_at=NOW) for number in range(count - 1)
        ]
        assert rank("where is the wifi password?", [*newer, oldest]) == [oldest.text]


class TestWithoutEvidenceThereIsNothing:
    @each_row(
        "query",
        [
            "",
            "   ",
            "🦀🦀🦀",
            "hello!",
            "what do you think about it?",
            "do you know who I am and what I want?",
            "what is the capital of Mongolia?",
            "tell me a joke",
            "日本の首都はどこですか",
        ],
    )
    def test_a_question_about_nothing_known_finds_nothing(self, query: str) -> None:
        assert rank(query, HUNDREDS) == []
        assert rank(query, HUNDREDS[:3]) == []

    def test_no_items_give_no_hits(self) -> None:
        assert rank("anything", []) == []

    @each_row("query", ["in fact it is raining today", "is that a fact?"])
    def test_the_word_fact_in_passing_is_no_question_about_all_facts(self, query: str) -> None:
        assert rank(query, HUNDREDS[:5]) == []
        assert rank(query, [*HUNDREDS[:10], *(item(f"Uses gadget{n}", "tool") for n in range(10))]) == []

    def test_items_that_share_nothing_are_not_in_the_list(self) -> None:
        assert rank("tea", shelf("likes tea", "likes coffee", "works at Acme")) == ["likes tea"]


class TestWordsThatAreEverywhere:
    GARDEN = ("roses", "tulips", "beans", "peas", "kale", "figs", "mint", "dill", "sage")
    OTHERS = ("likes tea", "works in Oslo", "has a sister", "met Emre at the weekend")

    def items(self) -> list[Item]:
        return shelf(*(f"the garden has {thing}" for thing in self.GARDEN), *self.OTHERS[:3])

    @each_row("query", ["garden", "Tell me about my garden", "what grows in my garden?", "gardens"])
    def test_alone_one_finds_all_that_have_it(self, query: str) -> None:
        assert rank(query, self.items()) == [f"the garden has {thing}" for thing in reversed(self.GARDEN)]

    def test_beside_a_rarer_one_it_finds_nothing_more(self) -> None:
        assert rank("is there mint in my garden?", self.items()) == ["the garden has mint"]
        assert rank("does my sister like the garden?", self.items()) == ["has a sister"]
        assert rank("tea in the garden", self.items()) == ["likes tea"]

    def test_a_common_word_beside_it_puts_first_but_silences_nothing(self) -> None:
        items = [
            *self.items(),
            item("met Emre in the garden at the weekend"),
            item(self.OTHERS[3], updated_at=NOW - DAY),
        ]
        found = rank("my garden at the weekend", items)
        assert found[0] == "met Emre in the garden at the weekend"
        assert set(found[1:]) == {f"the garden has {thing}" for thing in self.GARDEN}

    def test_a_common_word_says_nothing_however_many_have_it(self) -> None:
        items = shelf(*(f"{thing} at the weekend" for thing in self.GARDEN), *self.OTHERS[:3])
        assert rank("what a weekend, and tea is ready", items) == ["likes tea"]


class TestRecencyOnlyBreaksTies:
    def test_of_two_that_say_the_same_the_newer_comes_first(self) -> None:
        assert rank("tea", shelf("green tea", "black tea", "white tea")) == [
            "white tea",
            "black tea",
            "green tea",
        ]

    def test_the_same_age_is_decided_by_the_id(self) -> None:
        items = [item("green tea"), item("black tea"), item("white tea")]
        found = Ranker().rank(parse("tea"), items, now_ms=NOW)
        assert [hit.item.id for hit in found] == sorted(one.id for one in items)

    def test_years_do_not_outweigh_one_word(self) -> None:
        old = item("the parrot is named Coco", updated_at=NOW - 3650 * DAY)
        new = item("the parrot is green", updated_at=NOW)
        assert rank("parrot named?", [new, old])[0] == old.text

    def test_the_present_makes_no_difference(self) -> None:
        items = HUNDREDS[:30]
        one = Ranker().rank(parse("Anouk Oslo"), items, now_ms=NOW)
        assert one == Ranker().rank(parse("Anouk Oslo"), items, now_ms=NOW + 900 * DAY)


class TestAShortQuestionDoesNotTellItsLanguage:
    def test_a_spanish_name_is_found_in_english_text(self) -> None:
        items = shelf("User was in Las Vegas twice", "User likes tea")
        assert rank("Las Vegas", items) == ["User was in Las Vegas twice"]

    def test_the_language_it_seems_to_be_in_comes_first(self) -> None:
        items = shelf("Los gatos de User son negros", "User likes tea")
        assert rank("los gatos", items) == ["Los gatos de User son negros"]


class TestIdleKnowledge:
    def test_what_a_person_stated_is_found_however_long_nobody_asked(self) -> None:
        told = item("User is allergic to nuts", author="stated", updated_at=NOW)
        learned = item("User likes nuts", author="inferred", updated_at=NOW)
        hits = Ranker(Fade(idle_days=30)).rank(parse("nuts"), [told, learned], now_ms=NOW + 31 * DAY)
        assert [hit.item for hit in hits] == [told]


class TestWhatAQuestionCosts:
    def test_as_many_steps_among_two_thousand_as_among_two_hundred_where_the_same_few_are_met(self) -> None:
        few, many = choosing_among(200), choosing_among(2_000)
        assert few.steps["recall/rank.py Ranker._by_words"] > 10  # the ten that are met
        assert not grown(few, many, most_steps=2)


def choosing_among(count: int) -> Counts:
    """What a choice among so many items takes, ten of which are met."""
    about = [item(f"User's zebra eats hay number{n}", updated_at=NOW + n) for n in range(10)]
    others = [item(f"Likes tea of sort number{n}", updated_at=NOW) for n in range(count - len(about))]
    items, ranker, asked = VisibleItems([*about, *others]), Ranker(), parse("eats the zebra hya?")
    select(ranker, asked, items, max_chars=2000, now_ms=NOW)
    with counted() as counts:
        selection = select(ranker, asked, items, max_chars=2000, now_ms=NOW)
    assert len(selection.chosen) == len(about)
    return counts
