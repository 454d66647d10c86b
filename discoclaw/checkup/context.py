"""How much text the model's server reads at once, if it says so: each kind of server has a page of its own.

GET  /props        llama.cpp: {"default_generation_settings": {"n_ctx": 8192}}
POST /api/show     Ollama: {"parameters": "num_ctx 8192", "model_info": {"llama.context_length": 131072}}
GET  /v1/models    vLLM and others: {"data": [{"id": "…", "max_model_len": 32768}]}
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import aiohttp

from discoclaw.http import IDENTITY, Failed, content, within

PATIENCE_S = 10.0
MOST = 2_000_000
"""Longest answer that is read, in bytes: Ollama's has the model's licence in it."""
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


async def context_of(base_url: str, model: str) -> int | None:
    """The tokens that a server reads at once with this model; None if it doesn't say. Never raises."""
    base = base_url.rstrip("/")
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False, headers=IDENTITY) as session:
        props = await _asked(session, "GET", f"{base}/props")
        found = _number(_inside(props, "default_generation_settings"), "n_ctx") or _number(props, "n_ctx")
        if found is None:
            found = _ollama(await _asked(session, "POST", f"{base}/api/show", {"model": model}))
        if found is None:
            found = _listed(await _asked(session, "GET", f"{base}/v1/models"), model)
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
    """What an Ollama server reads: what its model file sets, else what the model could."""
    parameters = shown.get("parameters") if isinstance(shown, Mapping) else None
    if isinstance(parameters, str) and (match := _NUM_CTX.search(parameters)):
        return int(match[1])
    info = _inside(shown, "model_info")
    lengths = [_number(info, name) for name in info if name.endswith(".context_length")]
    return next((one for one in lengths if one is not None), None)


def _listed(listed: Any, model: str) -> int | None:
    data = listed.get("data") if isinstance(listed, Mapping) else None
    for one in data if isinstance(data, list) else ():
        if isinstance(one, Mapping) and one.get("id") == model:
            return _number(one, "max_model_len") or _number(one, "context_length")
    return None


def _inside(value: Any, name: str) -> Mapping[str, Any]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: Any, name: str) -> int | None:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
