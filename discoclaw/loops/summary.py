"""The rolling summary of a conversation: makes a new one from the previous one and the unseen messages.

Before a summary is stored, the people whose words it may have are recorded (`speakers`), so that an erasing
finds it. What people said before their memory was erased is left out. In a channel the same call also returns
what is new for the group's memory: themes and decisions.

What the model answers is compared with the previous summary (`core/drift`), and cut to its length by whole
lines (`core/rolling_text`). An answer that says nothing changes nothing: its messages wait for the next run.

A summary that was withdrawn (`conversations/withdrawn`) is made again from the messages that it took in and
that may still be used. If they cannot all be read, it goes on from what was left of the old one (`base`).
Whatever the model answers, no summary is stored that has the words of what somebody took back, unless
somebody else said them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import TypeAlias

from discoclaw.core.consent import Consent
from discoclaw.core.draft import Origin
from discoclaw.core.drift import settled
from discoclaw.core.errors import MemoryFault, ModelEmpty
from discoclaw.core.item import Source
from discoclaw.core.message import Me, Said
from discoclaw.core.model import USUAL_READS
from discoclaw.core.patch import Summary
from discoclaw.core.ports import Clock, Model
from discoclaw.core.rolling_text import beginning, fitted, renamed, says_nothing
from discoclaw.core.taken_back import Withdrawal
from discoclaw.loops.heard import LEFT, Backlog, Heard, ids_in
from discoclaw.loops.speakers import Speakers, shown_names
from discoclaw.loops.summary_cursor import SummaryCursors, again_in, count_in
from discoclaw.loops.summary_prompt import Talk, news, prompt, system
from discoclaw.loops.withdrawn import covered, people_in, without
from discoclaw.memory.conversations.rolling import Rolling, RollingMemory
from discoclaw.memory.conversations.withdrawn import message_in
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.off import NO_GROUPS
from discoclaw.memory.people.group_notes import Known, Learned
from discoclaw.memory.people.groups import Groups

log = logging.getLogger(__name__)

BATCH_CHARS = 16_000
ALL_READS = 14_000
"""A model that reads fewer tokens at once gets less of the talk, and less room for its answer."""

TakenBackBy: TypeAlias = Callable[[Iterable[str]], Awaitable[Sequence[Withdrawal]]]
"""Returns what people (user ids) took back. Raises MemoryFault."""


async def nothing_taken_back(user_ids: Iterable[str]) -> Sequence[Withdrawal]:
    """The answer where nobody takes anything back."""
    return ()


async def in_utc(session_key: str) -> tzinfo:
    """The zone where nobody has another one."""
    return UTC


@dataclass(frozen=True, slots=True)
class SummaryRules:
    """What summaries go by: the clock, their maximum length, the time zone of a conversation (its key), and
    how many tokens the model reads at once.

    The maximum (UTF-16 units) is enforced here, since models exceed it.
    """

    clock: Clock
    max_chars: int = 2000
    zone: Callable[[str], Awaitable[tzinfo]] = in_utc
    reads: Callable[[], int] = lambda: USUAL_READS

    def share(self, most: int) -> int:
        """How much of it there is for what the model reads at once."""
        return most * min(self.reads(), ALL_READS) // ALL_READS


class SummaryLoop:
    """Updates one session's summary.

    `consent` knows when people had their memory erased, `taken_back` what they took back. `groups` learn
    themes and decisions.
    """

    def __init__(
        self,
        model: Model,
        rolling: RollingMemory,
        cursors: Cursors,
        *,
        me: Callable[[], Me],
        rules: SummaryRules,
        consent: Consent,
        taken_back: TakenBackBy = nothing_taken_back,
        groups: Groups = NO_GROUPS,
    ) -> None:
        self._model = model
        self._rolling = rolling
        self._cursors = SummaryCursors(cursors, rolling, consent)
        self._speakers = Speakers(cursors, consent, me)
        self._rules = rules
        self._consent = consent
        self._taken_back = taken_back
        self._groups = groups
        self._learned_up_to: dict[str, int] = {}  # the group has learned from these messages already

    def hears(self, said: Said) -> bool:
        """Whether a message is to wait for a summary."""
        return True

    async def seen_up_to(self, session_key: str) -> int:
        """Return the newest message id (snowflake) in the summary; 0 if there is none.

        If the summary is lost, return the message after which it began.
        """
        cursor = await self._cursors.get(session_key)
        up_to = message_in(cursor)
        if await self.lost(session_key):
            self._learned_up_to[session_key] = up_to
            up_to = message_in(cursor, "from")
        return max(up_to, self._cursors.erased_up_to(session_key))

    async def left(self, session_key: str) -> list[str]:
        """Return the ids of messages up to there that are not in the summary and still wait."""
        return ids_in(await self._cursors.get(session_key), LEFT)

    async def lost(self, session_key: str) -> bool:
        """Whether there was a summary that nobody cleared or erased, and that is gone."""
        return await self._cursors.lost(session_key)

    async def saw(self, session_key: str, up_to: int) -> None:
        """Keep everything up to this message out of later summaries, for good."""
        await self._cursors.saw(session_key, up_to)

    async def run(self, session_key: str, backlog: Backlog) -> bool:
        """Take the oldest unseen messages into the summary. Returns whether others are still waiting.

        Messages that arrive while the model is working wait for the next run. Raises ModelError or
        MemoryFault; the old summary and the backlog are then unchanged.
        """
        for heard in list(backlog.waiting.values()):
            if heard.said.sent_at <= self._consent.erased_at(heard.said.author_id):
                backlog.forget(heard.said.id)
        batch = backlog.oldest(self._rules.share(BATCH_CHARS))
        if not batch:
            return False
        if self._rolling.paused(session_key):
            return False  # what it goes on from is about to be withdrawn
        waited = set(backlog.waiting)
        people = {
            heard.said.author_id: self._consent.erased_at(heard.said.author_id)
            for heard in batch
            if not heard.said.by_us
        }
        generation = await self._rolling.generation(session_key)
        previous, again = await self._previous(session_key, backlog)
        known = await self._known(session_key, batch)
        talk, previous = await self._talk(session_key, batch, previous)
        answer = await self._answer(previous, talk, known)
        if backlog.changed(batch):
            return backlog.once_more()  # without what was deleted, and with what was edited
        if says_nothing(answer.summary) or not (kept := await self._settled(previous, answer, talk)):
            raise ModelEmpty("the summary says nothing")
        noted = await self._speakers.people(session_key)
        taken = await self._taken_back(people_in(session_key, batch, noted))
        if gone := [one for one in batch if covered(one, taken)]:
            for heard in gone:
                backlog.forget(heard.said.id)
            return True  # once more, without what was taken back meanwhile
        answer = without(answer.model_copy(update={"summary": kept}), taken, batch, previous)
        summary = fitted(answer.summary, self._rules.max_chars)
        stored = False
        if summary:
            goes_on = bool(previous.summary)
            if not await self._speakers.note(session_key, people, talk.names, goes_on=goes_on):
                return True  # once more, without the words of people erased meanwhile
            stored = await self._rolling.put(session_key, summary, generation=generation)
            if not stored and await self._cursors.again(session_key):
                return False  # it was withdrawn meanwhile, and is made again from the chat's history
            if stored and known is not None:
                await self._learn(session_key, answer, batch, known, people)
        backlog.take(batch)
        await self._cursors.took(
            session_key,
            backlog,
            oldest=int(batch[0].said.id),
            added=len(batch) if stored else 0,
            anew=stored and not previous.summary,
            again=again,
        )
        if stored:
            self._rolling.counted(session_key)
        return not waited.isdisjoint(backlog.waiting)

    async def _answer(self, previous: Rolling, talk: Talk, known: Known | None) -> Summary:
        answer = await self._model.structured(
            purpose="summary",
            system=system(known),
            prompt=prompt(previous.summary, talk, known, self._rules.max_chars),
            shape=Summary,
            max_tokens=self._rules.share(max(2048, self._rules.max_chars)),
        )
        return answer.model_copy(update={"summary": beginning(answer.summary, 4 * self._rules.max_chars)})

    async def _settled(self, previous: Rolling, answer: Summary, talk: Talk) -> str:
        """The answer, without what it changed for no reason. Computed beside the event loop."""
        text = fitted(answer.summary, 2 * self._rules.max_chars)  # whatever a model writes
        return await asyncio.to_thread(settled, previous.summary, text, news(talk))

    async def _talk(self, key: str, batch: Sequence[Heard], previous: Rolling) -> tuple[Talk, Rolling]:
        """The batch as the model reads it, in the conversation's zone; and the summary, with these names."""
        said = [heard.said for heard in batch]
        known, names = await self._speakers.names(key, said, goes_on=bool(previous.summary))
        zone = await self._rules.zone(key)
        talk = Talk(said, names, shown_names(names, known), self._rules.clock(), zone)
        return talk, replace(previous, summary=renamed(previous.summary, known, names))

    async def _previous(self, session_key: str, backlog: Backlog) -> tuple[Rolling, int]:
        """The summary to go on from, and how often it was withdrawn since it was last stored.

        If it was, it is what was left of the old one, unless most of its messages can be read again.
        """
        previous, cursor = await self._rolling.get(session_key), await self._cursors.get(session_key)
        if not (again := again_in(cursor)):
            return previous, 0
        base, before = cursor.get("base"), message_in(cursor)
        readable = sum(int(message_id) <= before for message_id in backlog.waiting)
        if previous.summary or not isinstance(base, str) or readable * 2 >= count_in(cursor):
            return previous, again
        return replace(previous, summary=base), again

    async def _known(self, session_key: str, batch: Sequence[Heard]) -> Known | None:
        """What the group knows already; None if there is no group to learn for, or nothing new to learn.

        From old messages, the group would learn again what was forgotten since.
        """
        newest = batch[-1]
        if int(batch[0].said.id) <= self._learned_up_to.get(session_key, 0):
            return None
        try:
            return await self._groups.known(newest.place)
        except MemoryFault as fault:
            log.warning("nothing is learned for the group of %s: %s", newest.session_key, fault)
            return None

    async def _learn(
        self,
        session_key: str,
        answer: Summary,
        batch: Sequence[Heard],
        known: Known,
        people: Mapping[str, int],
    ) -> None:
        """Add what is new to the group's memory; a failure leaves the summary as it is.

        It may rest on the words of everybody in the summary, because the model was shown that.
        """
        talked, newest = await self._speakers.people(session_key), batch[-1]
        source = Source("discord", newest.place.channel_id, newest.said.id)
        origin = Origin("inferred", source, newest.said.sent_at, newest.place.hidden, of_channel=True)
        heard = {**{user_id: self._consent.erased_at(user_id) for user_id in talked}, **people}
        learned = Learned(answer.themes, answer.decisions, [one.said.id for one in batch])
        try:
            await self._groups.learn(newest.place, learned, known, heard, origin)
        except MemoryFault as fault:
            log.warning("nothing is learned for the group of %s: %s", session_key, fault)


class NoSummary(SummaryLoop):
    """Summarises nothing: stands in where summaries are switched off."""

    def __init__(self) -> None:
        """Set up nothing."""

    def hears(self, said: Said) -> bool:
        return False

    async def seen_up_to(self, session_key: str) -> int:
        return 0

    async def left(self, session_key: str) -> list[str]:
        return []

    async def lost(self, session_key: str) -> bool:
        return False

    async def saw(self, session_key: str, up_to: int) -> None:
        """Does nothing."""

    async def run(self, session_key: str, backlog: Backlog) -> bool:
        return False
