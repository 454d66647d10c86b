"""Chromium without a screen, driven through its DevTools protocol: a real browser for the admin's page.

It is asked for by `browser`, and tests are skipped where it is not installed. It notes what the console says
and every request that leaves it.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",  # a container has no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-default-browser-check",
    "--no-first-run",
    "--remote-debugging-port=0",
)
WAIT_S = 30.0


class Tab:
    """A page of the browser. `console` is what it complained about, `requests` what it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._loaded = asyncio.Event()
        self._session = ""

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": number, "method": method, "params": params, **session})
        async with asyncio.timeout(WAIT_S):
            return await answer

    async def open(self) -> None:
        """Open a page, and listen to what happens in it."""
        made = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def listen(self) -> None:
        """Take what the browser sends, until it ends."""
        async for message in self._socket:
            self._take(json.loads(message.data))

    def _take(self, message: dict[str, Any]) -> None:
        if (number := message.get("id")) is not None:
            answer = self._answers.pop(number)
            if "error" in message:
                answer.set_exception(AssertionError(message["error"]["message"]))
            else:
                answer.set_result(message["result"])
            return
        params = message["params"]
        match message["method"]:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Log.entryAdded":
                self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.console.append(json.dumps(params)[:500])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    # ------------------------------------------------------------------ what a person does

    async def go(self, address: str) -> None:
        """Type an address."""
        self._loaded.clear()
        await self.call("Page.navigate", url=address)
        await self._until_loaded()

    async def click(self, selector: str, text: str = "") -> None:
        """Click what matches, and wait for the page that comes."""
        self._loaded.clear()
        found = await self.js(
            f"(() => {{ const found = [...document.querySelectorAll({json.dumps(selector)})]"
            f".find(one => one.textContent.trim().startsWith({json.dumps(text)}));"
            f"if (found) found.click(); return !!found; }})()"
        )
        assert found, f"nothing to click: {selector} {text!r}"
        await self._until_loaded()

    async def fill(self, selector: str, value: str) -> None:
        """Give a field of a form a value."""
        quoted = json.dumps(selector), json.dumps(value)
        await self.js(f"document.querySelector({quoted[0]}).value = {quoted[1]}")

    async def text(self) -> str:
        """What the page shows."""
        return str(await self.js("document.body.innerText"))

    async def js(self, expression: str) -> Any:
        """What the DevTools find; a page's own scripts are forbidden by its policy."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Have a window of so many pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)

    async def picture(self, path: Path) -> None:
        """Save the whole page as a PNG."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def _until_loaded(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self._loaded.wait()


@asynccontextmanager
async def browsing() -> AsyncIterator[Tab]:
    """A new browser with one page, and nothing it knows."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *FLAGS,
            f"--user-data-dir={folder}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with (
                aiohttp.ClientSession() as http,
                http.ws_connect(await _address(process), max_msg_size=0) as socket,
            ):
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                await tab.open()
                yield tab
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Where the DevTools listen, as the browser says."""
    assert process.stderr is not None
    async with asyncio.timeout(WAIT_S):
        async for line in process.stderr:
            if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                return found[1].decode()
    raise AssertionError("the browser ended")


needed = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
