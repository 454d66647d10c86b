"""Models behind OpenAI's chat completions, at OpenAI or at another server that speaks them.

How a request is sent, and how the chunks of an answer are read. The SDK splits the bytes into events, but
doesn't read these: it trips over whatever one of them lacks. Everything else is `models/asking`.
"""

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import httpx2
import openai
from openai import (
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    Timeout,
    pydantic_function_tool,
)
from openai._exceptions import SubjectTokenProviderError
from openai._models import FinalRequestOptions
from openai._streaming import SSEDecoder
from pydantic import BaseModel

from discoclaw.core import errors
from discoclaw.core.errors import ModelUnreachable
from discoclaw.core.message import Encoded
from discoclaw.core.model import AssistantTurn, ModelRequest, ToolSpec, ToolTurn, Turn, UserTurn
from discoclaw.core.text import scrub
from discoclaw.models.asking import EFFORTS, ServedModel, Server, in_pieces, opened, trusted
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.failing import BY_MARK, NO_TOOLS, Failures, Told
from discoclaw.models.reading import THOUGHTS, Block, ContentBlocks, limit_body, parsed

# ----------------------------------------------------------------------
# Core values to the JSON of chat completions. Pure: nothing is sent here.
#
# The API has one text for a system prompt, a message for each result of a tool, and pictures as URLs. Format:
# https://platform.openai.com/docs/api-reference/chat/create


Json: TypeAlias = dict[str, Any]


def messages_param(request: ModelRequest, model: str, out: Collection[str] = ()) -> list[Json]:
    """The system prompt and the conversation so far, for `model`, without what is `out`.

    Blank texts are left out, and neighbours of one role become one message: the templates of many local
    models reject roles that don't alternate. Without a system prompt, its text begins the first message.
    """
    system = [scrub(block.text) for block in request.system if block.text.strip()]
    system += [NO_TOOLS] if "tools" in out else []
    role = "user" if "system" in out else "system"
    messages = [{"role": role, "content": _text("\n\n".join(system))}] if system else []
    for turn in request.turns:
        for message in _messages(turn, model, out):
            last = messages[-1] if messages else message
            if last is not message and message["role"] == last["role"] != "tool" and "tool_calls" not in last:
                last |= {**message, "content": last["content"] + message["content"]}
            else:
                messages.append(message)
    sent = _one_by_one(messages) if "parallel_calls" in out else messages
    return [_flat(message) for message in sent]


