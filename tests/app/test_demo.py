"""Which model the demo talks with."""

from pathlib import Path

import pytest

from discoclaw.demo.show import demo_settings

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
    assert demo_settings().model_provider == provider
