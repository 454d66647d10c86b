"""The end of the process, whatever hangs: a disk, a stream, a relay, a thread that Python would wait for.

Everything acknowledged is on disk long before, and every write takes effect completely or not at all, so a
process that ends at once loses no more than one that is killed.
"""

import logging
import os
import threading
from typing import Self

from discoclaw.memory.disk.threads import running

log = logging.getLogger("discoclaw")

WORD_S = 1.0
"""How long the last line of the log may take: what reads it may hang too."""


class Ending:
    """Ends a process that doesn't end by itself. A thread does it, since the event loop may hang."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def within(self, seconds: float) -> None:
        """End the process with exit code 1, unless this block is left before."""
        self._timer = threading.Timer(seconds, end_now)
        self._timer.daemon = True
        self._timer.start()


def end_now() -> None:
    """End the process with exit code 1, without waiting for anything. The log says what still hangs."""
    saying = threading.Thread(target=_say, daemon=True)
    saying.start()
    saying.join(WORD_S)
    os._exit(1)


def _say() -> None:
    hanging = "; ".join(running()) or "nothing on the disk, but something that was to be closed"
    log.error("stopped without waiting for what hangs: %s. What was acknowledged is saved.", hanging)
    for handler in logging.getLogger().handlers:
        handler.flush()
