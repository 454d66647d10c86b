"""The archive: rows and index stay one, what is deleted is gone from the bytes, and faults are faults."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.message import Entry
from discoclaw.core.purge import erasing
from discoclaw.memory.subjects.store import Memory
from discoclaw.search import archive as archives
from discoclaw.search.archive import (
    CANDIDATES,
    Amend,
    Archive,
    Change,
    Drop,
    Indexed,
    Put,
    Visible,
)
from discoclaw.session.archiving import words_of
from discoclaw.store import database
from tests.examples import FEW
from tests.memory.archives import InFile, emptied, rows, sound
from tests.memory.kit import NOW, Clock, refusing
from tests.purging import from_disk
from tests.tables import naming

CANARY = "Kanarienvogel4711"
ANN, BOB, US = "910000000000000177", "820000000000000288", "730000000000000399"
GENERAL = Visible(frozenset({"55"}))


def said(number: int, text: str, author: str = ANN, **given: object) -> Entry:
    """A message in the channel 55 of server 9."""
    entry = Entry(
        id=str(number),
        session_key="discord:channel:55",
        channel_id="55",
        group_id="55",
        guild_id="9",
        author_id=author,
        name={ANN: "Ann", BOB: "Bob"}.get(author, "DiscoClaw"),
        text=text,
        sent_at=NOW + number,
    )
    return replace(entry, **given)  # type: ignore[arg-type]


def in_dm(number: int, text: str, person: str = ANN, author: str = ANN, **given: object) -> Entry:
    place = {"session_key": f"discord:dm:{person}", "channel_id": "66", "group_id": None, "guild_id": None}
    return said(number, text, author, **{**place, **given})


def write(archive: Archive, *changes: Change) -> None:
    archive.write(changes, words=words_of, consent=UNLIMITED)


def found(archive: Archive, *terms: str, visible: Visible = GENERAL) -> list[str]:
    """The texts that terms bring, with what stands beside them."""
    looked = archive.look(terms, visible)
    return [entry.text for entry in looked.entries]


def files_with(folder: Path, word: str) -> list[str]:
    """The files below a folder that have a word in their bytes, in whatever case."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and word.lower().encode() in path.read_bytes().lower()
    ]


def with_archive(folder: Path) -> tuple[Memory, InFile]:
    """An open memory, and the archive that goes with an erasing."""
    memory = Memory(folder / "memory", clock=Clock())
    archive = InFile(folder / "memory" / "archive.sqlite")
    memory.join(archive)
    memory.open()
    return memory, archive


