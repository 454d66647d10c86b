"""The conversations: from a message that arrives to the answer and what follows it."""

from typing import Any, ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.finding import Finding
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.core.ports import Threads
from discoclaw.prompt.assemble import Budget
from discoclaw.session import tools
from discoclaw.session.arrival import Arrivals
from discoclaw.session.asking import Asking
from discoclaw.session.branching import Branching
from discoclaw.session.content import Content
from discoclaw.session.conversation import Conversation
from discoclaw.session.desk import Desk
from discoclaw.session.gather import Always, Gatherer, Source
from discoclaw.session.noted import CallLog
from discoclaw.session.prepare import Preparation
from discoclaw.session.prompts import Prompts
from discoclaw.session.record import Record
from discoclaw.session.sources import (
    GroupSource,
    ItemSource,
    OwnerSource,
    SoulSource,
    SummarySource,
    TextSource,
    UsedSource,
)
from discoclaw.session.talk import Talk
from discoclaw.session.tools.base import Toolbox, ToolParts
from discoclaw.session.tools.consolidation import Consolidation
from discoclaw.session.turn import Turns
from discoclaw.settings import Settings
from discoclaw.storage import Storage


class Talking(Feature):
    """The turns, and the queue in which messages wait. `talk` is the entry point for the chat's adapter."""

    settings: ClassVar = (
        "history_budget",
        "prompt_budget",
        "timezone",
        "context_tokens",
        "tools_enabled",
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
        hearing: Hearing,
        toolbox: Toolbox,
        threads: Threads,
    ) -> None:
        settings, storage, clock, me = basics.settings, disk.storage, basics.clock, basics.me
        loops, archiving = learning.loops, archive.archiving
        consolidation = Consolidation(learning.consolidate)
        conversation = Conversation(
            models.chat,
            toolbox if settings.tools_enabled else tools.NONE,
            ToolParts(
                storage.used, finding.items, storage.people.choices, consolidation, storage.withdrawals
            ),
            archiving,
            CallLog(storage.used, storage.people.tool_log),
            rules=hearing.answers,
            redactor=basics.redactor,
            compacted=learning.hygiene.compacted,
        )
        budget = Budget(history=settings.history_budget, total=settings.prompt_budget)
        preparation = Preparation(
            hearing.refill,
            Gatherer(**_sources(settings, storage)),
            finding.items,
            Prompts(budget, clock=clock, me=me, zone=settings.zone),
            hearing.attachments,
        )
        arrivals = Arrivals(storage.live, storage.consent, hearing.windows, storage.places)
        self.branching = Branching(arrivals, loops, models.summary, threads, basics.redactor)
        turns = Turns(
            hatchery=hearing.hatchery,
            refill=hearing.refill,
            preparation=preparation,
            branching=self.branching,
            conversation=conversation,
            record=Record(
                loops,
                archiving,
                hearing.explained,
                storage.withdrawals,
                clock=clock,
                me=me,
                redactor=basics.redactor,
            ),
            loops=loops,
            asking=Asking(storage.used, learning.asked_back),
        )
        desk = Desk(waiting_limit=settings.waiting_messages, running_limit=settings.concurrent_turns or 16)
        self.talk = Talk(
            arrivals,
            hearing.listener,
            hearing.inboxes,
            turns,
            desk,
            hatchery=hearing.hatchery,
            refill=hearing.refill,
            loops=loops,
        )

        async def close() -> None:
            await desk.close(settings.shutdown_grace_s)
            await self.talk.refusals.close()

        self.services = (self.branching, Part(settling=desk.settle, closing=close))
        self.joins = (self.talk.chosen,)


def _sources(settings: Settings, storage: Storage) -> dict[str, Source[Any]]:
    """The sources of what is known for a message, by their field of `Gathered`."""
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
