"""What the loops need of one process, beside others on the same store."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.decay import Decay
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Source
from discoclaw.core.message import Said
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Beside, Hygiene
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.processes import SharedProcesses
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import CURSORS, ROLLING
from discoclaw.store.postgres.disk import PostgresDisk
from tests.loops.builders import hear
from tests.memory.sharing import LEASE_S
from tests.memory.together import Together
from tests.session.scene import GENERAL, ME, Clock, Place, ScriptedModel

_RULES = Decay()


@dataclass
class Process:
    """One process. `store` may be the address of a database, with which it has to be started and closed.

    `every_minutes` is the pause between the rounds of its heartbeat.
    """

    store: Together | str
    folder: Path
    model: Any = field(default_factory=ScriptedModel)
    clock: Clock = field(default_factory=Clock)
    rules: Decay = _RULES
    every_minutes: float = 30

    def __post_init__(self) -> None:
        clock, given = self.clock, {"clock": self.clock}
        self.member: Any = self.store.join() if isinstance(self.store, Together) else None
        disk: Any = PostgresDisk(self.store) if isinstance(self.store, str) else self.member.disk
        self.disk = disk
        self.cursors = Cursors(disk.documents(CURSORS))
        self.memory = Memory(Disks(self.folder, disk), cursors=self.cursors, **given)
        self.rolling = RollingMemory(disk.documents(ROLLING), cursors=self.cursors, **given)
        self.access = LastUsed(self.memory, self.cursors, **given)
        self.memory.join(self.rolling, self.access)
        if isinstance(self.store, str):
            disk.open()
            changes = self.memory.changes
            self.member = SharedProcesses(disk.rows(LEASE_S), disk.presence, disk.seen, changes, "bot")
        else:
            self.member.listener = self.memory.changes
        summary = SummaryLoop(
            self.model,
            self.rolling,
            self.cursors,
            me=lambda: ME,
            rules=SummaryRules(clock),
            consent=UNLIMITED,
        )
        facts = FactsLoop(
            self.model,
            self.memory,
            self.cursors,
            rules=FactsRules(),
            me=lambda: ME,
            consent=UNLIMITED,
            **given,
        )
        self.loops = Loops(
            summary=summary, facts=facts, cadence=Cadence(1000, 1000), processes=self.member, **given
        )
        self.hygiene = Hygiene(
            self.memory,
            self.access,
            self.cursors,
            rules=self.rules,
            roll=lambda: 0.5,
            beside=Beside(processes=self.member),
            **given,
        )
        self.heartbeat = Heartbeat(
            Consolidator(self.model, self.memory, **given),
            self.memory,
            self.cursors,
            every_minutes=self.every_minutes,
            first=self.hygiene.run,
            processes=self.member,
            **given,
        )

    async def __aenter__(self) -> Self:
        await self.member.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.member.close()
        self.disk.close()

    def hear(self, *messages: Said, place: Place = GENERAL) -> None:
        hear(self.loops, messages, place)

    async def learn(self, subject: str, text: str, category: str = "conversation") -> None:
        """Note what was learned now."""
        origin = Origin("inferred", Source("discord", "7", "70"), said_at=self.clock())

        def wish(draft: Draft) -> None:
            draft.upsert("fact", text, origin, facets=Facets(category=category))

        await self.memory.change(subject, "why", wish)

    def follower(self, shown: list[str]) -> Follower:
        """A follower that notes whom it was told of."""

        async def show(subject: str) -> None:
            shown.append(subject)

        follower = Follower("board", show, ledgers=self.memory.ledgers, cursors=self.cursors)
        self.memory.join(follower)
        return follower

    async def following(self, shown: list[str]) -> Follower:
        """Such a follower, once it knows what there is."""
        follower = self.follower(shown)
        await follower.start()
        await follower.catch_up()
        return follower
