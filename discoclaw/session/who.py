"""Who we are to the person we answer: the personality's files, and below them what our own memory says.

What is about our human is for owners alone, and not for one who opted out of memory. Knows no prompts.
"""

import logging
from dataclasses import dataclass, field, replace

from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Inbound
from discoclaw.core.own import BOT
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.content import Content
from discoclaw.soul.soul import Soul, exists, of_view

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Who:
    """Our soul for one person. `hatched`: there is one at all, or that can not be told."""

    soul: Soul = field(default=Soul())
    hatched: bool = True


async def who_for(message: Inbound, content: Content, memory: Memory | None, choices: Choices | None) -> Who:
    """Who we are to a message's author, where they said it. What can not be read is left out."""
    author = message.author
    files = content.soul_in_ram()
    if files is None:
        files = await content.soul()
    view = await _own_view(memory)
    kept = view or EMPTY
    soul = files.over(of_view(kept, with_whom=author.id, in_dm=message.place.kind == "dm"))
    if not author.is_owner or (choices is not None and choices.opted_out(author.id)):
        soul = replace(soul, user="")
    return Who(soul, view is None or bool(files) or exists(kept))


async def _own_view(memory: Memory | None) -> View | None:
    """What our own memory says; None when it can not be read."""
    if memory is None:
        return EMPTY
    try:
        return memory.view_in_ram(BOT) or await memory.view(BOT)
    except MemoryFault as fault:
        log.warning("answering without a personality: %s", fault)
        return None
