"""Every provider of models, and models that read little at once: what people rely on holds with all."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (which a bot would import in the middle of a test)
import pytest
from pydantic import SecretStr

from tests.attaching import picture
from tests.contract.embedding import QUIET
from tests.contract.meanwhile import answered, put
from tests.contract.providers import SUMMARY, Provider, served
from tests.contract.test_tools_of_the_model import ALL
from tests.contract.world import Start, World
from tests.servers.chat_api import Behaviour, ChatServer, Received, json_answer, text
from tests.servers.messages_api import Answer, Held, Raw, failure
from tests.servers.messages_api import Received as Asked

LOCAL = "ollama:qwen3:8b"


def calls(world: World) -> list[dict[str, Any]]:
    """The calls of models in the usage log, oldest first."""
    logs = sorted((world.data / "memory" / "usage").glob("*.jsonl"))
    records = [json.loads(line) for path in logs for line in path.read_text().splitlines()]
    return [one for one in records if "for" in one and "nano" in one]


@pytest.fixture(params=["openai", "ollama"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    """A provider elsewhere and one here, with its server; `tests/models` asks each of all adapters."""
    one = served(request.param)
    async with one.server:
        one.server.default = one.answer
        yield one


def only(provider: Provider, address: str = "", **more: Any) -> dict[str, Any]:
    """The settings of a bot that has this provider and no other."""
    return {"base_url": None, **provider.settings(address, **more)}


class TestAProvider:
    async def test_answers_learns_sums_up_remembers_when_told_sees_pictures_and_is_caught_up_on(
        self, start: Start, provider: Provider
    ) -> None:
        async with start(**only(provider, summary_every=1)) as world:
            assert await world.says(world.ann, world.general, "I prefer tabs") == "All right."
            assert world.memories(world.ann) == ["User prefers tabs."]
            assert world.files_with(SUMMARY["summary"]) != []
            await world.says(world.ann, world.general, "remember that I have a cat")
            assert "User has a cat." in world.memories(world.ann)
            await world.says(world.ann, world.general, "look", attachments=[("cat.png", picture())])
            assert ["image"] in [one.files for one in provider.server.requests if one.tools]
            await world.restart(meanwhile=lambda: put(world, world.ann, world.general, "what is new?"))  # type: ignore[arg-type, return-value]
            await world.settle()
            assert [one for one in provider.server.requests if one.prompt.endswith("what is new?")]
            assert world.answer(world.general) == "All right."
            found = calls(world)
            assert {one["for"] for one in found} >= {"answer", "extraction", "summary"}
            assert not [one for one in found if one.get("counted") is False]


def answers(request: Received) -> Behaviour:
    """What a local model says to people and to the loops."""
    if "deprecations" in request.system:
        line = re.search(r"(m\d+) [^\n]*?I prefer tabs", request.prompt)
        said = {"kind": "preference", "text": "User prefers tabs.", "tags": [], "quote": "I prefer tabs"}
        return json_answer({"upserts": [said | {"source": line[1]}] if line else [], "deprecations": []})
    return text("Noted here.")


@pytest.fixture
async def local() -> AsyncIterator[ChatServer]:
    async with ChatServer("ollama") as running:
        running.default = answers
        yield running


def at(local: ChatServer, *others: str, **more: Any) -> dict[str, Any]:
    """The settings of a bot with a local model."""
    servers = dict.fromkeys(("ollama", *others), local.base_url)
    return {"base_url": None, "model_servers": servers, "DISCOCLAW_MODEL": LOCAL, **more}


class TestALocalModel:
    async def test_answers_and_learns_by_one_name_and_counts_as_the_dearest_until_it_has_a_price(
        self, start: Start, local: ChatServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**at(local, summary_enabled=False)) as world:
            assert await world.says(world.ann, world.general, "I prefer tabs") == "Noted here."
            assert world.memories(world.ann) == ["User prefers tabs."]
            assert {one.body["model"] for one in local.requests} == {"qwen3:8b"}
            found = calls(world)
            assert {one["for"]: one["model"] for one in found} == {"answer": LOCAL, "extraction": LOCAL}
            assert {one["nano"] for one in found} == {0}
            claude = {"DISCOCLAW_MODEL": "sonnet", "DISCOCLAW_DURABLE_MODEL": LOCAL}
            local.requests.clear()
            await world.restart(base_url=world.server.base_url, api_key=SecretStr("sk-claude"), **claude)
            assert await world.says(world.bob, world.general, "I prefer tabs too") == "ok"
            assert world.turns()[-1].body["model"] == "claude-sonnet-5-5"
            assert local.requests and "sk-claude" not in str(local.requests[0].headers)
        elsewhere = local.base_url.replace("127.0.0.1", "127.1")
        prices = tmp_path / "prices.toml"
        prices.write_text(f'["{LOCAL}"]\ninput = 1\noutput = 2\n')
        async with start(**at(local, **QUIET) | {"model_servers": {"ollama": elsewhere}}) as world:
            await world.says(world.ann, world.general, "hello")
            (dear,) = calls(world)
            assert dear["priced"] is False and dear["nano"] > 0
            assert f"there is no price for the model {LOCAL}" in caplog.text
            await world.restart(prices=prices)
            await world.says(world.ann, world.general, "hello")
            (_, priced) = calls(world)
            assert priced.get("priced") is not False and 0 < priced["nano"] < dear["nano"]
            await world.restart(model_servers={"ollama": local.base_url, "vllm": local.base_url})
            await world.restart(owners=frozenset({str(world.ann.id)}))
            done = await world.ann.user.slash("model", name="openrouter:vendor/model")
            assert done.response.content.startswith(
                "OPENROUTER_API_KEY is not set, and the model openrouter:"
            )
            await world.says(world.ann, world.general, "hello")
            assert local.requests[-1].body["model"] == "qwen3:8b"
            done = await world.ann.user.slash("model", name="vllm:Qwen/Qwen3-8B")
            assert done.response.content == "vllm:Qwen/Qwen3-8B now answers everywhere."
            assert await world.says(world.ann, world.general, "hello") == "Noted here."
            assert local.requests[-1].body["model"] == "Qwen/Qwen3-8B"


LONG = {"history_budget": 40_000, "context_history": 40, "context_tokens": None}
TOKEN = re.compile(r"\w{1,4}|[^\w\s]")
READS = 8192
USUAL, LOOPS, OTHER = "claude-sonnet-5-5", "claude-haiku-5-5", "llama-test"
MEMORIES = tuple(f"User likes kettle number {number} for its colour and handle" for number in range(12))


def tokens(received: Asked) -> int:
    """The tokens of a request and of the answer that it asks for, counted as a strict server may."""
    tools = json.dumps(received.body.get("tools", []))
    said = json.dumps(received.body["messages"], ensure_ascii=False)
    return len(TOKEN.findall(f"{received.system}{tools}{said}")) + int(received.body["max_tokens"])


def small(world: World, *names: str, reads: int = READS, listed: int = 0) -> None:
    """Make the server one that says how much it reads at once, and refuses more."""
    data = {"data": [{"id": one, "max_model_len": listed or reads} for one in names or (USUAL, LOOPS)]}
    world.server.models = Raw(json.dumps(data).encode(), 200, {"content-type": "application/json"})
    usual = world.brain

    def answer(received: Asked) -> Answer | Raw | Held:
        if (count := tokens(received)) > reads:
            return failure(400, "invalid_request_error", f"prompt is too long: {count} tokens > {reads}")
        return usual(received)

    world.server.default = answer


async def talked(world: World) -> Asked:
    """Ann has memories, and has talked for long, when she asks for her kettles. Returns the last turn."""
    await world.remember(world.ann, *MEMORIES)
    for number in range(16):
        await world.bob.send(world.general, f"{number}: {'it goes on and on, as talk does. ' * 24}")
    await world.says(world.ann, world.general, "which kettles do I like, and in which colour?")
    return world.turns()[-1]


class TestASmallWindow:
    async def test_has_the_rules_the_memories_and_the_message_and_a_preview_says_what_it_lacks(
        self, start: Start
    ) -> None:
        async with start(**QUIET, **LONG) as world:
            small(world)
            await world.restart()
            sent = await talked(world)
            assert world.answer(world.general) == "ok"
            assert tokens(sent) <= READS and sent.room == READS // 4
            assert "What always holds:" in sent.system and "## Memory" in sent.system
            assert all(one in sent.prompt for one in MEMORIES)
            assert sent.prompt.endswith("which kettles do I like, and in which colour?")
            assert "15: it goes on" in sent.prompt and "[bob]: 0: it goes on" not in sent.prompt
            memory = [f"memory_{one}" for one in ("search", "store", "update", "forget")]
            assert list(sent.tools) == [*memory, "remind"]
            asked = await world.ann.send_dm(f"!memory preview <#{world.general.id}> which kettles?")
            await world.settle()
            shown = [message for message in world.ann_dm.history() if message.id > asked.id]
            files = [(await file.read()).decode() for one in shown for file in one.attachments]
            said = "\n".join([*(one.content for one in shown), *files])
            assert "**Left out because the model here reads 8,192 tokens at once**" in said
            assert re.search(r"^- \d+ older messages", said.partition("Left out because")[2], re.M)

    @pytest.mark.parametrize("how", ["the setting says otherwise", "the server is mistaken"])
    async def test_is_not_kept_to_where(self, start: Start, how: str) -> None:
        wrong = {"context_tokens": 128_000} if how == "the setting says otherwise" else {}
        async with start(**{**QUIET, **LONG, **wrong}) as world:
            if wrong:
                small(world)
            else:
                small(world, reads=1_000_000, listed=1)
            await world.restart()
            sent = await talked(world)
            assert "[bob]: 0: it goes on" in sent.prompt and [*sent.tools] == ALL
            assert (world.answer(world.general) == "ok") == (not wrong)
            assert sent.room > 1_000

    async def test_is_that_of_a_channels_model_and_asked_for_while_people_are_answered(
        self, start: Start
    ) -> None:
        async with start(**QUIET, **LONG) as world:
            small(world, OTHER)
            world.server.listing = Held(held := asyncio.Event())
            await world.restart()
            live = json.dumps({f"group:{world.general.id}": {"model": OTHER}})
            (world.data / "memory" / "config.json").write_text(live)
            assert await answered(world, world.ann, world.dev, "hello") == "ok"
            assert world.turns()[-1].room == 4096
            await answered(world, world.ann, world.general, "hello")  # only now anybody asks about that model
            assert world.turns()[-1].room == 4096
            held.set()
            await world.settle()
            sent = await talked(world)
            assert sent.body["model"] == OTHER and tokens(sent) <= READS and sent.room == READS // 4
            assert world.answer(world.general) == "ok"

    async def test_is_kept_to_while_learning_from_everything_that_was_said(self, start: Start) -> None:
        async with start(**LONG) as world:
            small(world)
            await world.restart()
            texts = [f"User has cup {number} {'of clay ' * 12}" for number in range(150)]
            items = [{"kind": "fact", "text": one, "sensitivity": "normal"} for one in texts]
            content = json.dumps({"format": "discoclaw-memory", "version": 1, "memories": items}).encode()
            attached = [("memories.json", content)]
            await world.says(world.ann, world.general, "!memory import", attachments=attached)
            for number in range(6):
                words = f"I have {number} cups. {'And so it goes, on and on. ' * 65}"
                await world.says(world.ann, world.general, words)
            learned = world.background("upserts")
            assert len(learned) >= 2 and max(map(tokens, world.background())) <= READS
            for number in range(6):
                assert any(f"I have {number} cups" in one.prompt for one in learned)
