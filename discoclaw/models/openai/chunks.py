"""Turns the chunks of a chat completion into events of the Messages API. Pure, and lenient.

`models/message` puts these together, whichever API they came over. Servers differ in what a chunk has: calls
without an index or an id, or several with the same one, arguments as an object, thoughts in one of two
fields, the usage in each chunk or in none, and reasons to end of their own. Format:
https://platform.openai.com/docs/api-reference/chat-streaming
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

_THOUGHTS: Final = ("reasoning_content", "reasoning")
_LENGTH: Final = re.compile(r"length|max_.*tokens|model_length")
_REFUSED: Final = re.compile(r"content_filter|safety|recitation|blocklist|prohibited_content|spii|refusal")
_MOST_SAID: Final = 1_000  # characters of a refusal
_FAILED: Final = ("error", "abort")
_OWN: Final = ("id", "index", "type", "function")
"""The fields of a call that we read. Others go back as they came: Gemini refuses its calls without."""


def fault(name: str, chunk: Json) -> object:
    """What a server says went wrong, in an event of that name; None if it says nothing of the kind."""
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
        """What a chunk adds, or a completion as a whole. Nonsense raises an ordinary exception."""
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
    """What was counted, under the names of the Messages API, where cached tokens are counted apart."""

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
