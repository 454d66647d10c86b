"""Models behind Anthropic's Messages API, at Anthropic or at another server that speaks it.

How a request is sent, and how the events of an answer are read. The SDK splits the bytes into events, but
doesn't read these: it trips over whatever one of them lacks. Everything else is `models/asking`.
No class of the SDK leaves this package.
"""

import contextlib
import logging
import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

import anthropic
import httpx2
from anthropic import (
    APIConnectionError,
    APIStatusError,
    AsyncAnthropic,
    AsyncStream,
    DefaultAsyncHttpxClient,
    Timeout,
    omit,
    transform_schema,
)
from anthropic._models import FinalRequestOptions
from anthropic.resources.messages import DEPRECATED_MODELS
from anthropic.types import JSONOutputFormatParam, MessageParam, OutputConfigParam, TextBlockParam, ToolParam
from pydantic import BaseModel

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelTimeout,
    ModelUnreachable,
)
from discoclaw.core.message import Encoded
from discoclaw.core.model import (
    AssistantTurn,
    ModelRequest,
    Purpose,
    SystemBlock,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.text import scrub
from discoclaw.models.asking import EFFORTS, Effort, ServedModel, Server, in_pieces, opened, trusted
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.failing import NO_TOOLS, Failures, Told
from discoclaw.models.reading import Block, ContentBlocks, limit_body, parsed, sendable

# ----------------------------------------------------------------------
# Facts about Anthropic's models, and what each purpose asks of them.

ALIASES = {
    "fast": "claude-haiku-5-5",
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}


@dataclass(frozen=True, slots=True)
class Known:
    """One model. `thinks`: unless told otherwise. `efforts`: the values it accepts; others are rejected.

    All of them enforce a JSON schema.
    """

    thinks: bool
    efforts: tuple[Effort, ...] = ()


_THINKS = Known(thinks=True, efforts=("low", "medium", "high", "xhigh", "max"))

MODELS: Mapping[str, Known] = {
    "claude-haiku-5-5": _THINKS,
    "claude-sonnet-5-5": _THINKS,
    "claude-opus-5-5": _THINKS,
    "claude-fable-5-1": _THINKS,
    "claude-sonnet-5": _THINKS,
    "claude-opus-5": _THINKS,
    "claude-opus-4-8": Known(thinks=False, efforts=("low", "medium", "high", "xhigh", "max")),
    "claude-opus-4-7": Known(thinks=False, efforts=("low", "medium", "high", "xhigh", "max")),
    "claude-opus-4-6": Known(thinks=False, efforts=("low", "medium", "high", "max")),
    "claude-sonnet-4-6": Known(thinks=False, efforts=("low", "medium", "high", "max")),
    "claude-opus-4-5": Known(thinks=False, efforts=("low", "medium", "high")),
    "claude-sonnet-4-5": Known(thinks=False),
    "claude-haiku-4-5": Known(thinks=False),
}

_DATED = re.compile(r"-\d{8}$")


def resolve(name: str) -> str:
    """The model id of an alias.

    Any other name is returned as it is: local servers have names of their own.
    """
    return ALIASES.get(name.strip().lower(), name)


def ends(model: str) -> str | None:
    """The day on which Anthropic switches a model off, as its SDK knows it; None if no end is known."""
    return DEPRECATED_MODELS.get(resolve(model))


def known(model: str) -> Known | None:
    """Facts about a model, by its id or that of a dated snapshot; None if there are none."""
    return MODELS.get(_DATED.sub("", model))


log = logging.getLogger(__name__)


# ---------------------------------------------------------------------- errors

# `models/failing` knows what an error with a status means.
SDK_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    anthropic.HTTPNotImplementedError: ModelUnreachable,
    anthropic.APITimeoutError: ModelTimeout,
    anthropic.APIConnectionError: ModelUnreachable,
    anthropic.RetryableError: ModelUnreachable,
    anthropic.CredentialsError: ModelKeyRejected,
    anthropic.APIResponseValidationError: ModelBadOutput,
    anthropic.APIWebhookValidationError: ModelBadRequest,
}

