"""Somebody who visits the admin's page of a running bot, with real HTTP."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from pydantic import SecretStr
from yarl import URL

from discoclaw.app.page import Page
from discoclaw.settings_types import Listen
from tests.app.conftest import Start, World, running

TOKEN = "a-token-for-the-page-0123"
ON: dict[str, Any] = {"page": Listen("127.0.0.1", 0), "page_token": SecretStr(TOKEN)}


class Visitor:
    """A browser without JavaScript: it keeps cookies, follows redirections, and sends what browsers send."""

    def __init__(self, world: World, http: aiohttp.ClientSession) -> None:
        self.world = world
        self.http = http
        self.status = 0
        self.text = ""
        self.headers: Any = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{running(self.world.app, Page).listener.port}"

    async def get(self, path: str, **options: Any) -> str:
        """Open a page by its address, and return its text without markup."""
        return await self._asked("GET", path, {"Sec-Fetch-Site": "none"}, options)

    async def post(self, path: str, data: dict[str, str] | bytes, **options: Any) -> str:
        """Send a form of the page."""
        own = {"Sec-Fetch-Site": "same-origin", "Origin": self.address}
        return await self._asked("POST", path, own, {"data": data, **options})

    async def enter(self, token: str = TOKEN) -> str:
        return await self.post("/enter", {"token": token})

    async def sends(self, path: str, **fields: str) -> str:
        """Send a form with the CSRF token of the newest page."""
        return await self.post(path, {"csrf": self.csrf, **fields})

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.source)
        assert found is not None
        return found[1]

    @property
    def cookies(self) -> list[Any]:
        """The cookies that were set."""
        return list(self.http.cookie_jar)

    def raw(self, method: str, path: str, **options: Any) -> Any:
        """A request with no other headers than these, as a context with its response."""
        return self.http.request(method, URL(self.address + path, encoded=True), **options)

    async def _asked(self, method: str, path: str, own: dict[str, str], options: dict[str, Any]) -> str:
        headers = {**own, **options.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        async with self.raw(method, path, headers=headers, **options) as response:
            self.status, self.headers = response.status, response.headers
            self.source = await response.text()
        self.text = plain(self.source)
        return self.text


def plain(source: str) -> str:
    """What a page says, without its markup, in one line."""
    body = re.sub(r"<(style|title)[^>]*>.*?</\1>", "", source, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).strip()


@asynccontextmanager
async def visited(start: Start, model: Any = None, **changes: Any) -> AsyncIterator[tuple[World, Visitor]]:
    """A world whose bot has a page, and somebody who has not come in yet."""
    jar = aiohttp.CookieJar(unsafe=True)  # which keeps cookies of addresses, too
    async with start(model, **{**ON, **changes}) as world, aiohttp.ClientSession(cookie_jar=jar) as http:
        yield world, Visitor(world, http)
