"""Models behind Anthropic's Messages API, at Anthropic or at another server that speaks it.

`AnthropicProvider` owns one connection pool of the official SDK. `provider.model(name)` is a `Model` over it,
so the chat model and the small ones share connections and key. The SDK does the retries. Knows nothing about
prompts, memory or Discord.

Every wait for the server counts against one deadline per call. The deadline is set around each wait and
not around the whole generator: `asyncio.timeout` cancels the task that entered it, and between two pieces
that task is busy in the caller's code.
"""

import asyncio
import contextlib
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic, Timeout, omit
from anthropic.lib.streaming import AsyncMessageStream
from anthropic.types import MessageParam, OutputConfigParam, TextBlockParam, ToolParam

from discoclaw.core.errors import ModelBadOutput, ModelError, ModelTimeout, ModelUnreachable
from discoclaw.core.model import (
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    SystemBlock,
    TextDelta,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.core.text import scrub
from discoclaw.models.anthropic import wire
from discoclaw.models.anthropic.aliases import resolve
from discoclaw.models.anthropic.errors import translated
from discoclaw.models.structured import MAX_ANSWER, checked

log = logging.getLogger(__name__)

ANTHROPIC_URL = "https://api.anthropic.com"
DUMMY_KEY = "no-key"
"""Sent when no key is set: the SDK insists on one, and local servers ignore it."""

MOST_PAUSES = 5
"""How often one answer goes on after the server has paused it."""
MOST_INPUT = 50_000
"""Longest input of the tool calls of one answer, in characters. An honest one doesn't come near it."""

_DRAIN_S = 0.2
"""How long to wait for the end of a body that is already complete, in seconds."""


class AnthropicProvider:
    """One connection pool to one server.

    The SDK fills every credential and address that is None from the environment. So each gets a value here:
    only `settings.py` reads the environment. Raises ModelNotFound when `base_url` can't be parsed.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
    ) -> None:
        key = api_key or DUMMY_KEY
        self.secret = api_key or ""
        self.connect_timeout_s = connect_timeout_s
        self.speaks_schema = base_url is None or base_url.rstrip("/") == ANTHROPIC_URL
        """Whether the server is known to enforce a JSON schema; others also get it in the prompt."""
        with translated(self.secret):
            self.sdk = AsyncAnthropic(
                api_key=key,
                base_url=base_url or ANTHROPIC_URL,
                max_retries=max_retries,
                # The SDK always reads ANTHROPIC_CUSTOM_HEADERS; it must not replace the key.
                default_headers={"Authorization": f"Bearer {key}"},
                # Off, because environment variables could otherwise make the SDK export prompts.
                open_telemetry=False,
            )

    def model(
        self, name: str, *, total_timeout_s: float = 180.0, temperature: float | None = None
    ) -> "AnthropicModel":
        """The model `name` (an alias or any id). `total_timeout_s` is for a whole call, retries included."""
        return AnthropicModel(self, resolve(name), total_timeout_s=total_timeout_s, temperature=temperature)

    async def close(self) -> None:
        """Close all connections. Running calls fail with ModelUnreachable. May be called again."""
        await self.sdk.close()


class AnthropicModel:
    """The port `Model` over one `AnthropicProvider`, which makes it."""

    def __init__(
        self, provider: AnthropicProvider, name: str, *, total_timeout_s: float, temperature: float | None
    ) -> None:
        self.name = name
        self._provider = provider
        self._total_timeout_s = total_timeout_s
        self._temperature = temperature

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield `TextDelta`s and, last, one `Finished`. Closing the generator closes the connection.

        An answer that the server pauses, as it does while its own tools work, is sent back to be continued.
        Raises ModelError.
        """
        limit = self._limit()
        turns, parts, paused = request.turns, list[Finished](), True
        while paused and len(parts) <= MOST_PAUSES:
            async with self._ask(
                limit,
                system=wire.system_param(request.system),
                messages=wire.messages_param(turns),
                tools=wire.tools_param(request.tools),
                max_tokens=request.max_tokens,
                may_call=request.may_call,
            ) as answer:
                while (piece := await answer.piece()) is not None:
                    yield TextDelta(piece)
            part, paused = answer.finished()
            parts.append(part)
            turns = (*turns, part.turn)
        yield wire.joined(parts)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """One answer, read strictly as `shape`. Raises ModelError.

        It is streamed only so that an endless answer can be stopped early.
        """
        blocks = [SystemBlock(system)]
        if not self._provider.speaks_schema:
            blocks.append(SystemBlock(wire.output_in_words(shape)))
        size = 0
        async with self._ask(
            self._limit(),
            system=wire.system_param(blocks),
            messages=wire.messages_param([UserTurn(prompt)]),
            max_tokens=max_tokens,
            output=wire.output_param(shape),
        ) as answer:
            while (piece := await answer.piece()) is not None:
                size += len(piece)
                if size > MAX_ANSWER:
                    raise ModelBadOutput(f"the structured answer is longer than {MAX_ANSWER} characters")
        done, _ = answer.finished()
        if done.stop != "end":
            raise ModelBadOutput(f"the structured answer is incomplete (stop: {done.stop})")
        return checked(done.turn.text, shape)

    async def close(self) -> None:
        """Close the provider and with it all its models."""
        await self._provider.close()

    def _limit(self) -> "_Limit":
        return _Limit(self._total_timeout_s, self._provider.secret)

    @asynccontextmanager
    async def _ask(
        self,
        limit: "_Limit",
        *,
        system: list[TextBlockParam],
        messages: list[MessageParam],
        max_tokens: int,
        tools: list[ToolParam] | None = None,
        may_call: bool = True,
        output: OutputConfigParam | None = None,
    ) -> AsyncIterator["_Answer"]:
        """Send one request. The answer is open inside the block and always closed after it."""
        extra: dict[str, object] | None = None
        if self._temperature is not None:
            # The SDK dropped this parameter: current models reject it, but local servers still use it.
            extra = {"temperature": self._temperature}
        async with contextlib.AsyncExitStack() as stack:
            async with limit.wait():
                with _logged_warnings():
                    call = self._provider.sdk.messages.stream(
                        model=self.name,
                        max_tokens=wire.bounded(max_tokens),
                        system=system or omit,
                        messages=messages,
                        tools=tools or omit,
                        # The tools stay in the request: what was sent before must not change.
                        tool_choice={"type": "none"} if tools and not may_call else omit,
                        output_config=output or omit,
                        extra_body=extra,
                        timeout=Timeout(self._total_timeout_s, connect=self._provider.connect_timeout_s),
                    )
                answer = _Answer(await stack.enter_async_context(call), limit)
            yield answer


class _Limit:
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


class _Answer:
    """An answer while it arrives: pieces of text, then the whole message."""

    def __init__(self, stream: AsyncMessageStream[Any], limit: _Limit) -> None:
        self._stream = stream
        self._limit = limit
        self._in_call = False
        self._input_size = 0
        self._garbled = False

    async def piece(self) -> str | None:
        """The next piece of text, or None when the answer is complete.

        Raises ModelUnreachable when the stream ends without the server's end mark: nothing else tells half an
        answer from a whole one.
        """
        while True:
            try:
                async with self._limit.wait():
                    event = await anext(self._stream, None)
                    if event is None:
                        raise ModelUnreachable("the stream broke off before the answer was complete")
                    if event.type == "text" and event.text:
                        return scrub(event.text)
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

    def finished(self) -> tuple[Finished, bool]:
        """The whole answer, once `piece` has returned None, and whether it is only paused.

        Raises ModelError.
        """
        with self._limit.translated():
            message = self._stream.current_message_snapshot
            return wire.finished(message, garbled=self._garbled), wire.paused(message)

    async def _drain(self) -> None:
        """Read to the end of the body: only then can the pool reuse the connection.

        The answer is complete, so a failure here costs the connection and nothing else.
        """
        with contextlib.suppress(TimeoutError, ModelError):
            async with asyncio.timeout(_DRAIN_S):
                with translated():
                    await anext(self._stream, None)


@contextlib.contextmanager
def _logged_warnings() -> Iterator[None]:
    """Log the SDK's warnings about models near their end of life, which a filter could turn into errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        log.warning("%s", warning.message)
