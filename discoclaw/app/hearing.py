"""The parts that receive talk: windows, the listener that passes it on, and the personality interview."""

from typing import ClassVar

from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.files import Files
from discoclaw.app.finding import Finding
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.app.sole import Sole
from discoclaw.core.ports import History
from discoclaw.session.explained import Explained
from discoclaw.session.hatch import Hatchery, HatchingRules
from discoclaw.session.interviewer import Interviewer
from discoclaw.session.listen import Listener
from discoclaw.session.personal import TalkInRam
from discoclaw.session.prompts import AnswerRules
from discoclaw.session.refill import Refill
from discoclaw.session.retracted import Retractions
from discoclaw.session.rewriting import Rewriting
from discoclaw.session.stopping import Stops
from discoclaw.session.window import Windows


class Hearing(Feature):
    """`listener` receives talk, `stops` knows the answers under way, `refill` reads what was said before a
    start, and `explained` explains answers.

    `answers` bounds the model's answers, in the talk and in the interview. `attachments` are turns' files.
    """

    settings: ClassVar = ()

    def __init__(
        self,
        basics: Basics,
        disk: OnDisk,
        models: Models,
        archive: Archived,
        finding: Finding,
        learning: Learning,
        files: Files,
        history: History,
    ) -> None:
        settings, storage, clock = basics.settings, disk.storage, basics.clock
        loops, archiving, people = learning.loops, archive.archiving, storage.people
        idle_ms = settings.idle_s * 1000
        self.windows = Windows(clock=clock, capacity=settings.context_history, idle_ms=idle_ms)
        self.explained = Explained()
        rules = HatchingRules(settings.owners, settings.commands_enabled, memory=storage.remembers)
        self.answers = AnswerRules(settings.max_tokens, models.reads, remembers=storage.remembers)
        self.hatchery = Hatchery(
            rules,
            Interviewer(models.named, me=basics.me, rules=self.answers, compacted=learning.hygiene.compacted),
            storage.used,
            storage.cursors,
            self.windows,
            loops,
            storage.consent,
            clock=clock,
        )
        answers = storage.conversations.answers
        self.stops = Stops()
        self.refill = Refill(
            history, storage.consent, storage.withdrawals, answers, loops, archiving, clock=clock
        )
        self.attachments = files.attachments(self.refill)
        rewriting = Rewriting(self.windows, loops, self.refill, clock=clock)
        self.listener = Listener(
            self.windows,
            loops,
            archiving,
            self.hatchery,
            people.profiles,
            people.groups,
            files.shelf,
            self.stops,
        )
        self.inboxes = learning.inboxes
        self.retractions = Retractions(
            storage.memory,
            storage.withdrawals,
            answers,
            self.listener,
            storage.cursors,
            storage.consent,
            sessions_of=self.inboxes.sessions_of,
            clock=clock,
        )
        withdrawals = storage.withdrawals  # each process does what it is told, and one what others left
        left = Part(withdrawals.start, withdrawals.settle, withdrawals.rest)
        self.services = (
            self.hatchery,
            self.inboxes,
            answers,
            rewriting,
            Part(settling=withdrawals.settle, closing=withdrawals.close),
            Sole("withdrawals", [Part(storage.conversations.rolling.finish_clears), left], storage.processes),
            self.retractions,
        )
        self.joins = (
            self.inboxes,
            TalkInRam(self.windows, loops, self.hatchery, self.explained, finding.ranker),
            rewriting,
            self.retractions,
        )