def tools_param(tools: Sequence[ToolSpec], out: Collection[str] = ()) -> list[Json]:
    """The tools the model may call, without what is `out`."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
        }
        for tool in (tools if "tools" not in out else ())
    ]


@lru_cache(maxsize=32)  # pydantic takes 10 ms to write extraction's, and every call needs it once or twice
def schema_of(shape: type[BaseModel]) -> Json:
    """The JSON schema of `shape`, as strict as the API wants it."""
    return dict(pydantic_function_tool(shape)["function"]["parameters"])


def format_param(shape: type[BaseModel]) -> Json:
    """The parameter that makes the server enforce the JSON schema of `shape`."""
    schema = {"name": shape.__name__, "strict": True, "schema": schema_of(shape)}
    return {"type": "json_schema", "json_schema": schema}


def _messages(turn: Turn, model: str, out: Collection[str]) -> Iterator[Json]:
    """The messages of a turn, each with its content in parts."""
    match turn:
        case UserTurn(text, media=media):
            if parts := [*(part for one in media for part in _media(one)), *_text(text)]:
                yield {"role": "user", "content": parts}
        case ToolTurn(results):
            for one in results:
                said = scrub(one.text) if one.text.strip() else "(no output)"
                said = f"Error: {said}" if one.failed else said
                yield {"role": "tool", "tool_call_id": one.call_id, "content": _text(said)}
        case AssistantTurn(raw=ContentBlocks() as raw):
            yield from _assistant(raw.sent_to(model), out)
        case AssistantTurn(text, calls):
            asked = ({"type": "tool_use", "id": c.id, "name": c.name, "input": c.input} for c in calls)
            yield from _assistant([{"type": "text", "text": text}, *asked], out)


def _assistant(blocks: Sequence[Block], out: Collection[str]) -> Iterator[Json]:
    """Words, calls and thoughts of the model, each in the field in which it came."""
    message: Json = {"role": "assistant", "content": []}
    for block in blocks:
        if block["type"] == "text":
            message["content"] += _text(str(block["text"]))
        elif block["type"] == "tool_use":
            given = block["input"] if isinstance(block["input"], Mapping) else {}
            function = {"name": block["name"], "arguments": scrub(json.dumps(given, ensure_ascii=False))}
            call: Json = {"id": block["id"], "type": "function", "function": function}
            call |= cast(Json, block.get("extra", {}))
            message.setdefault("tool_calls", []).append(call)
        elif block["type"] in THOUGHTS and "reasoning_content" not in out:
            field = str(block.get("field", "reasoning_content"))
            message[field] = message.get(field, "") + str(block.get("thinking", ""))
    if message["content"] or "tool_calls" in message:
        yield message


def _one_by_one(messages: Sequence[Json]) -> Iterator[Json]:
    """The messages as if the model had always called one tool and got its result before the next one."""
    waiting: list[Json] = []
    for message in messages:
        calls = message.get("tool_calls", ())
        if message["role"] == "tool" and waiting:
            yield waiting.pop(0)
            yield message
        elif len(calls) > 1:
            first, *more = ({"tool_calls": [call]} for call in calls)
            waiting = [message | first, *({"role": "assistant", "content": [], **one} for one in more)]
        else:
            waiting = []
            yield message


def _flat(message: Json) -> Json:
    """The message with its text as a string, which every server takes; with files it stays in parts."""
    parts = message["content"]
    if not parts:
        return {key: value for key, value in message.items() if key != "content"}
    if all(part["type"] == "text" for part in parts):
        return message | {"content": "\n\n".join(part["text"] for part in parts)}
    return message


def _media(one: Encoded) -> Iterable[Json]:
    """A picture or document. A line before a picture has what the text calls it; a document has a name.

    Neither has a name that a person chose, which would stand outside every quotation.
    """
    url = f"data:{one.type};base64,{one.data}"
    if one.kind == "document":
        return [{"type": "file", "file": {"filename": f"{scrub(one.label)}.pdf", "file_data": url}}]
    return [*_text(f"{one.label}:"), {"type": "image_url", "image_url": {"url": url}}]


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": scrub(text)}] if text.strip() else []


# ----------------------------------------------------------------------
# OWN


_THINKS: Final = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)(?!.*chat)")
"""OpenAI's models that think, and count that towards the limit of an answer."""

# The SDK reads OPENAI_LOG when it is imported.
logging.getLogger("openai").setLevel(logging.NOTSET)

# ---------------------------------------------------------------------- errors

SDK_ERRORS: Final[Mapping[type[BaseException], type[errors.ModelError]]] = {
    openai.APITimeoutError: errors.ModelTimeout,
    openai.APIConnectionError: errors.ModelUnreachable,
    openai.APIResponseValidationError: errors.ModelBadOutput,
    openai.LengthFinishReasonError: errors.ModelCut,
    openai.ContentFilterFinishReasonError: errors.ModelRefused,
    openai.InvalidWebhookSignatureError: errors.ModelBadRequest,
    openai.OAuthError: errors.ModelKeyRejected,
    SubjectTokenProviderError: errors.ModelKeyRejected,
    openai.WebSocketConnectionClosedError: errors.ModelUnreachable,
    openai.WebSocketQueueFullError: errors.ModelUnreachable,
}

# Base classes, raised when the SDK has no class of its own. When a new SDK class lands here, add it above.
GENERIC_ERRORS: Final[Mapping[type[BaseException], type[errors.ModelError]]] = {
    openai.InternalServerError: errors.ModelUnreachable,
    openai.APIStatusError: errors.ModelUnreachable,
    openai.APIError: errors.ModelUnreachable,
    openai.OpenAIError: errors.ModelBadRequest,
}