# Base classes, raised when the SDK has no class of its own. When a new SDK class lands here, add it above.
GENERIC_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    anthropic.InternalServerError: ModelUnreachable,
    anthropic.APIStatusError: ModelUnreachable,
    anthropic.APIError: ModelUnreachable,
    anthropic.AnthropicError: ModelBadRequest,
}

USER_MESSAGES: Mapping[type[ModelError], str] = {
    ModelKeyRejected: (
        "The model refused my API key, so I can't answer. An admin has to check ANTHROPIC_API_KEY."
    ),
    ModelNotFound: (
        "The server doesn't have the model I'm set up with. "
        "An admin has to check DISCOCLAW_MODEL and ANTHROPIC_BASE_URL."
    ),
}
"""For people: the errors whose way out is a setting of this provider."""


def _told(error: APIStatusError) -> Told:
    return Told(
        str(error.api_message or error.message), (error.error_code, error.request_id), str(error.type or "")
    )


FAILURES: Final = Failures(
    APIStatusError, APIConnectionError, _told, SDK_ERRORS, GENERIC_ERRORS, messages=USER_MESSAGES
)


# ---------------------------------------------------------------------- the provider


class _Client(AsyncAnthropic):
    """The SDK's client. Only its hook before each attempt is another one."""

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options = await super()._prepare_options(options)
        in_pieces(options)
        return options


