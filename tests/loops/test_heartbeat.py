"""The heartbeat: what is tidied when, what is never repeated, and what cannot stop it."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.errors import (
    MemoryFault,
    ModelBadOutput,
    ModelError,
    ModelOverloaded,
    ModelTimeout,
    Refused,
)
from discoclaw.core.patch import Consolidation
from discoclaw.loops import heartbeat
from discoclaw.memory.subjects import verbs
from tests.loops.tidying import ANN, BOB, CAT, Home, same
from tests.session.scene import until

OFTEN = 0.0001
"""Minutes between rounds for the tests that start the task."""


def shown(home: Home) -> list[str]:
    """About whom (and which persona) the model was asked, in order."""
    names = []
    for prompt in home.model.prompts:
        newest = next(line for line in prompt.splitlines() if line.startswith("- "))
        names.append(newest.partition(") ")[2].partition(" likes")[0])
    return names


class TestWhatIsTidied:
    async def test_whoever_changed_and_each_once(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        for subject in (BOB, ANN):
            await home.fill(subject)
        await home.heartbeat.beat()
        assert shown(home) == [BOB, ANN]  # what changed longest ago comes first
        await home.heartbeat.beat()
        assert shown(home) == [BOB, ANN]
        await home.remember("user-1 likes mate.")
        await home.heartbeat.beat()
        assert shown(home) == [BOB, ANN, ANN]

    async def test_its_own_commit_starts_no_other_run(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        await home.remember("user-1 likes mate.")
        home.model.answers = [same(keep, drop)]
        await home.heartbeat.beat()
        assert home.commits()[-1].metadata["by"] == "heartbeat"
        for _ in range(3):
            await home.heartbeat.beat()
        assert len(home.model.prompts) == 1

    async def test_a_restart_repeats_nothing_and_finds_what_changed(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        await home.fill(BOB)
        home.model.answers = [same(keep, drop)]
        await home.heartbeat.beat()
        again = home.restarted()
        await again.remember("user-2 likes mate.", subject=BOB)
        await again.restarted().heartbeat.beat()
        assert shown(home) == [ANN, BOB, BOB]

    async def test_what_is_said_during_a_run_is_looked_at_in_the_next_round(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        home.model.gate = asyncio.Event()
        home.model.answers = [same(keep, drop)]
        beat = asyncio.create_task(home.heartbeat.beat())
        await until(lambda: bool(home.model.prompts))
        await home.remember("user-1 likes mate.")
        home.model.gate.set()
        await beat
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 2 and "mate" in home.model.prompts[1]
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 2

    async def test_whoever_opted_out_is_left_alone_until_they_opt_in(self, tmp_path: Path) -> None:
        out = {"1"}
        home = Home(tmp_path, skip=lambda user_id: user_id in out)
        await home.fill(ANN)
        await home.fill(BOB)
        await home.heartbeat.beat()
        assert shown(home) == [BOB]
        out.clear()
        await home.heartbeat.beat()
        assert shown(home) == [BOB, ANN]

    async def test_personas_that_changed_are_tidied_the_current_one_first(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        await verbs.create_branch(home.memory, ANN, "coding")
        keep, drop = await home.fill(branch="coding")
        await verbs.create_branch(home.memory, ANN, "cooking")  # it says what main says: nothing new
        await verbs.switch(home.memory, ANN, "coding")
        home.model.answers = [same(keep, drop)]
        await home.heartbeat.beat()
        assert shown(home) == ["user-1 coding", "user-1"]
        assert keep.text in await home.texts(branch="coding")
        assert drop.text not in await home.texts(branch="coding")
        await home.fill(branch="cooking")
        await home.heartbeat.beat()
        assert shown(home)[2:] == ["user-1 cooking"]

    async def test_a_persona_that_was_deleted_is_forgotten(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        await verbs.create_branch(home.memory, ANN, "coding")
        await home.fill(branch="coding")
        await home.heartbeat.beat()
        await verbs.delete_branch(home.memory, ANN, "coding")
        await home.heartbeat.beat()
        assert (await home.cursors.get("tidied-user-1"))["heads"].keys() == {"main"}  # type: ignore[attr-defined]

    async def test_a_round_has_a_bound_and_the_next_goes_on(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        people = [f"user-{number}" for number in range(heartbeat.MOST_IN_A_ROUND + 2)]
        for person in people:
            await home.fill(person)
        await home.heartbeat.beat()
        assert shown(home) == people[: heartbeat.MOST_IN_A_ROUND]
        await home.heartbeat.beat()
        assert shown(home) == people

    async def test_a_cursor_of_nonsense_is_no_cursor(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        await home.cursors.put("tidied-user-1", {"size": "x", "heads": [1]})
        await home.heartbeat.beat()
        assert shown(home) == [ANN]

    async def test_of_a_memory_that_is_erased_meanwhile_nothing_is_kept(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        home.model.gate = asyncio.Event()
        home.model.answers = [same(keep, drop)]
        beat = asyncio.create_task(home.heartbeat.beat())
        await until(lambda: bool(home.model.prompts))
        await home.memory.erase(ANN)
        home.model.gate.set()
        await beat
        assert [path for path in (tmp_path / "memory").rglob("*user-1*") if path.is_file()] == []
        assert await home.texts() == []


class TestFailures:
    @pytest.mark.parametrize("error", [ModelOverloaded("down"), ModelTimeout("late")])
    async def test_a_dead_model_ends_the_round_and_the_next_goes_on(
        self, tmp_path: Path, error: ModelError
    ) -> None:
        home = Home(tmp_path)
        for subject in (ANN, BOB, CAT):
            await home.fill(subject)
        home.model.answers = [Consolidation(), error]
        await home.heartbeat.beat()
        assert shown(home) == [ANN, BOB]
        await home.heartbeat.beat()
        assert shown(home) == [ANN, BOB, BOB, CAT]

    async def test_a_dead_model_is_asked_once_a_round_at_most(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        for subject in (ANN, BOB, CAT):
            await home.fill(subject)
        home.model.always = ModelOverloaded("down")
        for number in range(1, 40):
            await home.heartbeat.beat()
            assert len(home.model.prompts) <= number

    async def test_one_that_is_too_slow_for_the_model_does_not_stop_the_others(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        for subject in (ANN, BOB):
            await home.fill(subject)
        home.model.always = lambda prompt: ModelTimeout("late") if ANN in prompt else Consolidation()
        for _ in range(3):
            await home.heartbeat.beat()
        assert BOB in shown(home)

    @pytest.mark.parametrize(
        "error", [ModelBadOutput("prose"), MemoryFault("disk"), Refused("gone"), RuntimeError("a bug")]
    )
    async def test_a_subject_that_fails_waits_longer_each_time_while_others_go_on(
        self, tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = Home(tmp_path)
        await home.fill(ANN)
        await home.fill(BOB)
        home.model.always = lambda prompt: error if ANN in prompt else Consolidation()
        tried = []
        with caplog.at_level(logging.WARNING):
            for number in range(16):
                home.model.prompts.clear()
                await home.heartbeat.beat()
                if ANN in shown(home):
                    tried.append(number)
                assert (BOB in shown(home)) == (number == 0)
        assert tried == [0, 1, 3, 7, 15]
        assert [record.exc_info is not None for record in caplog.records] == [
            isinstance(error, RuntimeError)
        ] * 5

    async def test_a_subject_that_works_again_is_tidied(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        home.model.answers = [ModelBadOutput("prose"), same(keep, drop)]
        await home.heartbeat.beat()
        await home.heartbeat.beat()
        assert await home.texts() == [keep.text]

    async def test_a_damaged_ledger_and_a_strange_file_do_not_stop_the_others(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill(ANN)
        await home.fill(BOB)
        ledger = home.memory.ledger_folder / f"{ANN}.jsonl"
        ledger.write_bytes(b"nonsense\n" + ledger.read_bytes())
        (home.memory.ledger_folder / "a copy.jsonl").write_bytes(b"")
        again = home.restarted()
        again.model.answers = [same(keep, drop), Consolidation()]
        before = ledger.read_bytes()
        await again.heartbeat.beat()
        assert set(shown(home)) == {ANN, BOB} and ledger.read_bytes() == before

    async def test_no_folder_is_no_work(self, tmp_path: Path) -> None:
        await Home(tmp_path / "nowhere").heartbeat.beat()


class TestOnDemand:
    async def test_it_tidies_at_once_and_says_who_asked(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        home.model.answers = [same(keep, drop)]
        report = await home.heartbeat.now(ANN, by="command", message="55")
        assert report.summary == "1 duplicate merged"
        assert {**home.commits()[-1].metadata, "consolidated": 0} == {
            "by": "command",
            "message": "55",
            "consolidated": 0,
        }

    async def test_the_next_round_does_not_repeat_it(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        await home.heartbeat.now(ANN)
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 1

    async def test_it_is_done_again_when_asked_again(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        for _ in range(2):
            await home.heartbeat.now(ANN)
        assert len(home.model.prompts) == 2

    @pytest.mark.parametrize("error", [ModelOverloaded("down"), ModelBadOutput("prose")])
    async def test_failures_are_told_to_whoever_asked(self, tmp_path: Path, error: ModelError) -> None:
        home = Home(tmp_path)
        await home.fill()
        home.model.answers = [error]
        with pytest.raises(type(error)):
            await home.heartbeat.now(ANN)
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 2

    async def test_an_unknown_persona_is_refused(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.fill()
        with pytest.raises(Refused):
            await home.heartbeat.now(ANN, "cooking")

    async def test_one_subject_is_never_tidied_twice_at_once(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        keep, drop = await home.fill()
        home.model.gate = asyncio.Event()
        home.model.answers = [same(keep, drop)] * 3
        beat = asyncio.create_task(home.heartbeat.beat())
        await until(lambda: bool(home.model.prompts))
        asked = [asyncio.create_task(home.heartbeat.now(ANN)) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert home.model.at_once == 1
        home.model.gate.set()
        await asyncio.gather(beat, *asked)
        assert home.model.most_at_once == 1
        assert sum("consolidated" in commit.metadata for commit in home.commits()) == 1

    async def test_two_subjects_are_when_somebody_asks(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        for subject in (ANN, BOB):
            await home.fill(subject)
        home.model.gate = asyncio.Event()
        asked = [asyncio.create_task(home.heartbeat.now(subject)) for subject in (ANN, BOB)]
        await until(lambda: home.model.at_once == 2)
        home.model.gate.set()
        await asyncio.gather(*asked)


class TestTheTask:
    async def test_it_beats_until_it_is_closed(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=OFTEN)
        keep, drop = await home.fill()
        home.model.always = lambda prompt: same(keep, drop)
        await home.heartbeat.start()
        await home.heartbeat.start()
        await until(lambda: any("consolidated" in commit.metadata for commit in home.commits()))
        await home.heartbeat.close()
        asked = len(home.model.prompts)
        await home.remember("user-1 likes mate.")
        await home.heartbeat.beat()  # also a round that somebody starts ends at once
        assert len(home.model.prompts) == asked

    async def test_zero_minutes_are_never(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=0)
        before = asyncio.all_tasks()
        await home.heartbeat.start()
        assert asyncio.all_tasks() == before
        await home.heartbeat.close()

    async def test_it_survives_whatever_a_round_does(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        looks = []

        def broken(user_id: str) -> bool:
            looks.append(user_id)
            raise RuntimeError("a bug")

        home = Home(tmp_path, every_minutes=OFTEN, skip=broken)
        await home.fill()
        await home.heartbeat.start()
        await until(lambda: len(looks) >= 2)
        await home.heartbeat.close()
        assert all(record.exc_info for record in caplog.records if record.levelno >= logging.ERROR)

    async def test_closing_lets_the_subject_at_work_finish_and_no_other_begin(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=OFTEN)
        keep, drop = await home.fill(ANN)
        await home.fill(BOB)
        home.model.gate = asyncio.Event()
        home.model.answers = [same(keep, drop)]
        await home.heartbeat.start()
        await until(lambda: bool(home.model.prompts))
        closing = asyncio.create_task(home.heartbeat.close(grace_s=5))
        await asyncio.sleep(0)
        home.model.gate.set()
        await closing
        assert shown(home) == [ANN] and await home.texts() == [keep.text]

    async def test_closing_does_not_wait_for_a_model_that_hangs(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=OFTEN)
        await home.fill()
        home.model.gate = asyncio.Event()
        await home.heartbeat.start()
        await until(lambda: bool(home.model.prompts))
        await home.heartbeat.close(grace_s=0.01)
        again = home.restarted()
        again.model.gate = None
        await again.heartbeat.beat()
        assert len(home.model.prompts) == 2  # it was not finished, so it is done again

    async def test_closing_ends_what_somebody_asked_for_too(self, tmp_path: Path) -> None:
        """Else it would write when the folder is given back already."""
        home = Home(tmp_path, every_minutes=0)
        keep, drop = await home.fill()
        home.model.gate = asyncio.Event()
        home.model.always = lambda prompt: same(keep, drop)
        asked = asyncio.create_task(home.heartbeat.now(ANN))
        await until(lambda: bool(home.model.prompts))
        await home.heartbeat.close(grace_s=0.01)
        home.model.gate.set()
        await asyncio.wait([asked])
        assert await home.texts() == [keep.text, drop.text]
        with pytest.raises(Refused, match="about to stop"):
            await home.heartbeat.now(ANN)

    async def test_a_bot_that_starts_often_still_beats(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=30)
        await home.fill()
        await home.heartbeat.start()
        await until(lambda: (tmp_path / "memory" / "cursors" / "heartbeat.json").exists())
        await home.heartbeat.close()
        assert home.model.prompts == []  # nothing at the very first start
        home.clock.forward(31 * 60_000)
        again = home.restarted()
        await again.heartbeat.start()
        await until(lambda: bool(home.model.prompts))
        await again.heartbeat.close()

    async def test_a_clock_that_was_set_back_costs_one_pause_at_most(self, tmp_path: Path) -> None:
        home = Home(tmp_path, every_minutes=OFTEN)
        await home.fill()
        await home.cursors.put("heartbeat", {"at": home.clock() + 10**12})
        await home.heartbeat.start()
        await until(lambda: bool(home.model.prompts))
        await home.heartbeat.close()


async def test_an_undone_consolidation_is_not_done_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    keep, drop = await home.fill()
    home.model.always = lambda prompt: same(keep, drop)
    await home.heartbeat.beat()
    await verbs.undo(home.memory, ANN, Origin("stated"))
    before: Any = home.commits()
    for _ in range(2):
        await home.heartbeat.beat()
    assert home.commits() == before and await home.texts() == [keep.text, drop.text]
