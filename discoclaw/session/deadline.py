"""Disk access with a deadline: a hanging disk delays a reply by at most two seconds, never prevents it."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, MemoryLate

log = logging.getLogger(__name__)
T = TypeVar("T")

READ_WAIT_S = 2.0
"""The longest a reply waits for a disk; it waits only at the first look at a person or conversation."""
SAVE_WAIT_S = 2.0
"""The longest a turn waits for something to reach the disk: a tool's change, an interview's transcript."""


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


async def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work on a disk. Raises MemoryLate if it takes too long; it then goes on."""
    task = asyncio.create_task(work)
    await asyncio.wait([task], timeout=SAVE_WAIT_S)
    if not task.done():
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise MemoryLate("the disk does not answer in time; what was asked of it may still happen")
    return task.result()


async def noted_in_time(noting: Coroutine[Any, Any, bool]) -> bool:
    """Whether something was recorded on disk in time; a hanging disk counts as no."""
    task = asyncio.create_task(noting)
    await asyncio.wait([task], timeout=SAVE_WAIT_S)
    if not task.done():
        log.warning("something could not be noted in time: the disk does not answer")
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return False
    return task.result()
