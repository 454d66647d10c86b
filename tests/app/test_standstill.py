"""Whoever looks at their memory is told that nothing new comes in, since when and why."""

import re

import pytest

from tests.app.conftest import Start, World
from tests.app.of_refused_fields import IS_LOOP, brain
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, MessagesServer, Received

SMALL = {"summary_model": "old-small", "durable_model": "old-small", "summary_every": 1}
RETIRED = api.failure(404, "not_found_error", "model: old-small")


def retired(received: Received) -> Behaviour:
    return RETIRED if IS_LOOP in received.system else brain(received)


def rambling(received: Received) -> Behaviour:
    return api.text("I'm sorry, I can't.") if IS_LOOP in received.system else brain(received)


async def say(world: World) -> None:
    await world.ann.send(world.general, "I drink tea.")
    await world.settle()


async def told(world: World, command: str) -> list[str]:
    """What a command says about a standstill, as a text in a channel and as a card in a DM."""
    await world.ann.send(world.general, f"!memory {command}")
    await world.ann.send_dm(f"!memory {command}")
    found = [re.findall(r"\*\*I stopped .*", world.answer(one)) for one in (world.general, world.ann_dm)]
    assert found[0] == found[1]
    return found[0]


class TestARetiredSmallModel:
    @pytest.mark.parametrize("command", ["stats", "show"])
    async def test_is_told_to_whoever_looks_at_their_memory_until_there_is_another(
        self, start: Start, server: MessagesServer, command: str
    ) -> None:
        server.default = brain
        async with start(base_url=server.base_url, **SMALL) as world:
            await say(world)
            assert await told(world, command) == []
            await world.env.advance_time(60)
            server.default, since = retired, int(world.env.now().timestamp())
            await say(world)
            await world.env.advance_time(3600)
            await say(world)
            learning, summing_up = await told(world, command)
            assert learning == (
                f"**I stopped learning from what you say <t:{since}:R>**: I need a small model for it, and "
                "its server doesn't have it any more. An admin has to look after that. What you say waits "
                "until then."
            )
            assert f"**I stopped writing summaries <t:{since}:R>**" in summing_up
            server.default = brain
            await say(world)
            assert await told(world, command) == []

    async def test_is_told_with_its_setting_to_an_owner(self, start: Start, server: MessagesServer) -> None:
        server.default = retired
        async with start(base_url=server.base_url, **SMALL) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await say(world)
            learning, summing_up = await told(world, "stats")
            assert "Check `DISCOCLAW_DURABLE_MODEL`; `discoclaw doctor` says more." in learning
            assert "Check `DISCOCLAW_SUMMARY_MODEL`" in summing_up


class TestASmallModelThatMakesNothingOfWhatIsSaid:
    async def test_is_told_after_three_runs_in_a_row(self, start: Start, server: MessagesServer) -> None:
        async with start(base_url=server.base_url, **SMALL) as world:
            server.default = rambling
            await say(world)
            await say(world)
            server.default = brain
            await say(world)
            server.default = rambling
            await say(world)
            await say(world)
            assert await told(world, "stats") == []
            await say(world)
            learning, _ = await told(world, "stats")
            assert "and its answers can't be used. An admin" in learning
