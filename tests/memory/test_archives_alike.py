"""Both archives find the same, in the same order, whatever was said: each is the other's oracle."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.purge import Purge, Words, terms_of
from discoclaw.recall.document import parse
from discoclaw.search.archive import MOST_SCORED, Amend, Archive, Change, Drop, Only, Put, Visible
from discoclaw.session.archiving import find
from tests.examples import FEW
from tests.memory.archives import archive_at, emptied, sound, texts
from tests.memory.kit import NOW
from tests.memory.test_archive import ANN, BOB, US, in_dm, said, write
from tests.memory.test_vectors_of_talk import DIMS, Desk, vector_of

SPOKEN = """tea coffee the concert was great I play oboe since school Tokyo 東京 に 行きます Москва красивая
    über Gärten 70,000 70000 node.js c++ it's l'entrée running runs ran pet dog zebra zebras 👍 x a ok
    yesterday 2026-02-03 @ann #general haha me too espresso""".split()  # noqa: SIM905
WORDS = st.lists(st.sampled_from(SPOKEN), max_size=9).map(" ".join)
PLACES = (
    {},
    {"channel_id": "56", "session_key": "discord:thread:56"},
    {"channel_id": "57", "group_id": "57", "session_key": "discord:thread:57"},
    {"channel_id": "58", "group_id": "58", "session_key": "discord:channel:58"},
    {"channel_id": "66", "group_id": None, "guild_id": None, "session_key": f"discord:dm:{ANN}"},
)
SEEN = (
    Visible(frozenset({"55"})),
    Visible(frozenset({"55", "57", "58"})),
    Visible(frozenset({"58"}), dm_of=ANN),
    Visible(frozenset(str(one) for one in range(40, 90))),
)
NUMBERS = st.integers(1, 30)


def put(number: int, text: str, author: str, place: int, fresh: bool) -> Put:
    own = {"by_us": True, "to_id": ANN} if author == US else {}
    return Put(said(number, text, author, **PLACES[place], **own), fresh)


CHANGES = st.one_of(
    st.builds(put, NUMBERS, WORDS, st.sampled_from([ANN, BOB, US]), st.integers(0, 4), st.booleans()),
    st.builds(Amend, NUMBERS.map(str), st.sampled_from([ANN, BOB]), WORDS),
    st.builds(Drop, NUMBERS.map(str)),
    st.builds(Only, st.just("discord:channel:55"), st.lists(NUMBERS.map(str), max_size=3).map(tuple)),
)


@pytest.fixture
def both(tmp_path: Path, prepared_database: str) -> Iterator[tuple[Archive, Archive]]:
    pair = archive_at(tmp_path / "archive.sqlite"), archive_at(prepared_database)
    yield pair
    for one in pair:
        one.close()


def embedded(pair: Sequence[Archive]) -> None:
    """Embed what both have, and check that it is the same."""
    desks = [Desk(one) for one in pair]
    assert desks[0].embed() == desks[1].embed()
    assert desks[0].rows() == desks[1].rows()


def alike(pair: Sequence[Archive], queries: Sequence[str], vectors: bool = False) -> None:
    """Check that both are sound, have the same entries, and find the same."""
    if vectors:
        embedded(pair)
    assert sound(pair[0]) == sound(pair[1])
    assert texts(pair[0]) == texts(pair[1])
    for visible in SEEN:
        assert pair[0].speakers(visible) == pair[1].speakers(visible)
        for query in queries:
            wanted = parse(query, search=True).wanted
            asked = tuple(vector_of(query, DIMS)) if vectors else None
            assert pair[0].look(wanted, visible, asked) == pair[1].look(wanted, visible, asked)
            found = [find(one, query, visible, limit=20, consent=UNLIMITED, asked=asked) for one in pair]
            assert found[0] == found[1]
            held = [one.holding(query, visible, limit=20) for one in pair]
            assert held[0] == held[1]
    assert pair[0].present(["55", "58", "x"]) == pair[1].present(["55", "58", "x"])
    assert sorted(map(repr, _said(pair[0]))) == sorted(map(repr, _said(pair[1])))


def _said(archive: Archive) -> list[tuple[object, ...]]:
    return [(one.text, one.message, one.session, one.author) for one in archive.audit()]


def taken_back(text: str, **given: object) -> Purge:
    words = Words(frozenset(terms_of(text)))
    return Purge(f"user-{ANN}", **{"at": NOW + 20, "words": words, "texts": (text,), **given})  # type: ignore[arg-type]


