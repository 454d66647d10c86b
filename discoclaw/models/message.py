"""Puts an answer together from what a server sends, as events of the Messages API. Pure, and lenient.

Other adapters turn what they read into these events. Servers that imitate the API leave out what they don't
need themselves: `usage`, the start of a block, the end of the message. So each event only says what it adds,
and what isn't known is left out. Format:
https://docs.anthropic.com/en/api/messages-streaming
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from discoclaw.core.text import scrub

_PARTS = ("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop")
_DELTAS = {"text": ("text",), "thinking": ("thinking",), "partial_json": ("tool_use", "server_tool_use")}
"""The field of a delta that adds to a block, and the types of blocks that have it. The first one is begun."""


class Message:
    """One answer: `take` each event of a stream, or the message as a whole."""

    def __init__(self) -> None:
        self.stop_reason: str | None = None
        self.stop_details: Mapping[str, Any] = {}
        self.usage: dict[str, Any] = {}
        self.began: bool | None = None
        """Whether a part of an answer has come; None as long as nothing has come at all."""
        self.odd = False
        """Whether something was missing that the API always sends: then only a stop reason makes it whole."""
        self.ended = False
        """Whether the server has said that this is all."""
        self.counted = False
        """Whether the tokens of the whole answer were counted."""
        self.size = self.input_size = 0
        """Characters that were written, and those of them that are inputs of calls."""
        self._blocks: list[dict[str, Any]] = []
        self._inputs: dict[int, str] = {}  # JSON, by the block's place
        self._open: dict[object, int] = {}  # the place of a block, by the server's index

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self._blocks)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content as it came. If the input of one call can't be read, that of all is None."""
        try:
            read = {at: from_json(text, allow_inf_nan=False) for at, text in self._inputs.items()}
        except ValueError:  # the server may have mixed them up
            read = dict.fromkeys(self._inputs)
        return [
            {**block, "input": read[at]} if at in read else block for at, block in enumerate(self._blocks)
        ]

    def take(self, event: Mapping[str, Any]) -> str:
        """Note an event. Returns the text that it adds. Raises ValueError for nonsense."""
        kind, content = event.get("type"), event.get("content")
        self.odd = self.odd or (not self.began and kind in _PARTS[1:])
        self.began = self.began or kind in _PARTS or content is not None
        if kind == "message_start":
            self.usage |= _counts(_object(event.get("message")))
        elif kind == "content_block_start":
            return self._begin(event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            return self._add(event.get("index"), _object(event.get("delta")))
        elif kind in ("message_delta", "message_stop"):
            self._end(event, _object(event.get("delta")))
            self.ended = self.ended or kind == "message_stop"
        elif kind == "message" and content is not None:
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            text = "".join(self._begin(at, block) for at, block in enumerate(blocks))
            self._end(event, event)
            self.ended = True
            return text
        return ""

    def _begin(self, index: object, block: object) -> str:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            return ""
        self._open[_place(index)] = len(self._blocks)
        if kind not in _DELTAS:
            self._blocks.append(block)
            return ""
        self.odd = self.odd or block.get(kind) is None
        self._blocks.append({**block, kind: ""})
        return self._add(index, block)

    def _add(self, index: object, delta: Mapping[str, Any]) -> str:
        at = self._open.get(_place(index))
        self.odd = self.odd or at is None
        for field, kinds in _DELTAS.items():
            if added := delta.get(field):
                if not isinstance(added, str):
                    raise ValueError(f"the {field} of a delta is no text")
                added = scrub(added)
                if at is None or self._blocks[at]["type"] not in kinds:
                    self._begin(index, {"type": kinds[0]})
                    at = len(self._blocks) - 1
                self.size += len(added)
                if field == "partial_json":
                    self.input_size += len(added)
                    self._inputs[at] = self._inputs.get(at, "") + added
                else:
                    self._blocks[at][field] += added
                return added if field == "text" else ""
        if at is not None:
            if isinstance(signature := delta.get("signature"), str):
                self._blocks[at]["signature"] = signature
            if (citation := delta.get("citation")) is not None:
                self._blocks[at]["citations"] = [*(self._blocks[at].get("citations") or ()), citation]
        return ""

    def _end(self, counted: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        usage = _counts(counted)
        self.usage |= usage
        self.counted = self.counted or "output_tokens" in usage
        if isinstance(reason := said.get("stop_reason"), str) and reason:
            self.stop_reason, self.ended = reason, True
            self.stop_details = _dict(said.get("stop_details"))


def _object(value: object) -> Mapping[str, Any]:
    """The JSON object that belongs to an answer. Raises ValueError if it is none."""
    if value is not None and not isinstance(value, dict):
        raise ValueError("a part of an event is no JSON object")
    return _dict(value)


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _counts(of: Mapping[str, Any]) -> dict[str, Any]:
    usage = _dict(of.get("usage"))
    return {name: value for name, value in usage.items() if value and isinstance(value, int | dict)}


def _place(index: object) -> int | None:
    return index if isinstance(index, int) else None
