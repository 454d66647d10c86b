"""Reads one answer while it arrives, within a deadline. Sends nothing, and knows no server.

An adapter's `Events` are what its server sends, as events of the Messages API.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

import httpx2
from pydantic_core import from_json

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.core.model import AssistantTurn, Finished, ToolCall, ToolTurn, Turn, Usage, UserTurn
from discoclaw.core.ports import Shape
from discoclaw.core.text import scrub
from discoclaw.core.usage import CHARS_A_TOKEN
from discoclaw.models.failing import Failures
from discoclaw.models.speech import Hearing, Speech, meant
from discoclaw.models.structured import checked

# ----------------------------------------------------------------------
# Puts an answer together from what a server sends, as events of the Messages API. Pure, and lenient.

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
            self.usage |= _counts(_message_object(event.get("message")))
        elif kind == "content_block_start":
            return self._begin(event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            return self._add(event.get("index"), _message_object(event.get("delta")))
        elif kind in ("message_delta", "message_stop"):
            self._end(event, _message_object(event.get("delta")))
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
                    raise ValueError(f"the {field} of a delta isn't a text")
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


def _message_object(value: object) -> Mapping[str, Any]:
    """The JSON object that belongs to an answer. Raises ValueError if it is none."""
    if value is not None and not isinstance(value, dict):
        raise ValueError("a part of an event isn't a JSON object")
    return _dict(value)


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _counts(of: Mapping[str, Any]) -> dict[str, Any]:
    usage = _dict(of.get("usage"))
    return {name: value for name, value in usage.items() if value and isinstance(value, int | dict)}


def _place(index: object) -> int | None:
    return index if isinstance(index, int) else None


Json: TypeAlias = dict[str, Any]
Events: TypeAlias = AsyncIterator[Mapping[str, Any]]
"""Raises ValueError for nonsense, and the SDK's error for one that the server sends."""

MOST_INPUT = 50_000
"""Longest input of the tool calls of one answer, in characters. An honest one doesn't come near it."""
MOST_ANSWER = 500_000
"""Longest answer, in characters, with its thoughts: more than any server may be asked for."""

MOST_BLOCKS = 1_000
"""Most blocks of one answer, of which each call is one, however short."""
MOST_HELD = 4_000_000
"""Longest event of a stream that is read, or body of another kind, in bytes."""

BROKE_OFF = "The model's answer broke off before its end. Please try again in a minute."

BYTES_A_TOKEN = 5
"""More than a token of Claude's has in any usual text, so that only what is clearly too long is cut off."""

_HELD = "held"  # by a response: bytes since its last event
_DRAIN_S = 0.2
"""How long to wait for the end of a body that is already complete, in seconds."""


class Limit:
    """The deadline of one call. Failures inside `wait` leave as `ModelError`s without `secret`."""

    def __init__(self, seconds: float, failures: Failures, secret: str) -> None:
        self._seconds = seconds
        self._failures = failures
        self._secret = secret
        self._deadline = asyncio.get_running_loop().time() + seconds

    @asynccontextmanager
    async def wait(self) -> AsyncIterator[None]:
        """Surrounds one wait for the server."""
        try:
            async with asyncio.timeout_at(self._deadline):
                with self.translated():
                    yield
        except TimeoutError:
            raise ModelTimeout(f"no complete answer within {self._seconds:g} s") from None

    def translated(self) -> contextlib.AbstractContextManager[None]:
        """Surrounds what reads an answer without waiting."""
        return self._failures.translated(self._secret)


