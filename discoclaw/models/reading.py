"""Reads one answer while it arrives, within a deadline. Sends nothing, and knows no server.

An adapter's `Events` are what its server sends, as events of the Messages API (`models/message`).
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import httpx2

from discoclaw.core.errors import ModelBadOutput, ModelError, ModelTimeout, ModelUnreachable
from discoclaw.core.model import Finished, Turn, Usage
from discoclaw.core.usage import CHARS_A_TOKEN
from discoclaw.models import finishing
from discoclaw.models.failing import Failures
from discoclaw.models.message import Message
from discoclaw.models.speech import Hearing, Speech, meant

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
                heard = Speech("".join(self._said), meant(self._hearing.calls, finishing.given(turns)))
            done = finishing.finished(self._message, model, heard, cut=self._cut)
            return done, finishing.paused(self._message)

    @property
    def usage(self) -> tuple[Usage, bool]:
        """The server's counts so far, and whether it counted to the end.

        It counts once more at the end. If it doesn't, the tokens that arrived are estimated.
        """
        counted = finishing.usage_of(self._message.usage)
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


async def bounded(response: httpx2.Response) -> None:
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
        raise ValueError("an event is no JSON object")
    return value
