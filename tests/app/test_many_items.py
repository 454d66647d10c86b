"""Somebody of whom thousands of things are remembered talks to the whole bot: it finds the one meant."""

import asyncio
from pathlib import Path

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.memory.leftovers import traces

MANY = 2_100


async def fill(world: World) -> None:
    """Let Ann have many memories, two of which are told apart by a rare word, one of them private."""
    texts = [f"Likes tea of sort number{number}." for number in range(MANY)]

    def wish(draft: Draft) -> None:
        draft.upsert("fact", "Keeps a zebra in the barn.", Origin("stated"))
        draft.upsert("fact", "Owes money for the zebra.", Origin("stated"), marked="private")
        for text in texts:
            draft.upsert("fact", text, Origin("stated"))

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)


def files(world: World) -> list[Path]:
    return list((world.folder / "data" / "cache" / "items").glob("*"))


class TestManyItems:
    async def test_the_right_one_of_thousands_reaches_the_model(self, start: Start) -> None:
        model = Scripted()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:
            await fill(world)
            await world.ann.send(world.general, "how is my zebra?")
            await world.settle()  # the index may have been late for the first one
            await world.ann.send(world.general, "and the zebra in the barn?")
            await world.settle()
            assert "Keeps a zebra in the barn." in model.prompt
            assert "tea of sort" not in model.prompt
            assert "Owes money" not in model.prompt
            assert [path.suffix for path in files(world)] == [".sqlite"]

            await world.ann.send_dm("what of the money for the zebra?")
            await world.settle()
            assert "Owes money for the zebra." in model.prompt

            await world.ann.send(world.general, "!memory remember I have a giraffe called Gerda")
            await world.ann.send(world.general, "how is the giraffe?")
            await world.settle()
            assert "giraffe called Gerda" in model.prompt

            await world.restart()
            await world.ann.send(world.general, "is the zebra well?")
            await world.settle()
            await world.ann.send(world.general, "is my zebra well?")
            await world.settle()
            assert "Keeps a zebra in the barn." in model.prompt

    async def test_nothing_of_them_is_left_when_they_are_erased_in_the_middle_of_it(
        self, start: Start
    ) -> None:
        model = Scripted()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:
            await fill(world)
            model.hold = asyncio.Event()
            sending = asyncio.create_task(world.ann.send(world.general, "how is my zebra?"))
            await model.asked.wait()  # the index is made, or in the making
            asked_at = int(world.env.now().timestamp() * 1000)
            erased = await world.memory.erase(user_subject(str(world.ann.id)), asked_at=asked_at)
            model.hold.set()
            await sending
            await world.settle()
            assert erased.left == ()
            assert files(world) == []
            assert traces(world.folder / "data", "barn") == []
