"""Reading that a reply waits for, but not long: a disk that hangs costs two seconds, and never the answer."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from discoclaw.core.errors import MemoryFault

log = logging.getLogger(__name__)

READ_WAIT_S = 2.0
"""A reply waits this long for a disk, and only at the first look at a person or conversation."""


async def read_in_time(readings: Sequence[tuple[str, Coroutine[Any, Any, Any], Any]]) -> list[Any]:
    """The results of (name, reading, default), side by side; the default where a reading fails or is late.

    What is late goes on in the background: it is in RAM for the next reply. Names are for the log.
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
