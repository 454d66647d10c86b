"""Models behind Anthropic's Messages API, at Anthropic or at another server that speaks it.

How a request is sent, and how the events of an answer are read. The SDK splits the bytes into events, but
doesn't read these: it trips over whatever one of them lacks. Everything else is `models/asking`.
"""

import contextlib
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from anthropic import APIStatusError, AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient, Timeout, omit
from anthropic._models import FinalRequestOptions
from anthropic.types import OutputConfigParam
from pydantic import BaseModel

from discoclaw.core.model import ModelRequest, Purpose
from discoclaw.models.anthropic import wire
from discoclaw.models.anthropic.errors import FAILURES
from discoclaw.models.anthropic.known import Known, known, resolve
from discoclaw.models.asking import EFFORTS, ServedModel, Server, trusted
from discoclaw.models.body import in_pieces
from discoclaw.models.reading import bounded, parsed

log = logging.getLogger(__name__)

ANTHROPIC_URL = "https://api.anthropic.com"


class _Client(AsyncAnthropic):
    """The SDK's client. Only its hook before each attempt is another one."""

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options = await super()._prepare_options(options)
        in_pieces(options)
        return options


class AnthropicProvider(Server):
    """One connection pool to one server."""

    failures, certain = FAILURES, True

    def _own_url(self) -> str:
        return ANTHROPIC_URL

    def _client(self, key: str, base_url: str, max_retries: int) -> _Client:
        """The SDK's client. It fills each credential and address that is None from the environment."""
        return _Client(
            api_key=key,
            base_url=base_url,
            max_retries=max_retries,
            # A server that sends us elsewhere would have our key go there, and what people said.
            http_client=DefaultAsyncHttpxClient(
                verify=trusted(), follow_redirects=False, event_hooks={"response": [bounded]}
            ),
            # The SDK always reads ANTHROPIC_CUSTOM_HEADERS; it must not replace the key.
            default_headers={"Authorization": f"Bearer {key}"},
            # Off, because environment variables could otherwise make the SDK export prompts.
            open_telemetry=False,
        )

    def model(
        self, name: str, *, total_timeout_s: float = 180.0, temperature: float | None = None
    ) -> "AnthropicModel":
        """The model `name` (an alias or any id). `total_timeout_s` is for a whole call, retries included."""
        return AnthropicModel(self, resolve(name), total_timeout_s=total_timeout_s, temperature=temperature)

    def thinks(self, model: str) -> bool:
        """Whether a model is known to think unless told otherwise."""
        return (found := self.known(model)) is not None and found.thinks

    def known(self, model: str) -> Known | None:
        """What is known about a model of Anthropic's; None about one of another server."""
        return known(resolve(model)) if self.is_own else None


class AnthropicModel(ServedModel):
    """The port `Model` over one `AnthropicProvider`, which makes it."""

    _server: AnthropicProvider

    def _own_fields(self, request: ModelRequest, shape: type[BaseModel] | None) -> Mapping[str, object]:
        return {
            "output_config": self._output(request.purpose, shape),
            "cache_control": any(one.cache for one in request.system)
            or any(one.cache for one in request.tools),
        }

    def _schema(self, shape: type[BaseModel]) -> Mapping[str, object] | None:
        return None if self._server.known(self.name) is not None else wire.schema_of(shape)

    def _output(self, purpose: Purpose, shape: type[BaseModel] | None) -> OutputConfigParam:
        """How much the model should think, and the shape of its answer, as far as the server knows these."""
        output, about = OutputConfigParam(), self._server.known(self.name)
        if about is not None and EFFORTS[purpose] in about.efforts:
            output["effort"] = EFFORTS[purpose]
        if shape is not None and (about is not None or not self._server.is_own):
            output["format"] = wire.format_param(shape)
        return output

    @asynccontextmanager
    async def _send(
        self, request: ModelRequest, shape: type[BaseModel] | None, out: Collection[str]
    ) -> AsyncIterator[httpx2.Response]:
        extra: dict[str, object] | None = None
        if self._temperature is not None and "temperature" not in out:
            # The SDK dropped this parameter: current models reject it, but local servers still use it.
            extra = {"temperature": self._temperature}
        tools = wire.tools_param(request.tools, out)
        may_call = request.may_call or "tool_choice" in out
        output = self._output(request.purpose, shape)
        with _logged_warnings():
            call = self._server.sdk.messages.stream(
                model=self.name,
                max_tokens=request.max_tokens,
                system=wire.system_param(request.system, out) or omit,
                messages=wire.messages_param(request.turns, self.name),
                tools=tools or omit,
                # The tools stay in the request: what was sent before must not change.
                tool_choice={"type": "none"} if tools and not may_call else omit,
                output_config=omit if "output_config" in out else output or omit,
                extra_body=extra,
                timeout=Timeout(self._total_timeout_s, connect=self._server.connect_timeout_s),
            )
        async with call as stream:
            yield stream.response

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[Mapping[str, Any], None]:
        """What the server sends: events of a stream, named or not, or one message as JSON."""
        names = {"whole": "message", "done": "message_stop"}
        async for name, sent in parsed(response, AsyncStream.raw_events(response)):
            event = {"type": names.get(name, name), **sent}
            if event["type"] == "error" or event.get("error"):
                raise APIStatusError(str(event), response=response, body=event)
            yield event


@contextlib.contextmanager
def _logged_warnings() -> Iterator[None]:
    """Log the SDK's warnings about models near their end of life, which a filter could turn into errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        log.warning("%s", warning.message)
