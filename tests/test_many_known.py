"""What a start, a commit and an idle hour cost with many known people, counted and not timed."""

from pathlib import Path
from typing import Any

import pytest

from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.memory.subjects import follow
from discoclaw.models.offline.model import OfflineModel
from tests.contract.published import mirrored
from tests.contract.world import Start, World, starting
from tests.counting import ENTRIES, SCANS, STATEMENTS, Counts, counted, grown, least
from tests.memory.kit import remember
from tests.servers.nostr_relay import LyingRelay

FEW, MANY = 10, 40
A_PERSON, A_FUNCTION, A_SCAN = 9, 12, 1
"""The most directory entries a start reads for each person, lines that each function runs, and scans."""
FIRST = 9 * 10**17


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """A world whose models answer in this process: what an SDK does is not counted."""
    begin = starting(tmp_path)
    return lambda **settings: begin(model=OfflineModel(), **settings)


def heartbeat(world: World) -> Any:
    """The part that tidies, among those that run."""
    (found,) = (one for one in world.app.services if isinstance(one, Heartbeat))
    return found


async def known(world: World, count: int) -> None:
    """Let the bot know so many people, and do what is to be done about that, in two lives."""
    for number in range(count):
        await world.app.storage.memory.change(f"user-{FIRST + number}", "why", remember("likes tea"))
    for _ in range(2):
        await world.restart()
        for _ in range(4):
            await heartbeat(world).round()
            await world.settle()


@pytest.mark.parametrize("store", ["files", "sqlite"])
async def test_a_start_lists_everybody_once_and_opens_nothing_of_theirs(start: Start, store: str) -> None:
    found = list[Counts]()
    for count in (FEW, MANY):
        async with start(store=store, memory_channel=None) as world:
            await known(world, count)
            with counted() as counts:
                await world.restart()
                await world.settle()
            found.append(counts)
    few, many = found
    more = grown(few, many, most_steps=A_FUNCTION * (MANY - FEW), **{"bytes written": 100})
    assert more.keys() <= {ENTRIES, SCANS}
    assert many.done[SCANS] - few.done[SCANS] <= A_SCAN * (MANY - FEW)
    assert many.done[ENTRIES] - few.done[ENTRIES] <= A_PERSON * (MANY - FEW)


async def test_a_commit_and_an_hour_with_nothing_to_do_cost_the_same(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_RECENT", 8)  # as many as are written again with each change
    found = dict[str, list[Counts]](commit=[], hour=[])
    for count in (FEW, MANY):
        async with start() as world:
            await known(world, count)
            for what in ("first", "commit"):
                with counted() as counts:
                    await world.app.storage.memory.change(
                        f"user-{FIRST + 900 + count}", "why", remember(f"likes {what}")
                    )
                    await world.settle()
            found["commit"].append(counts)
            for _ in range(2):
                await heartbeat(world).round()
            with counted() as counts:
                await world.env.advance_time(3600)
                await world.settle()
            found["hour"].append(counts)
    assert grown(*found["commit"], most_steps=20, **{"bytes written": 400}) == {}
    assert grown(*found["hour"], most_steps=20) == {}


async def test_a_look_at_a_mirror_that_has_nothing_to_send_costs_the_same(start: Start) -> None:
    found = list[Counts]()
    async with LyingRelay() as relay, start(**mirrored(relay)) as world:
        for people in (FEW, MANY):
            await known(world, people)
            await world.app.mirror.flush(60)
            looks = list[Counts]()
            for _ in range(3):
                with counted() as counts:
                    await world.app.mirror.settle()
                    await world.app.mirror.drain(10)
                    await world.app.mirror.status()
                looks.append(counts)
            found.append(least(*looks))
    few, many = found
    assert few.done[STATEMENTS] > 0
    assert grown(few, many, most_steps=20) == {}
