"""One turn, top to bottom: from a message that is to be answered to the answer and what follows it.

Memory, summary and window make the answer better; none of them can prevent it, nor delay it by more than two
seconds each on a disk or a Discord that hangs. Only the model and the chat can, and then the person is told
so.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from discoclaw.core.draft import Origin
from discoclaw.core.errors import ChatError, MemoryFault, ModelError
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.item import Item, Source
from discoclaw.core.message import Inbound, Me, Said
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    TextDelta,
    ToolResult,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.policy import Personas
from discoclaw.core.ports import Clock, History, Model, Recall, Reply
from discoclaw.core.privacy import DmPrivacy, may_show
from discoclaw.core.view import EMPTY, View
from discoclaw.loops.schedule import Loops
from discoclaw.memory.choices import Choices
from discoclaw.memory.rolling import NOTHING, RollingMemory
from discoclaw.memory.store import Memory
from discoclaw.memory.subject import user_subject
from discoclaw.prompt.assemble import Budget, Materials, PersonaNote, assemble
from discoclaw.recall.select import choose
from discoclaw.session.content import Content, Texts
from discoclaw.session.explained import Explained, Shown
from discoclaw.session.tools import SPECS, MemoryTools, Speaker, Tidy
from discoclaw.session.window import Window, Windows

log = logging.getLogger(__name__)
T = TypeVar("T")

MEMORY_WAIT_S = 2.0
"""A reply waits this long for a disk, and only for the first look at a person or conversation."""
HISTORY_WAIT_S = 2.0
"""A reply waits this long for Discord's history, once after a start."""
HISTORY_PAUSE_MS = 60_000
TOOL_ROUNDS = 6
NO_CONTENT: Texts = ((), ())
NO_TOOLS = "there are no tools here; answer without"

EMPTY_ANSWER = "I have no answer to that. Please put it another way."
CUT_ANSWER = "\n\n*(My answer reached its length limit here. Say “go on” for the rest.)*"
STOPPED = "I was stopped before I could finish this. Please ask again in a moment."


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a turn works with; built once, by the composition root.

    `memory` and `rolling` are None when switched off. `me` is known once we are logged in. `personas` says
    which places have one of their own, `tidy` consolidates a memory on demand.
    """

    model: Model
    recall: Recall
    windows: Windows
    content: Content
    loops: Loops
    history: History
    clock: Clock
    budget: Budget
    memory: Memory | None
    rolling: RollingMemory | None
    inject_chars: int
    max_tokens: int
    dm_privacy: DmPrivacy
    me: Callable[[], Me]
    personas: Personas = field(default_factory=Personas)
    choices: Choices | None = None
    tidy: Tidy | None = None
    explained: Explained = field(default_factory=Explained)

    def remembers(self, user_id: str) -> bool:
        """Whether there is a memory, and the person has not opted out of it."""
        return self.memory is not None and not (self.choices is not None and self.choices.opted_out(user_id))


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is remembered of a person that may be shown here: active items, and the branch they are of.

    `branch` is None where nothing could be read; `persona` is what the model is told of it, if anything.
    """

    items: tuple[Item, ...] = ()
    branch: str | None = None
    persona: PersonaNote | None = None


async def take_turn(parts: Parts, message: Inbound, reply: Reply) -> None:
    """Answer one message. Every way this can fail ends with a word to the person, or a line in the log."""
    try:
        # 1 what is remembered: the person's items (those that may be shown here) and the summary
        recalled = await _recall(parts, message)
        rolling = await _rolling(parts, message.session_key)
        # 2 what matters now: the recent talk, and the items it calls for
        await refill(parts, message)
        window = parts.windows.use(message.session_key).before(message.id)
        chosen = choose(
            parts.recall,
            _asked(message),
            recalled.items,
            max_chars=parts.inject_chars,
            now_ms=parts.clock(),
            recent="\n".join(said.text for said in window[-2:]),
        )
        # 3 the prompt
        content = parts.content.in_ram(message.place)
        if content is None:
            content = await _soon(parts.content.of(message.place), NO_CONTENT, "the context files")
        prompt = assemble(
            Materials(
                message=message,
                me=parts.me(),
                now_ms=parts.clock(),
                content=content[0],
                place_content=content[1],
                durable=tuple(one.line for one in chosen),
                persona=recalled.persona,
                rolling=rolling,
                window=window,
            ),
            parts.budget,
        )
        # 4 the model, which streams into the reply and may use tools
        tools = _tools(parts, message, recalled.branch)
        request = ModelRequest(
            prompt.system, (UserTurn(prompt.user),), SPECS if tools is not None else (), parts.max_tokens
        )
        answer = await _converse(parts, tools, request, reply)
        # 5 the answer is out, and becomes part of the talk
        answer_id = await reply.finish()
        if answer_id is None:
            await reply.fail(EMPTY_ANSWER)
            return
        if not erased_since(parts, message):  # else it may repeat what is gone
            _remember_answer(parts, message, answer_id, answer)
            used = tuple((one.item.id, one.why) for one in chosen)
            persona = recalled.branch or MAIN
            shown = Shown(message.id, answer_id, parts.clock(), persona, used, bool(rolling), prompt.shown)
            parts.explained.note(message.session_key, message.author.id, shown)
        await _offer(tools, message, reply)
        # 6 the loops, which do their work later
        parts.loops.nudge(message.session_key, message.author.id)
    except ModelError as error:
        log.warning("%s: no answer: %s: %s", message.session_key, type(error).__name__, error)
        await _tell(reply, error.told_user, message)
    except ChatError as error:
        log.warning("%s: the answer could not be delivered: %s", message.session_key, error)
    except asyncio.CancelledError:
        await _tell(reply, STOPPED, message)
        raise
    except Exception:
        log.exception("%s: a turn failed", message.session_key)
        await _tell(reply, ModelError.told_user, message)