class TestRowsAndIndex:
    def test_there_is_no_file_before_the_first_entry_and_nothing_is_found(self, archive: Archive) -> None:
        assert found(archive, "tea") == []
        assert archive.expire(NOW) == archive.erase_person(ANN) == archive.drop_channel("55") == 0
        assert archive.sweep(Consent(lambda user: NOW)) == 0
        assert not isinstance(archive, InFile) or not archive.path.exists()

    def test_what_is_written_is_found_edited_and_gone(self, archive: Archive) -> None:
        write(archive, Put(said(1, "I like zebras")))
        assert found(archive, "zebra") == ["I like zebras"]
        write(archive, Amend("1", ANN, "I like lions"))
        assert found(archive, "zebra") == []
        assert found(archive, "lion") == ["I like lions"]
        write(archive, Drop("1"))
        assert found(archive, "lion") == []
        assert sound(archive) == (0, 0)

    def test_nobody_edits_somebody_elses_words(self, archive: Archive) -> None:
        write(archive, Put(said(1, "I like zebras")))
        write(archive, Amend("1", BOB, "I hate zebras"), Put(said(1, "I hate zebras", BOB)))
        assert found(archive, "zebra") == ["I like zebras"]

    def test_the_history_brings_nothing_over_what_was_heard_whole(self, archive: Archive) -> None:
        write(archive, Put(said(1, "the whole long answer", US, by_us=True, to_id=ANN)))
        write(archive, Put(said(1, "the whole", US, by_us=True, to_id=ANN), fresh=True))
        assert found(archive, "answer") == ["the whole long answer"]

    def test_a_message_stays_where_it_was_said(self, archive: Archive) -> None:
        """A thread's history begins with the message it grew out of, which is of the channel."""
        write(archive, Put(said(1, "a plan")))
        write(archive, Put(said(1, "a better plan", session_key="discord:thread:1", channel_id="1")))
        looked = archive.look(["plan"], GENERAL)
        assert [(one.text, one.channel_id) for one in looked.entries] == [("a better plan", "55")]

    def test_what_has_no_id_is_left_out_and_the_others_are_kept(self, archive: Archive) -> None:
        entries = [
            replace(said(1, f"zebra {bad}"), id=bad) for bad in ("", "x", "-1", "9" * 20, "1; DROP", "٣")
        ]
        write(archive, *map(Put, entries), Drop("nonsense"), Amend("x", ANN, "y"), Put(said(2, "zebra fine")))
        assert found(archive, "zebra") == ["zebra fine"]

    def test_odd_texts_are_kept(self, archive: Archive) -> None:
        odd = [
            "",
            "\x00",
            "\ud800 zebra",
            "zebra " * 5000,
            'zebra" OR "x',
            "👍 zebra",
            "NEAR(zebra)",
            "zebra*",
        ]
        write(archive, *[Put(said(number, text)) for number, text in enumerate(odd, start=1)])
        assert sound(archive)[0] == len(odd)
        assert len(found(archive, "zebra")) == len(odd)  # those without are near one that has it

    def test_one_that_may_not_be_kept_any_more_is_not(self, archive: Archive) -> None:
        changes = [Put(said(1, "zebra one")), Put(said(2, "zebra two", BOB))]
        archive.write(changes, words=words_of, consent=refusing(lambda user_id: user_id != BOB))
        assert found(archive, "zebra") == ["zebra two"]

    def test_a_batch_is_written_whole_or_not_at_all(self, archive: Archive) -> None:
        def words(entry: Entry) -> Indexed:
            if "boom" in entry.text:
                raise ZeroDivisionError
            return words_of(entry)

        with pytest.raises(ZeroDivisionError):
            archive.write([Put(said(1, "zebra")), Put(said(2, "boom"))], words=words, consent=UNLIMITED)
        assert found(archive, "zebra") == []
        write(archive, Put(said(3, "zebra")))
        assert found(archive, "zebra") == ["zebra"]

    texts = st.text(alphabet=st.sampled_from("ab é\"'*木語👍\x00\ud800-"), max_size=12)
    ids = st.integers(1, 6).map(str)
    people = st.sampled_from([ANN, BOB])
    puts = st.builds(
        lambda number, text, person, fresh: Put(said(int(number), text, person), fresh),
        ids,
        texts,
        people,
        st.booleans(),
    )
    changes = st.one_of(puts, st.builds(Amend, ids, people, texts), st.builds(Drop, ids))

    @FEW
    @given(
        batches=st.lists(
            st.one_of(
                st.lists(changes, max_size=6),
                st.sampled_from(["purge", "erase", "sweep", "channel"]),
            ),
            max_size=8,
        )
    )
    def test_rows_and_index_are_one_after_anything(
        self, archive: Archive, batches: Sequence[list[Change] | str]
    ) -> None:
        emptied(archive)
        write(archive, Drop("1"))
        archive.drop_channel("55")
        kept: dict[str, Entry] = {}
        for batch in batches:
            if isinstance(batch, list):
                write(archive, *batch)
                for change in batch:
                    _expect(kept, change)
            elif batch == "purge":
                archive.expire(NOW + 4)
                kept = {key: one for key, one in kept.items() if one.sent_at >= NOW + 4}
            elif batch == "channel":
                archive.drop_channel("55")
                kept = {}
            else:
                archive.erase_person(ANN) if batch == "erase" else archive.sweep(
                    refusing(lambda user_id: user_id == ANN)
                )
                kept = {key: one for key, one in kept.items() if one.author_id != ANN}
        assert sound(archive)[0] == len(kept)
        found = rows(archive, "SELECT id, text FROM entries")
        clean = {key: one.text.replace("\x00", "").replace("\ud800", "\ufffd") for key, one in kept.items()}
        assert {str(key): text for key, text in found} == clean


def _expect(kept: dict[str, Entry], change: Change) -> None:
    """What a change does to the entries, by their ids; written without a database."""
    if isinstance(change, Drop):
        kept.pop(change.id, None)
    elif isinstance(change, Amend):
        if change.id in kept and kept[change.id].author_id == change.author_id:
            kept[change.id] = replace(kept[change.id], text=change.text)
    else:
        known = kept.get(change.entry.id)
        if known is None or (not change.fresh and known.author_id == change.entry.author_id):
            kept[change.entry.id] = change.entry


