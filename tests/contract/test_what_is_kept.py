"""The files about people: their shape, what commands and learning do to them, and limits."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import discord
import pytest

from tests.contract.shown import MAY, durable, stored
from tests.contract.world import Start, World
from tests.servers.messages_api import failure

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "durable.json").read_text(encoding="utf-8"))
FIELDS = ["id", "kind", "text", "tags", "status", "source", "createdAt", "updatedAt"]
KINDS = ["preference", "fact", "project", "constraint", "person", "tool", "workflow"]
QUIET = {"summary_enabled": False, "extraction_enabled": False}


def now(world: World) -> int:
    return int(world.env.now().timestamp() * 1000)


def file(world: World) -> Any:
    return json.loads(world.durable(world.ann).read_text(encoding="utf-8"))


def items(world: World) -> dict[str, Any]:
    """The items of Ann's durable file, by id."""
    return {item["id"]: item for item in world.items(world.ann)}


def rolling(world: World) -> dict[str, Any]:
    """The files with summaries, by name."""
    folder = world.data / "memory" / "rolling"
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


class TestTheDurableFile:
    @pytest.mark.design(198, 199, 201, 202, 203, 230, 231, 323, 327, 339)
    async def test_has_this_shape_keeps_what_was_forgotten_and_revives_it_when_it_is_said_again(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            begun = now(world)
            for case in GOLDEN["ids"]:
                if case["kind"] == "fact" and case["text"] == case["text"].strip():
                    await world.remember(world.ann, case["text"])
                    assert case["id"] in items(world)
            assert list(file(world)) == ["version", "updatedAt", "items"]
            newest = max(item["updatedAt"] for item in items(world).values())
            assert (file(world)["version"], file(world)["updatedAt"]) == (1, newest)
            assert all(list(item) == FIELDS for item in items(world).values())
            first = items(world)["durable-2ed36192"]
            assert first == {
                "id": "durable-2ed36192",
                "kind": "fact",
                "text": "I prefer TypeScript",
                "tags": [],
                "status": "active",
                "source": {"type": "manual"},
                "createdAt": begun,
                "updatedAt": begun,
            }

            async def typed(words: str) -> Any:
                await world.env.advance_time(60)
                await world.says(world.ann, world.general, f"!memory {words}")
                return items(world)["durable-2ed36192"]

            rust = "I prefer Rust and nothing else"
            changed = {**first, "text": rust, "updatedAt": now(world) + 60_000}
            assert await typed(f"edit 2ed36192 => {rust}") == changed
            await world.says(world.ann, world.general, "which Rust?")
            assert rust in durable(world.prompt)
            assert (await typed("forget Rust and"))["status"] == "active"  # 8 of 30 characters
            gone = {**changed, "status": "deprecated", "updatedAt": now(world) + 60_000}
            assert await typed("forget prefer Rust and nothing") == gone
            await world.says(world.ann, world.dev, "which Rust?")
            assert "Rust" not in world.prompt.partition("User message:")[0]
            tea = [
                await typed(words) and items(world) for words in ("remember I like tea", "forget I like tea")
            ]
            (before,) = [one for one in tea[0].values() if one["text"] == "I like tea"]
            await typed("remember I like tea")
            assert items(world)[before["id"]] == {**before, "updatedAt": now(world)}

    @pytest.mark.design(192, 197, 334)
    async def test_is_one_for_each_person_and_a_summary_is_one_for_each_conversation(
        self, start: Start
    ) -> None:
        async with start(summary_every=1) as world:
            parent = world.env.bot.get_channel(world.general.id)
            made = await parent.create_thread(name="boats", type=discord.ChannelType.public_thread)
            await world.settle()
            thread = next(one for one in world.general.threads if one.id == made.id)
            await world.remember(world.ann, "I like tea")
            await world.says(world.ann, world.ann_dm, "!memory remember I like cake")
            begun = now(world)
            for place in (world.general, thread, world.ann_dm):
                await world.says(world.ann, place, "hello")
            folder = world.durable(world.ann).parent
            assert [path.name for path in folder.glob("*.json")] == [f"{world.ann.id}.json"]
            assert set(world.memories(world.ann)) == {"I like tea", "I like cake"}
            assert rolling(world).keys() == {
                f"discord:channel:{world.general.id}.json",
                f"discord:thread:{thread.id}.json",
                f"discord:dm:{world.ann.id}.json",
            }
            for one in rolling(world).values():
                assert one["summary"] == "They talked." and begun <= one["updatedAt"] <= now(world)

    @pytest.mark.design(228, 248)
    async def test_over_the_limit_loses_the_oldest_forgotten_first_and_then_the_oldest(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            boats = [("fact", f"boat {number}", {"updatedAt": MAY + number}) for number in range(200)]
            first, *others = stored(world, *boats)
            await world.remember(world.ann, "I like tea")
            assert len(items(world)) == 200
            assert {*others} <= items(world).keys() and first not in items(world)
            await world.says(world.ann, world.general, "!memory erase --yes")
            await world.env.advance_time(2)
            await world.restart(max_items=3)

            async def texts(command: str) -> list[str]:
                await world.env.advance_time(60)
                await world.says(world.ann, world.general, f"!memory {command}")
                return sorted(item["text"] for item in items(world).values())

            for name in ("one boat", "two boats", "three boats"):
                await texts(f"remember {name}")
            await texts("forget three boats")
            assert await texts("remember four boats") == ["four boats", "one boat", "two boats"]
            assert await texts("remember five boats") == ["five boats", "four boats", "two boats"]
            later = [("fact", f"boat {number}", {"updatedAt": 2 * MAY}) for number in range(3)]
            stored(world, *later, person=world.bob)  # others that are dated in the future
            await world.says(world.bob, world.general, "!memory remember I like tea")
            assert len(world.items(world.bob)) == 3 and "I like tea" in world.memories(world.bob)


class TestWhatLearningDoesToIt:
    @pytest.mark.design(200, 219, 221, 222, 223, 224, 225, 226, 227, 338)
    async def test_it_adds_changes_and_sets_aside_in_the_promised_shape(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            turns = iter(range(100))

            async def told(*upserts: dict[str, Any], gone: tuple[dict[str, Any], ...] = ()) -> bytes:
                """Ann says something, from which this is learned; returns the file. A minute passes first."""
                await world.env.advance_time(60)
                words = f"so it is, turn {next(turns)}."
                world.brain.learns(*upserts, about=words, deprecations=list(gone))
                await world.says(world.ann, world.general, words)
                return world.durable(world.ann).read_bytes()

            for some in (KINDS[:5], KINDS[5:]):  # no more than five count at once
                before = await told(*({"kind": kind, "text": f"Boat and {kind}"} for kind in some))
            assert [item["kind"] for item in items(world).values()] == KINDS
            assert await told({"kind": "secret", "text": "Boat and secret"}) == before
            assert await told({"id": "i99", "kind": "tool", "text": "uses TypeScript"}) == before
            six = [{"kind": "fact", "text": f"Counts to {number}"} for number in range(6)]
            await told(*six)
            assert len(items(world)) == 7 + 5
            schema = world.background("upserts")[-1].system
            for part in ('{"upserts": [', '"source": "m1", "quote": "', '"deprecations": [', '"reason": "'):
                assert part in schema

            said = now(world) + 60_000
            await told({"id": None, "kind": " TOOL ", "text": "  uses   TypeScript "})
            new = items(world)["durable-79d63977"]
            assert (new["kind"], new["text"], new["createdAt"]) == ("tool", "uses TypeScript", said)
            message = world.general.history()[-2]
            source = {"type": "discord", "channelId": str(world.general.id), "messageId": str(message.id)}
            assert new["source"] == source
            await told({"kind": "tool", "text": "Uses TYPESCRIPT", "tags": ["TS", "Node"]})
            assert items(world)["durable-79d63977"]["tags"] == ["ts", "node"]
            await told({"id": "uses TypeScript", "kind": "tool", "text": "uses Rust", "tags": ["rs"]})
            message = world.general.history()[-2]
            known = items(world)
            assert known["durable-79d63977"] == {
                **new,
                "text": "uses Rust",
                "tags": ["rs"],
                "source": {**source, "messageId": str(message.id)},
                "updatedAt": file(world)["updatedAt"],
            }
            await told(gone=({"id": "uses Rust", "reason": "over"},))
            after = items(world)
            assert after.pop("durable-79d63977") == {
                **known.pop("durable-79d63977"),
                "status": "deprecated",
                "updatedAt": file(world)["updatedAt"],
            }
            assert after == known
            text = "0123456789abcdefghij" * 5
            await told({"kind": "fact", "text": text})
            for length, there in ((59, True), (60, False)):  # a text names an item from sixty percent on
                await told(gone=({"matchText": text[:length], "reason": "over"},))
                assert (text in world.memories(world.ann)) is there


class TestTheParts:
    @pytest.mark.design(260)
    @pytest.mark.parametrize(
        ("summary", "memory", "extraction", "mirror"),
        [
            (True, False, False, False),
            (False, True, True, False),
            (False, True, False, True),
        ],
    )
    async def test_each_works_without_the_others(
        self, start: Start, summary: bool, memory: bool, extraction: bool, mirror: bool
    ) -> None:
        parts = {"summary_enabled": summary, "durable_enabled": memory, "extraction_enabled": extraction}
        async with start(summary_every=1, **parts) as world:
            await world.restart(memory_channel=str(world.dev.id) if mirror else None)
            world.brain.learns("User likes boats", about="boats")
            assert await world.says(world.ann, world.general, "I like boats") == "ok"
            told = await world.says(world.ann, world.general, "!memory remember I like tea")
            assert ("switched off" in told) is not memory
            assert [one["summary"] for one in rolling(world).values()] == ["They talked."] * summary
            kept = ["User likes boats"] * extraction + ["I like tea"] if memory else []
            assert world.memories(world.ann) == kept
            assert len(world.dev.pinned_messages()) == (mirror and memory)

    @pytest.mark.design(214, 253, 254)
    async def test_a_model_or_a_disk_that_fails_costs_a_warning_and_no_answer(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(summary_every=1) as world:
            world.brain.writes("summary", "They like boats.", failure(400, "invalid_request_error"), "New.")
            world.brain.learns("User likes boats", about="boats")
            await world.says(world.ann, world.general, "hello")
            before = rolling(world)
            assert [one["summary"] for one in before.values()] == ["They like boats."]
            assert await world.says(world.ann, world.general, "and again") == "ok"
            assert rolling(world) == before
            assert "changed nothing: Model" in caplog.text
            memory = world.data / "memory"
            for path in (memory / "rolling").iterdir():
                path.unlink()
            (memory / "rolling").rmdir()
            (memory / "rolling").write_text("in the way")
            (memory / "ledger" / f"user-{world.bob.id}.jsonl").mkdir(parents=True)
            caplog.clear()
            assert await world.says(world.bob, world.general, "I like boats") == "ok"
            warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
            for loop in ("summary discord:", "extraction "):
                assert any(text.startswith(loop) and "changed nothing" in text for text in warnings)

    @pytest.mark.design(262)
    async def test_write_no_file_that_is_not_documented(self, start: Start) -> None:
        page = (Path(__file__).parents[2] / "docs/admins/files-on-disk.md").read_text(encoding="utf-8")
        named = set(re.findall(r"`([\w.]+)[^`]*`", page))
        async with start(summary_every=1, auto_save="all", response_cache=True) as world:
            await world.restart(memory_channel=str(world.dev.id))
            world.brain.learns("User likes boats", about="boats")
            for words in ("I like boats", "!memory reset rolling", "!memory autoswitch on"):
                await world.says(world.ann, world.general, words)
            found = {one.name for one in [*world.data.iterdir(), *(world.data / "memory").iterdir()]}
            assert {"ledger", "durable", "profiles", "groups", "cursors"} <= found
            assert {name.partition("-")[0] for name in found - {"memory"}} - named == set()

    @pytest.mark.design(235, 236, 237, 249)
    async def test_the_pinned_message_has_memory_and_summary_with_their_times_and_counts_the_rest(
        self, start: Start
    ) -> None:
        async with start(summary_every=1, extraction_enabled=False) as world:
            world.brain.writes("summary", "They like boats.")
            await world.remember(world.ann, "I like the oldest tea")
            assert world.shown(world.dev) == []
            await world.restart(memory_channel=str(world.dev.id))
            await world.remember(world.ann, "I like cake")
            await world.says(world.ann, world.general, "!memory forget I like cake")
            (first,) = world.dev.pinned_messages()
            assert "I like the oldest tea" in first.content and "cake" not in first.content
            await world.env.advance_time(60)
            await world.says(world.ann, world.general, "hello")
            await world.remember(world.ann, *(f"boat {number} {'w' * 90}" for number in range(30)))
            (message,) = world.dev.pinned_messages()
            text, stamp = message.content, f"updated <t:{now(world) // 1000}:R>"
            assert message.id == first.id and len(text) <= 2000
            lines = text.splitlines()
            shown = [line for line in lines if line.startswith("- [fact] ")]
            expected = [f"- [fact] boat {n} {'w' * 90} ({stamp})" for n in range(29, 29 - len(shown), -1)]
            assert shown == expected and lines[1] == stamp
            assert lines[-1] == f"(and {31 - len(shown)} more memories)"
            assert lines[lines.index("They like boats.") - 1].endswith(f", {stamp})")


class TestWhatNobodyUses:
    @pytest.mark.design(147, 148)
    async def test_leaves_ram_with_a_word_in_the_log_and_is_found_as_it_was(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="discoclaw")
        async with start(**QUIET, heartbeat_minutes=0) as world:
            person, window = f"user-{world.ann.id}", f"discord:channel:{world.general.id}"
            await world.remember(world.ann, "I like tea")
            for number in range(3):
                await world.says(world.ann, world.general, f"hello {number}")
                await world.env.advance_time(3_590)
            await world.says(world.bob, world.dev, "hello")
            assert f"{person}: into memory" in caplog.text
            assert caplog.text.count(f"{window}: a window is opened") == 1
            assert "out of memory" not in caplog.text and "is closed" not in caplog.text
            await world.env.advance_time(71)
            await world.says(world.bob, world.dev, "hello")
            assert f"{person}: out of memory, idle" in caplog.text
            assert caplog.text.count(f"{window}: its window is closed, idle") == 1
            await world.says(world.ann, world.general, "do I like tea?")
            assert "I like tea" in world.prompt and "hello 2" in world.prompt
            assert caplog.text.count(f"{window}: a window is opened") == 2