# Rejections whose status says less than their words, or something else.
_WORDS: Final[Mapping[type[errors.ModelError], "re.Pattern[str]"]] = {
    kind: re.compile(words, re.IGNORECASE)
    for kind, words in {
        errors.ModelBadRequest: r"no endpoints found that (?:can |do )?(?:support|handle)",  # OpenRouter's
        errors.ModelRefused: r"content.filter|content management policy|our usage polic|input was flagged",
        errors.ModelKeyRejected: r"api.key not valid|api_key_invalid",  # Gemini's, 400
        errors.ModelTooLong: r"request too large",  # OpenAI's, 429: it never fits into a minute
        errors.ModelNotFound: r"not a valid model|\bmodel\b.{0,99} (?:not found|not exist)|no models? loaded",
    }.items()
}


def sent(error: Any, response: httpx2.Response) -> APIStatusError:
    """The SDK's error for one that a server sent in an answer with status 200; its code may be a status."""
    code = str(error.get("code") if isinstance(error, dict) else "")
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else response.status_code
    meant = httpx2.Response(status, request=response.request, headers=response.headers)
    return APIStatusError(str(error), response=meant, body=error)


def _rejected(words: str) -> type[errors.ModelError] | None:
    return next((kind for kind, said in _WORDS.items() if said.search(words)), None)


def _told(error: APIStatusError) -> Told:
    """The server's message. Gemini's is in a list; OpenRouter has a second server's words in `metadata`."""
    body: Any = error.body
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0].get("error")
    body = body if isinstance(body, dict) else {"message": body}
    behind = body.get("metadata")
    raw = behind.get("raw") if isinstance(behind, dict) else None
    said = " ".join(one for one in (body.get("message"), raw) if isinstance(one, str)) or error.message
    code, kind = str(body.get("code") or ""), str(body.get("type") or "")
    return (
        Told(said, (kind, error.request_id), code)
        if code in BY_MARK
        else Told(said, (code, error.request_id), kind)
    )


FAILURES: Final = Failures(APIStatusError, APIConnectionError, _told, SDK_ERRORS, GENERIC_ERRORS, _rejected)


# ---------------------------------------------------------------------- the provider


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
    failures, certain, own_url = FAILURES, False, "https://api.openai.com/v1"

    def _client(self, key: str, base_url: str, max_retries: int) -> _Client:
        hooks = {"response": [limit_body]}
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
        return schema_of(shape)

    @asynccontextmanager
    async def _send(
        self, request: ModelRequest, shape: type[BaseModel] | None, out: Collection[str]
    ) -> AsyncIterator[httpx2.Response]:
        tools = tools_param(request.tools, out)
        # OpenAI's newer models refuse the old name, and other servers may not know the new one.
        is_old = not self._server.is_own and "max_tokens" not in out
        optional = {
            "stream_options": {"include_usage": True},
            "tools": tools or None,
            # The tools stay in the request: what was sent before must not change.
            "tool_choice": "none" if tools and not request.may_call else None,
            "response_format": format_param(shape) if shape is not None else None,
            "reasoning_effort": EFFORTS[request.purpose] if self._server.thinks(self.name) else None,
            "temperature": self._temperature,
        }
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": messages_param(request, self.name, out),
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
        """Turn what a server sends into events of the Messages API."""
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


# ---------------------------------------------------------------------- chunks


_THOUGHTS: Final = ("reasoning_content", "reasoning")
_LENGTH: Final = re.compile(r"length|max_.*tokens|model_length")
_REFUSED: Final = re.compile(r"content_filter|safety|recitation|blocklist|prohibited_content|spii|refusal")
_MOST_SAID: Final = 1_000  # characters of a refusal
_FAILED: Final = ("error", "abort")
_OWN: Final = ("id", "index", "type", "function")
"""The fields of a call that we read. Others go back as they came: Gemini refuses its calls without."""


def fault(name: str, chunk: Json) -> object:
    """The error that a server reports in an event of that name; None if it reports none."""
    choice = (chunk.get("choices") or [{}])[0]
    gave_up = f"the server gave up: {why}" if (why := choice.get("finish_reason")) in _FAILED else None
    return chunk.get("error") or choice.get("error") or (chunk if name == "error" else gave_up)


