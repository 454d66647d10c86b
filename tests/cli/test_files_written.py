"""Files that the command line writes: nothing is destroyed, no link followed, nobody else reads them."""

import os
import stat
from itertools import product
from pathlib import Path

import pytest

from tests.cli.shell import Shell, typed

WRITERS = {
    "export": ("memory", "export", "123", "--output"),
    "export as Markdown": ("memory", "export", "123", "--format", "markdown", "--output"),
    "a zip of objects": ("memory", "export", "123", "--format", "objects", "--output"),
    "a graph": ("memory", "graph", "123", "--output"),
    "a picture": ("memory", "graph", "123", "--format", "png", "--output"),
    "a picture of usage": ("usage", "--picture"),
    "a backup": ("backup",),
}


def kind(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_mode, status.st_ino


class TestEachFile:
    def test_is_new_and_for_its_owner_alone(self, shell: Shell) -> None:
        os.umask(0)
        try:
            for name, words in WRITERS.items():
                target = shell.folder / name / "file.zip"
                assert typed(shell, *words, str(target)).exit_code == 0, name
                assert stat.S_IMODE(target.stat().st_mode) == 0o600, name
                assert os.listdir(target.parent) == ["file.zip"], name
        finally:
            os.umask(0o022)

    def test_replaces_another_one_only_by_force(self, shell: Shell) -> None:
        target = shell.folder / "file.zip"
        for name, words in WRITERS.items():
            target.write_text("precious")
            target.chmod(0o644)
            result = typed(shell, *words, str(target))
            assert (result.exit_code, result.stdout) == (1, ""), name
            assert result.stderr == (
                f"discoclaw: {target} is there already; name another file, or add --force to replace it\n"
            )
            assert target.read_text() == "precious"
            assert typed(shell, *words, str(target), "--force").exit_code == 0, name
            assert b"precious" not in target.read_bytes(), name
            assert stat.S_IMODE(target.stat().st_mode) == 0o600, name

    @pytest.mark.parametrize("what", ["pipe", "device", "link", "broken link"])
    def test_is_refused_in_place_of_anything_else(self, shell: Shell, what: str) -> None:
        target, precious = shell.folder / "file.zip", shell.folder / "precious"
        precious.write_text("precious")
        if what == "pipe":
            os.mkfifo(target)
        elif what == "device":
            try:
                os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # another /dev/full
            except PermissionError:
                pytest.skip("only root can make a device")
        else:
            target.symlink_to(precious if what == "link" else shell.folder / "nothing")
        before = kind(target)
        for words, force in product(WRITERS.values(), ([], ["--force"])):
            result = typed(shell, *words, str(target), *force)
            assert (result.exit_code, result.stdout) == (1, ""), words
            assert "which is never replaced; name another file" in result.stderr
            assert kind(target) == before and precious.read_text() == "precious", words
            assert not (shell.folder / "nothing").exists(), words


def test_a_pipe_given_as_a_backup_is_refused_at_once(shell: Shell) -> None:
    os.mkfifo(shell.folder / "a.tar.gz")
    result = typed(shell, "restore", str(shell.folder / "a.tar.gz"), "--dry-run")
    assert result.exit_code == 1 and "a.tar.gz is not a regular file" in result.stderr


def test_settings_are_not_written_into_a_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    os.mkfifo(shell.folder / "fifo")
    (shell.folder / ".env").symlink_to("fifo")
    result = typed(shell, "init", "--yes", "--no-check")
    assert result.exit_code == 1 and "is not a regular file, which is never replaced" in result.stderr
    assert stat.S_ISFIFO(os.lstat(shell.folder / "fifo").st_mode)
