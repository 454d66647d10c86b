"""Reads one answer of the Messages API while it arrives, within a deadline. Sends nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from anthropic.lib.streaming import AsyncMessageStream

from discoclaw.core.errors import ModelError, ModelTimeout, ModelUnreachable
from discoclaw.core.model import Finished, Usage
from discoclaw.core.text import scrub
from discoclaw.core.usage import CHARS_A_TOKEN
from discoclaw.models.anthropic import wire
from discoclaw.models.anthropic.errors import translated

MOST_INPUT = 50_000
"""Longest input of the tool calls of one answer, in characters. An honest one doesn't come near it."""

BYTES_A_TOKEN = 5
"""More than a token of Claude's has in any usual text, so that only what is clearly too long is cut off."""

_DRAIN_S = 0.2
"""How long to wait for the end of a body that is already complete, in seconds."""


class Limit:
    """The deadline of one call. Failures inside `wait` leave as `ModelError`s without `secret`."""

    def __init__(self, seconds: float, secret: str) -> None:
        self._seconds = seconds
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
        return translated(self._secret)


class Answer:
    """An answer while it arrives: pieces of text, then the whole message.

    Its text may take `own` tokens: a limit that the server doesn't know where it counts thinking too.
    """

    def __init__(self, stream: AsyncMessageStream[Any], limit: Limit, own: int | None = None) -> None:
        self._stream = stream
        self._limit = limit
        self._left = own * BYTES_A_TOKEN if own is not None else None
        self._in_call = False
        self._input_size = 0
        self._garbled = False
        self._cut = False
        self._size = 0
        self._counted_to_end = False

    async def piece(self) -> str | None:
        """The next piece of text, or None when the answer is complete.

        Raises ModelUnreachable when the stream ends without the server's end mark: nothing else tells half an
        answer from a whole one.
        """
        while not self._cut:
            try:
                async with self._limit.wait():
                    event = await anext(self._stream, None)
                    if event is None:
                        raise ModelUnreachable("the stream broke off before the answer was complete")
                    self._note(event)
                    if event.type == "text" and event.text:
                        return self._counted(scrub(event.text))
                    if event.type == "content_block_start":
                        self._in_call = event.content_block.type == "tool_use"
                    elif event.type == "input_json":
                        self._input_size += len(event.partial_json)
            except ModelError as error:
                # The SDK reads inputs as they come, and gives up on one that is not JSON. What the model said
                # before is worth keeping, and it can call again.
                if not self._in_call or not isinstance(error.__cause__, ValueError):
                    raise
                self._garbled = True
                return None
            if self._input_size > MOST_INPUT:
                self._garbled = True
                return None
            if event.type == "message_stop":
                await self._drain()
                return None
        return None

    def finished(self, model: str) -> tuple[Finished, bool]:
        """The whole answer of `model`, once `piece` has returned None, and whether it is only paused.

        Raises ModelError.
        """
        with self._limit.translated():
            message = self._stream.current_message_snapshot
            done = wire.finished(message, model, garbled=self._garbled, cut=self._cut)
            return done, wire.paused(message)

    @property
    def usage(self) -> tuple[Usage, bool]:
        """What the server counted so far, and whether it counted to the end.

        It counts once more at the end. If the answer broke off, the tokens that arrived are estimated.
        """
        try:
            counted = wire.usage_of(getattr(self._stream.current_message_snapshot, "usage", None))
        except AssertionError:  # the SDK's, as long as the server has said nothing
            return Usage(), True
        if self._counted_to_end:
            return counted, True
        arrived = -(-self._size // CHARS_A_TOKEN)
        return replace(counted, output_tokens=max(counted.output_tokens, arrived)), False

    def _note(self, event: Any) -> None:
        """Note how much of the answer has arrived."""
        if event.type == "message_delta":
            self._counted_to_end = True
        elif event.type == "content_block_delta":
            delta = event.delta
            self._size += sum(
                len(getattr(delta, name, None) or "") for name in ("text", "thinking", "partial_json")
            )

    def _counted(self, text: str) -> str:
        """A piece of text; the last one if the answer's own room is full."""
        if self._left is not None:
            self._left -= len(text.encode())
            self._cut = self._left <= 0
        return text

    async def _drain(self) -> None:
        """Read to the end of the body: only then can the pool reuse the connection.

        The answer is complete, so a failure here costs the connection and nothing else.
        """
        with contextlib.suppress(TimeoutError, ModelError):
            async with asyncio.timeout(_DRAIN_S):
                with translated():
                    await anext(self._stream, None)
