"""Vectors of the archive: they leave with their messages, and what may not be seen changes nothing."""

import math
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consent import ALWAYS, NEVER, UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import Purge, Words, terms_of
from discoclaw.search.archive import NEAR, Amend, Archive, Drop, Looked, Put, Visible
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.signatures import Signatures, cosines, quantised
from discoclaw.search.talk_vectors import Batch, Provider, TalkVectors
from discoclaw.store import database
from discoclaw.store.database import checkpoint
from tests.examples import FEW, FEWEST
from tests.memory.archives import InFile, again, emptied, rows, sound
from tests.memory.kit import NOW
from tests.memory.test_archive import ANN, BOB, GENERAL, in_dm, said, write

DIMS = 384
MODEL = Provider("a model", here=True)
TEXT = "the kettle whistles loudly"


@cache
def vector_of(text: str, dims: int = DIMS) -> list[float]:
    """A vector for a text, nearly at a right angle to all others."""
    dice = random.Random(text)
    return [dice.gauss(0, 1) for _ in range(dims)]


def near_to(text: str, apart: float = 0.2) -> list[float]:
    """A vector that is near the one of a text."""
    noise = vector_of(f"noise {text}")
    return [one + apart * other for one, other in zip(vector_of(text), noise, strict=True)]


class Desk:
    """An archive and its vectors."""

    def __init__(self, archive: Archive, provider: Provider = MODEL, consent: Consent = UNLIMITED) -> None:
        self.archive = archive
        self.vectors = TalkVectors(self.archive, provider, consent=consent)

    def embed(self, dims: int = DIMS) -> list[str]:
        """Make all vectors that are missing. Returns the texts, in the order in which they were asked for."""
        asked = []
        while (batch := self.vectors.take(7, NOW)).entries:
            self.keep(batch, dims)
            asked += [one.text for one in batch.entries]
        return asked

    def keep(self, batch: Batch, dims: int = DIMS) -> None:
        made = {one: vector_of(one.text, dims) for one in batch.entries}
        self.vectors.keep(made, batch.token)

    def rows(self) -> dict[str, bytes]:
        """The vectors on disk, by text."""
        found = rows(self.archive, "SELECT text, vector FROM vectors v JOIN entries USING (id)")
        return dict(found)  # type: ignore[arg-type]

    def count(self) -> int:
        ((found,),) = rows(self.archive, "SELECT count(*) FROM vectors")
        return int(found)  # type: ignore[call-overload]

    def near(self, question: Sequence[float], visible: Visible = GENERAL) -> Looked:
        asked = self.vectors.asked(question)
        return self.archive.look(["nothing"], visible, asked)

    def found(self, question: Sequence[float], visible: Visible = GENERAL) -> Mapping[str, float]:
        """The texts near a question, with their cosines."""
        looked = self.near(question, visible)
        by_id = {one.id: one.text for one in looked.entries}
        return {by_id[key]: value for key, value in looked.cosines.items()}

    def content(self) -> bytes:
        paths = path_of(self).parent.glob("archive.sqlite*")
        return b"".join(path.read_bytes() for path in paths)

    def close(self) -> None:
        self.archive.close()


@pytest.fixture
def desk(archive: Archive) -> Desk:
    return Desk(archive)


@pytest.fixture
def file(in_file: InFile) -> Desk:
    """The same with an archive in a file."""
    return Desk(in_file)


def path_of(desk: Desk) -> Path:
    return engine_of(desk).path


def engine_of(desk: Desk) -> ArchiveFile:
    assert isinstance(desk.archive.engine, ArchiveFile)
    return desk.archive.engine


def signatures_of(desk: Desk) -> Signatures:
    return engine_of(desk).signatures


def crowd(count: int = 60, author: str = BOB) -> list[Put]:
    """Other messages, in no order, so that the pages of the file are split and rearranged."""
    numbers = list(range(100, 100 + count))
    random.Random(1).shuffle(numbers)
    return [Put(said(number, f"something else number {number}", author)) for number in numbers]


def taken_back() -> Purge:
    return Purge(f"user-{ANN}", at=NOW + 500, words=Words(frozenset(terms_of(TEXT))), texts=(TEXT,))


