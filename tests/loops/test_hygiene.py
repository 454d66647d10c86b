"""What leaves a memory by itself: why, how often the dice fall, and how it comes back."""

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.decay import Decay
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.item import Facets, Item, Source
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Beside, Expired, Hygiene
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.off import NoLastUsed, NoMemory
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from tests.loops.tidying import ANN, BOB, CAT, Tidier, same
from tests.memory.kit import refusing
from tests.session.scene import Clock, until

DAY = 86_400_000
NO_DECAY = Decay()
DECAY = Decay(max_idle_days=30, survival_chance=0.0)
OF_THE_DAY = Facets(category="conversation")
HAND = Origin("stated")


class Dice:
    """Falls as it is told to, and counts."""

    def __init__(self, *falls: float) -> None:
        self.falls = list(falls)
        self.rolled = 0

    def __call__(self) -> float:
        self.rolled += 1
        return self.falls.pop(0) if self.falls else 0.5


@dataclass
class Home:
    """One running program over the files in `folder`; a second one over the same folder is a restart."""

    folder: Path
    rules: Decay = NO_DECAY
    dice: Callable[[], float] = field(default_factory=Dice)
    clock: Clock = field(default_factory=Clock)
    skip: Callable[[str], bool] = lambda user_id: False
    beside: Beside = field(default_factory=Beside)

    def __post_init__(self) -> None:
        self.cursors = Cursors(self.folder / "memory" / "cursors")
        self.memory = Memory(self.folder / "memory", clock=self.clock, cursors=self.cursors)
        self.access = LastUsed(self.memory, self.cursors, clock=self.clock)
        self.memory.join(self.access)
        self.hygiene = Hygiene(
            self.memory,
            self.access,
            self.cursors,
            clock=self.clock,
            rules=self.rules,
            roll=self.dice,
            beside=self.beside,
            consent=refusing(self.skip),
        )

    def restarted(self, **given: Any) -> "Home":
        now = {"rules": self.rules, "dice": self.dice, "clock": self.clock, "skip": self.skip}
        return Home(self.folder, **{**now, **given})

    async def remember(
        self,
        text: str,
        *,
        subject: str = ANN,
        author: Any = "inferred",
        kind: str = "fact",
        branch: str | None = None,
        **facets: Any,
    ) -> Item:
        origin = Origin(author, Source("discord", "7", "70"), said_at=self.clock())

        def wish(draft: Draft) -> Item:
            return draft.upsert(kind, text, origin, facets=Facets(**facets))[0]

        return await self.memory.change(subject, "a test", wish, branch=branch)

    def days_pass(self, days: float) -> None:
        self.clock.forward(int(days * DAY))

    async def texts(self, subject: str = ANN, branch: str | None = None) -> list[str]:
        return [item.text for item in (await self.memory.view(subject, branch)).active()]

    def commits(self, subject: str = ANN) -> tuple[Commit, ...]:
        loaded = read(self.memory.ledger_folder / f"{subject}.jsonl")
        assert not loaded.damage and not loaded.torn
        return loaded.commits


def said(commits: Iterable[Commit]) -> list[tuple[str, str, str]]:
    """Type, words and evidence of all events."""
    return [(event.event_type, event.object, event.evidence) for one in commits for event in one.events]


