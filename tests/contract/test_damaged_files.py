"""Files of people that were damaged, emptied or replaced by a link: what is forgotten, and what is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.world import Start, World


def damaged(number: str) -> str:
    return f'{{"version": 1, "updatedAt": {number}, "items": []}}'


def asides(path: Path) -> list[str]:
    return [one.read_text() for one in path.parent.glob(f"{path.name}.*-*")]


async def lived(world: World) -> bytes:
    """Ann has two memories; returns what her file holds."""
    await world.remember(world.ann, "I use zsh", "I play the violin")
    return world.durable(world.ann).read_bytes()


async def knows(world: World, *words: str) -> bool:
    shown = await world.says(world.ann, world.general, "!memory show")
    return all(word in shown for word in words)


class TestTheFileOfAPerson:
    async def test_forgets_nothing_by_damage_and_what_they_emptied_they_can_take_back(
        self, start: Start
    ) -> None:
        async with start() as world:
            before, path = await lived(world), world.durable(world.ann)
            for number in ("NaN", "Infinity", "-1e999"):  # which makes it unreadable
                path.write_text(damaged(number))
                assert await knows(world, "zsh", "violin")
                assert path.read_bytes() == before and damaged(number) in asides(path)
            for content in ('{"version": 1, "items": []}', *map(damaged, ("null", "17", str(2**53 - 1)))):
                path.write_text(content)  # an empty list of no known time
                assert await knows(world, "zsh", "violin")
                assert path.read_bytes() == before
            for entry in (None, "", {}, {"id": None}, []):  # which lost its id
                file = json.loads(before)
                file["items"][0] = entry
                path.write_text(json.dumps(file))
                assert await knows(world, "zsh", "violin")
                assert json.dumps(file) in asides(path)
            path.write_text(json.dumps({**json.loads(path.read_bytes()), "items": []}))
            assert not await knows(world, "zsh")
            await world.says(world.ann, world.general, "!memory undo")
            assert await knows(world, "zsh", "violin")


class TestALink:
    async def test_in_place_of_the_file_of_a_person_is_not_followed(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start() as world:
            before = await lived(world)
            path, target = world.durable(world.ann), tmp_path / "somebodys.json"
            theirs = before.replace(b"zsh", b"fish")
            target.write_bytes(theirs)
            path.unlink()
            path.symlink_to(target)
            assert await knows(world, "zsh", "violin")
            await world.remember(world.ann, "I like tea")
            assert await knows(world, "zsh", "violin", "tea")
            assert path.is_symlink() and target.read_bytes() == theirs
            (told,) = [line for line in caplog.messages if "is a symbolic link" in line]
            assert str(path) in told and "put the file itself in its place" in told
            checked = world.cli("memory", "verify")
            assert checked.exit_code == 1 and f"{path.name} is left as it is: " in checked.stdout
            path.unlink()
            assert await knows(world, "zsh", "violin", "tea")
            assert not path.is_symlink() and b"tea" in path.read_bytes()

    @pytest.mark.parametrize(
        "found",
        [
            lambda world: world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl",
            lambda world: world.data / "memory" / "rolling" / f"discord:channel:{world.general.id}.json",
        ],
        ids=["ledger", "summary"],
    )
    async def test_in_place_of_history_or_summary_is_not_written_and_costs_no_answer(
        self, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, found: Callable[[Any], Path]
    ) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (tmp_path / "data").symlink_to(elsewhere)  # a folder may be one
        async with start() as world:
            await lived(world)
            for _ in range(2):
                await world.says(world.ann, world.general, "Let us plan the garden")
            path, target = found(world), tmp_path / "theirs"
            theirs = path.read_bytes()
            target.write_bytes(theirs)

            def link() -> None:
                path.unlink()
                path.symlink_to(target)

            await world.restart(meanwhile=link)
            await world.remember(world.ann, "I like tea")
            for _ in range(4):
                assert await world.says(world.ann, world.general, "Tomatoes first") == "ok"
            assert target.read_bytes() == theirs and path.is_symlink()
            assert f"{path} is a symbolic link" in caplog.text
