"""Makes the pictures of the documents from the demo, in a real browser: `make pictures`.

The talk is with the offline model, so every run shows the same but for times. The log of usage is made up,
because the offline model costs nothing.
"""

import asyncio
import base64
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from discoclaw.core.usage import Payer
from discoclaw.demo.world import World
from discoclaw.memory.subjects.store import Memory
from discoclaw.usage.log import UsageLog
from tests.browser import Tab, browsing
from tests.core.calls import DAY, call

MOST_BYTES = 1_000_000
"""The largest moving picture: GitHub loads it before somebody reads on."""
PURPOSES = "answer", "answer", "answer", "extraction", "summary", "tidying"
PAGE, TOKEN = "127.0.0.1:8799", "only-for-the-pictures-0123"


@dataclass
class Film:
    """Frames of a tab, each with how long it is shown, in ms."""

    tab: Tab
    frames: list[tuple[Image.Image, int]]

    async def shoot(self, lasts_ms: int) -> None:
        self.frames.append((await pictured(self.tab), lasts_ms))

    def save(self, path: Path) -> None:
        """Write it as a GIF with one palette. Raises ValueError if it is too large."""
        images, lasts = zip(*self.frames, strict=True)
        palette = images[-1].quantize(128)
        few = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in images]
        few[0].save(path, save_all=True, append_images=few[1:], duration=list(lasts), loop=0, optimize=True)
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")


async def pictured(tab: Tab, selector: str = "") -> Image.Image:
    """The window, or what lies in its element `selector` with some space around."""
    clip = {}
    if selector:
        box = await tab.js(
            f"(() => {{ const box = [...document.querySelectorAll({selector!r})].at(-1)"
            ".getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()"
        )
        clip = {"clip": dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}}
    shot = await tab.call("Page.captureScreenshot", **clip)
    return Image.open(BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


async def until(tab: Tab, condition: str) -> None:
    """Wait until an expression of the page holds."""
    async with asyncio.timeout(60):
        while not await tab.js(condition):  # noqa: ASYNC110 - a browser has no event for us
            await asyncio.sleep(0.05)


ANSWERS = "[...document.querySelectorAll('#log [data-by=DiscoClaw]')]"


async def act(tab: Tab, step: str, number: int, says: str) -> None:
    """Press a button of a step, and wait until the bot's newest answers say this."""
    await tab.js("""document.querySelector('[data-place="start"]').click()""")
    await tab.js(f"""document.querySelector('#steps [data-step="{step}"][data-act="{number}"]').click()""")
    await until(tab, f"{ANSWERS}.slice(-3).some(one => one.innerText.includes({says!r}))")
    await asyncio.sleep(1.5)  # what follows an answer: a receipt, a commit
    await tab.js("document.activeElement.blur()")


async def press(tab: Tab, label: str, says: str) -> None:
    """Press a button or choose an option of the newest answer, and wait for what it becomes."""
    await tab.js(
        f"[...{ANSWERS}.at(-1).querySelectorAll('button')]"
        f".find(one => one.textContent.trim() === {label!r}).click()"
    )
    await until(tab, f"{ANSWERS}.at(-1).innerText.includes({says!r})")


async def run(*words: str, folder: Path) -> None:
    """Run a command of the program on the demo's data."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "discoclaw", *words),
        env={**os.environ, "DISCOCLAW_DATA_DIR": str(folder / "demo")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    if await process.wait():
        raise SystemExit(f"`discoclaw {' '.join(words)}` failed")


@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[str]:
    """The address of a demo that runs in this folder."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "discoclaw", "demo", "--port", "0"),
        env={
            "PATH": os.environ["PATH"],
            "DISCOCLAW_DATA_DIR": folder.name,  # the page shows it
            "DISCOCLAW_PAGE": PAGE,
            "DISCOCLAW_PAGE_TOKEN": TOKEN,
            "DISCOCLAW_BUDGET": "5/day, person 1/day",
        },
        cwd=folder.parent,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):  # until it runs; the pictures take as long as they take
            while not (found := re.search(rb"http://\S+", await process.stdout.readline())):
                pass
        yield found[0].decode()
    finally:
        process.terminate()
        await process.wait()


