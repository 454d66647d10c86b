"""The admin's page in a real browser: somebody enters, goes through all of it, and changes a setting."""

import asyncio
import logging
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser import browsing, needed
from tests.contract.live import written
from tests.contract.visitor import TOKEN, visited
from tests.contract.world import Start

OUTSIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
"""Whether something is wider than the window."""
SHOTS = os.environ.get("PAGE_SHOTS")
"""A folder for pictures of all pages, for somebody who wants to look at them."""


@needed
@pytest.mark.long
class TestAVisit:
    async def test_needs_no_script_and_nothing_from_elsewhere(self, start: Start) -> None:
        async with visited(start) as (world, me), browsing() as tab:
            await world.ann.send(world.general, "hello")
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            logging.getLogger("discoclaw").warning("%s went wrong", "a-very-long-name" * 20)
            await tab.go(f"{me.address}/people")
            assert "Who's there?" in await tab.text()
            await tab.fill("#token", "wrong")
            await tab.click("main button")
            assert "That token isn't right" in await tab.text()
            await tab.fill("#token", TOKEN)
            await tab.click("main button")
            assert "Health" in await tab.text()
            for width in (1280, 390):
                await tab.size(width, 800)
                for name in ("Overview", "Connections", "Usage", "Queues", "People", "Settings", "Errors"):
                    await tab.click("nav a", name)
                    assert name in await tab.text()
                    assert not await tab.js(OUTSIDE), f"{name} is wider than {width} pixels"
                    for dark in (False, True) if SHOTS else ():
                        await tab.size(width, 800, dark=dark)
                        await tab.picture(Path(SHOTS or "") / f"{name}-{width}{'-dark' * dark}.png")
            await tab.click("nav a", "Connections")
            await tab.click(".channels a", "#general")
            assert "Settings for #general" in await tab.text()
            await tab.click("nav a", "Settings")
            await tab.fill('form:has([value="receipts"]) select', "on")
            await tab.click('form:has([value="receipts"]) button', "Save")
            assert "Receipts is now on." in await tab.text()
            assert written(world)["global"] == {"receipts": True}
            await tab.click(".top button", "Leave")
            assert "Who's there?" in await tab.text()
            assert tab.console == []
            assert {urlsplit(one).netloc for one in tab.requests} == {urlsplit(me.address).netloc}
            assert not [one for one in tab.requests if TOKEN in one]

    async def test_may_begin_with_the_address_in_the_log(self, start: Start) -> None:
        async with visited(start) as (_, me), browsing() as tab:
            await tab.go(f"{me.address}/enter?token={TOKEN}")
            assert "Health" in await tab.text()
            assert await tab.js("location.href") == f"{me.address}/"
            assert await tab.js("document.cookie") == ""
            assert await tab.js("document.referrer") == ""
            await tab.js(
                "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:1/x'}))"
            )
            async with asyncio.timeout(10):
                while not any("Content Security Policy" in one for one in tab.console):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)  # nobody tells when the browser has said so
