"""Backups and restores that are killed or meet a full disk leave the old state, or the new one."""

import asyncio
import shutil
from pathlib import Path

import pytest

from discoclaw.memory.exchange.backup import read_file
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects.store import Memory
from tests.memory.backup_child import full
from tests.memory.backups import backed_up, restored
from tests.memory.kills import Forge, chosen
from tests.memory.kit import ANN as WRITER
from tests.memory.kit import Clock, fingerprint, remember, texts, told_by


def scene(folder: Path, store: Store) -> None:
    """A data folder with one memory, a backup of another one, and files to be kept."""
    for name, text in (("new", "User likes tea"), ("data", "User likes coffee")):
        memory = Memory(disks(store, folder / name / "memory"), clock=Clock())
        memory.open()
        asyncio.run(memory.change(WRITER, "why", remember(text)))
        memory.close()
    backed_up(folder / "new", store, folder / "new.tar.gz")
    shutil.rmtree(folder / "new")


def remembered(data: Path, store: Store) -> list[str]:
    """What the next start finds."""
    memory = Memory(disks(store, data / "memory"), clock=Clock())
    memory.open()
    found = asyncio.run(texts(memory, WRITER))
    memory.close()
    return found


@pytest.mark.own_store
class TestKilledInTheMiddle:
    @pytest.mark.parametrize("what", ["backup", "restore"])
    def test_leaves_the_old_state_or_the_new_one_and_a_second_try_works(
        self, what: str, store: Store, tmp_path: Path
    ) -> None:
        scene(tmp_path / "template", store)
        with Forge("tests.memory.backup_child") as forge:
            shutil.copytree(tmp_path / "template", tmp_path / "0")
            kinds = forge.kinds(what, store, tmp_path / "0")
            outcomes = set()
            for step in chosen(kinds):
                folder = tmp_path / str(step)
                shutil.copytree(tmp_path / "template", folder)
                lived = forge.lived(step, what, store, folder)
                assert lived == (step > len(kinds))
                outcomes.add(self.check(what, folder, store))
        assert outcomes == ({True, False} if what == "backup" else {"User likes tea", "User likes coffee"})

    def check(self, what: str, folder: Path, store: Store) -> object:
        if what == "backup":
            if there := (folder / "made.tar.gz").exists():
                assert read_file(folder / "made.tar.gz").ledgers == 1
            backed_up(folder / "data", store, folder / "again.tar.gz")
            assert [path.name for path in folder.iterdir() if path.name.endswith(".tmp")] == []
            assert remembered(folder / "data", store) == ["User likes coffee"]
            return there
        (found,) = remembered(folder / "data", store)
        assert not (folder / "data" / ".restore").exists()
        restored(folder / "new.tar.gz", folder / "data", store)
        assert remembered(folder / "data", store) == ["User likes tea"]
        return found


@pytest.mark.own_store
class TestAFullDisk:
    @pytest.mark.parametrize("room", [10, 600])
    def test_leaves_nothing_of_a_backup_and_one_line(self, room: int, store: Store, tmp_path: Path) -> None:
        scene(tmp_path, store)
        before = fingerprint(tmp_path)
        told = self.run("backup", store, tmp_path, room)
        assert told.startswith(f"no backup was written to {tmp_path}/made.tar.gz: ")
        assert told.endswith("; nothing is left of it")
        assert fingerprint(tmp_path) == before

    @pytest.mark.parametrize("room", [10, 600])
    def test_leaves_everything_as_it_was_before_a_restore(
        self, room: int, store: Store, tmp_path: Path
    ) -> None:
        scene(tmp_path, store)
        assert "can't be unpacked: File too large" in self.run("restore", store, tmp_path, room)
        assert remembered(tmp_path / "data", store) == ["User likes coffee"]
        assert not (tmp_path / "data" / ".restore").exists()

    def run(self, what: str, store: Store, folder: Path, room: int) -> str:
        """The fault where no file can grow beyond `room` bytes."""
        return str(told_by(full, what, store, folder, room))
