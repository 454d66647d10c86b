"""The whole bot with models of other providers than Anthropic: who answers, who learns, what is counted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from discoclaw.app.usage import Usage
from discoclaw.core.errors import SettingsError
from discoclaw.core.usage import Call
from discoclaw.settings import Settings, load, names
from discoclaw.settings_secrets import hiding
from tests.app.conftest import Start, World
from tests.servers import messages_api
from tests.servers.chat_api import Behaviour, ChatServer, Received, json_answer, text
from tests.servers.messages_api import MessagesServer

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
LOCAL = "ollama:qwen3:8b"


def answers(request: Received) -> Behaviour:
    """What a local model says to people and to the loops."""
    if "deprecations" in request.system:
        upserts = [{"kind": "preference", "text": "User prefers tabs.", "tags": []}]
        return json_answer({"upserts": upserts, "deprecations": []})
    return text("Noted here.")


@pytest.fixture
async def local() -> AsyncIterator[ChatServer]:
    async with ChatServer("ollama") as running:
        running.default = answers
        yield running


def at(local: ChatServer, *others: str, **more: Any) -> dict[str, Any]:
    servers = dict.fromkeys(("ollama", *others), local.base_url)
    return {"model_servers": servers, "DISCOCLAW_MODEL": LOCAL, **more}


async def calls(world: World) -> list[Call]:
    await world.settle()
    return await world.app.feature(Usage).accounts.calls(0)


async def test_one_name_is_all_that_a_local_model_needs_to_answer_and_to_learn(
    start: Start, local: ChatServer
) -> None:
    async with start(**at(local, summary_enabled=False)) as world:
        await world.ann.send(world.general, "I prefer tabs")
        assert world.answer(world.general) == "Noted here."
        found = await calls(world)
    assert {one.body["model"] for one in local.requests} == {"qwen3:8b"}
    assert {one.purpose: one.model for one in found} == dict.fromkeys(("answer", "extraction"), LOCAL)
    assert all((one.nano, one.priced, one.counted) == (0, True, True) for one in found)


async def test_a_local_model_may_learn_while_claude_answers(
    start: Start, server: MessagesServer, local: ChatServer
) -> None:
    server.default = lambda _: messages_api.text("Claude here.")
    more: dict[str, Any] = {"api_key": SecretStr("sk"), "base_url": server.base_url}
    changes = at(local, **more, DISCOCLAW_DURABLE_MODEL=LOCAL, summary_enabled=False)
    async with start(**changes | {"DISCOCLAW_MODEL": "sonnet"}) as world:
        await world.ann.send(world.general, "I prefer tabs")
        assert world.answer(world.general) == "Claude here."
        found = await calls(world)
    assert {one.purpose: one.model for one in found} == {"answer": "claude-sonnet-5-5", "extraction": LOCAL}
    assert "tools" in server.requests[0].body and "sk" not in str(local.requests[0].headers)


async def test_a_model_without_a_price_counts_as_the_dearest_and_is_said_to(
    start: Start, local: ChatServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = local.base_url.replace("127.0.0.1", "127.1")  # a name with a dot, as servers elsewhere have
    prices = tmp_path / "prices.toml"
    prices.write_text(f'["{LOCAL}"]\ninput = 1\noutput = 2\n')
    async with start(**at(local, **QUIET) | {"model_servers": {"ollama": elsewhere}}) as world:
        await world.ann.send(world.general, "hello")
        (found,) = await calls(world)
        assert (found.model, found.priced) == (LOCAL, False) and found.nano > 0
        assert f"there is no price for the model {LOCAL}" in caplog.text
        await world.restart(prices=prices)
        await world.ann.send(world.general, "hello")
        (found,) = [one for one in await calls(world) if one.priced]
    assert found.nano == found.usage.prompt_tokens * 1000 + found.usage.output_tokens * 2000 > 0


class TestTheModelCommand:
    async def test_takes_a_model_of_another_provider(self, start: Start, local: ChatServer) -> None:
        async with start(**at(local, "vllm", **QUIET)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            done = await world.ann.user.slash("model", name="vllm:Qwen/Qwen3-8B")
            assert done.response.content == "vllm:Qwen/Qwen3-8B now answers everywhere."
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "Noted here."
            found = await calls(world)
        assert local.requests[-1].body["model"] == "Qwen/Qwen3-8B"
        assert (found[-1].model, found[-1].nano, found[-1].priced) == ("vllm:Qwen/Qwen3-8B", 0, True)

    async def test_says_which_setting_is_missing_and_keeps_the_model(
        self, start: Start, local: ChatServer
    ) -> None:
        async with start(**at(local, **QUIET)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            done = await world.ann.user.slash("model", name="openrouter:vendor/model")
            assert done.response.content.startswith(
                "OPENROUTER_API_KEY is not set, and the model openrouter:"
            )
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "Noted here."
        assert [one.body["model"] for one in local.requests] == ["qwen3:8b"]


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "small"),
        [
            ({}, "haiku"),
            ({"DISCOCLAW_MODEL": LOCAL}, LOCAL),
            ({"DISCOCLAW_MODEL": LOCAL, "ANTHROPIC_API_KEY": "k"}, "haiku"),
            ({"DISCOCLAW_MODEL_PROVIDER": "openai", "DISCOCLAW_MODEL": "gpt-5"}, "gpt-5"),
            ({"DISCOCLAW_MODEL_PROVIDER": "offline"}, "haiku"),
        ],
    )
    def test_the_small_models_are_those_that_are_there(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, str], small: str
    ) -> None:
        settings = read(monkeypatch, tmp_path, given)
        assert (settings.summary_model, settings.durable_model) == (small, small)

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"DISCOCLAW_MODEL_PROVIDER": "openai"}, "DISCOCLAW_MODEL=sonnet: must name a model of openai"),
            (
                {"DISCOCLAW_MODEL_SERVERS": "claude=http://x"},
                "each part must be provider=address, with one of ollama, lmstudio,",
            ),
            (
                {"DISCOCLAW_MODEL_SERVERS": "ollama=http://ann:secret@box:99999"},
                "DISCOCLAW_MODEL_SERVERS=box:99999: not an address",
            ),
        ],
    )
    def test_what_is_wrong_is_one_line_without_a_password(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, str], says: str
    ) -> None:
        with pytest.raises(SettingsError) as raised:
            read(monkeypatch, tmp_path, given)
        assert says in str(raised.value) and "secret" not in str(raised.value)

    def test_a_password_in_an_address_is_hidden_in_other_texts(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        given = {"DISCOCLAW_MODEL_SERVERS": "vllm=http://ann:pass-word@box/v1"}
        assert hiding(read(monkeypatch, tmp_path, given))("it said pass-word") == "it said [secret]"


def read(monkeypatch: pytest.MonkeyPatch, folder: Path, given: dict[str, str]) -> Settings:
    """The settings of an environment, in an empty folder."""
    monkeypatch.chdir(folder)
    for name in names():
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return load()
