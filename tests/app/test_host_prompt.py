"""The host's prompt: its sections in their order, and which memories and messages are in it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from discoclaw.app.finding import Finding
from discoclaw.core.model import ModelRequest
from discoclaw.session.meaning import NoMeaning
from tests.app.conftest import Start, World
from tests.app.models import Scripted

DURABLE = "Durable memory (user-specific notes; may be empty):\n"
ROLLING = "Conversation memory (rolling summary; may be empty):\n"
RECENT, MESSAGE, SEPARATOR = "Recent conversation:\n", "User message:\n", "\n\n---\n"
QUIET = {"summary_enabled": False, "extraction_enabled": False}
MAY = 1_746_057_600_000
"""In 2025, before the simulated present."""


def stored(world: World, *items: tuple[str, str, dict[str, Any]]) -> list[str]:
    """Put items into Ann's durable file by hand, as kind, text and other fields. Returns their ids."""
    rows = [
        {
            "id": f"durable-{number:08x}",
            "kind": kind,
            "text": text,
            "tags": [],
            "status": "active",
            "source": {"type": "discord", "channelId": "1", "messageId": "2", "guildId": "3"},
            "createdAt": MAY,
            "updatedAt": MAY,
            **more,
        }
        for number, (kind, text, more) in enumerate(items)
    ]
    path = world.durable(world.ann)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "updatedAt": MAY, "items": rows}))
    return [str(row["id"]) for row in rows]


def durable(prompt: str) -> list[str]:
    """The texts of the durable section, in their order."""
    lines = prompt.partition(DURABLE)[2].partition(SEPARATOR)[0].splitlines()
    return [line.partition("] ")[2].partition(" (src: ")[0] for line in lines]


class TestThePrompt:
    @pytest.mark.design(261)
    async def test_has_the_admins_rules_about_memory_from_the_next_message_on(self, start: Start) -> None:
        model, ours, theirs = Scripted(), "Trust it, but newer words count more.", "- Trust no note."

        def system() -> str:
            return "\n".join(block.text for block in model.requests[-1].system)

        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "hello")
            assert system().count("\n## Memory\n") == 1 and ours in system()
            path = world.folder / "content" / "discord" / "base" / "core.md"
            path.parent.mkdir(parents=True)
            path.write_text("Be kind.")
            await world.ann.send(world.general, "and again")
            assert "Be kind." in system() and ours in system()
            path.write_text(f"Be kind.\n\n## Memory\n{theirs}")
            await world.ann.send(world.general, "and once more")
            assert theirs in system() and ours not in system()
            assert "What always holds:" in system()

    @pytest.mark.design(193, 194, 195, 261)
    async def test_is_files_durable_rolling_recent_message_and_actions(self, start: Start) -> None:
        model = Scripted()
        model.facts = ['{"upserts": [{"kind": "project", "text": "User builds the boat Argo"}]}']
        async with start(model) as world:
            for name, words in (
                ("base/10-house.md", "We sail."),
                ("channels/general.md", "Only boats here."),
            ):
                path = world.folder / "content" / "discord" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(words)
            await world.restart()
            said = await world.ann.send(world.general, "hello")
            await world.settle()
            assert ROLLING not in model.prompt and DURABLE not in model.prompt
            await world.ann.send(world.general, "!memory remember I sail the Pequod")
            await world.ann.send(world.general, "and again")
            await world.settle()
            await world.ann.send(world.general, "which boat do I sail?")
            request: ModelRequest = model.requests[-1]
            whole = "\n".join([*(block.text for block in request.system), model.prompt])
            today = datetime.fromtimestamp(world.env.now().timestamp(), UTC).strftime("%Y-%m-%d")
            where = f"discord:{world.general.id}/{said.id}"
            day = f"{world.env.now():%a} {today}:\n"
            marks = [
                "We sail.",
                "Only boats here.",
                f"{SEPARATOR}{DURABLE}- [",
                f"{SEPARATOR}{ROLLING}They talked.",
                f"{RECENT}{day}[ann]: hello\n",
                f"{SEPARATOR}{MESSAGE}which boat do I sail?",
            ]
            places = [whole.index(mark) for mark in marks]
            assert places == sorted(places)
            assert whole.endswith(marks[-1])
            assert f"- [fact] I sail the Pequod (src: manual, updated {today}) [i2]" in whole
            assert f"- [project] User builds the boat Argo (src: {where}, updated {today}) [i1]" in whole
            assert [tool.name for tool in request.tools][:4] == [
                "memory_search",
                "memory_store",
                "memory_update",
                "memory_forget",
            ]
            for rule in (
                "Trust it, but newer words count more.",
                '"Recent conversation" is exact: prefer it to "Conversation memory"',
                "Let it shape answers silently: name a note only if asked or needed",
                "Asked what you remember, name these notes and say there may be more.",
                "Acknowledge corrections",
            ):
                assert rule in request.system[0].text

    @pytest.mark.design(196, 333)
    async def test_has_as_much_of_the_talk_as_the_budget_allows(self, start: Start) -> None:
        model = Scripted()
        async with start(model, history_budget=220, respond_mode="mention", **QUIET) as world:
            for number in range(10):
                await world.bob.send(world.general, f"said {number} {'v' * 40}")
            await world.ann.send(world.general, f"<@{world.env.bot.user.id}> well?")
            talk = model.prompt.partition(RECENT)[2].partition(SEPARATOR)[0]
            assert talk.splitlines()[1:] == [f"[bob]: said {number} {'v' * 40}" for number in (7, 8, 9)]
            assert len(talk) <= 220


