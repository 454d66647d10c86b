"""The live configuration of processes that share a store: a change in one of them applies in all."""

import asyncio
import json
from pathlib import Path

import pytest

from discoclaw.core.live import GLOBAL, parse_scope
from discoclaw.memory.live import FILE, LOCK, SIGNED, change_file
from discoclaw.store.files import in_thread
from tests.memory.kit import NOW
from tests.memory.processes import Process, Shared

ANNS, BOBS = "npub:123456789012345678", "npub:223456789012345678"


class TestTheLocalFile:
    async def test_applies_in_all_once_they_have_looked(self, three: list[Process], tmp_path: Path) -> None:
        here, there, _ = three
        await here.storage.live.write(GLOBAL, {"context_history": 7}, tmp_path / LOCK)
        assert here.storage.live.policy().context_history == 7
        await there.look(FILE)
        assert there.storage.live.policy().context_history == 7
        assert not (tmp_path / LOCK).exists()

    async def test_keeps_what_several_change_at_once(self, three: list[Process], tmp_path: Path) -> None:
        scopes = [f"user:{100_000_000_000_000_000 + number}" for number in range(30)]

        async def change(scope: str, process: Process) -> None:
            await process.storage.live.write(parse_scope(scope), {"context_history": 5}, tmp_path / LOCK)

        await asyncio.gather(*(change(scope, three[n % 3]) for n, scope in enumerate(scopes)))
        assert set(json.loads(three[0].memory.disk.documents("").read(FILE))) == {"version", *scopes}

    async def test_that_the_terminal_changed_is_heard_too(self, three: list[Process]) -> None:
        terminal = three[2].memory.disk.documents("")
        await in_thread(change_file, terminal, GLOBAL, {"respond_mode": "silent"}, None)
        for process in three[:2]:
            await process.hear()
            assert process.storage.live.local(GLOBAL) == {"respond_mode": "none"}

    async def test_is_not_asked_for_while_nobody_says_that_it_changed(
        self, three: list[Process], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        live = three[0].storage.live
        await live.look()
        read: list[str] = []
        monkeypatch.setattr(live, "_load_local", lambda: read.append("once more") or False)
        monkeypatch.setattr("discoclaw.memory.live.LOOK_EVERY_S", 0.0)
        await live.look()
        assert read == []


class TestWhatTheOwnerSigned:
    async def test_in_two_processes_is_kept_of_both(self, three: list[Process]) -> None:
        here, there, _ = three
        now_s = NOW // 1000
        assert here.storage.live.take(f"snowclaw:config:{ANNS}", now_s, "a" * 64, {"respond_mode": "all"})
        assert there.storage.live.take(f"snowclaw:config:{BOBS}", now_s, "b" * 64, {"respond_mode": "none"})
        assert await here.storage.live.save()
        assert await there.storage.live.save()
        assert len(json.loads(here.memory.disk.documents("").read(SIGNED))["events"]) == 2
        await here.hear()
        assert not here.storage.live.fresh(f"snowclaw:config:{BOBS}", now_s, "b" * 64)

    async def test_last_wins_whoever_writes_last(self, three: list[Process]) -> None:
        here, there, _ = three
        now_s, address = NOW // 1000, f"snowclaw:config:{ANNS}"
        here.storage.live.take(address, now_s, "a" * 64, {"respond_mode": "all"})
        there.storage.live.take(address, now_s - 5, "b" * 64, {"respond_mode": "none"})
        assert await here.storage.live.save()
        assert await there.storage.live.save()
        (event,) = json.loads(here.memory.disk.documents("").read(SIGNED))["events"].values()
        assert event["id"] == "a" * 64
        await there.hear()
        assert not there.storage.live.fresh(address, now_s - 1, "c" * 64)


class TestWhoChangedASetting:
    async def test_is_known_in_all_and_erased_in_all(self, shared: Shared, three: list[Process]) -> None:
        here, there, _ = three
        records = [process.storage.people.changed_by for process in (here, there)]
        await in_thread(records[0].note, GLOBAL, "context_history", 7, "123", NOW)
        await in_thread(records[1].note, GLOBAL, "respond_mode", "all", "456", NOW)
        await here.hear()
        await there.hear()
        for one in records:
            assert one.of(GLOBAL, "context_history", 7) is not None
            assert one.of(GLOBAL, "respond_mode", "all") is not None
        await there.memory.erase("user-123")
        await here.hear()
        for one in records:
            assert one.of(GLOBAL, "context_history", 7) is None
            assert one.of(GLOBAL, "respond_mode", "all") is not None
        assert b'"123"' not in shared.dump()
