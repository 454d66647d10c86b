"""Models and transcription within budgets: wrappers that count each call, and ask for it before it begins.

    usual     the model that a request names
    small     the one of the loops, when a budget is nearly spent
    offline   memory alone, without a language model, when it is spent

Knows nothing about prompts, vendors and where calls are written down.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.budgets import Less, Level, Wish, less_text
from discoclaw.core.errors import ModelSpent, TranscriptionSpent
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolTurn,
    Usage,
    UserTurn,
)
from discoclaw.core.ports import Model, Shape, Transcriber
from discoclaw.core.prices import Prices
from discoclaw.core.usage import Call, Tally, counted_in, payer
from discoclaw.usage.accounts import Accounts, Grant, unused

BYTES_A_TOKEN: Final = 3
"""Fewer than a token of Claude's has in most text, so that too much is put aside rather than too little."""
CHARS_A_TOKEN: Final = 4
"""The usual estimate for English, where a server doesn't count."""
THINKING_TOKENS: Final = 4_000
"""What a model thinks before an answer at medium effort, seldom more."""
SECOND_BYTES: Final = 4_000
"""The bytes of a second of speech as phones record it. Servers don't say how long a recording was."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What models cost here. `id_of` returns the id of a model's alias."""

    prices: Prices
    id_of: Callable[[str], str] = lambda name: name

    def aside(self, model: str, prompt_bytes: int, media_tokens: int, room: int) -> int:
        """What is put aside (nanodollars) for an answer of up to `room` tokens."""
        price, _ = self.prices.of(self.id_of(model))
        return price.cost(Usage(prompt_bytes // BYTES_A_TOKEN + media_tokens, room + THINKING_TOKENS))

    def call(self, grant: Grant, tally: Tally, guess: Usage) -> Call:
        """A call as it is written down. `guess` is what it used if the server doesn't count."""
        model = self.id_of(grant.choice.wish.model) if grant.choice.wish is not None else ""
        counted = bool(tally.total.output_tokens or tally.total.prompt_tokens)
        used = tally.used if counted else [(model, guess)] if guess != Usage() else []
        priced = [(self.prices.of(name), usage) for name, usage in used]
        return Call(
            grant.id,
            grant.at,
            grant.purpose,
            used[-1][0] if used else model,
            sum((usage for _, usage in used), Usage()),
            sum(price.cost(usage) for (price, _), usage in priced),
            grant.payer,
            len(used),
            counted or not used,
            all(known for (_, known), _ in priced),
        )


class Metered:
    """The port `Model`: each call of `model` is counted, and made within budgets.

    `name` is the model that answers requests which name none, and structured ones. With `small`, a model of
    the same server answers when a budget is nearly spent, and with `offline` that one when it is.
    """

    def __init__(
        self,
        model: Model,
        accounts: Accounts,
        rates: Rates,
        *,
        name: str,
        small: str = "",
        offline: Model | None = None,
    ) -> None:
        self._model = model
        self._accounts = accounts
        self._rates = rates
        self._name = name
        self._small = small
        self._offline = offline

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model says that the budgets allow. Raises ModelError."""
        prompt_bytes, media = _size(request)

        def wish(level: Level, name: str) -> Wish:
            return Wish(level, name, self._rates.aside(name, prompt_bytes, media, request.max_tokens))

        wishes = [wish("usual", request.model or self._name)]
        if self._small and self._rates.id_of(self._small) != self._rates.id_of(wishes[0].model):
            wishes.append(wish("small", self._small))
        grant = await self._accounts.begin(request.purpose, payer(), wishes)
        less = grant.choice.less
        if grant.choice.wish is None:
            assert less is not None
            if self._offline is None:
                raise _spent(less, self._accounts.now())
            async for event in self._offline.stream(request):
                yield replace(event, less=less) if isinstance(event, Finished) else event
            return
        if less is not None:
            request = replace(request, model=grant.choice.wish.model)
        async for event in self._counted(request, grant, prompt_bytes // CHARS_A_TOKEN + media):
            yield replace(event, less=less) if isinstance(event, Finished) else event

    async def _counted(
        self, request: ModelRequest, grant: Grant, prompt: int
    ) -> AsyncGenerator[StreamEvent, None]:
        """The model's stream; what it used is counted however it ends."""
        tally, said = Tally(), 0
        try:
            async with aclosing(_tallied(self._model.stream(request), tally)) as events:
                async for event in events:
                    said += len(event.text) if isinstance(event, TextDelta) else 0
                    yield event
        finally:
            guess = Usage(prompt, -(-said // CHARS_A_TOKEN)) if said else Usage()
            self._accounts.end(self._rates.call(grant, tally, guess))

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """The model's answer, counted. Raises ModelSpent if a budget is too far spent, and ModelError."""
        size = len(system.encode()) + len(prompt.encode())
        wish = Wish("usual", self._name, self._rates.aside(self._name, size, 0, max_tokens))
        grant = await self._accounts.begin(purpose, payer(), [wish])
        if grant.choice.less is not None:
            raise _spent(grant.choice.less, self._accounts.now())
        tally, said = Tally(), 0
        try:
            with counted_in(tally):
                answer = await self._model.structured(
                    purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
                )
            said = len(answer.model_dump_json(exclude_defaults=True))
            return answer
        finally:
            guess = Usage(size // CHARS_A_TOKEN, -(-said // CHARS_A_TOKEN)) if said else Usage()
            self._accounts.end(self._rates.call(grant, tally, guess))

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


class MeteredTranscriber:
    """The port `Transcriber`: each recording is counted, and listened to within budgets."""

    def __init__(self, transcriber: Transcriber, accounts: Accounts, rates: Rates, model: str) -> None:
        self._transcriber = transcriber
        self._accounts = accounts
        self._rates = rates
        self._model = model

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """What is said in a recording. Raises TranscriptionError, TranscriptionSpent among others."""
        used = Usage(seconds=max(1, len(audio) // SECOND_BYTES))
        price, _ = self._rates.prices.of(self._model)
        wish = Wish("usual", self._model, price.cost(used))
        grant = await self._accounts.begin("transcription", payer(), [wish])
        if grant.choice.less is not None:
            raise TranscriptionSpent(less_text(grant.choice.less))
        call = unused(grant)
        try:
            words = await self._transcriber.words(audio, name, type, timeout_s=timeout_s)
            call = self._rates.call(grant, Tally(), used)
            return words
        finally:
            self._accounts.end(call)

    async def close(self) -> None:
        """Close the transcriber."""
        await self._transcriber.close()


async def _tallied(
    stream: AsyncGenerator[StreamEvent, None], tally: Tally
) -> AsyncGenerator[StreamEvent, None]:
    """A stream whose steps count in `tally`.

    Each step by itself: a generator runs in the context of whoever takes its next item, so what is set there
    must be gone when it yields.
    """
    try:
        while True:
            with counted_in(tally):
                event = await anext(stream, None)
            if event is None:
                return
            yield event
    finally:
        with counted_in(tally):
            await stream.aclose()


def _size(request: ModelRequest) -> tuple[int, int]:
    """The bytes of a request's texts, and the tokens of its media."""
    texts, media = [block.text for block in request.system], 0
    for turn in request.turns:
        match turn:
            case UserTurn(text):
                texts.append(text)
                media += sum(one.tokens for one in turn.media)
            case AssistantTurn(text, calls):
                texts += [text, *(str(call.input) for call in calls)]
            case ToolTurn(results):
                texts += [result.text for result in results]
    texts += [f"{tool.description}{tool.schema}" for tool in request.tools]
    return sum(len(text.encode()) for text in texts), media


def _spent(less: Less, now_ms: int) -> ModelSpent:
    return ModelSpent(less_text(less), after_s=max(1.0, (less.until - now_ms) / 1000))
