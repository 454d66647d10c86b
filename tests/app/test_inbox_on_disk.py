"""Which conversations are on disk: all, and beside them those that changed since; none of who wants none."""

import json
from typing import Any

import pytest

from discoclaw.core.model import ModelRequest
from discoclaw.memory.conversations import inboxes
from discoclaw.memory.conversations.inboxes import MOST_RECENT
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.counting import BYTES, WRITTEN, counted


async def many_talk(world: World) -> None:
    """More conversations than are written each time, the first of which is Ann's DM."""
    await world.ann.send_dm("hello")
    for number in range(MOST_RECENT + 5):
        await world.bob.send(world.guild.create_text_channel(f"room-{number}"), "hello")
    await world.settle()


def text(world: World, which: str = "") -> dict[str, Any]:
    path = world.folder / "data" / "memory" / "cursors" / f"inbox{which}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def dm(world: World) -> str:
    return f"discord:dm:{world.ann.id}"


async def test_a_write_has_only_what_changed_and_a_restart_finds_both(start: Start) -> None:
    async with start(Scripted()) as world:
        await many_talk(world)
        await world.restart()
        await world.ann.send_dm("how are you?")  # the first write after a start is of all
        await world.settle()
        whole = text(world)
        asked = await world.ann.send_dm("and now?")
        await world.settle()
        assert text(world) == whole and len(whole) > MOST_RECENT
        assert len(text(world, "_recent")) <= MOST_RECENT
        assert str(asked.id) in text(world, "_recent")[dm(world)]["handled"]
        model = Scripted()
        await world.restart(model)
        await world.settle()
        assert not model.requests  # nothing is answered twice
        await world.bob.send(world.dev, "hello")
        await world.settle()
        assert str(asked.id) in (text(world) | text(world, "_recent"))[dm(world)]["handled"]


async def test_who_opts_out_leaves_both_at_once(start: Start) -> None:
    async with start(Scripted()) as world:
        await many_talk(world)
        assert dm(world) in text(world) | text(world, "_recent")
        await world.ann.send(world.general, "!memory optout")
        await world.settle()
        assert dm(world) not in text(world) | text(world, "_recent")
        await world.ann.send_dm("are you there?")
        await world.settle()
        assert dm(world) not in text(world) | text(world, "_recent")


async def test_who_is_erased_leaves_both(start: Start) -> None:
    async with start(Scripted()) as world:
        await many_talk(world)
        await world.ann.send_dm("how are you?")
        await world.settle()
        assert dm(world) in text(world) | text(world, "_recent")
        await world.memory.erase(f"user-{world.ann.id}", asked_at=world._now())
        await world.settle()
        assert dm(world) not in text(world) | text(world, "_recent")


async def test_the_model_is_asked_before_the_question_is_written(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "BEHIND_S", 3_600)  # so only an answer has it written
    model = Scripted()
    async with start(model) as world:
        await world.ann.send_dm("hello")
        await world.settle()
        before = list[tuple[int, int]]()

        def asked(request: ModelRequest) -> str:
            before.append((counts.done[BYTES], counts.done[WRITTEN]))
            return "Yes, I am here."

        model.words = [asked]
        with counted() as counts:
            question = await world.ann.send_dm("are you there?")
            await world.settle()
        assert before == [(0, 0)]
        assert text(world)[dm(world)]["open"] == []
        assert str(question.id) in text(world)[dm(world)]["handled"]
