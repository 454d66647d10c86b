"""Models within budgets: wrappers that count each call, and ask for it before it begins.

    usual     the model that a request names
    small     the one of the loops, when a budget is nearly spent
    offline   memory alone, without a language model, when it is spent

Knows nothing about prompts, vendors and where calls are written down.
"""

import asyncio
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from discoclaw.core.budgets import SMALL_FROM, Less, Level, Wish, reason, refusal_text
from discoclaw.core.errors import EmbeddingUnavailable, ModelSpent, SettingsError, TranscriptionSpent
from discoclaw.core.model import (
    OFFLINE_MODEL,
    VENDOR,
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolTurn,
    Usage,
    UserTurn,
    joined,
    shown,
    split,
)
from discoclaw.core.ports import Embedder, Model, Shape, Transcriber, WrappedModel
from discoclaw.core.usage import CHARS_A_TOKEN, DOLLAR, NOBODY, Call, Price, Prices, Tally, counted_in, payer
from discoclaw.usage.accounts import Accounts, Grant, unused

BYTES_A_TOKEN: Final = 3
"""Fewer than a token of Claude's has in most text, so that too much is put aside rather than too little."""
SECOND_BYTES: Final = 4_000
"""The bytes of a second of speech as phones record it. Servers don't say how long a recording was."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The prices of models here.

    `id_of` returns the id of a model's alias, `room_of` the tokens that an answer of so many may take with
    all that the model thinks before it.
    """

    prices: Prices
    id_of: Callable[[str], str] = lambda name: name
    room_of: Callable[[str, Purpose, int], int] = lambda model, purpose, room: room

    def wish(self, level: Level, model: str, prompt: int, output: int, below: int = 100) -> Wish:
        """A model that could make a call of so many tokens, with the most that this costs."""
        price, _ = self.prices.of(self.id_of(model))
        return Wish(level, model, price.most(prompt, output), below)

    def call(self, grant: Grant, tally: Tally, guess: Usage) -> Call:
        """A call as it is written down. `guess` is what it used if the server doesn't count."""
        model = self.id_of(grant.choice.wish.model) if grant.choice.wish is not None else ""
        counted = bool(tally.total.output_tokens or tally.total.prompt_tokens)
        provider = split(model)[0]  # which servers don't say
        named = [(joined(provider, name), usage) for name, usage in tally.used]
        used = named if counted else [(model, guess)] if guess != Usage() else []
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
            (counted and tally.whole) or not used,
            all(known for (_, known), _ in priced),
        )


@dataclass(frozen=True, slots=True)
class StandIns:
    """Stand-ins that answer people when a budget is nearly spent (`small`, by its name), and when it is.

    "" and None: nobody does.
    """

    small: str = ""
    offline: Model | None = None