def opted_out() -> Consent:
    return Consent(lambda user: ALWAYS if user == ANN else NEVER)


GOES: dict[str, Callable[[Archive], object]] = {
    "deleted": lambda archive: write(archive, Drop("7")),
    "edited": lambda archive: write(archive, Amend("7", ANN, "ok")),
    "too old": lambda archive: archive.expire(NOW + 50),
    "its channel deleted": lambda archive: archive.drop_channel("77"),
    "opted out": lambda archive: archive.sweep(opted_out()),
    "erased": lambda archive: archive.erase_person(ANN),
    "taken back": lambda archive: archive.take_out(taken_back()),
}


class TestWhatLeaves:
    @pytest.mark.parametrize("why", GOES)
    def test_goes_with_its_message_and_from_ram_in_the_same_change(self, desk: Desk, why: str) -> None:
        write(desk.archive, Put(said(7, TEXT, channel_id="77", group_id="77")), *crowd())
        desk.embed()
        visible = Visible(frozenset({"55", "77"}))
        assert TEXT in desk.found(near_to(TEXT), visible)
        in_file = isinstance(desk.archive, InFile)
        size = signatures_of(desk).size if in_file else 0
        GOES[why](desk.archive)
        assert (desk.count(), len(desk.rows())) == (60, 60)
        assert not in_file or signatures_of(desk).size < size
        assert TEXT not in desk.found(near_to(TEXT), visible)
        sound(desk.archive)

    @pytest.mark.parametrize(("why", "dims"), [*((why, DIMS) for why in GOES), ("deleted", 1536)])
    def test_no_piece_of_its_vector_is_left_in_the_file(self, file: Desk, why: str, dims: int) -> None:
        write(file.archive, *crowd(), Put(said(7, TEXT, channel_id="77", group_id="77")), *crowd(200)[60:])
        file.embed(dims)
        gone = file.rows()[TEXT]
        assert gone in file.content()
        GOES[why](file.archive)
        engine_of(file)._writer.run(checkpoint)  # of who is erased the log is empty already
        content = file.content()
        assert not [at for at in range(0, dims, 16) if gone[at : at + 16] in content]
        assert all(one in content for one in file.rows().values())

    @pytest.mark.parametrize("why", ["opted out", "erased", "taken back"])
    def test_of_a_person_none_is_left_in_the_log_either(self, file: Desk, why: str) -> None:
        write(file.archive, *crowd(), Put(said(7, TEXT)))
        file.embed()
        gone = file.rows()[TEXT]
        GOES[why](file.archive)
        assert gone not in file.content()

    def test_it_goes_if_an_older_version_deletes_the_message(self, file: Desk) -> None:
        write(file.archive, Put(said(7, TEXT)), *crowd())
        file.embed()
        file.close()
        with closing(sqlite3.connect(path_of(file), isolation_level=None)) as older:
            older.execute("DELETE FROM entries WHERE id = 7")
        assert file.count() == 60

    def test_what_is_at_the_provider_meanwhile_is_not_stored(self, desk: Desk) -> None:
        write(desk.archive, Put(said(7, TEXT)), Put(said(8, "the milk boils over")))
        taken = desk.vectors.take(9, NOW)
        write(desk.archive, Drop("7"), Amend("8", ANN, "the milk boils again"))
        desk.keep(taken)
        assert desk.count() == 0
        assert desk.embed() == ["the milk boils again"]

    def test_nor_of_who_opts_out_meanwhile(self, archive: Archive) -> None:
        out: set[str] = set()
        consent = Consent(lambda user: ALWAYS if user in out else NEVER)
        desk = Desk(archive, consent=consent)
        write(desk.archive, Put(said(7, TEXT)), Put(said(8, "the milk boils over", BOB)))
        taken = desk.vectors.take(9, NOW)
        out.add(ANN)
        desk.keep(taken)
        assert list(desk.rows()) == ["the milk boils over"]
        assert desk.embed() == []
        desk.close()

    def test_with_the_last_one_its_length_goes_too(self, file: Desk) -> None:
        write(file.archive, Put(said(7, TEXT)))
        file.embed()
        write(file.archive, Drop("7"))
        assert (signatures_of(file).size, file.vectors.dims) == (0, 0)

    def test_of_an_erased_person_not_even_the_place_stays_in_ram(self, file: Desk) -> None:
        write(file.archive, Put(in_dm(7, TEXT)), *crowd(9), Put(said(900, "far away", group_id="77")))
        file.embed()
        assert f"@d{ANN}" in signatures_of(file)._places
        file.archive.erase_person(ANN)
        assert set(signatures_of(file)._places) == {"@g55"}
        write(file.archive, Put(said(901, TEXT, BOB, group_id="78")))
        file.embed()
        assert set(file.found(near_to(TEXT), Visible(frozenset({"78"})))) == {TEXT}
        assert TEXT not in file.found(near_to(TEXT))

    def test_of_a_file_that_is_replaced_no_sign_stays_in_ram(self, file: Desk) -> None:
        write(file.archive, *crowd(9))
        file.embed()
        file.close()
        for path in path_of(file).parent.glob("archive.sqlite*"):
            path.unlink()
        with closing(Desk(again(file.archive))) as other:  # another process
            write(other.archive, Put(said(7, TEXT)))
        assert file.embed() == [TEXT]
        assert list(file.found(near_to(TEXT))) == [TEXT]
        assert len(signatures_of(file)) == 1


