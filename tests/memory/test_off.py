"""What stands in for a part that is switched off answers whatever the part itself answers."""

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.errors import Refused
from discoclaw.core.message import Place, Said
from discoclaw.loops.consolidate import NoConsolidator
from discoclaw.loops.facts import NoFacts
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import NoSummary
from discoclaw.memory.conversations.rolling import NOTHING, NoSummaries
from discoclaw.memory.subjects.store import STORE_OFF, NoMemory
from tests.memory.kit import ANN, NOW, Clock, remember


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
