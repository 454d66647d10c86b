"""What people are called in prompts: by their newest name everywhere, and namesakes by one number always."""

from typing import Any

from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from tests.app.conftest import Start
from tests.app.erasing import erase
from tests.app.models import Scripted
from tests.app.test_steady_summaries import Drifting, renamed
from tests.prompt.reader import RECENT, REPLIED_TO, TURN_TITLES, sections

ALONE: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
SUMMARISED: dict[str, Any] = {"extraction_enabled": False, "summary_every": 1, "heartbeat_minutes": 0}


def called(model: Scripted, text: str) -> str:
    """Under which name the last prompt's recent talk has a line."""
    (line,) = (line for line in sections(model.prompt, TURN_TITLES)[RECENT] if line.endswith(f": {text}"))
    return line.partition("]")[0].removeprefix("[")


def sender(model: Scripted) -> str:
    return sections(model.prompt, TURN_TITLES)["Sender:"][0].removeprefix("- name: ").partition(" (id")[0]


class Learning(Drifting):
    """Learns nothing, and keeps what it was to learn from."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def structured(self, *, purpose: Purpose, prompt: str, shape: type[Shape], **more: Any) -> Shape:
        if purpose != "extraction":
            return await super().structured(purpose=purpose, prompt=prompt, shape=shape, **more)
        self.read.append(prompt)
        return shape()


class TestANewName:
    async def test_names_the_person_in_old_lines_replies_and_as_the_sender(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **ALONE) as world:
            old = await world.ann.send(world.general, "I like tea")
            await renamed(world, world.ann, "Anni")
            await world.ann.send(world.general, "what do I like?")
            assert (called(model, "I like tea"), sender(model)) == ("Anni", "Anni")
            await world.bob.send(world.general, "really?", reply_to=old)
            assert sections(model.prompt, TURN_TITLES)[REPLIED_TO][-1] == "[Anni]: I like tea"
            assert called(model, "what do I like?") == "Anni"
            assert "[ann]" not in model.prompt

    async def test_is_what_extraction_reads(self, start: Start) -> None:
        model = Scripted()
        async with start(model, summary_enabled=False, durable_every=2) as world:
            await world.ann.send(world.general, "I like tea")
            await renamed(world, world.ann, "Anni")
            await world.ann.send(world.general, "and coffee")
            await world.settle()
            assert "[Anni]: I like tea" in model.structured_prompts[-1]
            assert "[ann]" not in model.structured_prompts[-1]

    async def test_names_the_person_in_the_summary_before_that_is_written_anew(self, start: Start) -> None:
        model = Drifting()
        async with start(model, **SUMMARISED) as world:
            await world.ann.send(world.general, "the kayak is mine")
            await world.settle()
            await renamed(world, world.ann, "Anni")
            await world.ann.send(world.general, "hello")
            assert "Anni: the kayak is mine" in model.prompt
            assert "ann: the kayak is mine" not in model.prompt


class TestNamesakes:
    async def test_keep_their_numbers_when_old_lines_leave_and_others_come(self, start: Start) -> None:
        model = Scripted()
        async with start(model, context_history=4, **ALONE) as world:
            carl = world.guild.add_member(world.env.create_user("carl"))
            for person in (world.ann, world.bob, carl):
                await renamed(world, person, "Sam")
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            assert (called(model, "the kayak is mine"), sender(model)) == ("Sam", "Sam #2")
            for text in ("one", "two", "three"):
                await world.bob.send(world.general, text)
            assert "the kayak is mine" not in model.prompt
            assert (called(model, "two"), sender(model)) == ("Sam #2", "Sam #2")
            await carl.send(world.general, "the violin is mine")
            assert called(model, "three") == "Sam #2" != sender(model)

    async def test_are_called_as_in_the_summary_also_after_a_restart(self, start: Start) -> None:
        model = Drifting()
        async with start(model, context_history=4, **SUMMARISED) as world:
            for person in (world.ann, world.bob):
                await renamed(world, person, "Sam")
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            for text in ("one", "two", "three"):
                await world.bob.send(world.general, text)
                await world.settle()
            await world.restart(model)
            await world.bob.send(world.general, "what is mine?")
            assert "Sam #2: the lantern is mine" in model.prompt and sender(model) == "Sam #2"
            assert "the kayak is mine" in model.prompt and "]: the kayak is mine" not in model.prompt

    async def test_have_the_same_numbers_in_extraction_as_in_the_summary(self, start: Start) -> None:
        model = Learning()
        more = {**SUMMARISED, "extraction_enabled": True, "durable_every": 1}
        async with start(model, **more) as world:
            for person in (world.ann, world.bob):
                await renamed(world, person, "Sam")
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            await world.settle()
            await world.restart(model)
            await world.bob.send(world.general, "the violin is mine")
            await world.settle()
            assert "»[Sam #2]: the violin is mine" in model.read[-1]

    async def test_of_somebody_who_is_erased_nothing_is_kept(self, start: Start) -> None:
        model = Scripted()
        async with start(model, context_history=4, **ALONE) as world:
            await renamed(world, world.ann, "Kanarie")
            await world.ann.send(world.general, "hello")
            await world.bob.send(world.general, "hi")
            window = world.app.talk.listener._windows.use(f"discord:channel:{world.general.id}")
            assert str(world.ann.id) in window.names
            await erase(world, world.ann)
            assert str(world.ann.id) not in window.names