class TestWhoSeesWhat:
    @FEW
    @given(
        seen=st.lists(st.integers(0, 40), max_size=12),
        unseen=st.lists(st.integers(0, 40), max_size=12),
        question=st.integers(0, 40),
    )
    def test_what_may_not_be_seen_changes_nothing(
        self, archive: Archive, seen: list[int], unseen: list[int], question: int
    ) -> None:
        mine = [Put(said(number + 1, f"words of number {one}")) for number, one in enumerate(seen)]
        other = {"channel_id": "77", "group_id": "77", "session_key": "discord:channel:77"}
        theirs = [
            Put(said(500 + number, f"words of number {one}", **other)) for number, one in enumerate(unseen)
        ]
        looked = []
        for changes in (mine, [*theirs, *mine]):
            desk = Desk(emptied(archive))
            write(desk.archive, *changes)
            desk.embed()
            found = desk.near(near_to(f"words of number {question}"))
            looked.append((found.entries, found.cosines, found.usual, found.neighbours))
        assert looked[0] == looked[1]

    @FEWEST
    @given(order=st.permutations(range(5)))
    def test_the_order_of_storing_changes_nothing(self, archive: Archive, order: list[int]) -> None:
        looked = []
        for numbers in (range(5), order):
            desk = Desk(emptied(archive))
            for number in numbers:
                write(desk.archive, Put(said(number + 1, f"words of number {number % 4}")))
                desk.embed()
            found = desk.near(near_to("words of number 3"))
            looked.append(([one.id for one in found.entries], found.cosines, found.usual))
        assert looked[0] == looked[1]

    def test_a_message_of_another_place_is_not_found_however_near_it_is(self, desk: Desk) -> None:
        write(desk.archive, Put(said(7, TEXT, channel_id="77", group_id="77")), *crowd(3))
        desk.embed()
        assert TEXT not in desk.found(vector_of(TEXT))
        assert desk.found(vector_of(TEXT), Visible(frozenset({"77"})))[TEXT] > 0.99


