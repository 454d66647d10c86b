"""Core values to the JSON of chat completions. Pure: nothing is sent here.

The API has one text for a system prompt, a message for each result of a tool, and pictures as URLs. Format:
https://platform.openai.com/docs/api-reference/chat/create
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from openai import pydantic_function_tool
from pydantic import BaseModel

from discoclaw.core.message import Encoded
from discoclaw.core.model import AssistantTurn, ModelRequest, ToolSpec, ToolTurn, Turn, UserTurn
from discoclaw.core.text import scrub
from discoclaw.models.failing import NO_TOOLS
from discoclaw.models.reading import THOUGHTS, Block, ContentBlocks

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
