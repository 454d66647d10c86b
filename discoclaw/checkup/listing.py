"""Which models a server has, as it says itself: `GET /v1/models`, which Ollama, llama.cpp and LiteLLM answer.

Knows nothing about settings files or terminals.
"""

import json
from typing import Final

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelKeyRejected,
    ModelNotFound,
    ModelUnreachable,
    SettingsError,
)
from discoclaw.core.redact import without_login
from discoclaw.http import Client, Failed, within

MOST_BYTES: Final = 1 << 20
"""The longest list that is read."""
WITHIN_S: Final = 10.0
"""So long a server may take: a list needs no model to be loaded."""


async def models_at(address: str, key: str | None = None) -> tuple[str, ...] | None:
    """The names of a server's models, None if it keeps no list.

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
        async with within(WITHIN_S):
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
        return tuple(str(one["id"]) for one in listed)
    except (ValueError, LookupError, TypeError, RecursionError):
        what = "a web page" if body.lstrip()[:1] == b"<" else "something else"
        raise ModelBadOutput(
            f"{where} answers with {what} and not as a model's server; check the address and its port"
        ) from None