def spend(folder: Path) -> None:
    """Write thirty days of calls into the log of usage."""
    some, people = random.Random(5), [str(one) for one in World("general").people]
    now = int(time.time() * 1000)
    calls = [
        call(
            now - some.randrange(30) * DAY - some.randrange(DAY // 24),
            some.randrange(2, 60) * 1_000_000,
            purpose=purpose,
            model="sonnet" if purpose == "answer" else "haiku",
            payer=Payer(some.choice(people)),
            tokens=(some.randrange(2_000, 9_000), some.randrange(50, 700)),
        )
        for purpose in some.choices(PURPOSES, k=700)
    ]
    memory = Memory(folder / "demo" / "memory", clock=lambda: now)
    memory.open()
    usage = UsageLog(memory.disk)
    usage.begin(now, None)
    usage.append(calls)
    memory.close()


async def make(into: Path) -> None:
    """Write all pictures into a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        spend(folder)
        async with demo(folder) as address, browsing() as tab:
            await tab.size(1100, 640, dark=True)
            await tab.go(address)
            await until(tab, "'ready' in document.body.dataset")
            await moving(tab, into / "demo.gif")
            await cards(tab, into)
            await reminders(tab, into / "reminders.png")
            await history(tab, into / "graph.png")
            await actions(tab, into / "actions.png")
            await admin(tab, into / "page.png")
        await run("usage", "--since", "30d", "--force", "--picture", str(into / "usage.png"), folder=folder)


async def moving(tab: Tab, path: Path) -> None:
    """The first five minutes in half a minute."""
    film = Film(tab, [])
    await film.shoot(2500)
    await act(tab, "say", 0, "remembered")
    await film.shoot(3500)
    await act(tab, "ask", 0, "tabs")
    await film.shoot(3000)
    await act(tab, "ask", 1, "don't")
    await film.shoot(2500)
    await act(tab, "private", 0, "remembered")
    await film.shoot(3000)
    await act(tab, "private", 2, "don't know")
    await film.shoot(3000)
    await act(tab, "look", 2, "Undo")
    await film.shoot(3500)
    film.save(path)


async def cards(tab: Tab, into: Path) -> None:
    """What the bot remembers, as a card on a phone, and the same card after something was forgotten."""
    await tab.size(390, 844)
    await act(tab, "look", 0, "What I remember")
    (await pictured(tab, "#log [data-by=DiscoClaw]")).save(into / "cards-show.png", optimize=True)
    await press(tab, "⋯", "Forget")
    await press(tab, "Forget", "Undo")
    (await pictured(tab, "#log [data-by=DiscoClaw]")).save(into / "cards-undo.png", optimize=True)


async def say(tab: Tab, text: str, says: str) -> None:
    """Write a message, and wait until the bot's newest answer says this."""
    await tab.js(
        f"(() => {{ const field = document.querySelector('#text'); field.value = {text!r};"
        "field.dispatchEvent(new Event('input')); document.querySelector('#composer').requestSubmit(); })()"
    )
    await until(tab, f"({ANSWERS}.at(-1)?.innerText || '').includes({says!r})")


async def actions(tab: Tab, path: Path) -> None:
    """A poll and a message in another channel that somebody asked for, each with Undo."""
    await tab.size(900, 800, dark=True)
    await tab.js("""document.querySelector('[data-person="you"]').click()""")
    await asyncio.sleep(1)
    await tab.js("""document.querySelectorAll('[data-place][data-kind="text"]')[1].click()""")
    await asyncio.sleep(1)
    for text in ("make a poll: pizza or pasta?", "post in #general: dinner is at eight"):
        await say(tab, text, "Done.")
        await asyncio.sleep(1.5)
    (await pictured(tab)).quantize(128).save(path, optimize=True)


async def reminders(tab: Tab, path: Path) -> None:
    """Two reminders that are asked for in talk, and the one that comes a minute later."""
    await tab.size(620, 860)
    await say(tab, "remind me every last Monday of the month at 10 to pay the rent", "(UTC)")
    await asyncio.sleep(1)
    await say(tab, "remind me in 1 minute here to take the tea out", "take the tea out")
    await asyncio.sleep(60)
    await until(tab, f"{ANSWERS}.at(-1).innerText.includes('My reminders')")
    await asyncio.sleep(1)
    (await pictured(tab)).quantize(128).save(path, optimize=True)


async def history(tab: Tab, path: Path) -> None:
    """The picture of a history with a persona, a merge and an undo, as the bot draws it."""
    await tab.js("""document.querySelector('[data-person="Sam"]').click()""")
    await asyncio.sleep(1)  # until the page has what Sam sees
    await tab.js("""document.querySelector('[data-place][data-kind="dm"]').click()""")
    await asyncio.sleep(1)
    for text, says in (
        ("!memory remember I like tea", "like tea"),
        ("!memory remember I write Python", "write Python"),
        ("!memory persona create coding", "coding"),
        ("!memory persona switch coding", "coding"),
        ("!memory remember I prefer tabs over spaces", "tabs over spaces"),
        ("!memory remember I use a tiling window manager", "tiling"),
        ("!memory persona switch main", "main"),
        ("!memory remember I have a cat called Ada", "called Ada"),
        ("!memory persona merge coding", "merged"),
        ("!memory remember I like horror films", "horror"),
        ("!memory undo", "took back"),
        ("!memory graph picture", "changes"),
    ):
        await say(tab, text, says)
        await asyncio.sleep(0.5)
    shown = f"{ANSWERS}.at(-1).querySelector('img')"
    await until(tab, f"{shown}?.complete && {shown}.naturalWidth > 0")
    drawn = await tab.js(
        f"(() => {{ const from = {shown}, to = document.createElement('canvas');"
        "to.width = from.naturalWidth; to.height = from.naturalHeight;"
        "to.getContext('2d').drawImage(from, 0, 0); return to.toDataURL().split(',')[1]; })()"
    )
    Image.open(BytesIO(base64.b64decode(drawn))).convert("RGB").quantize(64).save(path, optimize=True)


async def admin(tab: Tab, path: Path) -> None:
    """The overview and the usage on the admin's page, side by side."""
    shots = []
    await tab.size(1000, 680)
    await tab.go(f"http://{PAGE}/")
    await tab.fill("#token", TOKEN)
    await tab.click("main button")
    shots.append(await pictured(tab))
    await tab.click("nav a", "Usage")
    shots.append(await pictured(tab))
    both = Image.new("RGB", (2024, 680), "white")
    for number, shot in enumerate(shots):
        both.paste(shot, (number * 1024, 0))
    both.quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
