"""Writes that are killed before their rename: the next start and every erasing remove what they left."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, Clock, kill_while_writing, remember, start_child

pytestmark = pytest.mark.every_store
PLACES = (
    *("memory/choices.json", "memory/erasing/user-1.json", "memory/ledger/user-1.jsonl"),
    *("memory/profiles/1.json", "memory/groups/7.json", "memory/tools/user-1.jsonl", "memory/cursors/c.json"),
    *("elsewhere/durable/1.json", "elsewhere/rolling/discord:dm:1.json"),
    *("cache/views/user-1.json", "cache/responses/user-1.json", "nostr/key", "nostr/state.json"),
)


@pytest.fixture
def memory(tmp_path: Path, store: Store) -> Iterator[Memory]:
    elsewhere = tmp_path / "elsewhere"
    kept = disks(store, tmp_path / "memory", durable=elsewhere / "durable", rolling=elsewhere / "rolling")
    made = Memory(kept, clock=Clock())
    yield made
    made.close()


def temporary_files(data: Path) -> list[Path]:
    return sorted(path for path in data.rglob(".*.tmp") if path.is_file())


class TestWhatAKilledWriteLeft:
    def test_is_gone_after_the_next_start(self, tmp_path: Path, memory: Memory) -> None:
        kill_while_writing(*(tmp_path / place for place in PLACES))
        left = temporary_files(tmp_path)
        assert [path.read_text() for path in left] == ["zebra"] * len(PLACES)
        memory.open()
        assert temporary_files(tmp_path) == []

    def test_is_gone_with_the_files_that_a_half_made_database_has_beside_it(
        self, tmp_path: Path, memory: Memory
    ) -> None:
        (tmp_path / "memory").mkdir()
        for end in ("", "-wal", "-shm", "-journal"):
            (tmp_path / "memory" / f".memory.sqlite.0a1b2c3d.tmp{end}").write_text("zebra")
        memory.open()
        assert list((tmp_path / "memory").glob(".memory.sqlite.*")) == []

    async def test_is_gone_after_an_erasing(self, tmp_path: Path, memory: Memory) -> None:
        memory.open()
        await memory.change(ANN, "why", remember("I like tea"))
        kill_while_writing(*(tmp_path / place for place in PLACES))
        assert len(temporary_files(tmp_path)) == len(PLACES)
        assert (await memory.erase(ANN)).left == ()
        assert temporary_files(tmp_path) == []


class TestWhatStays:
    def test_the_file_of_a_process_that_is_still_writing(self, tmp_path: Path, memory: Memory) -> None:
        target = tmp_path / "memory" / "config.json"
        with start_child("pause_before_rename", target) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            assert json.loads(child.stdout.readline()) == "before the rename"
            memory.open()
            assert len(temporary_files(tmp_path)) == 1
            child.stdin.write("go on\n")
            child.stdin.close()
            assert child.wait() == 0
        assert target.read_text() == "zebra"
        assert temporary_files(tmp_path) == []

    def test_files_of_others(self, tmp_path: Path, memory: Memory) -> None:
        folder = tmp_path / "elsewhere" / "durable"
        folder.mkdir(parents=True)
        names = ("notes.tmp", ".notes.tmp", "1.json.0a1b2c3d.tmp", ".1.json.0a1b2c3d.tmp~", ".0a1b2c3d.tmp")
        for name in names:
            (folder / name).write_text("mine")
        target = tmp_path / "mine"
        target.write_text("mine")
        os.symlink(target, folder / ".2.json.0a1b2c3d.tmp")
        memory.open()
        assert sorted(os.listdir(folder)) == sorted([*names, ".2.json.0a1b2c3d.tmp"])
