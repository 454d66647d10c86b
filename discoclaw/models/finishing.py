"""The result of a complete answer: the last event of a stream, or a value of a shape. Pure; knows no server.

An answer is content blocks of the Messages API (`models/message`), whichever API it came over.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

from discoclaw.core.errors import ModelBadOutput, ModelCut, ModelEmpty, ModelRefused, ModelTooLong
from discoclaw.core.model import AssistantTurn, Finished, ToolCall, ToolTurn, Turn, Usage, UserTurn
from discoclaw.core.ports import Shape
from discoclaw.core.text import scrub
from discoclaw.models.message import Message
from discoclaw.models.speech import Speech
from discoclaw.models.structured import checked

Block = Mapping[str, object]

MAX_TOKENS = 32_000
"""Longest answer that is ever requested, in tokens. Every current model supports it."""
LEAST_MORE = 8_000
"""A second try gets at least so many more tokens: what a model thinks at low effort."""
MOST_COUNTED = 100_000_000
"""A server that counts more tokens in one answer is wrong about that, and would block every budget."""
THOUGHTS = ("thinking", "redacted_thinking")
"""The types of content blocks that only the model that made them can read."""

# A reason that is not here, such as one of tomorrow, ends the answer. A paused turn arrives here only if it
# was paused too often: it is incomplete.
_STOPS: Final[Mapping[str, Literal["end", "length"]]] = {
    "max_tokens": "length",
    "pause_turn": "length",
    "model_context_window_exceeded": "length",
}


@dataclass(frozen=True, slots=True)
class ContentBlocks:
    """`AssistantTurn.raw` of each adapter: the content blocks as they came, and the model that made them."""

    blocks: tuple[Block, ...]
    model: str

    def sent_to(self, model: str) -> Sequence[Block]:
        """The blocks for a model. Another one can't read thoughts, nor what a server added to calls."""
        if model == self.model:
            return self.blocks
        kept = (block for block in self.blocks if block.get("type") not in THOUGHTS)
        return [{key: value for key, value in block.items() if key != "extra"} for block in kept]


def in_words(schema: Mapping[str, object]) -> str:
    """A JSON schema as text for the prompt, for servers that may ignore the parameter."""
    return (
        "Answer with exactly one JSON object and nothing else: no prose, no code fence. "
        f"It follows this JSON schema:\n{json.dumps(schema, ensure_ascii=False)}"
    )


def given(turns: Sequence[Turn]) -> str:
    """The text that people and tools gave the model to read."""
    texts = [turn.text for turn in turns if isinstance(turn, UserTurn)]
    texts += [one.text for turn in turns if isinstance(turn, ToolTurn) for one in turn.results]
    return "\n".join(texts)


def bounded(max_tokens: int) -> int:
    """`max_tokens`, limited to what may be requested."""
    return max(1, min(max_tokens, MAX_TOKENS))


def more(max_tokens: int) -> int:
    """The room for a second try, after an answer that was cut off."""
    return bounded(max(2 * max_tokens, max_tokens + LEAST_MORE))


def structured(done: Finished, shape: type[Shape]) -> Shape:
    """The answer to a structured request, read strictly.

    Raises ModelCut, ModelEmpty or ModelBadOutput.
    """
    if done.stop == "length":
        raise ModelCut("the structured answer was cut off at its length limit")
    if done.turn.calls:
        raise ModelBadOutput("the answer calls a tool, where none is offered")
    if not done.turn.text.strip():
        raise ModelEmpty("the structured answer has no text")
    return checked(done.turn.text, shape)


def corrected(prompt: str, answer: AssistantTurn, fault: str) -> tuple[Turn, ...]:
    """The request for another answer, with the fault of the first one.

    A call of a tool that was never offered cannot be sent back: then there is only the fault.
    """
    asked = UserTurn(f"That was not accepted: {fault}. Answer again with exactly one JSON object, whole.")
    return (UserTurn(prompt), asked) if answer.calls else (UserTurn(prompt), answer, asked)


