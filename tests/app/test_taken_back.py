"""What a person takes back is in nothing that is used afterwards: the story that people judge the bot by."""

from tests.app.conftest import Start, World


def rolling(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.folder / "data" / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))


async def is_summarised(world: World, words: str) -> None:
    await world.settle()
    assert words in rolling(world)


class TestTheStory:
    async def test_what_is_forgotten_is_in_no_summary_and_no_prompt(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            ann = world.ann
            await ann.send(world.general, "I drink my coffee black")
            await ann.send(world.general, "Which tea is good?")
            await is_summarised(world, "coffee")
            await ann.send(world.general, "!memory remember User drinks coffee black.")
            await ann.send(world.general, "!memory forget User drinks coffee black.")
            assert "Forgotten" in world.answer(world.general)
            await world.settle()
            assert "coffee" not in rolling(world)
            assert "tea" in rolling(world)
