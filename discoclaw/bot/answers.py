"""What a command or a button has to say, its failures included. Knows nothing about what was asked."""

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

import discord

from discoclaw.core.errors import MemoryFault, Refused

log = logging.getLogger(__name__)

NOT_ALLOWED = "You are not on my allowlist. An admin can add you with DISCORD_ALLOW_USER_IDS."
DISABLED = "durable memory is switched off here (DISCOCLAW_DURABLE_MEMORY_ENABLED or DISCOCLAW_STORE)"
BUSY = "This conversation is too busy right now. Please try again in a moment."
FAILED = "I could not change my memory just now, so nothing has changed. Please try again later."
STOPPING = "I am shutting down; please try again in a moment."
OPTED_OUT = "you have opted out of memory, so I add nothing to it; `!memory optin` switches it on again"


@dataclass(frozen=True, slots=True)
class Page:
    """One message of an answer: at most 2,000 UTF-16 units, with files or buttons."""

    text: str
    files: tuple[discord.File, ...] = ()
    view: discord.ui.View | None = None


Told = str | Sequence[Page]
"""What a command answers: a text of any length, or messages as they are."""


async def said(text: str) -> str:
    """A text that is known already, as an answer."""
    return text


async def outcome(work: Awaitable[Told]) -> Told:
    """What a command has to say, its failures included."""
    try:
        return await work
    except Refused as refusal:
        return sentence(refusal)
    except MemoryFault as fault:
        log.warning("a command changed nothing: %s", fault)
        return FAILED
    except Exception:  # a named edge: nobody waits for an answer that does not come
        log.exception("a command failed")
        return FAILED


def sentence(refusal: Refused) -> str:
    """A refusal as people are told it."""
    return str(refusal)[:1].upper() + str(refusal)[1:] + "."
