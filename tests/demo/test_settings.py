"""What the demo is started with: the model and the port."""

import socket
from pathlib import Path

import pytest

from discoclaw.core.errors import SettingsError
from discoclaw.demo.show import demo_settings, show

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


async def test_a_port_that_another_program_has_is_named_and_nothing_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = demo_settings(owner="1").memory_dir / "durable" / "1.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            SettingsError, match=f"--port=127.0.0.1:{port}: can't listen there: another program"
        ):
            await show(channel="general", port=port, fresh=True, say=print)
    assert kept.read_text() == "{}"
