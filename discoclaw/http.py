"""HTTP with bounds: on the bytes of a response, and on the time it takes. Redirects are not followed.

What the adapters share; it knows neither whom it asks nor what for. `Failed` is its one error, which each
adapter turns into errors of its own. Its text holds no address, no key and nothing that the server wrote.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import aiohttp
import yarl

IDENTITY: Final = {"Accept-Encoding": "identity"}
"""Asks for a response that isn't compressed: a small one could unpack to a huge one."""
_CHUNK: Final = 65_536
_RETRY_LATER: Final = (408, 425, 429)
_REFUSED: Final = (400, 413, 422)
_KEY: Final = (401, 403)

Why = Literal["unavailable", "refused", "key", "address", "too long"]
"""The cause: the server, this request, the key, where we sent it, or the length of the response."""


class Failed(Exception):
    """No usable response. Its text is what a server did, without the server: "answers 503".

    `status` is 0 if none came. `after_s`: the server wants us to wait so many seconds.
    """

    def __init__(self, why: Why, text: str, *, status: int = 0, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.why = why
        self.status = status
        self.after_s = after_s


class Client:
    """Asks one address. `most`: the longest accepted response, in bytes.

    `reuse`: keep connections for the next request. Raises ValueError when the address can't be used.
    """

    def __init__(self, address: str, *, most: int, key: str | None = None, reuse: bool = True) -> None:
        self._url = yarl.URL(address)
        if key and self._url.user is not None:
            raise ValueError("it has a name or password in it, and there is a key too; leave one of them out")
        self._most = most
        self._headers: Mapping[str, str] = IDENTITY | ({"Authorization": f"Bearer {key}"} if key else {})
        self._reuse = reuse
        self._session: aiohttp.ClientSession | None = None

    @property
    def host(self) -> str | None:
        """The server for texts: the whole address can hold a password."""
        return self._url.host

    async def get(self) -> bytes:
        """Fetch the content. Raises Failed. The caller sets a limit of time."""
        return await self._answer("GET")

    async def post(self, **body: Any) -> bytes:
        """The response to aiohttp's `json=…` or `data=…`. Raises Failed. The caller sets a limit of time."""
        return await self._answer("POST", **body)

    async def _answer(self, method: str, **body: Any) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=not self._reuse),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),  # not aiohttp's own five minutes
            )
        try:
            async with self._session.request(
                method, self._url, headers=self._headers, allow_redirects=False, **body
            ) as response:
                return await content(response, self._most)
        except (aiohttp.ClientError, OSError) as error:
            raise Failed("unavailable", f"cannot be reached ({type(error).__name__})") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """A limit of time for everything inside. Raises Failed when it is over."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Failed("unavailable", f"did not answer within {seconds:g} s") from None


async def content(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of a response with status 200 and at most `most` bytes, whatever its header says.

    Raises Failed, and what aiohttp raises when the connection is lost.
    """
    if response.status != 200:
        raise _failed(response)
    body = bytearray()
    too_long = (response.content_length or 0) > most
    while not too_long and (chunk := await response.content.read(_CHUNK)):
        body += chunk
        too_long = len(body) > most
    if too_long:
        response.close()
        raise Failed("too long", f"sends more than {most:,} bytes", status=response.status)
    return bytes(body)


def _failed(response: aiohttp.ClientResponse) -> Failed:
    """The error for a status. The body is not quoted: it may repeat the key, or what we sent."""
    status = response.status
    why: Why = "address"
    if status in _KEY:
        why = "key"
    elif status in _RETRY_LATER or status >= 500:
        why = "unavailable"
    elif status in _REFUSED:
        why = "refused"
    after_s = _seconds(response.headers.get("Retry-After", ""))
    return Failed(why, f"answers {status}", status=status, after_s=after_s)


def _seconds(header: str) -> float:
    """`Retry-After` in seconds. Its other form, a date, counts as 0."""
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else 0.0
