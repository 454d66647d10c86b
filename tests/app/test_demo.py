"""What the demo is started with: the model, the ports, and what its introduction calls this program."""

import os
import socket
import sys
from pathlib import Path

import pytest

from discoclaw.core.errors import SettingsError
from discoclaw.demo.introduction import program
from discoclaw.demo.show import demo_settings, show
from discoclaw.demo.world import PAGES

LOCAL = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:11434"}


@pytest.mark.parametrize(
    ("environment", "provider"),
    [
        ({}, "offline"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        (LOCAL, "anthropic"),
        ({**LOCAL, "DISCOCLAW_MODEL_PROVIDER": "offline"}, "offline"),
    ],
)
def test_without_a_key_or_an_address_the_demo_is_offline(
    environment: dict[str, str], provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DISCOCLAW_MODEL_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert demo_settings(owner="1").model_provider == provider


def test_who_tries_the_demo_is_an_owner_beside_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCOCLAW_OWNER_IDS", "7")
    assert demo_settings(owner="1").owners == {"1", "7"}


async def test_a_port_that_another_program_has_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first, last = taken.getsockname()[1] - PAGES + 1, taken.getsockname()[1]
        with pytest.raises(SettingsError, match=r"can't use port \d+: .*; try --port 0") as told:
            await show(channel="general", port=first, fresh=False, say=print)
        named = int(str(told.value).split("port ")[1].split(":")[0])
        assert first <= named <= last  # another program may have one of those before it, too
        with pytest.raises(SettingsError, match=f"can't use port {last}: "):
            await show(channel="general", port=last, fresh=False, say=print)


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
