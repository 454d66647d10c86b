"""What commands and buttons work with, and the one place that knows which parts are switched off.

A command says what it needs (`spec.Command.needs`); that is checked once, when it is dispatched. A part that
is switched off is there all the same and does nothing, so nothing else in this package asks. The lists of
memories that people were shown are here too, in RAM, so that "1 3" can name two of them.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import discord

from discoclaw.commands.spec import Need
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.health import Seen
from discoclaw.core.message import Place
from discoclaw.core.ports import MirrorControl
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.yours import read_by
from discoclaw.loops.schedule import Loops
from discoclaw.memory.conversations.rolling import NoSummaries, RollingMemory
from discoclaw.memory.live import PlaceRules
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.purge import Purger
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.session.agent import Explained
from discoclaw.session.archiving import Archiving
from discoclaw.session.desk import OWN_WAIT_S
from discoclaw.session.hatch import Hatchery
from discoclaw.session.live_settings import LiveSettings
from discoclaw.session.toolbox import Tidy
from discoclaw.show.answer import Answer, Reply, message
from discoclaw.show.markup import for_people
from discoclaw.show.purge import Reader, purge_report
from discoclaw.usage.accounts import Accounts

OFF: Mapping[Need, str] = {
    "memory": "my memory is switched off here; whoever runs me can switch it on with "
    "DISCOCLAW_DURABLE_MEMORY_ENABLED and DISCOCLAW_STORE",
    "summaries": "summaries are switched off here; whoever runs me can switch them on with "
    "DISCOCLAW_SUMMARY_ENABLED",
    "tidying": "tidying is switched off here",
    "mirror": "nothing is backed up: no relays are set; whoever runs me can name some with NOSTR_RELAYS",
}
"""The answer to somebody who asks for a part that is switched off."""


MOST: Final = 1_000
"""The most lists that are kept."""
_NUMBERS = re.compile(r"\d{1,3}(?:(?:\s*,\s*|\s+)(?:and\s+)?\d{1,3})*")

Where = tuple[str, str]
"""A person and a conversation."""


class Listed:
    """The list that each person was shown last in each conversation; of very many the oldest are dropped."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Where, list[str]] = OrderedDict()

    def keep(self, where: Where, stamps: Iterable[str]) -> None:
        """Note what a person is shown now, in its order."""
        self._lists.pop(where, None)
        self._lists[where] = list(stamps)
        if len(self._lists) > MOST:
            self._lists.popitem(last=False)

    def numbered(self, where: Where, typed: str) -> list[str] | None:
        """The stamps that the numbers in a text name; None unless they are of the list shown last."""
        stamps = self._lists.get(where, [])
        if not _NUMBERS.fullmatch(typed.strip()):
            return None
        numbers = dict.fromkeys(map(int, re.findall(r"\d+", typed)))
        return (
            [stamps[one - 1] for one in numbers] if all(0 < one <= len(stamps) for one in numbers) else None
        )


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The parts. `off` names those that are switched off.

    `loops` make the summaries. `consolidate` tidies a memory. `settings` are the ones that admins change.
    `accounts` say what models were used for, `models_seen` how their calls end.
    `listed` are the lists of memories that people were shown.
    """

    store: AnyMemory
    summaries: RollingMemory | NoSummaries
    choices: Choices
    last_used: LastUsed
    settings: LiveSettings
    loops: Loops
    hatchery: Hatchery
    archiving: Archiving
    explained: Explained
    consolidate: Tidy
    mirror: MirrorControl
    accounts: Accounts
    models_seen: Seen
    off: frozenset[Need] = frozenset()
    listed: Listed = field(default_factory=Listed)

    @property
    def dm_privacy(self) -> DmPrivacy:
        """The rule for what of a DM may be used elsewhere."""
        return self.places.dm_privacy()

    @property
    def places(self) -> PlaceRules:
        """The rules of each place."""
        return self.settings.places

    def require(self, *needs: Need) -> None:
        """Raise Refused, with the way out, unless every part that is needed is switched on."""
        for need in needs:
            if need in self.off:
                raise Refused(OFF[need])


# ----------------------------------------------------------------------
# Answers of commands and buttons, their failures included, and what they took back.

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

        # Other conversations are named only where nobody else reads it.
        def name(session: str) -> str | None:
            if not in_private:
                return None
            if person_of(session) is not None:
                return "our DMs" if person_of(session) == str(person.id) else None
            number = session.rpartition(":")[2]
            return f"<#{number}>" if number.isdigit() and self._may_see(person, int(number)) else None

        return answer, purge_report(report, Reader(place.session_key(str(person.id)), name))

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
