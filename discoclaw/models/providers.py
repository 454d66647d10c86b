"""The models that names ask for. A provider (`core/model` lists them) is opened when a name first needs it.

A name without a provider is one of the usual provider's. Nothing is connected yet. How much a model reads at
once is asked of its server in the background.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import aiohttp

from discoclaw.core.errors import ModelNotFound, ModelNotSetUp, SettingsError
from discoclaw.core.health import Finding
from discoclaw.core.model import (
    OFFLINE,
    PROVIDERS,
    USUAL_READS,
    VENDOR,
    ModelRequest,
    Purpose,
    StreamEvent,
    joined,
    split,
)
from discoclaw.core.ports import Model, WrappedModel
from discoclaw.http import IDENTITY, Failed, content, within
from discoclaw.models import offline
from discoclaw.models.config import ModelConfig, Models

# ----------------------------------------------------------------------
# How much text a model reads at once, as far as its server says it: each kind of server has its own page.
#
# GET  /v1/models       vLLM: {"data": [{"id": "…", "max_model_len": 8192}]}; OpenRouter: "context_length";
#                       Anthropic: "max_input_tokens"; llama.cpp: "meta": {"n_ctx": 8192}
# GET  /props           llama.cpp: {"default_generation_settings": {"n_ctx": 8192}}
# GET  /api/ps          Ollama, of models that are loaded: {"models": [{"name": "…", "context_length": 8192}]}
# GET  /api/v0/models   LM Studio: {"data": [{"id": "…", "loaded_context_length": 8192}]}
# POST /api/show        Ollama: {"parameters": "num_ctx 8192", "model_info": {"llama.context_length": 131072}}


log = logging.getLogger(__name__)

PATIENCE_S = 10.0
MOST = 8_000_000
"""Longest answer that is read, in bytes: OpenRouter lists hundreds of models."""
LEAST_READS = 1_000  # a server that says less is wrong
SOON_S = 30.0
LATER_S = 600.0
"""A server is asked again after so long: Ollama says what it really reads only once a model is loaded."""
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,12})\b", re.MULTILINE)
_VERSION = re.compile(r"/v\d\w*(?:/openai)?$")
_LISTED = (
    "max_model_len",
    "max_input_tokens",
    "loaded_context_length",
    "context_length",
    "max_context_length",
)


def usable(said: int | None) -> int:
    """How many tokens count where a server says this: neither a prompt of a million, nor one of a word."""
    return min(said, USUAL_READS) if said is not None and said >= LEAST_READS else USUAL_READS


class Contexts:
    """Tokens that each model reads at once: by a setting (`fixed`), else by its server, else `USUAL_READS`.

    `ask` asks the server about a name. `names` are asked about at the start, the usual model's first, and
    others when they are first used. Nobody waits for an answer.
    """

    def __init__(
        self, ask: Callable[[str], Awaitable[int | None]], names: Sequence[str], *, fixed: int | None
    ) -> None:
        self._ask = ask
        self._names = names
        self._fixed = fixed
        self._found: dict[str, int] = {}
        self._due: dict[str, tuple[float, float]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def of(self, name: str) -> int:
        """The tokens that a model reads at once; "" is the usual one."""
        if self._fixed is not None:
            return self._fixed
        name = name or self._names[0]
        self._begin(name)
        return usable(self._found.get(name))

    async def start(self) -> None:
        """Begin to ask about the models of the settings."""
        for name in dict.fromkeys(self._names if self._fixed is None else ()):
            self._begin(name)

    async def settle(self) -> None:
        """Wait until nothing is being asked."""
        while self._asking:
            await asyncio.wait(self._asking.values())

    async def close(self) -> None:
        """Ask nothing more."""
        for task in self._asking.values():
            task.cancel()
        await self.settle()

    def _begin(self, name: str) -> None:
        now = asyncio.get_running_loop().time()
        due, pause = self._due.get(name, (now, SOON_S))
        if now < due or name in self._asking:
            return
        self._due[name] = (now + pause, LATER_S)
        self._asking[name] = asyncio.create_task(self._learn(name))
        self._asking[name].add_done_callback(lambda _: self._asking.pop(name))

    async def _learn(self, name: str) -> None:
        found = await self._ask(name)
        if found is not None and found != self._found.get(name):
            self._found[name] = found
            log.info("the server reads %d tokens at once with the model %s", found, name)


Pages = dict[tuple[str, str | None], asyncio.Task[Any]]
"""The pages that servers are being asked for, by address and key."""


async def context_of(base_url: str, model: str, key: str | None, pages: Pages, *, local: bool) -> int | None:
    """The tokens that a server reads at once with this model; None if it doesn't say. Never raises.

    Without `local`, only its list of models is asked for. Models that are asked about at the same time share
    `pages`, so that a start asks for each page once.
    """
    base = base_url.rstrip("/")
    root = _VERSION.sub("", base)
    headers = {**IDENTITY, "anthropic-version": "2023-06-01"}
    if key is not None:
        headers |= {"Authorization": f"Bearer {key}", "x-api-key": key}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False, headers=headers) as session:

        async def page(url: str) -> Any:
            if (url, key) not in pages:
                pages[url, key] = asyncio.create_task(_asked(session, "GET", url))
                pages[url, key].add_done_callback(lambda _: pages.pop((url, key)))
            return await pages[url, key]

        listed = await page(f"{base}/{'models' if root != base else 'v1/models'}")
        found = _listed(_each(listed, "data"), model)
        if found is None and local:
            props = await page(f"{root}/props")
            found = _number(_inside(props, "default_generation_settings"), "n_ctx") or _number(props, "n_ctx")
        if found is None and local:
            found = _listed(_each(await page(f"{root}/api/ps"), "models"), model)
        if found is None and local:
            found = _listed(_each(await page(f"{root}/api/v0/models"), "data"), model)
        if found is None and local:
            found = _ollama(await _asked(session, "POST", f"{root}/api/show", {"model": model}))
    return found


async def _asked(session: aiohttp.ClientSession, method: str, url: str, body: object = None) -> Any:
    """The JSON that a page answers with; None if it isn't there."""
    try:
        async with (
            within(PATIENCE_S),
            session.request(method, url, json=body, allow_redirects=False) as response,
        ):
            return json.loads(await content(response, MOST))
    except (Failed, aiohttp.ClientError, OSError, ValueError, RecursionError):
        return None


