"""Ranking of talk: an answer is found by its question, a speaker by name, a day by its date."""

from collections.abc import Sequence

from discoclaw.core.entry import Entry
from discoclaw.recall.document import of_entry
from discoclaw.recall.index import Index
from discoclaw.recall.query import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.talk import RankedEntry, rank_talk
from tests.core.builders import DAY, NOW, item


def said(number: int, name: str, text: str, *, room: str = "r", at: int | None = None) -> Entry:
    when = NOW + number * 1000 if at is None else at
    return Entry(str(number), room, room, room, "g", name, name, text, when)


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
    corpus = Index.of([of_entry(one) for one in talk])
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
