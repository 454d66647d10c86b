"""What is taken back in one process is let go of in every process that shares the store."""

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.memory import purge
from discoclaw.memory.conversations.responses import Response
from tests.memory.kit import ANN, Clock
from tests.memory.processes import Process
from tests.memory.sharing import until

WORDS = "I like tulips from Leiden"
ANNS = ANN.removeprefix("user-")
SESSION = f"discord:dm:{ANNS}"


class Window(Derived):
    """Words in the RAM of one process, which notes what it is told to let go of."""

    name = "a window"

    def __init__(self) -> None:
        self.gone: list[Purge] = []
        self.ended: list[str] = []

    def purge(self, purge: Purge, phase: Phase) -> None:
        if phase == "ram":
            self.gone.append(purge)
        elif phase == "done":
            self.ended.append(purge.subject)


def forgetting(draft: Draft) -> None:
    for item in list(draft.items.values()):
        draft.deprecate(item, Origin("stated"))


async def forget(process: Process) -> None:
    """Let Ann forget all she said, and wait until it is removed."""
    await process.storage.purger.told(ANN, process.memory.change(ANN, "forgotten", forgetting))


async def cache(process: Process, clock: Clock, subject: str = ANN) -> None:
    said = Response("key", "sha", "model", f"You said: {WORDS}", clock.now, clock.now)
    await process.storage.conversations.responses.put(subject, said)
    assert b"tulips" in process.on_this_machine()


class TestWhatWasTakenBackElsewhere:
    async def test_is_let_go_of_before_it_is_used_again(self, two: list[Process], clock: Clock) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        assert await there.known(ANNS) == [WORDS]
        there.memory.join(window := Window())
        clock.forward(minutes=1)
        await forget(here)
        assert await there.known(ANNS) == []
        assert {one.subject for one in window.gone} == {ANN}
        assert any("tulips" in text for text in window.gone[0].texts)

    async def test_is_let_go_of_where_only_a_window_has_it(self, two: list[Process], clock: Clock) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        there.memory.join(window := Window())
        there.storage.consent.ask(ANNS, clock.now)  # as for each message that enters a window
        clock.forward(minutes=1)
        await forget(here)
        await there.look(f"ledger/{ANN}.jsonl")
        assert {one.subject for one in window.gone} == {ANN}

    async def test_costs_a_process_that_has_nothing_of_the_person_no_reading(
        self, two: list[Process]
    ) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        await there.hear()
        assert not there.memory.has_in_ram(ANN)

    async def test_leaves_every_machine(self, two: list[Process], clock: Clock) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        await cache(here, clock)
        await cache(there, clock)
        await cache(there, clock, "user-456")
        clock.forward(minutes=1)
        await forget(here)
        await there.hear()
        assert [b"tulips" in one.on_this_machine() for one in two] == [False, False]

    async def test_is_removed_from_the_store_though_that_process_never_comes_to_it(
        self, two: list[Process], clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(purge, "RETRY_S", 0.01)
        here, there = two
        await here.remember(ANNS, WORDS)
        await here.sum_up(SESSION, f"Ann: {WORDS}")
        summaries = here.memory.disk.documents("rolling")
        assert await there.known(ANNS) == [WORDS] and summaries.names()
        clock.forward(minutes=1)
        await there.storage.purger.close()  # as if it were killed right behind the commit
        await there.memory.change(ANN, "forgotten", forgetting)
        await here.hear()
        await until(lambda: not summaries.names())

    async def test_may_be_used_again_once_it_is_removed_from_the_store(
        self, two: list[Process], clock: Clock
    ) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        await there.known(ANNS)
        there.memory.join(window := Window())
        clock.forward(minutes=1)
        await forget(here)
        await there.hear()
        assert window.ended == [ANN]


class TestAnOptOut:
    async def test_ends_permissions_and_empties_every_machine(self, two: list[Process], clock: Clock) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        await cache(there, clock)
        permission = there.storage.consent.ask(ANNS, clock.now)
        there.memory.join(window := Window())
        await here.storage.people.choices.choose(ANNS, opted_out=True)
        await there.look(f"choices/{ANNS}.json")
        assert not permission.holds
        assert permission.opted_out
        assert any(one.everything for one in window.gone)
        await here.storage.purger.settle()
        await there.hear()
        await there.storage.purger.settle()
        assert b"tulips" not in there.on_this_machine()

    async def test_and_back_in_again_counts_everywhere(self, two: list[Process], clock: Clock) -> None:
        here, there = two
        await here.storage.people.choices.choose(ANNS, opted_out=True)
        clock.forward(minutes=1)
        await here.storage.people.choices.choose(ANNS, opted_out=False, since=clock.now)
        await there.look(f"choices/{ANNS}.json")
        assert not there.storage.consent.may_keep(ANNS, clock.now)
        assert there.storage.consent.may_keep(ANNS, clock.now + 1)