class TestMaking:
    def test_the_newest_come_first_and_none_without_words(self, desk: Desk) -> None:
        texts = ["the oldest soup", "haha", "soup and salad", "", "me too, thanks", "the newest soup"]
        write(desk.archive, *(Put(said(number, text)) for number, text in enumerate(texts, start=1)))
        assert desk.embed() == ["the newest soup", "soup and salad", "the oldest soup"]

    def test_what_was_taken_and_never_came_back_is_taken_again(self, desk: Desk) -> None:
        write(desk.archive, *crowd(9))
        desk.vectors.take(5, NOW)  # and then the process is killed
        desk.close()
        other = Desk(again(desk.archive))
        assert len(other.embed()) == 9
        other.close()

    def test_they_are_there_after_a_restart(self, desk: Desk) -> None:
        write(desk.archive, Put(said(7, TEXT)), *crowd())
        desk.embed()
        before = desk.found(near_to(TEXT))
        desk.close()
        other = Desk(again(desk.archive))
        assert other.embed() == []
        assert other.found(near_to(TEXT)) == before
        other.close()

    def test_what_a_replaced_model_made_is_not_kept(self, desk: Desk) -> None:
        write(desk.archive, *crowd(3))
        desk.embed()
        write(desk.archive, Put(said(7, TEXT)))
        taken = desk.vectors.take(9, NOW)
        desk.vectors.outdate()
        desk.vectors.start_over()
        desk.keep(taken)
        assert desk.count() == 0
        assert len(desk.embed()) == 4

    def test_another_model_or_another_length_makes_all_again(self, desk: Desk) -> None:
        write(desk.archive, *crowd(9))
        desk.embed()
        desk.close()
        other = Desk(again(desk.archive), Provider("another model", here=True))
        assert len(other.embed()) == 9
        write(other.archive, Put(said(7, TEXT)))
        assert other.embed(dims=64) == [TEXT, *(one.entry.text for one in sorted_newest(crowd(9)))]
        assert {len(one) for one in other.rows().values()} == {64}
        assert not other.found(near_to(TEXT))  # the question is of another length
        other.close()

    def test_a_vector_without_a_direction_is_left_out(self, desk: Desk) -> None:
        bad = {"1": [0.0] * DIMS, "2": [math.nan] * DIMS, "3": [math.inf] * DIMS, "4": []}
        write(desk.archive, *(Put(said(int(one), TEXT)) for one in bad), Put(said(8, "the milk boils over")))
        taken = desk.vectors.take(9, NOW)
        made = {one: bad.get(one.id, vector_of(one.text)) for one in taken.entries}
        desk.vectors.keep(made, taken.token)
        assert list(desk.rows()) == ["the milk boils over"]
        assert desk.embed() == []

    def test_a_provider_elsewhere_gets_open_talk_and_so_much_a_day(self, archive: Archive) -> None:
        desk = Desk(archive, Provider("far", most=3))
        desk.vectors.saw("@g55", open_=True)
        desk.vectors.saw("@g78", open_=True)
        desk.vectors.saw("@g78", open_=False)
        private = {"session_key": f"discord:dm:{ANN}", "group_id": None, "guild_id": None}
        closed = {"session_key": "discord:thread:77", "channel_id": "77", "group_id": "77"}
        hidden = {"channel_id": "78", "group_id": "78"}
        others = [
            Put(said(number, TEXT, **one)) for number, one in ((900, private), (901, closed), (902, hidden))
        ]
        write(desk.archive, *others, *crowd(9))
        assert len(desk.embed()) == 3
        assert desk.vectors.take(9, NOW).spent
        tomorrow = NOW + 86_400_000
        assert len(desk.vectors.take(9, tomorrow).entries) == 3
        assert TEXT not in desk.rows()
        desk.close()

    def test_what_a_provider_fails_to_answer_counts_as_sent_too(self, archive: Archive) -> None:
        desk = Desk(archive, Provider("far", most=5))
        desk.vectors.saw("@g55", open_=True)
        write(desk.archive, *crowd(20))
        sent = 0
        for _ in range(5):  # each time the answer is lost, as at a kill or on a full disk
            sent += len(desk.vectors.take(3, NOW).entries)
        desk.close()
        assert sent == 5

    def test_so_many_refused_messages_as_a_statement_has_no_places_for_are_passed_over(
        self, desk: Desk
    ) -> None:
        write(desk.archive, Put(said(7, TEXT)))
        assert [one.text for one in desk.vectors.take(5, NOW, range(1_000, 300_000)).entries] == [TEXT]

    def test_a_full_disk_is_a_fault_and_loses_nothing(self, file: Desk) -> None:
        write(file.archive, *crowd(9))
        taken = file.vectors.take(5, NOW)
        connection = engine_of(file)._writer.open()  # the limit is a setting of this very connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(MemoryFault, match="full"):
            file.keep(taken, 8_000)
        assert file.count() == 0
        assert len(file.embed()) == 9
        assert len(file.found(near_to(taken.entries[0].text))) == 9

    def test_a_damaged_file_is_begun_anew(self, file: Desk) -> None:
        write(file.archive, *crowd(9))
        file.embed()
        file.close()
        for beside in database.BESIDE:
            Path(f"{path_of(file)}{beside}").unlink(missing_ok=True)
        path_of(file).write_bytes(b"nonsense" * 1000)
        write(file.archive, Put(said(7, TEXT)))
        assert file.embed() == [TEXT]
        assert list(file.found(near_to(TEXT))) == [TEXT]

    def test_a_file_of_the_first_version_gets_what_it_lacks(self, file: Desk) -> None:
        write(file.archive, Put(said(7, TEXT)), *crowd(3))
        file.close()
        with closing(sqlite3.connect(path_of(file), isolation_level=None)) as db:
            for name in ("wanted", "unwanted", "outdated"):
                db.execute(f"DROP TRIGGER vector_{name}")
            for name in ("vectors", "unembedded", "vectors_of"):
                db.execute(f"DROP TABLE {name}")
            for name in ("author", "addressee"):
                db.execute(f"DROP INDEX entries_by_{name}")
        other = Desk(again(file.archive))
        assert [one.text for one in other.archive.look(["kettl"], GENERAL).entries][:1] == [TEXT]
        assert other.archive.sweep(opted_out()) == 1
        assert len(other.embed()) == 3
        assert sound(other.archive)[0] == 3
        other.close()

    def test_a_row_of_another_length_is_passed_over(self, file: Desk) -> None:
        write(file.archive, Put(said(7, TEXT)), *crowd(3))
        file.embed()
        file.close()
        with closing(sqlite3.connect(path_of(file), isolation_level=None)) as db:
            db.execute("UPDATE vectors SET vector = x'00ff' WHERE id = 7")
        other = Desk(again(file.archive))
        other.embed()
        assert TEXT not in other.found(near_to(TEXT))
        other.close()


