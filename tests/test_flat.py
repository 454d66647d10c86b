"""What a running bot keeps does not grow with what is said: objects are counted after n messages and 3 n."""

import asyncio
import functools
import gc
import sys
from collections import Counter, deque

import pytest

from bench.resident import talking

FULL, MORE = 480, 960
"""After so many messages everything with a bound is full here; then so many more."""
SINGLE = 5
"""So many more of a kind are caches that filled again, or what other tests of this process left."""
TIMERS = 200
"""More cancelled timers than asyncio keeps."""


async def kept() -> tuple[Counter[str], int]:
    """The bot's own objects by their type, and all of Python's memory blocks, without cached results."""
    for _ in range(TIMERS):
        asyncio.get_running_loop().call_later(3_600, print).cancel()
    await asyncio.sleep(0)
    gc.collect()
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()
    kinds = Counter(map(type, gc.get_objects()))
    own = Counter({str(kind): count for kind, count in kinds.items() if "'discoclaw." in str(kind)})
    del kinds
    return own, sys.getallocatedblocks()


@pytest.mark.long
async def test_objects_do_not_grow_with_messages() -> None:
    """Blocks do, by half of one a message: what was forgotten is noted, so that it doesn't come back."""
    async with talking(3, max_items=5) as (app, say):
        gc.unfreeze()  # else the caches of modules are not found
        app.client._connection._messages = deque(maxlen=20)
        await say(FULL)
        few, blocks = await kept()
        await say(MORE)
        many, more_blocks = await kept()
        grown = {kind: count for kind, count in (many - few).items() if count > SINGLE}
        assert grown == {}, "what grows with messages grows by hundreds"
        assert more_blocks - blocks < MORE
