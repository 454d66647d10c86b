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
from discoclaw.models import finishing
from discoclaw.models.anthropic import wire
from discoclaw.models.anthropic.errors import FAILURES
from discoclaw.models.anthropic.known import effort_for, known, resolve, thinking_room
from discoclaw.models.asking import DUMMY_KEY, ServedModel, Server, trusted
from discoclaw.models.body import in_pieces
from discoclaw.models.reading import parsed

log = logging.getLogger(__name__)

ANTHROPIC_URL = "https://api.anthropic.com"


class _Client(AsyncAnthropic):
    """The SDK's client. Only its hook before each attempt is another one."""

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options = await super()._prepare_options(options)
        in_pieces(options)
        return options


class AnthropicProvider(Server):
    """One connection pool to one server.

    The SDK fills every credential and address that is None from the environment. So each gets a value here:
    only `settings.py` reads the environment. Raises ModelNotFound when `base_url` can't be parsed.
    """

    failures = FAILURES

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
    ) -> None:
        key = api_key or DUMMY_KEY
        self.is_anthropic = base_url is None or base_url.rstrip("/") == ANTHROPIC_URL
        super().__init__(api_key, connect_timeout_s, certain=self.is_anthropic, parses=self.is_anthropic)
        with FAILURES.translated(self.secret):
            self.sdk = _Client(
                api_key=key,
                base_url=base_url or ANTHROPIC_URL,
                max_retries=max_retries,
                # A server that sends us elsewhere would have our key go there, and what people said.
                http_client=DefaultAsyncHttpxClient(verify=trusted(), follow_redirects=False),
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

    def room_of(self, model: str, purpose: Purpose, own: int) -> int:
        """The tokens to ask for: the answer's own, and what thinking may take beside them."""
        known_model = known(resolve(model)) if self.is_anthropic else None
        return finishing.bounded(own + thinking_room(known_model, purpose))

    async def close(self) -> None:
        """Close all connections. Running calls fail with ModelUnreachable. May be called again."""
        await self.sdk.close()


class AnthropicModel(ServedModel):
    """The port `Model` over one `AnthropicProvider`, which makes it."""

    _server: AnthropicProvider

    def __init__(
        self,
        server: AnthropicProvider,
        name: str,
        *,
        total_timeout_s: float,
        temperature: float | None = None,
    ) -> None:
        super().__init__(server, name, total_timeout_s=total_timeout_s, temperature=temperature)
        self._known = known(name) if server.is_anthropic else None
        self._enforces_schema = self._known is not None
        """Whether it is known to enforce a JSON schema; otherwise that is also in the prompt."""

    def _own_fields(self, request: ModelRequest, shape: type[BaseModel] | None) -> Mapping[str, object]:
        return {
            "output_config": self._output(request.purpose, shape),
            "cache_control": any(one.cache for one in request.system)
            or any(one.cache for one in request.tools),
        }

    def _schema(self, shape: type[BaseModel]) -> Mapping[str, object] | None:
        return None if self._enforces_schema else wire.schema_of(shape)

    def _output(self, purpose: Purpose, shape: type[BaseModel] | None) -> OutputConfigParam:
        """How much the model should think, and the shape of its answer, as far as the server knows these."""
        output = OutputConfigParam()
        if (effort := effort_for(self._known, purpose)) is not None:
            output["effort"] = effort
        if shape is not None and (self._enforces_schema or not self._server.is_anthropic):
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