class AnthropicProvider(Server):
    """One connection pool to one server."""

    failures, certain, own_url = FAILURES, True, "https://api.anthropic.com"

    def _client(self, key: str, base_url: str, max_retries: int) -> _Client:
        """The SDK's client. It fills each credential and address that is None from the environment."""
        return _Client(
            api_key=key,
            base_url=base_url,
            max_retries=max_retries,
            # A server that sends us elsewhere would have our key go there, and what people said.
            http_client=DefaultAsyncHttpxClient(
                verify=trusted(), follow_redirects=False, event_hooks={"response": [limit_body]}
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
        """Facts about a model of Anthropic's; None about one of another server."""
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
        return None if self._server.known(self.name) is not None else schema_of(shape)

    def _output(self, purpose: Purpose, shape: type[BaseModel] | None) -> OutputConfigParam:
        """How much the model should think, and the shape of its answer, as far as the server knows these."""
        output, about = OutputConfigParam(), self._server.known(self.name)
        if about is not None and EFFORTS[purpose] in about.efforts:
            output["effort"] = EFFORTS[purpose]
        if shape is not None and (about is not None or not self._server.is_own):
            output["format"] = format_param(shape)
        return output

    @asynccontextmanager
    async def _send(
        self, request: ModelRequest, shape: type[BaseModel] | None, out: Collection[str]
    ) -> AsyncIterator[httpx2.Response]:
        extra: dict[str, object] | None = None
        if self._temperature is not None and "temperature" not in out:
            # The SDK dropped this parameter: current models reject it, but local servers still use it.
            extra = {"temperature": self._temperature}
        tools = tools_param(request.tools, out)
        may_call = request.may_call or "tool_choice" in out
        output = self._output(request.purpose, shape)
        with _logged_warnings():
            call = self._server.sdk.messages.stream(
                model=self.name,
                max_tokens=request.max_tokens,
                system=system_param(request.system, out) or omit,
                messages=messages_param(request.turns, self.name),
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
        """Parse what the server sends: events of a stream, named or not, or one message as JSON."""
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


# ---------------------------------------------------------------------- requests as JSON

MAX_BREAKPOINTS = 4
"""Cache breakpoints that the API accepts in one request."""


def system_param(blocks: Sequence[SystemBlock], out: Collection[str] = ()) -> list[TextBlockParam] | str:
    """The system prompt. A blank block is left out, and its breakpoint moves to the block before it.

    Of more than four breakpoints the last four are kept: they cover the longest prefixes. `out` are fields
    that the server refuses; without blocks it is one text.
    """
    texts: list[TextBlockParam] = []
    marked: list[TextBlockParam] = []
    for block in blocks:
        if block.text.strip():
            texts.append({"type": "text", "text": scrub(block.text)})
        if block.cache and texts and texts[-1] not in marked[-1:]:
            marked.append(texts[-1])
    if "tools" in out:
        texts.append({"type": "text", "text": NO_TOOLS})
    if "system" in out:
        return "\n\n".join(one["text"] for one in texts)
    for param in marked[-MAX_BREAKPOINTS:] if "cache_control" not in out else ():
        param["cache_control"] = {"type": "ephemeral"}
    return texts


def tools_param(tools: Sequence[ToolSpec], out: Collection[str] = ()) -> list[ToolParam]:
    """The tools the model may call, without what is `out`; a breakpoint is where a tool asks for one."""
    params: list[ToolParam] = []
    for tool in tools if "tools" not in out else ():
        param = ToolParam(name=tool.name, description=tool.description, input_schema=dict(tool.schema))
        if tool.cache and "cache_control" not in out:
            param["cache_control"] = {"type": "ephemeral"}
        params.append(param)
    return params


def messages_param(turns: Sequence[Turn], model: str) -> list[MessageParam]:
    """The conversation so far, for `model`: another model's thoughts are left out.

    Empty turns are left out too, and neighbours of one role become one message. The API merges neighbours
    itself, but some local servers reject roles that don't alternate.
    """
    roles = [
        ("assistant" if isinstance(turn, AssistantTurn) else "user", _content(turn, model)) for turn in turns
    ]
    messages = groupby((one for one in roles if one[1]), key=itemgetter(0))
    # The blocks of `raw` are the provider's own JSON, for which we have no types.
    return [
        cast(MessageParam, {"role": role, "content": [block for _, content in run for block in content]})
        for role, run in messages
    ]


@lru_cache(maxsize=32)  # pydantic takes 10 ms to write extraction's, and every call needs it once or twice
def schema_of(shape: type[BaseModel]) -> dict[str, object]:
    """The JSON schema of `shape`, as far as the API takes it."""
    return transform_schema(shape)


def format_param(shape: type[BaseModel]) -> JSONOutputFormatParam:
    """The parameter that makes the server enforce the JSON schema of `shape`."""
    return {"type": "json_schema", "schema": schema_of(shape)}


def _content(turn: Turn, model: str) -> list[Block]:
    match turn:
        case UserTurn(text, media=media):
            return [*(block for one in media for block in _media(one)), *_text(text)]
        case ToolTurn(results):
            return [_result(result) for result in results]
        # Thinking blocks go back unchanged, with their signature; only blank text, which the API rejects, is
        # dropped.
        case AssistantTurn(raw=ContentBlocks() as raw):
            kept = raw.sent_to(model)
            return [
                block for block in kept if block.get("type") != "text" or str(block.get("text", "")).strip()
            ]
        case AssistantTurn(text, calls):
            return _text(text) + [
                sendable({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input})
                for call in calls
            ]


def _media(one: Encoded) -> list[Block]:
    """A picture or document. A line before a picture has what the text calls it; a document has a title.

    The line has no name that a person chose, which would stand outside every quotation.
    """
    source = {"type": "base64", "media_type": one.type, "data": one.data}
    if one.kind == "document":
        return [{"type": "document", "source": source, "title": scrub(one.label)}]
    return [*_text(f"{one.label}:"), {"type": "image", "source": source}]


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": scrub(text)}] if text.strip() else []


def _result(result: ToolResult) -> Block:
    text = scrub(result.text) if result.text.strip() else "(no output)"
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": text, "is_error": result.failed}


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    return opened(AnthropicProvider, "ANTHROPIC", config, tuple(ALIASES), resolve)
