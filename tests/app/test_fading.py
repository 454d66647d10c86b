"""The whole program: what is used is noted, what is over leaves, and an undo in Discord brings it back."""

import json
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.loops.hygiene import Expired
from tests.app.conftest import Start, World
from tests.cli.shell import Shell

DAY = 86_400_000


def now(world: World) -> int:
    """The simulated present (ms)."""
    return int(world.env.now().timestamp() * 1000)


async def learned(world: World, person: Any, text: str, **facets: str) -> str:
    """Let something be known of a person as if it had been learned from talk; its id."""
    origin = Origin("inferred", said_at=now(world))

    def wish(draft: Draft) -> str:
        return draft.upsert("fact", text, origin, facets=Facets(**facets))[0].id  # type: ignore[arg-type]

    return await world.memory.change(f"user-{person.id}", "a test", wish)


async def texts(world: World, person: Any) -> list[str]:
    return [item.text for item in (await world.memory.view(f"user-{person.id}")).active()]


class TestTheWholeProgram:
    async def test_without_a_word_of_the_admin_only_things_of_the_day_leave(self, start: Start) -> None:
        async with start() as world:
            await learned(world, world.ann, "User likes tea.")
            await learned(world, world.ann, "User flies on Friday.", category="conversation")
            assert await world.hygiene.run(now(world) + 9 * DAY) == Expired(conversation=1)
            assert await world.hygiene.run(now(world) + 4000 * DAY) == Expired()
            assert await texts(world, world.ann) == ["User likes tea."]

    @pytest.mark.design(179, 312, 335)
    async def test_with_decay_knowledge_does_and_an_undo_brings_it_back(self, start: Start) -> None:
        async with start(knowledge_decay=True, knowledge_survival_chance=0.0) as world:
            await learned(world, world.ann, "User likes tea.")
            assert await world.hygiene.run(now(world) + 41 * DAY) == Expired(idle=1)
            assert await texts(world, world.ann) == []
            await world.ann.send(world.general, "!memory undo")
            assert await texts(world, world.ann) == ["User likes tea."]

    @pytest.mark.design(97, 103, 178)
    async def test_what_was_imported_is_as_old_as_its_file_says(self, start: Start) -> None:
        async with start(knowledge_decay=True, knowledge_survival_chance=0.0) as world:
            second = now(world) // 1000
            entries = [
                {"key": key, "content": text, "category": kind, "timestamp": second - 40 * 86_400, **more}
                for key, text, kind, more in (
                    ("trip", "User flies on Friday.", "conversation", {}),
                    ("tea", "User likes tea.", "knowledge", {"last_accessed": second - 86_400}),
                    ("cat", "User has a cat.", "knowledge", {"last_accessed": second - 35 * 86_400}),
                )
            ]
            (world.folder / "snapshot.json").write_text(json.dumps(entries))
            shell = Shell(world.folder)
            ran = list[tuple[int, bytes, bytes]]()
            words = ("import", str(world.folder / "snapshot.json"), "--as", str(world.ann.id))
            await world.restart(meanwhile=lambda: ran.append(shell.process(*words)))
            assert [code for code, _, _ in ran] == [0]
            await world.hygiene.run(now(world))  # unless the start's own round was first
            assert await texts(world, world.ann) == ["User likes tea."]
            await world.ann.send_dm("!memory export snapshot")
            (file,) = world.ann_dm.last_message.attachments
            (entry,) = json.loads(await file.read())
            assert entry["last_accessed"] == second - 86_400

    @pytest.mark.design(97)
    async def test_what_somebody_brings_as_a_thing_of_the_day_leaves_after_a_week(self, start: Start) -> None:
        async with start() as world:
            entry = {"key": "trip", "content": "User flies on Friday.", "category": "conversation"}
            file = ("snapshot.json", json.dumps([entry]).encode())
            await world.ann.send(world.general, "!memory import", attachments=[file])
            assert await world.hygiene.run(now(world) + 6 * DAY) == Expired()
            assert await world.hygiene.run(now(world) + 8 * DAY) == Expired(conversation=1)

    @pytest.mark.design(177)
    async def test_what_an_answer_used_is_on_disk_when_the_program_has_ended(self, start: Start) -> None:
        async with start() as world:
            item_id = await learned(world, world.ann, "User likes oolong tea.")
            await world.env.advance_time(60)
            asked_at = now(world)
            await world.ann.send(world.general, "which oolong should I buy?")
            await world.settle()
            path = world.folder / "data" / "memory" / "cursors" / f"access-user-{world.ann.id}.json"
            assert not path.exists()
        assert json.loads(path.read_bytes())[item_id] >= asked_at
