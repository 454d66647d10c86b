"""Durable files that were damaged, emptied or replaced by a link: what is forgotten, and what is not."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.cli.shell import Shell

DAMAGED = (
    '{"version": 1, "updatedAt": NaN, "items": []}',
    '{"version": 1, "updatedAt": Infinity, "items": []}',
    '{"version": 1, "updatedAt": 1e999, "items": []}',
    '{"version": 1, "updatedAt": -1e999, "items": []}',
)
UNKNOWN = (
    '{"version": 1, "items": []}',
    '{"version": 1, "updatedAt": null, "items": []}',
    '{"version": 1, "updatedAt": 17, "items": []}',
    '{"version": 1, "updatedAt": 9007199254740991, "items": []}',
)


async def lived(world: World) -> None:
    await world.ann.send(world.general, "!memory remember I use zsh")
    await world.ann.send(world.general, "!memory remember I play the violin")
    await world.settle()


async def knows(world: World, *words: str) -> bool:
    await world.ann.send(world.general, "!memory show")
    return all(word in world.answer(world.general) for word in words)


def asides(path: Path, label: str) -> list[str]:
    return [one.read_text() for one in path.parent.glob(f"{path.name}.{label}-*")]


class TestDamageForgetsNothing:
    @pytest.mark.parametrize("content", DAMAGED)
    async def test_a_number_that_is_none_makes_a_file_unreadable(self, start: Start, content: str) -> None:
        async with start() as world:
            await lived(world)
            path = world.durable(world.ann)
            before = path.read_bytes()
            path.write_text(content)
            assert await knows(world, "zsh", "violin")
            assert path.read_bytes() == before
            assert asides(path, "corrupt") == [content]

    @pytest.mark.parametrize("content", UNKNOWN)
    async def test_nor_does_an_empty_list_of_no_known_time(self, start: Start, content: str) -> None:
        async with start() as world:
            await lived(world)
            path = world.durable(world.ann)
            before = path.read_bytes()
            path.write_text(content)
            assert await knows(world, "zsh", "violin")
            assert path.read_bytes() == before

    @pytest.mark.parametrize("entry", [None, "", 0, {}, {"id": None}, []])
    async def test_nor_does_an_entry_that_lost_its_id(self, start: Start, entry: Any) -> None:
        async with start() as world:
            await lived(world)
            path = world.durable(world.ann)
            file = json.loads(path.read_bytes())
            file["items"][0] = entry
            path.write_text(json.dumps(file))
            assert await knows(world, "zsh", "violin")
            assert asides(path, "rejected") == [json.dumps(file)]


class TestAPersonWhoEmptiesTheirFile:
    async def test_is_believed_and_can_take_it_back(self, start: Start) -> None:
        async with start() as world:
            await lived(world)
            path = world.durable(world.ann)
            file = json.loads(path.read_bytes())
            path.write_text(json.dumps({**file, "items": []}))
            await world.ann.send(world.general, "!memory show")
            assert "zsh" not in world.answer(world.general)
            await world.ann.send(world.general, "!memory undo")
            assert await knows(world, "zsh", "violin")


class TestALinkIsNotFollowed:
    async def test_in_place_of_a_durable_file(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start() as world:
            await lived(world)
            path, target = world.durable(world.ann), tmp_path / "somebodys.json"
            before = path.read_bytes()
            target.write_bytes(before.replace(b"zsh", b"fish"))
            theirs = target.read_bytes()
            path.unlink()
            path.symlink_to(target)
            assert await knows(world, "zsh", "violin")
            await world.ann.send(world.general, "!memory remember I like tea")
            assert await knows(world, "zsh", "violin", "tea")
            assert path.is_symlink()
            assert target.read_bytes() == theirs
            told = [line for line in caplog.messages if "is a symbolic link" in line]
            assert len(told) == 1
            assert str(path) in told[0] and "put the file itself in its place" in told[0]
            path.unlink()
            assert await knows(world, "zsh", "violin", "tea")
            assert not path.is_symlink()
            assert b"tea" in path.read_bytes()

    async def test_in_place_of_a_ledger(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start() as world:
            await lived(world)
            ledger = world.folder / "data" / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            target = tmp_path / "somebodys.jsonl"
            target.write_bytes(ledger.read_bytes())
            theirs = target.read_bytes()

            def link() -> None:
                ledger.unlink()
                ledger.symlink_to(target)

            await world.restart(meanwhile=link)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send(world.general, "hello")
            assert world.shown(world.general)[-1] != "hello"
            assert target.read_bytes() == theirs
            assert ledger.is_symlink()
            assert f"{ledger} is a symbolic link" in caplog.text

    async def test_in_place_of_a_summary(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        async with start() as world:
            for _ in range(2):
                await world.ann.send(world.general, "Let us plan the garden")
            await world.settle()
            rolling = world.folder / "data" / "memory" / "rolling"
            path, target = rolling / f"discord:channel:{world.general.id}.json", tmp_path / "theirs.json"
            target.write_bytes(path.read_bytes())
            theirs = target.read_bytes()

            def link() -> None:
                path.unlink()
                path.symlink_to(target)

            await world.restart(meanwhile=link)
            for _ in range(4):
                await world.ann.send(world.general, "Tomatoes first")
                await world.settle()
            assert world.shown(world.general)[-1] != "Tomatoes first"
            assert target.read_bytes() == theirs
            assert path.is_symlink()
            assert f"{path} is a symbolic link" in caplog.text

    async def test_verify_names_it(self, start: Start, tmp_path: Path) -> None:
        async with start() as world:
            await lived(world)
            path, target = world.durable(world.ann), tmp_path / "somebodys.json"
        path.rename(target)
        path.symlink_to(target)
        shell = Shell(world.folder)
        result = shell.run("verify")
        assert result.exit_code == 1
        assert f"{path.name} is left as it is: " in result.stdout
        assert "put the file itself in its place" in result.stdout

    async def test_a_folder_may_be_one(self, start: Start, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (tmp_path / "data").symlink_to(elsewhere)
        async with start() as world:
            await lived(world)
            await world.restart()
            assert await knows(world, "zsh", "violin")
            assert (elsewhere / "memory" / "durable" / f"{world.ann.id}.json").exists()
