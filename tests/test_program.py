"""What a terminal calls this program: as its reader would have to type it."""

import os
import sys
from pathlib import Path

import pytest

from discoclaw.program import program


class TestTheProgram:
    """What people type to run it again."""

    def installed(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = folder / "bin" / "discoclaw"
        path.parent.mkdir(parents=True)
        path.touch(0o755)
        monkeypatch.setattr(sys, "argv", [str(path), "demo"])
        return path

    def test_is_its_name_where_the_shell_finds_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(self.installed(tmp_path, monkeypatch).parent))
        assert program() == "discoclaw"

    def test_is_its_path_from_here_where_it_is_below_this_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.installed(tmp_path / ".venv", monkeypatch)
        monkeypatch.setenv("PATH", "")
        monkeypatch.chdir(tmp_path)
        assert program() == os.path.join(".venv", "bin", "discoclaw")

    def test_is_its_whole_path_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.installed(tmp_path / "there", monkeypatch)
        monkeypatch.setenv("PATH", "")
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert program() == str(path)

    def test_is_the_module_if_that_was_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["/somewhere/discoclaw/__main__.py", "demo"])
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        assert program() == "python3 -m discoclaw"
