"""What is done once in all processes, and by what changed, on a real PostgreSQL."""

import asyncio
import random
from pathlib import Path

import psycopg
import pytest

from discoclaw.app.services import Part, Sole
from discoclaw.core.decay import Decay
from discoclaw.core.history import PEOPLE
from discoclaw.memory.erasing.groups import GroupIndex
from tests.loops.builders import upsert
from tests.loops.processes import Process
from tests.memory.kit import remember, texts
from tests.memory.sharing import until
from tests.session.scene import ANN, DEV, GENERAL, Clock, ScriptedModel, said

DAY = 86_400_000
SUBJECT = f"user-{ANN.id}"

pytestmark = pytest.mark.usefixtures("prepared_database")


async def test_one_process_has_a_service_and_another_takes_over(
    tmp_path: Path, prepared_database: str
) -> None:
    lines: list[str] = []

    def service(name: str) -> Part:
        async def start() -> None:
            lines.append(f"start {name}")

        async def close() -> None:
            lines.append(f"close {name}")

        return Part(start, closing=close)

    async with Process(prepared_database, tmp_path) as one, Process(prepared_database, tmp_path) as other:
        first = Sole("work", [service("first")], one.member)
        second = Sole("work", [service("second")], other.member)
        await first.start()
        await second.start()
        assert lines == ["start first"]
        await first.close()
        await until(lambda: len(lines) == 3)
        assert lines[1:] == ["close first", "start second"]
        await second.close()


async def test_a_person_is_learned_from_once_at_a_time_in_all_processes(
    tmp_path: Path, prepared_database: str
) -> None:
    model = ScriptedModel(patches=[upsert("likes tea", source="m1"), upsert("likes mate", source="m1")])
    model.gate = asyncio.Event()
    async with (
        Process(prepared_database, tmp_path / "a", model) as one,
        Process(prepared_database, tmp_path / "b", model) as other,
    ):
        one.hear(said(1, ANN, "I like tea"))
        other.hear(said(2, ANN, "I like mate"), place=DEV)
        one.loops.force(ANN.id)
        other.loops.force(ANN.id)
        await until(lambda: bool(model.extractions))
        model.gate.set()
        await one.loops.settle()
        await other.loops.settle()
        assert (len(model.extractions), model.most_at_once) == (2, 1)
        await one.member.look([f"ledger/{SUBJECT}.jsonl"])
        assert sorted(await texts(one.memory, SUBJECT)) == ["likes mate", "likes tea"]
        await one.cursors.renewed([f"cursors/facts-{ANN.id}.json"])
        seen = await one.cursors.get(f"facts-{ANN.id}")
        assert seen == {GENERAL.session_key(ANN.id): "1", DEV.session_key(ANN.id): "2"}


async def test_a_follower_hears_of_other_processes_and_misses_nothing_that_happened_before(
    tmp_path: Path, prepared_database: str
) -> None:
    async with (
        Process(prepared_database, tmp_path / "a") as one,
        Process(prepared_database, tmp_path / "b") as other,
    ):
        shown: list[str] = []
        await other.memory.change("user-7", "why", remember("likes tea"))
        first = await one.following(shown)
        await first.settle()
        assert set(shown) == {"user-7"}  # told twice, where a look and the list of changes find it
        await other.memory.change("user-8", "why", remember("likes tea"))
        await until(lambda: "user-8" in shown)
        await first.settle()
        await first.close()
        shown.clear()
        await one.memory.change("user-9", "why", remember("likes tea"))
        await other.cursors.renewed(["cursors/follow-board.json"])
        second = await other.following(shown)
        await second.settle()
        assert set(shown) == {"user-9"}
        await second.close()


async def test_rounds_in_any_process_miss_nobody(tmp_path: Path, prepared_database: str) -> None:
    """After each round a scan of everybody finds nobody who should have been looked at."""
    dice, clock, rules = random.Random(1), Clock(), Decay(max_idle_days=30, survival_chance=0.3)
    async with (
        Process(prepared_database, tmp_path / "a", clock=clock, rules=rules) as one,
        Process(prepared_database, tmp_path / "b", clock=clock, rules=rules) as other,
    ):
        for number in range(40):
            process = dice.choice([one, other])
            subject = f"user-{dice.randrange(1, 6)}"
            match dice.randrange(4):
                case 0 | 1:
                    category = dice.choice(["conversation", "knowledge"])
                    await process.learn(subject, f"thing {number}", category)
                case 2:
                    clock.forward(dice.choice([DAY, 8 * DAY, 31 * DAY]))
                case _:
                    await process.member.look(_names(process))
                    await process.hygiene.run()
                    await process.hygiene.run()
                    assert await _due(process, clock.now) == []


def _names(process: Process) -> list[str]:
    cursors = [f"cursors/{name}" for name in process.cursors.documents.names()]
    return [*cursors, *(f"ledger/{one}.jsonl" for one, _ in process.memory.ledgers.by_age())]


async def _due(process: Process, now: int) -> list[str]:
    found = []
    for subject, _ in process.memory.ledgers.by_age():
        known = await process.cursors.get(f"hygiene-{subject}")
        size, due = process.memory.ledgers.log(subject).head().as_json(), known.get("due")
        if known.get("size") != size or (isinstance(due, int) and now > due):
            found.append(subject)
    return found


async def test_the_groups_of_a_person_are_found_whichever_process_learned_there(
    tmp_path: Path, prepared_database: str
) -> None:
    async with (
        Process(prepared_database, tmp_path / "a") as one,
        Process(prepared_database, tmp_path / "b") as other,
    ):
        await one.memory.change("group-70", "why", remember("We talk of tea."), **{PEOPLE: ["9100001"]})
        assert GroupIndex(other.disk).of("9100001") == {"group-70"}
        await other.memory.change("group-71", "why", remember("We talk of mate."), **{PEOPLE: ["9100001"]})
        assert GroupIndex(one.disk).of("9100001") == {"group-70", "group-71"}
        GroupIndex(one.disk).note("group-72", ["9100001"])
        assert GroupIndex(other.disk).of("9100001") == {"group-70", "group-71", "group-72"}


async def test_a_transaction_that_runs_for_long_hides_no_group_from_an_erasing(
    tmp_path: Path, prepared_database: str
) -> None:
    async with Process(prepared_database, tmp_path) as one:
        await one.memory.change("group-70", "why", remember("We talk of pies."), **{PEOPLE: ["9100002"]})
        GroupIndex(one.disk).of("9100001")
        with psycopg.connect(prepared_database) as slow:
            slow.execute("SELECT pg_current_xact_id()")  # it is older than what is learned now
            await one.memory.change("group-71", "why", remember("We talk of tea."), **{PEOPLE: ["9100001"]})
            assert GroupIndex(one.disk).of("9100001") == {"group-71"}
        assert GroupIndex(one.disk).of("9100001") == {"group-71"}
