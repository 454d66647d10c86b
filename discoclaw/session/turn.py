"""One turn, top to bottom: from a message that is to be answered to the answer and what follows it.

Memory, summary and window make the answer better; none of them can prevent it, nor delay it by more than two
seconds each on a disk or a Discord that hangs. Only the model and the chat can, and then the person is told
so.
"""

import asyncio
import logging
from collections.abc import Sequence

from discoclaw.core.errors import ChatError, ModelError
from discoclaw.core.history import MAIN
from discoclaw.core.message import Inbound, Said
from discoclaw.core.model import ModelRequest, UserTurn
from discoclaw.core.ports import HatchOffer, Offer, Reply
from discoclaw.core.subject import user_subject
from discoclaw.prompt.assemble import Assembled, Materials, assemble
from discoclaw.recall.select import Chosen
from discoclaw.session.content import Texts
from discoclaw.session.converse import converse, tools_for
from discoclaw.session.explained import Shown
from discoclaw.session.parts import Parts, erased_since, soon, whose
from discoclaw.session.recollect import Recalled, called_for, question, remembered
from discoclaw.session.refill import refill
from discoclaw.session.tools import SPECS
from discoclaw.soul.soul import sections

log = logging.getLogger(__name__)

NO_CONTENT: Texts = ((), ())
EMPTY_ANSWER = "I have no answer to that. Please put it another way."
STOPPED = "I was stopped before I could finish this. Please ask again in a moment."


async def take_turn(parts: Parts, message: Inbound, reply: Reply) -> None:
    """Answer one message. Every way this can fail ends with a word to the person, or a line in the log."""
    try:
        # 0 an interview about who we are to be goes its own way
        hatchery, over = parts.hatchery, ""
        if hatchery is not None:
            if hatchery.takes(message):
                await refill(parts, message)  # what was said before a restart is to be learned from too
                await hatchery.take(message, reply)
                return
            over = await hatchery.let_go(message)
        meant = question(parts, message)
        # 1 what is remembered: who we are, the person's items (those that may be shown here), the summary
        recalled = await remembered(parts, message)
        # 2 what matters now: the recent talk, and the items it calls for
        await refill(parts, message)
        window = parts.windows.use(message.session_key).before(message.id)
        chosen = await called_for(parts, message, recalled, window, meant)
        # 3 the prompt
        prompt = await _prompt(parts, message, recalled, window, chosen)
        # 4 the model, which streams into the reply and may use tools
        tools = tools_for(parts, message, recalled.branch)
        offered = SPECS if tools is not None else ()
        request = ModelRequest(
            prompt.system, (UserTurn(prompt.user),), offered, parts.max_tokens, subject=whose(parts, message)
        )
        answer = await converse(parts, tools, request, reply, message)
        # 5 the answer is out, and becomes part of the talk
        if over and answer:
            await reply.push(over)
        answer_id = await reply.finish()
        if answer_id is None:
            await reply.fail(EMPTY_ANSWER)
            return
        if not erased_since(parts, message):  # else it may repeat what is gone
            _remember_answer(parts, message, answer_id, answer)
            _note_use(parts, message, answer_id, recalled, chosen, prompt)
        offers = tools.offers if tools is not None else []
        hatching = (
            await hatchery.offer(message, hatched=recalled.who.hatched) if hatchery is not None else None
        )
        await _offer([*offers, *filter(None, [hatching])], message, reply)
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


async def _prompt(
    parts: Parts, message: Inbound, recalled: Recalled, window: tuple[Said, ...], chosen: Sequence[Chosen]
) -> Assembled:
    content = parts.content.in_ram(message.place)
    if content is None:
        content = await soon(parts.content.of(message.place), NO_CONTENT, "the context files")
    materials = Materials(
        message=message,
        me=parts.me(),
        now_ms=parts.clock(),
        owners=recalled.owners,
        soul=sections(recalled.who.soul),
        content=content[0],
        place_content=content[1],
        group=recalled.group,
        durable=tuple(one.line for one in chosen),
        persona=recalled.persona,
        rolling=recalled.rolling,
        window=window,
    )
    return assemble(materials, parts.budget)


def _note_use(
    parts: Parts,
    message: Inbound,
    answer_id: str,
    recalled: Recalled,
    chosen: Sequence[Chosen],
    prompt: Assembled,
) -> None:
    """Note what the answer rested on: for whoever asks why, and for what fades when nobody uses it."""
    used = tuple((one.item.id, one.why) for one in chosen)
    persona, summary = recalled.branch or MAIN, bool(recalled.rolling)
    shown = Shown(message.id, answer_id, parts.clock(), persona, used, summary, prompt.shown)
    parts.explained.note(message.session_key, message.author.id, shown)
    if parts.access is not None:
        ids = [one.item.id for one in chosen if one.called_for]
        parts.access.touch(user_subject(message.author.id), ids)


async def _offer(offers: Sequence[Offer | HatchOffer], message: Inbound, reply: Reply) -> None:
    """Show what is proposed below the answer, which stands whatever becomes of it."""
    for offer in offers:
        try:
            await reply.offer(offer)
        except ChatError as error:
            log.warning("%s: a proposal could not be shown: %s", message.session_key, error)


def _remember_answer(parts: Parts, message: Inbound, answer_id: str, answer: str) -> None:
    window = parts.windows.use(message.session_key)
    me = parts.me()
    text = parts.redactor.clean(answer)
    said = Said(answer_id, me.id, me.name, text, parts.clock(), by_us=True, to_id=message.author.id)
    window.remember(said)
    if parts.archiving is not None:
        parts.archiving.hear(said, message.place, message.session_key)
    if parts.remembers(message.author.id) or parts.memory is None:
        parts.loops.hear(said, message.place, message.session_key, window=window.capacity)


async def _tell(reply: Reply, text: str, message: Inbound) -> None:
    try:
        await reply.fail(text)
    except ChatError as error:
        log.warning("%s: not even the failure could be said: %s", message.session_key, error)
