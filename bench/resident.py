"""Memory while running: per active conversation, per 1,000 items of a person, and what 10,000 messages add.

The first two are counted by tracemalloc, so they are what Python holds and not what the system has reserved.
Their baseline is the text that was said, and the durable file: the least that could be kept. The messages
are of 3 people and of 30, in one channel. Their baseline is what the process had after the first 2,000. By
then all that is kept up to a bound is full: the window, the 1,000 messages of discord.py, the 200 memories of
each person, and the 10,000 items in indices. `tests/test_flat.py` counts that nothing else is kept. These
rows, and what a bot has at its start, are each measured in a process of its own: what Python once took from
the system, it seldom gives back. Without /proc they are left out.
"""

import asyncio
import gc
import logging
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure
from bench.sessions import POLICY, Listener, NoPast
from bench.world import OWNER, EchoModel, fill, fresh_folder, message, sentence, settings_in
from discoclaw.app import App, build, now_ms
from discoclaw.app.app import freeze_heap
from discoclaw.core.subject import user_subject
from discoclaw.memory.subjects.store import Memory

SESSIONS, WINDOW = 1_000, 20
ITEMS = 1_000
BEFORE, MESSAGES, MOST_BYTES = 2_000, 10_000, 500
GROUPS = (3, 30)
MOST_MB = 110
STATM = "/proc/self/statm"


async def measure() -> list[Figure]:
    """The figures, in kB and MB."""
    process = [_at_start(), *map(_alone, GROUPS)] if sys.platform == "linux" else []
    return [await _conversations(), await _items(), *process]


async def _conversations() -> Figure:
    dice = random.Random(7)
    said = 0
    with fresh_folder() as folder:
        app = build(settings_in(folder), model=EchoModel(), history=NoPast())
        async with app:
            await connect(app.client, lambda text: None)
            talk = app.talk
            grown = _counting()
            for session in range(SESSIONS):
                for number in range(WINDOW - 1):
                    text = sentence(dice)
                    said += len(text)
                    inbound = message(session, 2 * number, text, sent_at=now_ms())
                    turn = talk.turns.under(inbound, POLICY)
                    talk.listener.hear(turn)
                reply = Listener([], (2 * WINDOW - 1) * 1_000_000 + session)
                talk.answer(turn, lambda shown, reply=reply: reply)
                said += len(text)  # the answer says it again
                if session % 100 == 99:
                    await talk.desk.settle()
            held = grown()
            tracemalloc.stop()
    return Figure(
        f"an active conversation, window of {WINDOW}",
        held / SESSIONS / 1000,
        said / SESSIONS / 1000,
        "kB",
        "the text that was said",
    )


async def _items() -> Figure:
    dice = random.Random(7)
    with fresh_folder() as folder:
        memory = Memory(folder, clock=now_ms, max_items=ITEMS)
        await memory.change("user-1", "fill", lambda draft: fill(draft, ITEMS, dice))
        size = (memory.durable_folder / "1.json").stat().st_size
        again = Memory(folder, clock=now_ms, max_items=ITEMS)
        grown = _counting()
        view = await again.view("user-1")
        held = grown()
        tracemalloc.stop()
        assert len(view.items) == ITEMS
    return Figure(f"{ITEMS:,} items of a person", held / 1000, size / 1000, "kB", "their durable file")


_START = f"""
import asyncio
from pathlib import Path
from discoclaw.cli import main, running
from discoclaw.app import build
from discoclaw.settings import load
async def start():
    async with build(load()):
        print(Path("{STATM}").read_text().split()[1])
asyncio.run(start())
"""


def _at_start() -> Figure:
    """A bot that has started and waits for Discord, with Anthropic's SDK and without it."""
    found = []
    with fresh_folder() as folder:
        for provider in ("anthropic", "offline"):
            given = {"DISCOCLAW_MODEL_PROVIDER": provider, "ANTHROPIC_API_KEY": "x"}
            given["PYTHONPATH"] = str(Path(__file__).parent.parent)
            words = [sys.executable, "-c", _START]
            done = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True, check=True)
            found.append(int(done.stdout) * os.sysconf("SC_PAGE_SIZE") / 1e6)
    with_sdk, without = found
    target = f"<= {MOST_MB} MB without"
    return Figure("resident at start", with_sdk, without, "MB", "without the SDK", target, without <= MOST_MB)


def _alone(people: int) -> Figure:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_in_process, people).result()


def _in_process(people: int) -> Figure:
    logging.disable(logging.WARNING)
    return asyncio.run(_grown(people))


async def _grown(people: int) -> Figure:
    async with talking(people) as (_, say):
        await say(BEFORE)
        before = _resident()
        await say(MESSAGES - BEFORE)
        after = _resident()
    met = after - before <= MOST_BYTES * (MESSAGES - BEFORE)
    name = f"resident after {MESSAGES:,} messages of {people} people"
    beside = f"after {BEFORE:,}"
    return Figure(name, after / 1e6, before / 1e6, "MB", beside, f"<= {MOST_BYTES} bytes a message more", met)


@asynccontextmanager
async def talking(people: int, **changes: Any) -> AsyncIterator[tuple[App, Callable[[int], Awaitable[None]]]]:
    """A bot in whose channel so many people talk, and what has them send that many more messages.

    Everybody has as many memories as the bot keeps, so each new one takes the place of another.
    """
    dice, numbers = random.Random(7), count()
    with fresh_folder() as folder:
        everybody = [str(OWNER + number) for number in range(people)]
        settings = settings_in(folder, allow_users=frozenset(everybody), shutdown_grace_s=1.0, **changes)
        app = build(settings, model=EchoModel(), small_model=EchoModel())
        async with app:
            await connect(app.client, lambda text: None)
            memory = app.storage.memory
            assert memory is not None
            for one in everybody:
                await memory.change(
                    user_subject(one), "fill", lambda draft: fill(draft, settings.max_items, dice)
                )
            freeze_heap()

            async def say(messages: int) -> None:
                for number in islice(numbers, messages):
                    payload = message_payload(number, sentence(dice), author=OWNER + number % people)
                    app.client._connection.parse_message_create(payload)
                    if number % people == people - 1:
                        await app.settle()
                await app.settle()

            yield app, say


def _resident() -> int:
    """How many bytes of this process are in RAM."""
    gc.collect()
    return int(Path(STATM).read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _counting() -> Callable[[], int]:
    """Starts to count; the result says how many bytes have been taken and not given back since."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    return lambda: tracemalloc.get_traced_memory()[0] - before
