"""Every failure of the vendor's library or server is exactly one of ours, and none of them shows the key."""

import asyncio
import inspect
import json
import socket
import traceback
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic._error_classes import ERROR_CLASSES

from discoclaw.core.errors import (
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.core.model import ModelRequest, TextDelta, UserTurn
from discoclaw.models.anthropic import FAILURES, AnthropicModel, AnthropicProvider
from discoclaw.models.asking import ServedModel
from discoclaw.models.failing import BY_MARK, HTTP_ERRORS, Failures, mapped
from discoclaw.models.openai import FAILURES as OPENAIS
from tests.models.conftest import KEY, Adapter, AnyServer, Provider, each_api, one_dialect
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer
from tests.tables import each_row

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/messages")
OURS = set(ModelError.__subclasses__())
ANTHROPICS_SDK = anthropic.AsyncAnthropic(api_key="k", base_url="http://127.0.0.1")
OPENAIS_SDK = openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1")


async def text_of(model: ServedModel) -> str:
    events = model.stream(ModelRequest((), (UserTurn("Hello"),)))
    return "".join([event.text async for event in events if isinstance(event, TextDelta)])


def exported(module: object) -> list[type[BaseException]]:
    """The exception classes among a module's public names."""
    names = vars(module)["__all__"]
    found = (getattr(module, name) for name in names)
    return [each for each in found if inspect.isclass(each) and issubclass(each, BaseException)]


def is_known(failures: Failures, kind: type[BaseException]) -> bool:
    """Whether a class of an SDK is in a table itself, or the one status that it stands for."""
    mark = getattr(kind, "status_code", None)
    said = mapped(kind, failures.kinds) or (BY_MARK.get(mark) if isinstance(mark, int) else None)
    return kind in failures.generic or said in OURS


class TestEveryClassOfTheVendor:
    @each_row("kind", [*exported(anthropic), *dict.fromkeys(ERROR_CLASSES.values())])
    def test_each_exception_of_the_sdk_is_in_the_table(self, kind: type[BaseException]) -> None:
        assert is_known(FAILURES, kind)

    @each_row("kind", dict.fromkeys([*exported(openai), *exported(openai._exceptions)]))
    def test_each_exception_of_openais_sdk_is_in_a_table(self, kind: type[BaseException]) -> None:
        assert is_known(OPENAIS, kind)

    @each_row("kind", exported(httpx2))
    def test_each_exception_of_its_http_library_is_in_the_table(self, kind: type[BaseException]) -> None:
        assert mapped(kind, HTTP_ERRORS) in OURS

    @each_row("status", [*range(400, 432), 451, 499, *range(500, 530), 599])
    def test_each_status_becomes_one_of_ours(self, status: int) -> None:
        response = httpx2.Response(status, request=REQUEST)
        body = {"error": {"type": "some_error", "message": "no"}}
        error = FAILURES.translate(ANTHROPICS_SDK._make_status_error("no", body=body, response=response))
        assert type(error) in OURS and f"HTTP {status}" in str(error)

    @each_row("status", [*range(400, 432), 451, 499, *range(500, 530), 599])
    def test_each_status_of_openais_sdk_becomes_one_of_ours(self, status: int) -> None:
        response = httpx2.Response(status, request=REQUEST)
        body = {"error": {"type": "some_error", "message": "no"}}
        error = OPENAIS.translate(OPENAIS_SDK._make_status_error("no", body=body, response=response))
        assert type(error) in OURS and str(error).endswith("): no") and error.status == status

    def test_an_error_of_ours_passes_unchanged(self) -> None:
        refused = ModelRefused("no")
        with pytest.raises(ModelRefused) as caught, FAILURES.translated():
            raise refused
        assert caught.value is refused

    def test_what_only_the_loop_may_handle_passes_unchanged(self) -> None:
        with pytest.raises(asyncio.CancelledError), FAILURES.translated():
            raise asyncio.CancelledError


class TestStatuses:
    @each_row(
        ("status", "kind", "message", "ours"),
        [
            (400, "invalid_request_error", "messages: at least one is required", ModelBadRequest),
            (400, "invalid_request_error", "prompt is too long: 213452 tokens > 200000", ModelTooLong),
            (
                400,
                "exceed_context_size_error",
                "the request exceeds the available context size",
                ModelTooLong,
            ),
            (400, "invalid_request_error", "Your credit balance is too low", ModelRateLimited),
            (401, "authentication_error", "invalid key", ModelKeyRejected),
            (402, "billing_error", "no credit", ModelRateLimited),
            (403, "permission_error", "not allowed", ModelKeyRejected),
            (404, "not_found_error", "model: claude-nine", ModelNotFound),
            (408, "timeout_error", "too slow", ModelTimeout),
            (409, "conflict_error", "conflict", ModelBadRequest),
            (413, "request_too_large", "Request exceeds the maximum size", ModelTooLong),
            (422, "invalid_request_error", "unprocessable", ModelBadRequest),
            (429, "rate_limit_error", "slow down", ModelRateLimited),
            (431, "invalid_request_error", "headers", ModelBadRequest),
            (499, "api_error", "gone", ModelUnreachable),
            (500, "api_error", "internal", ModelUnreachable),
            (502, "api_error", "bad gateway", ModelUnreachable),
            (503, "api_error", "unavailable", ModelOverloaded),
            (504, "timeout_error", "too slow", ModelTimeout),
            (529, "overloaded_error", "overloaded", ModelOverloaded),
        ],
    )
    async def test_a_status_is_one_error_of_ours_and_its_text_says_why(
        self,
        server: MessagesServer,
        once: Provider,
        status: int,
        kind: str,
        message: str,
        ours: type[ModelError],
    ) -> None:
        server.script(api.failure(status, kind, message))
        with pytest.raises(ModelError) as caught:
            await text_of(once.model("haiku"))
        assert type(caught.value) is ours
        assert all(word in str(caught.value) for word in (message, f"HTTP {status}", "req_test"))

    async def test_a_page_of_html_is_shown_as_one_short_line(self, server: MessagesServer) -> None:
        server.script(api.raw(b"<html>\n" + b"gateway " * 500, status=502, content_type="text/html"))
        provider = AnthropicProvider(base_url=server.base_url, max_retries=0)
        with pytest.raises(ModelUnreachable) as caught:
            await text_of(provider.model("haiku"))
        await provider.close()
        assert len(str(caught.value)) < 500 and "\n" not in str(caught.value)


@each_api
class TestRetries:
    @each_row("status", [408, 409, 429, 500, 503, 529])
    async def test_a_passing_failure_is_tried_again(
        self, server: AnyServer, model: ServedModel, status: int, api: Any
    ) -> None:
        server.requests.clear()
        server.script(api.failure(status, retry_after_ms="1"), api.text("here"))
        assert await text_of(model) == "here"
        assert len(server.requests) == 2

    async def test_a_limit_that_stays_is_reported_after_the_last_try(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.default = lambda _: api.failure(429, "rate_limit_error", "slow down", retry_after_ms="1")
        with pytest.raises(ModelRateLimited, match="slow down"):
            await text_of(model)
        assert len(server.requests) == 3

    async def test_waiting_for_a_retry_counts_against_the_time_limit(
        self, server: AnyServer, provider: Provider, api: Any
    ) -> None:
        server.script(api.failure(429, retry_after="60"))
        with pytest.raises(ModelTimeout):
            await text_of(provider.model("haiku", total_timeout_s=0.1))

    async def test_a_wrong_key_is_not_tried_again(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.failure(401, "authentication_error"))
        with pytest.raises(ModelKeyRejected):
            await text_of(model)
        assert len(server.requests) == 1


class TestBrokenStreams:
    @each_row(
        ("kind", "ours"),
        [
            ("overloaded_error", ModelOverloaded),
            ("rate_limit_error", ModelRateLimited),
            ("billing_error", ModelRateLimited),
            ("authentication_error", ModelKeyRejected),
            ("not_found_error", ModelNotFound),
            ("timeout_error", ModelTimeout),
            ("invalid_request_error", ModelBadRequest),
            ("api_error", ModelUnreachable),
            ("an_error_of_next_year", ModelUnreachable),
        ],
    )
    async def test_an_error_event_is_told_by_its_type(
        self, server: MessagesServer, model: AnthropicModel, kind: str, ours: type[ModelError]
    ) -> None:
        server.script(api.error_event(kind, "it went wrong", after=("Hel",)))
        pieces = []
        with pytest.raises(ModelError) as caught:
            async for event in model.stream(ModelRequest((), (UserTurn("Hello"),))):
                pieces.append(event)
        assert type(caught.value) is ours and "it went wrong" in str(caught.value)
        assert pieces == [TextDelta("Hel")]

    async def test_an_empty_stream_is_no_short_answer(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.raw(b""))
        with pytest.raises(ModelUnreachable):
            await text_of(model)


@each_api
class TestNoConnection:
    async def test_a_refused_connection_is_unreachable_and_the_text_says_so(self, adapter: Adapter) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            provider = adapter.open(base_url=f"http://127.0.0.1:{unused.getsockname()[1]}", max_retries=0)
            with pytest.raises(ModelUnreachable, match="ConnectError"):
                await text_of(provider.model("haiku"))
        await provider.close()

    async def test_an_address_that_is_none_is_not_found(self, adapter: Adapter) -> None:
        provider = adapter.open(base_url="localhost:11434", max_retries=0)
        with pytest.raises(ModelNotFound):
            await text_of(provider.model("haiku"))
        await provider.close()

    def test_an_address_that_can_not_be_read_is_not_found_when_the_door_is_made(
        self, adapter: Adapter
    ) -> None:
        with pytest.raises(ModelNotFound):
            adapter.open(base_url="http://[::1")


@each_api
class TestTheKey:
    @each_row(
        "behaviour",
        [
            lambda api: api.failure(401, "authentication_error", f"invalid x-api-key: {KEY}"),
            lambda api: api.failure(400, "invalid_request_error", "x" * 380 + KEY),
            lambda api: api.error_event("api_error", f"Authorization: Bearer {KEY}"),
            lambda api: api.raw(f"<html>{KEY}</html>".encode(), status=500),
        ],
    )
    async def test_a_server_that_repeats_the_key_does_not_get_it_into_the_log(
        self, server: AnyServer, once: Provider, api: Any, behaviour: Callable[[Any], Any]
    ) -> None:
        server.default = lambda _: behaviour(api)
        with pytest.raises(ModelError) as caught:
            await text_of(once.model("haiku"))
        logged = "".join(traceback.format_exception(caught.value))
        assert KEY not in logged and KEY[:20] not in str(caught.value)

    @each_row("more", ["\n", "\t", "\r\nX-Other: yes"])
    async def test_one_that_no_header_can_hold_does_not_get_into_the_log_either(
        self, server: AnyServer, adapter: Adapter, more: str
    ) -> None:
        provider = adapter.open(api_key=f"my-proxy-password{more}", base_url=server.base_url, max_retries=0)
        with pytest.raises(ModelError, match="Illegal header value") as caught:
            await text_of(provider.model("haiku"))
        await provider.close()
        assert "my-proxy-password" not in str(caught.value)


def test_a_key_of_any_form_is_taken_out() -> None:
    error = FAILURES.translate(
        anthropic.AnthropicError("my-proxy-password is wrong"), secret="my-proxy-password"
    )
    assert str(error) == "AnthropicError: [key] is wrong"


@one_dialect
class TestWhatServersOfOpenAIsApiSay:
    """Each in the words of one of them."""

    @each_row(
        ("status", "error", "ours"),
        [
            (400, {"message": "Unknown parameter: 'x'.", "type": "invalid_request_error"}, ModelBadRequest),
            (400, {"message": "m", "code": "context_length_exceeded"}, ModelTooLong),
            (400, {"message": "This model's maximum context length is 4096 tokens."}, ModelTooLong),
            (400, {"message": "The response was filtered", "code": "content_filter"}, ModelRefused),
            (400, "x is not a valid model ID", ModelNotFound),
            (400, {"message": "API key not valid. Please pass a valid API key."}, ModelKeyRejected),
            (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}, ModelKeyRejected),
            (402, {"message": "Insufficient credits", "code": 402}, ModelRateLimited),
            (403, {"message": "m", "metadata": {"raw": "Your input was flagged"}}, ModelRefused),
            (404, {"message": "No endpoints found that support image input"}, ModelBadRequest),
            (404, {"message": 'model "llama9" not found, try pulling it first'}, ModelNotFound),
            (408, {"message": "slow"}, ModelTimeout),
            (413, {"message": "too large"}, ModelTooLong),
            (429, {"message": "You exceeded your quota", "code": "insufficient_quota"}, ModelRateLimited),
            (429, {"message": "Request too large for gpt-6 in organization"}, ModelTooLong),
            (500, "unexpected EOF", ModelUnreachable),
            (503, {"message": "Loading model", "type": "unavailable_error"}, ModelOverloaded),
        ],
    )
    @each_row("wrapped", [lambda error: {"error": error}, lambda error: [{"error": error}]])
    async def test_is_one_error_of_ours_with_its_status(
        self,
        server: AnyServer,
        once: Provider,
        api: Any,
        status: int,
        error: Any,
        ours: type[ModelError],
        wrapped: Callable[[Any], Any],
    ) -> None:
        sent = json.dumps(wrapped(error)).encode()
        server.default = lambda _: api.raw(sent, status=status, content_type="application/json")
        with pytest.raises(ModelError) as caught:
            await text_of(once.model("haiku"))
        assert (type(caught.value), caught.value.status) == (ours, status)

    @each_row(
        ("sent", "ours"),
        [
            ({"error": {"message": "Provider returned error", "code": 429}}, ModelRateLimited),
            ({"error": {"message": "slow down", "type": "rate_limit_error"}}, ModelRateLimited),
            ({"error": {"message": "m", "code": 502}}, ModelUnreachable),
            ({"error": {"message": "m", "code": "an_error_of_next_year"}}, ModelUnreachable),
            ({"error": {"message": "exceeds the context size", "type": "BadRequestError"}}, ModelTooLong),
            ({"error": "model runner has stopped"}, ModelUnreachable),
            ({"choices": [{"delta": {}, "finish_reason": "error"}]}, ModelUnreachable),
            ({"choices": [{"delta": {}, "finish_reason": "abort"}]}, ModelUnreachable),
            ({"choices": [{"delta": {}, "error": {"code": 503}}]}, ModelOverloaded),
        ],
    )
    @each_row("after", [("Hel",), ()])
    async def test_in_a_stream_that_began_well_is_one_error_of_ours(
        self, server: AnyServer, once: Provider, api: Any, sent: Any, ours: type[ModelError], after: Any
    ) -> None:
        server.script(api.text(*after, ending=sent))
        pieces = []
        with pytest.raises(ModelError) as caught:
            async for event in once.model("haiku").stream(ModelRequest((), (UserTurn("Hello"),))):
                pieces.append(event)
        assert type(caught.value) is ours
        assert pieces == [TextDelta(one) for one in after]
