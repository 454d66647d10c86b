"""Hatching: the bot interviews an owner about who it should be, and stores the outcome as its soul.

During an interview, its owner's messages in that conversation come here instead of taking a turn. The model
gets the interview's prompt and transcript and nothing else. Its answer is shown only when it is complete, so
that the block with the soul can be cut out. The transcript is in the cursor `hatching-<user id>`, which an
erasing of that person removes; after a restart the interview goes on from there.
When the soul is complete, these follow in order: it is stored, the interview ends, its messages leave the
window, and the loops learn at once what the person said about themselves.
There is one interview at a time. Until it has a soul that is stored, nothing changes, and its owner can end
it at any time; an hour of silence ends it too.
Knows no chat adapter; `soul.interview` has the transcript, `soul.soul` what a soul is.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from discoclaw.core.consent import Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, ModelError, Refused
from discoclaw.core.item import Source
from discoclaw.core.message import Me, Place, Said, with_attachments
from discoclaw.core.model import Finished, ModelRequest, TextDelta
from discoclaw.core.ports import Clock, HatchOffer, Model, Reply
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import BOT, HUMAN, user_subject
from discoclaw.core.view import View
from discoclaw.loops.schedule import Loops
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.session.compact import AnswerRules, Transcript
from discoclaw.session.turn import Turn, Windows
from discoclaw.soul import interview as interviews
from discoclaw.soul import soul as souls
from discoclaw.soul.interview import Interview, Line
from discoclaw.soul.soul import SoulBlock, read
from discoclaw.store.threads import WAIT_S, in_time, noted_in_time
from discoclaw.work import Background, Worker

log = logging.getLogger(__name__)

OFFERED = "hatch-offered"


@dataclass(frozen=True, slots=True)
class HatchingRules:
    """Who may give the bot a personality, and how. Without `memory` there is nowhere to store one.

    `answers` bound those of the model and the transcript, which loses its middle when it gets too long.
    `commands`: whether there is a command that ends an interview.
    """

    owners: Collection[str]
    answers: AnswerRules
    commands: bool = True
    memory: bool = True


class Hatchery(Background, Derived):
    """The single interview, and what else owners may do with the bot's personality."""

    name = "the interview"
    _grace_s = WAIT_S  # for the transcript, as long as a message would wait

    def __init__(
        self,
        rules: HatchingRules,
        model: Model,
        memory: AnyMemory,
        cursors: Cursors,
        windows: Windows,
        loops: Loops,
        consent: Consent,
        *,
        clock: Clock,
        me: Callable[[], Me],
    ) -> None:
        self._rules = rules
        self._model = model
        self._store = memory
        self._cursors = cursors
        self._windows = windows
        self._loops = loops
        self._consent = consent
        self._clock = clock
        self._me = me
        self._interview: Interview | None = None
        self._worker = Worker("interview", self._save)

    async def start(self) -> None:
        """Continue the interview that a restart interrupted, if there is one."""
        owners = self._rules.owners if self._rules.memory else ()
        kept = [interviews.from_cursor(one, await self._cursors.get(_cursor(one))) for one in owners]
        found = [one for one in kept if one is not None]
        if found and self._interview is None:
            self._interview = max(found, key=lambda one: one.last_at)

    def takes(self, turn: Turn) -> bool:
        """Whether a message belongs to the interview."""
        one, message = self.under_way, turn.message
        return one is not None and (one.human, one.session_key) == (message.author.id, message.session_key)

    @property
    def under_way(self) -> Interview | None:
        """The interview that goes on now, if there is one."""
        one = self._interview
        return one if one is not None and not one.idle(self._clock()) else None

    # ------------------------------------------------------------------ requests of owners

    async def begin(self, user_id: str, place: Place, message_id: str = "") -> str:
        """Begin an interview in a place. Returns the first question.

        `message_id` is the message that will show it, if known. Raises Refused.
        """
        self._memory(user_id)
        if self._consent.opted_out(user_id):
            raise Refused(interviews.OPTED_OUT)
        now = self._clock()
        if self._interview is not None and self._interview.idle(now):
            await self._end()
        if self._interview is not None:
            raise Refused(interviews.UNDER_WAY)
        lines = (Line(message_id, interviews.OPENING, ours=True),)
        self._interview = Interview(user_id, place.session_key(user_id), now, now, lines)
        await self._save(user_id)
        await self._note_offer()  # an owner who has begun needs no offer
        return interviews.OPENING

    async def cancel(self, user_id: str) -> str:
        """End a person's own interview; the soul stays as it was. Raises Refused."""
        self._memory(user_id)
        if self._interview is None:
            raise Refused(interviews.NONE_UNDER_WAY)
        if self._interview.human != user_id:
            raise Refused(interviews.NOT_YOURS)
        await self._end()
        return "The interview is over, and nothing has changed. `/hatch start` begins anew."

    async def undo(self, user_id: str, origin: Origin, **metadata: str) -> str:
        """Revert the last change of the bot's soul, with a commit. Raises Refused and MemoryFault."""
        memory = self._memory(user_id)
        done = await verbs.undo(memory, BOT, origin, **metadata)
        assert done.commit is not None  # otherwise `undo` would have raised Refused
        return "Taken back. `/hatch show` says who I am now."

    async def view(self, user_id: str) -> View:
        """The bot's own memory. Raises Refused and MemoryFault."""
        return await self._memory(user_id).view(BOT)

    async def offer(self, turn: Turn, *, hatched: bool) -> tuple[HatchOffer, ...]:
        """Offer a personality, only once ever, to an owner who is answered in a DM while the bot has none."""
        author, rules = turn.message.author, self._rules
        wanted = author.is_owner and author.id in rules.owners and turn.in_dm and rules.commands
        if hatched or not wanted or self._interview is not None:
            return ()
        if not rules.memory or turn.permission.opted_out:
            return ()
        return (HatchOffer(author.id),) if await self._note_offer() else ()

    async def _note_offer(self) -> bool:
        """Record that the offer was made. Returns whether this was the first time."""
        offer = {"at": self._clock()}
        return await noted_in_time(self._cursors.update(OFFERED, lambda known: None if known else offer))

    def _memory(self, user_id: str) -> AnyMemory:
        """The store, for an owner. Raises Refused."""
        if user_id not in self._rules.owners:
            raise Refused(interviews.ONLY_OWNERS)
        if not self._rules.memory:
            raise Refused(interviews.MEMORY_OFF)
        return self._store

    # ------------------------------------------------------------------ the interview

    async def take(self, turn: Turn, reply: Reply) -> None:
        """Answer a message of the interview. Raises ModelError and ChatError; the interview then goes on."""
        if self._interview is None:
            return
        message = turn.message
        if turn.permission.opted_out:
            await self._end()
            await reply.fail(interviews.OPTED_OUT[:1].upper() + interviews.OPTED_OUT[1:] + ".")
            return
        said = with_attachments(message.text, message.attachments)
        asked = self._interview.with_line(Line(message.id, said), self._clock())
        self._interview = asked
        await self._save(asked.human)
        answer = asked.unsaved or await self._ask(asked, turn.policy.model)
        if not self._goes_on(asked):
            await reply.fail(interviews.OVER_MEANWHILE)
            return
        found = read(answer)
        if found.soul is not None:
            await self._hatch(found.soul, found.text, answer, turn, reply)
        elif found.fault:
            log.warning("the soul of an interview cannot be used: %s", found.fault)
            await self._say(f"{found.text}\n\n{interviews.MALFORMED}", answer, turn, reply, fault=found.fault)
        elif asked.answers() >= interviews.MOST_ANSWERS:
            await self._end()
            await reply.fail(interviews.ENDLESS)
        elif found.text:
            await self._say(found.text, answer, turn, reply)
        else:
            await reply.fail(interviews.NO_WORDS)

    async def _ask(self, asked: Interview, model: str) -> str:
        """The next answer of the model with this name, complete. Raises ModelError."""
        request = ModelRequest(
            interviews.system(asked, self._me().name),
            interviews.turns(asked),
            max_tokens=self._rules.answers.answer(model),
            model=model,
        )
        transcript = Transcript(request, self._rules.answers.reads(model))
        if transcript.compact():
            asyncio.get_running_loop().call_soon(self._rules.answers.compacted, user_subject(asked.human))
        text: list[str] = []
        finished: Finished | None = None
        async with aclosing(self._model.stream(transcript.request(may_call=False))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text = [event.text] if event.instead else [*text, event.text]
                else:
                    finished = event
        if finished is None:
            raise ModelError("the model's stream ended without an end")
        return "".join(text)

    async def end_if_idle(self, turn: Turn) -> str:
        """End an idle interview when its owner writes there again. Returns a sentence about that."""
        one = self._interview
        if one is None or (one.human, one.session_key) != (turn.message.author.id, turn.session_key):
            return ""
        await self._end()
        return interviews.IDLE

    async def _say(
        self,
        text: str,
        answer: str,
        turn: Turn,
        reply: Reply,
        *,
        fault: str = "",
        unsaved: str = "",
    ) -> None:
        """Show the model's answer without its block, and store the full answer in the transcript."""
        await reply.push(text.strip())
        answer_id = await reply.finish() or ""
        if self._interview is None or not self.takes(turn):
            return  # the interview ended meanwhile
        kept = self._interview.with_line(Line(answer_id, answer, ours=True), self._clock())
        self._interview = replace(kept, fault=fault, unsaved=unsaved)
        me, author = self._me(), turn.message.author
        if answer_id:
            ours = Said(answer_id, me.id, me.name, text.strip(), self._clock(), by_us=True)
            turn.window.remember(ours)
            self._loops.hear(ours, turn.place, turn.session_key, window=turn.window.capacity)
        self._loops.nudge(turn.session_key, author.id)
        await self._save(author.id)

    async def _hatch(self, soul: SoulBlock, text: str, answer: str, turn: Turn, reply: Reply) -> None:
        """Store a soul as the bot's own, in one commit, and end the interview; or say why that failed."""
        asked, message, place = self._interview, turn.message, turn.place
        human = message.author.id
        origin = Origin(
            "stated",
            Source("discord", place.channel_id, message.id),
            said_at=message.sent_at,
            private=place.private,
            evidence="an interview",
            dm_privacy=turn.policy.dm_privacy,
        )

        def wish(draft: Draft) -> None:
            over = asked is None or not self._goes_on(asked)
            if over or turn.permission.erased or turn.permission.opted_out:
                raise Refused(interviews.OVER_MEANWHILE)
            souls.keep(draft, soul, human, origin)

        about: dict[str, Any] = {"by": "hatching", "at": f"{place.channel_id}/{message.id}", HUMAN: human}
        try:
            await in_time(self._store.change(BOT, "hatched", wish, **about))
        except MemoryFault as fault:
            log.warning("a soul could not be stored: %s", fault)
            await self._say(f"{text}\n\n{interviews.NOT_STORED}", answer, turn, reply, unsaved=answer)
            return
        except Refused:
            await reply.fail(interviews.OVER_MEANWHILE)
            return
        if asked is not None and self._goes_on(asked):  # else cancelled after the soul was stored
            await self._end()
        await reply.push(f"{text}\n\n{interviews.HATCHED}".strip())
        await reply.finish()
        self._loops.nudge(turn.session_key, human)
        self._loops.force(human)

    # ------------------------------------------------------------------ edits, deletions, the end

    def amend(self, message_id: str, text: str) -> None:
        """Take over an edit of a message in the chat."""
        if self._interview is not None:
            self._put(self._interview.amended(message_id, text))

    def forget(self, message_id: str) -> None:
        """Take over the deletion of a message in the chat."""
        if self._interview is not None:
            self._put(self._interview.without(message_id))

    def _put(self, changed: Interview) -> None:
        """Replace the transcript, on disk too: a restart must not bring back what was deleted."""
        if changed is self._interview:
            return
        self._interview = changed
        self._worker.note(changed.human)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Empty the lines of a person's interview that have what they took back.

        Where they are erased, drop it all. Its cursor goes with their other files.
        """
        if self._interview is None or phase != "ram":
            return
        if not purge.erases:
            self._put(self._interview.emptied(purge))
        elif self._interview.human == purge.user_id:
            self._interview = None

    def _goes_on(self, asked: Interview) -> bool:
        """Whether this interview is still the current one."""
        now = self._interview
        return now is not None and (now.human, now.began_at) == (asked.human, asked.began_at)

    async def _end(self) -> None:
        """End the interview; its messages leave the window."""
        one, self._interview = self._interview, None
        if one is not None:
            window = self._windows.use(one.session_key)
            for line in one.lines:
                window.forget(line.id)
            await self._save(one.human)

    async def _save(self, human: str) -> None:
        """Write the interview to disk, or remove it if it is over; a failing disk is a warning."""

        def now(known: Mapping[str, object]) -> Mapping[str, object] | None:
            one = self._interview
            wanted = interviews.to_cursor(one) if one is not None and one.human == human else {}
            return None if wanted == known else wanted

        await noted_in_time(self._cursors.update(_cursor(human), now))


def _cursor(user_id: str) -> str:
    return f"hatching-{user_id}"