class TestBoth:
    @FEW
    @given(
        batches=st.lists(st.lists(CHANGES, max_size=20), max_size=5),
        query=WORDS,
        vectors=st.booleans(),
        then=st.sampled_from(["nothing", "erase", "expire", "sweep", "channel", "withdraw", "open", "text"]),
        word=st.sampled_from(SPOKEN),
    )
    def test_find_the_same_after_anything(
        self,
        both: tuple[Archive, Archive],
        batches: list[list[Change]],
        query: str,
        vectors: bool,
        then: str,
        word: str,
    ) -> None:
        for archive in both:
            emptied(archive)
            for batch in batches:
                write(archive, *batch)
        if vectors:
            embedded(both)
        acts = {
            "nothing": lambda one: 0,
            "erase": lambda one: one.erase_person(ANN),
            "expire": lambda one: one.expire(NOW + 15),
            "sweep": lambda one: one.sweep(Consent(lambda user: NOW + 9 if user == ANN else NEVER)),
            "channel": lambda one: one.drop_channel("56"),
            "withdraw": lambda one: one.take_out(taken_back(word)),
            "open": lambda one: one.take_out(taken_back(word, open_only=True)),
            "text": lambda one: one.take_out(taken_back("x", words=Words(texts=frozenset({word})))),
        }
        assert acts[then](both[0]) == acts[then](both[1])
        alike(both, [query, word], vectors)

    @pytest.mark.long
    def test_choose_the_same_among_thousands(self, both: tuple[Archive, Archive]) -> None:
        """Rare terms choose by their score, common ones bring the newest; there are ties and neighbours."""
        dice = random.Random(7)
        vocabulary = [f"word{number}" for number in range(400)]
        common = ["zebra", "quagga", "okapi"]
        changes = []
        for number in range(1, MOST_SCORED + 1_500):
            spoken = [*dice.choices(vocabulary, k=dice.randint(0, 12)), *dice.choices(common, k=2)]
            changes.append(Put(said(number, " ".join(spoken), (ANN, BOB)[number % 2], **PLACES[number % 4])))
        dice.shuffle(changes)
        changes.append(Put(in_dm(90_000, "zebra word7 word8")))
        for archive in both:
            for begin in range(0, len(changes), 500):
                write(archive, *changes[begin : begin + 500])
        queries = [" ".join(dice.sample([*vocabulary, *common], k=dice.randint(1, 6))) for _ in range(12)]
        alike(both, [*queries, "zebra", "zebra okapi quagga"])
        for archive in both:
            assert archive.erase_person(ANN) > 2_000
        alike(both, queries[:10])

    def test_rank_rare_words_as_fts5_does(self, both: tuple[Archive, Archive]) -> None:
        dice = random.Random(5)
        vocabulary = [f"word{number}" for number in range(40)]
        spoken = [" ".join(dice.choices(vocabulary, k=dice.randint(1, 12))) for _ in range(90)]
        for archive in both:
            write(archive, *(Put(said(number, text)) for number, text in enumerate(spoken, start=1)))
            write(archive, Amend("7", ANN, "word1 word1 word2"), Drop("9"))
        bm25 = """SELECT entries.id FROM words JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern ORDER BY bm25(words, 0.0, 1.0), words.rowid DESC"""
        for _ in range(20):
            terms = dice.sample(vocabulary, k=dice.randint(1, 5))
            pattern = f"terms : ({' OR '.join(terms)})"
            best = [
                str(number)
                for (number,) in both[0].engine.read(lambda sql, p=pattern: sql.rows(bm25, pattern=p), [])
            ]  # type: ignore[misc]
            for archive in both:
                found = [one.id for one in archive.look(terms, SEEN[0]).entries]
                assert found[: len(best)] == best

    def test_hold_a_term_that_no_index_takes(self, both: tuple[Archive, Archive]) -> None:
        endless = "".join(random.Random(3).choices("abcdefghij", k=3_900))
        for archive in both:
            entries = [said(1, f"tea {endless}"), said(2, f"{endless} coffee"), said(3, "tea")]
            write(archive, *map(Put, entries))
        alike(both, ["tea", "coffee"])
        for archive in both:
            assert archive.take_out(taken_back(endless)) == 2
        alike(both, ["tea"])
