"""Answers of commands and buttons, their failures included. Knows nothing about what was asked."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import discord

from discoclaw.bot.cards.card import Card
from discoclaw.bot.texts.markup import for_people
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.session.desk import OWN_WAIT_S

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


@dataclass(frozen=True, slots=True)
class Page:
    """One message of an answer: at most 2,000 UTF-16 units, with files or buttons."""

    text: str
    files: tuple[discord.File, ...] = ()
    view: discord.ui.View | None = None


@dataclass(frozen=True, slots=True)
class Carded:
    """An answer as a card, and as the text that text commands answer and that stands in for the card."""

    card: Card
    text: "str | Sequence[Page]"


Answer = str | Sequence[Page] | Carded
"""The answer of a command: a text of any length, messages as they are, or a card."""


class Unclear(Refused):
    """It is not clear what somebody means. The text is the whole answer, or a question with buttons."""

    def __init__(self, text: str, view: discord.ui.View | None = None) -> None:
        super().__init__(text)
        self.answer: Answer = text if view is None else [Page(text, view=view)]


async def said(text: Answer) -> Answer:
    """An answer that is known already."""
    return text


def below(answer: Answer, lines: str) -> Answer:
    """An answer with more lines at its end."""
    if not lines:
        return answer
    if isinstance(answer, Carded):
        card = replace(answer.card, foot=(*answer.card.foot, *lines.splitlines()))
        text = below(answer.text, lines)
        assert not isinstance(text, Carded)
        return Carded(card, text)
    return f"{answer}\n{lines}" if isinstance(answer, str) else [*answer, Page(lines)]


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


async def outcome(work: Awaitable[Answer]) -> Answer:
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
