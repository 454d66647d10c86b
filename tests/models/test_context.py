"""How much a model reads at once, as servers of every kind say it, on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from discoclaw.core.model import PROVIDERS, VENDOR
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import Contexts, open_models
from tests.tables import each_row


@asynccontextmanager
async def server(pages: dict[str, Any], key: str = "") -> AsyncIterator[tuple[str, list[str]]]:
    """A server with these pages; any other is not there. Yields its address and what it was asked for."""
    seen: list[str] = []

    async def page(request: web.Request) -> web.Response:
        seen.append(request.path)
        if key and request.headers.get("Authorization") != f"Bearer {key}":
            return web.Response(status=401)
        found = pages.get(request.path)
        return web.json_response(found) if found is not None else web.Response(status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield "http://{}:{}".format(*runner.addresses[0][:2]), seen
    finally:
        await runner.cleanup()


async def said(address: str, model: str, key: str | None = None) -> int | None:
    """What the bot finds out about a model there."""
    models = open_models(
        ModelConfig("anthropic", chat=model, summary=model, facts=model, key=key, base_url=address)
    )
    try:
        return await models.context_of(model)
    finally:
        await models.close()


OLLAMA = {"/v1/models": {"data": [{"id": "qwen3:8b"}]}}
SHOWN = {"parameters": "stop x", "model_info": {"qwen3.context_length": 40_960}}
LOADED = {"models": [{"name": "other", "context_length": 1}, {"name": "qwen3:8b", "context_length": 4096}]}


@each_row(
    ("model", "pages", "reads"),
    [
        ("qwen3:8b", {**OLLAMA, "/api/show": SHOWN}, 40_960),
        ("qwen3:8b", {**OLLAMA, "/api/show": SHOWN, "/api/ps": LOADED}, 4096),
        ("m", {"/api/ps": {"models": [{"name": "m:latest", "context_length": 8192}]}}, 8192),
        ("m", {"/api/show": {"parameters": "num_ctx 2048", "model_info": {"a.context_length": 9}}}, 2048),
        ("any", {"/props": {"default_generation_settings": {"n_ctx": 8192}}}, 8192),
        ("m", {"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 1, "n_ctx": 8192}}]}}, 8192),
        (
            "m",
            {"/v1/models": {"data": [{"id": "x", "max_model_len": 1}, {"id": "m", "max_model_len": 2}]}},
            2,
        ),
        ("m", {"/v1/models": {"data": [{"id": "m", "max_input_tokens": 200_000}]}}, 200_000),
        ("m", {"/v1/models": {"data": [{"id": "m", "context_length": 163_840}]}}, 163_840),
        (
            "m",
            {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 9, "loaded_context_length": 4}]}},
            4,
        ),
        ("m", {"/v1/models": {"data": [{"id": ["m"], "max_model_len": True}]}, "/props": [1]}, None),
        ("m", {"/v1/models": "no", "/api/ps": {"models": {"m": 1}}, "/api/show": {"model_info": 3}}, None),
        ("m", {"/api/show": {"parameters": f"num_ctx {'9' * 5000}"}}, None),
        ("m", {}, None),
    ],
)
async def test_is_what_the_server_says_of_this_model(model: str, pages: Any, reads: int | None) -> None:
    async with server(pages) as (address, _):
        assert await said(address, model) == reads
        assert await said(f"{address}/v1", model) == reads  # as OpenAI's clients write it


async def test_is_asked_for_with_the_key_that_the_server_wants() -> None:
    async with server({"/v1/models": {"data": [{"id": "m", "max_model_len": 8192}]}}, key="sk-1") as (
        where,
        _,
    ):
        assert await said(where, "m") is None
        assert await said(where, "m", key="sk-1") == 8192


async def test_is_asked_of_a_vendor_on_the_page_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server({}) as (address, seen):
        monkeypatch.setitem(PROVIDERS, VENDOR, replace(PROVIDERS[VENDOR], address=address))
        assert await said(address, "m", key="sk-1") is None
        assert seen == ["/v1/models"]


async def test_is_looked_for_below_the_address_of_a_gateway() -> None:
    pages = {"/api/v1/models": {"data": [{"id": "a/m", "context_length": 32_768}]}}
    async with server(pages) as (address, seen):
        assert await said(f"{address}/api/v1", "a/m") == 32_768
        assert seen == ["/api/v1/models"]


async def test_is_nothing_where_no_server_answers() -> None:
    assert await said("http://127.0.0.1:9", "m") is None


class TestContexts:
    """What the bot goes by."""

    async def test_are_asked_once_for_each_model_and_count_up_to_the_usual(self) -> None:
        asked: list[str] = []
        known = {"small": 8192, "huge": 1_000_000}

        async def ask(name: str) -> int | None:
            asked.append(name)
            return known.get(name)

        contexts = Contexts(ask, ("small", "silent", "small"), fixed=None)
        await contexts.start()
        assert contexts.of("") == 128_000  # nobody waits
        await contexts.settle()
        assert contexts.of("huge") == 128_000
        await contexts.settle()
        found = [contexts.of(name) for name in ("", "small", "silent", "huge")]
        assert found == [8192, 8192, 128_000, 128_000]
        assert asked == ["small", "silent", "huge"]
        await contexts.close()

    async def test_ask_a_server_once_for_what_it_says_of_all_its_models(self) -> None:
        async with server({"/api/ps": {"models": [{"name": "small", "context_length": 4096}]}}) as (at, seen):
            models = open_models(
                ModelConfig("anthropic", chat="big", summary="small", facts="other", base_url=at)
            )
            contexts = Contexts(models.context_of, ("big", "small", "other"), fixed=None)
            await contexts.start()
            await contexts.settle()
            assert [contexts.of(name) for name in ("big", "small")] == [128_000, 4096]
            shown = ["/api/show"] * 2  # it says something about one model
            assert sorted(seen) == ["/api/ps", *shown, "/api/v0/models", "/props", "/v1/models"]
            await contexts.close()
            await models.close()

    async def test_ask_nobody_where_a_setting_says_it(self) -> None:
        async def ask(name: str) -> int | None:
            raise AssertionError(name)

        contexts = Contexts(ask, ("one",), fixed=200_000)
        await contexts.start()
        assert (contexts.of(""), contexts.of("another")) == (200_000, 200_000)
        await contexts.close()