class Answer:
    """An answer while it arrives: pieces of what is said, then the whole message.

    Its text may take `own` tokens: a limit that the server doesn't know where it counts thinking too. With
    `hearing`, its text may hold thoughts and calls too; without, all of it is said.
    """

    def __init__(
        self, events: Events, limit: Limit, own: int | None = None, hearing: Hearing | None = None
    ) -> None:
        self._events = events
        self._limit = limit
        self._left = own * BYTES_A_TOKEN if own is not None else None
        self._hearing = hearing
        self._message = Message()
        self._said: list[str] = []
        self._over = self._cut = False

    async def piece(self) -> str | None:
        """The next piece of what is said, or None when the answer is complete.

        If `anew` is set then, it takes the place of all before it. Raises ModelError: ModelUnreachable when
        the answer ends before the server has said why, since nothing else tells half an answer from a whole
        one.
        """
        while not (self._over or self._cut):
            event = await self._next()
            self._cut = self._message.size > MOST_ANSWER or self._message.count > MOST_BLOCKS
            if event is None or self._cut or self._message.input_size > MOST_INPUT:
                self._over = True
                piece = self._hearing.end() if self._hearing is not None else ""
            else:
                with self._limit.translated():
                    text = self._message.take(event)
                piece = self._hearing.feed(text) if self._hearing is not None else text
            if self.anew:
                self._said.clear()
            if piece or self.anew:
                self._said.append(piece)
                return self._counted(piece)
        return None

    @property
    def anew(self) -> bool:
        """Whether all that was said before the last piece turned out to be a thought."""
        return self._hearing is not None and self._hearing.anew

    def finished(self, model: str, turns: Sequence[Turn]) -> tuple[Finished, bool]:
        """The whole answer of `model` to these turns, once `piece` has returned None; is it only paused?

        Raises ModelError.
        """
        with self._limit.translated():
            heard = None
            if self._hearing is not None:
                heard = Speech("".join(self._said), meant(self._hearing.calls, given(turns)))
            done = finished(self._message, model, heard, cut=self._cut)
            return done, paused(self._message)

    @property
    def usage(self) -> tuple[Usage, bool]:
        """The server's counts so far, and whether it counted to the end.

        It counts once more at the end. If it doesn't, the tokens that arrived are estimated.
        """
        counted = usage_of(self._message.usage)
        if self._message.counted or counted == Usage():
            return counted, True
        arrived = -(-self._message.size // CHARS_A_TOKEN)
        return replace(counted, output_tokens=max(counted.output_tokens, arrived)), False

    async def _next(self) -> Mapping[str, Any] | None:
        """The next event; None after the last one.

        Once the answer is complete, only a moment is waited for what else there is: the pool can reuse the
        connection only if the body was read to its end. A failure costs no more than that.
        """
        if self._message.ended:
            with contextlib.suppress(TimeoutError, ModelError):
                async with asyncio.timeout(_DRAIN_S):
                    with self._limit.translated():
                        async for late in self._events:
                            if late["type"] == "message_delta":  # some count only now
                                self._message.take(late)
            return None
        try:
            async with self._limit.wait():
                event = await anext(self._events, None)
            if event is None and (self._message.odd or self._message.began is False):
                raise ModelBadOutput("the server sent only parts of an answer, or none")
            if event is None:
                raise ModelUnreachable("the answer broke off before its end")
            return event
        except ModelUnreachable as error:
            if self._message.began:
                error.user_message = BROKE_OFF
            raise

    def _counted(self, text: str) -> str:
        """A piece of text; the last one if the answer's own room is full."""
        if self._left is not None:
            self._left -= len(text.encode())
            self._cut = self._left <= 0
        return text


async def limit_body(response: httpx2.Response) -> None:
    """A hook of an SDK's HTTP client, for each response: no more of it is held in RAM than `MOST_HELD`."""
    read, response.extensions[_HELD] = response.aiter_bytes, 0

    async def chunks(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        async with aclosing(read(chunk_size)) as pieces:
            async for piece in pieces:
                response.extensions[_HELD] += len(piece)
                if response.extensions[_HELD] > MOST_HELD:
                    raise ValueError(f"the server sends more than {MOST_HELD:,} bytes at once")
                yield piece

    response.aiter_bytes = chunks  # type: ignore[method-assign]


async def parsed(response: httpx2.Response, split: AsyncIterator[Any]) -> AsyncIterator[tuple[str, Json]]:
    """Parts of an answer, each with its name: events, "done" at a mark of the end, or "whole", one JSON.

    `split` are the events of the response, as an SDK splits them. Raises ValueError for anything else.
    """
    kind = response.headers.get("content-type", "")
    if "json" in kind:
        yield "whole", _object(json.loads(await response.aread()))
        return
    silent = "event-stream" not in kind
    async for sent in split:
        response.extensions[_HELD] = 0
        if (data := sent.data.strip()) and sent.event != "ping":
            yield ("done", {}) if data == "[DONE]" else (sent.event or "message", _object(json.loads(data)))
            silent = False
    if silent:
        raise ValueError(f"the server sent no events, but {kind or 'something unnamed'}")


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise ValueError("an event isn't a JSON object")
    return value


# ----------------------------------------------------------------------
# The result of a complete answer: the last event of a stream, or a value of a shape. Pure; knows no server.

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
