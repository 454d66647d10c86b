"""Core values to the Messages API's JSON, and its message back to core values. Pure: nothing is sent here.

Two rules of the API shape this file. A text block may not be blank. And what the model wrote before tool
calls (thinking with its signature, the calls) must be sent back exactly as it came. Format:
https://docs.anthropic.com/en/api/messages
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import cast

from anthropic import transform_schema
from anthropic.types import JSONOutputFormatParam, MessageParam, TextBlockParam, ToolParam
from pydantic import BaseModel

from discoclaw.core.attached import Encoded
from discoclaw.core.model import (
    AssistantTurn,
    SystemBlock,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.text import scrub
from discoclaw.models.finishing import Block, ContentBlocks, sendable
from discoclaw.models.refused import NO_TOOLS

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
