"""The loops in several processes that share a store: each piece of work once, and nothing of it lost."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.decay import Decay
from discoclaw.core.subject import user_subject
from tests.citing import own_of
from tests.loops.processes import Process
from tests.loops.tidying import Tidier
from tests.memory.kit import remember
from tests.memory.together import Together
from tests.session.scene import ANN, DEV, GENERAL, ME, Clock, said, until

DAY = 86_400_000
SUBJECT = user_subject(ANN.id)


@pytest.fixture
def store() -> Together:
    return Together()


class TestExtraction:
    async def test_what_one_process_still_has_to_learn_from_is_not_forgotten_by_the_other(
        self, tmp_path: Path, store: Together
    ) -> None:
        name, key = f"facts-{ANN.id}", GENERAL.session_key(ANN.id)
        other = Process(store, tmp_path)
        await other.cursors.put(name, {key: "9", "left": {key: ["3"]}})
        other.hear(said(20, ANN), place=DEV)
        other.loops.force(ANN.id)
        await other.loops.settle()
        one = Process(store, tmp_path)
        await one.cursors.update(name, lambda known: {**known, "left": {}})  # it learned from that meanwhile
        await other.member.hear()
        other.hear(said(21, ANN), place=DEV)
        other.loops.force(ANN.id)
        await other.loops.settle()
        known = await other.cursors.get(name)
        assert known == {key: "9", DEV.session_key(ANN.id): "21"}

    async def test_a_conversation_that_is_taken_over_goes_on_where_the_other_process_was(
        self, tmp_path: Path, store: Together
    ) -> None:
        one, other = Process(store, tmp_path), Process(store, tmp_path)
        other.hear(said(5, ANN), place=DEV)
        other.loops.force(ANN.id)
        await other.loops.settle()
        await one.member.hear()
        one.hear(said(6, ANN, "known already"))
        one.loops.force(ANN.id)
        await one.loops.settle()
        await one.member.kill()
        await other.member.hear()
        talk = [said(6, ANN, "known already"), said(7, ANN, "new")]
        answered = [said(8, ME, to_id=ANN.id)]
        await other.loops.catch_up([*talk, *answered], GENERAL, GENERAL.session_key(ANN.id), window=20)
        other.loops.force(ANN.id)
        await other.loops.settle()
        assert list(own_of(other.model.extractions[-1]).values()) == ["new"]


class TestFollowers:
    async def test_one_process_hears_of_what_the_others_change(self, tmp_path: Path, store: Together) -> None:
        one, other = Process(store, tmp_path), Process(store, tmp_path)
        shown: list[str] = []
        follower = await one.following(shown)
        await other.memory.change("user-7", "why", remember("likes tea"))
        await one.member.hear()
        await follower.settle()
        assert shown == ["user-7"]

    async def test_the_next_one_goes_on_where_a_killed_one_was(self, tmp_path: Path, store: Together) -> None:
        one, other = Process(store, tmp_path), Process(store, tmp_path)
        for number in range(20):
            await one.memory.change(f"user-{number}", "why", remember("likes tea"))
        shown: list[str] = []
        follower = await one.following(shown)
        await follower.settle()
        assert len(shown) == 20
        await one.member.kill()
        await other.memory.change("user-7", "why", remember("likes mate"))
        shown.clear()
        after = await other.following(shown)
        await after.settle()
        assert shown == ["user-7"]

    async def test_one_that_is_not_started_leaves_what_changes_to_the_one_that_is(
        self, tmp_path: Path, store: Together
    ) -> None:
        other, shown = Process(store, tmp_path), list[str]()
        follower = other.follower(shown)
        await other.memory.change("user-7", "why", remember("likes tea"))
        await follower.catch_up()
        await follower.settle()
        assert shown == []
        assert await other.cursors.get("follow-board") == {}


class TestRounds:
    async def test_one_process_tidies_and_the_others_only_write_when_things_were_used(
        self, tmp_path: Path, store: Together
    ) -> None:
        clock, model = Clock(), Tidier()
        one, other = (Process(store, tmp_path, model, clock, every_minutes=0.0005) for _ in range(2))
        await one.memory.change("user-7", "why", remember("likes tea"))
        await one.memory.change("user-7", "why", remember("likes teas"))
        model.gate = asyncio.Event()
        await one.heartbeat.start()
        await until(lambda: bool(model.prompts))
        other.access.touch("user-7", await _ids(other))
        await other.heartbeat.start()
        await until(lambda: "cursors/access-user-7.json" in store.documents)
        assert len(model.prompts) == 1
        model.gate.set()
        await one.heartbeat.close()
        await other.heartbeat.close()
        assert len(model.prompts) == 1

    async def test_another_process_goes_on_with_what_a_killed_one_left(
        self, tmp_path: Path, store: Together
    ) -> None:
        clock, rules = Clock(), Decay()
        one, other = (Process(store, tmp_path, clock=clock, rules=rules) for _ in range(2))
        for number in range(5):
            await one.learn(f"user-{number}", "flies on Friday")
        await one.hygiene.run()
        await one.member.kill()
        clock.forward(8 * DAY)
        await other.member.hear()
        assert (await other.hygiene.run()).conversation == 5


async def _ids(process: Process) -> list[str]:
    return list((await process.memory.view("user-7")).items)
