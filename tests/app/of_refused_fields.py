"""The whole bot with gateways that refuse fields of a request: people are answered, and it learns."""

import json

from discoclaw.core import titles
from tests.app.conftest import World
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


def rambling(received: Received) -> Behaviour:
    """A model that makes nothing of what is said in background work."""
    return api.text("I'm sorry, I can't.") if IS_LOOP in received.system else brain(received)


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