class Chunks:
    """One answer, chunk by chunk."""

    def __init__(self) -> None:
        self._blocks = 0
        self._kind = ""  # of the block that is open
        self._calls: list[_Call] = []
        self._refusal = ""
        self._begun = False

    def events(self, chunk: Json) -> Iterator[Json]:
        """The events that a chunk adds, or a completion as a whole. Nonsense raises an ordinary exception."""
        choices = chunk.get("choices") or ()
        choice = choices[0] if choices else {}
        if choices and not self._begun:
            self._begun = True
            yield {"type": "message_start"}
        yield from self._added(choice.get("delta") or choice.get("message") or {})
        kind = "message_delta" if self._begun else "chunk"
        event: Json = {"type": kind, "usage": _usage(chunk.get("usage"))}
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            event["delta"] = self._ended(reason.lower())
        yield event

    def _added(self, delta: Json) -> Iterator[Json]:
        for field in _THOUGHTS:
            if thought := delta.get(field):
                yield from self._piece("thinking", thought, field=field)
                break
        parts: Any = delta.get("content")
        for part in parts if isinstance(parts, list) else [{"type": "text", "text": parts}]:
            if part["type"] == "text" and part["text"]:
                yield from self._piece("text", part["text"])
            elif part["type"] == "thinking":  # Mistral's
                yield from self._piece("thinking", "".join(one["text"] for one in part["thinking"]))
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal = (self._refusal + refusal)[:_MOST_SAID]
        for given in delta.get("tool_calls") or ():
            yield from self._called(given)

    def _piece(self, kind: str, text: object, **more: str) -> Iterator[Json]:
        if self._kind != kind:
            self._kind = kind
            yield self._block({"type": kind, kind: "", **more})
        at = self._blocks - 1
        yield {"type": "content_block_delta", "index": at, "delta": {"type": f"{kind}_delta", kind: text}}

    def _block(self, block: Json) -> Json:
        self._blocks += 1
        return {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}

    def _called(self, given: Json) -> Iterator[Json]:
        function = given.get("function") or {}
        name, call_id = function.get("name") or "", given.get("id") or ""
        call = self._goes_on(given.get("index"), call_id, name)
        if call is None:
            self._kind = "tool_use"
            call = _Call(given.get("index"), self._blocks, {"type": "tool_use", "input": {}})
            self._calls.append(call)
            yield self._block(call.block)
        # The block is the one that was sent: a name or an id may come later.
        for key, value in (("id", call_id), ("name", name)):
            if value:
                call.block.setdefault(key, value)
        if extra := {key: value for key, value in given.items() if key not in _OWN}:
            call.block["extra"] = {**call.block.get("extra", {}), **extra}
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.input += arguments
            delta = {"type": "input_json_delta", "partial_json": arguments}
            yield {"type": "content_block_delta", "index": call.at, "delta": delta}

    def _goes_on(self, index: object, call_id: str, name: str) -> "_Call | None":
        """The call that a piece of one belongs to; None if it begins another one."""
        same = [call for call in self._calls if index is None or call.index == index]
        if call_id and (named := [call for call in same if call.block.get("id") == call_id]):
            return named[-1]
        if not same:
            return None
        last = same[-1]
        other_id = call_id and last.block.get("id")
        is_whole = last.input.rstrip().endswith("}")
        other_name = name and last.block.get("name") and (name != last.block["name"] or is_whole)
        return None if other_id or other_name else last

    def _ended(self, reason: str) -> Json:
        if self._refusal or _REFUSED.match(reason):
            why = {"explanation": self._refusal, "category": reason}
            return {"stop_reason": "refusal", "stop_details": why}
        return {"stop_reason": "max_tokens" if _LENGTH.match(reason) else reason}


@dataclass
class _Call:
    """A call while it comes: the server's index, its block and the block's place, and its input so far."""

    index: object
    at: int
    block: Json
    input: str = ""


def _usage(usage: object) -> Json:
    """The server's counts, under the names of the Messages API, where cached tokens are counted apart."""

    def count(name: str, of: object = usage) -> int:
        value = of.get(name) if isinstance(of, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0

    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    read = count("cached_tokens", details) or count("prompt_cache_hit_tokens")  # DeepSeek's
    written = count("cache_write_tokens", details)  # OpenRouter's
    return {
        "input_tokens": max(0, count("prompt_tokens") - read - written),
        "output_tokens": count("completion_tokens"),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    return opened(OpenAIProvider, "OPENAI", config)
