"""How much text a model reads at once, as far as its server says it: each kind of server has its own page.

GET  /v1/models       vLLM: {"data": [{"id": "…", "max_model_len": 8192}]}; OpenRouter: "context_length";
                      Anthropic: "max_input_tokens"; llama.cpp: "meta": {"n_ctx": 8192}
GET  /props           llama.cpp: {"default_generation_settings": {"n_ctx": 8192}}
GET  /api/ps          Ollama, of models that are loaded: {"models": [{"name": "…", "context_length": 8192}]}
POST /api/show        Ollama: {"parameters": "num_ctx 8192", "model_info": {"llama.context_length": 131072}}
GET  /api/v0/models   LM Studio: {"data": [{"id": "…", "loaded_context_length": 8192}]}

Knows nothing about prompts.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import aiohttp

from discoclaw.core.model import USUAL_READS
from discoclaw.http import IDENTITY, Failed, content, within

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


async def context_of(base_url: str, model: str, key: str | None = None, *, local: bool = True) -> int | None:
    """The tokens that a server reads at once with this model; None if it doesn't say. Never raises.

    Without `local`, only its list of models is asked for.
    """
    base = base_url.rstrip("/")
    root = _VERSION.sub("", base)
    headers = {**IDENTITY, "anthropic-version": "2023-06-01"}
    if key is not None:
        headers |= {"Authorization": f"Bearer {key}", "x-api-key": key}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False, headers=headers) as session:
        listed = await _asked(session, "GET", f"{base}/{'models' if root != base else 'v1/models'}")
        found = _listed(_each(listed, "data"), model)
        if found is None and local:
            props = await _asked(session, "GET", f"{root}/props")
            found = _number(_inside(props, "default_generation_settings"), "n_ctx") or _number(props, "n_ctx")
        if found is None and local:
            found = _listed(_each(await _asked(session, "GET", f"{root}/api/ps"), "models"), model)
        if found is None and local:
            found = _ollama(await _asked(session, "POST", f"{root}/api/show", {"model": model}))
        if found is None and local:
            found = _listed(_each(await _asked(session, "GET", f"{root}/api/v0/models"), "data"), model)
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
