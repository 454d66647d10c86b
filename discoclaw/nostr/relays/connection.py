"""The wire to a relay: a websocket, and what the relay announces about itself. Nothing about the messages."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.core.errors import RelayUnreachable
from discoclaw.http import IDENTITY, Failed, content, within

MAX_FRAME: Final = 8 * 2**20
"""Longest message that is received, in bytes. A longer one closes the connection."""
_CLOSE_S: Final = 1.0
_INFO_S: Final = 3.0
"""How long to wait for the announced limits, in seconds: most relays have none."""
_MAX_INFO_BYTES: Final = 65_536
_INFO_HEADERS: Final = {"Accept": "application/nostr+json"} | IDENTITY
_TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a relay announces about itself (NIP-11); None where it doesn't say.

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

    @classmethod
    def of(cls, document: Any) -> "Limits":
        """The limits in a decoded document; none where it has another form."""
        given = document if isinstance(document, Mapping) else {}
        nips, limitation = given.get("supported_nips"), given.get("limitation")
        said = limitation if isinstance(limitation, Mapping) else {}

        def count(name: str) -> int | None:
            value = said.get(name)
            return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

        return cls(
            supports_auth=isinstance(nips, list) and 42 in nips,
            max_message_bytes=count("max_message_length"),
            max_events=count("max_limit"),
            max_requests=count("max_subscriptions"),
            auth_required=said.get("auth_required") is True,
            paid=said.get("payment_required") is True,
            restricted=said.get("restricted_writes") is True,
        )


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds: limit for an answer, first and longest pause between tries, silence before a ping.

    A pause doubles with each failure, up to `max_backoff_s`. Up to half of it is taken off at random, so that
    many clients don't return to a restarted relay at the same moment.
    """

    timeout_s: float = 10.0
    backoff_s: float = 1.0
    max_backoff_s: float = 300.0
    heartbeat_s: float = 30.0

    def pause_s(self, failures: int, chance: float) -> float:
        """The pause after so many failures in a row (1 or more). `chance` is a random number from 0 to 1."""
        longest = min(self.max_backoff_s, self.backoff_s * 2.0 ** min(failures - 1, 30))
        return longest * (1.0 - chance / 2)


def session() -> aiohttp.ClientSession:
    """What connections to one relay share."""

    async def refuse(_session: Any, _context: Any, _params: Any) -> None:
        # Memory may go only to the configured address.
        raise RelayUnreachable("it redirects to another address; set that one if you trust it")

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse)
    # No unpacking: a small compressed body could unpack to a huge one.
    return aiohttp.ClientSession(
        trace_configs=[trace], cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
    )


async def limits_of(session: aiohttp.ClientSession, url: yarl.URL, timeout_s: float) -> Limits:
    """The limits that a relay announces over HTTP; none without an answer within a few seconds."""
    address = url.with_scheme("https" if url.scheme == "wss" else "http")
    with contextlib.suppress(Failed, aiohttp.ClientError, OSError, ValueError, RecursionError):
        async with (
            within(min(_INFO_S, timeout_s)),
            session.get(address, headers=_INFO_HEADERS, allow_redirects=False) as response,
        ):
            return Limits.of(json.loads(await content(response, _MAX_INFO_BYTES)))
    return Limits()


class WebSocket:
    """An open websocket. `timeout_s` is the limit for sending one message."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse, timeout_s: float) -> None:
        self._websocket = websocket
        self._timeout_s = timeout_s
        self._sending = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None
        self._has_stalled = False
        self._socket: Any = websocket.get_extra_info("socket")

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, url: yarl.URL, timing: Timing) -> "WebSocket":
        """Connect. Raises RelayUnreachable."""
        closing = aiohttp.ClientWSTimeout(ws_receive=None, ws_close=_CLOSE_S)  # type: ignore[call-arg,unused-ignore]
        try:
            async with asyncio.timeout(timing.timeout_s):
                websocket = await session.ws_connect(
                    url, heartbeat=timing.heartbeat_s, max_msg_size=MAX_FRAME, timeout=closing
                )
        except TimeoutError:
            raise RelayUnreachable(f"no answer within {timing.timeout_s:g} s") from None
        except aiohttp.WSServerHandshakeError as error:
            raise RelayUnreachable(f"it answers HTTP {error.status} instead of opening a websocket") from None
        except _TRANSPORT_ERRORS as error:
            raise RelayUnreachable(f"cannot be reached ({type(error).__name__})") from None
        return cls(websocket, timing.timeout_s)

    async def send(self, text: str) -> None:
        """Send a message, and wait until the relay has read enough of it that nothing piles up in memory.

        Raises RelayUnreachable. A relay that reads nothing for `timeout_s` is disconnected.
        """

        def stalled() -> None:
            self._has_stalled = True
            self._abort()

        async with self._sending:
            await self._written()  # a cancelled caller may have left a write unfinished
            self._writing = asyncio.create_task(self._websocket.send_str(text))
            # A timer and not a timeout: the write itself must not be cancelled, see `_written`.
            timer = asyncio.get_running_loop().call_later(self._timeout_s, stalled)
            self._writing.add_done_callback(lambda _: timer.cancel())
            await self._written()

    async def _written(self) -> None:
        """Wait for the current write. It is never cancelled: aiohttp would cancel the next writer with it."""
        if self._writing is None:
            return
        await asyncio.wait({self._writing})
        error = None if self._writing.cancelled() else self._writing.exception()
        if self._has_stalled:
            raise RelayUnreachable(f"it has read nothing for {self._timeout_s:g} s")
        if error is not None or self._writing.cancelled():
            raise RelayUnreachable(f"the connection was lost ({type(error).__name__})")

    async def receive(self) -> str:
        """The next text message. Raises RelayUnreachable when the connection is lost."""
        while True:
            message = await self._websocket.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    return str(message.data)
                case aiohttp.WSMsgType.BINARY:
                    continue  # Nostr has no binary messages
                case aiohttp.WSMsgType.ERROR:
                    raise RelayUnreachable(f"the connection was lost ({type(message.data).__name__})")
            code = self._websocket.close_code
            raise RelayUnreachable(
                f"it closed the connection (code {code})" if code else "the connection was lost"
            )

    async def close(self) -> None:
        """Close within two seconds, whether the relay takes part or not."""
        with contextlib.suppress(TimeoutError, *_TRANSPORT_ERRORS):
            async with asyncio.timeout(_CLOSE_S):
                await self._websocket.close()
        self._abort()
        with contextlib.suppress(RelayUnreachable):
            await self._written()

    def _abort(self) -> None:
        """End the connection at once. Unsent data is dropped."""
        if self._socket is not None:
            with contextlib.suppress(OSError, ValueError):
                self._socket.shutdown(socket.SHUT_RDWR)