def sorted_newest(changes: Sequence[Put]) -> list[Put]:
    return sorted(changes, key=lambda one: -int(one.entry.id))


class TestSignatures:
    def test_the_nearest_are_those_of_the_exact_cosines(self) -> None:
        dice = np.random.default_rng(1)
        vectors = dice.normal(size=(3_000, DIMS))
        vectors[:40] += vectors[0]  # some that are near each other
        signatures = Signatures()
        signatures.add([(number, "@g1", quantised(one) or b"") for number, one in enumerate(vectors)])
        exact = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1)
        wanted = set(np.argsort(-exact)[:12].tolist())
        assert wanted <= set(signatures.nearest(vectors[0].tolist(), ["@g1"], 150))
        assert signatures.nearest(vectors[0].tolist(), ["@g2"], 150) == []

    @given(st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=8), st.integers(0, 99))
    def test_a_cosine_of_bytes_is_nearly_the_exact_one(self, vector: list[float], seed: int) -> None:
        packed = quantised(vector)
        question = vector_of(str(seed), 8)
        if packed is None:
            assert not any(vector)
            return
        length = math.hypot(*vector) * math.hypot(*question)
        exact = sum(one * other for one, other in zip(vector, question, strict=True)) / length
        assert cosines(question, [packed])[0] == pytest.approx(exact, abs=0.02)

    def test_ram_is_some_sixty_bytes_a_message(self) -> None:
        signatures = Signatures()
        vector = quantised(vector_of("one")) or b""
        signatures.add([(number, "@g1", vector) for number in range(10_000)])
        assert signatures.size <= 65 * 10_000
        assert len(signatures.nearest(vector_of("one"), ["@g1"], NEAR)) == NEAR

    @FEWEST
    @given(st.integers(1, 3_000))
    def test_vectors_of_any_length_have_signatures(self, dims: int) -> None:
        signatures = Signatures()
        rows = [(number, "@g1", quantised(vector_of(str(number), dims)) or b"") for number in range(5)]
        signatures.add(rows)
        assert signatures.nearest(vector_of("3", dims), ["@g1"], 5)[0] in range(5)
        signatures.keep_only([1])
        assert signatures.nearest(vector_of("3", dims), ["@g1"], 5) == [1]
