"""People own their data: export, import, erase, opting out and in."""

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from discoclaw.memory.exchange.layout import FORMAT
from tests.app.conftest import Start, World
from tests.app.models import Scripted


async def says(world: World, person: Any, text: str) -> str:
    await person.send(world.general, f"!memory {text}")
    return world.answer(world.general)


async def texts(world: World, person: Any) -> list[str]:
    """What holds of a person."""
    view = await world.memory.view(f"user-{person.id}")
    return [item.text for item in view.active()]


def canary(folder: Path, word: str) -> list[str]:
    """The files below a folder that hold a word."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and word.encode() in path.read_bytes()
    ]


class TestExport:
    async def test_comes_by_dm_with_private_items(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await world.ann.send_dm("!memory remember I live in Oslo")
            assert await says(world, world.ann, "export") == "I sent it to you in a DM (2 memories)."
            assert world.general.last_message.attachments == []
            (file,) = world.ann_dm.last_message.attachments
            assert file.filename == "memories.json"
            document = json.loads(await file.read())
            assert [memory["text"] for memory in document["memories"]] == ["I like tea", "I live in Oslo"]
            assert "history" not in document

    @pytest.mark.parametrize("words", ["export markdown --history", "export --format markdown --history"])
    async def test_other_forms_and_the_history_on_request(self, start: Start, words: str) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await says(world, world.ann, words)
            (file,) = world.ann_dm.last_message.attachments
            assert file.filename == "memory.md"
            assert b"## History" in await file.read()

    async def test_objects_are_a_zip(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await world.ann.send_dm("!memory export objects")
            (file,) = world.ann_dm.last_message.attachments
            names = zipfile.ZipFile(BytesIO(await file.read())).namelist()
            assert "branches.json" in names

    async def test_with_closed_dms_only_a_slash_command_shows_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=403, code=50007, times=None)
            assert (await says(world, world.ann, "export")).startswith("I can't send you DMs")
            assert world.general.last_message.attachments == []
            result = await world.ann.slash(world.general, "memory data export", format="json")
            assert result.ephemeral
            assert [file.filename for file in result.response.attachments] == ["memories.json"]

    async def test_of_nothing_there_is_none_and_nobody_gets_anothers(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            assert "nothing to export" in await says(world, world.bob, "export")


class TestImport:
    async def exported(self, world: World) -> bytes:
        await world.ann.slash(world.general, "memory data export", format="json", history=True)
        return bytes(await world.ann_dm.last_message.attachments[0].read())

    @pytest.mark.design(312)
    async def test_brings_items_as_one_commit_of_the_persons_own_hand(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await world.ann.send_dm("!memory remember I live in Oslo")
            content = await self.exported(world)
            await says(world, world.ann, "erase --yes")
            await world.ann.send(world.general, "!memory import", attachments=[("memories.json", content)])
            assert world.answer(world.general) == "2 memories added. `!memory undo` takes it back."
            assert "Oslo" not in await says(world, world.ann, "show")
            assert await texts(world, world.ann) == ["I like tea", "I live in Oslo"]
            history = await world.memory.history(f"user-{world.ann.id}")
            (commit,) = history.commits.values()
            assert commit.metadata["by"] == "command"
            assert {event.ext["facets"]["author"] for event in commit.events} == {"stated"}
            await world.ann.send(world.general, "!memory import", attachments=[("memories.json", content)])
            assert world.answer(world.general) == "0 memories added, 2 known already."

    async def test_a_snapshot_goes_out_and_in_and_leaves_what_is_held(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await says(world, world.ann, "export snapshot")
            (file,) = world.ann_dm.last_message.attachments
            assert file.filename == "snapshot.json"
            (ours,) = json.loads(await file.read())
            assert (ours["content"], ours["key"], ours["last_accessed"] > 0) == (
                "I like tea",
                ours["id"],
                True,
            )
            entries = [ours | {"content": "I like coffee"}, {"key": "pet", "content": "I have a cat"}]
            for told in ("1 memory added, 1 known already.", "0 memories added, 2 known already."):
                content = json.dumps(entries).encode()
                await world.ann.send(
                    world.general, "!memory import", attachments=[("snapshot.json", content)]
                )
                assert world.answer(world.general).startswith(told)
            assert await texts(world, world.ann) == ["I like tea", "I have a cat"]
            await world.ann.send(world.general, "!memory import", attachments=[("s.json", b'[{"key": "a"}]')])
            assert "nothing is imported" in world.answer(world.general)

    async def test_what_the_file_is_called_is_nobody_elses_business(self, start: Start) -> None:
        async with start() as world:
            body = {"version": 1, "updatedAt": 1, "items": [{"kind": "fact", "text": "I like tea"}]}
            quiet = [("my diagnosis.json", json.dumps(body).encode())]
            await world.ann.send(world.general, "!memory import", attachments=quiet)
            assert world.answer(world.general).startswith("1 memory added")
            for words in ("log", "graph timeline", "undo"):
                assert "diagnosis" not in await says(world, world.ann, words)

    async def test_what_a_file_says_is_confidential_can_be_forgotten_in_private(self, start: Start) -> None:
        async with start() as world:
            item = {"id": "durable-12345678", "kind": "fact", "text": "My PIN is odd"}
            memories = [item | {"sensitivity": "confidential"}]
            content = json.dumps({"format": FORMAT, "version": 1, "memories": memories}).encode()
            await world.ann.send(world.general, "!memory import", attachments=[("memories.json", content)])
            assert "1 memory added" in world.answer(world.general)
            told = await says(world, world.ann, "forget My PIN is odd")
            assert told == "Only a private memory matches that. Use `/memory forget`, or ask me in a DM."
            await world.ann.send_dm("!memory why My PIN is odd")
            assert "confidential" in world.answer(world.ann_dm)
            await world.ann.send_dm("!memory forget My PIN is odd")
            assert world.answer(world.ann_dm) == "Forgotten: My PIN is odd"

    async def test_what_is_personal_and_given_unseen_stays_unseen(self, start: Start) -> None:
        async with start() as world:
            texts_ = ("I take pills against anxiety", "I like tea")
            told = {"kind": "fact", "source": {"type": "summary", "guildId": "5"}}
            body = {"version": 1, "updatedAt": 1, "items": [{**told, "text": text} for text in texts_]}
            file = ("mine.json", json.dumps(body).encode())
            taken = await world.ann.slash(world.general, "memory data import", file=file)
            assert taken.response.content.startswith("2 memories added")
            shown = await says(world, world.ann, "show")
            assert "I like tea" in shown
            assert "pills" not in shown

    async def test_secrets_are_taken_out(self, start: Start) -> None:
        async with start() as world:
            key = "ghp_" + "a1" * 20
            body = {"version": 1, "updatedAt": 1, "items": [{"kind": "fact", "text": f"my key is {key}"}]}
            content = json.dumps(body).encode()
            await world.ann.send(world.general, "!memory import", attachments=[("mine.json", content)])
            assert canary(world.folder, key) == []
            assert len(await texts(world, world.ann)) == 1

    async def test_what_is_no_export_changes_nothing(self, start: Start) -> None:
        async with start(max_items=5) as world:
            await says(world, world.ann, "remember I like tea")
            many = {
                "version": 1,
                "updatedAt": 1,
                "items": [{"kind": "fact", "text": f"no {n}"} for n in range(5)],
            }
            for name, content, why in (
                ("a.json", b"nonsense", "is not JSON"),
                ("a.json", b"{}", "can't be imported; import a memories.json"),
                ("big.json", b" " * (8 * 1024 * 1024 + 1), "too large"),
                ("a.zip", b"PK\x03\x04broken", "is a damaged zip file"),
                ("a.json", json.dumps(many).encode(), "1 too many"),
                ("12.json", json.dumps(many).encode(), "none of"),
            ):
                await world.ann.send(world.general, "!memory import", attachments=[(name, content)])
                assert why in world.answer(world.general), name
            assert await texts(world, world.ann) == ["I like tea"]
            await says(world, world.ann, "import")
            assert world.answer(world.general) == (
                "Attach a file. Please use it like this: `!memory import (with a file)`"
            )
            assert world.env.errors == []


class TestErase:
    async def test_asks_with_buttons_that_outlive_a_restart(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like zebras")
            await world.env.advance_time(60)
            question = await says(world, world.ann, "erase")
            assert "That is 1 memory, 1 change" in question
            message = world.general.last_message
            refused = await world.bob.click(message, label="Erase everything")
            assert refused.ephemeral
            assert await texts(world, world.ann) == ["I like zebras"]
            await world.restart()
            await world.ann.click(message, label="Erase everything")
            assert world.answer(world.general).startswith("I erased everything I remembered about you.")
            assert world.general.last_message.components == []
            assert canary(world.folder, "zebras") == []
            assert await texts(world, world.ann) == []

    async def test_keeping_keeps_and_a_second_press_finds_it_done(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like zebras")
            await world.env.advance_time(60)
            for _ in range(2):
                await says(world, world.ann, "erase")
            *_, first, _, second = world.general.history()
            await world.ann.click(first, label="Keep everything")
            assert world.shown(world.general)[-3] == "I erased nothing."
            assert await texts(world, world.ann) == ["I like zebras"]
            await says(world, world.ann, "erase --yes")
            await says(world, world.ann, "remember I like lions")
            result = await world.ann.click(second, label="Erase everything")
            assert [told.content for told in result.followups] == ["That is done already."]
            assert await texts(world, world.ann) == ["I like lions"]

    async def test_only_owners_may_erase_somebody_else_and_see_nothing_of_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like zebras")
            await world.env.advance_time(60)
            assert "only my owners" in (await says(world, world.bob, f"erase {world.ann.id}")).lower()
            assert "isn't a user id" in await says(world, world.bob, "erase everything")
            await world.restart(owners=frozenset({str(world.bob.id)}))
            question = await says(world, world.bob, f"erase <@{world.ann.id}> --yes")
            assert f"Erase everything I remember about {world.ann.id}?" in question
            assert "item" not in question
            message = world.general.last_message
            await world.restart(owners=frozenset())
            result = await world.bob.click(message, label="Erase everything")
            assert "one of my owners" in result.followups[0].content
            assert await texts(world, world.ann) == ["I like zebras"]
            await world.restart(owners=frozenset({str(world.bob.id)}))
            await says(world, world.bob, f"erase {world.ann.id}")
            await world.bob.click(world.general.last_message, label="Erase everything")
            assert await texts(world, world.ann) == []


class TestOptingOut:
    async def test_stops_learning_and_recall_and_says_what_stays(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await says(world, world.ann, "remember I like zebras")
            answer = await says(world, world.ann, "optout")
            assert "stays on disk, unused" in answer
            assert "`!memory erase`" in answer
            model.facts = ['{"upserts": [{"kind": "fact", "text": "User likes lions."}]}']
            await world.ann.send(world.general, "which zebras and lions do I like?")
            await world.settle()
            assert "I like zebras" not in model.prompt
            assert await texts(world, world.ann) == ["I like zebras"]
            await world.restart()
            assert (await says(world, world.ann, "show")).startswith("**You have opted out**")

    @pytest.mark.parametrize(
        "words",
        ["remember I like lions", "edit I like zebras => no", "merge main", "consolidate", "create-branch x"],
    )
    async def test_what_adds_to_memory_is_refused_with_the_way_back(self, start: Start, words: str) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like zebras")
            await says(world, world.ann, "optout")
            assert await says(world, world.ann, words) == (
                "You have opted out of memory, so I add nothing to it; `!memory optin` turns it on again."
            )
            assert await texts(world, world.ann) == ["I like zebras"]

    async def test_opting_in_brings_it_back(self, start: Start) -> None:
        async with start() as world:
            assert (await says(world, world.ann, "optin")).startswith("You haven't opted out")
            await world.ann.slash(world.general, "memory data optout")
            assert (await says(world, world.ann, "optout")).startswith("You have opted out already.")
            assert (await says(world, world.ann, "optin")).startswith("Welcome back")
            assert await says(world, world.ann, "remember I like lions") == "Remembered: I like lions"
