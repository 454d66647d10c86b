"""Answers: what is gathered for one, the prompt, the model with its tools, and what is recorded of it."""

from typing import Any, ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.finding import Finding
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.prompt.assemble import Budget
from discoclaw.session import tools
from discoclaw.session.asking import Asking
from discoclaw.session.content import Content
from discoclaw.session.conversation import Conversation
from discoclaw.session.gather import Always, Gatherer, Source
from discoclaw.session.noted import CallLog
from discoclaw.session.prepare import Preparation
from discoclaw.session.prompts import Prompts
from discoclaw.session.record import Record
from discoclaw.session.sources import (
    GroupSource,
    ItemSource,
    NameSource,
    OwnerSource,
    SoulSource,
    SummarySource,
    TextSource,
    UsedSource,
)
from discoclaw.session.tools.base import Toolbox, ToolParts
from discoclaw.session.tools.consolidation import Consolidation
from discoclaw.settings import Settings
from discoclaw.storage import Storage


class Answering(Feature):
    """The steps of a turn: `preparation` makes the prompt, `conversation` asks the model, `record` keeps it.

    `asking` knows which questions in return were put.
    """

    settings: ClassVar = (
        "history_budget",
        "prompt_budget",
        "timezone",
        "tools_enabled",
        "content_dir",
        "personas",
        "dm_privacy",
        "welcome",
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
    ) -> None:
        settings, storage, clock, me = basics.settings, disk.storage, basics.clock, basics.me
        consolidation = Consolidation(learning.consolidate)
        offered = toolbox if settings.tools_enabled else tools.NONE
        self.conversation = Conversation(
            models.chat,
            offered,
            ToolParts(
                storage.used, finding.items, storage.people.choices, consolidation, storage.withdrawals
            ),
            archive.archiving,
            CallLog(storage.used, storage.people.tool_log),
            rules=hearing.answers,
            redactor=basics.redactor,
            compacted=learning.hygiene.compacted,
        )
        self.preparation = Preparation(
            hearing.refill,
            Gatherer(**_sources(settings, storage)),
            finding.items,
            Prompts(
                Budget(history=settings.history_budget, total=settings.prompt_budget),
                clock=clock,
                me=me,
                zone=settings.zone,
                rules=hearing.answers,
                tools=offered.offered,
            ),
            hearing.attachments,
        )
        self.record = Record(
            learning.loops,
            archive.archiving,
            hearing.explained,
            storage.withdrawals,
            clock=clock,
            me=me,
            redactor=basics.redactor,
        )
        learns = storage.remembers and settings.extraction_enabled and settings.commands_enabled
        self.asking = Asking(storage.used, learning.asked_back, welcomes=learns and settings.welcome)


def _sources(settings: Settings, storage: Storage) -> dict[str, Source[Any]]:
    """The sources of what is known for a message, by their field of `Gathered`."""
    content = Content(settings.content_dir)
    fades = settings.fade.idle_days > 0
    return {
        "items": ItemSource(storage.used),
        "who": SoulSource(storage.used, content),
        "used": UsedSource(storage.people.last_used) if fades else Always({}),
        "summary": SummarySource(storage.summaries),
        "names": NameSource(storage.cursors),
        "group": GroupSource(storage.people.groups),
        "owners": OwnerSource(sorted(settings.owners), storage.people.profiles),
        "texts": TextSource(content),
    }
