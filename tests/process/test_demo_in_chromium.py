"""`discoclaw demo` in a real browser, on a desktop and on a phone: the five steps, and what each promises."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.browser import Tab, browsing, needed
from tests.process.pages import ADDRESS, PATIENCE, Page
from tests.process.test_demo import Demo, running

OUTSIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
WIDE = """[...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
  && one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 90))"""
SHOTS = os.environ.get("PAGE_SHOTS")
"""A folder for pictures of the page, for somebody who wants to look at them."""
DESKTOP, PHONE = (1280, 800), (390, 844)
SMALL = """[...document.querySelectorAll("button, select, .button")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && getComputedStyle(one).visibility === "visible" && box.height < 44
    && !one.matches(".link, .mention, .spoiler, .quoted");
}).map((one) => one.outerHTML.slice(0, 120))"""
"""The buttons that a thumb misses; links within a text are exempt."""

pytestmark = needed


class Visit:
    """Somebody at the page."""

    def __init__(self, tab: Tab, width: int) -> None:
        self.tab = tab
        self.phone = width < 600

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await self.tab.js(f"!!({expression})"):  # noqa: ASYNC110 - no event comes out
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise TimeoutError(f"{expression}; the page shows: {await self.tab.text()}") from None

    async def press(self, selector: str) -> None:
        """Press what matches and can be seen, once it is there."""
        await self.until(
            f"(() => {{ const one = [...document.querySelectorAll({json.dumps(selector)})]"
            f".filter((one) => one.checkVisibility({{ visibilityProperty: true }})).at(-1);"
            f"one?.click(); return !!one; }})()"
        )

    async def step(self, step: str, act: int) -> None:
        """Press a button of the guide, from the first step to the last."""
        await self.press(
            f'#guide [data-step="{step}"][data-act="{act}"], #steps [data-step="{step}"][data-act="{act}"]'
        )

    async def shows(self, words: str, *, by: str = "DiscoClaw") -> None:
        """Wait until the newest message of somebody has words."""
        await self.until(
            f"[...document.querySelectorAll('#log [data-by={by}]')].at(-1)"
            f"?.innerText.includes({json.dumps(words)})"
        )

    async def picture(self, name: str) -> None:
        """A picture of the window, if somebody wants it; everything has to fit in it, in both schemes."""
        for width, height in (DESKTOP, PHONE) if self.phone else (DESKTOP,):
            await self.tab.size(width, height)
            await self.until("!document.getAnimations().some(one => one instanceof CSSTransition)")
            assert not await self.tab.js(OUTSIDE), f"{name} is wider: {await self.tab.js(WIDE)}"
        if self.phone:
            assert await self.tab.js(SMALL) == []
        for dark in (False, True) if SHOTS else ():
            width, height = PHONE if self.phone else DESKTOP
            await self.tab.size(width, height, dark=dark)
            await asyncio.sleep(0.3)
            shot = await self.tab.call("Page.captureScreenshot")
            path = Path(SHOTS or "") / f"{name}-{width}{'-dark' * dark}.png"
            path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def visit(folder: Path, size: tuple[int, int]) -> AsyncIterator[tuple[Demo, Visit]]:
    """A demo of its own, and its page in a browser."""
    async with running(folder) as demo, browsing() as tab:
        await tab.size(*size)
        found = ADDRESS.search(demo.bot.stdout)
        assert found is not None
        await tab.go(found[0])
        one = Visit(tab, size[0])
        await one.until("'ready' in document.body.dataset")
        yield demo, one
        assert tab.console == []
        assert {urlsplit(one).netloc for one in tab.requests if not one.startswith("blob:")} == {
            urlsplit(found[1]).netloc
        }
        assert not [one for one in tab.requests if found[2] in urlsplit(one)._replace(fragment="").geturl()]


async def test_the_five_steps_end_with_what_each_promises(tmp_path: Path) -> None:
    async with visit(tmp_path, PHONE) as (_, you):
        assert "A bot that remembers you" in await you.tab.text()
        await you.picture("1-welcome")
        await you.step("say", 0)
        await you.shows("remembered")
        await you.shows("tabs over spaces")
        await you.until(
            "document.querySelector('[data-held=commits] details summary')"
            "?.textContent.includes('learned: you prefer tabs over spaces')"
        )
        await you.picture("2-say")
        await you.step("ask", 0)
        await you.shows("tabs over spaces")
        await you.step("ask", 1)
        await you.shows("What do I prefer?", by="Sam")
        await you.until("document.querySelectorAll('#log [data-by=DiscoClaw]').length >= 2")
        assert "tabs" not in await you.tab.js(
            "[...document.querySelectorAll('#log [data-by=DiscoClaw] .body')].at(-1).innerText"
        )
        await you.picture("3-ask")
        await you.step("private", 0)
        await you.shows("penicillin")
        await you.step("private", 1)
        await you.shows("You are allergic to penicillin.")
        await you.step("private", 2)
        await you.until("document.querySelector('#title').textContent === '#general'")
        await you.shows("I don't know that.")
        assert "penicillin" not in await you.tab.js("document.querySelector('#log').innerText")
        await you.picture("4-private")
        await you.step("change", 0)
        await you.shows("lasagne")
        await you.step("change", 1)
        await you.until("document.querySelector('[data-kind=dm] .fresh')")  # it asks in a direct message
        await you.step("change", 2)
        await you.shows("Which is right?")
        await you.picture("5-change")
        await you.step("look", 0)
        await you.shows("What I remember about you")
        await you.picture("6-memory-show")
        await you.step("look", 1)
        await you.shows("What I could say about you")
        await you.step("look", 2)
        await you.shows("penicillin")
        await you.press("[data-hidden] button.bad")
        await you.until("/\"deprecated\"/.test(document.querySelector('#held').textContent)")
        await you.until("document.querySelector('#guide').innerText.includes('all five steps')")
        await you.press('#guide [data-place="start"]')
        assert await you.tab.js("document.querySelectorAll('#steps [data-done]').length") == 5
        await you.picture("7-all-steps")


async def test_a_phone_has_drawers_for_channels_and_for_what_is_held(tmp_path: Path) -> None:
    async with visit(tmp_path, PHONE) as (_, you):
        await you.step("say", 0)
        await you.shows("remembered")
        await you.press("[data-open=places]")
        await you.picture("8-channels")
        await you.press('[data-person="Mo"]')
        await you.press('[data-name="staff"]')
        await you.until("document.querySelector('#title').textContent === '#staff'")
        await you.press("[data-open=places]")
        await you.press('[data-person="Sam"]')  # who may not read that channel
        await you.until("document.querySelector('#title').textContent === '#general'")
        assert "staff" not in await you.tab.js("document.querySelector('#places').textContent")
        await you.press("#shade")
        await you.press("[data-open=held]")
        await you.until("document.querySelector('#held').innerText.includes('about Sam')")
        await you.picture("9-held")


async def test_a_keyboard_alone_is_enough(tmp_path: Path) -> None:
    async with visit(tmp_path, DESKTOP) as (_, you):
        await you.press('[data-name="general"]')
        await you.until("document.activeElement.id === 'text'")
        await _type(you.tab, "hello there")
        await _key(you.tab, "Enter")
        await you.shows("hello there", by="you")
        await _type(you.tab, "/memory remember ")
        await you.until("document.activeElement.dataset.option")
        await _type(you.tab, "I like lentils")
        await _key(you.tab, "Enter")
        await you.shows("I like lentils")
        await _type(you.tab, "/memory fo")
        await you.until("document.querySelectorAll('#choices [role=option]').length")
        await you.picture("a-slash")
        await _key(you.tab, "Enter")
        await you.until("document.querySelector('#choices [role=option]')?.innerText.includes('lentils')")
        await you.picture("b-completion")
        await _key(you.tab, "Enter")
        await _key(you.tab, "Enter")
        await you.shows("lentils")
        await _key(you.tab, "ArrowUp")  # edits what was said last
        await you.until("document.querySelector('#text').value === 'hello there'")
        await _key(you.tab, "Escape")
        await you.press("#log [data-by=you] .more")
        await you.until("document.activeElement.closest('#menu')")
        await you.picture("c-menu")
        await you.press('[data-menu="Ask about this"]')
        await you.until("document.querySelector('dialog[open] [data-field]')")
        await you.picture("d-modal")
        await _key(you.tab, "Escape")
        await you.until("!document.querySelector('dialog[open]')")


async def test_what_is_said_never_becomes_markup(tmp_path: Path) -> None:
    evil = (
        "<img src=x onerror=alert(1)> **bold** [go](javascript:alert(1)) [safe](https://example.org/a) "
        "||secret|| <script>alert(1)</script> `code <b>` ~~gone~~ <#1> <@1> <t:0:R>"
    )
    async with visit(tmp_path, DESKTOP) as (demo, you), aiohttp.ClientSession() as session:
        async with Page(session, demo.bot.stdout, "#general", "Sam") as sam:
            await sam.say(evil, ("<b>x.html", b"<script>alert(1)</script>"))
            await sam.say("# One\n-# small\n> quoted\n- item\n```py\n<i>1</i>\n```")
        await you.press('[data-name="general"]')
        await you.shows("small", by="Sam")
        inside = "document.querySelector('#log')"
        assert await you.tab.js(f"{inside}.querySelectorAll('img, script, iframe, b, i').length") == 0
        assert await you.tab.js(f"[...{inside}.querySelectorAll('a')].map((one) => one.href)") == [
            "https://example.org/a"
        ]
        assert "<img src=x onerror=alert(1)> bold" in await you.tab.js(f"{inside}.textContent")
        assert await you.tab.js(f"{inside}.querySelector('pre').innerText") == "<i>1</i>"


async def test_a_picture_is_dropped_sent_and_seen(tmp_path: Path) -> None:
    async with visit(tmp_path, DESKTOP) as (_, you):
        await you.press('[data-name="general"]')
        await you.until("document.activeElement.id === 'text'")
        await you.tab.js(
            """(() => {
              const canvas = Object.assign(document.createElement("canvas"), { width: 300 });
              canvas.toBlob((blob) => {
                const dataTransfer = new DataTransfer();
                dataTransfer.items.add(new File([blob], "sky.png", { type: "image/png" }));
                document.querySelector("#talk").dispatchEvent(new DragEvent("drop", { dataTransfer }));
              });
            })()"""
        )
        await you.until("document.querySelector('#files').innerText.includes('sky.png')")
        await _type(you.tab, "Look")
        await _key(you.tab, "Enter")
        await you.until("document.querySelector('#log [data-by=you] img')?.naturalWidth === 300")
        await _type(you.tab, "/memory remember I like clouds")
        await _key(you.tab, "Enter")
        await you.until("document.querySelector('#log [data-hidden]')?.innerText.includes('I like clouds')")
        await _type(you.tab, "/memory history graph")
        await _key(you.tab, "Enter")
        await you.until("document.querySelector('#log [data-hidden] img')?.naturalWidth")
        assert await you.tab.js("document.querySelectorAll('#log [data-hidden] img').length") == 1


async def _type(tab: Tab, text: str) -> None:
    await tab.call("Input.insertText", text=text)


async def _key(tab: Tab, key: str) -> None:
    code = {"Enter": 13, "Escape": 27, "ArrowUp": 38}[key]
    for kind in ("keyDown", "keyUp"):
        await tab.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)
