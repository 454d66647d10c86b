"""Ranking of talk: an answer is found by its question, a speaker by name, a day by its date."""

from collections.abc import Iterable, Mapping, Sequence

from discoclaw.core.message import Entry
from discoclaw.recall.document import of_entry, parse
from discoclaw.recall.index import Index
from discoclaw.recall.rank import Ranker
from discoclaw.recall.talk import BESIDE, MOST_BY_MEANING, Meant, RankedEntry, rank_talk
from tests.core.builders import DAY, NOW, item


def said(number: int, name: str, text: str, *, room: str = "r", at: int | None = None) -> Entry:
    when = NOW + number * 1000 if at is None else at
    return Entry(str(number), room, room, room, "g", name, name, text, when)


def corpus_of(talk: Iterable[Entry]) -> Index:
    making = Index.making(map(of_entry, talk))
    while True:
        try:
            next(making)
        except StopIteration as made:
            index: Index = made.value
            return index


def search(query: str, talk: Sequence[Entry]) -> list[RankedEntry]:
    """All of the talk as candidates, with those before and behind in the same room as neighbours."""
    neighbours = {
        one.id: tuple(
            talk[i].id
            for i in (place - 1, place + 1)
            if 0 <= i < len(talk) and talk[i].session_key == one.session_key
        )
        for place, one in enumerate(talk)
    }
    corpus = corpus_of(talk)
    return rank_talk(parse(query), talk, corpus=corpus, neighbours=neighbours)


def texts(query: str, talk: Sequence[Entry]) -> list[str]:
    return [hit.entry.text for hit in search(query, talk)]


TALK = [
    said(1, "Ann", "How was the concert last night?"),
    said(2, "Bob", "Amazing, they even played my song!"),
    said(3, "Ann", "Nice. I was at the dentist."),
    said(4, "Bob", "Ouch. Did it hurt?"),
    said(5, "Ann", "Only the bill."),
    said(6, "Cem", "Lunch at noon?"),
    said(7, "Ann", "The garden needs water."),
    said(8, "Bob", "The garden gnome was stolen."),
    said(9, "Cem", "Who takes a gnome?"),
]


class TestTheTalkAroundCounts:
    def test_an_answer_is_found_by_its_question(self) -> None:
        assert texts("how was the concert?", TALK)[:2] == [TALK[0].text, TALK[1].text]

    def test_a_neighbour_gives_half_of_what_it_has_and_the_next_one_a_quarter(self) -> None:
        first, second, third = search("concert", TALK)
        assert (second.score, third.score) == (first.score / 2, first.score / 4)
        assert second.why == "beside what matches"

    def test_talk_of_another_room_is_no_neighbour(self) -> None:
        apart = [said(1, "Ann", "the concert was long"), said(2, "Bob", "unrelated", room="other")]
        assert texts("concert", apart) == ["the concert was long"]


class TestSpeakersAndDates:
    def test_a_speaker_who_is_named_counts_more(self) -> None:
        assert texts("what did Bob say of the garden?", TALK)[0] == TALK[7].text
        assert texts("what did Ann say of the garden?", TALK)[0] == TALK[6].text

    def test_a_day_tells_which_of_several_is_meant(self) -> None:
        talk = [said(n, "Ann", "We had soup again.", at=NOW + n * 40 * DAY, room=str(n)) for n in range(9)]
        day = of_entry(talk[4])
        (token,) = (term for term in day.dates if term.count("-") == 2)
        assert search(f"the soup on {token[2:]}", talk)[0].entry == talk[4]


class TestNothingWithoutEvidence:
    def test_small_talk_finds_nothing(self) -> None:
        assert texts("what do you think of it?", TALK) == []
        assert texts("", TALK) == []
        assert texts("what about zeppelins?", TALK) == []

    def test_ties_are_newer_first(self) -> None:
        talk = [said(n, "Ann", "tea please", room=str(n)) for n in range(4)]
        assert [hit.entry.id for hit in search("tea", talk)] == ["3", "2", "1", "0"]

    def test_words_are_scored_as_those_of_items(self) -> None:
        lines = [one.text for one in TALK]
        alone = [said(n, "", text, room=str(n)) for n, text in enumerate(lines)]
        items = [item(text, updated_at=NOW + n * 1000) for n, text in enumerate(lines)]
        hits = Ranker().rank(parse("stolen garden gnome"), items, now_ms=NOW)
        assert [hit.item.text for hit in hits] == texts("stolen garden gnome", alone)[: len(hits)]


CHAT = [
    said(1, "Ann", "Do you play anything?"),
    said(2, "Bob", "The oboe, since school."),
    said(3, "Cem", "Who is in for pizza?"),
    said(4, "Ann", "The bus was late again."),
    said(5, "Bob", "Same here, never on time."),
]


class TestMeaning:
    """Cosines by message id stand for what vectors say."""

    @staticmethod
    def found(query: str, cosines: Mapping[str, float], **given: float) -> list[RankedEntry]:
        neighbours = {
            one.id: tuple(str(near) for near in (int(one.id) - 1, int(one.id) + 1) if 0 < near <= len(CHAT))
            for one in CHAT
        }
        corpus = corpus_of(CHAT)
        meant = Meant(cosines, **given)
        return rank_talk(parse(query), CHAT, corpus=corpus, neighbours=neighbours, meant=meant)

    def test_finds_what_shares_no_word(self) -> None:
        hits = self.found("which instrument does he rehearse", {"2": 0.6, "1": 0.2, "3": 0.1, "4": 0.0})
        assert hits[0].entry.id == "2"
        assert hits[0].why == "meaning"
        assert hits[0].parts["cosine"] == 0.6

    def test_what_stands_around_it_comes_along_and_gets_a_share(self) -> None:
        cosines = {"2": 0.6, "1": 0.0, "3": 0.0, "4": 0.0}
        hits = {hit.entry.id: hit for hit in self.found("which instrument does he rehearse", cosines)}
        assert hits.keys() == {"1", "2", "3", "4"}
        assert hits["1"].score == hits["3"].score == hits["2"].score / 2
        assert hits["4"].score == hits["2"].score / 4
        assert hits["1"].why == BESIDE

    def test_alone_it_has_to_be_far_nearer_than_usual(self) -> None:
        query = "which instrument does he rehearse"
        assert self.found(query, {"2": 0.24, "1": 0.0}) == []
        assert self.found(query, {"2": 0.26, "1": 0.0}) != []
        assert self.found(query, {"2": 0.5, "1": 0.0}, usual=0.4) == []
        assert self.found(query, {"2": 0.6, "1": 0.0}, usual=0.4) != []

    def test_below_the_models_floor_it_finds_nothing(self) -> None:
        query = "which instrument does he rehearse"
        assert self.found(query, {"2": 0.7, "1": 0.0}, floor=0.75) == []
        assert self.found(query, {"2": 0.8, "1": 0.0}, floor=0.75) != []

    def test_a_few_messages_at_most_are_found_by_it_alone(self) -> None:
        assert len(Meant({str(number): 0.9 for number in range(50)}).evident()) == MOST_BY_MEANING

    def test_puts_in_order_what_has_the_same_words(self) -> None:
        late = ["4", "5"]
        for nearest in late:
            cosines = {"4": 0.1, "5": 0.1, nearest: 0.3}
            hits = self.found("bus on time", cosines)
            assert hits[0].entry.id == nearest

    def test_cosines_that_say_nothing_do_not_outweigh_the_words(self) -> None:
        assert self.found("pizza", {"1": 0.1, "2": 0.05})[0].entry.id == "3"
