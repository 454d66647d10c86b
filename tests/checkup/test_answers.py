"""What `discoclaw doctor` finds out about models: one that can nothing of what the bot needs, in each way."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.checkup.conftest import Desk, Found
from tests.evals.answers import adds_everything, as_summary, perfect, talks
from tests.process.house import KEY
from tests.servers.messages_api import Received, failure, raw, refusing, text, tool_use

PAGE = b"<!DOCTYPE html><html><body>Welcome to nginx</body></html>"


async def asked(desk: Desk, *words: str, **changes: str | None) -> Found:
    return await desk.found(*(words or ("--quick",)), "--only", "model", **changes)


async def test_a_web_page_instead_of_a_model(desk: Desk) -> None:
    desk.model.default = lambda _: raw(PAGE, content_type="text/html")
    found = await asked(desk)
    assert found.only("model", "bad").endswith(
        "answers with a web page and not as a model's server; check ANTHROPIC_BASE_URL"
    )
    assert found.exit_code == 1 and len(desk.model.requests) == 1


async def test_a_refused_key_and_a_model_that_is_not_there(desk: Desk) -> None:
    desk.model.default = lambda _: failure(401, "authentication_error", "invalid x-api-key")
    assert "refuses the key" in (await asked(desk)).only("model", "bad")
    desk.model.default = lambda _: failure(404, "not_found_error", "model not found")
    found = await desk.found("--only", "model", "--only", "learning", DISCOCLAW_MODEL="llama9")
    assert "doesn't have the model 'llama9'" in found.only("model", "bad")
    assert found.only("learning", "unknown") == "learning: not tried, because the model doesn't answer"


async def test_a_key_of_another_vendor_is_sent_nowhere(desk: Desk) -> None:
    found = await asked(desk, ANTHROPIC_BASE_URL=None, ANTHROPIC_API_KEY="sk-proj-0123456789")
    assert "is a key of OpenAI, and Anthropic is asked; use a key of Anthropic's" in found.only(
        "model", "bad"
    )
    assert "sk-proj" not in found.result.output


async def test_a_small_model_that_a_local_server_does_not_have(desk: Desk) -> None:
    """As after the one for people was set, and the small ones were forgotten."""
    usual = desk.model.default

    def answer(request: Received) -> Any:
        known = request.body["model"] == "qwen3"
        return usual(request) if known else failure(404, "not_found_error", "model not found")

    desk.model.default = answer
    found = await desk.found("--only", "model", "--only", "learning", DISCOCLAW_MODEL="qwen3")
    learning, summaries = found.lines("model", "bad")
    assert "doesn't have the model 'haiku'" in learning
    assert learning.endswith("; check DISCOCLAW_DURABLE_MODEL and ANTHROPIC_BASE_URL")
    assert summaries.endswith("; check DISCOCLAW_SUMMARY_MODEL and ANTHROPIC_BASE_URL")
    assert "DISCOCLAW_DURABLE_MODEL" in found.only("learning", "bad")


async def test_a_model_that_its_vendor_switches_off(desk: Desk) -> None:
    changes = {"ANTHROPIC_BASE_URL": None, "ANTHROPIC_API_KEY": "sk-proj-0123456789"}
    found = await asked(desk, **changes, DISCOCLAW_SUMMARY_MODEL="claude-3-opus-20240229")
    assert found.only("model", "warning").startswith(
        "deprecated: DISCOCLAW_SUMMARY_MODEL=claude-3-opus-20240229: Anthropic switches this model off on"
    )


async def test_a_server_that_refuses_tools(desk: Desk) -> None:
    desk.brain.tools = lambda _: failure(400, "invalid_request_error", "this model does not support tools")
    found = await asked(desk)
    assert "tools: the server refuses the bot's tools" in found.only("model", "bad")
    assert found.only("model", "bad").endswith("set DISCOCLAW_TOOLS_ENABLED=0")
    assert "pictures: the model sees pictures" in found.lines("model", "good")


async def test_a_server_that_refuses_fields_of_a_request(desk: Desk) -> None:
    usual = desk.model.default

    def answer(request: Received) -> Any:
        """As usual, also without the schema: that is in the prompt too."""
        formed = "exactly one JSON object" in request.system
        said = as_summary("Friday.") if '"themes"' in request.system else perfect(request.prompt)
        return text("```json\n", said, "\n```") if formed else usual(request)

    refused = {
        field: failure(400, "invalid_request_error", f"{field}: Extra inputs are not permitted")
        for field in ("cache_control", "output_config")
    }
    desk.model.default = refusing(refused, answer)
    found = await asked(desk, DISCOCLAW_MODEL="qwen3")
    warnings = found.lines("model", "warning")
    assert [one.partition("; ")[0] for one in warnings] == [
        "cache_control: the server refuses `cache_control` for qwen3, so it is left out: nothing is cached "
        "there, so each turn pays for the whole prompt",
        "output_config: the server refuses `output_config` for claude-haiku-5-5, so it is left out: nothing "
        "holds a model to the form of its answer, so learning depends on its discipline",
    ]
    assert "learning: the model answers for learning in the right form" in found.lines("model", "good")


async def test_a_model_that_talks_about_a_tool_instead_of_calling_it(desk: Desk) -> None:
    desk.brain.tools = lambda _: text("memory_store(text='teapot')")
    assert "told to remember something, the model called no tool" in (await asked(desk)).only(
        "model", "warning"
    )
    desk.brain.tools = lambda _: tool_use(("t1", "memory_store", {"contents": "teapot"}))
    warning = (await asked(desk)).only("model", "warning")
    assert "the model called memory_store, and nothing was remembered; use a larger model" in warning


async def test_prose_instead_of_json(desk: Desk) -> None:
    desk.brain.learns = talks
    desk.brain.sums_up = lambda _: "[]"
    found = await asked(desk)
    learning, summaries = found.lines("model", "bad")
    assert learning == (
        "learning: the model's answer for learning can't be used: it is not in the form that was asked for; "
        "set DISCOCLAW_DURABLE_MODEL to a larger model"
    )
    assert summaries.endswith("; set DISCOCLAW_SUMMARY_MODEL to a larger model")


async def test_a_second_try_that_was_needed(desk: Desk) -> None:
    prompts: list[str] = []

    def learns(prompt: str) -> str:
        prompts.append(prompt)  # the second one is only what was wrong
        return "Sure! Here it is." if len(prompts) == 1 else perfect(prompts[0])

    desk.brain.learns = learns
    warning = (await asked(desk)).only("model", "warning")
    assert "needed a second try to answer for learning in the right form" in warning


async def test_a_model_that_takes_no_pictures_and_one_that_sees_none(desk: Desk) -> None:
    desk.brain.sees = lambda _: failure(400, "invalid_request_error", "image input is not supported")
    assert "pictures: the model takes no pictures" in (await asked(desk)).only("model", "warning")
    desk.brain.sees = lambda _: text("A lovely blue.")
    warning = (await asked(desk)).only("model", "warning")
    assert "pictures: the model calls a yellow picture “A lovely blue.”, so it may not see any" in warning
    assert (await asked(desk, DISCOCLAW_FILES="0")).lines("model", "warning") == []


async def test_a_model_that_is_too_slow_to_answer(desk: Desk) -> None:
    desk.brain.talk = lambda _: text("Hello.", hold=asyncio.Event())
    found = await asked(desk, DISCOCLAW_MODEL_TIMEOUT_S="0.3")
    assert "took too long (no complete answer within 0.3 s)" in found.only("model", "bad")


async def test_how_fast_it_writes(desk: Desk) -> None:
    words = [f"word {number} " for number in range(30)]
    usual = desk.model.default

    def slowly(request: Received) -> Any:
        done = usual(request)
        slow = text(*words, delay_s=0.01, usage={"input_tokens": 2000, "output_tokens": 60})
        return slow if "tool_result" in json.dumps(request.body["messages"]) else done

    desk.model.default = slowly
    found = await asked(desk)
    assert any("tokens a second" in one for one in found.lines("model", "good"))
    assert any("tokens for a short message, up to about" in one for one in found.lines("model", "good"))


@asynccontextmanager
async def pages(desk: Desk, route: str, answer: Any) -> AsyncIterator[str]:
    """The loopback model with another page beside it, as local servers have them."""

    async def page(request: web.Request) -> web.Response:
        return web.json_response(answer)

    async def passed(request: web.Request) -> web.Response:
        return await desk.model._handle(request)  # type: ignore[return-value] # a StreamResponse is one too

    app = web.Application()
    app.router.add_route("*", route, page)
    app.router.add_post("/v1/messages", passed)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("route", "answer"),
    [
        ("/props", {"default_generation_settings": {"n_ctx": 2048}}),
        ("/api/show", {"parameters": 'stop "x"\nnum_ctx 2048', "model_info": {"llama.context_length": 9}}),
        ("/api/show", {"model_info": {"llama.context_length": 2048}}),
        ("/v1/models", {"data": [{"id": "other"}, {"id": "llama-test", "max_model_len": 2048}]}),
    ],
)
async def test_a_context_that_is_too_short(desk: Desk, route: str, answer: Any) -> None:
    async with pages(desk, route, answer) as address:
        found = await asked(desk, ANTHROPIC_BASE_URL=address, DISCOCLAW_MODEL="llama-test")
    bad = found.only("model", "bad")
    assert "the bot leaves out the oldest talk" in bad
    assert bad.startswith(
        "context: the server reads 2,048 tokens at once, and a long turn with its answer needs"
    )


async def test_a_context_that_the_bot_was_told_wrong(desk: Desk) -> None:
    async with pages(desk, "/props", {"n_ctx": 32_768}) as address:
        found = await asked(desk, ANTHROPIC_BASE_URL=address, DISCOCLAW_CONTEXT_TOKENS="32769")
        assert "DISCOCLAW_CONTEXT_TOKENS says more; leave it out" in found.only("model", "bad")
        for told in ("32768", ""):
            found = await asked(desk, ANTHROPIC_BASE_URL=address, DISCOCLAW_CONTEXT_TOKENS=told)
            assert "context: the server reads 32,768 tokens at once" in found.lines("model", "good")


async def test_a_context_that_is_short(desk: Desk) -> None:
    async with pages(desk, "/props", {"n_ctx": 8200}) as address:
        found = await asked(desk, ANTHROPIC_BASE_URL=address, DISCOCLAW_MAX_TOKENS="8000")
    assert "the bot leaves out the oldest talk and answers more briefly" in found.only("model", "warning")


async def test_a_model_that_learns_badly(desk: Desk) -> None:
    desk.brain.learns = adds_everything
    found = await desk.found("--only", "learning")
    first, updated = found.lines("learning", "warning")
    assert first.startswith("learning: 4 of 5 built-in talks were learned from as they should be; see")
    assert updated == (
        "something that changed: the old memory stays in use beside the new one; "
        "see `discoclaw eval extraction --case update-02`"
    )
    assert found.exit_code == 0
    desk.brain.learns = lambda _: "{}"
    found = await desk.found("--only", "learning")
    assert found.only("learning", "bad").startswith("learning: 2 of 5 built-in talks")
    assert found.exit_code == 1


async def test_the_offline_model_is_named_as_what_it_is(desk: Desk) -> None:
    found = await asked(desk, DISCOCLAW_MODEL_PROVIDER="offline", ANTHROPIC_API_KEY=KEY)
    assert found.only("model", "warning").startswith(
        "model: the offline model only repeats what it remembers"
    )
    assert desk.model.requests == []
