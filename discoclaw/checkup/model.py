"""A model and its server: what it was asked and how fast it answered, one small question, and its list.

`Listening` notes what is asked through it, `ask` asks whether a model answers, `models_at` which models a
server has, and `plainly` says of an error what to do about it. Knows nothing about settings files or
terminals.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from discoclaw.checkup import pasted
from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelEmpty,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
    SettingsError,
)
from discoclaw.core.model import (
    PROVIDERS,
    VENDOR,
    ModelRequest,
    StreamEvent,
    SystemBlock,
    TextDelta,
    Unseen,
    Usage,
    UserTurn,
    joined,
    split,
)
from discoclaw.core.ports import Model, Shape
from discoclaw.core.redact import without_login
from discoclaw.core.usage import CHARS_A_TOKEN, Tally, counted_in, used
from discoclaw.http import Client, Failed, within
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import open_models


@dataclass(slots=True)
class Asked:
    """How often models were asked by everything in one checkup, and what servers counted for each model."""

    requests: int = 0
    used: dict[str, Usage] = field(default_factory=dict)

    def note(self, model: str, usage: Usage) -> None:
        """Note one answer."""
        self.requests += 1
        self.used[model] = self.used.get(model, Usage()) + usage

    @property
    def usage(self) -> Usage:
        """The use of all calls together."""
        return sum(self.used.values(), Usage())

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.usage.prompt_tokens + self.usage.output_tokens


@dataclass(slots=True)
class Exchange:
    """One request that was streamed to a model, with the seconds to its first piece and to its end."""

    model: str
    request: ModelRequest
    said: str = ""
    first_s: float = 0.0
    whole_s: float = 0.0
    pieces: int = 0
    usage: Usage = field(default_factory=Usage)
    unseen: tuple[Unseen, ...] = ()
    calls: tuple[str, ...] = ()
    error: ModelError | None = None

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the prompt, estimated where the server counts none."""
        return self.usage.prompt_tokens or size_of(self.request) // CHARS_A_TOKEN


@dataclass(slots=True)
class Listening:
    """The port `Model` around another one, of a `provider`; `exchanges` are what was streamed, in order."""

    model: Model
    asked: Asked
    provider: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name by which the other model is counted; "" if it has none."""
        name = str(getattr(self.model, "name", ""))
        return joined(self.provider, name) if name else ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The other model's stream, timed. Raises ModelError."""
        one, began = Exchange(self.name, request), time.monotonic()
        self.exchanges.append(one)
        try:
            async with aclosing(self.model.stream(request)) as events:
                async for event in events:
                    one.first_s = one.first_s or time.monotonic() - began
                    if isinstance(event, TextDelta):
                        one.said = event.text if event.instead else one.said + event.text
                        one.pieces += 1
                    else:
                        one.usage, one.unseen = event.usage, event.unseen
                        one.calls = tuple(call.name for call in event.turn.calls)
                        self.asked.note(self.name, event.usage)
                    yield event
        except ModelError as error:
            one.error = error
            raise
        finally:
            one.whole_s = time.monotonic() - began

    async def exchange(self, request: ModelRequest) -> Exchange:
        """One request. Its failure is in the exchange; so is an answer without a word."""
        with suppress(ModelError):
            async for _ in self.stream(request):
                pass
        done = self.exchanges[-1]
        if done.error is None and not done.said.strip():
            done.error = ModelEmpty("it answered without a word")
        return done

    async def structured(self, *, shape: type[Shape], **asked: Any) -> Shape:
        """The other model's answer, counted here and by whoever counts around it. Raises ModelError."""
        tally = Tally()
        try:
            with counted_in(tally):
                return await self.model.structured(shape=shape, **asked)
        finally:
            for model, usage in tally.used:
                self.asked.note(joined(self.provider, model), usage)
                used(model, usage, whole=tally.whole)

    async def close(self) -> None:
        """Does nothing: whoever opened the other model closes it."""