def finished(message: Message, model: str, heard: Speech | None = None, *, cut: bool = False) -> Finished:
    """The complete message of `model` as the last event of a stream.

    `heard`: what its text says, if that may not be all. `cut`: it was longer than it may be, and the rest was
    not read. Raises ModelRefused when the model declined, ModelTooLong when its context was full before it
    had said anything, and ModelBadOutput when there is no part of an answer in it.
    """
    reason = "max_tokens" if cut else message.stop_reason
    if reason == "refusal":
        detail = message.stop_details
        why = detail.get("explanation") or detail.get("category")
        raise ModelRefused(f"the model declined: {why or 'no reason given'}")
    stop = _STOPS.get(reason or "", "end")
    blocks = _repaired(message.blocks if heard is None else _as_heard(message.blocks, heard))
    if reason is None and (message.odd or not blocks):
        raise ModelBadOutput("the server left out parts of an answer, and why it ends")
    if stop == "length" and reason != "pause_turn":
        # The last call may be cut off in the middle of its input. None is made: the turn ends here.
        blocks = tuple(block for block in blocks if block.get("type") != "tool_use")
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    if reason == "model_context_window_exceeded" and not text.strip():
        raise ModelTooLong("the answer reached the end of the model's context window")
    calls = tuple(
        ToolCall(str(block["id"]), str(block["name"]), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    raw = ContentBlocks(tuple(sendable(block) for block in blocks), model)
    return Finished(AssistantTurn(text, calls, raw), "tools" if calls else stop, usage_of(message.usage))


def paused(message: Message) -> bool:
    """Whether the server paused the turn: sent back as it is, it goes on."""
    calls = any(block.get("type") == "tool_use" for block in message.blocks)
    return message.stop_reason == "pause_turn" and not calls


def _as_heard(blocks: Sequence[Block], heard: Speech) -> Iterable[Block]:
    """The blocks as a server that understands its model would send them: thoughts, speech, calls."""
    yield from (block for block in blocks if block.get("type") in THOUGHTS)
    if heard.text:
        yield {"type": "text", "text": heard.text}
    yield from (block for block in blocks if block.get("type") not in ("text", *THOUGHTS))
    for call in heard.calls:
        yield {"type": "tool_use", "name": call.name, "input": call.input}


def joined(parts: Sequence[Finished]) -> Finished:
    """The parts of one answer, which was paused in between, as one event."""
    if len(parts) == 1:
        return parts[0]
    raws = [part.turn.raw for part in parts if isinstance(part.turn.raw, ContentBlocks)]
    blocks = tuple(block for raw in raws for block in raw.blocks)
    text = "".join(part.turn.text for part in parts)
    turn = AssistantTurn(text, parts[-1].turn.calls, ContentBlocks(blocks, raws[-1].model))
    return Finished(turn, parts[-1].stop, sum((part.usage for part in parts), Usage()))


def _repaired(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks, each call with a name and an id of its own: without them its result finds no way back."""
    repaired: list[Block] = []
    taken: set[str] = set()
    for block in blocks:
        if block.get("type") == "tool_use":
            given, name = _word(block.get("id")), _word(block.get("name"))
            call_id = (
                given if given and given not in taken else uuid4().hex[:9]
            )  # Mistral's templates take no other form
            taken.add(call_id)
            block = {**block, "id": call_id, "name": name or "unnamed"}
        repaired.append(block)
    return tuple(repaired)


def _word(value: object) -> str:
    return scrub(value) if isinstance(value, str) and value.strip() else ""


def sendable(block: Block) -> Block:
    """The block as it goes back: as it came, but the API accepts no call whose input isn't an object."""
    if block.get("type") != "tool_use" or isinstance(block.get("input"), Mapping):
        return block
    return {**block, "input": {}}


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The server's counts, 0 where it leaves them out, as local ones do."""

    def count(name: str, of: object = usage) -> int:
        value = of.get(name) if isinstance(of, Mapping) else None
        return value if isinstance(value, int) and 0 < value < MOST_COUNTED else 0

    return Usage(
        count("input_tokens"),
        count("output_tokens"),
        count("cache_read_input_tokens"),
        count("cache_creation_input_tokens"),
        count("web_search_requests", usage.get("server_tool_use")),
    )
