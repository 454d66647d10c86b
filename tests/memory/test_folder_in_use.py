"""One process a folder: a second one is told so, and a killed one leaves no lock behind."""

from pathlib import Path

import pytest

from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import Clock, start_child


class TestOneProcessAFolder:
    def test_a_second_process_is_refused_until_the_first_is_killed(self, root: Path) -> None:
        second = Memory(root, clock=Clock())
        with start_child("hold", root) as first:
            assert first.stdout is not None
            assert "held" in first.stdout.readline()
            try:
                with pytest.raises(FolderInUse) as refusal:
                    second.open()
            finally:
                first.kill()
        assert str(refusal.value) == (
            f"{root} is in use by process {first.pid} (since 16:29Z); "
            "stop that one, or set another DISCOCLAW_DATA_DIR"
        )
        second.open()
        second.close()

    def test_a_second_memory_in_the_same_process_is_refused_too(self, memory: Memory, root: Path) -> None:
        with pytest.raises(FolderInUse):
            Memory(root, clock=Clock()).open()

    def test_closing_gives_the_folder_back(self, root: Path) -> None:
        for _ in range(2):
            memory = Memory(root, clock=Clock())
            memory.open()
            memory.close()

    def test_closing_what_was_never_open_is_no_error(self, root: Path) -> None:
        Memory(root, clock=Clock()).close()

    def test_a_root_that_can_not_be_a_folder_is_a_fault(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(MemoryFault, match="cannot be used"):
            Memory(tmp_path / "file" / "memory", clock=Clock()).open()
