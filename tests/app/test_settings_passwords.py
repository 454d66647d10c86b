"""A password in a setting that is wrong stands in no error of the start."""

import pytest

from discoclaw import settings
from discoclaw.core.errors import SettingsError

ADDRESSES = (
    *("DISCOCLAW_TRANSCRIBE_URL", "EMBEDDING_BASE_URL", "DISCORD_API_BASE", "ANTHROPIC_BASE_URL"),
    *("DISCORD_GATEWAY", "NOSTR_RELAYS", "DISCOCLAW_PAGE", "DISCOCLAW_METRICS", "DISCOCLAW_STORE"),
)
WRONG = (
    *("ftp://ann:hunter2@host/x", "http:/ann:hunter2@host", "ann:hunter2@host", "ws:://hunter2@host"),
    *("x://ann:hun/ter2@host", "x://ann:hun ter2@host", "x://ann:hun@ter2@host", "x://host?key=hunter2"),
)


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("name", ADDRESSES)
def test_is_left_out(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(SettingsError) as refused:
        settings.load()
    assert name in str(refused.value) and "ter2" not in str(refused.value)


@pytest.mark.parametrize("name", ADDRESSES[:4])
@pytest.mark.parametrize("text", ["http://ann:hun/ter2@host", "http://ann:hun#ter2@host", "http://:hunter2@"])
def test_that_is_not_encoded_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(
        SettingsError, match="special characters in a password are percent-encoded"
    ) as refused:
        settings.load()
    assert "ter2" not in str(refused.value)


def test_what_is_no_address_is_shown_as_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_ALLOW_USER_IDS", "<@123>")
    with pytest.raises(SettingsError, match="DISCORD_ALLOW_USER_IDS=<@123>: '<@123>' is not a Discord id"):
        settings.load()
