"""How long reading a large picture holds up everything: the longest pause of the event loop meanwhile.

A picture of 12 megapixels and about 5 MB, as phones take them, goes through the reader while a ticker asks
for its turn every millisecond. The baseline is the same decoder in a thread of the bot's own process: it lets
go of the interpreter's lock while it decodes, but not while it copies.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from io import BytesIO

from PIL import Image

from bench.figure import Figure, without_garbage
from discoclaw.core.message import FileRef, Picture
from discoclaw.session.files.pictures import made_anew
from discoclaw.session.files.reading import Limits, Reader

ROUNDS = 5
MOST_MS = 20.0
WIDTH, HEIGHT = 4000, 3000


class Held:
    """A file in RAM."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def download(self, file: FileRef, most: int) -> bytes:
        return self._data


async def measure() -> list[Figure]:
    """The longest pause in several rounds, for the two kinds of pictures that phones and browsers send."""
    figures = []
    for kind, quality in (("JPEG", 96), ("WEBP", 98)):
        data = _picture(kind, quality)
        reader = Reader(Held(data), Limits())
        file = FileRef("1", "2", "3", "picture", len(data))

        async def ours(reader: Reader = reader, file: FileRef = file) -> None:
            assert isinstance(await reader.read(file), Picture)

        async def bare(data: bytes = data) -> None:
            await asyncio.to_thread(made_anew, data)

        longest, beside = 0.0, 0.0
        with without_garbage():
            for _ in range(ROUNDS):
                longest = max(longest, await _longest_pause(ours))
                beside = max(beside, await _longest_pause(bare))
        name = f"longest pause while a {kind} picture of {len(data) / 1e6:.1f} MB is read"
        met = longest <= MOST_MS
        figures.append(Figure(name, longest, beside, "ms", "in a thread", f"<= {MOST_MS:g} ms", met))
    return figures


async def _longest_pause(work: Callable[[], Awaitable[None]]) -> float:
    """How much too late (ms) a ticker had its turn at worst while something worked."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, (time.perf_counter() - began) * 1e3 - 1)

    ticker = asyncio.create_task(tick())
    try:
        await asyncio.sleep(0)
        await work()
    finally:
        ticker.cancel()
    return longest


def _picture(kind: str, quality: int) -> bytes:
    """A picture with as much detail as a photo, always the same."""
    small = Image.frombytes(
        "RGB", (WIDTH // 8, HEIGHT // 8), random.Random(7).randbytes(WIDTH * HEIGHT // 64 * 3)
    )
    out = BytesIO()
    small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC).save(out, kind, quality=quality)
    return out.getvalue()
