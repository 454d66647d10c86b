"""The entry point for the chat's adapter: takes in a message, and answers it in its turn or refuses it.

Core makes the rules, the queue keeps the order, the turn does the work. A queue without room refuses, and
everybody is told without flooding the channel. Independent of Discord.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from discoclaw.core.errors import ChatError, ChatUnavailable, ErasedMeanwhile, NotNow, Refused
from discoclaw.core.health import Asked, Counts
from discoclaw.core.inbox import Due, Question, due
from discoclaw.core.message import Author, Inbound, Place, Said
from discoclaw.core.policy import should_respond
from discoclaw.core.ports import MakeReply, Reply
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.memory.conversations.answers import Answers
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.session.agent import STOPPED, Agent, tell
from discoclaw.session.desk import Desk, Job
from discoclaw.session.hearing import HISTORY_WAIT_S, Listener
from discoclaw.session.prepare import Preview
from discoclaw.session.turn import Turn, Turns

log = logging.getLogger(__name__)

NOT_HERE = "I don't answer here any more"
INTERVIEW = "the interview goes on here; finish it first, or end it with `/hatch cancel`"
BUSY = "I am still working on earlier messages here. Please send this again in a moment."


class Talk:
    """All conversations."""

    def __init__(
        self,
        turns: Turns,
        listener: Listener,
        inboxes: Inboxes,
        answers: Answers,
        agent: Agent,
        desk: Desk,
    ) -> None:
        self.turns = turns
        self.listener = listener
        self.inboxes = inboxes
        self.agent = agent
        self.desk = desk
        self.chosen = Chosen()
        self.counts = Counts()
        self._hatchery = agent.hatchery
        self._refill = agent.preparation.refill
        self._loops = listener.loops
        self._answers = answers
        self.refusals = Refusals(lambda: STOPPED if desk.closed else BUSY)

    async def first_time(self, message: Inbound) -> bool:
        """Whether a message was never handled before, here or by another process.

        Discord repeats some after a lost connection. What others changed of what a turn reads is read anew.
        """
        if message.place.kind == "dm" and not message.author.allowed:
            return True  # nothing is kept about strangers, not even that they wrote
        if not self.inboxes.take(message.place, message.session_key, message.id):
            return False
        if await self.turns.claim(message):
            return True
        self.inboxes.heard(message.session_key, message.id)
        return False

    async def receive(self, message: Inbound, reply: MakeReply) -> None:
        """Take in a message of an allowed channel, and answer it if the policy says so."""
        turn = await self.hear(message)
        if turn is not None:
            self.answer(turn, reply)

    async def hear(self, message: Inbound) -> Turn | None:
        """Take in a message of an allowed channel. Returns it if it is to be answered."""
        self.counts.heard += 1
        turn = await self.turns.of(message)
        self.listener.hear(turn)
        return turn if message.author.allowed and await self.wants_answer(turn) else None

    async def preview(self, message: Inbound) -> Preview:
        """What a model would read if somebody wrote this now, by a turn's steps in a copy of the window.

        Nothing is sent to it, and nothing is kept.
        """
        turn = await self.turns.of(message)
        turn.fit()
        await self._refill.fill(turn)
        turn = replace(turn, window=turn.window.copy())
        turn.enter(turn.said())
        return Preview(turn, await self.agent.preparation.of(turn, files=False))

    async def ask(self, message: Inbound, reply: MakeReply) -> bool:
        """Answer what an allowed person asked with a command. Returns False if the policy forbids it there.

        It is an aside: the question and its answer are seen by that person alone.
        """
        turn = await self.turns.of(message)
        mode, owner = turn.policy.respond_mode, message.author.is_owner
        if not should_respond(mode, mentions_us=True, is_owner=owner, in_our_thread=False):
            return False
        self.listener.hear_aside(turn)
        self.answer(turn, reply)
        return True

    def caught_up(self, session_key: str) -> None:
        """A conversation's gap was read."""
        self.inboxes.caught_up(session_key)
        self._loops.resume(session_key)

    async def restore(self, place: Place, session_key: str, before: str) -> None:
        """After a start: let the loops have what was said before a message, as far as they missed it.

        Waits at most `HISTORY_WAIT_S`.
        """
        window = self.turns.windows.use(session_key)
        if not window.refilled:
            reading = self._refill.read(place, session_key, window, before=before)
            await asyncio.wait([reading], timeout=HISTORY_WAIT_S)

    async def wants_answer(self, turn: Turn) -> bool:
        """Whether the policy says to answer an allowed person's message.

        In a thread in which the bot took part, it replies without being mentioned. That survives restarts,
        because it is known from the thread's history and its summary.
        """
        message, policy = turn.message, turn.policy
        if self._hatchery.takes(turn):
            return True  # the interview's owner waits for an answer, and need not mention the bot
        ours = False
        if message.place.kind == "thread" and policy.respond_mode == "mention" and not message.mentions_us:
            await self._refill.fill(turn)
            ours = any(said.by_us for said in turn.window.recent())
            ours = ours or self._loops.tracks.took_part(turn.session_key)
        return should_respond(
            policy.respond_mode,
            mentions_us=message.mentions_us,
            is_owner=message.author.is_owner,
            in_our_thread=ours,
        )

    async def takes_requests(self, message: Inbound) -> bool:
        """Whether a request in plain words is taken as one: from who may talk to the bot, where it answers.

        In an interview about its personality, all words belong to that.
        """
        turn = await self.turns.of(message)
        if not message.author.allowed or self._hatchery.takes(turn):
            return False
        return message.mentions_us or await self.wants_answer(turn)

    async def again(
        self, message: Inbound, make: MakeReply, answer_id: str, forget: Callable[[], None]
    ) -> bool:
        """Answer a message once more instead of the answer that began with `answer_id`.

        `forget` takes that one out of everything as soon as it is certain that there will be another one.
        Returns False if the queue is full. Raises Refused.
        """
        turn = replace(await self._asked(message), replaces=answer_id)
        if not self.answer(turn, make):
            return False
        forget()  # before the turn begins: a queue's worker is a task
        return True

    async def go_on(self, message: Inbound, make: MakeReply) -> bool:
        """Give somebody the rest of an answer, for which they wrote no message.

        `message` is what they would have written. No other part hears of it, and it is not open after a
        restart, because the chat does not have it. Returns False if the queue is full. Raises Refused.
        """
        return self.answer(await self._asked(message), make, in_chat=False)

    async def _asked(self, message: Inbound) -> Turn:
        """The turn of a question asked with a button, which counts as a mention. Raises Refused."""
        turn = await self.turns.of(replace(message, mentions_us=True))
        if self._hatchery.takes(turn):
            raise NotNow(INTERVIEW)
        if not (message.author.allowed and await self.wants_answer(turn)):
            raise Refused(NOT_HERE)
        turn.fit()
        return turn

    def answer(self, turn: Turn, make: MakeReply, *, in_chat: bool = True) -> bool:
        """Answer when the conversation's queue reaches the message.

        Returns False if the queue is full, which the author is told. `in_chat`: the message can be read there
        after a restart, so one that comes while we stop waits for that.
        """
        key, message_id = turn.session_key, turn.message.id
        if in_chat:
            self.inboxes.begin(key, message_id)
        asked, reply = self.begun(turn, make)
        ended = partial(self.inboxes.end, key, [message_id])

        async def dropped() -> None:
            asked.unanswered("closing")
            ended(await tell(reply, STOPPED, key, "missing"))

        job = Job(lambda: self.agent.take(turn, reply, ended, asked), dropped, turn.message.author.id)
        if self.desk.submit(key, job):
            self.refusals.room(key)
            return True
        if in_chat and self.desk.closed:
            asked.unanswered("closing")
            self.refusals.leave(reply)
            ended(False)
            return False
        asked.unanswered("busy")
        self.refusals.refuse(key, turn.message.author, reply, ended)
        return False

    def begun(self, turn: Turn, make: MakeReply) -> tuple[Asked, Reply]:
        """Begin the answer to a message, and count how long its person waits."""
        time, message = asyncio.get_running_loop().time, turn.message
        asked = Asked(self.counts, time())

        def shown(id: str, channel_id: str) -> None:
            asked.shown(time())
            self.inboxes.show(turn.session_key, message.id, id)
            if turn.place.kind != "aside":  # which no history has
                self._answers.sent(channel_id, id, turn.permission, message.asks)

        return asked, make(shown)

    async def take_missed(self, missed: Sequence["Missed"], now: int) -> int:
        """Take in one conversation's missed messages, oldest first. Returns how many will be answered.

        Those that are not `open` must have passed `first_time`.
        """
        asked: dict[str, tuple[Turn, Missed]] = {}
        for one in missed:
            if one.open:
                await self.turns.look(one.message)
                turn: Turn | None = await self.turns.of(one.message)
            else:
                turn = await self.hear(one.message)
            if turn is not None and not one.answered:
                asked[one.message.id] = turn, one
        whole = [
            Question(one.message.id, one.message.author.id, one.message.sent_at)
            for _, one in asked.values()
            if not one.half
        ]
        halves = [Due((key,), late=False) for key, (_, one) in asked.items() if one.half]
        waiting = sorted([*due(whole, now), *halves], key=lambda one: int(one.ids[-1]))
        if not waiting:
            return len(asked)
        # The answers are one job. What it does not get to is answered after the next gap.
        key = next(iter(asked.values()))[0].session_key
        for message_id in asked:
            self.inboxes.begin(key, message_id)

        async def run() -> None:
            # An answer to several questions is a reply to one, so a crash must find all of them open.
            await self.inboxes.on_disk(DISK_S)
            try:
                while waiting:
                    await self._make_up(key, waiting[0], asked)
                    del waiting[0]
            finally:
                await leave()

        async def leave() -> None:
            for one in waiting:
                self.inboxes.end(key, one.ids, False)

        if not self.desk.submit(key, Job(run, leave)):
            await leave()
        return len(asked)

    async def _make_up(self, key: str, due: Due, asked: Mapping[str, tuple[Turn, "Missed"]]) -> None:
        """Answer some questions at once, or apologise."""
        turn, newest = asked[due.ids[-1]]
        ended = partial(self.inboxes.end, key, due.ids)
        # What was said before its person was erased goes to no model any more.
        kept = [one for one in due.ids if not asked[one][0].permission.erased]
        if len(kept) > 1 and not due.late:
            turn = await self.turns.of(_united([asked[one][1].message for one in kept]))
        counted, reply = self.begun(turn, newest.reply)
        if kept and not due.late:
            await self.agent.take(turn, reply, ended, counted, due.ids)
            return
        counted.unanswered("late")
        if not newest.half or kept:
            ended(await tell(reply, LATE, key, "missing"))
            return
        await reply.push(ErasedMeanwhile.user_message)  # instead of what was shown, maybe of what was erased
        try:
            await reply.finish("missing")
        except ChatError as error:
            ended(not isinstance(error, ChatUnavailable))
        else:
            ended(True)


