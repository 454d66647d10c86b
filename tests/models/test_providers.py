"""Which provider the settings ask for, and what it needs."""

from pathlib import Path

import pytest

from discoclaw.app.models import config_of
from discoclaw.core.errors import ModelKeyRejected, ModelNotFound, SettingsError
from discoclaw.core.model import PROVIDERS, SERVERS, ModelRequest, UserTurn
from discoclaw.core.redact import PLAIN
from discoclaw.models.anthropic import AnthropicModel
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import open_models
from discoclaw.settings import Settings
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer
from tests.tables import each_row


@each_row("name", [*PROVIDERS])
def test_the_settings_offer_every_provider_with_its_key_and_address(name: str) -> None:
    provider = PROVIDERS[name]
    given = {"DISCOCLAW_MODEL_PROVIDER": name, "DISCOCLAW_MODEL": "m"}
    address = "http://127.0.0.1:9/v1"
    if provider.address is not None:
        given[provider.moved] = f"{name}={address}" if provider.moved == SERVERS else address
    if provider.key:
        given[provider.key] = "sk-mine"
    config = config_of(Settings(**{"_env_file": None, **given}))
    assert (config.provider, config.key) == (name, "sk-mine" if provider.key else None)
    assert config.base_url == (address if provider.address is not None else None)


def test_the_documents_table_has_each_server_with_its_settings() -> None:
    page = (Path(__file__).parents[2] / "docs/admins/settings.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    found = {name.strip("`"): (server, key, address) for server, name, key, address in rows[2:]}
    assert set(found) == set(PROVIDERS) - {"offline"}
    for name, provider in PROVIDERS.items():
        if name != "offline":
            server, key, address = found[name]
            assert server.startswith(provider.title) and key.strip("`") == (provider.key or "none")
            assert address.startswith(f"`{provider.address}`")
            assert provider.moved == SERVERS or provider.moved in address


def test_a_config_does_not_show_its_key() -> None:
    assert "sk-secret" not in repr(ModelConfig("anthropic", key="sk-secret"))


class TestOpening:
    async def test_only_what_the_loops_get_is_redacted(self) -> None:
        models = open_models(ModelConfig("anthropic", key="k"))
        redacting = models.redacting(PLAIN)
        assert redacting.chat is models.chat
        assert not isinstance(redacting.summary, AnthropicModel)
        assert not isinstance(redacting.facts, AnthropicModel)
        await redacting.close()

    @each_row(
        ("config", "says"),
        [
            (
                ModelConfig("cohere"),
                "DISCOCLAW_MODEL_PROVIDER=cohere: unknown provider; use anthropic, openai, .* or offline",
            ),
            (ModelConfig("anthropic"), "ANTHROPIC_API_KEY is not set; set it, or ANTHROPIC_BASE_URL"),
            (ModelConfig("anthropic", base_url="http://[::1"), r"ANTHROPIC_BASE_URL=…: not an"),
        ],
    )
    def test_what_is_missing_is_said_with_the_way_out(self, config: ModelConfig, says: str) -> None:
        with pytest.raises(SettingsError, match=says):
            open_models(config)


class TestWhatPeopleRead:
    @each_row(
        ("status", "kind", "names"),
        [
            (401, ModelKeyRejected, ["ANTHROPIC_API_KEY"]),
            (404, ModelNotFound, ["DISCOCLAW_MODEL", "ANTHROPIC_BASE_URL"]),
        ],
    )
    async def test_names_the_settings_of_the_provider_that_failed(
        self,
        server: MessagesServer,
        model: AnthropicModel,
        status: int,
        kind: type[ModelKeyRejected | ModelNotFound],
        names: list[str],
    ) -> None:
        server.script(api.failure(status, "some_error", "no"))
        with pytest.raises(kind) as caught:
            async for _ in model.stream(ModelRequest((), (UserTurn("hi"),))):
                pass
        assert all(name in caught.value.user_message for name in names)
        assert not any(name in kind.user_message for name in names)
