"""One open websocket to a relay: text goes out, text comes in, and nothing hangs.

Knows nothing about what the text means. Every error of the transport becomes RelayUnreachable here.
"""

import asyncio
import contextlib
import socket
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.core.errors import RelayUnreachable

MOST_FRAME: Final = 8 * 2**20
"""Bytes of one message; at a longer one the connection is closed."""
_CLOSE_S: Final = 1.0

_TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, RuntimeError, ValueError)


def new_session() -> aiohttp.ClientSession:
    """A session for one relay. It follows no redirect: a relay is at the address that was set, or nowhere."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    return aiohttp.ClientSession(
        trace_configs=[trace], cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
    )


async def _refuse_redirect(_session: Any, _context: Any, _params: Any) -> None:
    raise RelayUnreachable("it sends us to another address")


class Link:
    """An open websocket. `timeout_s` is for each thing that is sent."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse, timeout_s: float) -> None:
        self._websocket = websocket
        self._timeout_s = timeout_s
        self._sending = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None
        self._takes_nothing = False
        self._socket: Any = websocket.get_extra_info("socket")

    @classmethod
    async def open(
        cls, session: aiohttp.ClientSession, url: yarl.URL, *, timeout_s: float, heartbeat_s: float
    ) -> "Link":
        """Connect within `timeout_s`; a ping goes out after `heartbeat_s`. Raises RelayUnreachable."""
        try:
            async with asyncio.timeout(timeout_s):
                websocket = await session.ws_connect(
                    url, heartbeat=heartbeat_s, max_msg_size=MOST_FRAME, timeout=_wait(_CLOSE_S)
                )
        except TimeoutError:
            raise RelayUnreachable(f"it does not answer within {timeout_s:g} s") from None
        except aiohttp.WSServerHandshakeError as error:
            raise RelayUnreachable(f"it answers {error.status} and opens no websocket") from None
        except _TRANSPORT_ERRORS as error:
            raise RelayUnreachable(f"it can not be reached ({type(error).__name__})") from None
        return cls(websocket, timeout_s)

    async def send(self, text: str) -> None:
        """Send a message, and wait until the relay has room for more, so that nothing piles up here.

        Raises RelayUnreachable. A relay that takes nothing for `timeout_s` loses the connection.
        """
        async with self._sending:
            await self._taken()  # what somebody sent who did not wait to the end
            self._writing = asyncio.create_task(self._websocket.send_str(text))
            timer = asyncio.get_running_loop().call_later(self._timeout_s, self._stalled)
            self._writing.add_done_callback(lambda _: timer.cancel())
            await self._taken()

    def _stalled(self) -> None:
        self._takes_nothing = True
        self._cut()

    async def _taken(self) -> None:
        """Wait for the writing. It is never cancelled: aiohttp would cancel with it whoever writes next."""
        if self._writing is None:
            return
        await asyncio.wait({self._writing})
        error = None if self._writing.cancelled() else self._writing.exception()
        if self._takes_nothing:
            raise RelayUnreachable(f"it has taken nothing for {self._timeout_s:g} s")
        if error is not None or self._writing.cancelled():
            raise RelayUnreachable(f"the connection broke off ({type(error).__name__})")

    async def receive(self) -> str:
        """The next message of text. Raises RelayUnreachable when there will be none."""
        while True:
            message = await self._websocket.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    return str(message.data)
                case aiohttp.WSMsgType.BINARY:
                    continue  # no relay sends any
                case aiohttp.WSMsgType.ERROR:
                    raise RelayUnreachable(f"the connection broke off ({type(message.data).__name__})")
            code = self._websocket.close_code
            raise RelayUnreachable(f"it closed the connection (code {code})" if code else "it went away")

    async def close(self) -> None:
        """Close within two seconds, whether the relay answers or not."""
        with contextlib.suppress(TimeoutError, *_TRANSPORT_ERRORS):
            async with asyncio.timeout(_CLOSE_S):
                await self._websocket.close()
        self._cut()
        with contextlib.suppress(RelayUnreachable):
            await self._taken()

    def _cut(self) -> None:
        """End the connection at once; what was not sent yet is dropped."""
        if self._socket is not None:
            with contextlib.suppress(OSError, ValueError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _wait(seconds: float) -> aiohttp.ClientWSTimeout:
    return aiohttp.ClientWSTimeout(ws_receive=None, ws_close=seconds)  # type: ignore[call-arg,no-any-return,unused-ignore]
