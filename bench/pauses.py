"""How long garbage collection holds up everything: the longest full collection while 300 conversations talk.

A full collection stops the event loop, and with it every reply. The baseline is the same talk in the same
process where the collector looks at all objects; ours is with those set aside that are there at the start, as
the program does before it connects to Discord.
"""

import gc
import time

from bench.discord_payloads import connect
from bench.figure import Figure
from bench.sessions import EACH, NoPast, converse, message_of
from bench.world import EchoModel, fresh_folder, settings_in
from discoclaw.app import build
from discoclaw.app.app import freeze_heap

SESSIONS = 300
SHARE = 0.5


async def measure() -> list[Figure]:
    """The longest pause, with and without what the program sets aside."""
    bare = await _longest(frozen=False)
    try:
        ours = await _longest(frozen=True)
    finally:
        gc.unfreeze()
    name = f"longest full collection, {SESSIONS} conversations"
    met = ours <= SHARE * bare
    return [Figure(name, ours, bare, "ms", "all objects looked at", f"<= {SHARE:g}x", met)]


async def _longest(*, frozen: bool) -> float:
    """The longest full collection (ms) while everybody talks; one more at the end is in it."""
    talk = [[message_of(session, number) for number in range(EACH)] for session in range(SESSIONS)]
    watch = Watch()
    with fresh_folder() as folder:
        app = build(settings_in(folder), model=EchoModel(), history=NoPast())
        async with app:
            await connect(app.client, lambda text: None)
            if frozen:
                freeze_heap()
            gc.callbacks.append(watch)
            try:
                await converse(app.talk, talk)
                await app.settle()
                gc.collect()
            finally:
                gc.callbacks.remove(watch)
    return watch.longest


class Watch:
    """Times full collections. Called by the collector before and after each."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.longest = max(self.longest, (time.perf_counter() - self._began) * 1e3)
