"""A wrapper around a model that repeats an answer when exactly the same was asked. Off by default.

"The same" covers everything the model would read: its name, the system prompt, memory, the recent talk, the
sender, the place, the message. Only the minute in the sender's section is left out, since no two questions
would ever be equal with it. The date and the hour count, so an answer never states the wrong hour. Only
complete answers to a single prompt are stored, and none with tool calls: those changed something, or rest on
what may change. None about a picture or document either, which the key would have to cover. A request that
names no subject is not stored, and an answer is never reused for another person.

A slow or full disk never delays an answer. Independent of the wrapped model.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from discoclaw.core import titles
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    UserTurn,
)
from discoclaw.core.ports import Clock, Model, WrappedModel
from discoclaw.memory.conversations.responses import Response, Responses

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_WAIT_S = 1.0
"""The longest an answer waits for a lookup on disk."""
CLOSE_WAIT_S = 2.0
MOST_WAITING = 32
"""How many lookups and writes may wait for a slow disk; further ones are skipped."""

_BEFORE_MESSAGE = f"{titles.SEPARATOR}{titles.MESSAGE}\n"
# No quoted text has a title in the first column.
_MINUTE = re.compile(rf"({re.escape(titles.SEPARATOR + titles.NOW)}\n- now: \w{{3}} \S+ \d\d):\d\d(?= \(UTC)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose answer may be stored: its subject, its key, and a proof against key collisions."""

    subject: str
    key: str
    sha256: str


def asked(name: str, request: ModelRequest) -> Asked | None:
    """The question a request asks a model of this name; None if its answer must not be stored.

    The key has 64 bits and is not secret, so anybody can construct a message that collides with another one.
    Therefore the SHA-256 of everything is compared too, encoded so that no part can pass for its neighbour's.
    """
    match request.turns:
        case (UserTurn(text, media=()),) if request.subject is not None:
            before, _, message = text.rpartition(_BEFORE_MESSAGE)
        case _:
            return None
    context = [*(block.text for block in request.system), _MINUTE.sub(r"\1", before, count=1)]
    how = [request.max_tokens, request.may_call, *(tool.name for tool in request.tools)]
    proof = json.dumps([name, context, message, how]).encode()
    key = response_key(name, "\n\n".join(context), message)
    return Asked(request.subject, key, hashlib.sha256(proof).hexdigest())


class CachingModel(WrappedModel):
    """The `Model` port: `model` behind a cache of its answers. Requests that name no model mean `name`."""

    def __init__(self, model: Model, name: str, responses: Responses, *, clock: Clock) -> None:
        super().__init__(model)
        self._name = name
        self._responses = responses
        self._clock = clock
        self._one = asyncio.Lock()  # a hanging disk then blocks one thread
        self._late: asyncio.Task[Any] | None = None  # a look that came too late; while it lasts, nobody waits
        self._tasks: set[asyncio.Task[Any]] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the cached answer in one piece and at no cost, or else what the model says."""
        began = self._clock()  # an answer is as old as the memory it was made from, not as its last token
        question, known = await self._look(request)
        if known is not None:
            yield TextDelta(known)
            yield Finished(AssistantTurn(known), "end")
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if question is not None and isinstance(event, Finished):
                    self._keep(question, event, began, request.model or self._name)
                yield event

    async def settle(self) -> None:
        """Wait until all answers are stored."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Close the model, after a moment for answers that are not on disk yet."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_WAIT_S)
        await self._model.close()

    async def _look(self, request: ModelRequest) -> tuple[Asked | None, str | None]:
        """The question, if its answer may be stored, and that answer, if it is found in time."""
        if request.subject is None or len(request.turns) != 1 or len(self._tasks) >= MOST_WAITING:
            return None, None
        if self._late is not None and not self._late.done():
            return None, None
        task = self._begin(self._find(request))
        await asyncio.wait([task], timeout=LOOK_WAIT_S)
        if not task.done():
            log.warning("answering without the cache: the disk does not answer")
            self._late = task
            return None, None
        return task.result()

    async def _find(self, request: ModelRequest) -> tuple[Asked | None, str | None]:
        question = await asyncio.to_thread(asked, request.model or self._name, request)
        if question is None:
            return None, None
        async with self._one:
            known = await self._responses.get(question.subject, question.key, question.sha256)
        if known is not None:
            log.debug("%s: answered from the cache", question.subject)
        return question, known

    def _keep(self, question: Asked, finished: Finished, began: int, name: str) -> None:
        """Store an answer of the usual model in the background, if it is complete and needs no context."""
        text = finished.turn.text
        if finished.stop != "end" or finished.turn.calls or not text.strip() or finished.less is not None:
            return
        if len(self._tasks) >= MOST_WAITING:
            log.debug("%s: an answer is not kept, the disk is slow", question.subject)
            return
        entry = Response(question.key, question.sha256, name, text, began, self._clock())

        async def put() -> None:
            async with self._one:
                await self._responses.put(question.subject, entry)

        self._begin(put())

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


# FNV-1a with 64 bits: a short, portable hash for cache keys.

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def fnv1a64(data: bytes) -> str:
    """The hash of `data` as 16 lower-case hex digits."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return f"{value:016x}"


def response_key(model: str, context: str, message: str) -> str:
    """The cache key of a response: the hash of model, 0x01, context, 0x01, message, encoded as UTF-8.

    A text that contains 0x01 can produce the key of another triple, so a cache compares the whole prompt too.
    """
    return fnv1a64("\x01".join((model, context, message)).encode("utf-8", "surrogatepass"))
