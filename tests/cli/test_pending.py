"""What waits for a person's yes, on the command line: counted and logged, exported and imported as it is."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Shell
from tests.memory.kit import ANN, NOW, Clock

TEA = "User likes tea."
ASKS = Origin("inferred", source=Source("discord", "7", "90"), said_at=NOW + 10**9, needs_yes=True)


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """The same folder, where Ann wants to be asked whether she likes tea."""

    async def propose() -> None:
        memory = Memory(shell.memory_folder, clock=(clock := Clock()))
        memory.open()
        try:
            clock.forward(minutes=60)
            await memory.change(ANN, "learned from talk", _tea, by="extraction")
        finally:
            memory.close()

    asyncio.run(propose())
    return shell


def _tea(draft: Draft) -> None:
    draft.upsert("fact", TEA, ASKS)


class TestTheCommandLine:
    def test_counts_and_logs_it_and_shows_it_nowhere_else(self, asked: Shell) -> None:
        assert "to answer  1 pending" in asked.says("stats", "123")
        assert asked.json("stats", "123")["pending"] == 1
        assert f"waits for a yes: “{TEA}”" in asked.says("log", "123")
        assert asked.run("verify").exit_code == 0
        for verb in ("show", "view"):
            assert TEA not in asked.says(verb, "123")
        asked.says("export", "123", "--output", str(path := asked.folder / "plain.json"))
        assert TEA not in path.read_text()

    def test_takes_it_to_another_folder_still_waiting(self, asked: Shell, tmp_path: Path) -> None:
        path = tmp_path / "whole.json"
        asked.says("export", "123", "--history", "--output", str(path))
        there = Shell(tmp_path / "there")
        there.folder.mkdir()
        there.says("import", str(path))
        assert there.json("stats", "123")["pending"] == 1
        assert TEA not in there.says("show", "123")
        there.says("import", str(path))
        assert there.json("stats", "123")["pending"] == 1
