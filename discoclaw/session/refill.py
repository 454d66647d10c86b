"""Fills a conversation's window from the chat's history, once after a start.

A reply does not wait long for that; late messages are there for the next reply.
"""

import asyncio
import logging

from discoclaw.core.consent import Consent
from discoclaw.core.errors import ChatError
from discoclaw.core.ports import Clock, History
from discoclaw.loops.schedule import Loops
from discoclaw.session.archiving import Archiving
from discoclaw.session.arrival import Arrival

log = logging.getLogger(__name__)

HISTORY_WAIT_S = 2.0
"""The longest a reply waits for the chat's history, once after a start."""
HISTORY_PAUSE_MS = 60_000


class Refill:
    """Fills windows from `history`, and passes its messages to the loops and the archive."""

    def __init__(
        self, history: History, consent: Consent, loops: Loops, archive: Archiving, *, clock: Clock
    ) -> None:
        self._history = history
        self._consent = consent
        self._loops = loops
        self._archive = archive
        self._clock = clock

    async def fill(self, arrival: Arrival) -> None:
        """Fill a conversation's window unless it was filled before; waits at most `HISTORY_WAIT_S`."""
        window = arrival.window
        if window.refilled or self._clock() < window.refill_after:
            return
        if window.refill is None:
            window.refill = asyncio.create_task(self._fill(arrival))
        await asyncio.wait([window.refill], timeout=HISTORY_WAIT_S)

    async def _fill(self, arrival: Arrival) -> None:
        message, place, window = arrival.message, arrival.place, arrival.window
        try:
            wanted = await self._loops.look_back(arrival.session_key, window=window.capacity)
            past = await self._history.before(place, message.id, wanted)
            # In a DM the bot's answers were addressed to the person too, so they count as theirs.
            dm_of = message.author.id if arrival.in_dm else None
            past = [
                said for said in past if not self._consent.ask(dm_of or said.author_id, said.sent_at).erased
            ]
            recent = past[-window.capacity :]
            for said in recent:
                window.remember(said)
            self._archive.catch_up(recent, place, arrival.session_key)
            await self._loops.catch_up(past, place, arrival.session_key, window=window.capacity)
            window.refilled = True
        except ChatError as error:
            window.refill_after = self._clock() + HISTORY_PAUSE_MS
            log.warning("%s: no history: %s", arrival.session_key, error)
        except Exception:  # deliberately broad: nobody awaits this task, and the turn goes on without it
            window.refill_after = self._clock() + HISTORY_PAUSE_MS
            log.exception("%s: no history", arrival.session_key)
        finally:
            window.refill = None
