"""The cache of answers in the whole bot, as it lies on disk: keys, what leaves, and when it is written."""

import json
from typing import Any

import pytest

from discoclaw.core.model import UserTurn
from tests.app.conftest import Start, World
from tests.app.models import Scripted

SAME = {"response_cache": True, "history_budget": 0, "summary_enabled": False, "extraction_enabled": False}
BEFORE_MESSAGE = "\n\n---\nUser message:\n"


def entries(world: World) -> Any:
    path = world.folder / "data" / "cache" / "responses" / f"user-{world.ann.id}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def fnv1a(data: bytes) -> str:
    """FNV-1a with 64 bits, written a second time."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return f"{found:016x}"


async def ask(world: World, what: str) -> None:
    await world.ann.send(world.general, what)
    await world.settle()


class TestTheFile:
    @pytest.mark.design(144, 146)
    async def test_is_an_array_with_a_key_of_model_context_and_message(self, start: Start) -> None:
        model = Scripted("It is blue.", "It is hot.")
        async with start(model, **SAME) as world:
            await ask(world, "What colour is it?")
            (entry,) = entries(world)
            assert (entry["response"], entry["model"]) == ("It is blue.", "sonnet")
            (request,) = model.requests
            (turn,) = request.turns
            assert isinstance(turn, UserTurn)
            before, _, message = turn.text.rpartition(BEFORE_MESSAGE)
            assert message == "What colour is it?"
            minute = f":{world.env.now():%M} (UTC"
            assert before.count(minute) == 1
            context = "\n\n".join(
                [*(block.text for block in request.system), before.replace(minute, " (UTC")]
            )
            assert entry["key"] == fnv1a(b"\x01".join(part.encode() for part in ("sonnet", context, message)))
            await ask(world, "How hot is it?")
            assert {one["response"] for one in entries(world)} == {"It is blue.", "It is hot."}

    @pytest.mark.design(145, 160, 161)
    async def test_loses_what_is_too_old_first_and_then_what_was_used_longest_ago(self, start: Start) -> None:
        answers = ("one", "two", "three", "four", "five")
        async with start(Scripted(*answers), cache_max_entries=3, **SAME) as world:
            for what in ("first?", "second?", "third?"):
                await ask(world, what)
                await world.env.advance_time(1)
            await ask(world, "first?")  # is answered from the cache, and so was used last
            assert world.answer(world.general) == "one"
            await ask(world, "fourth?")
            assert [one["response"] for one in entries(world)] == ["three", "one", "four"]
            # The first three are an hour old now, though one of them was used later.
            await world.env.advance_time(3599)
            await ask(world, "fifth?")
            assert [one["response"] for one in entries(world)] == ["four", "five"]
