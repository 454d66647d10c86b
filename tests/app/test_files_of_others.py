"""What files of other programs tell counts as said in private, unless they name a server for it."""

import json
from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import said

SERVER = {"guildId": "90", "channelName": "dev"}
KEPT = "(From files that don't say where you said it: 1 memory, which I use in our DMs only"


def entry(kind: str, text: str, source: dict[str, Any]) -> dict[str, Any]:
    """An item as the TypeScript bot wrote it."""
    return {"kind": kind, "text": text, "source": source, "hitCount": 1}


TOLD = [
    entry("fact", "User plays the theremin.", {"type": "summary"}),
    entry("fact", "User plays the banjo.", {"type": "summary", **SERVER}),
    entry("preference", "User prefers short theremin talk.", {"type": "manual"}),
    entry("project", "User builds a theremin.", {"type": "manual", "channelId": "1"}),
]


def place(world: World, *items: dict[str, Any], version: int = 2) -> None:
    path = world.durable(world.ann)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": version, "updatedAt": 9, "items": list(items)}))


async def take(world: World, *items: dict[str, Any]) -> str:
    """The answer to an import of a durable file in a channel."""
    content = json.dumps({"version": 2, "updatedAt": 9, "items": list(items)}).encode()
    await world.ann.send(world.general, "!memory import", attachments=[("mine.json", content)])
    return world.answer(world.general)


def read(item: dict[str, Any]) -> str:
    """What an item says to its person."""
    plays = item["text"].replace("User ", "You ")
    return plays.replace(" plays ", " play ").replace(" prefers ", " prefer ").replace(" builds ", " build ")


async def says(world: World, words: str) -> str:
    await world.ann.send(world.general, f"!memory {words}")
    return world.answer(world.general)


class TestADurableFileThatIsTakenOver:
    @pytest.mark.parametrize("version", [1, 2])
    async def test_stays_out_of_channels_as_far_as_it_was_not_said_in_one(
        self, start: Start, version: int
    ) -> None:
        model = Scripted()
        async with start(model) as world:
            place(world, *TOLD, version=version)
            await world.restart(memory_channel=str(world.dev.id))
            await world.ann.send(world.general, "what do I play, the theremin or the banjo?")
            await world.settle()
            (pinned,) = [message.content for message in world.dev.pinned_messages()]
            for text, who in ((model.prompt, "User"), (pinned, "ann")):
                assert f"{who} plays the banjo." in text
                assert f"{who} prefers short theremin talk." in text
                assert "plays the theremin" not in text
                assert "builds a theremin" not in text
            await world.ann.send_dm("what do I play, the theremin or the banjo?")
            assert "User plays the theremin." in model.prompt

    @pytest.mark.parametrize(
        ("rule", "open_"), [("strict", {1}), ("balanced", {1, 2}), ("open", {0, 1, 2, 3})]
    )
    async def test_is_as_private_as_the_rule_for_direct_messages_says(
        self, start: Start, rule: str, open_: set[int]
    ) -> None:
        async with start(dm_privacy=rule) as world:
            place(world, *TOLD)
            shown = await says(world, "show")
            assert {number for number, one in enumerate(TOLD) if read(one) in shown} == open_

    async def test_its_person_is_told_and_shares_all_of_it_at_once(self, start: Start) -> None:
        async with start() as world:
            place(world, *TOLD)
            await world.ann.send_dm("!memory remember I am afraid of geese")
            told = KEPT.replace("1 memory", "2 memories")
            assert told in await says(world, "show")
            slash = await world.ann.slash(world.general, "memory show")
            assert told in said(slash.response)
            assert await says(world, "share imported") == (
                "From now on I use 2 memories from files everywhere. `!memory undo` takes it back."
            )
            shown = await says(world, "show")
            assert "You play the theremin." in shown
            assert "From files" not in shown
            assert "geese" not in shown
            assert "nothing that matches “imported”" in await says(world, "share imported")
            await says(world, "undo")
            assert "You play the theremin." not in await says(world, "show")

    async def test_keeps_what_is_personal_private_although_it_was_said_in_a_channel(
        self, start: Start
    ) -> None:
        async with start() as world:
            place(world, TOLD[0], entry("fact", "User nimmt Sertralin.", {"type": "summary", **SERVER}))
            assert KEPT in await says(world, "show")
            await says(world, "share imported")
            shown = await says(world, "show")
            assert "You play the theremin." in shown
            assert "Sertralin" not in shown
            await world.ann.send_dm("!memory show")
            assert "ann nimmt Sertralin." in world.answer(world.ann_dm)

    async def test_an_edit_by_hand_is_no_file_of_another_program(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            path = world.durable(world.ann)
            ours = json.loads(path.read_text())
            ours["items"][0]["text"] = "I like green tea"
            ours["items"].append({"kind": "fact", "text": "I play the theremin"})
            path.write_text(json.dumps(ours))
            shown = await says(world, "show")
            assert "I like green tea" in shown
            assert "I play the theremin" in shown


class TestAnImport:
    async def test_says_how_much_of_it_is_private_and_how_to_share_that(self, start: Start) -> None:
        async with start() as world:
            answer = await take(world, *TOLD[:3])
            assert answer.startswith("3 memories added.")
            assert KEPT in answer
            assert "!memory share imported" in answer
            assert "theremin." not in await says(world, "show")
            await says(world, "share imported")
            assert "You play the theremin." in await says(world, "show")

    async def test_leaves_open_what_is_known_to_be_open(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember User plays the theremin.")
            assert "known already" in await take(world, TOLD[0])
            await take(world, TOLD[3])
            await says(world, "share imported")
            await take(world, TOLD[3])
            shown = await says(world, "show")
            assert "You play the theremin." in shown
            assert "You build a theremin." in shown

    @pytest.mark.parametrize("form", ["json", "snapshot", "objects"])
    async def test_of_our_own_export_leaves_everything_as_private_as_it_was(
        self, start: Start, form: str
    ) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            await world.ann.send_dm("!memory remember I am afraid of geese")
            await says(world, f"export {form}")
            (file,) = world.ann_dm.last_message.attachments
            content = bytes(await file.read())
            await says(world, "erase --yes")
            await world.env.advance_time(1)  # what was said before an erasing counts no more
            await world.ann.send(world.general, "!memory import", attachments=[(file.filename, content)])
            assert world.answer(world.general).startswith("2 memories added.")
            assert "From files" not in world.answer(world.general)
            items = (await world.memory.view(f"user-{world.ann.id}")).active()
            assert {item.text: item.facets.sensitivity for item in items} == {
                "I like tea": "normal",
                "I am afraid of geese": "private",
            }
