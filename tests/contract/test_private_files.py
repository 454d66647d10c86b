"""Whatever the bot or the command line writes, only the user of the machine who runs it can read."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.brain import sum_up
from tests.contract.world import Start, World


@pytest.fixture
def umask() -> Iterator[None]:
    """A new file of any program lacks no permission."""
    before = os.umask(0o000)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def readable_by_others(*folders: Path) -> list[str]:
    """The files and folders, these included, on which somebody else has any permission."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return sorted(f"{path} {mode(path):o}" for path in paths if mode(path) & 0o077)


def opened_to_all(*folders: Path) -> None:
    """The permissions that earlier versions gave."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


async def live(world: World) -> None:
    world.brain.writes("summary", sum_up)
    world.brain.calls("memory_store", {"text": "User uses fish."}, "Done.", about="please")
    for words in ("I use zsh", "please", "!memory remember I use zsh", "!memory reset rolling", "Go on"):
        await world.says(world.ann, world.general, words)


@pytest.mark.usefixtures("umask")
async def test_what_is_written_and_exported_is_for_its_owner_alone(start: Start) -> None:
    on = {"auto_save": "all", "response_cache": True, "nostr_relays": ("embedded",), "summary_every": 1}
    async with start(**on) as world:
        await live(world)
        assert (world.data / "nostr" / "key").exists()
        assert list(world.data.glob("nostr/relay/events-*/data.mdb"))
        assert list(world.data.rglob("*.sqlite-wal"))
        assert readable_by_others(world.data) == []
        out, person = world.folder / "exported", str(world.ann.id)
        for words in (
            ("memory", "export", person, "--output", str(out / "one.json")),
            ("memory", "export", person, "--format", "objects", "--output", str(out / "objects")),
            ("memory", "export", "--all", "--output", str(out / "all")),
            ("config", "set", "global", "respond_mode=mention"),
        ):
            assert world.cli(*words).exit_code == 0
        assert readable_by_others(world.data, out) == []


class TestWhatEarlierVersionsWrote:
    async def test_is_closed_at_the_next_start_and_the_log_says_so_once(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        somebodys = tmp_path / "somebodys"
        somebodys.write_text("theirs")
        somebodys.chmod(0o644)
        async with start(response_cache=True, summary_every=1) as world:
            await live(world)
            ours = [world.data / "memory", world.data / "cache"]
            (world.data / "README.md").write_text("an admin's")

            def earlier() -> None:
                opened_to_all(world.data)
                (world.data / "memory" / "durable" / "link.json").symlink_to(somebodys)

            await world.restart(meanwhile=earlier)
            await world.stop()  # a running one writes files
            (world.data / "memory" / "durable" / "link.json").unlink()
            assert readable_by_others(*ours) == []
            assert (mode(world.data / "README.md"), mode(world.data), mode(somebodys)) == (
                0o644,
                0o755,
                0o644,
            )
            await world.restart()
            (told,) = [line for line in caplog.messages if "from now on" in line]
            assert told.startswith("only the bot's user can read ")

    async def test_is_closed_in_folders_that_an_admin_placed_and_these_stay(
        self, start: Start, tmp_path: Path
    ) -> None:
        durable, rolling = tmp_path / "placed" / "durable", tmp_path / "placed" / "rolling"
        for folder in (durable, rolling):
            folder.mkdir(parents=True)
        async with start(durable_dir=durable, summary_dir=rolling, summary_every=1) as world:
            await live(world)
            for _ in range(2):
                files = [*durable.iterdir(), *rolling.iterdir()]
                assert len(files) == 2 and {mode(path) for path in files} == {0o600}
                await world.restart(meanwhile=lambda: opened_to_all(durable, rolling))
                assert (mode(durable), mode(rolling)) == (0o755, 0o755)
