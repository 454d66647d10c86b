"""Answers of commands and buttons, their failures included. Knows nothing about what was asked."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.session.desk import OWN_WAIT_S
from discoclaw.show.answer import Answer, Reply, message
from discoclaw.show.markup import for_people

log = logging.getLogger(__name__)

NOT_ALLOWED = "You aren't on my allowlist. Whoever runs me can add you with DISCORD_ALLOW_USER_IDS."
BUSY = "This conversation is too busy right now. Please try again in a moment."
FAILED = "I couldn't save or read your memory, so nothing has changed. Please try again later."
STOPPING = "I'm shutting down. Please try again in a moment."
SLOW = (
    "My disk is slow to answer. I'm still trying, and I'll say here what came of it. "
    "If this was a change, it may still be made: `!memory show` tells whether it was."
)
OPTED_OUT = "you have opted out of memory, so I add nothing to it; `!memory optin` turns it on again"
ONLY_OWNERS = "only my owners can do that; whoever runs me names them with DISCOCLAW_OWNER_IDS"

T = TypeVar("T")


class Unclear(Refused):
    """It is not clear what somebody means. The text is the whole answer, or a question with buttons."""

    def __init__(self, answer: str | Answer) -> None:
        self.answer = message(answer) if isinstance(answer, str) else answer
        super().__init__(self.answer.as_text(in_private=True))


async def told_if_slow(work: Coroutine[Any, Any, T], tell: Callable[[], Awaitable[None]]) -> T:
    """Await something a person waits for. If it takes too long, `tell` says so, once, and it goes on."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=OWN_WAIT_S)
        if not task.done():
            await tell()
        return await task
    except asyncio.CancelledError:
        task.cancel()
        raise


async def outcome(work: Awaitable[Reply]) -> Reply:
    """Await the answer of a command; a failure becomes a sentence."""
    try:
        return await work
    except Unclear as unclear:
        return unclear.answer
    except Refused as refusal:
        return sentence(refusal)
    except MemoryFault as fault:
        log.warning("a command changed nothing: %s", fault)
        return FAILED
    except Exception:  # a named edge: nobody waits for an answer that never comes
        log.exception("a command failed")
        return FAILED


def sentence(refusal: Refused) -> str:
    """A refusal as people read it."""
    text = for_people(str(refusal))
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
