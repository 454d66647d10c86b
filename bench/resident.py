"""Memory while running: per active conversation with a full window, and per 1,000 items of a person.

Counted by tracemalloc, so it is what Python holds and not what the system has reserved. The baseline of a
conversation is the text that was said in it, that of the items is their durable file: the least that could be
kept is their bytes.
"""

import random
import tracemalloc
from collections.abc import Callable

from bench.discord_payloads import connect
from bench.figure import Figure
from bench.sessions import POLICY, Listener, NoPast
from bench.world import EchoModel, fill, fresh_folder, message, sentence, settings_in
from discoclaw.app import build, now_ms
from discoclaw.memory.subjects.store import Memory

SESSIONS, WINDOW = 1_000, 20
ITEMS = 1_000


async def measure() -> list[Figure]:
    """Both figures, in kB."""
    return [await _conversations(), await _items()]


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
                    arrival = talk.arrivals.under(inbound, POLICY)
                    talk.listener.hear(arrival)
                reply = Listener([], (2 * WINDOW - 1) * 1_000_000 + session)
                talk.answer(arrival, lambda shown, reply=reply: reply)
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


def _counting() -> Callable[[], int]:
    """Starts to count; the result says how many bytes have been taken and not given back since."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    return lambda: tracemalloc.get_traced_memory()[0] - before
