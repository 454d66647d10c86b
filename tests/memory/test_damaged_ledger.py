"""A ledger with a damaged line beside a durable file that is whole: both stay as they are, and are used."""

from collections.abc import Callable

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, asides, durable_of, heard, ledger_of, remember, texts

Restart = Callable[[], Memory]


class TestADamagedLedger:
    """The file may then know more than what is left of the ledger; neither is written."""

    @pytest.fixture
    async def damaged(self, memory: Memory, restart: Restart) -> Memory:
        for text in ("likes tea", "works at Acme"):
            await memory.change(ANN, "why", remember(text))
        await memory.change(
            ANN, "why", lambda draft: draft.upsert("fact", "is ill", heard(private=True), marked="private")
        )
        lines = ledger_of(memory).read_bytes().splitlines(keepends=True)
        ledger_of(memory).write_bytes(lines[0] + b"{}\n" + lines[2])
        return restart()

    async def test_the_items_of_the_file_are_used_and_no_change_is_taken(self, damaged: Memory) -> None:
        ledger, durable = ledger_of(damaged).read_bytes(), durable_of(damaged).read_bytes()
        await damaged.view(ANN)
        with pytest.raises(MemoryFault, match=r"^user-123\.jsonl, line 2: .*nothing is recorded until"):
            await damaged.change(ANN, "why", remember("likes coffee"))
        assert await texts(damaged) == ["likes tea", "works at Acme", "is ill"]
        assert (await damaged.view(ANN)).active()[-1].facets.sensitivity == "private"
        assert (ledger_of(damaged).read_bytes(), durable_of(damaged).read_bytes()) == (ledger, durable)
        assert len(list(damaged.durable_folder.iterdir())) == 1

    async def test_an_edit_of_the_file_is_seen_and_kept(self, damaged: Memory) -> None:
        content = durable_of(damaged).read_bytes().replace(b"likes tea", b"likes mate")
        durable_of(damaged).write_bytes(content)
        assert (await texts(damaged))[0] == "likes mate"
        assert durable_of(damaged).read_bytes() == content

    async def test_without_a_file_what_is_left_of_the_ledger_holds(self, damaged: Memory) -> None:
        durable_of(damaged).unlink()
        assert await texts(damaged) == ["likes tea", "is ill"]
        assert not durable_of(damaged).exists()

    @pytest.mark.parametrize("whole_lines", [0, 1])
    async def test_a_corrupt_file_besides_is_kept_aside_once(self, damaged: Memory, whole_lines: int) -> None:
        lines = ledger_of(damaged).read_bytes().splitlines(keepends=True)
        ledger_of(damaged).write_bytes(b"".join(lines[:whole_lines]) + b"{}\n")
        durable_of(damaged).write_bytes(b"{ oops")
        for _ in range(5):
            await damaged.view(ANN)
        assert len(asides(durable_of(damaged), "corrupt")) == 1
