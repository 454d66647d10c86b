"""Disk access with a deadline: a hanging disk delays a reply by at most two seconds, never prevents it."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from discoclaw.core.errors import MemoryFault

log = logging.getLogger(__name__)

READ_WAIT_S = 2.0
"""The longest a reply waits for a disk; it waits only at the first look at a person or conversation."""
SAVE_WAIT_S = 2.0
"""The longest that the next message of an interview waits for its transcript to reach the disk."""


async def read_in_time(readings: Sequence[tuple[str, Coroutine[Any, Any, Any], Any]]) -> list[Any]:
    """Return the results of (name, reading, default), read concurrently; the default if one fails or is late.

    A late reading continues in the background, so that its result is in RAM for the next reply. Names are for
    the log.
    """
    tasks = [asyncio.create_task(reading) for _, reading, _ in readings]
    if tasks:
        await asyncio.wait(tasks, timeout=READ_WAIT_S)
    return [_result(task, name, default) for task, (name, _, default) in zip(tasks, readings, strict=True)]


def _result(task: asyncio.Task[Any], name: str, default: Any) -> Any:
    if not task.done():
        log.warning("answering without %s: the disk does not answer", name)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return default
    try:
        return task.result()
    except (MemoryFault, OSError) as fault:
        log.warning("answering without %s: %s", name, fault)
        return default


async def noted_in_time(noting: Coroutine[Any, Any, bool]) -> bool:
    """Whether something was recorded on disk in time; a hanging disk counts as no."""
    task = asyncio.create_task(noting)
    await asyncio.wait([task], timeout=SAVE_WAIT_S)
    if not task.done():
        log.warning("an interview could not be saved in time: the disk does not answer")
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return False
    return task.result()
