"""After a start a conversation's window is filled from the chat's history, once.

A reply does not wait long for it; what comes late is there for the next one.
"""

import asyncio
import logging

from discoclaw.core.errors import ChatError
from discoclaw.core.message import Inbound
from discoclaw.session.parts import Parts, erased_at
from discoclaw.session.window import Window

log = logging.getLogger(__name__)

HISTORY_WAIT_S = 2.0
"""A reply waits this long for the chat's history, once after a start."""
HISTORY_PAUSE_MS = 60_000


async def refill(parts: Parts, message: Inbound) -> None:
    """Fill a conversation's window, unless that was done; waits `HISTORY_WAIT_S` at most."""
    window = parts.windows.use(message.session_key)
    if window.refilled or parts.clock() < window.refill_after:
        return
    if window.refill is None:
        window.refill = asyncio.create_task(_refill(parts, message, window))
    await asyncio.wait([window.refill], timeout=HISTORY_WAIT_S)


async def _refill(parts: Parts, message: Inbound, window: Window) -> None:
    try:
        past = await parts.history.before(message.place, message.id, window.capacity)
        dm_of = message.author.id if message.place.kind == "dm" else None  # there, our answers go too
        past = [said for said in past if said.sent_at > erased_at(parts, dm_of or said.author_id)]
        for said in past:
            window.remember(said)
        if parts.archiving is not None:
            parts.archiving.catch_up(past, message.place, message.session_key)
        await parts.loops.catch_up(past, message.place, message.session_key, window=window.capacity)
        window.refilled = True
    except ChatError as error:
        window.refill_after = parts.clock() + HISTORY_PAUSE_MS
        log.warning("%s: no history: %s", message.session_key, error)
    except Exception:  # a named edge: nobody awaits this task, and the turn goes on without
        window.refill_after = parts.clock() + HISTORY_PAUSE_MS
        log.exception("%s: no history", message.session_key)
    finally:
        window.refill = None
