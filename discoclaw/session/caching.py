"""A model around a model, that gives an answer again where just the same was asked. Off unless wanted.

"The same" is everything the model would read: its name, the system prompt, memory, the recent talk, the
sender, the place, the message. One part of it is left out, the minute in the sender's section: with it no
two questions would be the same. The date and the hour stay in, so that an answer is never of another hour
than it says. Only whole answers to a single prompt are kept, those without tools: an answer that came with
calls has changed something, or rests on what may change. Nothing is kept where the request does not say
whose talk it is, and nobody is given what was answered to somebody else.

Neither a disk that hangs nor one that is full holds up an answer. Knows nothing about the model inside.
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
from discoclaw.core.fnv import response_key
from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, TextDelta, UserTurn
from discoclaw.core.ports import Clock, Model, Shape
from discoclaw.memory.conversations.responses import Response, Responses
from discoclaw.memory.disk.files import in_thread

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_WAIT_S = 1.0
"""No answer waits longer for a disk that might have it."""
CLOSE_WAIT_S = 2.0
MOST_WAITING = 32
"""So many questions and answers may wait for a slow disk; further ones are neither looked up nor kept."""

_BEFORE_MESSAGE = f"{titles.SEPARATOR}{titles.MESSAGE}\n"
# The sender's section is the first, its lines are ours, and a name is one line: see `prompt/assemble`.
_MINUTE = re.compile(
    rf"\A({re.escape(titles.SENDER)}\n- name: .*\n- owner: .*\n- time: \S{{13}}):\d\dZ$", re.M
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose answer may be kept: of whom, its key, and the proof that two of one key are one."""

    subject: str
    key: str
    sha256: str


def asked(name: str, request: ModelRequest) -> Asked | None:
    """What a model of this name is asked; None where the answer is not to be kept.

    The key has 64 bits and is no secret: whoever wants finds a message with the key of another one. So the
    SHA-256 of everything counts as well, written so that no part can pass for a piece of its neighbour.
    """
    match request.turns:
        case (UserTurn(text),) if request.subject is not None:
            before, _, message = text.rpartition(_BEFORE_MESSAGE)
        case _:
            return None
    context = [*(block.text for block in request.system), _MINUTE.sub(r"\1Z", before)]
    how = [request.max_tokens, request.may_call, *(tool.name for tool in request.tools)]
    proof = json.dumps([name, context, message, how]).encode()
    key = response_key(name, "\n\n".join(context), message)
    return Asked(request.subject, key, hashlib.sha256(proof).hexdigest())


class CachingModel:
    """The port `Model`: `model`, called `name`, behind what it answered before."""

    def __init__(self, model: Model, name: str, responses: Responses, *, clock: Clock) -> None:
        self._model = model
        self._name = name
        self._responses = responses
        self._clock = clock
        self._one = asyncio.Lock()  # so that a disk that hangs takes one thread, and not all there are
        self._tasks: set[asyncio.Task[Any]] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer that is known, as one piece and without cost, or what the model says."""
        began = self._clock()  # what counts is what it was asked from, not when it was done
        question, known = await self._look(request)
        if known is not None:
            yield TextDelta(known)
            yield Finished(AssistantTurn(known), "end")
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if question is not None and isinstance(event, Finished):
                    self._keep(question, event, began)
                yield event

    async def structured(
        self, *, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """As the model has it: what the loops ask is never asked twice."""
        return await self._model.structured(system=system, prompt=prompt, shape=shape, max_tokens=max_tokens)

    async def settle(self) -> None:
        """Wait until all answers are kept."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Close the model, after a moment for what is not on disk yet."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_WAIT_S)
        await self._model.close()

    async def _look(self, request: ModelRequest) -> tuple[Asked | None, str | None]:
        """What is asked, if it can be kept, and the answer to it, if that is known soon."""
        if request.subject is None or len(request.turns) != 1 or len(self._tasks) >= MOST_WAITING:
            return None, None
        task = self._begin(self._find(request))
        await asyncio.wait([task], timeout=LOOK_WAIT_S)
        if not task.done():
            log.warning("answering without the cache: the disk does not answer")
            return None, None
        return task.result()

    async def _find(self, request: ModelRequest) -> tuple[Asked | None, str | None]:
        question = await asyncio.to_thread(asked, self._name, request)
        if question is None:
            return None, None
        async with self._one:
            known = await in_thread(self._responses.get, question.subject, question.key, question.sha256)
        if known is not None:
            log.debug("%s: answered from the cache", question.subject)
        return question, known

    def _keep(self, question: Asked, finished: Finished, began: int) -> None:
        """Keep an answer, later; if it is one that can stand for itself."""
        text = finished.turn.text
        if finished.stop != "end" or finished.turn.calls or not text.strip():
            return
        if len(self._tasks) >= MOST_WAITING:
            log.debug("%s: an answer is not kept, the disk is slow", question.subject)
            return
        entry = Response(question.key, question.sha256, self._name, text, began, self._clock())
        self._begin(self._put(question.subject, entry))

    async def _put(self, subject: str, entry: Response) -> None:
        async with self._one:
            await in_thread(self._responses.put, subject, entry)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
