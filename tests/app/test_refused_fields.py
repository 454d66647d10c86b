"""The whole bot with gateways that refuse fields of a request: people are answered, and it learns."""

import json
from collections.abc import Mapping

import pytest

from discoclaw.core import titles
from tests.app.conftest import Start, World
from tests.citing import cited
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, MessagesServer, Received
from tests.servers.scripted import Raw

IS_LOOP = "exactly one JSON object"


def brain(received: Received) -> Behaviour:
    """A model that answers everybody, learns what Ann drinks, and sums up."""
    if IS_LOOP not in received.system:
        return api.text("Cheers!")
    if titles.NEW_MESSAGES in received.prompt:
        return api.json_answer({"summary": "Ann talks about tea.", "themes": [], "decisions": []})
    items = [{"kind": "fact", "text": "User drinks tea."}]
    return api.json_answer(cited({"upserts": items, "deprecations": []}, received.prompt))


def fastapi(field: str) -> Raw:
    fault = {"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}
    return api.raw(json.dumps({"detail": [fault]}).encode(), status=422, content_type="application/json")


def litellm(field: str) -> Raw:
    said = (
        f"litellm.UnsupportedParamsError: ollama does not support parameters: ['{field}'], for model=qwen3. "
        "To drop these, set `litellm.drop_params=True`"
    )
    error = {"message": said, "type": "None", "param": "None", "code": "400"}
    return api.raw(json.dumps({"error": error}).encode(), status=400, content_type="application/json")


def serde(where: str, field: str, known: str) -> Raw:
    said = (
        f"Failed to deserialize the JSON body into the target type: {where}unknown field `{field}`, {known}"
    )
    return api.raw(f"{said} at line 1 column 310".encode(), status=422, content_type="text/plain")


TELLING = {
    "pydantic's": {
        "cache_control": api.failure(
            400, "invalid_request_error", "tools.11.cache_control: Extra inputs are not permitted"
        ),
        "output_config": api.failure(
            400, "invalid_request_error", "output_config: Extra inputs are not permitted"
        ),
    },
    "serde's": {
        "cache_control": serde("system[0]: ", "cache_control", "expected `type` or `text`"),
        "output_config": serde(
            "",
            "output_config",
            "expected one of `model`, `messages`, `system`, `tools`, `tool_choice`, `temperature`",
        ),
    },
    "FastAPI's": {"cache_control": fastapi("cache_control"), "output_config": fastapi("output_config")},
    "LiteLLM's": {"cache_control": litellm("cache_control"), "output_config": litellm("output_config")},
}
SILENT = api.raw(b"Bad Request", status=400, content_type="text/plain")


async def say(world: World, server: MessagesServer) -> int:
    """Ann says something, is answered and learned from. Returns how many requests that took."""
    before = len(server.requests)
    await world.ann.send(world.general, "I drink tea.")
    await world.settle()
    assert world.answer(world.general) == "Cheers!"
    return len(server.requests) - before


async def learned(world: World) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}")
    return [item.text for item in view.active()]


class TestAGatewayThatNamesWhatItRefuses:
    @pytest.mark.parametrize("wordings", TELLING.values(), ids=TELLING)
    async def test_is_asked_without_it_until_a_restart(
        self, start: Start, server: MessagesServer, wordings: Mapping[str, Raw]
    ) -> None:
        server.default = api.refusing(wordings, brain)
        async with start(base_url=server.base_url) as world:
            # An answer and an extraction, each twice; then each once, and the summary once.
            assert [await say(world, server) for _ in range(3)] == [4, 3, 2]
            assert await learned(world) == ["User drinks tea."]
            await world.ann.send(world.general, "!memory show")
            assert "Ann talks about tea." in world.answer(world.general)
            await world.restart()
            assert await say(world, server) >= 4


class TestAGatewayThatDoesNotSayWhy:
    async def test_is_believed_the_second_time(self, start: Start, server: MessagesServer) -> None:
        server.default = api.refusing({"cache_control": SILENT, "output_config": SILENT}, brain)
        async with start(base_url=server.base_url, summary_enabled=False) as world:
            assert [await say(world, server) for _ in range(4)] == [4, 4, 2, 2]
            assert await learned(world) == ["User drinks tea."]

    async def test_and_is_only_unwell_gets_everything_again(
        self, start: Start, server: MessagesServer
    ) -> None:
        async with start(base_url=server.base_url, summary_enabled=False) as world:
            server.default = brain
            server.script(SILENT)
            assert [await say(world, server) for _ in range(2)] == [3, 2]
        assert "cache_control" in json.dumps(server.requests[-2].body)

    async def test_is_not_asked_again_and_again_if_nothing_helps(
        self, start: Start, server: MessagesServer
    ) -> None:
        server.default = lambda _: SILENT
        async with start(base_url=server.base_url, summary_enabled=False) as world:
            counts = []
            for _ in range(3):
                before = len(server.requests)
                await world.ann.send(world.general, "I drink tea.")
                assert "The model didn't accept that request" in world.answer(world.general)
                counts.append(len(server.requests) - before)
        # Without the cache, then without blocks, then without tools; and never again.
        assert counts == [4, 1, 1]


class TestAServerThatTakesNeitherToolsNorASystemPromptInBlocks:
    async def test_still_answers_and_its_model_knows_that_it_has_no_tools(
        self, start: Start, server: MessagesServer
    ) -> None:
        wordings = {
            "system": fastapi("system"),
            "tools": api.failure(
                400, "invalid_request_error", "registry.ollama.ai/library/gemma does not support tools"
            ),
        }
        server.default = api.refusing(wordings, brain)
        async with start(base_url=server.base_url, summary_enabled=False) as world:
            assert [await say(world, server) for _ in range(2)] == [5, 2]
            assert await learned(world) == ["User drinks tea."]
        answers = [one for one in server.requests if IS_LOOP not in one.system]
        assert "You can't call tools here" in answers[-1].system
        assert "You can't call tools here" not in answers[0].system
