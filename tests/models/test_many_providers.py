"""Models of several providers at once: each name goes to its server, and each key to its own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from discoclaw.core.errors import ModelError, ModelNotSetUp, SettingsError
from discoclaw.core.model import ModelRequest, TextDelta, UserTurn
from discoclaw.core.ports import Model
from discoclaw.models.config import Access, ModelConfig
from discoclaw.models.providers import open_models
from tests.servers import chat_api, messages_api
from tests.servers.chat_api import ChatServer
from tests.servers.messages_api import MessagesServer


@dataclass
class Servers:
    """One of Anthropic's API, and two of OpenAI's."""

    claude: MessagesServer
    ollama: ChatServer
    vllm: ChatServer

    def config(self, chat: str, summary: str = "haiku", facts: str = "haiku") -> ModelConfig:
        return ModelConfig(
            "anthropic",
            chat=chat,
            summary=summary,
            facts=facts,
            key="sk-ant-mine",
            base_url=self.claude.base_url,
            others={
                "ollama": Access(base_url=self.ollama.base_url),
                "vllm": Access("of-vllm", self.vllm.base_url),
            },
        )


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        claude = await stack.enter_async_context(MessagesServer())
        ollama = await stack.enter_async_context(ChatServer("ollama"))
        vllm = await stack.enter_async_context(ChatServer("vllm"))
        claude.default = lambda _: messages_api.text("claude")
        ollama.default = lambda _: chat_api.text("ollama")
        vllm.default = lambda _: chat_api.text("vllm")
        yield Servers(claude, ollama, vllm)


async def said(model: Model) -> str:
    events = model.stream(ModelRequest((), (UserTurn("hi"),)))
    return "".join([one.text async for one in events if isinstance(one, TextDelta)])


async def test_each_model_is_asked_at_its_own_server_by_its_own_name(servers: Servers) -> None:
    models = open_models(servers.config("ollama:qwen3:8b", "haiku", "qwen3:4b"))
    answers = [await said(one) for one in (models.chat, models.summary, models.facts)]
    assert answers == ["ollama", "claude", "claude"]
    assert await said(models.named("vllm:Qwen/Qwen3-8B")) == "vllm"
    assert await said(models.named("sonnet")) == await said(models.named("anthropic:opus")) == "claude"
    await models.close()
    assert [one.body["model"] for one in servers.ollama.requests] == ["qwen3:8b"]
    assert [one.body["model"] for one in servers.vllm.requests] == ["Qwen/Qwen3-8B"]
    asked = [one.body["model"] for one in servers.claude.requests]
    assert asked == ["claude-haiku-5-5", "qwen3:4b", "claude-sonnet-5-5", "claude-opus-5-5"]


async def test_a_key_goes_to_its_own_server_only(servers: Servers) -> None:
    models = open_models(servers.config("ollama:qwen3:8b"))
    for model in (models.chat, models.summary, models.named("vllm:any")):
        await said(model)
    await models.close()
    assert "sk-ant-mine" in str(servers.claude.requests[0].headers)
    assert not any(key in str(servers.ollama.requests[0].headers) for key in ("sk-ant-mine", "of-vllm"))
    assert servers.vllm.requests[0].headers["authorization"] == "Bearer of-vllm"


async def test_a_provider_has_one_pool_and_all_are_closed_together(servers: Servers) -> None:
    models = open_models(servers.config("ollama:qwen3:8b", "ollama:qwen3:4b", "ollama:qwen3:8b"))
    late = models.named("vllm:any")
    for model in (models.chat, models.summary, models.facts, models.named("ollama:other"), late):
        await said(model)
    assert len(servers.ollama.connections) == 1
    await models.close()
    for model in (models.chat, late):
        with pytest.raises(ModelError, match="closed"):
            await said(model)
    assert (len(servers.ollama.requests), len(servers.vllm.requests)) == (4, 1)


async def test_a_model_is_counted_under_its_whole_name_and_anthropics_under_the_old_one(
    servers: Servers,
) -> None:
    models = open_models(servers.config("ollama:qwen3:8b"))
    names = ["haiku", "anthropic:haiku", "ollama:qwen3:8b", "Ollama: qwen3:8b", "qwen3:8b", "gemini:x"]
    assert [models.id_of(name) for name in names] == [
        *["claude-haiku-5-5"] * 2,
        *["ollama:qwen3:8b"] * 2,
        "qwen3:8b",
        "gemini:x",
    ]
    assert models.room_of("gemini:x", "answer", 100) == 100
    await models.close()


class TestAProviderThatIsNotSetUp:
    async def test_stops_the_start_with_a_line_that_names_its_setting(self, servers: Servers) -> None:
        with pytest.raises(SettingsError) as raised:
            open_models(servers.config("openrouter:vendor/model"))
        assert str(raised.value) == (
            "OPENROUTER_API_KEY is not set, and the model openrouter:vendor/model needs it; set it, or "
            "DISCOCLAW_MODEL_SERVERS for a server that needs none, or name another model"
        )

    async def test_costs_only_whoever_asks_for_its_model_when_that_is_named_later(
        self, servers: Servers
    ) -> None:
        models = open_models(servers.config("haiku"))
        with pytest.raises(ModelNotSetUp, match="OPENAI_API_KEY is not set") as raised:
            models.named("openai:gpt-5-mini")
        assert "`/model`" in raised.value.user_message
        assert await said(models.chat) == "claude"
        await models.close()

    def test_written_wrong_is_asked_about_beside_the_missing_key(self) -> None:
        with pytest.raises(SettingsError, match=r"; or is opnai:gpt-5 one of the provider openai\?$"):
            open_models(ModelConfig("anthropic", "opnai:gpt-5", "haiku", "haiku"))
        with pytest.raises(SettingsError, match=r"which needs neither$"):
            open_models(ModelConfig("anthropic", "sonnet", "haiku", "haiku"))

    async def test_needs_no_key_where_it_runs_on_this_machine(self) -> None:
        for name in ("ollama", "lmstudio", "llamacpp", "vllm"):
            await open_models(ModelConfig(name, "a", "a", "a")).close()
