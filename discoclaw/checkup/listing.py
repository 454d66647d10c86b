"""Which models a server has, as it says itself: `GET /v1/models`, which Ollama, llama.cpp and LiteLLM answer.

Knows nothing about settings files or terminals.
"""

import asyncio
import json
import re
from collections.abc import Collection, Mapping
from typing import Final

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelUnreachable,
    SettingsError,
)
from discoclaw.core.redact import without_login
from discoclaw.http import Client, Failed, within

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
    names = _names(body, where)
    if not names:
        raise ModelNotFound(
            f"{where} has no models yet; fetch one there, for Ollama with: ollama pull qwen3:8b"
        )
    return names


def _names(body: bytes, where: str) -> tuple[str, ...]:
    try:
        listed = json.loads(body)["data"] or []
        names = {str(one["id"]): _created(one.get("created")) for one in listed}
        return tuple(
            sorted((one for one in names if not _TALKS_NOT.search(one)), key=lambda one: -names[one])
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        what = "a web page" if body.lstrip()[:1] == b"<" else "something else"
        raise ModelBadOutput(
            f"{where} answers with {what} and not as a model's server; check the address and its port"
        ) from None


def _created(value: object) -> int:
    return value if isinstance(value, int) else 0
