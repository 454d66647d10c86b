"""Each part of the bot can be off: it answers all the same, and keeps nothing that it is not to keep.

A new switch is a line in `SWITCHES`. "Off" is whatever is not the default, so a part that is off by default
is switched on here.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from discoclaw.settings import Settings
from tests.contract.brain import is_talk
from tests.contract.commands import card, typed
from tests.contract.world import Start
from tests.servers.messages_api import tool_use

WORD = "Kanarie-4711"


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
UNREMEMBERED = Switch(
    {"durable_enabled": False, "summary_enabled": False}, False, learns=False, sums_up=False
)
SWITCHES = {
    "nothing": Switch(),
    "everything": Switch(NOTHING, remembers=False, learns=False, sums_up=False, commands=False),
    "the store": Switch({"store": "none"}, remembers=False, learns=False, sums_up=False),
    "durable memory and summary, with the cache on": Switch(
        {**UNREMEMBERED.settings, "response_cache": True}, remembers=False, learns=False, sums_up=False
    ),
    "durable memory": Switch({"durable_enabled": False}, remembers=False, learns=False),
    "tools and summary": Switch(
        {"tools_enabled": False, "summary_enabled": False}, tools=False, sums_up=False
    ),
    "extraction and commands": Switch(
        {"extraction_enabled": False, "commands_enabled": False}, learns=False, commands=False
    ),
    "receipts, heartbeat, decay and archive, which are on": Switch(
        {"receipts": True, "heartbeat_minutes": 0, "knowledge_decay": True, "auto_save": "all"}
    ),
    "recent talk, injection and links, in a small context": Switch(
        {
            "history_budget": 0,
            "inject_max_chars": 0,
            "enrich_depth": 0,
            "response_cache": True,
            "context_tokens": 4000,
        }
    ),
}


def test_every_switch_is_a_setting() -> None:
    """One that is misspelled would be no setting at all, and be tested as the default."""
    named = {name for switch in SWITCHES.values() for name in switch.settings}
    assert named <= set(Settings.model_fields)


@pytest.mark.design(124, 163, 190)
@pytest.mark.parametrize("switch", SWITCHES.values(), ids=SWITCHES)
async def test_each_part_that_is_off_leaves_the_answers_and_keeps_nothing(
    start: Start, switch: Switch
) -> None:
    async with start(**switch.settings) as world:
        world.brain.usual = "Noted."
        world.brain.learns(f"User likes {WORD}.", about=WORD, kind="preference")
        for number in range(2):
            await world.ann.send(world.general, f"I like {WORD} {number}")
            await world.ann.send_dm(f"I do like {WORD} {number}")
        await world.settle()
        assert [world.shown(place).count("Noted.") for place in (world.general, world.ann_dm)] == [2, 2]
        offered = [{tool["name"] for tool in one.body.get("tools", ())} for one in world.turns()]
        assert len(offered) == 4
        usable = switch.remembers and switch.tools
        assert all(("memory_store" in names) is usable for names in offered)
        assert usable or not any(offered)
        assert bool(world.background("upserts")) is switch.learns
        assert bool(world.background("summary")) is switch.sums_up
        assert (world.files_with("They talked.") != []) is switch.sums_up
        assert any(WORD in text for text in world.memories(world.ann)) is switch.learns
        before = len(world.turns())
        await typed(world, "remember I like zebras")
        await world.settle()
        assert (world.answer(world.general) == "Noted.") is not switch.commands
        assert len(world.turns()) - before == (0 if switch.commands else 1)
        keeps = switch.remembers and switch.commands
        assert ("I like zebras" in world.memories(world.ann)) is keeps
        if not switch.remembers:
            assert world.files_with(WORD) == []
            for folder in ("memory/durable", "memory/ledger", "cache"):
                assert [one for one in (world.data / folder).rglob("*") if one.is_file()] == []
            if not switch.sums_up:  # and not even a name
                assert world.files_with(str(world.ann.id)) == []
        await world.restart()
        await world.ann.send(world.general, f"I like {WORD} again")
        await world.settle()
        assert "Noted." in world.shown(world.general)[-1:] + world.shown(world.general)[-2:-1]


@pytest.mark.design(123)
async def test_without_tools_a_call_is_refused_and_the_person_gets_an_answer(start: Start) -> None:
    async with start(tools_enabled=False, extraction_enabled=False, summary_enabled=False) as world:
        wanted = {"text": f"User likes {WORD}."}
        speaking = tool_use(("toolu_x", "memory_store", wanted), said="One moment.")
        world.brain.says(speaking, about="and that")
        assert await world.says(world.ann, world.general, "and that") == "One moment."
        assert not any(one.body.get("tools") for one in world.turns()) and world.memories(world.ann) == []
        await typed(world, "remember I have a zebra called Zoe")
        await world.says(world.ann, world.dev, "how is my zebra?")
        assert "zebra called Zoe" in world.prompt
        assert "**Tools**: switched off here" in await typed(world, "stats")
        await world.restart(tools_enabled=True)
        assert "Tools" not in await typed(world, "stats")


class TestTheCache:
    @pytest.mark.design(146, 159)
    async def test_answers_the_same_person_once_more_without_the_model_where_it_is_on(
        self, start: Start
    ) -> None:
        # With these, two questions of one hour can be the same: else the talk between them is in the prompt.
        same = {"history_budget": 0, "summary_enabled": False, "extraction_enabled": False}
        async with start(**same) as world:
            world.brain.says(
                "first", "second", f"You like {WORD}.", "for Bob", "in her DM", about="Who am I?"
            )
            for answer in ("first", "second"):
                assert await world.says(world.ann, world.general, "Who am I?") == answer
            folder = world.data / "cache" / "responses"
            assert not folder.exists()
            await world.restart(response_cache=True)
            for _ in range(2):
                assert await world.says(world.ann, world.general, "Who am I?") == f"You like {WORD}."
            await world.restart()
            assert await world.says(world.ann, world.general, "Who am I?") == f"You like {WORD}."
            assert await world.says(world.bob, world.general, "Who am I?") == "for Bob"
            assert await world.says(world.ann, world.ann_dm, "Who am I?") == "in her DM"
            assert len([one for one in world.server.requests if is_talk(one)]) == 5
            await typed(world, "erase --yes")
            await world.settle()
            assert [path.name for path in folder.iterdir()] == [f"user-{world.bob.id}.json"]
            await world.env.advance_time(1)
            assert await world.says(world.ann, world.general, "Who am I?") == "ok"
            await card(world, "memory data optout")
            await world.says(world.ann, world.general, "What do I like?")
            assert world.files_with("What do I like?") == []

    @pytest.mark.design(144, 145, 146, 160, 161)
    async def test_is_an_array_by_model_context_and_message_that_loses_the_old_and_the_unused(
        self, start: Start
    ) -> None:
        same = {"history_budget": 0, "summary_enabled": False, "extraction_enabled": False}
        async with start(response_cache=True, cache_max_entries=3, **same) as world:
            folder = world.data / "cache" / "responses"

            def kept() -> list[Any]:
                return list(json.loads((folder / f"user-{world.ann.id}.json").read_text()))

            for number in ("one", "two", "three"):
                world.brain.says(f"Say {number}.", about=f"{number}?")
                await world.says(world.ann, world.general, f"{number}?")
                if number == "one":
                    (entry,) = kept()
                    assert (entry["response"], entry["model"]) == ("Say one.", "sonnet")
                    before, _, message = world.prompt.rpartition("\n\n---\nUser message:\n")
                    minute = f":{world.env.now():%M} (UTC"
                    assert message == "one?" and before.count(minute) == 1
                    system = [one["text"] for one in world.turns()[-1].body["system"]]
                    context = "\n\n".join([*system, before.replace(minute, " (UTC")])
                    hashed = "\x01".join((entry["model"], context, message))
                    assert entry["key"] == fnv1a(hashed.encode())
                await world.env.advance_time(1)
            await world.says(world.ann, world.general, "one?")  # from the cache, so it was used last
            await world.says(world.ann, world.general, "four?")
            assert [one["response"] for one in kept()] == ["Say three.", "Say one.", "ok"]
            # The first three are an hour old now, though one of them was used later.
            await world.env.advance_time(3599)
            await world.says(world.ann, world.general, "five?")
            assert [one["response"] for one in kept()] == ["ok", "ok"]


def fnv1a(data: bytes) -> str:
    """FNV-1a with 64 bits, written a second time."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return f"{found:016x}"
