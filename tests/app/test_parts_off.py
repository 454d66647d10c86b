"""Each part of the bot can be off: it answers all the same, and keeps nothing that it is not to keep.

A new switch is a line in `SWITCHES`. "Off" is whatever is not the default, so a part that is off by default
is switched on here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from discoclaw.app.hearing import Hearing
from discoclaw.core import titles
from discoclaw.settings import Settings
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.memory.leftovers import traces
from tests.session.scene import ScriptedModel, calls

WORD = "Kanarie-4711"
ANSWER = "Noted."
LEARNED = '{"upserts": [{"kind": "preference", "text": "User likes Kanarie-4711."}]}'
SUMMED_UP = "They talked."
"""What the scripted model says of every talk."""


@dataclass(frozen=True)
class Switch:
    """Settings, and what is then so: whether people are remembered, and whose talk is summed up.

    `tools`: the model gets some. `learns`: from talk by itself. `commands`: `!memory` is one, and not a
    message like any other.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    remembers: bool = True
    tools: bool = True
    learns: bool = True
    sums_up: bool = True
    commands: bool = True


NOTHING: dict[str, Any] = {
    "durable_enabled": False,
    "extraction_enabled": False,
    "summary_enabled": False,
    "commands_enabled": False,
    "heartbeat_minutes": 0,
    "response_cache": False,
    "receipts": False,
}

SWITCHES = {
    "nothing": Switch(),
    "everything": Switch(NOTHING, remembers=False, learns=False, sums_up=False, commands=False),
    "the store": Switch({"store": "none"}, remembers=False, learns=False, sums_up=False),
    "durable memory": Switch({"durable_enabled": False}, remembers=False, learns=False),
    "durable memory and summary": Switch(
        {"durable_enabled": False, "summary_enabled": False}, remembers=False, learns=False, sums_up=False
    ),
    "durable memory, with the cache on": Switch(
        {"durable_enabled": False, "summary_enabled": False, "response_cache": True},
        remembers=False,
        learns=False,
        sums_up=False,
    ),
    "the tools": Switch({"tools_enabled": False}, tools=False),
    "the summary": Switch({"summary_enabled": False}, sums_up=False),
    "extraction": Switch({"extraction_enabled": False}, learns=False),
    "commands": Switch({"commands_enabled": False}, commands=False),
    "the heartbeat": Switch({"heartbeat_minutes": 0}),
    "receipts, which are on": Switch({"receipts": True}),
    "the cache, which is on": Switch({"response_cache": True}),
    "the recent talk": Switch({"history_budget": 0}),
    "injection": Switch({"inject_max_chars": 0}),
    "enrichment": Switch({"enrich_depth": 0}),
    "decay, which is on": Switch({"knowledge_decay": True}),
    "the archive, which is on": Switch({"auto_save": "all"}),
    "a small context": Switch({"context_tokens": 4000}),
}


def of(**has: bool) -> Iterable[Any]:
    """The switches that are so, as parameters of a test."""
    return [
        pytest.param(switch, id=name)
        for name, switch in SWITCHES.items()
        if all(getattr(switch, what) is value for what, value in has.items())
    ]


def scripted() -> Scripted:
    model = Scripted(then=ANSWER)
    model.facts = [LEARNED] * 3
    return model


async def talk(world: World) -> None:
    """Ann talks in a channel and in her DM, twice in each."""
    for number in range(2):
        await world.ann.send(world.general, f"I like {WORD} {number}")
        await world.ann.send_dm(f"I do like {WORD} {number}")
    await world.settle()


def answers(world: World) -> list[int]:
    """How often the model's answer is shown in the channel and in the DM."""
    return [world.shown(place).count(ANSWER) for place in (world.general, world.ann_dm)]


def kept(world: World, *words: str) -> list[str]:
    """The files below `data/` that have one of the words."""
    return traces(world.folder / "data", *words)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


def test_every_switch_is_a_setting() -> None:
    """One that is misspelled would be no setting at all, and be tested as the default."""
    named = {name for switch in SWITCHES.values() for name in switch.settings}
    assert named <= set(Settings.model_fields)


