"""The main job, end to end: what a person says here is used there, corrected, forgotten, and told."""

import json

import pytest

from discoclaw.memory.subjects.inspect import held
from tests.app.conftest import Start, World


def texts(world: World, person: object, status: str = "active") -> list[str]:
    items = json.loads(world.durable(person).read_text())["items"]
    return [item["text"] for item in items if item["status"] == status]


class TestTheWholeStory:
    @pytest.mark.design(258, 285, 308)
    async def test_a_preference_is_used_elsewhere_and_after_a_restart_corrected_forgotten_and_told(
        self, start: Start
    ) -> None:
        async with start() as world:
            ann = world.ann
            await ann.send(world.general, "I prefer tabs over spaces")
            await world.settle()
            assert texts(world, ann) == ["User prefers tabs over spaces."]

            await ann.send(world.dev, "What do I prefer?")
            assert "tabs over spaces" in world.answer(world.dev)

            await world.restart()
            await ann.send(world.dev, "What do I prefer?")
            assert "tabs over spaces" in world.answer(world.dev)

            await ann.send(world.general, "Actually, I prefer spaces over tabs")
            await world.settle()
            assert texts(world, ann) == ["User prefers spaces over tabs."]
            await ann.send(world.dev, "What do I prefer?")
            assert "spaces over tabs" in world.answer(world.dev)
            assert "tabs over spaces" not in world.answer(world.dev)

            await ann.send(world.dev, "!memory forget User prefers spaces over tabs.")
            assert world.answer(world.dev).startswith(
                "Forgotten: You prefer spaces over tabs.\nIt is also gone from "
            )
            assert texts(world, ann) == []
            assert texts(world, ann, "deprecated") == ["User prefers spaces over tabs."]
            await ann.send(world.dev, "What do I prefer?")
            assert "spaces over tabs" not in world.answer(world.dev)

            history = held(world.folder / "data" / "memory", f"user-{ann.id}")
            assert history.faults == ()
            assert [commit.message for commit in history.commits] == [
                "learned from talk",
                "learned from talk",
                "forgotten by command",
            ]
            told = [event.object for commit in history.commits for event in commit.events]
            assert told == [
                "User prefers tabs over spaces.",
                "User prefers spaces over tabs.",
                "User prefers spaces over tabs.",
            ]

    @pytest.mark.design(316, 323)
    async def test_a_file_edited_by_hand_counts_at_once_and_becomes_history(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I use vim")
            path = world.durable(world.ann)
            path.write_text(path.read_text().replace("I use vim", "I use emacs"))
            await world.ann.send(world.general, "Do I use emacs or vim?")
            assert "emacs" in world.answer(world.general)
            await world.ann.send(world.general, "!memory show")
            assert "I use emacs" in world.answer(world.general)
            history = held(world.folder / "data" / "memory", f"user-{world.ann.id}")
            assert history.commits[-1].message == "edited by hand"
            assert history.commits[-1].events[0].source == "manual"

    @pytest.mark.design(191, 192, 331)
    async def test_memory_follows_its_person_and_nobody_else(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I use zsh")
            await world.bob.send(world.general, "What else do you remember about me?")
            assert "zsh" not in world.answer(world.general)
            await world.ann.send(world.dev, "What else do you remember about me?")
            assert "zsh" in world.answer(world.dev)

    @pytest.mark.design(233)
    async def test_many_talk_at_once_and_no_update_is_lost(self, start: Start) -> None:
        async with start() as world:
            for number in range(10):
                for person in (world.ann, world.bob):
                    for channel in (world.general, world.dev):
                        await person.send(channel, f"!memory remember fact {number} in {channel.name}")
            for person in (world.ann, world.bob):
                assert len(texts(world, person)) == 20


class TestTheSummary:
    async def test_a_conversation_gets_one_after_some_turns_and_it_can_be_reset(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "Let us plan the garden")
            await world.ann.send(world.general, "Tomatoes first")
            await world.settle()
            path = world.folder / "data" / "memory" / "rolling" / f"discord:channel:{world.general.id}.json"
            stored = json.loads(path.read_text())
            assert sorted(stored) == ["summary", "updatedAt"]
            assert "garden" in stored["summary"]
            await world.ann.send(world.general, "!memory reset rolling")
            assert world.answer(world.general) == "I cleared the summary of this conversation."
            assert not path.exists()

    async def test_each_conversation_has_its_own(self, start: Start) -> None:
        async with start() as world:
            for channel, topic in ((world.general, "garden"), (world.dev, "compiler")):
                await world.ann.send(channel, f"Let us talk about the {topic}")
                await world.ann.send(channel, "Go on")
            await world.settle()
            folder = world.folder / "data" / "memory" / "rolling"
            general = (folder / f"discord:channel:{world.general.id}.json").read_text()
            assert "garden" in general
            assert "compiler" not in general


class TestPhasesWorkAlone:
    @pytest.mark.design(260)
    async def test_summaries_without_durable_memory(self, start: Start) -> None:
        async with start(durable_enabled=False) as world:
            await world.ann.send(world.general, "I prefer tea")
            await world.ann.send(world.general, "and cake")
            await world.settle()
            assert not (world.folder / "data" / "memory" / "durable").exists()
            assert list((world.folder / "data" / "memory" / "rolling").iterdir())
            await world.ann.send(world.general, "!memory remember tea")
            assert "switched off" in world.answer(world.general)

    @pytest.mark.design(260)
    async def test_durable_memory_by_command_without_loops(self, start: Start) -> None:
        async with start(summary_enabled=False, extraction_enabled=False) as world:
            await world.ann.send(world.general, "I prefer tea")
            await world.settle()
            assert not world.durable(world.ann).exists()
            await world.ann.send(world.general, "!memory remember I prefer tea")
            assert texts(world, world.ann) == ["I prefer tea"]
            assert not (world.folder / "data" / "memory" / "rolling").exists()

    async def test_no_memory_at_all_still_answers(self, start: Start) -> None:
        async with start(summary_enabled=False, durable_enabled=False, commands_enabled=False) as world:
            await world.ann.send(world.general, "hello")
            assert world.shown(world.general)[-1] != "hello"
