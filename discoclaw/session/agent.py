"""One turn, top to bottom: from a message to its answer and what follows it.

Memory, summary and window improve the answer. A failing disk or Discord cannot prevent it, and each delays it
by two seconds at most. Only the model and the chat can prevent it, and then the person is told so.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from discoclaw.core.budgets import less_text
from discoclaw.core.errors import ChatError, ChatUnavailable, LeaseLost, MemoryFault, ModelError, QuestionGone
from discoclaw.core.health import Asked, Ended
from discoclaw.core.history import MAIN
from discoclaw.core.idle import IdleMap
from discoclaw.core.pending import Pending
from discoclaw.core.ports import AnyOffer, AskOffer, Ending, Reply
from discoclaw.core.privacy import may_show
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.text import shows_nothing
from discoclaw.core.usage import Payer, paid_by
from discoclaw.core.view import View
from discoclaw.memory.conversations.undelivered import Unsent
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.session.conversation import Conversation
from discoclaw.session.delivery import Delivery
from discoclaw.session.files.attaching import partly, unseen
from discoclaw.session.hatch import Hatchery
from discoclaw.session.prepare import Preparation
from discoclaw.session.turn import Stoppable, Stops, Turn
from discoclaw.store.threads import in_time, noted_in_time

log = logging.getLogger(__name__)

EMPTY_ANSWER = "I have no answer to that. Please put it another way."
SAID_NOTHING = "-# Stopped."
"""Shown when somebody stops an answer before its first word. In small print, like all that isn't talk."""
STOPPED = "I was stopped before I could finish this. Please ask again in a moment."


