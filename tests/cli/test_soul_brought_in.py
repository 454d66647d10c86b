"""A personality that was carried from one folder to another still goes with the person it is about."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.subject import BOT
from discoclaw.memory.subjects.store import Memory
from discoclaw.soul.soul import SoulBlock, keep
from tests.cli.shell import Shell
from tests.memory.kit import Clock

HUMAN_ID = "123"
BOATS = "Dana builds boats."


@pytest.fixture
def hatched(tmp_path: Path) -> Shell:
    """A folder in which an owner gave the bot a personality."""
    shell = Shell(tmp_path / "before")

    def wish(draft: Draft) -> None:
        soul = SoulBlock(identity="You are Vellum.", user=BOATS, philosophy="No lies.")
        keep(draft, soul, HUMAN_ID, Origin("stated"))

    async def live() -> None:
        memory = Memory(shell.memory_folder, clock=Clock())
        memory.open()
        try:
            await memory.change(BOT, "hatched", wish, by="hatching", human=HUMAN_ID)
        finally:
            memory.close()

    asyncio.run(live())
    return shell


class TestErasingThePerson:
    @pytest.mark.parametrize("how", [(), ("--history",)], ids="".join)
    def test_takes_a_personality_along_that_was_imported(
        self, hatched: Shell, tmp_path: Path, how: tuple[str, ...]
    ) -> None:
        file, here = tmp_path / "soul.json", Shell(tmp_path / "after")
        hatched.says("export", BOT, *how, "--output", str(file))
        here.says("import", str(file), "--as", BOT)
        assert BOATS in here.says("show", BOT)
        assert "so it is erased too" in here.says("erase", HUMAN_ID, "--yes")
        for path in here.folder.rglob("*"):
            assert not path.is_file() or BOATS.encode() not in path.read_bytes()
