"""What stands in for a part that is switched off answers whatever the part itself answers."""

import inspect

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.errors import Refused
from discoclaw.core.message import Place, Said
from discoclaw.core.personal import PersonalData
from discoclaw.loops.cadence import Cadence
from discoclaw.loops.consolidate import Consolidator, NoConsolidator
from discoclaw.loops.facts import FactsLoop, NoFacts
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.schedule import Loops
from discoclaw.loops.summary import NoSummary, SummaryLoop
from discoclaw.memory.changes import Listener
from discoclaw.memory.conversations.rolling import NOTHING, RollingMemory
from discoclaw.memory.off import (
    STORE_OFF,
    NoGroups,
    NoLastUsed,
    NoMemory,
    NoProfiles,
    NoSummaries,
    NoToolLog,
)
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, NOW, Clock, remember

OF_THE_FOLDER = {"open", "close", "rescue", "catch_up", "bring_decisions", "finish_step", "join"}
"""What only the real memory does, which is there also where nobody is remembered."""
STAND_INS: list[tuple[type, type]] = [
    (Memory, NoMemory),
    (Profiles, NoProfiles),
    (Groups, NoGroups),
    (LastUsed, NoLastUsed),
    (ToolLog, NoToolLog),
    (RollingMemory, NoSummaries),
    (SummaryLoop, NoSummary),
    (FactsLoop, NoFacts),
    (Consolidator, NoConsolidator),
]


def verbs(part: type) -> set[str]:
    """The public methods that a class adds to its contracts, or overrides."""
    return {name for name, one in vars(part).items() if inspect.isfunction(one) and not name.startswith("_")}


@pytest.mark.parametrize(("part", "stand_in"), STAND_INS)
def test_no_verb_is_left_to_the_part_that_is_off(part: type, stand_in: type) -> None:
    inherited = {
        name
        for name in verbs(part) - (OF_THE_FOLDER if part is Memory else set())
        if getattr(stand_in, name) is getattr(part, name)
    }
    assert inherited == set()


async def test_a_change_is_refused_with_what_an_admin_can_do() -> None:
    memory = NoMemory(STORE_OFF)
    for work in (
        memory.change(ANN, "why", remember("likes tea")),
        memory.act(ANN, lambda history, now, most: ([], None)),
        memory.turn(ANN, lambda branches, now: None),
        memory.erase(ANN),
    ):
        with pytest.raises(Refused, match="DISCOCLAW_STORE"):
            await work
    with pytest.raises(Refused, match="DISCOCLAW_SUMMARY_ENABLED"):
        await NoSummaries().clear("discord:channel:1")
    with pytest.raises(Refused, match="DISCOCLAW_DURABLE_MEMORY_ENABLED"):
        await NoConsolidator().run(ANN)


async def test_a_look_finds_nothing() -> None:
    memory, summaries = NoMemory(), NoSummaries()
    assert (await memory.view(ANN)).items == {}
    assert (await memory.history(ANN)).commits == {}
    assert memory.ledgers.by_age() == []
    assert await summaries.get("discord:channel:1") == summaries.in_ram("discord:channel:1") == NOTHING
    assert not await summaries.put("discord:channel:1", "They talked.", generation=0)
    assert await NoProfiles().get("1") is None
    assert NoLastUsed().of(ANN) == {}
    assert await NoToolLog().purge(NOW) == 0


async def test_an_erasing_and_a_change_pass_them_by(memory: Memory) -> None:
    parts: list[PersonalData | Listener] = [NoProfiles(), NoGroups(), NoLastUsed(), NoToolLog()]
    memory.join(*parts, NoSummaries())
    await memory.change(ANN, "why", remember("likes tea"))
    assert (await memory.erase(ANN)).left == ()
    for part in (NoProfiles(), NoGroups(), NoToolLog()):
        await part.start()
        await part.settle()
        await part.close()


async def test_loops_that_are_off_let_nothing_wait() -> None:
    loops = Loops(
        clock=Clock(), summary=NoSummary(), facts=NoFacts(), cadence=Cadence(1, 1), consent=UNLIMITED
    )
    place = Place("channel", "10", "10", "general", private=False)
    loops.hear(Said("1", "7", "Ann", "likes tea", NOW), place, "discord:channel:10", window=20)
    loops.nudge("discord:channel:10", "7")
    loops.reset("discord:channel:10", 5)
    await loops.settle()
    backlog = Backlog()
    backlog.hear(Heard(Said("2", "7", "Ann", "likes tea", NOW), place, "discord:channel:10"))
    assert not await NoFacts().run("7", backlog, [])
    assert not await NoSummary().run("discord:channel:10", backlog)
    assert await NoSummary().seen_up_to("discord:channel:10") == 0
    await loops.close()
