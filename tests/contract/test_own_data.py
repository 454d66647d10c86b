"""People take their memories with them, and bring them back: exports and imports in Discord."""

import json
import re
import zipfile
from io import BytesIO
from typing import Any

import pytest

from tests.contract.world import Start, World


async def says(world: World, text: str) -> str:
    """Ann types a command in #general; returns its answer."""
    return await world.says(world.ann, world.general, f"!memory {text}")


async def sent(world: World, words: str, name: str) -> bytes:
    """The file that Ann gets by DM for a command, which has this name."""
    await says(world, words)
    assert world.general.last_message.attachments == []
    (file,) = world.ann_dm.last_message.attachments
    assert file.filename == name
    return bytes(await file.read())


async def imports(world: World, content: Any, name: str = "mine.json") -> str:
    """Ann imports a file, here as JSON or bytes; returns the answer."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return await world.says(world.ann, world.general, "!memory import", attachments=[(name, body)])


def items(*texts: str, **more: Any) -> dict[str, Any]:
    """A file of memories as earlier programs wrote it."""
    return {"version": 1, "updatedAt": 1, "items": [{"kind": "fact", "text": text, **more} for text in texts]}


class TestExport:
    async def test_comes_by_dm_in_each_form_with_private_memories(self, start: Start) -> None:
        async with start() as world:
            assert "nothing to export" in await says(world, "export")
            await says(world, "remember I like tea")
            await world.says(world.ann, world.ann_dm, "!memory remember I live in Oslo")
            document = json.loads(await sent(world, "export", "memories.json"))
            assert world.answer(world.general) == "I sent it to you in a DM (2 memories)."
            assert [one["text"] for one in document["memories"]] == ["I like tea", "I live in Oslo"]
            assert "history" not in document
            for words in ("export markdown --history", "export --format markdown --history"):
                assert b"## History" in await sent(world, words, "memory.md")
            (snapshot, _) = json.loads(await sent(world, "export snapshot", "snapshot.json"))
            assert (snapshot["content"], snapshot["key"]) == ("I like tea", snapshot["id"])
            assert snapshot["last_accessed"] > 0
            await says(world, "export objects")
            (file,) = world.ann_dm.last_message.attachments
            assert "branches.json" in zipfile.ZipFile(BytesIO(await file.read())).namelist()
            nothing = await world.says(world.bob, world.general, "!memory export")
            assert "nothing to export" in nothing

    async def test_with_closed_dms_only_a_slash_command_shows_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=403, code=50007, times=None)
            assert (await says(world, "export")).startswith("I can't send you DMs")
            assert world.general.last_message.attachments == []
            result = await world.ann.slash(world.general, "memory data export", format="json")
            assert result.ephemeral
            assert [file.filename for file in result.response.attachments] == ["memories.json"]


class TestImport:
    @pytest.mark.design(312)
    async def test_brings_memories_back_as_one_change_of_the_persons_own_hand(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            await world.says(world.ann, world.ann_dm, "!memory remember I live in Oslo")
            content = await sent(world, "export json --history", "memories.json")
            await world.env.advance_time(60)
            await says(world, "erase --yes")
            for told in (
                "2 memories added. `!memory undo` takes it back.",
                "0 memories added, 2 known already.",
            ):
                assert await imports(world, content, "memories.json") == told
            assert world.memories(world.ann) == ["I like tea", "I live in Oslo"]
            assert "Oslo" not in await says(world, "show")
            lines = (world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl").read_text().splitlines()
            (commit,) = [one for one in map(json.loads, lines) if one["type"] == "commit"]
            assert commit["metadata"]["by"] == "command"
            assert len(re.findall('"author": ?"stated"', json.dumps(commit))) == len(commit["events"]) == 2
            await says(world, "undo")
            assert world.memories(world.ann) == []

    async def test_of_a_snapshot_leaves_what_is_held(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            (ours,) = json.loads(await sent(world, "export snapshot", "snapshot.json"))
            entries = [ours | {"content": "I like coffee"}, {"key": "pet", "content": "I have a cat"}]
            for told in ("1 memory added, 1 known already.", "0 memories added, 2 known already."):
                assert (await imports(world, entries, "snapshot.json")).startswith(told)
            assert world.memories(world.ann) == ["I like tea", "I have a cat"]
            assert "nothing is imported" in await imports(world, [{"key": "a"}])

    async def test_keeps_private_what_is_personal_confidential_or_secret(self, start: Start) -> None:
        key = "ghp_" + "a1" * 20
        async with start() as world:
            told = await imports(world, items("I like tea", f"my key is {key}"), "my diagnosis.json")
            assert told.startswith("2 memories added")
            assert world.files_with(key) == []
            for words in ("log", "graph timeline", "undo"):
                assert "diagnosis" not in await says(world, words)
            given = items("I take pills against anxiety", source={"type": "summary", "guildId": "5"})
            file = ("mine.json", json.dumps(given).encode())
            taken = await world.ann.slash(world.general, "memory data import", file=file)
            assert taken.response.content.startswith("1 memory added")
            assert "pills" not in await says(world, "show")
            export = json.loads(await sent(world, "export", "memories.json"))
            pin = {"id": "durable-12345678", "kind": "fact", "text": "My PIN is odd"}
            export["memories"] = [pin | {"sensitivity": "confidential"}]
            assert "1 memory added" in await imports(world, export)
            told = await says(world, "forget My PIN is odd")
            assert told == "Only a private memory matches that. Use `/memory forget`, or ask me in a DM."
            why = await world.says(world.ann, world.ann_dm, "!memory why My PIN is odd")
            assert "confidential" in why
            told = await world.says(world.ann, world.ann_dm, "!memory forget My PIN is odd")
            assert told == "Forgotten: My PIN is odd"

    async def test_of_what_is_no_export_changes_nothing(self, start: Start) -> None:
        async with start(max_items=5) as world:
            await says(world, "remember I like tea")
            many = items(*(f"no {number}" for number in range(5)))
            for name, content, why in (
                ("a.json", b"nonsense", "is not JSON"),
                ("a.json", b"{}", "can't be imported; import a memories.json"),
                ("big.json", b" " * (8 * 1024 * 1024 + 1), "too large"),
                ("a.zip", b"PK\x03\x04broken", "is a damaged zip file"),
                ("a.json", many, "1 too many"),
                ("12.json", many, "none of"),
            ):
                assert why in await imports(world, content, name), name
            assert world.memories(world.ann) == ["I like tea"]
            assert await says(world, "import") == (
                "Attach a file. Please use it like this: `!memory import (with a file)`"
            )
            assert world.env.errors == []
