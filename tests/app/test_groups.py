"""The whole bot remembers who people are and what channels are about, and tells each channel its own."""

import asyncio
import json
from typing import Any

import discord
import pytest

from discoclaw.core.model import ModelRequest, Purpose
from discoclaw.core.ports import Shape
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.memory.leftovers import traces
from tests.prompt.reader import GROUP_TITLE, TURN_TITLES, sections

CANARY = "Kanarie-Ü🐦-4711"
NOTES = "Notes about this channel:"


class Agreeing(Scripted):
    """Finds, in whatever it is to sum up, what is given; `summed_up` are (system, prompt) of these calls."""

    def __init__(self, *words: Any, **found: list[str]) -> None:
        super().__init__(*words)
        self.found: dict[str, list[str]] = found
        self.summed_up: list[tuple[str, str]] = []

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if "summary" not in shape.model_fields:
            return await super().structured(purpose=purpose, system=system, prompt=prompt, shape=shape)
        self.summed_up.append((system, prompt))
        return shape.model_validate({"summary": "They talked.", **self.found})

    def place(self, index: int = -1) -> str:
        """What people wrote about the place, in a request."""
        return "\n".join(sections(self.user_turn(index), TURN_TITLES).get(GROUP_TITLE, []))


def shown(model: Scripted) -> str:
    """Everything that the model was shown last."""
    return "\n".join([*(block.text for block in model.requests[-1].system), model.prompt])


def file(world: World, folder: str, who: Any) -> Any:
    """A profile's or group's file; None when there is none."""
    path = world.folder / "data" / "memory" / folder / f"{who.id}.json"
    return json.loads(path.read_bytes()) if path.exists() else None


async def agree(world: World) -> None:
    """Two turns, which is when a conversation is summed up."""
    for text in ("shall we use tabs?", "tabs it is"):
        await world.ann.send(world.general, text)
        await world.settle()


class TestAChannel:
    async def test_is_told_its_own_themes_and_decisions_and_nobody_else_is(self, start: Start) -> None:
        model = Agreeing(themes=["indentation"], decisions=["We use tabs."])
        async with start(model) as world:
            await agree(world)
            assert file(world, "groups", world.general)["themes"] == ["indentation"]
            await world.bob.send(world.general, "what did we decide?")
            assert model.place().startswith("Themes: indentation\nDecisions, newest first:\n- 20")
            assert model.place().endswith(": We use tabs.")
            for send in (
                lambda: world.bob.send(world.dev, "and here?"),
                lambda: world.ann.send_dm("and here?"),
            ):
                await send()
                assert model.place() == ""
                assert "We use tabs." not in shown(model)

    async def test_keeps_it_over_a_restart_and_shares_it_with_its_threads(self, start: Start) -> None:
        model = Agreeing(decisions=["We use tabs."])
        async with start(model) as world:
            await agree(world)
            await world.restart()
            channel = world.env.bot.get_channel(world.general.id)
            await channel.create_thread(name="release", type=discord.ChannelType.public_thread)
            await world.env.settle()
            (thread,) = world.general.threads
            await world.bob.send(thread, "what did we decide?")
            assert "of the channel #general" in model.requests[-1].system[1].text
            assert model.place().endswith(": We use tabs.")
            await world.settle()
            group = file(world, "groups", world.general)
            assert {name for _, name in group["members"]} == {"ann", "bob"}
            assert file(world, "groups", thread) is None

    async def test_is_asked_about_in_channels_and_not_in_dms(self, start: Start) -> None:
        model = Agreeing(themes=["indentation"], decisions=["We use tabs."])
        async with start(model) as world:
            for _ in range(2):
                await world.ann.send_dm("tabs?")
                await world.settle()
            ((system, prompt),) = model.summed_up
            assert '"decisions"' not in system
            assert not (world.folder / "data" / "memory" / "groups").exists()
            for _ in range(2):
                await agree(world)
            assert '"decisions"' in model.summed_up[-1][0]
            assert "Known decisions of this channel:\n- We use tabs." in model.summed_up[-1][1]
            assert "Known" not in prompt

    async def test_works_offline_too(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "Our topic is release engineering.")
            await world.ann.send(world.general, "OK, we decided to ship on Friday. Good?")
            await world.settle()
            group = file(world, "groups", world.general)
            assert group["themes"] == ["release engineering"]
            assert [text for text, _ in group["decisions"]] == ["We decided to ship on Friday."]