class TestEachPartOff:
    @pytest.mark.design(190)
    @pytest.mark.parametrize("switch", of())
    async def test_leaves_the_answers(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            assert answers(world) == [2, 2]
            await world.restart()
            await talk(world)
            assert answers(world) == [4, 4]

    @pytest.mark.design(163, 190)
    @pytest.mark.parametrize("switch", of())
    @pytest.mark.design(124)
    async def test_offers_tools_only_where_there_is_something_to_use(
        self, start: Start, switch: Switch
    ) -> None:
        model = scripted()
        async with start(model, **switch.settings) as world:
            await talk(world)
            offered = [{tool.name for tool in request.tools} for request in model.requests]
            assert len(offered) == 4
            usable = switch.remembers and switch.tools
            assert all(("memory_store" in names) is usable for names in offered)
            assert usable or not any(offered)
            assert all((request.subject is not None) is switch.remembers for request in model.requests)

    @pytest.mark.parametrize("switch", of())
    async def test_asks_no_small_model_for_nothing(self, start: Start, switch: Switch) -> None:
        model = scripted()
        async with start(model, **switch.settings) as world:
            await talk(world)
            assert any(titles.TALK in prompt for prompt in model.structured_prompts) is switch.learns
            assert any(titles.NEW_MESSAGES in prompt for prompt in model.structured_prompts) is switch.sums_up

    @pytest.mark.parametrize("switch", of())
    async def test_a_command_is_one_or_a_message(self, start: Start, switch: Switch) -> None:
        model = scripted()
        async with start(model, **switch.settings) as world:
            await world.ann.send(world.general, f"!memory remember I like {WORD}")
            await world.settle()
            assert (world.answer(world.general) == ANSWER) is not switch.commands
            assert len(model.requests) == (0 if switch.commands else 1)


class TestWhatIsKept:
    @pytest.mark.parametrize("switch", of(learns=True))
    async def test_is_what_was_learned_where_it_may_be(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            assert WORD in world.durable(world.ann).read_text()

    @pytest.mark.design(163)
    @pytest.mark.parametrize("switch", of(remembers=True, learns=False))
    async def test_is_only_what_was_asked_for_without_extraction(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            assert not world.durable(world.ann).exists()
            await world.ann.send(world.general, f"!memory remember I like {WORD}")
            assert WORD in world.durable(world.ann).read_text()

    @pytest.mark.parametrize("switch", of(remembers=False))
    async def test_is_nothing_of_anybody_without_memory(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            await world.ann.send(world.general, f"!memory remember I like {WORD}")
            await world.settle()
            data = world.folder / "data"
            for folder in ("memory/durable", "memory/ledger", "cache"):
                assert files(data / folder) == []
            assert kept(world, WORD) == []

    @pytest.mark.parametrize("switch", of(remembers=False, sums_up=False))
    async def test_is_not_even_a_name_without_summary(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            assert kept(world, WORD, SUMMED_UP, str(world.ann.id)) == []

    @pytest.mark.parametrize("switch", of(sums_up=True))
    async def test_is_a_summary_where_there_are_any(self, start: Start, switch: Switch) -> None:
        async with start(scripted(), **switch.settings) as world:
            await talk(world)
            assert kept(world, SUMMED_UP) != []


class TestToolsOff:
    """Nothing but the tools is gone."""

    @pytest.mark.design(123)
    async def test_a_call_is_refused_and_the_person_gets_an_answer(self, start: Start) -> None:
        wanted = ("memory_store", {"text": f"User likes {WORD}."})
        model = ScriptedModel([calls(wanted), ANSWER, calls(wanted, text="One moment.")])
        async with start(model, tools_enabled=False, extraction_enabled=False) as world:
            await world.ann.send(world.general, "please remember it")
            assert world.answer(world.general) == ANSWER
            assert model.results(1) == [(True, "there are no tools here; answer without")]
            await world.ann.send(world.general, "please remember it")
            assert world.answer(world.general) == "One moment."
            await world.settle()
            assert [request.tools for request in model.requests] == [()] * 3
            assert not world.durable(world.ann).exists()

    async def test_what_was_learned_and_what_was_stated_is_recalled(self, start: Start) -> None:
        model = scripted()
        async with start(model, tools_enabled=False) as world:
            await world.ann.send(world.general, f"I like {WORD}")
            await world.settle()
            await world.ann.send(world.general, "!memory remember I have a zebra called Zoe")
            await world.ann.send(world.dev, "how is my zebra?")
            assert "zebra called Zoe" in model.prompt
            assert f"User likes {WORD}." in model.prompt

    async def test_answers_are_reused_as_before(self, start: Start) -> None:
        model = Scripted("It is blue.", then="asked again")
        async with start(model, tools_enabled=False, **SAME) as world:
            for _ in range(2):
                await world.ann.send(world.general, "What colour is it?")
                await world.settle()
                assert world.answer(world.general) == "It is blue."

    async def test_the_statistics_say_so(self, start: Start) -> None:
        async with start(scripted(), tools_enabled=False) as world:
            await world.ann.send(world.general, "!memory remember I have a zebra")
            await world.ann.send(world.general, "!memory stats")
            assert "**Memories**: 1," in world.answer(world.general)
            assert "**Tools**: switched off here" in world.answer(world.general)
            await world.restart(tools_enabled=True)
            await world.ann.send(world.general, "!memory stats")
            assert "**Memories**: 1," in world.answer(world.general)
            assert "Tools" not in world.answer(world.general)


SAME: dict[str, Any] = {"response_cache": True, "history_budget": 0, "summary_enabled": False}
"""With these, two questions of one hour can be the same: else the talk between them is in the prompt."""


class TestTheCache:
    @pytest.mark.design(146)
    async def test_answers_once_more_without_the_model_and_after_a_restart(self, start: Start) -> None:
        model = Scripted("It is blue.", then="asked again")
        async with start(model, **SAME) as world:
            for _ in range(2):
                await world.ann.send(world.general, "What colour is it?")
                await world.settle()
                assert world.answer(world.general) == "It is blue."
            await world.restart()
            await world.ann.send(world.general, "What colour is it?")
            assert world.answer(world.general) == "It is blue."
            assert len(model.requests) == 1

    async def test_puts_its_answers_into_the_talk(self, start: Start) -> None:
        model = Scripted("It is blue.", then="something else")
        async with start(model, **SAME) as world:
            for _ in range(2):
                await world.ann.send(world.general, "What colour is it?")
                await world.settle()
            window = world.app.feature(Hearing).windows.use(f"discord:channel:{world.general.id}").recent()
            assert [said.text for said in window if said.by_us] == ["It is blue."] * 2

    async def test_gives_nobody_what_was_said_to_somebody_else(self, start: Start) -> None:
        model = Scripted("for Ann", "for Bob", "in her DM")
        async with start(model, **SAME) as world:
            await world.ann.send(world.general, "Who am I?")
            await world.settle()
            await world.bob.send(world.general, "Who am I?")
            assert world.answer(world.general) == "for Bob"
            await world.settle()
            await world.ann.send_dm("Who am I?")
            assert world.answer(world.ann_dm) == "in her DM"

    async def test_is_erased_with_everything_else(self, start: Start) -> None:
        model = Scripted(f"You like {WORD}.", f"Bob likes {WORD} too.", then="Who are you?")
        async with start(model, **SAME, extraction_enabled=False) as world:
            await world.ann.send(world.general, "What do I like?")
            await world.bob.send(world.general, "What do I like?")
            await world.settle()
            folder = world.folder / "data" / "cache" / "responses"
            assert len(files(folder)) == 2
            asked_at = int(world.env.now().timestamp() * 1000)
            assert (await world.memory.erase(f"user-{world.ann.id}", asked_at=asked_at)).left == ()
            assert [path.name for path in files(folder)] == [f"user-{world.bob.id}.json"]
            await world.env.advance_time(1)
            await world.ann.send(world.general, "What do I like?")
            assert world.answer(world.general) == "Who are you?"

    async def test_keeps_nothing_of_somebody_who_opted_out(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **SAME) as world:
            await world.ann.send(world.general, "!memory optout")
            await world.ann.send(world.general, "What do I like?")
            await world.settle()
            assert model.requests[-1].tools == ()
            assert files(world.folder / "data" / "cache") == []

    @pytest.mark.design(159)
    async def test_is_off_unless_wanted(self, start: Start) -> None:
        model = Scripted("first", then="second")
        async with start(model, history_budget=0, summary_enabled=False) as world:
            for answer in ("first", "second"):
                await world.ann.send(world.general, "What colour is it?")
                assert world.answer(world.general) == answer
            assert not (world.folder / "data" / "cache" / "responses").exists()
