"""Exports that are killed right before they take their place, and imports: the next one clears up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import REPOSITORY, Shell

PROGRAM = """
import os, signal, sys
action, target = sys.argv[1:3]
def look(event, args):
    if event in ("os.rename", "os.link") and str(args[1]) == target:
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        print("before the rename", flush=True)
        sys.stdin.readline()
sys.addaudithook(look)
sys.argv[1:] = ["memory", *sys.argv[3:]]
from discoclaw.cli.main import main
main()
"""
"""The command line, which stops where a target is about to appear."""

WAYS = {
    "one person as a file": ("export", "123"),
    "one person as a folder": ("export", "123", "--format", "objects"),
    "everybody": ("export", "--all"),
}


def begun(shell: Shell, action: str, target: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, action, str(target), *words]
    environment = {**os.environ, **shell.settings, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=shell.folder
    )


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".tmp"))


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
class TestTheSamePlaceAgain:
    def test_has_the_export_and_nothing_that_a_killed_one_left(
        self, shell: Shell, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        target = tmp_path / "out" / "memories"
        with begun(shell, "die", target, *words, "--output", str(target)) as process:
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert len(left_in(target.parent)) == 1
        others = (".memories.tmp", ".other.0a1b2c3d.tmp", ".memories.notes.tmp")
        for name in others:
            (target.parent / name).mkdir()
        shell.says(*words, "--output", str(target))
        assert left_in(target.parent) == sorted(others)
        assert target.exists()

    def test_leaves_alone_what_is_still_being_written(
        self, shell: Shell, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        target = tmp_path / "out" / "memories"
        with begun(shell, "wait", target, *words, "--output", str(target)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "before the rename\n"
            (being_written,) = left_in(target.parent)
            shell.says(*words, "--output", str(target))
            assert left_in(target.parent) == [being_written]
            process.communicate("go on\n", timeout=60)
        assert left_in(target.parent) == []


def test_what_a_killed_import_had_unpacked_is_removed_by_the_next_start(shell: Shell, tmp_path: Path) -> None:
    whole, other = tmp_path / "whole.tar.gz", Shell(tmp_path / "other")
    shell.says("export", "--all", "--output", str(whole))
    other.folder.mkdir()
    first = other.memory_folder / "version.json"
    with begun(other, "die", first, "import", str(whole)) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    (left,) = left_in(other.folder / "data")
    assert (other.folder / "data" / left / "memory" / "ledger" / "user-123.jsonl").exists()
    other.says("erase", "5", "--yes")
    assert left_in(other.folder / "data") == []
