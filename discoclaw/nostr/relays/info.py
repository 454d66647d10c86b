"""The limits that a relay announces about itself (NIP-11).

A relay that announces none, or nonsense, is used too.

Of the three relays we tested against, only nostr-relay serves this document, and without limits.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.http import IDENTITY, Failed, content, within

_MAX_BYTES: Final = 65_536
"""Longest document that is read."""
_HEADERS: Final = {"Accept": "application/nostr+json"} | IDENTITY


@dataclass(frozen=True, slots=True)
class Limits:
    """Announced limits; None where the relay doesn't say.

    `max_message_bytes` of a message, `max_events` in one answer, `max_requests` open at once.
    `supports_auth`: it may ask for authentication (NIP-42). `auth_required`: it answers nothing without it.
    `paid`: it wants a payment first. `restricted`: it takes events only on some condition of its own.
    """

    max_message_bytes: int | None = None
    max_events: int | None = None
    max_requests: int | None = None
    auth_required: bool = False
    supports_auth: bool = False
    paid: bool = False
    restricted: bool = False


async def fetch_limits(session: aiohttp.ClientSession, url: yarl.URL, timeout_s: float) -> Limits:
    """The limits that a relay announces over HTTP; none if it doesn't answer in time. Never raises."""
    http = url.with_scheme("https" if url.scheme == "wss" else "http")
    try:
        async with (
            within(timeout_s),
            session.get(http, headers=_HEADERS, allow_redirects=False) as response,
        ):
            return _read(json.loads(await content(response, _MAX_BYTES)))
    except (Failed, aiohttp.ClientError, OSError, ValueError, RecursionError):
        return Limits()


def _read(document: Any) -> Limits:
    if not isinstance(document, Mapping):
        return Limits()
    limitation, nips = document.get("limitation"), document.get("supported_nips")
    supports_auth = isinstance(nips, list) and 42 in nips
    if not isinstance(limitation, Mapping):
        return Limits(supports_auth=supports_auth)
    return Limits(
        supports_auth=supports_auth,
        max_message_bytes=_count(limitation.get("max_message_length")),
        max_events=_count(limitation.get("max_limit")),
        max_requests=_count(limitation.get("max_subscriptions")),
        auth_required=limitation.get("auth_required") is True,
        paid=limitation.get("payment_required") is True,
        restricted=limitation.get("restricted_writes") is True,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
