"""One question to a model, and one clear line for each way in which it can be answered wrong."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discoclaw.checkup.model import ask
from discoclaw.core.errors import (
    DiscoClawError,
    ModelEmpty,
    ModelKeyRejected,
    ModelNotFound,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
    SettingsError,
)
from discoclaw.models.config import ModelConfig
from tests.servers.messages_api import Behaviour, MessagesServer, failure, raw, silence, text

KEY = "sk-ant-api03-0123456789abcdefABCDEF-loopback"
PAGE = b"<!DOCTYPE html><html><body>Welcome to nginx</body></html>"


@pytest.fixture
async def server() -> AsyncIterator[MessagesServer]:
    async with MessagesServer() as running:
        yield running


def config(server: MessagesServer, **changes: Any) -> ModelConfig:
    given = {"key": KEY, "base_url": server.base_url, "chat_timeout_s": 30.0, **changes}
    return ModelConfig("anthropic", chat="llama-test", summary="small", facts="small", **given)


async def test_an_answer_comes_with_its_times_and_tokens(server: MessagesServer) -> None:
    server.script(text("Hel", "lo."))
    seen = await ask(config(server))
    assert (seen.model, seen.said) == ("llama-test", "Hello.")
    assert 0 < seen.first_s <= seen.whole_s
    assert (seen.usage.input_tokens, seen.usage.output_tokens) == (10, 5)
    assert len(server.requests) == 1


async def test_the_offline_model_answers_too() -> None:
    assert (await ask(ModelConfig("offline"))).said


async def test_what_goes_wrong_is_one_line_with_a_way_out(server: MessagesServer) -> None:
    wrong: list[tuple[Behaviour, type[DiscoClawError], str]] = [
        (raw(PAGE, content_type="text/html"), ModelNotFound, "answers with a web page"),
        (raw(PAGE, status=404, content_type="text/html"), ModelNotFound, "answers with a web page"),
        (raw(PAGE, status=405, content_type="text/html"), DiscoClawError, "answers with a web page"),
        (failure(404, "not_found_error", "model: x"), ModelNotFound, "doesn't have the model 'llama-test'"),
        (failure(401, "authentication_error", f"bad {KEY}"), ModelKeyRejected, "check ANTHROPIC_API_KEY"),
        (failure(400, "invalid_request_error", "credit balance is too low"), ModelRateLimited, "add credit"),
        (text(), ModelEmpty, "answered without a word"),
    ]
    for behaviour, kind, told in wrong:
        server.script(behaviour)
        with pytest.raises(kind, match=re.escape(told)) as raised:
            await ask(config(server))
        assert server.base_url in str(raised.value)
        assert "\n" not in str(raised.value) and KEY not in str(raised.value)


async def test_a_model_that_says_nothing_is_given_up(server: MessagesServer) -> None:
    server.script(silence())
    with pytest.raises(ModelTimeout, match="raise DISCOCLAW_MODEL_TIMEOUT_S"):
        await ask(config(server, chat_timeout_s=0.2))


async def test_an_address_with_v1_in_it_says_so(server: MessagesServer) -> None:
    with pytest.raises(ModelNotFound, match="leave /v1 out of ANTHROPIC_BASE_URL"):
        await ask(config(server, base_url=f"{server.base_url}/v1"))


async def test_a_server_that_is_not_there_says_so_without_the_password_of_its_address() -> None:
    unreachable = ModelConfig("anthropic", chat="x", key=KEY, base_url="http://ann:secret@127.0.0.1:1")
    with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1:1 can't be reached") as raised:
        await ask(unreachable)
    assert "secret" not in str(raised.value)


async def test_a_key_that_anthropic_never_gave_out_is_not_sent_anywhere() -> None:
    for key, told in (
        ("sk-proj-abcdef", "is a key of OpenAI"),
        ("sk-or-v1-abcdef", "is a key of OpenRouter"),
        ("sk-abcdef0123", "is a key of OpenAI or of another vendor"),
        ("AIzaSyA-abcdef", "is a key of Google"),
        ("sk-ant-admin01-abc", "is an admin key"),
        (f'"{KEY}"', "has quotation marks"),
        (f"{KEY} x", "has spaces"),
        (f"{KEY}é", "has letters that no key has"),
    ):
        with pytest.raises(SettingsError, match=told) as raised:
            await ask(ModelConfig("anthropic", chat="haiku", key=key))
        assert key not in str(raised.value)


async def test_neither_key_nor_address_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY is not set"):
        await ask(ModelConfig("anthropic", chat="haiku"))
