"""Models behind OpenAI's chat completions, at OpenAI or at another server that speaks them.

How a request is sent, and how the chunks of an answer are read. The SDK splits the bytes into events, but
doesn't read these: it trips over whatever one of them lacks. Everything else is `models/asking`.
"""

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout
from openai._models import FinalRequestOptions
from openai._streaming import SSEDecoder
from pydantic import BaseModel

from discoclaw.core.errors import ModelUnreachable
from discoclaw.core.model import AssistantTurn, ModelRequest
from discoclaw.models.asking import EFFORTS, ServedModel, Server, trusted
from discoclaw.models.body import in_pieces
from discoclaw.models.openai import wire
from discoclaw.models.openai.chunks import Chunks, fault
from discoclaw.models.openai.errors import FAILURES, sent
from discoclaw.models.reading import bounded, parsed

OPENAI_URL = "https://api.openai.com/v1"
_THINKS: Final = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)(?!.*chat)")
"""OpenAI's models that think, and count that towards the limit of an answer."""

# The SDK reads OPENAI_LOG when it is imported.
logging.getLogger("openai").setLevel(logging.NOTSET)


class _Client(AsyncOpenAI):
    """The SDK's client, with nothing of the environment, and another hook before each attempt."""

    def __init__(self, *, key: str, **how: Any) -> None:
        super().__init__(api_key=key, admin_api_key="", organization="", project="", webhook_secret="", **how)
        self.organization = self.project = self.admin_api_key = None
        self._custom_headers = {}  # of OPENAI_CUSTOM_HEADERS

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options = await super()._prepare_options(options)
        in_pieces(options)
        return options


class OpenAIProvider(Server):
    """One connection pool to one server."""

    # Not every model of OpenAI takes every field, and new ones take fewer.
    failures, certain = FAILURES, False

    def _own_url(self) -> str:
        return OPENAI_URL

    def _client(self, key: str, base_url: str, max_retries: int) -> _Client:
        hooks = {"response": [bounded]}
        http = DefaultAsyncHttpxClient(verify=trusted(), follow_redirects=False, event_hooks=hooks)
        return _Client(key=key, base_url=base_url, max_retries=max_retries, http_client=http)

    def model(
        self, name: str, *, total_timeout_s: float = 180.0, temperature: float | None = None
    ) -> "OpenAIModel":
        """The model `name`. `total_timeout_s` is for a whole call, retries included."""
        return OpenAIModel(self, name, total_timeout_s=total_timeout_s, temperature=temperature)

    def thinks(self, model: str) -> bool:
        """Whether a model is one of OpenAI's that think."""
        return self.is_own and _THINKS.match(model) is not None


class OpenAIModel(ServedModel):
    """The port `Model` over one `OpenAIProvider`, which makes it."""

    _server: OpenAIProvider

    def _own_fields(self, request: ModelRequest, shape: type[BaseModel] | None) -> Mapping[str, object]:
        said = [turn for turn in request.turns if isinstance(turn, AssistantTurn)]
        return {
            "response_format": shape is not None,
            "stream_options": True,
            "reasoning_effort": self._server.thinks(self.name),
            "reasoning_content": any(turn.raw is not None for turn in said),
            "max_tokens": not self._server.is_own,
            "parallel_calls": any(len(turn.calls) > 1 for turn in said),
        }

    def _schema(self, shape: type[BaseModel]) -> Mapping[str, object]:
        return wire.schema_of(shape)

    @asynccontextmanager
    async def _send(
        self, request: ModelRequest, shape: type[BaseModel] | None, out: Collection[str]
    ) -> AsyncIterator[httpx2.Response]:
        tools = wire.tools_param(request.tools, out)
        # OpenAI's newer models refuse the old name, and other servers may not know the new one.
        is_old = not self._server.is_own and "max_tokens" not in out
        optional = {
            "stream_options": {"include_usage": True},
            "tools": tools or None,
            # The tools stay in the request: what was sent before must not change.
            "tool_choice": "none" if tools and not request.may_call else None,
            "response_format": wire.format_param(shape) if shape is not None else None,
            "reasoning_effort": EFFORTS[request.purpose] if self._server.thinks(self.name) else None,
            "temperature": self._temperature,
        }
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": wire.messages_param(request, self.name, out),
            "max_tokens" if is_old else "max_completion_tokens": request.max_tokens,
            **{name: value for name, value in optional.items() if value is not None and name not in out},
        }
        if self._server.sdk.is_closed():  # the SDK doesn't make this an error of its own
            raise ModelUnreachable("the connections are closed")
        timeout = Timeout(self._total_timeout_s, connect=self._server.connect_timeout_s)
        completions = self._server.sdk.chat.completions.with_streaming_response
        async with completions.create(stream=True, timeout=timeout, **fields) as response:
            yield response.http_response

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[Mapping[str, Any], None]:
        """What a server sends, as events of the Messages API."""
        chunks = Chunks()
        async for name, chunk in parsed(response, SSEDecoder().aiter_bytes(response.aiter_bytes())):
            if (error := fault(name, chunk)) is not None:
                raise sent(error, response)
            if name == "whole" and not chunk.get("choices"):
                raise ValueError("the server sent something else than a completion")
            for event in chunks.events(chunk):
                yield event
            if name in ("done", "whole"):
                yield {"type": "message_stop"}