async def refill(parts: Parts, message: Inbound) -> None:
    """Fill a conversation's window from the chat's history, once after a start.

    A reply does not wait long for it; what comes late is there for the next one.
    """
    window = parts.windows.use(message.session_key)
    if window.refilled or parts.clock() < window.refill_after:
        return
    if window.refill is None:
        window.refill = asyncio.create_task(_refill(parts, message, window))
    await asyncio.wait([window.refill], timeout=HISTORY_WAIT_S)


async def _refill(parts: Parts, message: Inbound, window: Window) -> None:
    try:
        past = await parts.history.before(message.place, message.id, window.capacity)
        dm_of = message.author.id if message.place.kind == "dm" else None  # there, our answers go too
        past = [said for said in past if said.sent_at > _erased_at(parts, dm_of or said.author_id)]
        for said in past:
            window.remember(said)
        await parts.loops.catch_up(past, message.place, message.session_key, window=window.capacity)
        window.refilled = True
    except ChatError as error:
        window.refill_after = parts.clock() + HISTORY_PAUSE_MS
        log.warning("%s: no history: %s", message.session_key, error)
    except Exception:  # a named edge: nobody awaits this task, and the turn goes on without
        window.refill_after = parts.clock() + HISTORY_PAUSE_MS
        log.exception("%s: no history", message.session_key)
    finally:
        window.refill = None


def _erased_at(parts: Parts, user_id: str) -> int:
    """When (ms) a person had their memory erased: what was said before does not come back; -1 for never."""
    return parts.memory.erased_at(user_subject(user_id)) if parts.memory is not None else -1


def erased_since(parts: Parts, message: Inbound) -> bool:
    """Whether the author's memory was erased after they said this."""
    return message.sent_at <= _erased_at(parts, message.author.id)


async def _recall(parts: Parts, message: Inbound) -> Recalled:
    if parts.memory is None or not parts.remembers(message.author.id):
        return Recalled()
    subject, branch = user_subject(message.author.id), parts.personas.of(message.place)
    memory = parts.memory
    try:
        known, branches = memory.view_in_ram(subject, branch), memory.branches_in_ram(subject)
    except MemoryFault:
        known = None
    view = known or EMPTY
    if known is None:
        view, branches = await _soon(_look(memory, subject, branch), (EMPTY, None), "what is remembered")
    in_dm = message.place.kind == "dm"
    items = tuple(item for item in view.active() if may_show(item, in_dm=in_dm))
    if branches is None:
        return Recalled(items, branch)
    return Recalled(items, branch or branches.current, _persona(branches, branch, in_dm=in_dm))


async def _look(memory: Memory, subject: str, branch: str | None) -> tuple[View, Branches | None]:
    """What a branch says, and the branches of the same moment."""
    view = await memory.view(subject, branch)
    return view, memory.branches_in_ram(subject)


def _persona(branches: Branches, branch: str | None, *, in_dm: bool) -> PersonaNote | None:
    """What the model is told of the persona; nothing for a person who has no other than `main`."""
    if len(branches.all) == 1 and branch in (None, MAIN):
        return None
    name = branch or branches.current
    known = branches.all.get(name)
    about = known.persona if known is not None and (in_dm or not known.private) else ""
    return PersonaNote(name, about, tuple(one for one in branches.all if one != name))


