"""Killed with SIGKILL at any moment, again and again: what was acknowledged is there, and all verifies."""

import random
from pathlib import Path

from discoclaw.memory import inspect
from discoclaw.memory.durable_file import render
from discoclaw.memory.store import Memory
from tests.memory.kit import ANN, Clock, Doomed, durable_of

ROUNDS = 15


class TestAKilledProcessTookNothingAcknowledgedWithIt:
    async def test_after_every_kill(self, root: Path) -> None:
        dice = random.Random(7)
        acknowledged: set[str] = set()
        with Doomed("commit_for_ever", root) as doomed:
            for _ in range(ROUNDS):
                acknowledged |= set(doomed.live_for(dice.uniform(0, 0.2)))
                await self.check(root, acknowledged)
        assert len(acknowledged) >= ROUNDS

    async def check(self, root: Path, acknowledged: set[str]) -> None:
        """A fresh start finds every acknowledged item, a sound ledger and, after one look, its picture."""
        damage = [fault for fault in inspect.held(root, ANN).faults if ", line " in fault]
        assert damage == []
        memory = Memory(root, clock=Clock(), max_items=100_000)
        memory.open()
        view = await memory.view(ANN)
        memory.close()
        assert acknowledged <= set(view.items)
        assert durable_of(memory).read_bytes() == render(view)
        assert len(view.items) == view.commits  # each commit added one: none is lost or there twice
        assert [fault for fault in inspect.held(root, ANN).faults if "unfinished" not in fault] == []
