"""What a person takes back is in nothing that is used afterwards: by this promise people judge the bot."""

from collections.abc import AsyncGenerator

import pytest

from discoclaw.core.errors import ModelError, ModelUnreachable
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent
from discoclaw.core.ports import Shape
from discoclaw.models.offline.model import OfflineModel
from tests.app.conftest import Start, World


class Overheard(OfflineModel):
    """The offline model; `asked` is all that it was ever given, newest last."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.summary: str | ModelError | None = None
        """What it says when it is asked for a summary, if not what it would say by itself."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.asked.append(repr(request))
        return super().stream(request)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.asked.append(prompt)
        if "summary" in shape.model_fields and self.summary is not None:
            if isinstance(self.summary, ModelError):
                raise self.summary
            return shape.model_validate({"summary": self.summary})
        return await super().structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )


def summaries(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.folder / "data" / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))


class TestTheStory:
    async def test_what_is_made_private_is_not_in_the_summary_that_the_channel_sees(
        self, start: Start
    ) -> None:
        async with start(summary_every=1, durable_every=1) as world:
            ann, general = world.ann, world.general
            await ann.send(general, "I prefer green tea")
            await ann.send(general, "What about the zebra crossing?")
            await world.settle()
            assert "green tea" in summaries(world)
            await ann.send(general, "!memory private User prefers green tea.")
            await world.settle()
            await ann.send(general, "!memory show")
            assert "green tea" not in world.answer(general)
            assert "green tea" not in summaries(world)
            assert "zebra crossing" in summaries(world)  # written again, from what is left

    async def test_what_is_forgotten_or_undone_is_in_no_summary_and_no_prompt(self, start: Start) -> None:
        model = Overheard()
        async with start(model, summary_every=1, durable_every=1) as world:
            ann, general = world.ann, world.general
            await ann.send(general, "I like coffee black")
            await ann.send(general, "I live in Lisbon")
            await ann.send(general, "How do zebras sleep?")
            await world.settle()
            assert "coffee" in summaries(world) and "Lisbon" in summaries(world)
            await ann.send(general, "!memory undo")
            await ann.send(general, "!memory forget User likes coffee black.")
            await world.settle()
            assert "coffee" not in summaries(world) and "Lisbon" not in summaries(world)
            assert "zebras" in summaries(world)

            model.asked.clear()
            await ann.send(general, "And what do lemurs eat?")
            await ann.send(world.dev, "What else do you know about me?")
            await world.restart()
            await ann.send(general, "Do you remember me?")
            await world.settle()
            told = "\n".join(model.asked)
            assert "lemurs" in told and "zebras" in told
            assert "coffee" not in told and "Lisbon" not in told

    async def test_nobody_tells_a_model_what_it_must_not_bring_back(self, start: Start) -> None:
        model = Overheard()
        async with start(model, durable_every=1) as world:
            ann, general = world.ann, world.general
            await ann.send(general, "!memory remember my salary is 90000")
            await ann.send(general, "!memory forget my salary is 90000")
            await ann.send(general, "I play the cello")
            await world.settle()
            assert any("cello" in one for one in model.asked)
            assert not any("90000" in one or "salary" in one for one in model.asked)


class TestTheModelThatWritesTheSummaryAgain:
    async def forgotten(self, world: World, model: Overheard, says: str | ModelError) -> None:
        """Ann has forgotten what the summary knew of her, and the model says this to that."""
        await world.ann.send(world.general, "I live in Lisbon")
        await world.ann.send(world.general, "How do zebras sleep?")
        await world.settle()
        assert "Lisbon" in summaries(world)
        model.summary = says
        await world.ann.send(world.general, "!memory forget User lives in Lisbon.")
        await world.settle()

    @pytest.mark.parametrize(
        ("says", "kept"),
        [
            ("Ann lives in Lisbon. They spoke of zebras.", "They spoke of zebras."),
            ("Everybody knows Lisbon!", ""),
            ("   ", ""),
        ],
    )
    async def test_may_say_what_it_likes(self, start: Start, says: str, kept: str) -> None:
        model = Overheard()
        async with start(model, summary_every=1, durable_every=1) as world:
            await self.forgotten(world, model, says)
            assert "Lisbon" not in summaries(world)
            assert kept in summaries(world)
            await world.ann.send(world.general, "Thanks")
            assert world.answer(world.general)

    async def test_may_be_down_for_a_day(self, start: Start) -> None:
        model = Overheard()
        async with start(model, summary_every=1, durable_every=1) as world:
            await self.forgotten(world, model, ModelUnreachable("down"))
            assert summaries(world) == ""
            model.asked.clear()
            await world.ann.send(world.general, "Do you hear me?")
            assert "Lisbon" not in "".join(model.asked)
            await world.restart()
            model.summary = None
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert "zebras" in summaries(world) and "Lisbon" not in summaries(world)


class TestUndoing:
    async def test_brings_the_item_back_but_not_the_summary(self, start: Start) -> None:
        async with start(summary_every=1, durable_every=1) as world:
            ann, general = world.ann, world.general
            await ann.send(general, "I live in Lisbon")
            await world.settle()
            await ann.send(general, "!memory forget User lives in Lisbon.")
            await world.settle()
            await ann.send(general, "!memory undo")
            await world.settle()
            await ann.send(general, "!memory show")
            assert "You live in Lisbon." in world.answer(general)

    async def test_what_is_said_again_is_learned_again(self, start: Start) -> None:
        async with start(summary_every=1, durable_every=1) as world:
            ann, general = world.ann, world.general
            await ann.send(general, "I live in Lisbon")
            await world.settle()
            await ann.send(general, "!memory forget User lives in Lisbon.")
            await world.settle()
            await world.env.advance_time(60)
            await ann.send(general, "I live in Lisbon")
            await world.settle()
            await ann.send(general, "!memory show")
            assert "You live in Lisbon." in world.answer(general)
            assert "Lisbon" in summaries(world)
