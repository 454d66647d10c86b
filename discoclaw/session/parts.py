"""What a turn works with, and what every step of it asks: who is remembered, and since when.

Built once, by the composition root.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Inbound, Me
from discoclaw.core.policy import Personas
from discoclaw.core.ports import Clock, History, Model, Recall
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_subject
from discoclaw.loops.schedule import Loops
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.subjects.store import Memory
from discoclaw.prompt.assemble import Budget
from discoclaw.session.archiving import Archiving
from discoclaw.session.content import Content
from discoclaw.session.explained import Explained
from discoclaw.session.finding import Finder
from discoclaw.session.hatch import Hatchery
from discoclaw.session.meaning import Meaning
from discoclaw.session.tools import Tidy
from discoclaw.session.window import Windows

log = logging.getLogger(__name__)
T = TypeVar("T")

MEMORY_WAIT_S = 2.0
"""A reply waits this long for a disk, and only for the first look at a person or conversation."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a turn works with; built once, by the composition root.

    `memory` and `rolling` are None when switched off. `me` is known once we are logged in. `personas` says
    which places have one of their own, `tidy` consolidates a memory on demand. `context_tokens` is what the
    model can read at once; `compacted` is called soon after a transcript was cut to that, with the subject.
    `access` knows when items were last used, which counts in what is found where they `fade`; `recall_limit`
    is how many a search finds if it does not say.
    `meaning` is None where there are no vectors; `finder` finds what to rank of a big memory.
    `profiles` and `groups` are None where nobody is remembered; `owners` are the user ids of ours.
    `tool_log` notes which tools were called; `redactor` knows our keys, and cleans what is to be stored.
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
    hatchery: Hatchery | None = None
    context_tokens: int = 128_000
    compacted: Callable[[str], None] = lambda subject: None
    access: LastUsed | None = None
    fade: bool = False
    recall_limit: int = 5
    meaning: Meaning | None = None
    finder: Finder | None = None
    archiving: Archiving | None = None
    profiles: Profiles | None = None
    groups: Groups | None = None
    owners: frozenset[str] = frozenset()
    tool_log: ToolLog | None = None
    redactor: Redactor = PLAIN

    def remembers(self, user_id: str) -> bool:
        """Whether there is a memory, and the person has not opted out of it."""
        return self.memory is not None and not (self.choices is not None and self.choices.opted_out(user_id))


def erased_at(parts: Parts, user_id: str) -> int:
    """When (ms) a person had their memory erased: what was said before does not come back; -1 for never."""
    return parts.memory.erased_at(user_subject(user_id)) if parts.memory is not None else -1


def erased_since(parts: Parts, message: Inbound) -> bool:
    """Whether the author's memory was erased after they said this."""
    return message.sent_at <= erased_at(parts, message.author.id)


def whose(parts: Parts, message: Inbound) -> str | None:
    """Whose talk this is; None where nothing of it is to be kept."""
    kept = parts.remembers(message.author.id) and not erased_since(parts, message)
    return user_subject(message.author.id) if kept else None


async def soon(reading: Coroutine[Any, Any, T], otherwise: T, what: str) -> T:
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