class TestAPerson:
    async def test_has_a_profile_from_their_first_message_on(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "I prefer tabs over spaces")
            await world.settle()
            profile = file(world, "profiles", world.ann)
            assert [name for name, _ in profile["display_names"]] == ["ann"]
            assert list(profile["preferences"].values()) == ["User prefers tabs over spaces."]
            assert "is_owner" not in profile
            assert file(world, "profiles", world.bob) is None

    async def test_who_opted_out_has_none(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm("!memory optout")
            await world.ann.send(world.general, "hello")
            await world.bob.send(world.general, "hello")
            await world.settle()
            assert file(world, "profiles", world.ann) is None
            assert [one for one, _ in file(world, "groups", world.general)["members"]] == [str(world.bob.id)]

    async def test_nor_has_a_guest(self, start: Start) -> None:
        async with start(allow_roles=frozenset()) as world:
            await world.restart(allow_users=frozenset({str(world.bob.id)}))
            await world.ann.send(world.general, "hello")
            await world.bob.send(world.general, "hello")
            await world.settle()
            assert file(world, "profiles", world.ann) is None
            assert [one for one, _ in file(world, "groups", world.general)["members"]] == [str(world.bob.id)]

    @pytest.mark.parametrize("switch", [{"durable_enabled": False}, {"store": "none"}])
    async def test_nobody_has_where_nothing_is_remembered(self, start: Start, switch: dict) -> None:
        async with start(**switch) as world:
            await agree(world)
            for folder in ("profiles", "groups"):
                assert not (world.folder / "data" / "memory" / folder).exists()


class TestTheOwner:
    async def test_is_named_to_everybody(self, start: Start) -> None:
        model = Agreeing()
        async with start(model) as world:
            await world.restart(owners=frozenset({str(world.bob.id)}))
            await world.ann.send(world.general, "who owns you?")
            assert f"Your owner is somebody (id {world.bob.id})." in model.requests[-1].system[0].text
            await world.bob.send(world.general, "I do")
            await world.settle()
            for _ in range(2):
                await world.ann.send(world.dev, "who owns you?")
                assert f"Your owner is bob (id {world.bob.id})." in model.requests[-1].system[0].text
                await world.restart()


class TestErasing:
    async def test_leaves_nothing_of_a_person_in_any_group_nor_in_what_the_model_sees(
        self, start: Start
    ) -> None:
        model = Agreeing(decisions=[f"We buy a {CANARY}."])
        async with start(model) as world:
            await agree(world)
            await world.bob.send(world.dev, "hello")
            await world.settle()
            model.found = {"decisions": ["We ship on Friday."]}
            for _ in range(2):
                await world.bob.send(world.dev, "on Friday, then")
                await world.settle()
            kept = (world.folder / "data" / "memory" / "ledger" / f"group-{world.dev.id}.jsonl").read_bytes()
            assert CANARY in json.dumps(file(world, "groups", world.general), ensure_ascii=False)
            asked_at = int(world.env.now().timestamp() * 1000)
            await world.memory.erase(user_subject(str(world.ann.id)), asked_at=asked_at)
            await world.env.advance_time(1)
            await world.settle()
            assert traces(world.folder / "data", CANARY, str(world.ann.id)) == []
            assert [text for text, _ in file(world, "groups", world.dev)["decisions"]] == [
                "We ship on Friday."
            ]
            ledger = world.folder / "data" / "memory" / "ledger" / f"group-{world.dev.id}.jsonl"
            assert ledger.read_bytes() == kept
            for _ in range(2):
                await world.bob.send(world.general, "what did we decide?")
                assert CANARY not in shown(model)
                await world.settle()
                await world.restart()


class TestAReply:
    async def test_waits_for_none_of_it(self, start: Start) -> None:
        """Folders where there should be files: nothing can be read or written."""
        model = Agreeing(decisions=["We use tabs."])
        async with start(model) as world:
            root = world.folder / "data" / "memory"
            for folder in ("profiles", "groups"):
                (root / folder).write_text("in the way")
            await world.restart(owners=frozenset({str(world.bob.id)}))
            await agree(world)
            await world.bob.send(world.general, "hello")
            assert world.answer(world.general) == "ok"
            await world.settle()
            assert "We use tabs." in model.place()

    async def test_that_is_under_way_does_not_hold_up_the_writing(self, start: Start) -> None:
        def answer(request: ModelRequest) -> str:
            return "ok"

        model = Agreeing(answer)
        async with start(model) as world:
            model.hold, model.asked = asyncio.Event(), asyncio.Event()
            sending = asyncio.create_task(world.ann.send(world.general, "hello"))
            await asyncio.wait_for(model.asked.wait(), 10)
            await world.app.storage.people.groups.settle()
            await world.app.storage.people.profiles.settle()
            assert file(world, "profiles", world.ann) is not None
            assert file(world, "groups", world.general) is not None
            model.hold.set()
            await sending
