"""Asks a person, below the next answer to them, about what extraction was unsure of; welcomes who is new.

A question is shown once, where the words were said or in a DM with their person; never a private one anywhere
else. If the disk fails or hangs, it waits for a later answer. `!memory pending` has it too.
"""

import logging

from discoclaw.core.errors import MemoryFault
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending
from discoclaw.core.ports import AskOffer
from discoclaw.core.privacy import may_show
from discoclaw.core.view import View
from discoclaw.memory.off import AnyMemory
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.session.arrival import Arrival
from discoclaw.session.deadline import in_time, noted_in_time

log = logging.getLogger(__name__)

WELCOME = (
    "I remember what you tell me about yourself: /memory show shows it, /memory data optout switches it off. "
    "I say this only once."
)


class Asking:
    """Finds the question that is to be shown below an answer."""

    def __init__(self, memory: AnyMemory, asked: AskedBack, *, welcomes: bool = False) -> None:
        self._memory = memory
        self._asked = asked
        self._welcomes = welcomes

    async def offers(self, arrival: Arrival, branch: str | None) -> tuple[AskOffer, ...]:
        """The question below the answer to a message, if there is one; it then counts as asked.

        `branch` is the one of the persona that answered; None if it could not be read.
        """
        if branch is None:
            return ()
        known = self._memory.view_in_ram(arrival.subject, branch)
        if known is not None and _question(known) is None:  # the usual case, without a task
            return ()
        try:
            found = await in_time(self._found(arrival, branch))
        except MemoryFault as fault:
            log.warning("%s: no question is asked: %s", arrival.session_key, fault)
            return ()
        if found is None or not arrival.permission.holds:
            return ()
        noted = await noted_in_time(self._asked.note(found.user_id, found.pending.event_id))
        return (found,) if noted else ()

    async def welcome(self, arrival: Arrival, branch: str | None) -> list[str]:
        """Lines for somebody new, shown once, below the first answer that they asked for by name or in a DM.

        Nobody is new about whom something is remembered on `branch`, the one of the persona that answers.
        """
        user_id, permission = arrival.message.author.id, arrival.permission
        addressed = arrival.message.mentions_us and arrival.place.kind != "aside"
        if not (self._welcomes and addressed and permission.holds and self._asked.may_be_new(user_id)):
            return []
        known = self._memory.view_in_ram(arrival.subject, branch) if branch is not None else None
        if known is None or known.items:
            return []
        new = await noted_in_time(self._asked.welcome(user_id, arrival.message.id))
        return [WELCOME] if new and permission.holds else []

    async def _found(self, arrival: Arrival, branch: str) -> AskOffer | None:
        """The question for a person where they speak. Raises MemoryFault."""
        user_id, subject = arrival.message.author.id, arrival.subject
        view = await self._memory.view(subject, branch)
        one = _question(view)
        if one is None or not _may_show(arrival, one, view.items.get(one.item.id)):
            return None
        asked = self._asked
        if not asked.wanted(user_id) or not await asked.may_ask(user_id):
            return None
        if await asked.was_shown(user_id, one.event_id) or await asked.open(user_id) != {one.event_id}:
            return None
        for commit in (await self._memory.history(subject)).commits.values():
            if any(event.id == one.event_id for event in commit.events):
                return AskOffer(user_id, commit.id, branch, one, view.items.get(one.item.id))
        return None


def _question(view: View) -> Pending | None:
    return next((one for one in view.pending if one.question), None)


def _may_show(arrival: Arrival, one: Pending, held: Item | None) -> bool:
    here = arrival.in_dm or one.source.channel_id == arrival.place.channel_id
    return here and all(may_show(item, in_dm=arrival.in_dm) for item in (one.item, held) if item is not None)