class TestWhatIsRecalled:
    @pytest.mark.design(206, 207, 208, 211, 330)
    async def test_shares_words_with_the_message_and_the_most_come_first(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            stored(
                world,
                ("fact", "Heron is slow", {"updatedAt": MAY + 1}),
                ("project", "Heron is fast", {}),
                ("tool", "Uses kubectl", {"tags": ["k8s"]}),
                ("workflow", "Reviews come before merging", {}),
                ("fact", "The green kettle is in the kitchen", {}),
                ("fact", "The green lamp is broken", {}),
                ("fact", "The kettle of the past", {"status": "deprecated"}),
            )

            async def asked(words: str, channel: Any = None) -> list[str]:
                await world.ann.send(channel or world.general, words)
                return durable(model.prompt)

            kettle = "where is the GREEN KETTLE, on the mop, the rug or the ladder?"
            assert await asked(kettle) == ["The green kettle is in the kitchen", "The green lamp is broken"]
            assert await asked("how do we deploy k8s?") == ["Uses kubectl"]
            assert await asked("which workflow applies?") == ["Reviews come before merging"]
            assert await asked("how far does a heron travel?") == ["Heron is slow", "Heron is fast"]
            for term in ("build", "deploy", "repo"):
                assert await asked(f"which {term} has heron?") == ["Heron is slow", "Heron is fast"]
            assert await asked("is it in or by the of?", world.dev) == []
            await world.restart(inject_max_chars=90)  # room for the first one
            assert await asked(kettle) == ["The green kettle is in the kitchen"]
            assert await asked("how far does a heron travel?") == ["Heron is slow"]
            for term in ("build", "deploy", "repo"):
                assert await asked(f"which {term} has heron?") == ["Heron is fast"]

    @pytest.mark.design(209, 211)
    async def test_the_newer_of_two_equal_ones_comes_first_and_then_the_lower_id(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            texts = [f"The {color} kettle" for color in ("blue", "black", "brown", "beige")]
            changed = [MAY, MAY + 1, MAY, MAY + 2]
            stored(
                world, *(("fact", text, {"updatedAt": at}) for text, at in zip(texts, changed, strict=True))
            )
            best = ["The beige kettle", "The black kettle", "The blue kettle", "The brown kettle"]
            for room in (1, 2, 3, 4, 4):
                await world.restart(inject_max_chars=75 * room)
                await world.ann.send(world.general, "where is my kettle?")
                found = durable(model.prompt)
                assert found == [text for text in texts if text in best[:room]]  # as they were remembered

    @pytest.mark.design(210, 247)
    async def test_stays_within_the_characters_and_no_line_is_cut(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            texts = [f"Kettle number {number} {'w' * 60}" for number in range(40)]
            stored(world, *(("fact", text, {}) for text in texts))
            for most in (2000, 500):
                if most != 2000:
                    await world.restart(inject_max_chars=most)
                await world.ann.send(world.general, "which kettle?")
                section = model.prompt.partition(DURABLE)[2].partition(SEPARATOR)[0]
                assert most - 130 < len(section) <= most
                assert set(durable(model.prompt)) <= set(texts)
                assert all(line.endswith("]") for line in section.splitlines())

    @pytest.mark.design(212)
    async def test_the_talk_before_helps_a_message_that_says_little(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            stored(world, ("fact", "The kettle is copper", {}), ("fact", "The boat is oak", {}))
            await world.ann.send(world.general, "I broke the kettle")
            await world.ann.send(world.general, "and now?")
            assert durable(model.prompt) == ["The kettle is copper"]

    @pytest.mark.design(213, 329)
    async def test_needs_no_embeddings_and_no_search_by_discord(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_API_KEY", "EMBEDDING_API_KEY", "EMBEDDING_PROVIDER"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-for-chat")
        model = Scripted()
        async with start(model, **QUIET) as world:
            stored(world, ("fact", "The kettle is copper", {}))
            await world.ann.send(world.general, "where is the kettle?")
            assert durable(model.prompt) == ["The kettle is copper"]
            assert isinstance(world.app.feature(Finding).meaning, NoMeaning)
            assert [request.path for request in world.env.http_requests if "search" in request.path] == []
