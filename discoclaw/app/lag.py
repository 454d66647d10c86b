"""How late the event loop is. While something blocks it, nothing else runs: no answer, no heartbeat, no page.

A thread gives the loop a call twice a second, and the call says how long it waited. If it doesn't come back,
the thread writes into the log where the loop is at that moment, because only a thread still can.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from typing import Final

from discoclaw.core.counts import Histogram
from discoclaw.core.health import Finding

log = logging.getLogger(__name__)

EVERY_S: Final = 0.5
BLOCKED_S: Final = 5.0
"""From this lag on the loop counts as blocked: an answer stalls, and Discord may end the connection."""
NEWS_S: Final = 300.0
"""For so long a block is news."""
BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_FRAMES: Final = 6


class LoopLag:
    """Measures how late the event loop is that starts it. It is a `core.service.Service`."""

    def __init__(self, *, every_s: float = EVERY_S, blocked_s: float = BLOCKED_S) -> None:
        self.times = Histogram(BOUNDS_S)
        self.last_s = 0.0
        """What the last call waited."""
        self._every_s = every_s
        self._blocked_s = blocked_s
        self._worst = (0.0, 0.0)  # the last block, and when it ended
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Begin to measure."""
        loop, ident = asyncio.get_running_loop(), threading.get_ident()
        self._thread = threading.Thread(target=self._watch, args=(loop, ident), name="loop lag", daemon=True)
        self._thread.start()

    async def settle(self) -> None:
        """There is nothing to wait for."""

    async def close(self) -> None:
        """Stop measuring."""
        self._stop.set()

    def finding(self) -> Finding:
        """How the loop is. Asked in the loop, so it runs at this moment."""
        lag, ended = self._worst
        if lag and time.perf_counter() - ended < NEWS_S:
            text = f"it was blocked for {lag:.0f} s, {time.perf_counter() - ended:.0f} s ago"
            return Finding("the event loop", "warning", text, "the log says where it was at that time")
        return Finding("the event loop", "good", f"{self.last_s * 1000:.0f} ms late")

    def _watch(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        while not self._stop.wait(self._every_s):
            back = threading.Event()
            try:
                loop.call_soon_threadsafe(self._back, time.perf_counter(), back)
            except RuntimeError:  # the loop is closed
                return
            if not back.wait(self._blocked_s):
                _report(ident, self._blocked_s)
                while not back.wait(self._every_s) and not self._stop.is_set() and not loop.is_closed():
                    pass

    def _back(self, sent: float, back: threading.Event) -> None:
        back.set()
        now = time.perf_counter()
        self.last_s = now - sent
        self.times.add(self.last_s)
        if self.last_s >= self._blocked_s:
            self._worst = (self.last_s, now)
            log.warning("the event loop was blocked for %.1f s", self.last_s)


def _report(ident: int, blocked_s: float) -> None:
    frame = sys._current_frames().get(ident)
    where = "".join(traceback.format_stack(frame)[-_FRAMES:]) if frame is not None else ""
    log.error("the event loop has been blocked for %.0f s; it is here:\n%s", blocked_s, where.rstrip())
