"""Handles what was said while the bot was away: in order, and with one answer to each question.

Few questions are answered one by one, many of one person together, and old ones get a word of apology; see
`core/inbox`. A conversation's missed questions are one job in its queue, so they come before what is said
now. Independent of how the missed messages were found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from discoclaw.core.inbox import Due, Question, due
from discoclaw.core.message import Inbound
from discoclaw.core.ports import Clock, MakeReply
from discoclaw.session.arrival import Arrival
from discoclaw.session.desk import Job
from discoclaw.session.talk import Talk
from discoclaw.session.turn import tell

LATE: Final = "I was offline when you wrote this. If it still matters, please ask me again."
DISK_S: Final = 2.0
"""How long (s) the first answer waits for a disk that hangs."""
TOGETHER: Final = "({} messages, written while you were offline; answer all of them)"


@dataclass(frozen=True, slots=True)
class Missed:
    """A message from the time when the bot was away, or one whose answer was interrupted.

    `open`: it was heard before, and its answer is missing. `half`: part of its answer was shown, and `reply`
    replaces that. `answered`: it has its answer.
    """

    message: Inbound
    reply: MakeReply
    open: bool = False
    half: bool = False
    answered: bool = False


class CatchUp:
    """Takes in the missed messages of one conversation after another."""

    def __init__(self, talk: Talk, *, clock: Clock) -> None:
        self._talk = talk
        self._clock = clock

    async def take(self, missed: Sequence[Missed]) -> int:
        """Take in the missed messages of one conversation, oldest first. Returns how many will be answered.

        Those that are not `open` must have passed `Talk.first_time`.
        """
        asked: dict[str, tuple[Arrival, Missed]] = {}
        for one in missed:
            if one.open:
                await self._talk.arrivals.look(one.message)
                arrival: Arrival | None = await self._talk.arrivals.of(one.message)
            else:
                arrival = await self._talk.hear(one.message)
            if arrival is not None and not one.answered:
                asked[one.message.id] = arrival, one
        whole = [_question(one.message) for _, one in asked.values() if not one.half]
        halves = [Due((key,), late=False) for key, (_, one) in asked.items() if one.half]
        dues = sorted([*due(whole, self._clock()), *halves], key=lambda one: int(one.ids[-1]))
        if dues:
            self._submit(dues, asked)
        return len(asked)

    def _submit(self, dues: Sequence[Due], asked: dict[str, tuple[Arrival, Missed]]) -> None:
        """Queue the answers as one job. What it does not get to is answered after the next gap."""
        key = next(iter(asked.values()))[0].session_key
        inboxes, waiting = self._talk.inboxes, [*dues]
        for message_id in asked:
            inboxes.begin(key, message_id)

        async def run() -> None:
            # An answer to several questions is a reply to one, so a crash must find all of them open.
            await inboxes.on_disk(DISK_S)
            try:
                while waiting:
                    await self._give(key, waiting[0], asked)
                    del waiting[0]
            finally:
                leave()

        async def dropped() -> None:
            leave()

        def leave() -> None:
            for one in waiting:
                inboxes.end(key, one.ids, False)

        if not self._talk.desk.submit(key, Job(run, dropped)):
            leave()

    async def _give(self, key: str, due: Due, asked: dict[str, tuple[Arrival, Missed]]) -> None:
        """Answer some questions at once, or apologise."""
        inboxes = self._talk.inboxes
        arrival, newest = asked[due.ids[-1]]
        ended = partial(inboxes.end, key, due.ids)
        # What was said before its person was erased goes to no model any more.
        kept = [one for one in due.ids if not asked[one][0].permission.erased]
        if newest.half and not kept:
            ended(True)
            return
        if len(kept) > 1 and not due.late:
            arrival = await self._talk.arrivals.of(_united([asked[one][1].message for one in kept]))
        counted, reply = self._talk.begun(arrival, newest.reply)
        if due.late or not kept:
            counted.unanswered("late")
            ended(await tell(reply, LATE, key, "missing"))
            return
        await self._talk.turns.take(arrival, reply, ended, counted, due.ids)


def _question(message: Inbound) -> Question:
    return Question(message.id, message.author.id, message.sent_at)


def _united(messages: Sequence[Inbound]) -> Inbound:
    """One person's messages as one, in the place of the newest."""
    texts = "\n\n".join(one.text for one in messages)
    attached = tuple(file for one in messages for file in one.attachments)
    text = f"{TOGETHER.format(len(messages))}\n\n{texts}"
    files = tuple(file for one in messages for file in one.files)
    ids = tuple(one.id for one in messages)
    return replace(messages[-1], text=text, attachments=attached, files=files, stands_for=ids)
