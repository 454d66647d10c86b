"""The whole adapter with its embedded relay: erased events leave no byte behind, whenever it was killed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from discoclaw.core.errors import NostrError
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.config import EMBEDDED, NostrConfig, relay_folder
from discoclaw.nostr.event import SecretBox
from discoclaw.nostr.mirror import PURGE
from discoclaw.nostr.schemas import Codec
from tests.memory.kit import Clock, remember
from tests.nostr.mirror_kit import ANN, BOB, KEYS
from tests.servers.nostr_relay import LyingRelay

CANARY, COFFEE = "Kanarie-4711", "coffee-4712"


@asynccontextmanager
async def opened(folder: Path, relay: str = EMBEDDED) -> AsyncIterator[tuple[NostrAdapter, Memory]]:
    """An adapter that publishes preferences as plaintext, so that words can be searched for on disk."""
    clock = Clock()
    memory = Memory(folder / "memory", clock=clock)
    memory.open()
    outbox = folder / "memory" / "outbox" / "outbox.sqlite"
    codec = Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)
    config = NostrConfig(codec, (relay,), folder, outbox, flush_s=0.0)
    adapter = NostrAdapter(config, memory, clock=clock)
    memory.join(adapter.mirror)
    try:
        await adapter.open()
        await adapter.start()
        yield adapter, memory
    finally:
        await adapter.close()
        memory.close()


async def fill(adapter: NostrAdapter, memory: Memory) -> None:
    for subject, word in ((ANN, CANARY), (BOB, COFFEE)):
        await memory.change(subject, "why", remember(f"User prefers {word}.", "preference"))
    await adapter.flush(10)


async def erase(adapter: NostrAdapter, memory: Memory) -> None:
    """Erase Ann, with all that is done about it outside."""
    await memory.erase(ANN)
    await adapter.flush(10)
    assert memory.pending_erasures() == []


async def purged(adapter: NostrAdapter) -> None:
    """Wait for all that is done in the background, but for what never ends."""
    for task in [task for task in adapter._tasks if task.get_name() in ("nostr-purge", "nostr-mirror")]:
        await task


def words(folder: Path) -> set[str]:
    """Which of the words lie somewhere in the files of a folder."""
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {word for word in (CANARY, COFFEE) if word.encode() in content}


async def test_what_was_erased_leaves_the_embedded_relays_files(tmp_path: Path) -> None:
    async with opened(tmp_path) as (adapter, memory):
        await fill(adapter, memory)
        assert words(relay_folder(tmp_path)) == {CANARY, COFFEE}
        await erase(adapter, memory)
        await purged(adapter)
        assert adapter.outbox.meta(PURGE) == "0"
    assert words(tmp_path) == {COFFEE}


async def test_also_where_the_program_was_killed_before_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(self: NostrAdapter) -> None:
        raise NostrError("killed")

    async with opened(tmp_path) as (adapter, memory):
        await fill(adapter, memory)
        with monkeypatch.context() as patch:
            patch.setattr(NostrAdapter, "_purge", killed)
            await erase(adapter, memory)
        assert adapter.outbox.meta(PURGE) == "1"  # whether bytes are left now is the database's luck
    async with opened(tmp_path) as (adapter, _):
        await purged(adapter)
    assert words(tmp_path) == {COFFEE}


async def test_files_of_an_embedded_relay_that_is_used_no_more_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as (adapter, memory):
        await fill(adapter, memory)
    async with LyingRelay() as relay, opened(tmp_path, relay.url) as (adapter, memory):
        await erase(adapter, memory)
    assert f"{relay_folder(tmp_path)} belongs to an embedded relay that is not used any more" in caplog.text
