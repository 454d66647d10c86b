"""The conversations: from a message that arrives to the answer and what follows it."""

from typing import Any, ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.finding import Finding
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.core.ports import History
from discoclaw.prompt.assemble import Budget
from discoclaw.session import tools
from discoclaw.session.content import Content
from discoclaw.session.conversation import Conversation, Limits
from discoclaw.session.desk import Desk
from discoclaw.session.explained import Explained
from discoclaw.session.gather import Always, Gatherer, Source
from discoclaw.session.hatch import Hatchery, HatchingRules, Interviewer
from discoclaw.session.listen import Listener
from discoclaw.session.noted import CallLog
from discoclaw.session.personal import TalkInRam
from discoclaw.session.prompts import Prompts
from discoclaw.session.record import Record
from discoclaw.session.refill import Refill
from discoclaw.session.sources import (
    GroupSource,
    ItemSource,
    OwnerSource,
    SoulSource,
    SummarySource,
    TextSource,
    UsedSource,
)
from discoclaw.session.talk import Arrivals, Talk
from discoclaw.session.tools.base import Toolbox, ToolParts
from discoclaw.session.tools.consolidation import Consolidation
from discoclaw.session.turn import Turns
from discoclaw.session.window import Windows
from discoclaw.settings import Settings
from discoclaw.storage import Storage


class Talking(Feature):
    """Hearing, answering and the interview about the bot's personality."""

    settings: ClassVar = (
        "history_budget",
        "prompt_budget",
        "context_tokens",
        "content_dir",
        "personas",
        "dm_privacy",
        "concurrent_turns",
        "waiting_messages",
        "shutdown_grace_s",
    )

    def __init__(
        self,
        basics: Basics,
        disk: OnDisk,
        models: Models,
        archive: Archived,
        finding: Finding,
        learning: Learning,
        history: History,
        toolbox: Toolbox,
    ) -> None:
        settings, storage, clock, me = basics.settings, disk.storage, basics.clock, basics.me
        loops, archiving = learning.loops, archive.archiving
        self.windows = windows = Windows(
            clock=clock, capacity=settings.context_history, idle_ms=settings.idle_s * 1000
        )
        self.explained = Explained()
        self.hatchery = Hatchery(
            HatchingRules(
                settings.owners, settings.dm_privacy, settings.commands_enabled, memory=storage.remembers
            ),
            Interviewer(models.chat, me=me, max_tokens=settings.max_tokens),
            storage.used,
            storage.cursors,
            windows,
            loops,
            storage.consent,
            clock=clock,
        )
        refill = Refill(history, storage.consent, loops, archiving, clock=clock)
        consolidation = Consolidation(learning.consolidate)
        conversation = Conversation(
            models.chat,
            toolbox if storage.remembers else tools.NONE,
            ToolParts(storage.used, finding.items, storage.people.choices, consolidation),
            archiving,
            CallLog(storage.used, storage.people.tool_log),
            limits=Limits(settings.max_tokens, settings.context_tokens),
            dm_privacy=settings.dm_privacy,
            redactor=basics.redactor,
            compacted=learning.hygiene.compacted,
        )
        budget = Budget(history=settings.history_budget, total=settings.prompt_budget)
        turns = Turns(
            hatchery=self.hatchery,
            refill=refill,
            gatherer=Gatherer(**_sources(settings, storage)),
            items=finding.items,
            prompts=Prompts(budget, clock=clock, me=me),
            conversation=conversation,
            record=Record(loops, archiving, self.explained, clock=clock, me=me, redactor=basics.redactor),
            loops=loops,
        )
        self.desk = Desk(
            waiting_limit=settings.waiting_messages, running_limit=settings.concurrent_turns or 16
        )
        people = storage.people
        self.talk = Talk(
            Arrivals(storage.live, storage.consent, windows, settings.personas),
            Listener(windows, loops, archiving, self.hatchery, people.profiles, people.groups),
            turns,
            self.desk,
            hatchery=self.hatchery,
            refill=refill,
            loops=loops,
        )
        self.joins = (TalkInRam(windows, loops, self.hatchery, self.explained, finding.ranker),)

        async def close() -> None:
            await self.desk.close(settings.shutdown_grace_s)

        self.services = (self.hatchery, Part(settling=self.desk.settle, closing=close))


def _sources(settings: Settings, storage: Storage) -> dict[str, Source[Any]]:
    """Where each part of what is known for a message comes from, by its field of `Gathered`."""
    content = Content(settings.content_dir)
    fades = settings.fade.idle_days > 0
    return {
        "items": ItemSource(storage.used),
        "who": SoulSource(storage.used, content),
        "used": UsedSource(storage.people.last_used) if fades else Always({}),
        "summary": SummarySource(storage.summaries),
        "group": GroupSource(storage.people.groups),
        "owners": OwnerSource(sorted(settings.owners), storage.people.profiles),
        "texts": TextSource(content),
    }
