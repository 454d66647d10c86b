"""The adapter as a whole: that it is closed whatever happens meanwhile."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.config import NostrConfig, state_path
from discoclaw.nostr.event import SecretBox
from discoclaw.nostr.schemas import Codec
from tests.nostr.recovery_kit import ANN, KEYS, BotMemory
from tests.servers.nostr_relay import Lies, LyingRelay


async def test_it_is_closed_though_whoever_closes_it_gives_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with BotMemory(tmp_path / "data") as bot:
        async with LyingRelay() as relay:
            relay.lies = Lies(silent=True)
            codec = Codec(KEYS, SecretBox.of(KEYS))
            config = NostrConfig(codec, (relay.url,), tmp_path / "data", tmp_path / "outbox.sqlite")
            adapter = NostrAdapter(config, bot.memory, clock=bot.clock)
            await adapter.open()
            await adapter.start()
            await bot.change(ANN, "likes tea")
            await adapter.relays[0].ready(10)
            for _ in range(500):
                if state_path(config.data_dir).exists():
                    break
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(adapter.close())
            await asyncio.sleep(0.1)
            closing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await closing
            assert not adapter.relays[0].connected
            assert not state_path(config.data_dir).exists()
            with pytest.raises(MemoryFault):
                adapter.outbox.units()
            assert "was not accepted" not in caplog.text  # nobody is blamed for our end
