"""Somebody who visits the admin's page of a running bot, with real HTTP."""

import html
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from pydantic import SecretStr
from yarl import URL

from tests.contract.world import Start, World

TOKEN = "a-token-for-the-page-0123"
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "catch_up_hours": 0}


def free_port() -> int:
    """A port on this machine that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Visitor:
    """A browser without JavaScript: it keeps cookies, follows redirections, and sends what browsers send."""

    def __init__(self, port: int, http: aiohttp.ClientSession) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.http = http
        self.status, self.source, self.text = 0, "", ""
        self.headers: Any = {}

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

    async def sets(self, scope: str, field: str, value: str, **more: str) -> str:
        """Change a setting with its form."""
        await self.get(f"/settings?scope={scope}")
        return await self.sends("/settings", scope=scope, field=field, value=value, **more)

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.source)
        assert found is not None
        return found[1]

    def raw(self, method: str, path: str, **options: Any) -> Any:
        """A request with no other headers than these, as a context with its response."""
        return self.http.request(method, URL(self.address + path, encoded=True), **options)

    async def _asked(self, method: str, path: str, own: dict[str, str], options: dict[str, Any]) -> str:
        headers = {**own, **options.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        async with self.raw(method, path, headers=headers, **options) as response:
            self.status, self.headers = response.status, response.headers
            self.source = await response.text()
        body = re.sub(r"<(style|title)[^>]*>.*?</\1>", "", self.source, flags=re.DOTALL)
        self.text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).strip()
        return self.text


@asynccontextmanager
async def visited(start: Start, **changes: Any) -> AsyncIterator[tuple[World, Visitor]]:
    """A world whose bot has a page, and somebody who has not come in yet."""
    port, jar = free_port(), aiohttp.CookieJar(unsafe=True)  # which keeps cookies of addresses, too
    given = {"page": f"127.0.0.1:{port}", "page_token": SecretStr(TOKEN), **QUIET, **changes}
    async with start(**given) as world, aiohttp.ClientSession(cookie_jar=jar) as http:
        yield world, Visitor(port, http)
