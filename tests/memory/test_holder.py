"""Who has the data folder is said to whoever finds it in use; what is said never decides anything."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.memory.folder import ANOTHER, is_in, locked, who
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import NOW, Clock, start_child
from tests.tables import naming

DAY_MS = 86_400_000


def note_of(root: Path, **changes: object) -> Path:
    """A note as somebody else left it."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / ".holder"
    body = {"pid": os.getpid(), "host": os.uname().nodename, "since": NOW, **changes}
    path.write_text(json.dumps(body))
    return path


class TestInUse:
    def test_the_process_that_has_it_is_named_until_it_is_killed(self, root: Path) -> None:
        with start_child("hold", root) as first:
            assert first.stdout is not None
            assert "held" in first.stdout.readline()
            try:
                with pytest.raises(FolderInUse) as refusal:
                    Memory(root, clock=Clock()).open()
            finally:
                first.kill()
        assert str(refusal.value) == (
            f"{root} is in use by process {first.pid} (since 16:29Z); "
            "stop that one, or set another DISCOCLAW_DATA_DIR"
        )
        assert (root / ".holder").exists(), "what a killed process left stops nobody"
        memory = Memory(root, clock=Clock())
        memory.open()
        assert json.loads((root / ".holder").read_bytes())["pid"] == os.getpid()
        memory.close()

    def test_it_goes_with_the_lock_and_only_with_ours(self, memory: Memory, root: Path) -> None:
        other = Memory(root, clock=Clock())
        with pytest.raises(FolderInUse):
            other.open()
        other.close()  # what was never open
        assert (root / ".holder").exists()
        memory.close()
        assert not (root / ".holder").exists()
        other.open()
        other.close()

    def test_a_root_that_can_not_be_a_folder_is_a_fault(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(MemoryFault, match="cannot be used"):
            Memory(tmp_path / "file" / "memory", clock=Clock()).open()


class TestTheListOfLocks:
    LOCKS = (
        "1: FLOCK  ADVISORY  WRITE 4242 00:1f:77 0 EOF\n2: POSIX  ADVISORY  READ 9 fe:00:2247349 128 128\n"
    )

    def test_names_a_file_by_device_or_process(self) -> None:
        for minor, inode, pid, held in (
            (0x1F, 77, None, True),
            (0x2A, 77, 4242, True),  # btrfs names a device of its own in `stat`
            (0x2A, 77, 4243, False),
            (0x2A, 77, None, False),
            (0x1F, 7, 4242, False),
        ):
            with naming(minor, inode, pid, held):
                assert is_in(self.LOCKS, os.makedev(0, minor), inode, pid) is held

    @pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who has a lock")
    def test_has_the_folder_while_it_is_open(self, memory: Memory, root: Path) -> None:
        assert locked(root) is True
        memory.close()
        assert locked(root) is False


class TestWhatIsSaid:
    def test_since_when_with_the_day_if_it_is_not_today(self, root: Path) -> None:
        note_of(root)
        assert who(root, NOW + 60_000) == f"process {os.getpid()} (since 16:29Z)"
        assert who(root, NOW + DAY_MS) == f"process {os.getpid()} (since 2026-02-03 16:29Z)"

    def test_on_which_machine_if_it_is_another_one(self, root: Path) -> None:
        note_of(root, pid=1, host="far\naway")
        assert who(root, NOW) == "process 1 on far away (since 16:29Z)"

    def test_a_dead_process_is_not_named(self, root: Path) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as gone:
            gone.wait()
        note_of(root, pid=gone.pid)
        assert who(root, NOW) == ANOTHER

    def test_a_note_that_makes_no_sense_or_can_not_be_read_is_none(self, root: Path) -> None:
        assert who(root, NOW) == ANOTHER
        for wrong in (
            {"pid": 0},
            {"pid": -1},
            {"pid": True},
            {"pid": "1"},
            {"since": -1},
            {"since": None},
            {"host": 7},
            *(b"", b"[]", b"{}", b"\xff", b"[" * 100_000),
        ):
            with naming(wrong):
                note = note_of(root, **(wrong if isinstance(wrong, dict) else {}))
                if isinstance(wrong, bytes):
                    note.write_bytes(wrong)
                assert who(root, NOW) == ANOTHER
