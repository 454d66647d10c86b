"""`discoclaw run` with the admin's page: the log shows the way in, and other machines have none."""

import re

import aiohttp
import pytest

from tests.process.house import House

pytestmark = pytest.mark.asyncio(loop_scope="module")
FORKED = True


class TestThePage:
    async def test_is_entered_by_the_address_in_the_log(self, house: House) -> None:
        bot = await house.running(DISCOCLAW_PAGE="localhost:0")
        line = await bot.logged("the way into the admin's page")
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/enter\?token=[\w-]{32}", line)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            async with http.get(address) as response:
                shown = await response.text()
            assert str(response.url) == address.partition("enter")[0]
            assert "connected</b>" in shown
            async with http.get(address.partition("enter")[0], cookies={}) as response:
                assert "Overview" in await response.text()
        bot.terminate()
        assert await bot.ended() == 0
        token = address.partition("=")[2]
        assert house.printed().count(token) == 1

    async def test_listens_to_no_other_machine(self, house: House) -> None:
        bot = await house.start(DISCOCLAW_PAGE="0.0.0.0:8765")
        assert await bot.ended() == 1
        assert (
            "DISCOCLAW_PAGE=0.0.0.0:8765: must be an address that other machines can't reach"
            in house.printed()
        )
