"""Waiting for a state while a model's answer is held, when the simulated Discord never becomes quiet."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object]) -> None:
    """Return once the condition holds; raises TimeoutError after ten seconds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
