"""Learning from talk: the loops on a small model, the consolidating heartbeat, and expiry."""

import random
from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import partial
from typing import ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.finding import Finding
from discoclaw.app.models import Models
from discoclaw.core.consolidation_report import ConsolidationReport
from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Me
from discoclaw.core.ports import Clock, Model
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.zones import zone_of
from discoclaw.loops.cadence import Cadence
from discoclaw.loops.consolidate import Consolidator, NoConsolidator
from discoclaw.loops.facts import FactsLoop, FactsRules, NoFacts
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Beside, Hygiene
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.schedule import Loops
from discoclaw.loops.summary import NoSummary, SummaryLoop, SummaryRules
from discoclaw.loops.traits import Traits
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.subjects.follow import Follower
from discoclaw.settings import Settings
from discoclaw.storage import Storage


class Learning(Feature):
    """`loops` learn from talk, `heartbeat` consolidates, `hygiene` removes what has expired.

    `asked_back` limits what the loops may ask people in return.
    `inboxes` say what was handled. `followers` are updated after each run of a loop, even if it changed
    nothing.
    """

    settings: ClassVar = (
        "summary_max_chars",
        "summary_every",
        "durable_every",
        "extraction_enabled",
        "heartbeat_minutes",
        "knowledge_decay",
        "knowledge_max_idle_days",
        "knowledge_survival_chance",
        "pending_days",
        "ask_back",
    )

    def __init__(
        self, basics: Basics, disk: OnDisk, models: Models, archive: Archived, finding: Finding
    ) -> None:
        settings, storage = basics.settings, disk.storage
        self.followers: list[Follower] = []
        self.asked_back = asked_back(settings, storage, basics.clock)
        self.inboxes = Inboxes(
            storage.cursors,
            storage.consent,
            catches_up=settings.catch_up_hours > 0,
            names_people=storage.remembers,
            shared=storage.processes.shared,
        )
        self.hygiene = Hygiene(
            storage.used,
            storage.people.last_used,
            storage.cursors,
            clock=basics.clock,
            rules=settings.decay,
            roll=random.Random().random,
            beside=Beside(archive.archiving.purge, storage.people.tool_log.purge, storage.processes),
            consent=storage.consent,
        )
        self.heartbeat = Heartbeat(
            Consolidator(models.facts, storage.used, clock=basics.clock, nearest=finding.nearest)
            if storage.remembers
            else NoConsolidator(),
            storage.used,
            storage.cursors,
            clock=basics.clock,
            every_minutes=settings.heartbeat_minutes if storage.remembers else 0,
            consent=storage.consent,
            first=self.hygiene.run,
            processes=storage.processes,
        )
        self.loops = self._loops(basics, disk, models, finding.nearest)
        self.services = (self.hygiene, self.loops, self.heartbeat)

    async def consolidate(
        self, subject: str, branch: str | None, why: Mapping[str, str]
    ) -> ConsolidationReport:
        """Consolidate a branch now, on request. Raises Refused, ModelError or MemoryFault."""
        return await self.heartbeat.now(subject, branch, **why)

    def _loops(self, basics: Basics, disk: OnDisk, models: Models, nearest: Nearest) -> Loops:
        settings, storage, me, clock = basics.settings, disk.storage, basics.me, basics.clock
        summary: SummaryLoop = NoSummary()
        facts: FactsLoop = NoFacts()
        if storage.sums_up:
            reads = partial(models.reads, settings.summary_model)
            summary = summary_loop(settings, storage, models.summary, me=me, clock=clock, reads=reads)
        if storage.remembers and settings.extraction_enabled:
            about, reads = (settings, storage, models.facts), partial(models.reads, settings.durable_model)
            facts = facts_loop(*about, me=me, clock=clock, reads=reads, nearest=nearest)

        def learned(user_id: str) -> None:
            for follower in self.followers:
                follower.touch(user_subject(user_id))

        return Loops(
            clock=basics.clock,
            summary=summary,
            facts=facts,
            cadence=Cadence(settings.summary_every, settings.durable_every, settings.history_budget),
            learned=learned,
            consent=storage.consent,
            behind=self.inboxes.is_behind,
            processes=storage.processes,
        )


def asked_back(settings: Settings, storage: Storage, clock: Clock) -> AskedBack:
    """The limits for questions in return. What they know is on disk, so it may be built more than once."""
    choices, on = storage.people.choices, settings.ask_back and storage.remembers
    return AskedBack(storage.used, storage.cursors, choices, clock=clock, on=on)


def facts_loop(
    settings: Settings,
    storage: Storage,
    model: Model,
    *,
    me: Callable[[], Me],
    clock: Clock,
    reads: Callable[[], int],
    nearest: Nearest | None = None,
) -> FactsLoop:
    """The extraction, as the bot and the evals run it; the evals find what is known by its words alone."""
    choices = storage.people.choices
    return FactsLoop(
        model,
        storage.used,
        storage.cursors,
        rules=FactsRules(
            storage.places.dm_privacy,
            storage.places,
            settings.zone,
            choices.asks_first,
            asked_back(settings, storage, clock).may_raise,
            nearest or Nearest(),
            reads,
        ),
        me=me,
        clock=clock,
        consent=storage.consent,
        traits=Traits(storage.used, settings.owners),
    )


def summary_loop(
    settings: Settings,
    storage: Storage,
    model: Model,
    *,
    me: Callable[[], Me],
    clock: Clock,
    reads: Callable[[], int],
) -> SummaryLoop:
    """The rolling summary, as the bot and the evals run it."""

    async def zone(session_key: str) -> tzinfo:
        """The person's own zone in their DM, if it is known; the server's elsewhere."""
        if (person := person_of(session_key)) is None:
            return settings.zone
        try:
            items = (await storage.used.view(user_subject(person))).active()
        except MemoryFault:
            return settings.zone
        return zone_of(items, settings.zone, in_dm=True)

    return SummaryLoop(
        model,
        storage.summaries,
        storage.cursors,
        me=me,
        rules=SummaryRules(clock, settings.summary_max_chars, zone, reads),
        consent=storage.consent,
        taken_back=storage.withdrawals.of,
        groups=storage.people.groups,
    )