# ---------------------------------------------------------------------- no room in the queue

PAUSE_S = 3.0
"""The pause between two refusals in one conversation."""


@dataclass(frozen=True, slots=True)
class _Refused:
    name: str
    reply: Reply
    ended: Callable[[bool], None]


class Refusals:
    """Tells people that their messages are not answered. `why` is what they are told."""

    def __init__(self, why: Callable[[], str], *, pause_s: float = PAUSE_S) -> None:
        self._why = why
        self._pause_s = pause_s
        self._told: dict[str, set[str]] = {}
        self._waiting: dict[str, list[_Refused]] = {}
        self._next: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def room(self, session_key: str) -> None:
        """The queue has room again, so whoever is refused from now on is told again."""
        self._told.pop(session_key, None)

    def leave(self, reply: Reply) -> None:
        """Tell nobody anything: the message is answered after the next start, in its turn."""
        self._run(reply.drop())

    def refuse(self, session_key: str, author: Author, reply: Reply, ended: Callable[[bool], None]) -> None:
        """Tell somebody that their message will not be answered. Does not wait for the chat.

        `ended` is called at the end, with False if the chat was out of reach.
        """
        told = self._told.setdefault(session_key, set())
        if author.id in told:
            self._run(reply.drop())
            ended(True)
            return
        told.add(author.id)
        refused = _Refused(author.name, reply, ended)
        if (waiting := self._waiting.get(session_key)) is not None:
            waiting.append(refused)
            return
        self._waiting[session_key] = [refused]
        now = asyncio.get_running_loop().time()
        self._next = {key: at for key, at in self._next.items() if at > now}
        self._run(self._tell(session_key, self._next.get(session_key, now) - now))

    async def close(self) -> None:
        """Tell those who wait for it, without a further pause."""
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _tell(self, session_key: str, wait_s: float) -> None:
        if wait_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._closing.wait()
        refused = self._waiting.pop(session_key)
        *others, last = refused
        self._next[session_key] = asyncio.get_running_loop().time() + self._pause_s
        done = True
        try:
            for one in others:
                await one.reply.drop()
            await last.reply.fail(self._why(), also=[one.name for one in others])
        except ChatError as error:
            log.warning("a refusal could not be said: %s", error)
            done = not isinstance(error, ChatUnavailable)
        finally:
            for one in refused:
                one.ended(done)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="refusal")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# ---------------------------------------------------------------------- messages chosen to ask about

