"""What the chat's door talks to: a message is heard, and answered in its turn or refused with a word.

The rules are core's; the order is the desk's; the work is the turn's. Knows nothing about Discord.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from discoclaw.core.errors import ChatError
from discoclaw.core.message import Inbound, Said, with_attachments
from discoclaw.core.policy import Policy, should_respond
from discoclaw.core.ports import Reply
from discoclaw.session.desk import Desk, Job
from discoclaw.session.parts import Parts, erased_since
from discoclaw.session.refill import refill
from discoclaw.session.turn import STOPPED, take_turn

log = logging.getLogger(__name__)

BUSY = "I am still working on earlier messages here. Please send this again in a moment."


class Talk:
    """All conversations. `reply_to` builds the way out for the answer to a message."""

    def __init__(self, parts: Parts, desk: Desk) -> None:
        self.parts = parts
        self.desk = desk
        self._word: set[asyncio.Task[None]] = set()
        self._told_busy: set[str] = set()

    def hear(self, message: Inbound, policy: Policy) -> None:
        """A message of an allowed channel enters the window, whoever it is from, answered or not."""
        if erased_since(self.parts, message):
            return  # it was on its way when they had their memory erased
        window = self.parts.windows.use(message.session_key)
        if window.capacity != policy.capacity:
            window.resize(policy.capacity)
        author = message.author
        said = Said(
            id=message.id,
            author_id=author.id,
            name=author.name,
            text=with_attachments(message.text, message.attachments),
            sent_at=message.sent_at,
            is_owner=author.is_owner,
            guest=not author.allowed,
        )
        window.remember(said, shown=policy.context_history)
        self.parts.loops.hear(said, message.place, message.session_key, window=window.capacity)
        if self.parts.archiving is not None:
            self.parts.archiving.hear(said, message.place, message.session_key)
        self._meet(message)

    async def wants_answer(self, message: Inbound, policy: Policy) -> bool:
        """Whether the policy has us answer an allowed person's message.

        In a thread we took part in, talk goes on without a mention; that is known across restarts, from the
        thread's history and its summary.
        """
        if self.parts.hatchery is not None and self.parts.hatchery.takes(message):
            return True  # whoever asks waits for the answer, and is spoken to without a mention
        ours = False
        if message.place.kind == "thread" and policy.respond_mode == "mention" and not message.mentions_us:
            await refill(self.parts, message)
            window = self.parts.windows.use(message.session_key).recent()
            ours = any(said.by_us for said in window) or self.parts.loops.took_part(message.session_key)
        return should_respond(
            policy.respond_mode,
            mentions_us=message.mentions_us,
            is_owner=message.author.is_owner,
            in_our_thread=ours,
        )

    def answer(self, message: Inbound, reply: Reply) -> None:
        """Answer when the conversation's queue comes to it. A full queue is said at once."""
        job = Job(lambda: take_turn(self.parts, message, reply), lambda: reply.fail(STOPPED))
        if self.desk.submit(message.session_key, job):
            self._told_busy.discard(message.session_key)
        elif message.session_key not in self._told_busy:  # once, until the queue has room again
            self._told_busy.add(message.session_key)
            self._say(reply.fail(STOPPED if self.desk.closed else BUSY))
        else:
            self._say(reply.drop())

    def amend(self, message_id: str, author_id: str, text: str, session_key: str) -> None:
        """A message was edited in the chat."""
        self.parts.windows.amend(message_id, text, session_key)
        self.parts.loops.amend(session_key, author_id, message_id, text)
        if self.parts.archiving is not None:
            self.parts.archiving.amend(message_id, author_id, text)
        if self.parts.hatchery is not None:
            self.parts.hatchery.amend(message_id, text)

    def forget(self, message_id: str, session_key: str | None) -> None:
        """A message was deleted in the chat: it leaves the window, and no loop sees it.

        Without a session, which the chat does not always tell, it is looked for everywhere.
        """
        self.parts.windows.forget(message_id, session_key)
        self.parts.loops.forget(message_id)
        if self.parts.archiving is not None:
            self.parts.archiving.delete(message_id)
        if self.parts.hatchery is not None:
            self.parts.hatchery.forget(message_id)

    def sessions_of(self, user_id: str) -> set[str]:
        """The conversations (session keys) of which we have a person's words in RAM."""
        return {*self.parts.windows.with_words_of(user_id), *self.parts.loops.sessions_of(user_id)}

    def erase(self, user_id: str, sessions: Iterable[str], at: int) -> None:
        """A person's memory was erased at a time (ms): nothing in RAM may bring their words back.

        `sessions` are conversations whose summaries they took part in; those are begun anew.
        """
        touched = sorted({*sessions, *self.sessions_of(user_id)})
        for session_key in touched:
            self.parts.windows.use(session_key).clear()
        self.parts.explained.forget(user_id)
        self.parts.recall.forget()
        if self.parts.hatchery is not None:
            self.parts.hatchery.erase(user_id)
        self.parts.loops.erase(user_id, touched, at)

    def _meet(self, message: Inbound) -> None:
        """Note who was seen where; of guests, who can not ask for it to be erased, nothing is kept."""
        author, place, parts = message.author, message.place, self.parts
        kept = author.allowed and parts.remembers(author.id)
        if kept and parts.profiles is not None:
            parts.profiles.seen(author.id, author.name, message.sent_at, where=place.guild_id or "")
        if parts.groups is not None:
            who = author.id if kept else None
            parts.groups.seen(place, message.sent_at, user_id=who, name=author.name)

    def run(
        self, session_key: str, work: Callable[[], Awaitable[None]], dropped: Callable[[], Awaitable[None]]
    ) -> bool:
        """Queue something else of this conversation (a command) in its turn. False when the queue is full."""
        return self.desk.submit(session_key, Job(work, dropped))

    def _say(self, saying: Awaitable[None]) -> None:
        async def say() -> None:
            try:
                await saying
            except ChatError as error:
                log.warning("a refusal could not be said: %s", error)

        task = asyncio.ensure_future(say())
        self._word.add(task)
        task.add_done_callback(self._word.discard)
