"""Answers of commands and buttons, their failures included, and what they took back.

Knows nothing about what was asked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import discord

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.message import Place
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.yours import read_by
from discoclaw.memory.purge import Purger
from discoclaw.session.desk import OWN_WAIT_S
from discoclaw.show.answer import Answer, Reply, message
from discoclaw.show.markup import for_people
from discoclaw.show.purge import Reader, purge_report

log = logging.getLogger(__name__)

NOT_ALLOWED = "You aren't on my allowlist. Whoever runs me can add you with DISCORD_ALLOW_USER_IDS."
BUSY = "This conversation is too busy right now. Please try again in a moment."
FAILED = "I couldn't save or read your memory, so nothing has changed. Please try again later."
STOPPING = "I'm shutting down. Please try again in a moment."
SLOW = (
    "My disk is slow to answer. I'm still trying, and I'll say here what came of it. "
    "If this was a change, it may still be made: `!memory show` tells whether it was."
)
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


# ----------------------------------------------------------------------
# Tells a person, below what a command or a button answers, from where what they took back was removed.

Person = discord.User | discord.Member


class Telling:
    """Tells people what their changes took back."""

    def __init__(self, client: discord.Client, purger: Purger) -> None:
        self._client = client
        self._purger = purger

    async def told(
        self, person: Person, place: Place, work: Awaitable[T], *, in_private: bool
    ) -> tuple[T, str]:
        """Await a change: its result, and the lines to say below it; "" if it took nothing back."""
        with read_by(getattr(person, "display_name", "")):
            answer, report = await self._purger.told(user_subject(str(person.id)), work)
        return answer, purge_report(report, self._reader(person, place, in_private=in_private))

    def _reader(self, person: Person, place: Place, *, in_private: bool) -> Reader:
        """The person, in a place. Other conversations are named only where nobody else reads it."""

        def name(session: str) -> str | None:
            if not in_private:
                return None
            if person_of(session) is not None:
                return "our DMs" if person_of(session) == str(person.id) else None
            number = session.rpartition(":")[2]
            return f"<#{number}>" if number.isdigit() and self._may_see(person, int(number)) else None

        return Reader(place.session_key(str(person.id)), name)

    def _may_see(self, person: Person, channel_id: int) -> bool:
        """Whether a person can see a channel right now. A private thread is only counted."""
        channel = self._client.get_channel(channel_id)
        if isinstance(channel, discord.Thread):
            channel = None if channel.is_private() else channel.parent
        if not isinstance(channel, discord.abc.GuildChannel):
            return False
        here = isinstance(person, discord.Member) and person.guild == channel.guild
        member = person if here else channel.guild.get_member(person.id)
        return isinstance(member, discord.Member) and channel.permissions_for(member).view_channel