def _ollama(shown: Any) -> int | None:
    """How many tokens an Ollama server reads: what its model file sets, else what the model could."""
    parameters = shown.get("parameters") if isinstance(shown, Mapping) else None
    if isinstance(parameters, str) and (match := _NUM_CTX.search(parameters)):
        return int(match[1])
    info = _inside(shown, "model_info")
    lengths = [_number(info, name) for name in info if name.endswith(".context_length")]
    return next((one for one in lengths if one is not None), None)


def _listed(listed: Iterable[Mapping[str, Any]], model: str) -> int | None:
    """How many tokens a model reads by a list; Ollama adds ":latest" to a name without a tag."""
    for one in listed:
        if any(one.get(name) in (model, f"{model}:latest") for name in ("id", "name")):
            lengths = [_number(one, name) for name in _LISTED] + [_number(_inside(one, "meta"), "n_ctx")]
            return next((length for length in lengths if length is not None), None)
    return None


def _each(value: Any, name: str) -> list[Mapping[str, Any]]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _inside(value: Any, name: str) -> Mapping[str, Any]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: Any, name: str) -> int | None:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


# ----------------------------------------------------------------------
# Opening.


NOT_SET_UP = (
    "I can't reach the model `{name}`, which was chosen for here: its provider isn't set up. "
    "An admin can choose another one with `/model`."
)


def _anthropic(config: ModelConfig) -> Models:
    # The SDK is 3,000 modules, half of the time in which the whole bot is imported.
    from discoclaw.models import anthropic

    return anthropic.open_models(config)


def _openai(config: ModelConfig) -> Models:
    from discoclaw.models import openai  # slow to import, as above

    return openai.open_models(config)


OPENERS: Mapping[str, Callable[[ModelConfig], Models]] = {
    VENDOR: _anthropic,
    OFFLINE: offline.open_models,
}
"""What opens the providers that don't speak OpenAI's chat completions."""


def open_models(config: ModelConfig) -> Models:
    """The configured models, each of its provider. Raises SettingsError, which says what to change."""
    pools = _Pools(config)
    chat, summary, facts = (pools.of(name) for name in (config.chat, config.summary, config.facts))
    return Models(
        chat=chat.chat,
        summary=summary.summary,
        facts=facts.facts,
        named=pools.named,
        aliases=pools.aliases(),
        id_of=pools.id_of,
        room_of=pools.room_of,
        left_out=pools.left_out,
        context_of=pools.context_of,
        others=pools.all,
    )


