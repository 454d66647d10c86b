"""Killed with SIGKILL at any moment, again and again: what was acknowledged is there, and all verifies."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.event import Commit, Record
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.stores import Disks, Store
from discoclaw.memory.subjects import inspect
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, Clock, Doomed, check_picture, lines_of

pytestmark = pytest.mark.every_store
Fresh = Callable[[], Disks]

ROUNDS = 8
COMMITS = 1000


class TestAKilledProcessTookNothingAcknowledgedWithIt:
    async def test_after_every_kill(self, root: Path, store: Store, fresh: Fresh) -> None:
        dice = random.Random(7)
        acknowledged: set[str] = set()
        with Doomed("commit_for_ever", store, root) as doomed:
            for _ in range(ROUNDS):
                acknowledged |= set(doomed.live_for(dice.uniform(0, 0.1)))
                await self.check(root, fresh, acknowledged)
        assert len(acknowledged) >= ROUNDS

    async def check(self, root: Path, fresh: Fresh, acknowledged: set[str]) -> None:
        """A fresh start finds every acknowledged item, a sound ledger and, after one look, its picture."""
        damage = [fault for fault in inspect.held(fresh().used, ANN).faults if ", line " in fault]
        assert damage == []
        memory = Memory(fresh(), clock=Clock(), max_items=100_000)
        memory.open()
        view = await memory.view(ANN)
        memory.close()
        assert acknowledged <= set(view.items)
        await check_picture(memory)
        assert len(view.items) == view.commits  # each commit added one: none is lost or there twice
        looked = inspect.held(fresh().used, ANN)
        assert [fault for fault in looked.faults if "unfinished" not in fault] == []


class TestAThousandCommitsOnBranches:
    """Commits, forks, moves of HEAD and merges of a few people, cut short at any moment."""

    PEOPLE = 10

    @pytest.mark.design(274)
    async def test_what_was_acknowledged_is_there_and_nothing_by_half(
        self, root: Path, store: Store, fresh: Fresh
    ) -> None:
        dice = random.Random(11)
        commits: dict[str, int] = {}
        kinds: set[str] = set()
        with Doomed("live_for_ever", store, root, str(self.PEOPLE)) as doomed:
            while sum(commits.values()) < COMMITS // (1 if store == "files" else 2):
                subject, *said = doomed.live_for(dice.uniform(0, 0.01), words=dice.randint(1, 100))
                records = await self.check(root, fresh, subject, said)
                commits[subject] = sum(isinstance(one, Commit) for one in records)
                kinds |= {kind_of(one) for one in records}
        assert kinds == {"commit", "merge", "create", "switch", "delete"}

    async def check(self, root: Path, fresh: Fresh, subject: str, said: list[Any]) -> tuple[Record, ...]:
        """What a kill left of a ledger is sound, all that was said is in it, and the next start agrees."""
        memory = Memory(fresh(), clock=Clock(), max_items=20)
        loaded = read(lines_of(memory, subject))
        assert loaded.damage == ()
        history = loaded.history
        assert {one for *_, made in said for one in made} <= history.commits.keys()
        for last_ms, current, heads, _ in said[-1:]:
            then = history.until(last_ms).branches
            assert (then.last_ms, then.current) == (last_ms, current)
            assert {name: branch.head for name, branch in then.all.items()} == heads
            # Behind the last word lies one act at most.
            behind = [one for one in history.records if ms_of_iso(one.timestamp) > last_ms]
            assert [kind_of(one) for one in behind] in BEHIND
        memory.open()
        assert await memory.view(subject) == history.shown()
        assert await memory.branches(subject) == history.branches
        if history.records:  # else it was killed before it did anything
            await check_picture(memory, subject)
        memory.close()
        looked = inspect.held(fresh().used, subject)
        assert [fault for fault in looked.faults if "unfinished" not in fault] == []
        return history.records


BEHIND: list[list[str]] = [
    [],
    ["commit"],
    ["merge"],
    ["create"],
    ["switch"],
    ["delete"],
    ["create", "commit"],
]


def kind_of(record: Record) -> str:
    """What a record is about."""
    if isinstance(record, Commit):
        return "merge" if "merged" in record.metadata else "commit"
    return record.action