def size_of(request: ModelRequest) -> int:
    """The characters of a request: system, tools and what people said."""
    system = sum(len(block.text) for block in request.system)
    tools = sum(len(tool.name) + len(tool.description) + len(str(tool.schema)) for tool in request.tools)
    return system + tools + sum(len(turn.text) for turn in request.turns if isinstance(turn, UserTurn))


# ---------------------------------------------------------------------- one small question

QUESTION: Final = ModelRequest(
    (SystemBlock("You are being tested. Answer with one short sentence."),),
    (UserTurn("Say hello."),),
    max_tokens=64,
)
_PAGE = re.compile(r"web page|<html|<!doctype html|<body", re.IGNORECASE)


async def ask(config: ModelConfig) -> Exchange:
    """Ask the model that answers people one small question, within the configuration's time.

    Raises SettingsError for what the configuration alone shows to be wrong, and otherwise ModelError, with
    one line each: the thing, the reason, the way out. None of them has the key in it.
    """
    check_key(config)
    models = open_models(config)
    try:
        done = await Listening(models.chat, Asked()).exchange(QUESTION)
    finally:
        await models.close()
    if done.error is not None:
        raise plainly(done.error, config)
    return done


def check_key(config: ModelConfig) -> None:
    """Raise SettingsError for keys that can't be those of who is asked."""
    for own in used_by(config):
        provider = PROVIDERS[own.provider]
        if provider.key and own.key is not None:
            vendor = provider.title if is_at_vendor(own) else ""
            pasted.check_key(own.key, provider.key, vendor, provider.moved)


def used_by(config: ModelConfig) -> list[ModelConfig]:
    """The configuration of each provider of whom a model is named, without the others."""
    names = (split(name)[0] or config.provider for name in (config.chat, config.summary, config.facts))
    return [config.of(name) for name in dict.fromkeys(names)]


def plainly(
    error: ModelError, config: ModelConfig, model: str = "", variable: str = "DISCOCLAW_MODEL"
) -> ModelError:
    """An error of the same class, with one line for an admin: the thing, the reason, the way out.

    `model` and the `variable` that names it are by default those of the model that answers people.
    """
    provider, name = split(model or config.chat)
    told = _sentence(error, config.of(provider), str(error), name, variable)
    plain = ModelError.__new__(type(error))  # one of these takes more than a text
    ModelError.__init__(plain, told, user_message=error.user_message)
    plain.status = error.status
    return plain


def _sentence(error: ModelError, config: ModelConfig, reason: str, model: str, variable: str) -> str:
    where, known = address_of(config), PROVIDERS[config.provider]
    has_page = "/v1" in where
    if _PAGE.search(reason) and (isinstance(error, ModelNotFound | ModelBadRequest) or error.status < 400):
        return f"{where} answers with a web page and not as a model's server; check {known.moved}"
    match error:
        case ModelKeyRejected():
            setting = known.key or f"{known.moved}, or use OPENAI_BASE_URL with OPENAI_API_KEY"
            return f"{where} refuses the key ({reason}); check {setting}"
        case ModelNotFound() if has_page and config.provider == VENDOR:
            return f"{where} has no such page; leave /v1 out of {known.moved}, it is added"
        case ModelNotFound() if not has_page and config.provider != VENDOR and config.base_url is not None:
            return f"{where} has no such page; end the address in {known.moved} with /v1"
        case ModelNotFound():
            return (
                f"{where} doesn't have the model {model!r}, or isn't a model's server ({reason}); "
                f"check {variable} and {known.moved}"
            )
        case ModelTimeout():
            return f"{where} took too long ({reason}); use a faster model, or raise DISCOCLAW_MODEL_TIMEOUT_S"
        case ModelOverloaded():
            return f"{where} is overloaded ({reason}); try again later"
        case ModelRateLimited():
            return f"{where} has no quota left for this key ({reason}); wait, or add credit to the account"
        case ModelTooLong():
            return f"{where} takes shorter prompts only ({reason}); use a model with a longer context"
        case ModelUnreachable():
            return f"{where} can't be reached ({reason}); check {known.moved} and the network"
        case ModelEmpty():
            return f"{model} at {where} answered without a word; try another model"
        case _:
            return f"{where} doesn't answer as it should ({reason}); check {variable} and {known.moved}"


