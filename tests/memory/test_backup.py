"""Backups: whole, of one moment, and the same in every store, whoever writes or is erased meanwhile."""

import asyncio
import json
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import Refused
from discoclaw.memory.exchange.backup import back_up, read_file
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import POSTGRES, Store, disks
from discoclaw.memory.subjects import inspect
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.archive import Put
from discoclaw.store.port import LEDGERS, NO_LOG, Disk
from tests.memory.archives import archive_at, sound
from tests.memory.archives import texts as archived
from tests.memory.backups import backed_up, members, restored, texts_in
from tests.memory.kit import ANN as WRITER
from tests.memory.kit import (
    NOW,
    Clock,
    Doomed,
    check_picture,
    start_child,
)
from tests.memory.leftovers import ANN, CANARY, Shelves, traces
from tests.memory.test_archive import ANN as TALKER
from tests.memory.test_archive import BOB, said, write
from tests.memory.test_vectors_of_talk import Desk


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Store:
    """The store that a backup is restored to."""
    return str(request.getfixturevalue("database")) if request.param == "postgres" else str(request.param)


class TestABackup:
    @pytest.mark.parametrize(
        ("store", "other"),
        [
            ("files", "files"),
            ("files", "sqlite"),
            ("sqlite", "postgres"),
            ("postgres", "postgres"),
            ("postgres", "files"),
        ],
        indirect=True,
    )
    def test_comes_back_byte_for_byte_in_every_store(
        self, full: Shelves, other: Store, tmp_path: Path
    ) -> None:
        asyncio.run(Choices(full.memory.disk).choose("77", opted_out=True))
        asyncio.run(full.memory.erase("user-9"))
        full.memory.disk.log("usage/2026-02.jsonl").append(b'{"cost": 1}\n', after=NO_LOG)
        beside = [full.data / name for name in ("memory/outbox/outbox.sqlite", "nostr/key")]
        for path in beside:
            path.parent.mkdir(parents=True)
        beside[1].write_text("nsec")
        with closing(sqlite3.connect(beside[0])) as writer:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("CREATE TABLE events AS SELECT 'signed' AS event")
            writer.commit()  # it is in the WAL as long as the writer lives
            done = backed_up(full.data, full.store, tmp_path / "a.tar.gz")
        restored(tmp_path / "a.tar.gz", tmp_path / "new", other)
        before = texts_in(full.memory.disk)
        with disks(other, tmp_path / "new" / "memory") as stores:
            after = texts_in(stores.used)
            found = Choices(stores.used)
            found.load()
        assert found.opted_out("77")
        assert (tmp_path / "new" / "nostr" / "key").read_text() == "nsec"
        with closing(sqlite3.connect(tmp_path / "new" / "memory" / "outbox" / "outbox.sqlite")) as reader:
            assert reader.execute("SELECT event FROM events").fetchall() == [("signed",)]
        alike = full.store == other or (full.store.startswith(POSTGRES) and other.startswith(POSTGRES))
        progress = {
            name for name in before if name.startswith(("cursors/follow-", "cursors/ledgers")) and not alike
        }
        for some in (before, after):
            some.pop("choices.json", None)  # one text here, one for each person there
        assert before.keys() - after.keys() == progress
        assert {name: after[name] for name in before.keys() - progress} == {
            name: text for name, text in before.items() if name not in progress
        }
        assert done.contents.ledgers == len(full.memory.ledgers.by_age())
        unknown = {name.rpartition("/")[2] for name in done.skipped}
        assert all("~" in name or "#" in name for name in unknown)  # what editors leave

    def test_has_a_folder_that_nobody_listed_and_names_one_that_is_not_the_programs(
        self, full: Shelves, tmp_path: Path
    ) -> None:
        for folder in ("novelties", "Notes"):
            full.memory.disk.documents(folder).write("x.json", b"{}")
        made = backed_up(full.data, full.store, tmp_path / "a.tar.gz")
        assert made.contents.has("memory/novelties/x.json")
        assert "memory/Notes/x.json" in made.skipped

    def test_is_closed_to_others_and_replaces_nothing(self, full: Shelves, tmp_path: Path) -> None:
        target = tmp_path / "a.tar.gz"
        backed_up(full.data, full.store, target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        before = target.read_bytes()
        with pytest.raises(Refused, match="is there already"):
            backed_up(full.data, full.store, target)
        assert target.read_bytes() == before
        assert not [path for path in tmp_path.rglob("*.tmp*") if full.data not in path.parents]

    @pytest.mark.every_store
    def test_leaves_out_who_is_erased_meanwhile(self, full: Shelves, tmp_path: Path) -> None:
        disk: Any = Interrupted(full.memory.disk, full.memory)
        back_up(disk, full.data, tmp_path / "a.tar.gz", clock=lambda: NOW)
        shutil.unpack_archive(tmp_path / "a.tar.gz", tmp_path / "unpacked", filter="data")
        assert traces(tmp_path / "unpacked", CANARY) == []
        assert not [name for name in members(tmp_path / "a.tar.gz") if f"ledger/{ANN}" in name]
        assert "memory/tombstones.jsonl" in members(tmp_path / "a.tar.gz")

    def test_waits_for_no_erasing_for_ever(self, full: Shelves, tmp_path: Path) -> None:
        intents = full.memory.disk.documents("erasing")
        intents.write(f"{ANN}.json", json.dumps({"subject": ANN, "at": NOW}).encode())
        with pytest.raises(Refused, match=f"{ANN} is being erased, and that doesn't end"):
            backed_up(full.data, full.store, tmp_path / "a.tar.gz", wait_s=0.01)
        assert list(tmp_path.glob("*.tar.gz")) == list(tmp_path.glob(".*.tmp")) == []


class Interrupted:
    """A store in which a person is erased right before the ledgers are read for the first time."""

    def __init__(self, disk: Disk, memory: Memory) -> None:
        self._disk = disk
        self._memory = memory
        self._done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    @contextmanager
    def frozen(self, beside: Path) -> Iterator[Any]:
        with self._disk.frozen(beside) as frozen:
            yield _Noticed(frozen, self._erase_once)

    def _erase_once(self) -> None:
        if not self._done:
            self._done = True
            asyncio.run(self._memory.erase(ANN))


class _Noticed:
    """A store that tells when its ledgers are about to be read."""

    def __init__(self, disk: Disk, tell: Callable[[], None]) -> None:
        self._disk = disk
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def documents(self, folder: str) -> Any:
        if folder == LEDGERS:
            self._tell()
        return self._disk.documents(folder)


class TestAnArchiveInTables:
    @pytest.fixture
    def file(self, prepared_database: str, tmp_path: Path) -> Path:
        """A backup of a database in which two messages are archived."""
        source = archive_at(prepared_database)
        write(source, Put(said(1, "tea is good")), Put(said(2, "coffee\tis\n\\better ☕", BOB)))
        Desk(source).embed()
        backed_up(tmp_path / "old", prepared_database, tmp_path / "a.tar.gz")
        source.close()
        return tmp_path / "a.tar.gz"

    def test_comes_back_with_its_words_and_vectors_and_goes_on(
        self, file: Path, prepared_database: str, database: str, tmp_path: Path
    ) -> None:
        restored(file, tmp_path / "new", database)
        before, after = archive_at(prepared_database), archive_at(database)
        assert archived(after) == archived(before) == ["tea is good", "coffee\tis\n\\better ☕"]
        assert sound(after) == sound(before)
        assert Desk(after).rows() == Desk(before).rows() != {}
        write(after, Put(said(3, "a third message")))
        sound(after)
        before.close()
        after.close()

    def test_is_never_overwritten(self, file: Path, database: str, tmp_path: Path) -> None:
        target = archive_at(database)
        write(target, Put(said(7, "other talk")))
        with pytest.raises(Refused, match="has an archive already; nothing was written"):
            restored(file, tmp_path / "new", database)
        assert archived(target) == ["other talk"]
        target.close()

    def test_is_left_out_elsewhere_in_words(self, file: Path, tmp_path: Path) -> None:
        done = restored(file, tmp_path / "new", "sqlite")
        assert done.left_out == ("the archive, which is tables of a database",)
        assert not (tmp_path / "new" / "memory" / "archive").exists()

    def test_is_left_out_where_somebody_was_erased_since(
        self, file: Path, database: str, tmp_path: Path
    ) -> None:
        erased = f"user-{TALKER}"
        memory = Memory(disks(database, tmp_path / "other" / "memory"), clock=Clock())
        memory.open()
        asyncio.run(memory.erase(erased))
        memory.close()
        gone: list[str] = []
        done = restored(file, tmp_path / "new", database, lambda _, who: gone.extend(who))
        assert gone == [erased]
        assert done.left_out == ("the archive, because of those who were erased here since",)
        target_archive = archive_at(database)
        assert archived(target_archive) == []
        target_archive.close()


# ---------------------------------------------------------------------- while somebody writes


@pytest.mark.every_store
class TestWhileAProcessWrites:
    ROUNDS = 2

    def test_each_backup_is_sound_and_the_beginning_of_what_there_is_later(
        self, root: Path, store: Store, tmp_path: Path
    ) -> None:
        backups = [tmp_path / f"{number}.tar.gz" for number in range(self.ROUNDS)]
        said: list[list[str]] = []
        with start_child("commit_for_ever", store, root) as writer:
            try:
                assert writer.stdout is not None
                said.append([json.loads(writer.stdout.readline())])
                for path in backups:
                    backed_up(root.parent, store, path)
                    said.append([json.loads(writer.stdout.readline()) for _ in range(5)])
            finally:
                writer.kill()
        with disks(store, root) as stores:
            whole = stores.used.ledgers.log(WRITER).read()
        acknowledged = {one for part in said for one in part}
        assert len(acknowledged) > self.ROUNDS
        sizes = [self.check(path, whole, tmp_path / path.stem) for path in backups]
        assert sizes == sorted(set(sizes))

    def check(self, path: Path, whole: bytes, data: Path) -> int:
        """The length of the ledger in a backup, which is restored and used."""
        contents = read_file(path)
        assert (contents.damaged, contents.ledgers) == ((), 1)
        restored(path, data, "files")
        (lines,) = (data / "memory" / "ledger").iterdir()
        assert whole.startswith(lines.read_bytes())
        memory = Memory(data / "memory", clock=Clock(), max_items=100_000)
        memory.open()
        view = asyncio.run(memory.view(WRITER))
        assert len(view.items) == view.commits  # no durable file that is ahead counts as an edit by hand
        asyncio.run(check_picture(memory))
        memory.close()
        return len(lines.read_bytes())

    def test_what_was_acknowledged_before_a_kill_is_in_it(
        self, root: Path, store: Store, tmp_path: Path
    ) -> None:
        with Doomed("commit_for_ever", store, root) as doomed:
            acknowledged = set(doomed.live_for(0.02))
        backed_up(root.parent, store, tmp_path / "a.tar.gz")
        assert read_file(tmp_path / "a.tar.gz").damaged == ()
        restored(tmp_path / "a.tar.gz", tmp_path / "data", "files")
        held = inspect.held(tmp_path / "data" / "memory", WRITER)
        assert held.damage == ()
        assert acknowledged <= set(held.view.items)
