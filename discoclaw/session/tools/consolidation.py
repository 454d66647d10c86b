"""Consolidates a memory at the model's request, with a limit on how long a reply waits for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from discoclaw.core.consolidate import ConsolidationReport
from discoclaw.core.errors import ModelError, ModelSpent, Refused

log = logging.getLogger(__name__)

WAIT_S = 25.0
"""The longest a reply waits for a consolidation; then it goes on without the report."""

Tidy = Callable[[str, str | None, Mapping[str, str]], Awaitable[ConsolidationReport]]
"""Consolidates a subject's branch now, with the given commit metadata.

Raises Refused, ModelError or MemoryFault.
"""


class Consolidation:
    """Consolidates on demand with `tidy`."""

    def __init__(self, tidy: Tidy, *, wait_s: float = WAIT_S) -> None:
        self._tidy = tidy
        self._wait_s = wait_s

    async def run(self, subject: str, branch: str | None, why: Mapping[str, str], *, in_dm: bool) -> str:
        """Return the report of a consolidation, or that it goes on. Raises Refused and MemoryFault."""
        tidying = asyncio.ensure_future(self._tidy(subject, branch, why))
        tidying.add_done_callback(lambda late: late.cancelled() or late.exception())
        done, _ = await asyncio.wait([tidying], timeout=self._wait_s)
        if not done:
            return "It takes a while; what comes of it is in the history afterwards (memory_history)."
        try:
            return tidying.result().text(in_private=in_dm)
        except ModelSpent as error:
            raise Refused(error.user_message) from None
        except ModelError as error:
            log.warning("consolidation for %s failed: %s", subject, error)
            raise Refused("the model that tidies did not answer; nothing was changed") from None