class _Pools:
    """The providers that were needed so far: one pool of connections for each."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._open: dict[str, Models] = {}
        self._pages: Pages = {}

    def of(self, name: str) -> Models:
        """All models of the provider that a name is of. Raises SettingsError without its key or address."""
        config = self._config.of(split(name)[0])
        if config.provider not in self._open:
            provider = PROVIDERS.get(config.provider)
            if provider is None:
                *others, last = PROVIDERS
                raise SettingsError(
                    f"DISCOCLAW_MODEL_PROVIDER={config.provider}: unknown provider; "
                    f"use {', '.join(others)} or {last}"
                )
            opens = OPENERS.get(config.provider, _openai)
            if opens is _openai:
                if provider.key and config.key is None and config.base_url is None:
                    raise SettingsError(
                        f"{provider.key} is not set, and the model {name} needs it; set it, or "
                        f"{provider.moved} for a server that needs none, or name another model"
                    )
                config = replace(config, base_url=config.base_url or provider.address)
            try:
                self._open[config.provider] = opens(config)
            except SettingsError as error:
                near = get_close_matches(name.partition(":")[0], PROVIDERS, 1) if ":" in name else []
                also = f"; or is {name} one of the provider {near[0]}?" if near else ""
                raise SettingsError(f"{error}{also}") from None
        return self._open[config.provider]

    def named(self, name: str) -> Model:
        """The model with this name. Raises ModelNotSetUp for a provider that isn't set up."""
        try:
            return self.of(name).named(split(name)[1])
        except SettingsError as error:
            raise ModelNotSetUp(str(error), user_message=NOT_SET_UP.format(name=name)) from None

    def aliases(self) -> tuple[str, ...]:
        found = self._reached("")
        return found.aliases if found is not None else ()

    def id_of(self, name: str) -> str:
        """The name under which a model is counted."""
        provider, plain = split(name)
        found = self._reached(name)
        return joined(provider or self._config.provider, found.id_of(plain) if found is not None else plain)

    def room_of(self, name: str, purpose: Purpose, own: int) -> int:
        found = self._reached(name)
        return found.room_of(split(name)[1], purpose, own) if found is not None else own

    async def context_of(self, name: str) -> int | None:
        """How many tokens a model reads at once; None if its server doesn't say."""
        provider, plain = split(name)
        config, found = self._config.of(provider), self._reached(name)
        known = PROVIDERS[config.provider]
        address = config.base_url or known.address
        if found is None or address is None:
            return None
        local = not known.key or config.base_url not in (None, known.address)
        return await context_of(address, found.id_of(plain), config.key, self._pages, local=local)

    def left_out(self) -> Iterator[Finding]:
        for models in self.all():
            yield from models.left_out()

    def all(self) -> tuple[Models, ...]:
        """The models of the providers that are open now."""
        return tuple(self._open.values())

    def _reached(self, name: str) -> Models | None:
        try:
            return self.of(name)
        except SettingsError:
            return None


# ----------------------------------------------------------------------
# A wrapper that gives each request to the model it names. Knows no provider.

MOST_OPEN = 50
NOT_THERE = (
    "The server doesn't have the model `{name}`, which was chosen for here. "
    "An admin can choose another one with `/model`."
)


class ByName(WrappedModel):
    """The port `Model`: requests that name `name` or no model go to `usual`, others to what `named` makes.

    They share the connections that closing the usual one closes.
    """

    def __init__(self, usual: Model, name: str, named: Callable[[str], Model]) -> None:
        super().__init__(usual)
        self._name = name
        self._named = named
        self._open: dict[str, Model] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model says that the request names. Raises ModelError."""
        try:
            async with aclosing(self._of(request.model).stream(request)) as events:
                async for event in events:
                    yield event
        except ModelNotFound as error:
            if request.model in ("", self._name):
                raise
            raise ModelNotFound(str(error), user_message=NOT_THERE.format(name=request.model)) from None

    def _of(self, name: str) -> Model:
        if name in ("", self._name):
            return self._model
        if name not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.clear()  # they hold no connections of their own
            self._open[name] = self._named(name)
        return self._open[name]