@dataclass(frozen=True, slots=True)
class Agent:
    """The steps of a turn. Each step works on its own part of memory; this class calls them in order."""

    stops: Stops
    hatchery: Hatchery
    preparation: Preparation
    conversation: Conversation
    delivery: Delivery
    asking: "Asking"
    explained: "Explained"

    async def take(
        self,
        turn: Turn,
        reply: Reply,
        ended: Callable[[bool], None],
        asked: Asked,
        ids: Sequence[str] = (),
    ) -> None:
        """Answer one message. Every failure ends with a sentence to the person, or in the log.

        `ended` is called at the end, with False if the chat was out of reach, unless the answer waits for the
        chat. `asked` counts how it ended. `ids` are the messages that are answered, if there are several.
        """
        key, done = turn.session_key, False
        kept = partial(self.delivery.kept, turn, reply, tuple(ids) or (turn.message.id,))
        ending: Ending = "other" if self.hatchery.takes(turn) else "missing"
        try:
            with (
                paid_by(Payer.of(turn.message)),
                self.stops.answering(turn.message.id, turn.message.author.id, turn.message.asks) as ends,
            ):
                if self.delivery.waits(reply.held.channel_id):
                    reply.hold()
                how = await self._answer(turn, reply, ends, kept)
            done = True
            if how is None:
                asked.unanswered("empty")
            else:
                asked.answered(how, asyncio.get_running_loop().time())
        except QuestionGone as error:
            asked.unanswered(error)
            log.info("%s: no answer any more: %s", key, error)
            await reply.unsend()
            self.delivery.drop(turn.message.id)
            done = True
        except LeaseLost as error:  # whoever has it by now answers it
            asked.unanswered(error)
            log.info("%s: no answer from here: %s", key, error)
            await reply.drop()
            done = True
        except ModelError as error:
            asked.unanswered(error)
            log.warning("%s: no answer: %s: %s", key, type(error).__name__, error)
            done = await self._tell(kept, reply, error.user_message, key, ending)
        except ChatError as error:
            asked.unanswered(error)
            log.warning("%s: the answer could not be delivered: %s", key, error)
            done = not isinstance(error, ChatUnavailable)
        except asyncio.CancelledError:
            asked.unanswered("closing")
            if not self.delivery.keeps(turn.message.id):
                done = await tell(reply, STOPPED, key, ending)
            raise
        except Exception:  # deliberately broad: whatever fails in one turn, the next one is taken
            asked.unanswered("bug")
            log.exception("%s: a turn failed", key)
            done = await self._tell(kept, reply, ModelError.user_message, key, ending)
        finally:
            if not self.delivery.keeps(turn.message.id):
                ended(done)

    async def _tell(
        self, kept: Callable[..., Unsent], reply: Reply, text: str, key: str, ending: Ending
    ) -> bool:
        """Tell a person why there is no answer; later if the chat can't take it yet, which returns False."""
        if not self.delivery.waits(reply.held.channel_id) and await tell(reply, text, key, ending):
            return True
        await reply.drop()
        self.delivery.keep(kept(ending, below=text))
        return False

    async def _answer(
        self, turn: Turn, reply: Reply, ends: Stoppable, kept: Callable[..., Unsent]
    ) -> Ended | None:
        """Answer, and return how that ended; None if the model said nothing.

        Raises QuestionGone as soon as its message was deleted, and nothing that matters is under way.
        """
        ends.check()
        turn = turn.as_edited()
        # 0 an interview about the bot's personality takes no turn
        if self.hatchery.takes(turn):
            await self.preparation.refill.fill(turn)  # the loops learn from messages before a restart too
            await self.hatchery.take(turn, reply)
            return "interview"
        over = await self.hatchery.end_if_idle(turn)
        there = await self.delivery.record.branching.move(turn, reply)
        # 1 to 3 what is known, what of it matters now, and the prompt
        ready = await self.preparation.of(turn)
        gathered = ready.gathered
        ends.check()
        # 4 the model, which streams into the reply and may use tools
        answered = await self.conversation.answer(turn, ready, reply, ends)
        ends.check()
        # 5 the answer was sent, and becomes part of the talk
        if over and answered.text:
            await reply.push(over)
        if ends.stopped and not answered.text.strip():
            await reply.push(SAID_NOTHING)
            await reply.finish("missing")
            return "stopped"
        notices = [*ready.attached.notices, *unseen(answered.unseen)]
        if answered.less is None or answered.less.level == "small":  # memory alone reads no files
            notices += partly(ready.prompt.files)
        notices += [less_text(answered.less)] if answered.less is not None else []
        if not shows_nothing(answered.text):
            if not ends.stopped and answered.failure is None:
                notices += await self.asking.welcome(turn, gathered.items.branch)
            if notices:
                await reply.note(notices)

        def explained(answer_id: str) -> None:
            user_id, branch = turn.message.author.id, gathered.items.branch or MAIN
            used = tuple((one.item.id, one.why) for one in ready.used)
            summary, recent = bool(gathered.summary), ready.prompt.shown
            files, now = tuple(ready.attached.kinds.items()), self.preparation.items.clock()
            shown = Shown(there.message.id, answer_id, now, branch, used, summary, recent, files)
            self.explained.note(there.session_key, user_id, shown)
            self.preparation.items.note_use(turn, ready.used)

        ending: Ending = "other" if answered.failure else "cut" if answered.cut else "whole"
        below = answered.failure.user_message if answered.failure else ""
        now = partial(kept, ending, below=below, talk=len(answered.text), then=explained)
        answer_id = await self.delivery.finish(reply, now)
        if answer_id is None and answered.failure is None:
            await reply.fail("\n".join([EMPTY_ANSWER, *notices]), ending="missing")
            return None
        ends.check()
        if answer_id is not None and not turn.permission.erased:  # else it may repeat what was erased
            shown = answered.text[: max(0, len(answered.text) - len(reply.unsaid))]
            self.delivery.record.answer(there, answer_id, shown)
            explained(answer_id)
        if answered.failure is not None:  # what was said before stays said
            raise answered.failure
        if not ends.stopped:  # whoever stopped the answer wants no question either
            hatching = await self.hatchery.offer(turn, hatched=gathered.who.hatched)
            offers: list[AnyOffer] = [*answered.offers, *hatching]
            if not offers:  # one question at a time
                offers += await self.asking.offers(turn, gathered.items.branch)
            for offer in offers:
                try:
                    await reply.offer(offer)
                except ChatError as error:  # the answer stands all the same
                    log.warning("%s: a proposal could not be shown: %s", there.session_key, error)
        # 6 the loops, which work later
        self.delivery.record.loops.nudge(there.session_key, turn.message.author.id)
        return "stopped" if ends.stopped else "cut" if answered.cut else "whole"


async def tell(reply: Reply, text: str, session_key: str, ending: Ending = "other") -> bool:
    """Tell a person why there is no answer. Returns False if the chat is out of reach for now."""
    try:
        await reply.fail(text, ending=ending)
    except ChatError as error:
        log.warning("%s: not even the failure could be said: %s", session_key, error)
        return not isinstance(error, ChatUnavailable)
    return True


# ----------------------------------------------------------------------
# Asks a person, below the next answer to them, about what extraction was unsure of; welcomes who is new.

WELCOME = (
    "I remember what you tell me about yourself: /memory show shows it, /memory data optout switches it off. "
    "I say this only once."
)