class Metered(WrappedModel):
    """The port `Model`: each call of `model` is counted, and made within budgets.

    `name` is the model that answers requests which name none, and structured ones. Somebody waits for what is
    streamed; what is structured is work of the background.
    """

    def __init__(
        self,
        model: Model,
        accounts: Accounts,
        rates: Rates,
        *,
        name: str,
        stand_ins: StandIns = StandIns(),
    ) -> None:
        super().__init__(model)
        self._accounts = accounts
        self._rates = rates
        self._name = name
        self._stand_ins = stand_ins

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model says that the budgets allow. Raises ModelError."""
        events, less = await self._begun(request)
        async with aclosing(events):
            async for event in events:
                yield replace(event, less=less) if isinstance(event, Finished) else event

    async def _begun(self, request: ModelRequest) -> tuple[AsyncGenerator[StreamEvent, None], Less | None]:
        """The stream of the model that may answer, and why it isn't the usual one. Raises ModelSpent."""
        offline = self._stand_ins.offline
        if request.level == "offline" and offline is not None:
            return offline.stream(request), None
        if self._accounts.rules.limits:
            size, media = _size(request)
            wishes = self._wishes(request, size // BYTES_A_TOKEN + media)
        else:  # nobody has to know what it may cost
            wishes = [Wish("usual", request.model or self._name, 0)]
        grant = await self._accounts.begin(request.purpose, payer(), wishes)
        wish, less = grant.choice.wish, grant.choice.less
        if wish is not None:
            if wish.level == "small":
                request = replace(request, model=wish.model)
            return self._counted(request, grant), less
        if offline is None:
            raise _spent(grant, self._accounts.now())
        return offline.stream(request), less

    def answers(self, name: str) -> str:
        """The model that answers whoever asks now, in words, where `name` is set."""
        choice = self._accounts.would(self._wishes(ModelRequest((), (), model=name), 0), payer())
        usual = shown(name, self._rates.id_of(name))
        if choice.less is None:
            return usual
        now = shown(choice.wish.model, self._rates.id_of(choice.wish.model)) if choice.wish else OFFLINE_MODEL
        return f"{now} (instead of {usual}: {reason(choice.less)})"

    def _wishes(self, request: ModelRequest, prompt: int) -> list[Wish]:
        """The models that may answer a request, the usual one first. Whichever began an answer goes on."""

        def wish(level: Level, name: str, below: int = 100) -> Wish:
            room = self._rates.room_of(name, request.purpose, request.max_tokens)
            return self._rates.wish(level, name, prompt, room, below)

        usual, small = request.model or self._name, self._stand_ins.small
        if request.level == "small":
            return [wish("small", small)]
        if request.level == "usual" or not small:
            return [wish("usual", usual)]
        dear, cheap = wish("usual", usual, SMALL_FROM), wish("small", small)
        return [dear, cheap] if cheap.nano < dear.nano else [replace(dear, below=100)]

    async def _counted(self, request: ModelRequest, grant: Grant) -> AsyncGenerator[StreamEvent, None]:
        """The model's stream; what it used is counted however it ends.

        Who gives up before the server has said anything pays for the prompt, which it reads all the same.
        """
        tally, said, given_up = Tally(), 0, False
        try:
            async with aclosing(_tallied(self._model.stream(request), tally)) as events:
                async for event in events:
                    calls = event.turn.calls if isinstance(event, Finished) else ()
                    said += len(event.text if isinstance(event, TextDelta) else "".join(map(str, calls)))
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            given_up = True
            raise
        finally:
            guess = Usage()
            if (said or given_up) and not tally.total.prompt_tokens:
                size, media = _size(request)
                guess = Usage(size // CHARS_A_TOKEN + media, -(-said // CHARS_A_TOKEN))
            self._accounts.end(self._rates.call(grant, tally, guess))

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """The model's answer, counted. Raises ModelSpent if a budget is too far spent, and ModelError."""
        size = _bytes(system, prompt)
        room = self._rates.room_of(self._name, purpose, max_tokens)
        wish = self._rates.wish("usual", self._name, size // BYTES_A_TOKEN, room)
        grant = await self._accounts.begin(purpose, payer(), [wish], background=True)
        if grant.choice.wish is None:
            raise _spent(grant, self._accounts.now())
        tally, said, given_up = Tally(), 0, False
        try:
            with counted_in(tally):
                answer = await self._model.structured(
                    purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
                )
            said = len(answer.model_dump_json(exclude_defaults=True))
            return answer
        except asyncio.CancelledError:
            given_up = True
            raise
        finally:
            guess = Usage(size // CHARS_A_TOKEN, -(-said // CHARS_A_TOKEN)) if said or given_up else Usage()
            self._accounts.end(self._rates.call(grant, tally, guess))


class MeteredTranscriber:
    """The port `Transcriber`: each recording is counted, and listened to within budgets."""

    def __init__(self, transcriber: Transcriber, accounts: Accounts, rates: Rates, model: str) -> None:
        self._transcriber = transcriber
        self._accounts = accounts
        self._rates = rates
        self._model = model

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """The words of a recording. Raises TranscriptionError, TranscriptionSpent among others."""
        used = Usage(seconds=max(1, len(audio) // SECOND_BYTES))
        price, _ = self._rates.prices.of(self._model)
        wish = Wish("usual", self._model, price.cost(used))
        grant = await self._accounts.begin("transcription", payer(), [wish])
        if (less := grant.choice.less) is not None:
            text = refusal_text(less, "listen to voice messages", "write it, or ")
            raise TranscriptionSpent(_why(less), user_message=text)
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


class MeteredEmbedder:
    """The port `Embedder`: what is embedded is counted, and embedded within budgets.

    `background`: nobody waits for it, as somebody does for the vector of a question. One queue has the texts
    of many people then, so it counts for none of them: whose budget is spent holds nobody else up.
    """

    def __init__(
        self, embedder: Embedder, accounts: Accounts, rates: Rates, *, background: bool = False
    ) -> None:
        self._embedder = embedder
        self._accounts = accounts
        self._rates = rates
        self._background = background

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def stays_here(self) -> bool:
        return self._embedder.stays_here

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text. Raises EmbeddingError, EmbeddingUnavailable if a budget is spent."""
        size = _bytes(*texts)
        wish = self._rates.wish("usual", self.name, size // BYTES_A_TOKEN + len(texts), 0)
        whose = NOBODY if self._background else payer()
        grant = await self._accounts.begin("embedding", whose, [wish], background=self._background)
        if (less := grant.choice.less) is not None:
            after_s = _seconds(less, self._accounts.now())
            raise EmbeddingUnavailable(f"{self.name}: {_why(less)}", after_s=after_s)
        tally, guess = Tally(), Usage()
        try:
            with counted_in(tally):
                vectors = await self._embedder.embed(texts, timeout_s=timeout_s)
            guess = Usage(-(-size // CHARS_A_TOKEN))
            return vectors
        finally:
            self._accounts.end(self._rates.call(grant, tally, guess))

    async def close(self) -> None:
        """Close the embedder."""
        await self._embedder.close()


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
    texts += [tool.text for tool in request.tools]
    return _bytes(*texts), media


def _bytes(*texts: str) -> int:
    """The length of texts in UTF-8, which can't encode half an emoji."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _spent(grant: Grant, now_ms: int) -> ModelSpent:
    less = grant.choice.less
    assert less is not None  # else there is a model
    return ModelSpent(_why(less), user_message=refusal_text(less), after_s=_seconds(less, now_ms))


def _seconds(less: Less, now_ms: int) -> float:
    """How long it takes until there may be a budget again."""
    return max(1.0, (less.until - now_ms) / 1000)


def _why(less: Less) -> str:
    """The reason for the log."""
    each = "" if less.scope == "all" else f" of this {less.scope}"
    return f"the budget{each} for the {less.period} has no room for it now"


# ---------------------------------------------------------------------- tables of prices
# There is one that comes with the program, and an admin's own.

MILLION: Final = 1_000_000
_DOLLARS_FOR: Final = {
    "input": MILLION,
    "output": MILLION,
    "cache_read": MILLION,
    "cache_write": MILLION,
    "search": 1,
    "minute": 60,
}
"""The number of units for which the table has the price, by its field."""
_COUNTS: Final = ("long_from", "long_times")
_MOST: Final = MILLION


def prices(own: Path | None = None, *, free: bool = False, free_at: Iterable[str] = ()) -> Prices:
    """The prices that apply: those of the file `own` before ours. Raises SettingsError."""
    if own is None:
        return Prices(_ours(), free=free, free_at=frozenset(free_at))
    try:
        theirs = _read(own.read_bytes())
    except OSError as error:
        raise SettingsError(
            f"DISCOCLAW_PRICES={own}: can't be read ({error.strerror}); name a TOML file, "
            "or leave it empty for the prices that come with the program"
        ) from None
    except ValueError as error:
        raise SettingsError(f"DISCOCLAW_PRICES={own}: {error}") from None
    return Prices({**_ours(), **theirs}, frozenset(theirs), free, frozenset(free_at))


@cache
def _ours() -> Mapping[str, Price]:
    return _read((files("discoclaw.usage") / "prices.toml").read_bytes())


def _read(content: bytes) -> dict[str, Price]:
    """The prices in a file. Raises ValueError, which says what is wrong."""
    table = tomllib.loads(content.decode())
    return {name.removeprefix(f"{VENDOR}:"): _price(name, fields) for name, fields in table.items()}


def _price(name: str, given: object) -> Price:
    if not isinstance(given, dict):
        raise ValueError(f"“{name}” must be a table with prices, such as input = 2")
    found: dict[str, int] = {}
    for key, value in given.items():
        if key not in (*_DOLLARS_FOR, *_COUNTS):
            allowed = ", ".join((*_DOLLARS_FOR, *_COUNTS))
            raise ValueError(f"“{name}” has no “{key}”; there are {allowed}")
        if not _number(value):
            raise ValueError(f"{key} of “{name}” must be a number from 0 to {_MOST:,}, not {value}")
        if key in _COUNTS:
            found[key] = int(value)
        else:
            found["second" if key == "minute" else str(key)] = round(value * DOLLAR / _DOLLARS_FOR[key])
    return Price(**found)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
