"""What somebody took back by editing it stands nowhere any more, beside others' talk neither."""

from tests.app.conftest import Start
from tests.app.models import Scripted


class TestExtraction:
    async def test_sees_what_others_said_as_it_is_now(self, start: Start) -> None:
        model = Scripted()
        async with start(model, durable_every=1, summary_enabled=False, respond_mode="mention") as world:
            me = world.app.client.user
            assert me is not None
            said = await world.bob.send(world.general, "my salary is 4711")
            await world.bob.edit(said, "never mind")
            await world.ann.send(world.general, f"<@{me.id}> I use vim.")
            await world.settle()
            (prompt,) = model.structured_prompts
            assert "never mind" in prompt
            assert "4711" not in prompt
