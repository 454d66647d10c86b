"""Whatever the bot or the command line writes, only the user of the machine who runs it can read."""

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from discoclaw.cli.main import cli
from discoclaw.memory.stores import Store
from tests.app.conftest import Start, World
from tests.app.test_personal_data import Answering, everything, story
from tests.cli.shell import Runner
from tests.servers.embeddings_api import EmbeddingsServer


@pytest.fixture
async def embeddings() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={}) as server:
        yield server


@pytest.fixture
def umask(mask: int) -> Iterator[None]:
    """What a new file of any program lacks."""
    before = os.umask(mask)
    yield
    os.umask(before)


def readable_by_others(*folders: Path) -> list[str]:
    """The files and folders, these included, on which somebody else has any permission."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return sorted(f"{path} {stat.S_IMODE(path.stat().st_mode):o}" for path in paths if mode(path) & 0o077)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def opened_to_all(*folders: Path) -> None:
    """The permissions that earlier versions gave."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


async def remember_something(world: World) -> None:
    await world.ann.send(world.general, "!memory remember I use zsh")
    await world.settle()


class TestOnlyTheOwnerReads:
    @pytest.mark.usefixtures("umask")
    @pytest.mark.parametrize(("store", "mask"), [("files", 0o022), ("sqlite", 0o000)])
    async def test_what_a_whole_life_leaves_and_what_is_exported(
        self, start: Start, store: Store, embeddings: EmbeddingsServer
    ) -> None:
        async with start(Answering()) as world:
            on = everything(
                world.folder,
                store=store,
                memory_channel=str(world.dev.id),
                embedding_url=embeddings.openai_url,
                nostr_relays=("embedded",),
                nostr_key=None,
            )
            await world.restart(Answering(), **{**on, "nostr_relays": ()})
            await story(world)
            await world.restart(Answering(), **on)  # now all of it is published, too
            await world.settle()
            data = world.folder / "data"
            assert (data / "nostr" / "key").exists()
            assert list(data.glob("nostr/relay/events-*/data.mdb"))
            assert list(data.rglob("*.sqlite-wal")) and list(data.rglob("*.sqlite-shm"))
            assert readable_by_others(data) == []
        out, person = world.folder / "exported", str(world.ann.id)
        for words in (
            ("memory", "export", person, "--output", str(out / "one.json")),
            ("memory", "export", person, "--format", "objects", "--output", str(out / "objects")),
            ("memory", "export", "--all", "--output", str(out / "all")),
            ("config", "set", "global", "respond_mode=mention"),
        ):
            environment = {"DISCOCLAW_DATA_DIR": str(data), "DISCOCLAW_STORE": store}
            result = await asyncio.to_thread(Runner().invoke, cli, words, env=environment)
            assert result.exit_code == 0, result.output
        assert readable_by_others(data, out) == []


class TestWhatEarlierVersionsWrote:
    @pytest.mark.parametrize("store", ["files", "sqlite"])
    async def test_is_closed_at_the_next_start_and_the_log_says_so_once(
        self, start: Start, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with start(store=store, response_cache=True) as world:
            await remember_something(world)
            await world.ann.send(world.general, "Hello")
            data = world.folder / "data"
            ours = [data / "memory", data / "cache"]
            await world.restart(meanwhile=lambda: opened_to_all(*ours))
            still_open = list[str]()  # looked for once the bot ended, as a running one writes files
            await world.restart(meanwhile=lambda: still_open.extend(readable_by_others(*ours)))
            assert still_open == []
            told = [line for line in caplog.messages if "from now on" in line]
            assert len(told) == 1
            assert told[0].startswith("only the bot's user can read ")

    async def test_what_an_admin_keeps_in_the_data_folder_keeps_its_mode(self, start: Start) -> None:
        async with start() as world:
            await remember_something(world)
            data = world.folder / "data"
            (data / "README.md").write_text("ours")

            def open_all() -> None:
                opened_to_all(data)

            await world.restart(meanwhile=open_all)
            assert mode(data / "README.md") == 0o644
            assert mode(data) == 0o755
            assert mode(data / "memory") == 0o700

    async def test_files_in_folders_that_an_admin_placed_are_closed_and_the_folders_stay(
        self, start: Start, tmp_path: Path
    ) -> None:
        durable, rolling = tmp_path / "placed" / "durable", tmp_path / "placed" / "rolling"
        for folder in (durable, rolling):
            folder.mkdir(parents=True)
        async with start(durable_dir=durable, summary_dir=rolling) as world:
            await world.ann.send(world.general, "I prefer tabs over spaces")
            await world.ann.send(world.general, "Go on")
            await remember_something(world)
            for _ in range(2):
                files = [*durable.iterdir(), *rolling.iterdir()]
                assert len(files) == 2
                assert {mode(path) for path in files} == {0o600}
                await world.restart(meanwhile=lambda: opened_to_all(durable, rolling))
                assert (mode(durable), mode(rolling)) == (0o755, 0o755)

    async def test_a_link_in_the_folder_is_not_followed(self, start: Start, tmp_path: Path) -> None:
        somebody = tmp_path / "somebodys"
        somebody.write_text("theirs")
        somebody.chmod(0o644)
        async with start() as world:
            await remember_something(world)
            memory = world.folder / "data" / "memory"

            def open_all() -> None:
                opened_to_all(memory)
                (memory / "durable" / "link.json").symlink_to(somebody)

            await world.restart(meanwhile=open_all)
            assert mode(memory / "durable") == 0o700
        assert mode(somebody) == 0o644

    async def test_a_file_system_that_refuses_stops_no_start(
        self, start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with start() as world:
            await remember_something(world)
            memory = world.folder / "data" / "memory"

            def refuse(*_: object, **__: object) -> None:
                raise OSError(1, "Operation not permitted")

            def mount() -> None:
                opened_to_all(memory)
                monkeypatch.setattr(os, "chmod", refuse)

            await world.restart(meanwhile=mount)
            monkeypatch.undo()
            (told,) = [line for line in caplog.messages if "other users of this machine" in line]
            assert "Operation not permitted" in told
            await world.ann.send(world.general, "Do I use zsh or bash?")
            assert "zsh" in world.answer(world.general)
