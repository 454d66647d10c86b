"""What `discoclaw doctor` finds out about models of other providers than Anthropic, on loopback."""

from collections.abc import AsyncIterator

import pytest

from discoclaw.checkup.answers import WANTED
from tests.checkup.conftest import Desk
from tests.evals.answers import as_summary, perfect
from tests.servers.chat_api import Behaviour, ListingServer, Received, failure, text, tool_use

LOCAL = "ollama:qwen3:8b"


class Brain:
    """A local model. It uses the tools, and learns as the evals want it, but never that something changed."""

    def __init__(self, *, sees: bool = True) -> None:
        self.sees = sees

    def __call__(self, request: Received) -> Behaviour:
        if request.body["messages"][-1]["role"] == "tool":
            return text("I'll ", "remember ", "that.")
        if '"themes"' in request.system or "themes" in str(request.body.get("response_format")):
            return text(as_summary("Anna moves the release to Friday."))
        if "deprecations" in request.system:
            learned = perfect(request.prompt)
            return text('{"upserts": [], "deprecations": []}' if "i1 " in request.prompt else learned)
        if "image" in request.files:
            return (
                text("Yellow.") if self.sees else failure(400, message="this model does not support images")
            )
        return (
            tool_use(("t1", "memory_store", {"text": f"User's teapot is {WANTED}."}))
            if request.tools
            else text("Hello.")
        )


@pytest.fixture
async def local() -> AsyncIterator[ListingServer]:
    async with ListingServer("ollama") as running:
        running.default = Brain()
        yield running


def at(local: ListingServer, **more: str | None) -> dict[str, str | None]:
    """Settings of a bot that has a local model only."""
    none = {"ANTHROPIC_API_KEY": None, "ANTHROPIC_BASE_URL": None}
    return {**none, "DISCOCLAW_MODEL_SERVERS": f"ollama={local.base_url}", "DISCOCLAW_MODEL": LOCAL, **more}


async def test_one_line_says_what_a_model_is_good_enough_for(desk: Desk, local: ListingServer) -> None:
    local.default = Brain(sees=False)
    found = await desk.found("--only", "model", "--only", "learning", **at(local))
    (line,) = [one for one in found.lines("learning", "good") if one.startswith("good for")]
    assert line == (f"good for: {LOCAL} answers and remembers; can't see pictures; learning: 4 of 5 examples")
    assert found.exit_code == 0
    assert f"model: {LOCAL} at {local.base_url} answers" in "\n".join(found.lines("model", "good"))


async def test_without_the_topic_of_learning_the_model_says_it(desk: Desk, local: ListingServer) -> None:
    found = await desk.found("--only", "model", **at(local))
    assert f"good for: {LOCAL} answers and remembers; sees pictures" in found.lines("model", "good")


async def test_each_model_is_tried_at_its_own_server(desk: Desk, local: ListingServer) -> None:
    servers = f"ollama={local.base_url}"
    found = await desk.found(
        "--only", "model", DISCOCLAW_MODEL_SERVERS=servers, DISCOCLAW_DURABLE_MODEL=LOCAL
    )
    assert found.lines("model", "bad") == []
    assert {one.body["model"] for one in local.requests} == {"qwen3:8b"}
    assert {one.body["model"] for one in desk.model.requests} == {"claude-sonnet-5-5", "claude-haiku-5-5"}


class TestWhatIsWrong:
    async def test_names_the_settings_of_the_server_that_fails(
        self, desk: Desk, local: ListingServer
    ) -> None:
        local.default = lambda _: failure(404, "not_found_error", "model 'qwen3:8b' not found")
        line = (await desk.found("--only", "model", **at(local))).only("model", "bad")
        assert "doesn't have the model 'qwen3:8b'" in line
        assert line.endswith("; check DISCOCLAW_MODEL and DISCOCLAW_MODEL_SERVERS")

    async def test_may_be_that_the_page_is_missing_in_the_address(
        self, desk: Desk, local: ListingServer
    ) -> None:
        changes = at(local, DISCOCLAW_MODEL="openai:qwen3:8b", OPENAI_BASE_URL=local.url)
        line = (await desk.found("--only", "model", **changes)).only("model", "bad")
        assert line.endswith("has no such page; end the address in OPENAI_BASE_URL with /v1")

    async def test_may_be_a_key_of_another_vendor_or_none(self, desk: Desk, local: ListingServer) -> None:
        changes = at(local, DISCOCLAW_MODEL="openai:gpt-5")
        line = (await desk.found("--only", "model", **changes)).only("model", "bad")
        assert line.startswith("model: OPENAI_API_KEY is not set, and the model openai:gpt-5 needs it")
        line = (await desk.found("--only", "model", **changes, OPENAI_API_KEY="sk-ant-api03-x")).only(
            "model", "bad"
        )
        assert "OPENAI_API_KEY=…: is a key of Anthropic, and OpenAI is asked" in line
        assert local.requests == []


async def test_what_a_local_model_costs_is_said_and_what_nobody_knows_too(
    desk: Desk, local: ListingServer
) -> None:
    found = await desk.found("--only", "costs", **at(local))
    assert (
        found.only("costs", "good") == "prices: a model on this network costs nothing; its tokens are counted"
    )
    changes = at(local, DISCOCLAW_DURABLE_MODEL="openai:gpt-5", OPENAI_API_KEY="sk-proj-x")
    found = await desk.found("--only", "costs", **changes)
    assert f"costs nothing ({LOCAL})" in found.only("costs", "good")
    assert "no price of openai:gpt-5 is known" in found.only("costs", "warning")
