"""The whole bot with models that think unless told otherwise, as Anthropic's do: that cuts nothing off."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from discoclaw.core import titles
from discoclaw.models.anthropic import provider as providers
from discoclaw.models.anthropic.known import ALIASES, MODELS
from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from tests.app.conftest import Start
from tests.servers import messages_api as api
from tests.servers.messages_api import Answer, Behaviour, MessagesServer, Received

LEARNED = {
    "upserts": [
        {
            "id": None,
            "kind": "preference",
            "text": "User likes tea.",
            "tags": ["tea"],
            "source": "m1",
            "quote": "I like tea",
        }
    ],
    "deprecations": [],
}
SUMMARY = {"summary": "They talk about tea.", "themes": [], "decisions": []}
SIGNED = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}


Open = Callable[..., AbstractAsyncContextManager[AnthropicModel]]


@pytest.fixture
def at_anthropic(server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> Open:
    """A model at Anthropic's own address, which is the server's here."""
    monkeypatch.setattr(providers, "ANTHROPIC_URL", server.base_url)

    @asynccontextmanager
    async def begin(name: str = "haiku") -> AsyncIterator[AnthropicModel]:
        provider = AnthropicProvider(api_key="sk-ant-of-this-test", connect_timeout_s=1)
        yield provider.model(name, total_timeout_s=10)
        await provider.close()

    return begin


def kind(received: Received) -> str:
    """What a request asks for."""
    if "tools" in received.body:
        return "answer"
    return "summary" if titles.PREVIOUS_SUMMARY in received.prompt else "extraction"


def working(received: Received) -> Behaviour:
    """A model that does what it is asked."""
    wanted = kind(received)
    if wanted == "extraction":
        return api.json_answer(LEARNED)
    return api.json_answer(SUMMARY) if wanted == "summary" else api.text("Noted.")


async def asked(start: Start, server: MessagesServer, model: AnthropicModel) -> dict[str, dict[str, Any]]:
    """The body of one request of each kind."""
    server.default = working
    async with start(model, summary_every=1) as world:
        await world.ann.send(world.general, "I like tea.")
        await world.settle()
    return {kind(one): one.body for one in server.requests}


class TestACallAtAnthropic:
    @pytest.mark.parametrize("alias", ALIASES)
    async def test_has_the_effort_and_the_room_of_its_purpose(
        self, start: Start, server: MessagesServer, at_anthropic: Open, alias: str
    ) -> None:
        async with at_anthropic(alias) as model:
            bodies = await asked(start, server, model)
        efforts = {name: body["output_config"]["effort"] for name, body in bodies.items()}
        assert efforts == {"answer": "medium", "extraction": "low", "summary": "low"}
        assert bodies["answer"]["max_tokens"] == 4_096 + 16_000
        assert bodies["extraction"]["max_tokens"] == 8_192 + 8_000
        assert bodies["summary"]["max_tokens"] >= 2_048 + 8_000
        assert "format" not in bodies["answer"]["output_config"]
        for name in ("extraction", "summary"):
            assert bodies[name]["output_config"]["format"]["type"] == "json_schema"
            assert "JSON schema" not in str(bodies[name]["system"])
        forbidden = {"thinking", "temperature", "top_p", "top_k", "tool_choice"}
        assert not any(forbidden & body.keys() for body in bodies.values())

    @pytest.mark.parametrize("name", ["claude-haiku-4-5", "claude-haiku-4-5-20251001"])
    async def test_of_a_model_that_does_not_think_has_no_room_for_it(
        self, start: Start, server: MessagesServer, at_anthropic: Open, name: str
    ) -> None:
        async with at_anthropic(name) as model:
            bodies = await asked(start, server, model)
        assert bodies["answer"]["max_tokens"] == 4_096
        assert "output_config" not in bodies["answer"]
        assert bodies["extraction"]["max_tokens"] == 8_192
        assert bodies["extraction"]["output_config"].keys() == {"format"}

    async def test_of_an_unknown_model_has_nothing_that_it_may_reject(
        self, start: Start, server: MessagesServer, at_anthropic: Open
    ) -> None:
        async with at_anthropic("claude-tomorrow-7") as model:
            bodies = await asked(start, server, model)
        assert not any("output_config" in body for body in bodies.values())
        assert (bodies["answer"]["max_tokens"], bodies["extraction"]["max_tokens"]) == (4_096, 8_192)
        assert "JSON schema" in str(bodies["extraction"]["system"])

    @pytest.mark.parametrize("name", MODELS)
    async def test_never_has_an_effort_that_the_model_does_not_know(
        self, start: Start, server: MessagesServer, at_anthropic: Open, name: str
    ) -> None:
        async with at_anthropic(name) as model:
            bodies = await asked(start, server, model)
        efforts = {body.get("output_config", {}).get("effort") for body in bodies.values()}
        assert efforts - {None} <= set(MODELS[name].efforts)


class TestACallOfAnotherServer:
    async def test_has_neither_effort_nor_room_for_thinking(
        self, start: Start, server: MessagesServer
    ) -> None:
        provider = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1)
        bodies = await asked(start, server, provider.model("haiku"))
        await provider.close()
        assert "output_config" not in bodies["answer"]
        assert bodies["extraction"]["output_config"].keys() == {"format"}
        assert (bodies["answer"]["max_tokens"], bodies["extraction"]["max_tokens"]) == (4_096, 8_192)


class TestTheRoomForThinking:
    async def test_is_not_for_a_longer_answer(
        self, start: Start, server: MessagesServer, at_anthropic: Open
    ) -> None:
        server.script(api.text(*["tea and cake " * 10] * 12))
        async with (
            at_anthropic() as model,
            start(model, extraction_enabled=False, summary_enabled=False, max_tokens=100) as world,
        ):
            await world.ann.send(world.general, "tell me a story")
            said = world.answer(world.general)
        told, _, note = said.partition("\n\n")
        assert 500 <= len(told) <= 650 and note.startswith("*(My answer reached its length limit")


class TestWhatIsLearned:
    @pytest.mark.parametrize(
        "first",
        [
            pytest.param(api.text('{"upserts": [{"te', stop_reason="max_tokens"), id="cut off"),
            pytest.param(api.tool_use(thought="Tea!", stop_reason="max_tokens"), id="cut off in a thought"),
            pytest.param(api.tool_use(thought="Tea!", stop_reason="end_turn"), id="only thought"),
            pytest.param(api.text("They like tea."), id="prose"),
            pytest.param(api.text('{"upserts": 7}'), id="another shape"),
        ],
    )
    async def test_is_not_lost_with_the_first_answer(
        self, start: Start, server: MessagesServer, at_anthropic: Open, first: Answer
    ) -> None:
        server.script(api.text("Noted."), first, api.json_answer(LEARNED))
        async with at_anthropic() as model, start(model, summary_enabled=False) as world:
            await world.ann.send(world.general, "I like tea.")
            await world.settle()
            assert "User likes tea." in world.durable(world.ann).read_text()
        assert len(server.requests) == 3


class TestThoughtsInAToolLoop:
    @staticmethod
    def thoughts(received: Received) -> list[dict[str, Any]]:
        said = [one for one in received.body["messages"] if one["role"] == "assistant"]
        return [block for one in said for block in one["content"] if block["type"] == "thinking"]

    @staticmethod
    def searching(rounds: int) -> Callable[[Received], Answer]:
        done = iter(range(1000))

        def answer(received: Received) -> Answer:
            number = next(done)
            if number >= rounds:
                return api.text("That was long.")
            call = (f"t{number}", "memory_search", {"query": f"tea {number}"})
            return api.tool_use(call, thought="Let me see.")

        return answer

    async def test_go_back_as_they_came_until_the_transcript_is_shortened(
        self, start: Start, server: MessagesServer, at_anthropic: Open
    ) -> None:
        server.default = self.searching(26)
        quiet = {"extraction_enabled": False, "summary_enabled": False}
        async with at_anthropic() as model, start(model, **quiet) as world:
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "That was long."
        messages = [len(one.body["messages"]) for one in server.requests]
        shortened = next(n for n, count in enumerate(messages) if n and count < messages[n - 1])
        assert shortened == 25
        for number, received in enumerate(server.requests[:shortened]):
            assert self.thoughts(received) == [SIGNED] * number
        assert self.thoughts(server.requests[shortened]) == []
        assert '"tool_use"' in json.dumps(server.requests[shortened].body)
        # What it thinks from then on rests on the shortened transcript, and goes back again.
        assert self.thoughts(server.requests[shortened + 1]) == [SIGNED]