def address_of(config: ModelConfig) -> str:
    """The address of the configuration's provider, without a password."""
    return without_login(config.base_url or PROVIDERS[config.provider].address or "")


def is_at_vendor(config: ModelConfig) -> bool:
    """Whether the provider is asked at its usual address."""
    return config.base_url in (None, PROVIDERS[config.provider].address)


# ---------------------------------------------------------------------- which models there are

MOST_BYTES: Final = 8_000_000
"""The longest list that is read: OpenRouter's has hundreds of models, each with its description."""
WITHIN_S: Final = 10.0
"""The longest (s) that a server may take: a list needs no model to be loaded."""
SOON_S: Final = 1.0
"""How long (s) servers on this machine are looked for, of all kinds at once."""
_SMALL: Final = ("-mini", "haiku", "-flash", "-lite", "-small", "-nano")
"""Parts of the names of small models, the one that is good enough for most first."""
_TALKS_NOT: Final = re.compile(
    r"embed|whisper|tts|dall-e|image|audio|realtime|transcribe|moderation|sora|rerank", re.IGNORECASE
)
"""Parts of the names of models that don't answer in words."""


async def found_at(addresses: Mapping[str, str]) -> list[str]:
    """The names of the addresses at which a model's server answers within `SOON_S`. Never raises."""

    async def is_there(address: str) -> bool:
        try:
            return await models_at(address, within_s=SOON_S) is not None
        except (ModelNotFound, ModelKeyRejected):
            return True  # it has no models yet, or wants a key
        except (ModelError, SettingsError):
            return False

    there = await asyncio.gather(*map(is_there, addresses.values()))
    return [name for name, found in zip(addresses, there, strict=True) if found]


def small_for(model: str, names: Collection[str]) -> str:
    """A smaller model of the same family for work in the background; `model` itself if there is none."""
    if any(word in model for word in _SMALL):
        return model
    family = re.split(r"[-:.\d]", model, maxsplit=1)[0]
    for start in (f"{model}-", family):
        for word in _SMALL:
            if found := next((one for one in names if one.startswith(start) and word in one), None):
                return found
    return model


async def models_at(
    address: str, key: str | None = None, *, within_s: float = WITHIN_S
) -> tuple[str, ...] | None:
    """The names of a server's models that may talk, the newest first; None if it keeps no list.

    Raises SettingsError for an address that can't be used, ModelUnreachable, ModelKeyRejected if it wants a
    key or another one, ModelBadOutput for something that is not a model's server, and ModelNotFound if it has
    no models yet. Each is one line with a way out.
    """
    where = without_login(address)
    try:
        client = Client(f"{address}/v1/models", most=MOST_BYTES, key=key, reuse=False)
    except ValueError as error:
        raise SettingsError(f"ANTHROPIC_BASE_URL=…: can't be used: {error}") from None
    try:
        async with within(within_s):
            body = await client.get()
    except Failed as failed:
        if failed.why == "key":
            raise ModelKeyRejected(f"{where} wants a key, or another one ({failed})") from None
        if failed.why == "address":
            return None
        raise ModelUnreachable(f"{where} {failed}; is the server running there?") from None
    finally:
        await client.close()
    names = _models_in(body, where)
    if not names:
        raise ModelNotFound(
            f"{where} has no models yet; fetch one there, for Ollama with: ollama pull qwen3:8b"
        )
    return names


def _models_in(body: bytes, where: str) -> tuple[str, ...]:
    try:
        listed = json.loads(body)["data"] or []
        names = {
            str(one["id"]): created if isinstance(created := one.get("created"), int) else 0 for one in listed
        }
        return tuple(
            sorted((one for one in names if not _TALKS_NOT.search(one)), key=lambda one: -names[one])
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        what = "a web page" if body.lstrip()[:1] == b"<" else "something else"
        raise ModelBadOutput(
            f"{where} answers with {what} and not as a model's server; check the address and its port"
        ) from None
