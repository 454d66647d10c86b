"""What is said in private and what is said in the open are learned from apart, whoever said it."""

from tests.app.conftest import Start
from tests.app.models import Scripted

ANSWER = "I am sorry about your therapy."


class TestExtraction:
    async def test_from_open_talk_is_shown_no_answer_of_a_dm(self, start: Start) -> None:
        model = Scripted("Hello.", ANSWER, "Noted.")
        async with start(model, durable_every=3, summary_enabled=False) as world:
            await world.ann.send(world.general, "My name is Ann.")
            await world.ann.send_dm("Good morning.")
            await world.ann.send(world.general, "I use vim.")
            await world.settle()
            in_the_open, in_the_dm = model.structured_prompts
            assert "I use vim." in in_the_open
            assert "Noted." in in_the_open
            assert ANSWER not in in_the_open
            assert "Good morning." in in_the_dm
            assert ANSWER in in_the_dm
            assert "Noted." not in in_the_dm

    async def test_nor_when_what_waited_in_the_dm_is_not_to_be_learned_any_more(self, start: Start) -> None:
        model = Scripted(then="Yes.")
        async with start(model, durable_every=3, summary_enabled=False) as world:
            await world.ann.send_dm("!memory create-branch secret")
            await world.ann.send_dm("!memory checkout secret")
            model.words = [ANSWER]
            await world.env.advance_time(1)
            await world.ann.send_dm("Good morning.")
            await world.env.advance_time(1)
            await world.ann.send_dm("!memory checkout main")
            await world.ann.send_dm("!memory delete-branch secret")
            await world.env.advance_time(1)
            await world.ann.send(world.general, "My name is Ann.")
            await world.ann.send(world.general, "I use vim.")
            await world.settle()
            (in_the_open,) = model.structured_prompts
            assert "I use vim." in in_the_open
            assert "Good morning." not in in_the_open
            assert ANSWER not in in_the_open
