"""The archive of several processes: nobody's words are lost, nothing of an erased person comes back."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.errors import LeaseLost, MemoryFault
from discoclaw.core.message import Place, Said
from discoclaw.core.policy import AutoSave
from discoclaw.core.purge import Purge, Words, terms_of
from discoclaw.search.archive import Amend, Put, Visible
from discoclaw.session.archiving import Archiving, Rules, words_of
from tests.memory.archives import Kept, again, holding, rows, sound, texts
from tests.memory.kit import NOW, Clock
from tests.memory.test_archive import ANN, BOB, CANARY, US, found, in_dm, said, write
from tests.memory.test_vectors_of_talk import Desk, near_to
from tests.servers.postgres import Postgres

BATCHES = 25


@pytest.fixture
def archive(prepared_database: str) -> Iterator[Kept]:
    made = Kept(prepared_database)
    yield made
    made.close()


class Writers:
    """Processes that write to one archive."""

    def __init__(self, archive: Kept, flag: Path, most: int) -> None:
        command = [sys.executable, "-m", "tests.memory.archive_writer", archive.url]
        self.running = [
            subprocess.Popen([*command, str(number), str(flag), str(most)], stdout=subprocess.PIPE)
            for number in range(1, 4)
        ]
        for one in self.running:
            assert one.stdout is not None
            assert one.stdout.readline() == b"ready\n"

    def until(self, archive: Kept, messages: int) -> None:
        """Wait until the archive has so many messages."""
        while len(texts(archive)) < messages:
            assert not any(one.poll() for one in self.running)

    def end(self) -> list[int]:
        """Wait for them; how each of them ended."""
        outcomes = [one.wait() for one in self.running]
        for one in self.running:
            assert one.stdout is not None
            one.stdout.close()
        return outcomes

    def kill(self) -> None:
        for one in self.running:
            one.kill()


class TestProcesses:
    def test_write_while_somebody_is_erased_and_nothing_of_them_is_left(
        self, archive: Kept, tmp_path: Path
    ) -> None:
        writers = Writers(archive, tmp_path / "flag", BATCHES)
        writers.until(archive, 50)
        (tmp_path / "flag").touch()
        assert archive.erase_person(ANN) > 0
        assert writers.end() == [0, 0, 0]
        assert holding(archive, [CANARY, ANN]) == []
        numbers = [number * 1_000_000 + batch * 10 + 1 for number in range(1, 4) for batch in range(BATCHES)]
        assert texts(archive) == [f"kept tea {one} of process{one // 1_000_000}" for one in numbers]
        sound(archive)

    def test_a_write_under_way_is_erased_too(self, archive: Kept) -> None:
        """The other process asks what it may keep, and then somebody is erased, and then it commits."""
        other = again(archive)
        erasing = threading.Thread(target=archive.erase_person, args=(ANN,))

        def cutoff(user: str) -> int:
            erasing.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while erasing.is_alive() and rows(archive, waiting) == [(0,)]:
                pass
            return NEVER

        other.write([Put(said(1, CANARY))], words=words_of, consent=Consent(cutoff))
        erasing.join()
        assert holding(archive, [CANARY, ANN]) == []
        other.close()

    def test_that_are_killed_leave_whole_entries(self, archive: Kept, tmp_path: Path) -> None:
        for written in (20, 200):
            writers = Writers(archive, tmp_path / "flag", 10_000)
            writers.until(archive, written)
            writers.kill()
            assert writers.end() == [-9, -9, -9]
            sound(archive)
        assert archive.erase_person(ANN) > 0
        sound(archive)

    def test_find_what_another_one_wrote_edited_and_removed(self, archive: Kept) -> None:
        other = again(archive)
        write(archive, Put(said(1, "zebra")), Put(said(2, "lion", BOB)))
        assert found(other, "zebra") == ["zebra", "lion"]
        write(other, Amend("1", ANN, "tiger"))
        assert found(archive, "tiger") == ["tiger", "lion"]
        other.erase_person(ANN)
        assert found(archive, "tiger") == []
        other.close()

    def test_that_are_no_longer_counted_on_write_nothing(self, archive: Kept) -> None:
        write(archive, Put(said(1, "zebra")))
        archive.database.presence.process = 99  # of nobody who is registered
        with pytest.raises(LeaseLost):
            write(archive, Put(said(2, "zebra two")))
        with pytest.raises(LeaseLost):
            archive.erase_person(ANN)
        assert texts(archive) == ["zebra"]


class TestVectors:
    def test_of_another_process_are_found_and_leave_with_their_messages(self, archive: Kept) -> None:
        one, two = Desk(archive), Desk(again(archive))
        write(archive, Put(said(7, "the kettle whistles")), Put(said(8, "the milk boils over", BOB)))
        one.embed()
        assert "the kettle whistles" in two.found(near_to("the kettle whistles"))
        two.archive.erase_person(ANN)
        assert list(one.found(near_to("the kettle whistles"))) == ["the milk boils over"]
        two.close()

    def test_that_another_process_began_anew_are_not_kept(self, archive: Kept) -> None:
        one, two = Desk(archive), Desk(again(archive))
        write(archive, Put(said(7, "the kettle whistles")))
        taken = one.vectors.take(5, NOW)
        two.vectors.outdate()
        two.vectors.start_over()
        one.keep(taken)
        assert one.count() == 0
        assert two.embed() == ["the kettle whistles"]
        two.close()

    def test_of_many_older_messages_are_made_too(
        self, archive: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("discoclaw.search.archive_tables.LISTED_AT_ONCE", 10)
        write(archive, *(Put(said(number, f"words of number {number}")) for number in range(1, 46)))
        assert len(Desk(archive).embed()) == 45


class TestWords:
    def test_leave_every_table_with_their_message(self, archive: Kept) -> None:
        write(
            archive,
            Put(in_dm(1, f"{CANARY} one")),
            Put(said(2, f"you like {CANARY}", US, by_us=True, to_id=ANN)),
        )
        write(archive, Put(said(3, f"{CANARY} too")), Put(said(4, "marbles and tea", BOB)))
        Desk(archive).embed()
        write(archive, Amend("3", ANN, "marbles and tea"))
        assert holding(archive, [CANARY]) == ["entries", "terms"]
        words = Words(frozenset(terms_of(CANARY)))
        archive.take_out(Purge(f"user-{ANN}", at=NOW + 500, words=words, texts=(CANARY,)))
        assert holding(archive, [CANARY]) == []
        archive.erase_person(ANN)
        assert holding(archive, [ANN]) == []
        assert texts(archive) == ["marbles and tea"]
        sound(archive)


class TestServer:
    async def test_that_is_away_holds_up_no_talk_which_is_written_later(
        self, postgres: Postgres, database: str
    ) -> None:
        archive = Kept(database)
        general = Place("channel", "55", "55", "general", private=False, group_name="general")
        archiving = Archiving(archive, Rules(AutoSave(everywhere=True), 0, UNLIMITED), clock=Clock())
        await archiving.start()
        archiving.hear(Said("1", ANN, "Ann", "zebra one", NOW), general, "discord:channel:55")
        await archiving.settle()
        postgres.kill9()
        archiving.hear(Said("2", ANN, "Ann", "zebra two", NOW), general, "discord:channel:55")
        await archiving.settle()
        with pytest.raises(MemoryFault, match="cannot be read"):
            await archiving.search("zebra", Visible(frozenset({"55"})), limit=9)
        postgres.start()
        archiving.hear(Said("3", ANN, "Ann", "zebra three", NOW), general, "discord:channel:55")
        await archiving.settle()
        assert texts(archive) == ["zebra one", "zebra two", "zebra three"]
        await archiving.close()
        archive.close()
