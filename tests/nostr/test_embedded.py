"""The embedded relay: that it keeps what it was given, forgets to the byte, and refuses in plain words."""

import asyncio
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

import nostr_sdk
import pytest

from discoclaw.core.errors import NostrError, RelayRefused, SettingsError
from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from tests.nostr.relay_kit import ME, NOW_S, connected, event, events, ids

MINE = [Filter(authors=(ME.public,))]


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def fill(folder: Path, events: Iterable[Event]) -> None:
    """Put events into a new database, without a relay, which would take a commit for each."""
    (folder / "events-1").mkdir(parents=True)
    nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    database = await nostr_sdk.NostrLmdb.open(str(folder / "events-1"))
    await asyncio.gather(*(database.save_event(nostr_sdk.Event.from_json(one.encode())) for one in events))
    (folder / "events-1" / "complete").touch()


async def held(relay: Relay) -> set[str]:
    fetched = await relay.fetch(MINE)
    assert fetched.complete, fetched.reason
    return ids(fetched.events)


async def test_it_keeps_events_over_a_restart_on_any_free_port(tmp_path: Path) -> None:
    sent = events(3)
    embedded = EmbeddedRelay(tmp_path / "relay")
    for started in range(2):
        await embedded.start()
        assert embedded.url.startswith("ws://127.0.0.1:")
        async with connected(embedded.url) as relay:
            if not started:
                for one in sent:
                    await relay.publish(one)
            assert await held(relay) == ids(sent)
        await embedded.stop()


async def test_more_events_than_it_gives_at_once_all_come_back(tmp_path: Path) -> None:
    """It gives 500. Of more in one second the rest comes only by id; without that the answer is not whole."""
    crowd, others = events(510, step=0), events(20, at=NOW_S - 60)
    await fill(tmp_path / "relay", [*crowd, *others])
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    async with connected(embedded.url) as relay:
        fetched = await relay.fetch(MINE)
        assert not fetched.complete and "500 events of one second" in fetched.reason
        assert ids(others) < ids(fetched.events) and fetched.count == 520
        fetched = await relay.fetch([Filter(ids=tuple(one.id for one in [*crowd, *others]))])
        assert fetched.complete and ids(fetched.events) == ids([*crowd, *others])
    await embedded.stop()


async def test_what_it_forgets_leaves_no_byte_and_all_else_stays(tmp_path: Path) -> None:
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    url = embedded.url
    replaced, kept = event("k", content="canary-replaced", at=NOW_S - 9), event("k", content="kept")
    gone, deleted = event("g", content="canary-gone"), event("h:i", content="canary-deleted")
    async with connected(url) as relay:
        for one in (replaced, kept, gone, deleted):
            await relay.publish(one)
        deletion = ME.sign(5, "", [["e", deleted.id], ["k", "30078"]], NOW_S + 1)
        await relay.publish(deletion)
        assert b"canary-" in bytes_below(tmp_path)

        await embedded.purge([gone.id])

        assert embedded.url == url
        await relay.ready(10)
        assert await held(relay) == {kept.id, deletion.id}
    await embedded.stop()
    assert b"canary-" not in bytes_below(tmp_path)
    assert b"kept" in bytes_below(tmp_path)
    assert len(list((tmp_path / "relay").iterdir())) == 1


async def test_many_events_of_one_second_survive_a_forgetting(tmp_path: Path) -> None:
    sent = [*events(230, step=0), *events(10, at=NOW_S - 60)]
    await fill(tmp_path / "relay", sent)
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    async with connected(embedded.url) as relay:
        await embedded.purge([sent[0].id])
        await relay.ready(10)
        assert await held(relay) == ids(sent[1:])
    await embedded.stop()


async def test_a_connection_that_is_being_opened_is_cut_by_a_forgetting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The library doesn't tell such a connection that it shuts down, and serves it from the old database."""
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(embedded.url.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\n")
    await writer.drain()
    await embedded.purge([])
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    assert "did not close" not in caplog.text
    writer.close()
    await embedded.stop()


async def test_a_copying_that_was_killed_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "relay"
    embedded = EmbeddedRelay(folder)
    await embedded.start()
    sent = events(3)
    async with connected(embedded.url) as relay:
        for one in sent:
            await relay.publish(one)
    await embedded.stop()
    shutil.copytree(folder / "events-1", folder / "events-2", ignore=lambda *_: ["complete"])

    await embedded.start()
    assert not (folder / "events-2").exists()
    async with connected(embedded.url) as relay:
        assert await held(relay) == ids(sent)
    await embedded.stop()


async def test_a_copying_that_was_killed_at_its_end_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "relay"
    embedded = EmbeddedRelay(folder)
    await embedded.start()
    await embedded.stop()
    shutil.copytree(folder / "events-1", folder / "events-2")
    await embedded.start()
    await embedded.stop()
    assert [path.name for path in folder.iterdir()] == ["events-2"]


async def test_a_taken_port_is_said_so(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(SettingsError, match="listen on port"):
            await EmbeddedRelay(tmp_path / "relay", other.getsockname()[1]).start()


@pytest.mark.parametrize("cut", [8_192, 20_000])
async def test_a_database_that_was_cut_short_is_refused_and_kills_nobody(tmp_path: Path, cut: int) -> None:
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    async with connected(embedded.url) as relay:
        for one in events(40):
            await relay.publish(one)
    await embedded.stop()
    file = tmp_path / "relay" / "events-1" / "data.mdb"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SettingsError, match="move it away"):
        await embedded.start()
    with pytest.raises(NostrError, match="does not run"):
        await embedded.purge(["0" * 64])


async def test_a_folder_that_can_not_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "relay").write_text("a file")
    with pytest.raises(SettingsError, match="cannot use the relay's folder"):
        await EmbeddedRelay(tmp_path / "relay").start()
    (tmp_path / "other" / "events-1").mkdir(parents=True)
    (tmp_path / "other" / "events-1" / "complete").touch()
    (tmp_path / "other" / "events-1" / "data.mdb").write_bytes(b"garbage" * 1_000)
    with pytest.raises(SettingsError, match="cannot use the relay's folder"):
        await EmbeddedRelay(tmp_path / "other").start()


async def test_what_is_relied_on_of_the_library(tmp_path: Path) -> None:
    """Deletions by address are ignored, if it holds a colon; an older version is refused as "error"."""
    embedded = EmbeddedRelay(tmp_path / "relay")
    await embedded.start()
    async with connected(embedded.url) as relay:
        mine = event("a:b")
        await relay.publish(mine)
        await relay.publish(mine)
        await relay.publish(ME.sign(5, "", [["a", f"30078:{ME.public}:a:b"], ["k", "30078"]], NOW_S + 1))
        assert mine.id in await held(relay)
        with pytest.raises(RelayRefused) as refused:
            await relay.publish(event("a:b", at=NOW_S - 1))
        assert refused.value.prefix == "error"
        await relay.publish(ME.sign(5, "", [["e", mine.id], ["k", "30078"]], NOW_S + 2))
        assert mine.id not in await held(relay)
    await embedded.stop()
