"""Somebody of whom thousands of things are remembered talks to the whole bot: it finds the one meant."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Item
from discoclaw.core.subject import user_subject
from discoclaw.recall.document import Document, of_item
from discoclaw.session.item_search import AT_ONCE
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_model_tools import call
from tests.memory.leftovers import traces
from tests.session.scene import ScriptedModel

MANY = 2_100
FEW = 490
"""Of fewer memories than 500 no terms are kept."""


async def fill(world: World, many: int = MANY) -> None:
    """Let Ann have many memories, two of which are told apart by a rare word, one of them private."""
    texts = [f"Likes tea of sort number{number}." for number in range(many)]

    def wish(draft: Draft) -> None:
        draft.upsert("fact", "Keeps a zebra in the barn.", Origin("stated"))
        draft.upsert("fact", "Owes money for the zebra.", Origin("stated"), marked="private")
        for text in texts:
            draft.upsert("fact", text, Origin("stated"))

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)


def files(world: World) -> list[Path]:
    return list((world.folder / "data" / "cache" / "views").glob("*.terms"))


class TestManyItems:
    async def test_the_right_one_of_thousands_reaches_the_model(self, start: Start) -> None:
        model = Scripted()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:
            await fill(world)
            await world.ann.send(world.general, "how is my zebra?")
            await world.settle()
            assert "Keeps a zebra in the barn." in model.prompt
            assert "tea of sort" not in model.prompt
            assert "Owes money" not in model.prompt
            assert [path.name for path in files(world)] == [f"user-{world.ann.id}.terms"]

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
            assert "Keeps a zebra in the barn." in model.prompt

    async def test_nothing_of_them_is_left_when_they_are_erased_in_the_middle_of_it(
        self, start: Start
    ) -> None:
        model = Scripted()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:
            await fill(world)
            model.hold = asyncio.Event()
            sending = asyncio.create_task(world.ann.send(world.general, "how is my zebra?"))
            await model.asked.wait()  # its terms are kept, or about to be
            asked_at = int(world.env.now().timestamp() * 1000)
            erased = await world.memory.erase(user_subject(str(world.ann.id)), asked_at=asked_at)
            model.hold.set()
            await sending
            await world.settle()
            assert erased.left == ()
            assert files(world) == []
            assert traces(world.folder / "data", "barn") == []


class TestAfterAStart:
    async def test_the_first_question_reads_few_memories_between_what_others_do(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = Scripted()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:
            await fill(world, FEW)
            await world.restart()
            read = ReadAtOnce()
            monkeypatch.setattr("discoclaw.recall.document.of_item", read)
            await world.ann.send(world.general, "how is my zebra?")
            await world.settle()
            assert "Keeps a zebra in the barn." in model.prompt
            assert read.total > FEW - 20
            assert read.most <= AT_ONCE


class ReadAtOnce:
    """Turns items into documents, and counts the most in one step of the event loop."""

    def __init__(self) -> None:
        self.total = self.most = self._now = 0

    def __call__(self, item: Item) -> Document:
        if not self._now:
            asyncio.get_running_loop().call_soon(self._next)
        self._now += 1
        self.total += 1
        self.most = max(self.most, self._now)
        return of_item(item)

    def _next(self) -> None:
        self._now = 0


class TestASearchOfTheModel:
    async def fill(self, world: World) -> None:
        def add(draft: Draft) -> None:
            for number in range(MANY):
                draft.upsert("fact", f"Likes tea of sort number{number}.", Origin("stated"))
            for key, text in (
                ("barn", "Keeps a zebra there."),
                ("zoo", "Saw the zebra and the giraffe."),
                ("cat", "私は猫が好きです"),
            ):
                draft.upsert("fact", text, Origin("inferred", said_at=1), facets=Facets(key=key))

        await world.memory.change(user_subject(str(world.ann.id)), "a test", add)

    @pytest.mark.design(111, 112, 113)
    async def test_finds_the_right_ones_of_thousands(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, max_items=10_000, extraction_enabled=False) as world:
            await self.fill(world)

            async def keys(query: str) -> list[str]:
                given = ("memory_recall", {"query": query, "limit": 3})
                _, text = await call(world, model, given)
                return [line[2:].split(":")[0] for line in text.splitlines()[1:-1]]

            assert await keys("zebra") == ["barn", "zoo"]
            assert (await keys("giraffe or x zebra"))[0] == "zoo"
            assert await keys("猫") == ["cat"]
            assert await keys("好き") == ["cat"]
            assert await keys("iraff") == []
            assert await keys("girafe") == ["zoo"]
            await call(
                world,
                model,
                ("memory_store", {"text": "Saw no animals.", "key": "zoo"}),
                ("memory_forget", {"key": "cat"}),
                ("memory_store", {"text": "Owns a llama.", "key": "farm", "links": ["barn"]}),
            )
            assert await keys("zebra") == ["barn"]
            assert await keys("llama") == ["farm"]
