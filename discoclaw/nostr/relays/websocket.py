"""One open websocket to a relay. It sends and receives text, and every wait has a limit.

Knows nothing about what the text means. Every transport error becomes RelayUnreachable here.
"""

import asyncio
import contextlib
import socket
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.core.errors import RelayUnreachable

MAX_FRAME: Final = 8 * 2**20
"""Longest message that is received, in bytes. A longer one closes the connection."""
_CLOSE_S: Final = 1.0

_TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, RuntimeError, ValueError)


def new_session() -> aiohttp.ClientSession:
    """A session for one relay. It follows no redirect: memory may go only to the configured address."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    # No unpacking: a small compressed body could unpack to a huge one.
    return aiohttp.ClientSession(
        trace_configs=[trace], cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
    )


async def _refuse_redirect(_session: Any, _context: Any, _params: Any) -> None:
    raise RelayUnreachable("it redirects to another address; set that one if you trust it")


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
    async def open(
        cls, session: aiohttp.ClientSession, url: yarl.URL, *, timeout_s: float, heartbeat_s: float
    ) -> "WebSocket":
        """Connect within `timeout_s`.

        After `heartbeat_s` of silence a ping is sent. Raises RelayUnreachable.
        """
        try:
            async with asyncio.timeout(timeout_s):
                websocket = await session.ws_connect(
                    url, heartbeat=heartbeat_s, max_msg_size=MAX_FRAME, timeout=_wait(_CLOSE_S)
                )
        except TimeoutError:
            raise RelayUnreachable(f"no answer within {timeout_s:g} s") from None
        except aiohttp.WSServerHandshakeError as error:
            raise RelayUnreachable(f"it answers HTTP {error.status} instead of opening a websocket") from None
        except _TRANSPORT_ERRORS as error:
            raise RelayUnreachable(f"cannot be reached ({type(error).__name__})") from None
        return cls(websocket, timeout_s)

    async def send(self, text: str) -> None:
        """Send a message, and wait until the relay has read enough of it that nothing piles up in memory.

        Raises RelayUnreachable. A relay that reads nothing for `timeout_s` is disconnected.
        """
        async with self._sending:
            await self._written()  # a cancelled caller may have left a write unfinished
            self._writing = asyncio.create_task(self._websocket.send_str(text))
            # A timer and not a timeout: the write itself must not be cancelled, see `_written`.
            timer = asyncio.get_running_loop().call_later(self._timeout_s, self._stalled)
            self._writing.add_done_callback(lambda _: timer.cancel())
            await self._written()

    def _stalled(self) -> None:
        self._has_stalled = True
        self._abort()

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


def _wait(seconds: float) -> aiohttp.ClientWSTimeout:
    return aiohttp.ClientWSTimeout(ws_receive=None, ws_close=seconds)  # type: ignore[call-arg,no-any-return,unused-ignore]
