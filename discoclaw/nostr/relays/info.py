"""A relay's address, and what it says of its own limits (NIP-11) before anybody asks it for events.

The limits are an offer: a relay that gives none, or nonsense, is used all the same.
"""

import asyncio
import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.core.errors import SettingsError

_MOST_BYTES: Final = 65_536
_HEADERS: Final = {"Accept": "application/nostr+json", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What it offers: bytes of a message, events of one answer, requests at once. None: it does not say.

    `asks`: it may ask who we are (NIP-42). `auth`: it lets nobody do anything before that.
    """

    message: int | None = None
    rows: int | None = None
    requests: int | None = None
    auth: bool = False
    asks: bool = False


def relay_url(text: str) -> yarl.URL:
    """The address of a relay. Raises SettingsError, which never shows a password."""
    try:
        url = yarl.URL(text.strip())
        if url.scheme in ("ws", "wss") and url.host and url.port:
            return url.with_fragment(None)
    except ValueError:
        pass
    raise SettingsError(f"NOSTR_RELAYS={_safe(text)}: no address of a relay; ws://… or wss://… is wanted")


def check_near(addresses: Iterable[str]) -> None:
    """Raise SettingsError unless all of these relays are on this machine or in a private network, as far as
    their addresses tell: nothing goes further in clear."""
    for url in map(relay_url, addresses):
        if not _is_near(url.host or ""):
            raise SettingsError(
                f"NOSTR_ALLOW_PLAINTEXT=1: {shown(url)} is not on this machine or in a private network; "
                "take it out of NOSTR_RELAYS, or set NOSTR_ALLOW_PLAINTEXT=0"
            )


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def shown(url: yarl.URL) -> str:
    """An address as it may be logged and told to anybody: without user, password and query."""
    return str(url.with_user(None).with_query(None))


def plain(url: yarl.URL) -> str:
    """An address as a relay knows it: what stands before the host is for the proxy there."""
    return str(url.with_user(None))


def _safe(text: str) -> str:
    """A wrong address, without what could be a password in it, or a key that came to the wrong place."""
    scheme, found, rest = text.strip().partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2].partition('?')[0]}"[:80] if found else "…"


async def limits_of(session: aiohttp.ClientSession, url: yarl.URL, timeout_s: float) -> Limits:
    """What the relay says of itself over HTTP; nothing, if it does not, or takes longer than that."""
    http = url.with_scheme("https" if url.scheme == "wss" else "http")
    try:
        async with (
            asyncio.timeout(timeout_s),
            session.get(http, headers=_HEADERS, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                return Limits()
            body = bytearray()
            async for chunk in answer.content.iter_chunked(_MOST_BYTES):
                body += chunk
                if len(body) > _MOST_BYTES:
                    return Limits()
            return _read(json.loads(body))
    except (aiohttp.ClientError, OSError, ValueError, RecursionError):
        return Limits()


def _read(document: Any) -> Limits:
    if not isinstance(document, Mapping):
        return Limits()
    offered, nips = document.get("limitation"), document.get("supported_nips")
    asks = isinstance(nips, list) and 42 in nips
    if not isinstance(offered, Mapping):
        return Limits(asks=asks)
    return Limits(
        asks=asks,
        message=_count(offered.get("max_message_length")),
        rows=_count(offered.get("max_limit")),
        requests=_count(offered.get("max_subscriptions")),
        auth=offered.get("auth_required") is True,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
