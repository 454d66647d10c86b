"""A slash command that Discord brings too late is not carried out, and its person is told."""

from discoclaw.bot.refused import TOO_LATE
from tests.app.conftest import Start


class TestACommandThatCameTooLate:
    async def test_is_told_of_in_a_dm(self, start: Start) -> None:
        async with start() as world:
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.slash(world.general, "memory remember", text="I like tea")
            await world.settle()
            assert world.answer(world.ann_dm) == TOO_LATE
            assert not world.durable(world.ann).exists()
