"""Which answers show previews of the pages that they link to."""

import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted

QUIET = {"extraction_enabled": False, "summary_enabled": False}
ONE, TWO = "https://example.com/a", "https://example.org/b"


async def shows_previews(world: World, answer: str) -> bool:
    """Whether the last message of the channel, which says this, may show previews."""
    channel = world.env.bot.get_channel(world.general.id)
    (message,) = [one async for one in channel.history(limit=1)]
    assert message.content == answer
    return not message.flags.suppress_embeds


@pytest.mark.parametrize(
    ("answer", "previews"),
    [
        (f"See {ONE}.", True),
        (f"See {ONE}, and once more: {ONE}", True),
        (f"See {ONE} and not <{TWO}>", True),
        (f"See {ONE} and {TWO}", False),
        (f"See [this]({ONE}) and [that]({TWO}).", False),
    ],
)
async def test_an_answer_shows_the_preview_of_its_only_link(
    start: Start, answer: str, previews: bool
) -> None:
    async with start(Scripted(answer), **QUIET) as world:
        await world.ann.send(world.general, "where?")
        assert await shows_previews(world, answer) is previews


async def test_an_answer_that_only_its_person_sees_shows_none(start: Start) -> None:
    async with start(Scripted(f"See {ONE}"), **QUIET) as world:
        result = await world.ann.slash(world.general, "ask", text="where?")
        await world.settle()
        (shown,) = [one for one in (result.response, *result.followups) if one and ONE in one.content]
        assert shown.flags.suppress_embeds and shown.flags.ephemeral