@dataclass(frozen=True, slots=True)
class Asking:
    """Finds the question that is to be shown below an answer."""

    memory: AnyMemory
    asked: AskedBack
    welcomes: bool = False

    async def offers(self, turn: Turn, branch: str | None) -> tuple[AskOffer, ...]:
        """The question below the answer to a message, if there is one; it then counts as asked.

        `branch` is the one of the persona that answered; None if it could not be read.
        """
        if branch is None:
            return ()
        known = self.memory.view_in_ram(turn.subject, branch)
        if known is not None and _question(known) is None:  # the usual case, without a task
            return ()
        try:
            found = await in_time(self._found(turn, branch))
        except MemoryFault as fault:
            log.warning("%s: no question is asked: %s", turn.session_key, fault)
            return ()
        if found is None or not turn.permission.holds:
            return ()
        noted = await noted_in_time(self.asked.note(found.user_id, found.pending.event_id))
        return (found,) if noted else ()

    async def welcome(self, turn: Turn, branch: str | None) -> list[str]:
        """Lines for somebody new, shown once, below the first answer that they asked for by name or in a DM.

        Nobody is new about whom something is remembered on `branch`, the one of the persona that answers.
        """
        user_id, permission = turn.message.author.id, turn.permission
        addressed = turn.message.mentions_us and turn.place.kind != "aside"
        if not (self.welcomes and addressed and permission.holds and self.asked.may_be_new(user_id)):
            return []
        known = self.memory.view_in_ram(turn.subject, branch) if branch is not None else None
        if known is None or known.items:
            return []
        new = await noted_in_time(self.asked.welcome(user_id, turn.message.id))
        return [WELCOME] if new and permission.holds else []

    async def _found(self, turn: Turn, branch: str) -> AskOffer | None:
        """The question for a person where they speak. Raises MemoryFault."""
        user_id, subject = turn.message.author.id, turn.subject
        view = await self.memory.view(subject, branch)
        one = _question(view)
        if one is None:
            return None
        held, asked = view.items.get(one.item.id), self.asked
        here = turn.in_dm or one.source.channel_id == turn.place.channel_id
        about = [one.item] if held is None else [one.item, held]
        if not (here and all(may_show(item, in_dm=turn.in_dm) for item in about)):
            return None
        if not asked.wanted(user_id) or not await asked.may_ask(user_id):
            return None
        if await asked.was_shown(user_id, one.event_id) or await asked.open(user_id) != {one.event_id}:
            return None
        for commit in (await self.memory.history(subject)).commits.values():
            if any(event.id == one.event_id for event in commit.events):
                return AskOffer(user_id, commit.id, branch, one, held)
        return None


def _question(view: View) -> Pending | None:
    return next((one for one in view.pending if one.question), None)


# ----------------------------------------------------------------------
# The sources of the last answers, so that people can ask why they got them.
#
# Kept in RAM only, and as ids, not texts, of the last answers in each conversation: after a restart, or a day
# later, the bot says that it no longer knows.

DAY_MS = 86_400_000
KEPT = 20
"""How many answers to one person are kept in one conversation: people rarely ask about older ones."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The sources of one answer: `items` are (item id, why it was chosen), best first.

    `asked_id` and `answer_id` are messages, `at` is in ms. `summary` says whether there was one, and `window`
    is the number of recent messages. `files` counts the files by kind ("picture").
    """

    asked_id: str
    answer_id: str
    at: int
    branch: str
    items: tuple[tuple[str, str], ...]
    summary: bool
    window: int
    files: tuple[tuple[str, int], ...] = ()


class Explained(Derived):
    """The last answers to each person in each conversation."""

    name = "reasons for answers"

    def __init__(self) -> None:
        self._last: IdleMap[IdleMap[list[Shown]]] = IdleMap(lambda _: _people(), idle_ms=DAY_MS)

    def note(self, session_key: str, user_id: str, shown: Shown) -> None:
        """Record what an answer that was sent rested on."""
        people = self._last.use(session_key, shown.at)
        kept = people.use(user_id, shown.at)
        kept.append(shown)
        del kept[:-KEPT]
        people.evict_idle(shown.at)
        self._last.evict_idle(shown.at)

    def last(self, session_key: str, user_id: str) -> Shown | None:
        """The sources of the person's last answer there, or None if they are no longer known."""
        kept = (self._last.peek(session_key) or _people()).peek(user_id)
        return kept[-1] if kept else None

    def answer(self, session_key: str, message_id: str, *, later_part: bool) -> tuple[str, Shown] | None:
        """The user id that one of our messages answered, and what the answer rested on; None if unknown.

        With `later_part`, it may belong to the answer before it: a long answer is several messages.
        """
        people = self._last.peek(session_key) or _people()
        known = [
            (user_id, shown)
            for user_id in people
            for shown in people.peek(user_id) or ()
            if int(shown.answer_id) <= int(message_id)
        ]
        found = max(known, key=lambda one: (int(one[1].answer_id), one[1].at), default=None)
        return found if found is not None and (later_part or found[1].answer_id == message_id) else None

    def purge(self, purge: Purge, phase: Phase) -> None:
        for session_key in self._last if phase == "ram" else ():
            (self._last.peek(session_key) or _people()).drop(purge.user_id)


def _people() -> IdleMap[list[Shown]]:
    return IdleMap(lambda _: [], idle_ms=DAY_MS)