class TestThingsOfTheDay:
    async def test_they_leave_after_a_week_whatever_the_dice(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.remember("flies on Friday", category="conversation")
        await home.remember("likes tea")
        home.days_pass(6.9)
        assert await home.hygiene.run() == Expired()
        home.days_pass(0.2)
        assert await home.hygiene.run() == Expired(conversation=1)
        assert await home.texts() == ["likes tea"]
        assert home.dice.rolled == 0  # type: ignore[attr-defined]

    @pytest.mark.design(97)
    async def test_the_commit_and_its_event_say_why(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.remember("flies on Friday", category="conversation")
        home.days_pass(9)
        await home.hygiene.run()
        commit = home.commits()[-1]
        assert (commit.message, commit.metadata["by"]) == ("hygiene: 1 of the day left", "hygiene")
        assert said([commit]) == [("forget", "flies on Friday", "it was of the day, 9 days ago")]

    async def test_what_the_person_stated_stays(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.remember("flies on Friday", author="stated", category="conversation")
        home.days_pass(400)
        assert await home.hygiene.run() == Expired()

    async def test_what_was_said_again_stays_as_long_again(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        one = await home.remember("flies on Friday", category="conversation")
        home.days_pass(6)
        later = Origin("inferred", Source("discord", "7", "80"), said_at=home.clock())
        await home.memory.change(
            ANN, "a test", lambda d: d.upsert("fact", "flies on Saturday", later, given_id=one.id)
        )
        home.days_pass(6)
        assert await home.hygiene.run() == Expired()
        home.days_pass(1.1)
        assert await home.hygiene.run() == Expired(conversation=1)

    async def test_finding_one_does_not_keep_it(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        one = await home.remember("flies on Friday", category="conversation")
        home.days_pass(8)
        home.access.touch(ANN, [one.id])
        assert await home.hygiene.run() == Expired(conversation=1)


class TestIdleKnowledge:
    async def test_without_decay_nothing_is_ever_forgotten(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.remember("likes tea")
        home.days_pass(4000)
        assert await home.hygiene.run() == Expired()
        assert await home.texts() == ["likes tea"]

    async def test_with_decay_it_leaves_when_it_lay_idle(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        home.days_pass(41)
        assert await home.hygiene.run() == Expired(idle=1)
        commit = home.commits()[-1]
        assert commit.message == "hygiene: 1 idle for over 30 days left"
        assert said([commit]) == [("forget", "likes tea", "idle for 41 days")]

    @pytest.mark.parametrize(
        "given",
        [
            {"author": "stated"},
            {"category": "core"},
            {"kind": "preference"},
            {"kind": "constraint"},
        ],
    )
    async def test_never_what_is_stated_core_or_standing(self, tmp_path: Path, given: Any) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea", **given)
        home.days_pass(4000)
        assert await home.hygiene.run() == Expired()

    async def test_what_is_found_stays(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        one = await home.remember("likes tea")
        home.days_pass(20)
        home.access.touch(ANN, [one.id])
        home.days_pass(20)
        assert await home.hygiene.run() == Expired()
        home.days_pass(11)
        assert await home.hygiene.run() == Expired(idle=1)

    async def test_also_after_a_restart(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        one = await home.remember("likes tea")
        home.days_pass(20)
        home.access.touch(ANN, [one.id])
        await home.hygiene.close()
        home.days_pass(20)
        assert await home.restarted().hygiene.run() == Expired()

    async def test_links_to_what_left_go_with_it(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        one = await home.remember("likes tea")
        other = await home.remember("has a red cup", author="stated")
        await home.memory.change(ANN, "link", lambda d: d.link(one, other, HAND))
        home.days_pass(41)
        assert await home.hygiene.run() == Expired(idle=1)
        view = await home.memory.view(ANN)
        assert view.items[other.id].facets.links == frozenset()

    async def test_each_persona_has_a_commit_of_its_own(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        await verbs.create_branch(home.memory, ANN, "coding")
        await home.remember("uses vim", branch="coding")
        home.days_pass(41)
        assert await home.hygiene.run() == Expired(idle=3)
        ours = [one for one in home.commits() if one.metadata.get("by") == "hygiene"]
        assert {one.branch: len(one.events) for one in ours} == {"main": 1, "coding": 2}
        assert await home.texts(branch="coding") == []


class TestTheDiceFallOnce:
    RULES = Decay(max_idle_days=30, survival_chance=0.5)

    async def test_survivors_have_another_window(self, tmp_path: Path) -> None:
        dice = Dice(0.1)
        home = Home(tmp_path, self.RULES, dice)
        await home.remember("likes tea")
        home.days_pass(31)
        assert await home.hygiene.run() == Expired()
        home.days_pass(29)
        await home.hygiene.run()
        assert dice.rolled == 1
        home.days_pass(2)
        assert await home.hygiene.run() == Expired(idle=1)
        assert dice.rolled == 2

    async def test_that_one_survived_is_an_event(self, tmp_path: Path) -> None:
        home = Home(tmp_path, self.RULES, Dice(0.1))
        await home.remember("likes tea")
        home.days_pass(31)
        await home.hygiene.run()
        commit = home.commits()[-1]
        assert commit.message == "hygiene: 1 idle kept by chance"
        assert said([commit]) == [("observe", "likes tea", "idle for 31 days, kept by chance")]
        assert await home.texts() == ["likes tea"]

    async def test_killed_right_behind_the_commit_nobody_rolls_again(self, tmp_path: Path) -> None:
        home = Home(tmp_path, self.RULES, Dice(*[0.1, 0.9] * 5))
        for number in range(10):
            await home.remember(f"memory {number}")
        home.days_pass(31)
        await home.hygiene.run()
        kept = await home.texts()
        assert len(kept) == 5
        for path in home.cursors.folder.iterdir():
            path.unlink()  # all that was written behind the commit
        dice = Dice(*[0.9] * 10)
        again = home.restarted(dice=dice)
        assert await again.hygiene.run() == Expired()
        assert (await again.texts(), dice.rolled) == (kept, 0)

    async def test_killed_right_before_it_is_as_if_nothing_had_been(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        home.days_pass(31)
        ledger = home.memory.ledger_folder / f"{ANN}.jsonl"
        before = ledger.read_bytes()
        await home.hygiene.run()
        ledger.write_bytes(before + ledger.read_bytes()[len(before) :][:40])  # the commit's line is torn
        (home.folder / "memory" / "durable" / "1.json").unlink()
        again = home.restarted()
        assert await again.texts() == ["likes tea"]
        assert await again.hygiene.run() == Expired(idle=1)
        assert await again.texts() == []

    async def test_a_replay_gives_the_same_memory(self, tmp_path: Path) -> None:
        home = Home(tmp_path, self.RULES, random.Random(11).random)
        for number in range(20):
            await home.remember(f"memory {number}")
        for _ in range(3):
            home.days_pass(31)
            await home.hygiene.run()
        kept = await home.texts()
        assert 0 < len(kept) < 20
        again = home.restarted(dice=random.Random(99).random)
        assert await again.texts() == kept
        history = await again.memory.history(ANN)
        assert [item.text for item in history.shown().active()] == kept

    @pytest.mark.parametrize(("chance", "left"), [(0.0, 0), (1.0, 12)])
    async def test_the_ends_of_chance(self, tmp_path: Path, chance: float, left: int) -> None:
        rules = Decay(max_idle_days=30, survival_chance=chance)
        home = Home(tmp_path, rules, random.Random(3).random)
        for number in range(12):
            await home.remember(f"memory {number}")
        home.days_pass(31)
        await home.hygiene.run()
        assert len(await home.texts()) == left


class TestUndo:
    @pytest.mark.parametrize("category", ["knowledge", "conversation"])
    async def test_it_brings_items_back_as_they_were_and_they_stay(
        self, tmp_path: Path, category: str
    ) -> None:
        home = Home(tmp_path, DECAY)
        one = await home.remember("likes tea", category=category)
        other = await home.remember("has a red cup", author="stated")
        await home.memory.change(ANN, "link", lambda d: d.link(one, other, HAND))
        before = dict((await home.memory.view(ANN)).items)
        home.days_pass(41)
        await home.hygiene.run()
        assert await home.texts() == ["has a red cup"]
        await verbs.undo(home.memory, ANN, HAND)
        assert (await home.memory.view(ANN)).items == before
        assert await home.hygiene.run() == Expired()
        for path in home.cursors.folder.iterdir():
            path.unlink()
        again = home.restarted()
        again.days_pass(6)
        assert await again.hygiene.run() == Expired()
        again.days_pass(30)
        assert (await again.hygiene.run()) in (Expired(idle=1), Expired(conversation=1))


class TestRounds:
    async def test_who_is_not_due_is_not_read(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        home.days_pass(1)
        await home.hygiene.run()
        ledger = home.memory.ledger_folder / f"{ANN}.jsonl"
        again = home.restarted()
        content = ledger.read_bytes()
        ledger.write_bytes(b"x" * len(content))  # whoever reads it now stumbles
        assert await again.hygiene.run() == Expired()
        ledger.write_bytes(content)
        again.days_pass(30)
        assert await again.hygiene.run() == Expired(idle=1)

    async def test_other_rules_are_another_look(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        await home.remember("likes tea")
        home.days_pass(41)
        assert await home.hygiene.run() == Expired()
        assert await home.restarted(rules=DECAY).hygiene.run() == Expired(idle=1)

    async def test_one_that_fails_does_not_stop_the_others(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = Home(tmp_path, DECAY)
        for subject in (ANN, BOB, CAT):
            await home.remember("likes tea", subject=subject)
        (home.memory.ledger_folder / f"{BOB}.jsonl").unlink()
        (home.memory.ledger_folder / f"{BOB}.jsonl").mkdir()
        home.days_pass(41)
        assert await home.restarted().hygiene.run() == Expired(idle=2)
        assert f"{BOB} is not looked after" in caplog.text

    async def test_whoever_opted_out_is_left_alone(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY, skip=lambda user_id: user_id == "1")
        await home.remember("likes tea")
        await home.remember("likes tea", subject=BOB)
        home.days_pass(41)
        assert await home.hygiene.run() == Expired(idle=1)
        assert await home.texts() == ["likes tea"]

    async def test_what_was_erased_meanwhile_leaves_nothing_behind(self, tmp_path: Path) -> None:
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        home.days_pass(41)
        await home.hygiene.run()
        await home.memory.erase(ANN)
        await home.hygiene.run()
        assert [path.name for path in home.cursors.folder.iterdir() if ANN in path.name] == []

    async def test_the_archive_is_purged_too_and_may_fail(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        answers: list[Any] = [3, MemoryFault("a full disk")]

        async def purge(now_ms: int) -> int:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return int(answer)

        home = Home(tmp_path, beside=Beside(purge))
        await home.remember("flies on Friday", category="conversation")
        assert await home.hygiene.run() == Expired(entries=3)
        home.days_pass(9)
        assert await home.hygiene.run() == Expired(conversation=1)
        assert "a full disk" in caplog.text

    async def test_without_a_memory_the_archive_alone_is(self, tmp_path: Path) -> None:
        async def purge(now_ms: int) -> int:
            return now_ms

        hygiene = Hygiene(
            NoMemory(),
            NoLastUsed(),
            Cursors(tmp_path),
            clock=Clock(),
            rules=DECAY,
            roll=Dice(),
            beside=Beside(purge),
        )
        assert await hygiene.run(7) == Expired(entries=7)
        await hygiene.close()

    async def test_it_counts_what_left(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        home = Home(tmp_path, DECAY)
        await home.remember("likes tea")
        await home.remember("flies on Friday", category="conversation")
        home.days_pass(41)
        assert await home.hygiene.run() == Expired(conversation=1, idle=1)
        assert "hygiene: 0 entries, 1 things of the day and 1 idle items left" in caplog.text


class TestACompaction:
    async def test_it_is_followed_by_one_round(self, tmp_path: Path) -> None:
        rounds: list[int] = []

        async def purge(now_ms: int) -> int:
            rounds.append(now_ms)
            return 0

        home = Home(tmp_path, beside=Beside(purge))
        for _ in range(5):
            home.hygiene.compacted(ANN)
        await until(lambda: bool(rounds))
        await asyncio.sleep(0.01)
        home.hygiene.compacted(ANN)
        await asyncio.sleep(0.01)
        assert len(rounds) == 1
        home.clock.forward(61_000)
        home.hygiene.compacted(ANN)
        await until(lambda: len(rounds) == 2)
        await home.hygiene.close()
        home.clock.forward(61_000)
        home.hygiene.compacted(ANN)
        await asyncio.sleep(0.01)
        assert len(rounds) == 2


class TestTheHeartbeat:
    def heartbeat(self, home: Home, model: Tidier, minutes: float, first: Any = None) -> Heartbeat:
        return Heartbeat(
            Consolidator(model, home.memory, clock=home.clock),
            home.memory,
            home.cursors,
            clock=home.clock,
            every_minutes=minutes,
            first=first or home.hygiene.run,
        )

    async def test_what_is_over_leaves_before_the_rest_is_tidied(self, tmp_path: Path) -> None:
        home, model = Home(tmp_path), Tidier()
        await home.remember("flies on Friday", category="conversation")
        keep, drop = await home.remember("likes tea"), await home.remember("likes teas")
        model.answers = [same(keep, drop)]
        home.days_pass(9)
        await self.heartbeat(home, model, 30).round()
        assert "Friday" not in model.prompts[0]
        assert await home.texts() == ["likes tea"]

    async def test_it_needs_no_model(self, tmp_path: Path) -> None:
        home, model = Home(tmp_path), Tidier()
        await home.remember("flies on Friday", category="conversation")
        await home.remember("likes tea")
        await home.remember("likes teas")
        home.days_pass(9)
        await self.heartbeat(home, model, 0).round()
        assert (len(await home.texts()), model.prompts) == (2, [])

    async def test_a_failure_of_it_does_not_stop_the_tidying(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        home, model = Home(tmp_path), Tidier()
        await home.remember("likes tea")
        await home.remember("likes teas")

        async def broken() -> None:
            raise RuntimeError("broken")

        await self.heartbeat(home, model, 30, broken).round()
        assert len(model.prompts) == 1
        assert "RuntimeError: broken" in caplog.text
