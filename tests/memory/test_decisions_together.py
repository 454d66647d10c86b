"""Whatever people decide in whichever process, and whenever: it holds in all of them, and nothing is lost.

Rounds of things that happen at the same time in three processes: talk, opt-outs, opt-ins, erasings, choices.
Beside them a plain model says what has to be so after each round.
"""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consent import ALWAYS, NEVER
from discoclaw.core.subject import user_subject
from tests.memory.kit import Clock
from tests.memory.processes import InRam, Process, sharing

PEOPLE = ("820000000000000001", "820000000000000002", "820000000000000003")
ACTS = ("talk", "talk", "opt out", "opt in", "erase", "nothing")


@dataclass
class Person:
    """What has to be so of one person."""

    user_id: str
    words: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    refused_until: int = NEVER
    erased_at: int = NEVER
    switches: bool = False

    @property
    def cutoff(self) -> int:
        return max(self.refused_until, self.erased_at)


@dataclass(frozen=True)
class Act:
    """What one person does in one process; beside it they may choose something else in another one."""

    what: str
    where: int
    switches: bool | None
    elsewhere: int


ROUND = st.tuples(
    *(
        st.builds(
            Act,
            st.sampled_from(ACTS),
            st.integers(0, 2),
            st.sampled_from([None, None, True, False]),
            st.integers(0, 2),
        )
        for _ in PEOPLE
    )
)


class Rounds:
    """Three processes and the model."""

    def __init__(self, processes: list[Process], shared: InRam, clock: Clock) -> None:
        self.processes = processes
        self.shared = shared
        self.clock = clock
        self.people = [Person(user_id) for user_id in PEOPLE]
        self.said = 0

    async def play(self, acts: tuple[Act, ...]) -> None:
        self.clock.forward(minutes=1)
        pairs = list(zip(self.people, acts, strict=True))
        await asyncio.gather(
            *(self.act(person, act) for person, act in pairs),
            *(self.switch(person, act) for person, act in pairs if act.switches is not None),
        )
        for person in self.people:
            for process in self.processes:
                await self.check(person, process)
        dump = self.shared.dump() + b"".join(process.on_this_machine() for process in self.processes)
        for word in (word for person in self.people for word in person.gone):
            assert word.encode() not in dump

    async def act(self, person: Person, act: Act) -> None:
        process, now = self.processes[act.where], self.clock.now
        storage = process.storage
        if act.what == "talk":
            self.said += 1
            word = f"wort{self.said:03d}x"
            await process.look(f"choices/{person.user_id}.json", "tombstones.jsonl")
            permission = storage.consent.ask(person.user_id, now)
            assert permission.holds == (now > person.cutoff)
            if permission.holds:
                await process.remember(person.user_id, f"I like {word}")
                person.words.append(word)
        elif act.what == "opt out":
            await storage.people.choices.choose(person.user_id, opted_out=True)
            person.refused_until = ALWAYS
        elif act.what == "opt in" and person.refused_until == ALWAYS:
            await storage.people.choices.choose(person.user_id, opted_out=False, since=now)
            person.refused_until = now
        elif act.what == "erase":
            erased = await process.memory.erase(user_subject(person.user_id))
            assert (erased.left, erased.waiting) == ((), False)
            person.erased_at = erased.at
            person.gone, person.words = [*person.gone, *person.words], []

    async def switch(self, person: Person, act: Act) -> None:
        assert act.switches is not None
        choices = self.processes[act.elsewhere].storage.people.choices
        await choices.choose(person.user_id, auto_switch=act.switches)
        person.switches = act.switches

    async def check(self, person: Person, process: Process) -> None:
        known = await process.known(person.user_id)
        assert known == [f"I like {word}" for word in person.words]
        consent = process.storage.consent
        assert consent.cutoff(person.user_id) == person.cutoff
        assert process.storage.people.choices.auto_switch(person.user_id) == person.switches


@given(st.lists(ROUND, min_size=1, max_size=12))
def test_what_is_decided_in_one_process_holds_in_all(rounds: list[tuple[Act, ...]]) -> None:
    async def played() -> None:
        clock, shared = Clock(), InRam()
        with tempfile.TemporaryDirectory() as folder:
            async with sharing(Path(folder), shared, clock, 3) as processes:
                game = Rounds(processes, shared, clock)
                for acts in rounds:
                    await game.play(acts)

    asyncio.run(played())