class TestWhoSeesWhat:
    def everywhere(self, archive: Archive) -> None:
        write(
            archive,
            Put(said(1, "zebra open")),
            Put(said(2, "zebra thread", channel_id="56", session_key="discord:thread:56")),
            Put(said(3, "zebra closed", channel_id="57", group_id="57", session_key="discord:thread:57")),
            Put(said(4, "zebra other", channel_id="58", group_id="58", session_key="discord:channel:58")),
            Put(in_dm(5, "zebra ann")),
            Put(in_dm(6, "zebra bob", BOB, BOB)),
        )

    def test_only_what_is_named_is_found(self, archive: Archive) -> None:
        self.everywhere(archive)
        for visible, expected in (
            (Visible(), []),
            (GENERAL, ["open", "thread"]),
            (Visible(frozenset({"55", "57"})), ["closed", "open", "thread"]),
            (Visible(frozenset({"58"})), ["other"]),
            (Visible(dm_of=ANN), ["ann"]),
            (Visible(frozenset({ANN})), []),
            (Visible(dm_of="55"), []),
        ):
            wanted = [f"zebra {one}" for one in expected]
            assert sorted(found(archive, "zebra", visible=visible)) == wanted
            held = archive.holding("zebra", visible, limit=9)
            assert sorted(entry.text for entry in held) == wanted

    def test_a_literal_text_is_found_whatever_the_case_of_its_ascii_letters(self, archive: Archive) -> None:
        write(archive, Put(said(1, "Zebra 100% \\ É")))
        for text, count in (("zEBRA 1", 1), ("100%", 1), ("% \\ É", 1), ("100_", 0), ("é", 0), ("%", 1)):
            assert len(archive.holding(text, GENERAL, limit=9)) == count

    def test_a_hostile_id_opens_nothing(self, archive: Archive) -> None:
        for hostile in ('55" OR "@g58', "*", "", "@g55", "55 OR 58", "%", "55') OR ('1'='1", "٥٥", "9" * 40):
            with naming(hostile):
                self.everywhere(archive)
                assert found(archive, "zebra", visible=Visible(frozenset({hostile}), dm_of=hostile)) == []
                assert archive.present([hostile, "58"]) == {"58"}

    @pytest.fixture
    def most_scored(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """How many messages are ranked one by one, here where there are few."""
        monkeypatch.setattr(archives, "MOST_SCORED", 3 * CANDIDATES)
        return archives.MOST_SCORED

    def test_a_common_word_is_looked_for_where_one_may_look(self, archive: Archive, most_scored: int) -> None:
        """What is said everywhere must not fill all places of what may be seen."""
        both = [{"channel_id": one, "group_id": one, "session_key": f"discord:{one}"} for one in ("58", "59")]
        many = most_scored + 50
        write(archive, Put(said(1, "zebra here")))
        write(archive, *[Put(said(number, "zebra there", **both[number % 2])) for number in range(2, many)])
        assert found(archive, "zebra") == ["zebra here"]
        assert len(found(archive, "zebra", visible=Visible(frozenset({"58"})))) == CANDIDATES
        looked = archive.look(["zebra"], Visible(frozenset({"58", "59"})))
        newest = [str(number) for number in reversed(range(many - CANDIDATES, many))]
        assert [one.id for one in looked.entries][:CANDIDATES] == newest

    def test_rare_terms_choose_and_common_ones_fill_up(self, archive: Archive, most_scored: int) -> None:
        crowd = [Put(said(number, f"zebra {number}")) for number in range(1, most_scored + 50)]
        write(archive, *crowd, Put(said(90_000, "a quagga alone")))
        texts = found(archive, "zebra", "quagga")
        assert texts[0] == "a quagga alone"
        assert len(texts) >= CANDIDATES

    def test_those_beside_come_along_and_know_of_each_other(self, archive: Archive) -> None:
        write(
            archive,
            Put(said(10, "before")),
            Put(said(20, "how was the concert")),
            Put(said(30, "they played my song", BOB)),
            Put(said(40, "and what an evening")),
            Put(said(50, "far away")),
            Put(said(25, "elsewhere", session_key="discord:thread:56", channel_id="56")),
        )
        looked = archive.look(["concert"], GENERAL)
        assert {entry.id for entry in looked.entries} == {"10", "20", "30", "40"}
        beside = {key: sorted(others) for key, others in looked.neighbours.items()}
        assert beside == {"10": ["20"], "20": ["10", "30"], "30": ["20", "40"], "40": ["30"]}
        assert (looked.total, looked.frequencies) == (6, {"concert": 1})


class TestBytes:
    """What is erased is in no file any more, however it got there."""

    def full(self, in_file: InFile) -> None:
        for begin in range(0, 600, 100):  # many parts of the index, and pages that are split
            write(
                in_file,
                *[
                    Put(said(number, f"{CANARY} {number} " + "x" * (number % 90), ANN if number % 3 else BOB))
                    if number % 3
                    else Put(said(number, f"other words {number}", BOB))
                    for number in range(begin + 1, begin + 101)
                ],
            )
        write(in_file, *[Amend(str(number), ANN, f"again {CANARY}") for number in range(1, 200, 7)])
        write(in_file, Put(in_dm(900, CANARY)), Put(in_dm(901, CANARY, author=US, by_us=True, to_id=ANN)))
        write(in_file, Put(said(902, f"you like {CANARY}", US, by_us=True, to_id=ANN)))
        write(in_file, *[Drop(str(number)) for number in range(1, 300, 5)])

    @pytest.mark.parametrize("reopened", [False, True], ids=["while it is used", "by another process later"])
    def test_erasing_leaves_no_byte_of_a_person(self, in_file: InFile, reopened: bool) -> None:
        self.full(in_file)
        folder = in_file.path.parent
        assert found(in_file, CANARY.lower())  # a reader is open too
        assert files_with(folder, CANARY) and files_with(folder, ANN)
        if reopened:
            in_file.close()
            in_file = InFile(in_file.path)
        assert in_file.erase_person(ANN) > 300
        assert files_with(folder, CANARY) == []
        assert files_with(folder, ANN) == []
        kept = {f"other words {n}" for n in range(3, 601, 3) if n > 300 or n % 5 != 1}
        assert found(in_file, "word")
        assert set(found(in_file, "word")) <= kept
        in_file.close()
        sound(in_file)

    def test_one_cut_off_behind_its_deleting_is_completed_and_again_is_nothing_more(
        self, in_file: InFile
    ) -> None:
        self.full(in_file)
        in_file.close()
        with closing(sqlite3.connect(in_file.path)) as connection:  # a process that is killed right here
            connection.execute(
                "DELETE FROM entries WHERE author_id = ? OR to_id = ? OR place = ?", (ANN, ANN, f"@d{ANN}")
            )
            connection.commit()
        assert files_with(in_file.path.parent, CANARY)
        in_file.erase_person(ANN)
        assert files_with(in_file.path.parent, CANARY) == []
        before = sound(in_file)
        assert in_file.erase_person(ANN) == 0
        assert sound(in_file) == before

    def test_purging_takes_words_out_of_the_index_too(self, in_file: InFile) -> None:
        write(in_file, Put(said(1, f"old {CANARY}")), Put(said(100, "new words")))
        assert in_file.expire(NOW + 100) == 1
        assert files_with(in_file.path.parent, CANARY) == []
        assert found(in_file, "word") == ["new words"]

    async def test_a_whole_erasing_takes_the_archive_along(self, tmp_path: Path) -> None:
        memory, archive = with_archive(tmp_path)
        try:
            write(archive, Put(said(1, CANARY)), Put(said(2, "marbles", BOB)))
            erased = await memory.erase(f"user-{ANN}")
            assert (erased.left, erased.removed) == ((), 1)
            assert files_with(tmp_path, CANARY) == files_with(tmp_path, ANN) == []
            assert found(archive, "marbl") == ["marbles"]
        finally:
            archive.close()
            memory.close()

    async def test_one_that_is_locked_is_erased_at_the_next_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "BUSY_S", 0.05)
        memory, archive = with_archive(tmp_path)
        write(archive, Put(said(1, CANARY)))
        archive.close()
        with closing(sqlite3.connect(archive.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            (left,) = (await memory.erase(f"user-{ANN}")).left
            assert "archive.sqlite cannot be used: database is locked" in left
        archive.close()
        memory.close()
        for one in with_archive(tmp_path):
            one.close()
        assert files_with(tmp_path, CANARY) == []

    def test_sweeping_removes_what_was_said_until_then(self, in_file: InFile) -> None:
        write(
            in_file,
            Put(said(1, "zebra old")),
            Put(said(2, "zebra answer", US, by_us=True, to_id=ANN)),
            Put(said(3, "zebra bob", BOB)),
            Put(said(9, "zebra new")),
        )
        assert in_file.sweep(Consent(lambda user: NOW + 5 if user == ANN else NEVER)) == 2
        assert sorted(found(in_file, "zebra")) == ["zebra bob", "zebra new"]


class TestFaults:
    @pytest.mark.parametrize("size", [0, 100, 5000])
    def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, size: int
    ) -> None:
        path = tmp_path / "archive.sqlite"
        path.write_bytes(b"no database at all. " * size)
        archive = InFile(path)
        write(archive, Put(said(1, "zebra")))
        assert found(archive, "zebra") == ["zebra"]
        copies = [one.name for one in tmp_path.glob("*.corrupt-*")]
        assert len(copies) == (1 if size else 0)
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == (1 if size else 0)
        archive.close()

    def test_one_that_is_damaged_meanwhile_is_a_fault_to_who_reads_and_then_new(
        self, in_file: InFile, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(in_file, *[Put(said(number, f"zebra {number}")) for number in range(1, 400)])
        in_file.expire(0)
        in_file.close()
        content = bytearray(in_file.path.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        in_file.path.write_bytes(content)
        with pytest.raises(MemoryFault, match="cannot be read"):
            found(in_file, "zebra")
        assert found(in_file, "zebra") == []
        write(in_file, Put(said(1, "zebra again")))
        assert found(in_file, "zebra") == ["zebra again"]
        assert caplog.text.count("is damaged") == 1

    def test_one_of_which_even_the_names_of_its_tables_are_damaged_is_damaged(
        self, in_file: InFile, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(in_file, Put(said(1, "zebra")))
        in_file.close()
        content = in_file.path.read_bytes().replace(b"CREATE TABLE", b"CR\xc8ATE TABLE")
        for act in (lambda: in_file.sweep(UNLIMITED), lambda: in_file.erase_person(ANN)):
            in_file.path.write_bytes(content)
            act()
            in_file.close()
        in_file.path.write_bytes(content)
        with pytest.raises(MemoryFault, match="cannot be read"):
            found(in_file, "zebra")
        write(in_file, Put(said(2, "zebra again")))
        assert found(in_file, "zebra") == ["zebra again"]
        assert caplog.text.count("is damaged") == 3

    def test_damaged_copies_go_with_an_erasing_and_with_age(self, tmp_path: Path) -> None:
        archive = InFile(tmp_path / "archive.sqlite")
        copy = tmp_path / "archive.sqlite.corrupt-20260203-162935"
        for act in (lambda: archive.erase_person(ANN), lambda: archive.expire(2**45)):
            copy.write_text(f"damaged {CANARY}")
            archive.write([Put(said(1, "zebra"))], words=words_of, consent=UNLIMITED)
            act()
            assert not copy.exists()
        copy.write_text("young")
        archive.expire(0)
        assert copy.exists()
        archive.close()

    def test_a_newer_file_is_left_as_it_is(self, in_file: InFile) -> None:
        write(in_file, Put(said(1, "zebra")))
        in_file.close()
        with closing(sqlite3.connect(in_file.path)) as connection:
            connection.execute("PRAGMA user_version = 9")
        before = in_file.path.read_bytes()
        with pytest.raises(NewerSchema):
            write(in_file, Put(said(2, "zebra")))
        with pytest.raises(NewerSchema):
            found(in_file, "zebra")
        with pytest.raises(NewerSchema):
            asyncio.run(from_disk(in_file, erasing(f"user-{ANN}", NOW)))
        assert in_file.path.read_bytes() == before

    def test_a_folder_that_is_none_is_a_fault(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        archive = InFile(tmp_path / "file" / "archive.sqlite")
        with pytest.raises(MemoryFault):
            write(archive, Put(said(1, "zebra")))

    def test_a_full_disk_is_a_fault_and_what_was_there_stays(self, in_file: InFile) -> None:
        write(in_file, Put(said(1, "zebra")))
        connection = in_file.engine._writer.open()  # the limit is a setting of this very connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(MemoryFault, match="full"):
            write(in_file, *[Put(said(number, "zebra " * 900)) for number in range(2, 99)])
        assert found(in_file, "zebra") == ["zebra"]
        write(in_file, Put(said(2, "zebra two")))
        assert len(found(in_file, "zebra")) == 2
