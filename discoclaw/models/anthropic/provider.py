"""Models behind Anthropic's Messages API, at Anthropic or at another server that speaks it.

`AnthropicProvider` owns one connection pool of the official SDK. `provider.model(name)` is a `Model` over it,
so the chat model and the small ones share connections and key. The SDK does the retries. Knows nothing about
prompts, memory or Discord.

Every wait for the server counts against one deadline per call. The deadline is set around each wait and
not around the whole generator: `asyncio.timeout` cancels the task that entered it, and between two pieces
that task is busy in the caller's code.
"""

import contextlib
import logging
import ssl
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial

import httpx2
from anthropic import DefaultAsyncHttpxClient, Timeout, omit
from anthropic.types import OutputConfigParam
from pydantic import BaseModel

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelNotFound,
    ModelTimeout,
    ModelTooLong,
)
from discoclaw.core.health import Finding
from discoclaw.core.model import (
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    SystemBlock,
    TextDelta,
    Turn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.core.usage import used
from discoclaw.models.anthropic import wire
from discoclaw.models.anthropic.body import Client
from discoclaw.models.anthropic.errors import USER_MESSAGES, translated
from discoclaw.models.anthropic.known import effort_for, known, resolve, thinking_room
from discoclaw.models.anthropic.reading import Answer, Limit
from discoclaw.models.anthropic.refused import Refused, asked
from discoclaw.models.speech import Hearing
from discoclaw.models.structured import MAX_ANSWER

log = logging.getLogger(__name__)

ANTHROPIC_URL = "https://api.anthropic.com"
DUMMY_KEY = "no-key"
"""Sent when no key is set: the SDK insists on one, and local servers ignore it."""

MOST_PAUSES = 5
"""How often one answer goes on after the server has paused it."""


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that the SDK trusts. Reading them takes 20 ms, so all providers share them."""
    return httpx2.create_ssl_context()


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
        self.refused: dict[str, Refused] = {}
        """What the server was found not to take, by model."""
        self.connect_timeout_s = connect_timeout_s
        self.is_anthropic = base_url is None or base_url.rstrip("/") == ANTHROPIC_URL
        with translated(self.secret):
            self.sdk = Client(
                api_key=key,
                base_url=base_url or ANTHROPIC_URL,
                max_retries=max_retries,
                # A server that sends us elsewhere would have our key go there, and what people said.
                http_client=DefaultAsyncHttpxClient(verify=_trusted(), follow_redirects=False),
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

    def room_of(self, model: str, purpose: Purpose, own: int) -> int:
        """The tokens to ask for: the answer's own, and what thinking may take beside them."""
        known_model = known(resolve(model)) if self.is_anthropic else None
        return wire.bounded(own + thinking_room(known_model, purpose))

    def left_out(self) -> Iterator[Finding]:
        """What is left out of requests because the server refuses it, and what that costs."""
        for model, refused in self.refused.items():
            yield from refused.findings(model)

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
        self._known = known(name) if provider.is_anthropic else None
        self._enforces_schema = self._known is not None
        """Whether it is known to enforce a JSON schema; otherwise that is also in the prompt."""
        self._thinks_first = False
        """Whether an answer began with a thought, without a mark: the next one waits for a thought's end."""
        self._refused = provider.refused.setdefault(name, Refused(certain=provider.is_anthropic))

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield `TextDelta`s and, last, one `Finished`. Closing the generator closes the connection.

        What a server rejects because of its media or of optional fields is asked again without them, within
        one time limit. Raises ModelError.
        """
        output = self._output(request.purpose)
        stream = partial(self._stream, self._limit(), output)
        return asked(request, self._beside(output), stream, self._refused)

    async def _stream(
        self, limit: Limit, output: OutputConfigParam, request: ModelRequest, out: Collection[str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The answer to one request without the fields that are `out`, as `stream` yields it.

        An answer that the server pauses, as it does while its own tools work, is sent back to be continued.
        One that was cut off before its first word is asked for once more, with more room. Raises ModelError.
        """
        room = self._provider.room_of(self.name, request.purpose, request.max_tokens)
        turns, parts, said = request.turns, list[Finished](), False
        cut: Finished | None = None
        while True:
            try:
                async with self._ask(
                    limit,
                    replace(request, turns=turns, max_tokens=room),
                    output,
                    out,
                    own=request.max_tokens if room > request.max_tokens else None,
                ) as answer:
                    while (piece := await answer.piece()) is not None:
                        said = bool(piece.strip()) or (said and not answer.anew)
                        yield TextDelta(piece, instead=answer.anew)
                    part, paused = answer.finished(self.name, turns)
            except ModelBadRequest:
                if cut is None or said:
                    raise
                part, paused = cut, False  # so much room is more than this model has
            if part.stop == "length" and not (paused or said or cut) and wire.more(room) > room:
                log.info("%s was cut off before its first word; asking again with more room", self.name)
                cut, room = part, wire.more(room)
                continue
            parts.append(part)
            turns = (*turns, part.turn)
            if not paused or len(parts) > MOST_PAUSES:
                break
        yield wire.joined(parts)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """One answer, read strictly as `shape`. Raises ModelError.

        What was cut off or is empty is asked for once more with more room, nonsense once more with its fault
        named, all within one time limit. If that brings no answer either, the first fault is raised.
        """
        blocks = [SystemBlock(system)]
        if not self._enforces_schema:
            blocks.append(SystemBlock(wire.output_in_words(shape)))
        limit, room = self._limit(), self._provider.room_of(self.name, purpose, max_tokens)
        output = self._output(purpose, shape)
        turns: tuple[Turn, ...] = (UserTurn(prompt),)
        first: ModelError | None = None
        widened = corrected = False
        while True:
            try:
                request = ModelRequest(tuple(blocks), turns, max_tokens=room, purpose=purpose)
                read = partial(self._read, limit, output)
                events = asked(request, self._beside(output), read, self._refused)
                (done,) = [one async for one in events if isinstance(one, Finished)]
            except (ModelTimeout, ModelBadRequest, ModelTooLong) as error:
                raise first or error from None
            try:
                return wire.structured(done, shape)
            except (ModelCut, ModelEmpty) as error:
                first = first or error
                if widened or wire.more(room) <= room:
                    raise first from None
                widened, room = True, wire.more(room)
            except ModelBadOutput as error:
                first = first or error
                if corrected:
                    raise first from None
                corrected, turns = True, wire.corrected(prompt, done.turn, str(error))
            log.info("%s is asked again: %s", self.name, first)

    async def close(self) -> None:
        """Close the provider and with it all its models."""
        await self._provider.close()

    async def _read(
        self, limit: Limit, output: OutputConfigParam, request: ModelRequest, out: Collection[str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The whole answer to one structured request.

        It is streamed only so that an endless answer can be stopped early.
        """
        size = 0
        async with self._ask(limit, request, output, out) as answer:
            while (piece := await answer.piece()) is not None:
                size += len(piece)
                if size > MAX_ANSWER:
                    raise ModelBadOutput(f"the structured answer is longer than {MAX_ANSWER} characters")
        done, _ = answer.finished(self.name, request.turns)
        yield done

    def _beside(self, output: OutputConfigParam) -> Mapping[str, object]:
        """What is sent beside a request's own fields."""
        return {"output_config": output, "temperature": self._temperature is not None}

    def _output(self, purpose: Purpose, shape: type[BaseModel] | None = None) -> OutputConfigParam:
        """How much the model should think, and the shape of its answer, as far as the server knows these."""
        output = OutputConfigParam()
        if (effort := effort_for(self._known, purpose)) is not None:
            output["effort"] = effort
        if shape is not None and (self._enforces_schema or not self._provider.is_anthropic):
            output["format"] = wire.format_param(shape)
        return output

    def _limit(self) -> Limit:
        return Limit(self._total_timeout_s, self._provider.secret)

    @asynccontextmanager
    async def _ask(
        self,
        limit: Limit,
        request: ModelRequest,
        output: OutputConfigParam,
        out: Collection[str],
        *,
        own: int | None = None,
    ) -> AsyncIterator[Answer]:
        """Send one request without the fields that are `out`.

        The answer is open inside the block and always closed after it.
        `own`: the tokens that the answer's text may take, where `max_tokens` has room for thinking too.
        """
        extra: dict[str, object] | None = None
        if self._temperature is not None and "temperature" not in out:
            # The SDK dropped this parameter: current models reject it, but local servers still use it.
            extra = {"temperature": self._temperature}
        tools = wire.tools_param(request.tools, out)
        may_call = request.may_call or "tool_choice" in out
        async with contextlib.AsyncExitStack() as stack:
            async with limit.wait():
                with _logged_warnings():
                    call = self._provider.sdk.messages.stream(
                        model=self.name,
                        max_tokens=request.max_tokens,
                        system=wire.system_param(request.system, out) or omit,
                        messages=wire.messages_param(request.turns, self.name),
                        tools=tools or omit,
                        # The tools stay in the request: what was sent before must not change.
                        tool_choice={"type": "none"} if tools and not may_call else omit,
                        output_config=omit if "output_config" in out else output or omit,
                        extra_body=extra,
                        timeout=Timeout(self._total_timeout_s, connect=self._provider.connect_timeout_s),
                    )
                stream = await stack.enter_async_context(call)
                _check_kind(stream.response.headers.get("content-type", ""))
                hearing = None if self._provider.is_anthropic else Hearing(thinking=self._thinks_first)
                answer = Answer(stream.response, limit, own, hearing)
            try:
                yield answer
            finally:
                self._thinks_first = hearing is not None and (hearing.thinks_first or self._thinks_first)
                usage, whole = answer.usage
                used(self.name, usage, whole=whole)


def _check_kind(content_type: str) -> None:
    """Raise ModelNotFound for a web page. Read as a stream, it would be an answer that broke off."""
    if content_type.startswith("text/html"):
        raise ModelNotFound(
            "the server answers with a web page", user_message=USER_MESSAGES.get(ModelNotFound)
        )


@contextlib.contextmanager
def _logged_warnings() -> Iterator[None]:
    """Log the SDK's warnings about models near their end of life, which a filter could turn into errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        log.warning("%s", warning.message)
