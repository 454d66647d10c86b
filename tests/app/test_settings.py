"""Settings: every variable is documented, and a wrong one stops the start with one line."""

import re
from pathlib import Path

import pytest

from discoclaw import settings
from discoclaw.core.errors import SettingsError
from discoclaw.settings import Settings
from discoclaw.settings_reference import Setting, described, example, page

EXAMPLE = Path(__file__).parents[2] / ".env.example"
REFERENCE = EXAMPLE.parent / "docs/admins/settings.md"


class TestTheWrittenLists:
    def test_are_up_to_date(self) -> None:
        assert EXAMPLE.read_text(encoding="utf-8") == example(), "run `make docs`"
        assert REFERENCE.read_text(encoding="utf-8") == page(), "run `make docs`"

    def test_have_every_variable_once(self) -> None:
        assert sorted(one.name for one in described()) == sorted(settings.names())

    def test_show_the_defaults(self, tmp_path: Path) -> None:
        shown = re.sub(r"^#(?=[A-Z])", "", example(), flags=re.M)
        (tmp_path / "example").write_text(shown, encoding="utf-8")
        assert Settings(_env_file=tmp_path / "example") == Settings(_env_file=None)

    def test_have_everything_about_a_setting(self) -> None:
        meaning = "Says <much>, as ANTHROPIC_API_KEY does."
        one = Setting("DISCOCLAW_MAX_TOKENS", "Model", "4096", meaning, "a whole number from 64 to 32,000")
        assert page([one]).endswith(
            "## Model\n\n### `DISCOCLAW_MAX_TOKENS`\n\nSays &lt;much>, as `ANTHROPIC_API_KEY` does.\n\n"
            "Default: `4096`. Allowed: 64 to 32,000.\n"
        )
        assert example([one]).endswith(f"\n# --- Model ---\n# {meaning}\n#DISCOCLAW_MAX_TOKENS=4096\n")


class TestWrongValues:
    @pytest.mark.parametrize(
        ("name", "value", "says"),
        [
            ("DISCOCLAW_RESPOND_MODE", "loud", "must be 'all', 'mention', 'owner' or 'none'"),
            ("DISCOCLAW_CONTEXT_HISTORY", "0", "must be a whole number from 1 to 200"),
            ("DISCOCLAW_CONTEXT_HISTORY", "201", "must be a whole number from 1 to 200"),
            ("DISCOCLAW_MAX_TOKENS", "many", "must be a whole number from 64 to 32,000"),
            ("NOSTR_TIMEOUT_S", "0", "must be a number above 0, up to 600"),
            ("DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE", "2", "must be a number from 0 to 1"),
            ("NOSTR_RELAYS", "embedded, wss://x", "can't be combined with other relays"),
            ("NOSTR_RELAYS", "http://x", "'http://x' is not a relay; use wss://…, ws://… or 'embedded'"),
            ("DISCOCLAW_SUMMARY_ENABLED", "maybe", "must be true or false"),
            ("DISCORD_ALLOW_USER_IDS", "12, ann", "'ann' is not a Discord id"),
            ("DISCOCLAW_MEMORY_CHANNEL_ID", "#general", "is not a Discord id"),
            ("DISCOCLAW_MEMORY_CHANNEL_ID", "12 34", "must be a single Discord id"),
            ("ANTHROPIC_BASE_URL", "localhost:11434", "http:// or https://"),
            ("DISCORD_GATEWAY", "http://x", "ws:// or wss://"),
            ("DISCOCLAW_DM_PRIVACY", "secret", "'strict', 'balanced' or 'open'"),
            ("DISCOCLAW_PAGE", "0.0.0.0:8765", "must be an address that other machines can't reach"),
            ("DISCOCLAW_PAGE", "[::]:8765", "use an SSH tunnel or a reverse proxy"),
            ("DISCOCLAW_PAGE", "192.168.1.7:8765", "because nothing is encrypted there"),
            ("DISCOCLAW_PAGE", "bot.example.org:8765", "must be an address that other machines can't reach"),
            ("DISCOCLAW_PAGE", "127.0.0.1", "must be an address and a port, for example 127.0.0.1:9464"),
            ("DISCOCLAW_LOG_LEVEL", "loud", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        ],
    )
    def test_are_named_with_what_is_allowed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, says: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv(name, value)
        with pytest.raises(SettingsError) as error:
            settings.load()
        (line,) = str(error.value).splitlines()
        assert line.startswith(f"{name}={value}: ")
        assert says in line

    def test_a_secret_is_never_shown(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DISCORD_TOKEN", "a-very-secret-token")
        assert "a-very-secret-token" not in repr(settings.load())

    def test_a_secret_that_is_wrong_is_not_shown_either(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DISCOCLAW_PAGE_TOKEN", "guess-me")
        with pytest.raises(SettingsError, match=r"DISCOCLAW_PAGE_TOKEN=…: must have at least 16 characters"):
            settings.load()

    @pytest.mark.parametrize(
        ("value", "address"),
        [
            ("localhost:1", "127.0.0.1:1"),
            ("127.1.2.3:80", "127.1.2.3:80"),
            ("[::1]:8765", "[::1]:8765"),
            (" ", "None"),
        ],
    )
    def test_are_none_on_this_machine(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, address: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DISCOCLAW_PAGE", value)
        assert str(settings.load().page) == address

    def test_a_slip_of_the_keys_is_pointed_out(self) -> None:
        assert settings.unknown({"DISCOCLAW_RESPONSE_MODE": "all", "HOME": "/", "DISCORD_TOKEN": "x"}) == [
            "DISCOCLAW_RESPONSE_MODE is not a setting of DiscoClaw, so it is ignored; "
            "did you mean DISCOCLAW_RESPOND_MODE?"
        ]


class TestOtherVariables:
    def test_of_the_surroundings_are_not_ours(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("MODEL=other\nTOKEN=other\n")
        monkeypatch.chdir(tmp_path)
        for name in ("MODEL", "BASE_URL", "OWNERS", "API_KEY", "LOG_LEVEL", "DATA_DIR", "TOKEN", "model"):
            monkeypatch.setenv(name, "http://elsewhere")
        assert settings.load() == Settings(_env_file=None)

    def test_that_are_empty_are_unset(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        for name in settings.names():
            monkeypatch.setenv(name, "")
        assert settings.load() == Settings(_env_file=None)

    def test_a_slip_in_the_file_is_pointed_out_too(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / ".env").write_text("DISCOCLAW_MODLE=haiku\n")
        monkeypatch.chdir(tmp_path)
        assert settings.unknown() == [
            "DISCOCLAW_MODLE is not a setting of DiscoClaw, so it is ignored; did you mean DISCOCLAW_MODEL?"
        ]


class TestLists:
    def test_ids_are_divided_by_commas_and_spaces(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DISCORD_ALLOW_USER_IDS", "1, 2 3,,4")
        assert settings.load().allow_users == {"1", "2", "3", "4"}

    def test_owners_may_always_talk(self) -> None:
        assert Settings(_env_file=None, owners=frozenset({"7"})).allowlist.person("7")