async def _rolling(parts: Parts, session_key: str) -> str:
    if parts.rolling is None:
        return ""
    rolling = parts.rolling.in_ram(session_key)
    if rolling is None:
        rolling = await _soon(parts.rolling.get(session_key), NOTHING, "the summary")
    return rolling.summary


async def _soon(reading: Coroutine[Any, Any, T], otherwise: T, what: str) -> T:
    """What is read from memory, if it can be read, and soon; a reply does not wait for a disk that hangs."""
    task = asyncio.create_task(reading)
    await asyncio.wait([task], timeout=MEMORY_WAIT_S)
    if not task.done():
        log.warning("answering without %s: the disk does not answer", what)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return otherwise
    try:
        return task.result()
    except (MemoryFault, OSError) as fault:
        log.warning("answering without %s: %s", what, fault)
        return otherwise


def _asked(message: Inbound) -> str:
    """What memory is looked up for: the message, and what it replies to."""
    return f"{message.text}\n{message.quoted.text}" if message.quoted is not None else message.text


async def _converse(parts: Parts, tools: MemoryTools | None, request: ModelRequest, reply: Reply) -> str:
    """Stream the answer into the reply, running tools as the model asks. Returns the whole text."""
    turns: list[Turn] = list(request.turns)
    text: list[str] = []
    for round_number in range(TOOL_ROUNDS + 2):
        # The last rounds may not call tools, so that the model has to say something.
        may_call = bool(request.tools) and round_number < TOOL_ROUNDS
        finished = await _stream(
            parts.model, replace(request, turns=tuple(turns), may_call=may_call), reply, text
        )
        if finished.stop == "length":
            await reply.push(CUT_ANSWER)
        if finished.stop != "tools" or not finished.turn.calls:
            break
        if not may_call and (text or round_number > TOOL_ROUNDS):
            break
        if text and not text[-1].endswith("\n"):
            text.append("\n\n")  # what is said before and after a tool are two paragraphs
            await reply.push("\n\n")
        if may_call and tools is not None:
            results = ToolTurn(tuple([await tools.call(call) for call in finished.turn.calls]))
        else:
            results = _refused(finished.turn)
        turns += [finished.turn, results]
    return "".join(text)


def _refused(turn: AssistantTurn) -> ToolTurn:
    """For calls though none were allowed, as some local models make them."""
    return ToolTurn(tuple(ToolResult(call.id, NO_TOOLS, failed=True) for call in turn.calls))


async def _stream(model: Model, request: ModelRequest, reply: Reply, text: list[str]) -> Finished:
    finished: Finished | None = None
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
                await reply.push(event.text)
            else:
                finished = event
    if finished is None:
        raise ModelError("the model's stream ended without an end")
    return finished


def _tools(parts: Parts, message: Inbound, recalled: str | None) -> MemoryTools | None:
    """The memory tools for this turn; none for somebody of whom nothing is to be remembered.

    `recalled` is the branch that the prompt was made of.
    """
    if parts.memory is None or not parts.remembers(message.author.id):
        return None
    place = message.place
    origin = Origin(
        "inferred",
        Source("discord", place.channel_id, message.id),
        said_at=message.sent_at,
        private=place.private,
        evidence="asked for during a talk",
        dm_privacy=parts.dm_privacy,
    )
    speaker = Speaker(message.author.id, place.kind == "dm", origin, parts.personas.of(place), recalled)
    return MemoryTools(
        parts.memory, parts.recall, parts.clock, speaker, choices=parts.choices, tidy=parts.tidy
    )


async def _offer(tools: MemoryTools | None, message: Inbound, reply: Reply) -> None:
    """Show what the tools proposed below the answer, which stands whatever becomes of it."""
    for offer in tools.offers if tools is not None else []:
        try:
            await reply.offer(offer)
        except ChatError as error:
            log.warning("%s: a proposal could not be shown: %s", message.session_key, error)


def _remember_answer(parts: Parts, message: Inbound, answer_id: str, answer: str) -> None:
    window = parts.windows.use(message.session_key)
    me = parts.me()
    said = Said(answer_id, me.id, me.name, answer, parts.clock(), by_us=True)
    window.remember(said)
    if parts.remembers(message.author.id) or parts.memory is None:
        parts.loops.hear(said, message.place, message.session_key, window=window.capacity)


async def _tell(reply: Reply, text: str, message: Inbound) -> None:
    try:
        await reply.fail(text)
    except ChatError as error:
        log.warning("%s: not even the failure could be said: %s", message.session_key, error)
