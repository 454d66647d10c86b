"""The door as a whole: that it is closed whatever happens meanwhile."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.nostr.adapter import NostrAdapter, NostrConfig
from discoclaw.nostr.folder import state_path
from tests.nostr.lives import ANN, KEYS, Life
from tests.servers.nostr_lies import Lies
from tests.servers.nostr_relay import LyingRelay


async def test_it_is_closed_though_whoever_closes_it_gives_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Life(tmp_path / "data") as life:
        async with LyingRelay() as relay:
            relay.lies = Lies(silent=True)
            wish = NostrConfig(KEYS, (relay.url,), tmp_path / "data", tmp_path / "outbox.sqlite")
            door = NostrAdapter(wish, life.memory, clock=life.clock)
            await door.open()
            await door.start()
            await life.change(ANN, "likes tea")
            await door.relays[0].ready(10)
            for _ in range(500):
                if state_path(wish.data_dir).exists():
                    break
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(door.close())
            await asyncio.sleep(0.1)
            closing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await closing
            assert not door.relays[0].connected
            assert not state_path(wish.data_dir).exists()
            with pytest.raises(MemoryFault):
                door.outbox.units()
            assert "was not taken" not in caplog.text  # nobody is blamed for our end
