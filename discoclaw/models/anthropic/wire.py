"""Our values as the Messages API's JSON, and its message as ours. Pure: nothing is sent here.

Two rules of the API shape this file: a text block may not be blank, and what the model said in a round of
tools (thinking with its signature, calls) goes back exactly as it came.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal, cast

from anthropic import transform_schema
from anthropic.types import Message, MessageParam, OutputConfigParam, TextBlockParam, ToolParam
from anthropic.types import Usage as SdkUsage
from pydantic import BaseModel

from discoclaw.core.errors import ModelBadOutput, ModelRefused, ModelTooLong
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    SystemBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Turn,
    Usage,
    UserTurn,
)
from discoclaw.core.text import scrub

Block = Mapping[str, object]

MAX_TOKENS = 32_000
"""The longest answer that is ever asked for; every current model can give it."""
MAX_BREAKPOINTS = 4
"""Cache breakpoints the API takes in one request."""

# A paused turn (server-side tools, which we do not offer) is an incomplete one: never shown as whole.
_STOPS: Mapping[str, Literal["end", "length"]] = {"max_tokens": "length", "pause_turn": "length"}


@dataclass(frozen=True, slots=True)
class SdkMessage:
    """`AssistantTurn.raw` of this room: the content blocks as they came."""

    blocks: tuple[Block, ...]


def system_param(blocks: Sequence[SystemBlock]) -> list[TextBlockParam]:
    """The system prompt. The breakpoint of a blank block, which is left out, moves to the block before it."""
    texts: list[TextBlockParam] = []
    marked: list[TextBlockParam] = []
    for block in blocks:
        if block.text.strip():
            texts.append({"type": "text", "text": scrub(block.text)})
        if block.cache and texts and texts[-1] not in marked[-1:]:
            marked.append(texts[-1])
    for param in marked[-MAX_BREAKPOINTS:]:
        param["cache_control"] = {"type": "ephemeral"}
    return texts


def tools_param(tools: Sequence[ToolSpec]) -> list[ToolParam]:
    """The tools the model may call."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in tools
    ]


def messages_param(turns: Sequence[Turn]) -> list[MessageParam]:
    """The turns so far; a turn with nothing in it is left out, and two of one role become one message.

    The API would unite them itself; some local servers refuse a request whose roles do not alternate.
    """
    said = [("assistant" if isinstance(turn, AssistantTurn) else "user", _content(turn)) for turn in turns]
    messages = groupby((one for one in said if one[1]), key=itemgetter(0))
    # The blocks of `raw` are the provider's own and have no type of ours.
    return [
        cast(MessageParam, {"role": role, "content": [block for _, content in run for block in content]})
        for role, run in messages
    ]


def output_param(shape: type[BaseModel]) -> OutputConfigParam:
    """Binds the answer to the JSON schema of `shape`."""
    return {"format": {"type": "json_schema", "schema": transform_schema(shape)}}


def output_in_words(shape: type[BaseModel]) -> str:
    """The same as prose, for servers that may not know the parameter."""
    schema = json.dumps(transform_schema(shape), ensure_ascii=False)
    return (
        "Answer with exactly one JSON object and nothing else: no prose, no code fence. "
        f"It follows this JSON schema:\n{schema}"
    )


def bounded(max_tokens: int) -> int:
    """`max_tokens` within what may be asked for."""
    return max(1, min(max_tokens, MAX_TOKENS))


def finished(message: Message) -> Finished:
    """The complete message as our last event.

    Raises ModelRefused or ModelTooLong when the model stopped for that, and ModelBadOutput when a call's
    input is no object.
    """
    reason = message.stop_reason
    if reason == "refusal":
        detail = message.stop_details
        why = (detail.explanation or detail.category) if detail else None
        raise ModelRefused(f"the model declined: {why or 'no reason given'}")
    if reason == "model_context_window_exceeded":
        raise ModelTooLong("the answer reached the end of the model's context window")
    stop = _STOPS.get(reason or "", "end")
    blocks = tuple(block.to_dict(mode="json", warnings=False) for block in message.content)
    if stop == "length":
        # The last call may be cut in the middle of its input, and nobody will answer any of them.
        blocks = tuple(block for block in blocks if block.get("type") != "tool_use")
    text = "".join(scrub(str(block.get("text", ""))) for block in blocks if block.get("type") == "text")
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    return Finished(
        AssistantTurn(text, calls, SdkMessage(blocks)), "tools" if calls else stop, _usage(message.usage)
    )


def _content(turn: Turn) -> list[Block]:
    match turn:
        case UserTurn(text):
            return _text(text)
        case ToolTurn(results):
            return [_result(result) for result in results]
        case AssistantTurn(raw=SdkMessage(blocks)):
            return [
                block for block in blocks if block.get("type") != "text" or str(block.get("text", "")).strip()
            ]
        case AssistantTurn(text, calls):
            return _text(text) + [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)}
                for call in calls
            ]


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": scrub(text)}] if text.strip() else []


def _result(result: ToolResult) -> Block:
    text = scrub(result.text) if result.text.strip() else "(no output)"
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": text, "is_error": result.failed}


def _call(block: Block) -> ToolCall:
    given = block.get("input")
    if not isinstance(given, Mapping):
        raise ModelBadOutput(
            f"the input of tool {block.get('name')!r} is {type(given).__name__}, not an object"
        )
    return ToolCall(str(block.get("id")), str(block.get("name")), given)


def _usage(usage: SdkUsage | None) -> Usage:
    """Local servers leave counts out, and the SDK fills nothing in."""

    def count(name: str) -> int:
        value = getattr(usage, name, None)
        return value if isinstance(value, int) else 0

    return Usage(
        count("input_tokens"),
        count("output_tokens"),
        count("cache_read_input_tokens"),
        count("cache_creation_input_tokens"),
    )
