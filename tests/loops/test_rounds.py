"""Rounds look at few and miss nobody: after each, a scan of everybody finds nobody to be looked at."""

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.decay import Decay
from discoclaw.loops import hygiene
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.port import Ledgers, Mark
from discoclaw.memory.subjects.round import Rounds
from tests.loops import tidying
from tests.loops.test_hygiene import DAY, Dice, Home

PEOPLE = [f"user-{number}" for number in range(1, 6)]
RULES = Decay(max_idle_days=30, survival_chance=0.3)


async def due(home: Home) -> list[str]:
    """Everybody whom a round should look at: who changed since it was last checked, or in whom something is
    due. The memory's own rule, asked about everybody.
    """
    found, now = [], home.clock()
    for subject, size in home.memory.ledgers.by_age():
        known = await home.cursors.get(f"hygiene-{subject}")
        when = known.get("due")
        late = isinstance(when, int) and now > when
        if known.get("size") != size or known.get("rules") != str(home.rules) or late:
            found.append(subject)
    return found


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("of the day"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("known"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("erase"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("use"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("days"), st.sampled_from(["0.01", "1", "6.99", "8", "31"])),
        st.tuples(st.just("round"), st.just("")),
        st.tuples(st.just("restart"), st.just("")),
        st.tuples(st.just("other rules"), st.just("")),
        st.tuples(st.just("lose"), st.sampled_from(["hygiene", "hygiene-mark", "hours"])),
    ),
    max_size=30,
)


class TestNobodyIsMissed:
    @given(STEPS)
    def test_by_hygiene_whatever_happens_between_two_rounds(self, steps: list[tuple[str, str]]) -> None:
        async def work() -> None:
            with TemporaryDirectory() as folder:
                home = Home(Path(folder), rules=RULES, dice=Dice())
                for number, (what, about) in enumerate(steps):
                    home = await _step(home, number, what, about)
                for days in (0, 8, 40):
                    home.days_pass(days)
                    await home.hygiene.run()
                    # What was removed in the round is looked at once more, as its commit is a change too.
                    await home.hygiene.run()
                    assert await due(home) == []

        asyncio.run(work())


async def _step(home: Home, number: int, what: str, about: str) -> Home:
    match what:
        case "of the day":
            await home.remember(f"thing {number}", subject=about, category="conversation")
        case "known":
            await home.remember(f"thing {number}", subject=about, category="knowledge")
        case "erase":
            await home.memory.erase(about)
        case "use":
            home.access.touch(about, list((await home.memory.view(about)).items))
        case "days":
            home.days_pass(float(about))
        case "round":
            await home.hygiene.run()
            assert not {one for one in await due(home) if not _changed_by_the_round(home, one)}
        case "restart":
            await home.hygiene.close()
            home = home.restarted()
        case "other rules":
            await home.hygiene.close()
            home = home.restarted(rules=replace(home.rules, max_idle_days=home.rules.max_idle_days + 1))
        case "lose":
            names = [one for one in home.cursors.documents.names() if "due-h" in one]
            await home.cursors.remove([one[:-5] for one in names] if about == "hours" else [about])
    return home


def _changed_by_the_round(home: Home, subject: str) -> bool:
    return home.commits(subject)[-1].metadata.get("by") == "hygiene"


class TestFewAreLookedAt:
    @pytest.fixture
    def looked_at(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The subjects whose ledger's length a round asked for."""
        found: list[str] = []
        original = Rounds.head

        async def head(rounds: Rounds, subject: str) -> object:
            found.append(subject)
            return await original(rounds, subject)

        monkeypatch.setattr(Rounds, "head", head)
        return found

    async def test_by_hygiene_only_who_changed_or_in_whom_something_is_due(
        self, tmp_path: Path, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hygiene, "MOST_IN_A_ROUND", 1_000)
        home = Home(tmp_path)
        for number in range(300):
            await home.remember("likes tea", subject=f"user-{number}")
        await home.remember("flies on Friday", subject="user-7", category="conversation")
        await home.hygiene.run()
        assert len(looked_at) == 300
        looked_at.clear()
        await home.remember("likes mate", subject="user-5")
        home.clock.forward(8 * DAY)
        await home.restarted().hygiene.run()
        assert sorted(looked_at) == ["user-5", "user-7"]
        looked_at.clear()
        await home.restarted().hygiene.run()
        assert looked_at == ["user-7"]  # because of the commit of the last round
        looked_at.clear()
        await home.restarted().hygiene.run()
        assert looked_at == []

    async def test_by_the_heartbeat_only_who_changed(self, tmp_path: Path, looked_at: list[str]) -> None:
        home = tidying.Home(tmp_path)
        for number in range(60):
            await home.fill(f"user-{number}")
        await home.heartbeat.beat()
        assert len(looked_at) == 60
        looked_at.clear()
        await home.remember("user-5 likes mate.", subject="user-5")
        await home.restarted().heartbeat.beat()
        assert looked_at == ["user-5"]


class TestACursorOfARound:
    async def test_has_nothing_of_somebody_who_is_erased_while_it_is_made(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        for subject in PEOPLE:
            await home.remember("likes tea", subject=subject)
        cursors, rounds = home.cursors, None

        class Slow:
            """Ledgers in which somebody is erased while they are asked what changed."""

            def since(self, mark: Mark) -> tuple[list[str], Mark]:
                found = home.memory.ledgers.since(mark)
                asyncio.run_coroutine_threadsafe(home.memory.erase("user-3"), loop).result()
                return found

            def log(self, subject: str) -> object:
                return home.memory.ledgers.log(subject)

        loop = asyncio.get_running_loop()
        slow: Ledgers = Slow()  # type: ignore[assignment]
        rounds = Rounds("work", slow, cursors)
        await rounds.begin()
        assert b"user-3" not in b"".join(map(cursors.documents.read, cursors.documents.names()))
        again = Rounds("work", home.memory.ledgers, Cursors(cursors.documents))
        assert await again.begin() == [one for one in PEOPLE if one != "user-3"]
