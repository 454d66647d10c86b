"""Answers that Discord does not take for a while, in every store, and what of them may be on disk."""

import pytest

from discoclaw.memory.conversations.undelivered import TAKEN_BACK
from tests.app.conftest import Start, World
from tests.app.erasing import found
from tests.app.models import Scripted

pytestmark = pytest.mark.every_store
PROMPT = "What do I like?"


async def asks_in_vain(world: World) -> None:
    """Ann asks something, and Discord takes no answer to it in that channel."""
    path = f"/channels/{world.general.id}/messages"
    world.env.inject_error("POST", path, status=503, times=None)
    await world.ann.send(world.general, PROMPT)
    await world.settle()
    assert PROMPT in world.shown(world.general)[-1]


class TestAnAnswerThatDiscordDidNotTake:
    async def test_is_delivered_by_the_next_life_which_asks_no_model(self, start: Start, store: str) -> None:
        async with start(Scripted("You like zithers."), store=store) as world:
            await asks_in_vain(world)
            await world.restart(meanwhile=world.env.backend.faults.clear)
            await world.settle()
            assert world.shown(world.general)[1:] == ["You like zithers."]
            assert len(world.model.requests) == 1
            await world.ann.send(world.general, "What else?")
            assert "You like zithers." in world.model.prompt
            await world.restart()
            await world.settle()
            assert world.shown(world.general)[1:] == ["You like zithers.", "What else?", "ok"]

    async def test_is_replaced_on_disk_too_when_something_in_it_is_taken_back(
        self, start: Start, store: str
    ) -> None:
        async with start(Scripted("You like zithers."), store=store) as world:
            await world.ann.send_dm("!memory remember I like zithers")
            await asks_in_vain(world)
            await world.ann.send_dm("!memory forget I like zithers")
            await world.settle()
            assert found(world.folder, store) == []
            await world.restart(meanwhile=world.env.backend.faults.clear)
            await world.settle()
            assert world.shown(world.general)[1:] == [TAKEN_BACK]

    async def test_is_gone_with_its_person(self, start: Start, store: str) -> None:
        async with start(Scripted("You like zithers."), store=store) as world:
            await asks_in_vain(world)
            await world.ann.send_dm("!memory erase --yes")
            await world.settle()
            assert found(world.folder, store) == []
            await world.restart(meanwhile=world.env.backend.faults.clear)
            await world.settle()
            assert not any("zithers" in one for one in world.shown(world.general))

    async def test_leaves_the_disk_when_its_person_opts_out(self, start: Start, store: str) -> None:
        async with start(Scripted("You like zithers."), store=store) as world:
            await asks_in_vain(world)
            await world.ann.send_dm("!memory optout")
            await world.settle()
            assert found(world.folder, store) == []