MOST = 200
"""The most chosen messages; beyond that the oldest is forgotten, since its question was likely given up."""


class Chosen(Derived):
    """The chosen messages, by the person who chose and the message's id."""

    name = "messages chosen to ask about"

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Said] = OrderedDict()

    def keep(self, user_id: str, message_id: str, quoted: Said) -> None:
        """Remember the message that somebody begins to ask about."""
        self._kept[user_id, message_id] = quoted
        self._kept.move_to_end((user_id, message_id))
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def take(self, user_id: str, message_id: str) -> Said | None:
        """The message that somebody asks about now; None if it is not known any more."""
        return self._kept.pop((user_id, message_id), None)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Drop the messages that somebody took back, or edited: they are read again as they are now.

        What an erased person chose goes too.
        """
        for (chooser, message_id), said in list(self._kept.items()) if phase == "ram" else ():
            erased = purge.erases and purge.user_id and purge.user_id in (chooser, said.author_id)
            if erased or purge.covers(said) or said.id in purge.changed:
                del self._kept[chooser, message_id]


# ----------------------------------------------------------------------
# Handles what was said while the bot was away: in order, and with one answer to each question.
#
# Few questions are answered one by one, many of one person together, and old ones get a word of apology; see
# `core/inbox`. A conversation's missed questions are one job in its queue, so they come before what is said
# now (`Talk.take_missed`). Independent of how the missed messages were found.

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


def _united(messages: Sequence[Inbound]) -> Inbound:
    """One person's messages as one, in the place of the newest."""
    texts = "\n\n".join(one.text for one in messages)
    attached = tuple(file for one in messages for file in one.attachments)
    text = f"{TOGETHER.format(len(messages))}\n\n{texts}"
    files = tuple(file for one in messages for file in one.files)
    ids = tuple(one.id for one in messages)
    return replace(messages[-1], text=text, attachments=attached, files=files, stands_for=ids)
