"""Somebody has everything about them erased, or opts out: files, RAM, and what Discord shows about them."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from discoclaw.settings_types import Listen
from tests.contract.brain import sum_up
from tests.contract.cards import buttons
from tests.contract.meanwhile import until
from tests.contract.world import Start, World
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.messages_api import Behaviour, Received, json_answer, text
from tests.servers.nostr_relay import LyingRelay

WORD = "Kanarie-Ü🐦-4711"
LEFT_BY_A_LIFE = {
    *("memory/ledger/", "memory/durable/", "memory/rolling/", "memory/cursors/", "memory/profiles/"),
    *("memory/groups/", "memory/tools/", "memory/usage/", "memory/clears.jsonl", "memory/answers/"),
    *("memory/archive.sqlite", "memory/outbox/outbox.sqlite", "cache/responses/", "cache/vectors.sqlite"),
}
"""The files that have anything about people, by how their paths begin. A new one needs a place here, and
something in the story that leaves it."""
NOBODYS = re.compile(
    r"memory/(choices\.json|tombstone(s\.jsonl|\.key)|\.lock|\.holder|version\.json)|nostr/state\.json"
)
"""Who chose what, who was erased and when (without saying who), and what is about nobody."""


def traces(folder: Path, *words: str) -> list[str]:
    """The files below a folder that have one of the words, in their path or as any encoding writes it."""
    forms = {
        form
        for word in words
        for form in (word.encode(), json.dumps(word)[1:-1].encode(), word.encode("utf-16-le"))
    }
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return sorted(
        name
        for name, path in found.items()
        if any(form in name.encode() or form in path.read_bytes() for form in forms)
    )


async def says(world: World, command: str, person: Any = None, place: Any = None) -> str:
    """Somebody, by default Ann, types a command in #general; returns its answer."""
    return await world.says(person or world.ann, place or world.general, f"!memory {command}")


async def talk(world: World) -> None:
    """Ann says the word in her DM, in a channel with Bob, and by command, and all of it is learned."""
    world.brain.writes("summary", sum_up)
    world.brain.learns(f"User likes {WORD}.", about=WORD)
    await world.says(world.ann, world.general, f"I like {WORD}")
    await world.says(world.bob, world.general, "I like coffee")
    await world.says(world.ann, world.ann_dm, f"I prefer {WORD}")
    await says(world, f"remember I have a {WORD}")
    await world.env.advance_time(60)


class TestErasing:
    @pytest.mark.design(317, 327)
    async def test_leaves_no_byte_of_a_whole_life_and_nobody_elses_goes(self, start: Start) -> None:
        async with LyingRelay() as relay, EmbeddingsServer(same={}) as embeddings, start() as world:
            await world.restart(
                auto_save="all",
                response_cache=True,
                receipts=True,
                memory_channel=str(world.dev.id),
                embedding_provider="openai",
                embedding_url=embeddings.openai_url,
                embedding_key=SecretStr("sk-secret"),
                nostr_relays=(relay.url,),
                nostr_key=SecretStr("11" * 32),
                nostr_flush_s=0.0,
                page=Listen("127.0.0.1", 0),
            )
            world.brain.calls("memory_store", {"text": f"User likes {WORD}."}, "Done.", about="store that")
            await talk(world)
            await world.says(world.ann, world.ann_dm, "store that")
            await says(world, f"create-branch coding my work on {WORD}")
            await world.says(world.ann, world.dev, f"We talk about {WORD}")
            await says(world, "reset rolling", place=world.dev)
            await says(world, "remember I have a cat", world.bob)
            await until(lambda: any(WORD in one for one in embeddings.texts))
            await world.settle()
            names = [str(path.relative_to(world.data)) for path in world.data.rglob("*") if path.is_file()]
            mine = {one for one in LEFT_BY_A_LIFE if any(name.startswith(one) for name in names)}
            assert LEFT_BY_A_LIFE - mine == set()
            others = [one for one in names if not one.startswith(tuple(LEFT_BY_A_LIFE))]
            assert [one for one in others if not NOBODYS.fullmatch(one)] == []
            assert len(traces(world.data, WORD)) >= 7
            bobs = world.durable(world.bob).read_bytes()
            await says(world, "erase --yes")
            await world.env.advance_time(1)
            await world.settle()
            assert traces(world.data, WORD, str(world.ann.id)) == []
            assert world.durable(world.bob).read_bytes() == bobs
            assert not any(str(world.ann.id) in one for one in world.shown(world.dev))
            for _ in range(2):
                asked = len(world.server.requests)
                await world.says(world.ann, world.general, "what else do you remember about me?")
                await world.says(world.ann, world.ann_dm, "and here?")
                assert WORD not in str([one.body for one in world.server.requests[asked:]])
                await world.restart()
            world.brain.learns("User prefers cake.", about="cake")
            await world.says(world.ann, world.general, "I prefer cake")
            assert world.memories(world.ann) == ["User prefers cake."]
            assert traces(world.data, WORD) == []
            assert world.cli("audit", "privacy").exit_code == 0

    @pytest.mark.parametrize("restarts", ["before", "after"])
    async def test_whoever_writes_in_the_same_moment_is_answered(self, start: Start, restarts: str) -> None:
        async with start() as world:
            for place in (world.ann_dm, world.general):
                await world.says(world.ann, place, "Hello")
            if restarts == "before":
                await world.restart()
            await says(world, "erase --yes", place=world.ann_dm)
            if restarts == "after":
                await world.restart()
            for place in (world.ann_dm, world.general):
                assert await world.says(world.ann, place, "I am new here") == "ok"

    async def test_asks_with_buttons_that_outlive_a_restart(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like zebras")
            await world.env.advance_time(60)
            await says(world, "erase")
            kept = world.general.last_message
            assert "That is 1 memory, 1 change" in await says(world, "erase")
            asked = world.general.last_message
            refused = await world.bob.click(asked, label="Erase everything")
            assert refused.ephemeral
            await world.ann.click(kept, label="Keep everything")
            assert "I erased nothing." in world.shown(world.general)
            assert world.memories(world.ann) == ["I like zebras"]
            await world.restart()
            await says(world, "erase")
            again = world.general.last_message
            await world.ann.click(asked, label="Erase everything")
            await world.settle()
            done = next(one for one in world.general.history() if one.id == asked.id)
            assert done.content.startswith("I erased everything I remembered about you.")
            assert buttons(done) == [] and world.memories(world.ann) == []
            assert world.files_with("zebras") == []
            await says(world, "remember I like lions")
            result = await world.ann.click(again, label="Erase everything")
            assert [one.content for one in result.followups] == ["That is done already."]
            assert world.memories(world.ann) == ["I like lions"]

    async def test_of_somebody_else_is_for_owners_who_see_nothing_of_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like zebras")
            await world.env.advance_time(60)
            assert "only my owners" in (await says(world, f"erase {world.ann.id}", world.bob)).lower()
            assert "isn't a user id" in await says(world, "erase everything", world.bob)
            owners = {"owners": frozenset({str(world.bob.id)})}
            await world.restart(**owners)
            question = await says(world, f"erase <@{world.ann.id}> --yes", world.bob)
            assert f"Erase everything I remember about {world.ann.id}?" in question and "item" not in question
            asked = world.general.last_message
            await world.restart(owners=frozenset())
            result = await world.bob.click(asked, label="Erase everything")
            assert "one of my owners" in result.followups[0].content
            assert world.memories(world.ann) == ["I like zebras"]
            await world.restart(**owners)
            await says(world, f"erase {world.ann.id}", world.bob)
            await world.bob.click(world.general.last_message, label="Erase everything")
            await world.settle()
            assert world.memories(world.ann) == []

    @pytest.mark.parametrize("under_way", ["an answer", "a summary", "a summary of a DM"])
    async def test_leaves_nothing_of_what_is_under_way(self, start: Start, under_way: str) -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        def held(said: Callable[..., Behaviour]) -> Callable[[Received], Behaviour]:
            def answer(_: Received) -> Behaviour:
                begun.set()
                return said(hold=go_on)

            return answer

        async with start(summary_every=1, extraction_enabled=False) as world:
            await world.says(world.ann, world.dev, "hello")
            if under_way == "an answer":
                world.brain.says(held(lambda **how: text("You like ", WORD, **how)), about=WORD)
            else:
                summary = {"summary": f"Ann likes {WORD}"}
                world.brain.writes("summary", held(lambda **how: json_answer(summary, **how)))
            dm = under_way.endswith("DM")
            place = world.ann_dm if dm else world.general
            world.env.backend.create_message(place.id, world.ann.id, f"I like {WORD}")
            await begun.wait()
            world.env.backend.create_message(world.dev.id, world.ann.id, "!memory erase --yes")
            await until(lambda: "I erased everything" in world.answer(world.dev))
            go_on.set()
            await world.settle()
            await world.env.advance_time(1)
            await world.settle()
            assert traces(world.data, WORD) == []
            world.brain._written.clear()
            await world.says(world.ann, place, "good morning")
            assert WORD not in world.prompt
            assert traces(world.data, WORD) == []


class TestTheTransparencyChannel:
    def about(self, world: World, person: Any) -> list[str]:
        """The messages there about a person."""
        shown = world.shown(world.dev)
        return [one for one in shown if one.startswith("**Memory of") and f"({person.id})" in one]

    def unfinished(self, world: World) -> list[Any]:
        """What is still to be done for erasings."""
        paths = (world.data / "memory" / "erasing").glob("*.json")
        return [json.loads(path.read_bytes())["todo"] for path in paths]

    async def mirrored(self, world: World) -> None:
        """The channel shows what is remembered about Ann and Bob."""
        await world.restart(memory_channel=str(world.dev.id))
        await talk(world)
        await says(world, "remember I have a cat", world.bob)
        assert len(self.about(world, world.ann)) == 1
        assert WORD in self.about(world, world.bob)[0]  # in the summary

    async def test_loses_the_persons_message_and_their_words(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await self.mirrored(world)
            await says(world, "erase --yes")
            await world.settle()
            assert self.about(world, world.ann) == [] and self.unfinished(world) == []
            assert not any(WORD in one for one in world.shown(world.dev))
            assert "cat" in self.about(world, world.bob)[0]
            await world.env.advance_time(1)
            await world.says(world.ann, world.general, "good morning")
            assert self.about(world, world.ann) == []  # before there is something to show
            await says(world, "remember I like tea")
            (shown,) = self.about(world, world.ann)
            assert "tea" in shown

    @pytest.mark.parametrize("how", ["after a while", "at the next start"])
    async def test_is_asked_again_if_discord_fails(self, start: Start, how: str) -> None:
        async with start() as world:
            await self.mirrored(world)
            world.env.inject_error("DELETE", f"/channels/{world.dev.id}/messages/*", status=403, times=1)
            await says(world, "erase --yes")
            await world.settle()
            assert len(self.about(world, world.ann)) == 1
            assert self.unfinished(world) == [["transparency"]]
            if how == "after a while":
                await world.env.advance_time(40)
            else:
                await world.restart()
            await world.settle()
            assert self.about(world, world.ann) == [] and self.unfinished(world) == []
            assert traces(world.data, WORD, str(world.ann.id)) == []

    @pytest.mark.parametrize("fault", ["note lost", "deleted already", "channel gone", "switched off"])
    async def test_is_found_or_given_up_whatever_happened_to_it(self, start: Start, fault: str) -> None:
        async with start() as world:
            await self.mirrored(world)
            for message in world.dev.pinned_messages():
                if fault == "note lost":
                    await message.unpin()
                elif fault == "deleted already":
                    await message.delete()
            if fault == "note lost":
                (world.data / "memory" / "cursors" / "transparency.json").unlink()
            channel = {"channel gone": "1", "switched off": None}.get(fault, str(world.dev.id))
            await world.restart(memory_channel=channel)
            await says(world, "erase --yes")
            await world.settle()
            if fault == "switched off":
                assert self.unfinished(world) == [["transparency"]]
                await world.restart(memory_channel=str(world.dev.id))
                await world.settle()
            assert self.unfinished(world) == []
            assert fault == "channel gone" or self.about(world, world.ann) == []
            assert traces(world.data, WORD, str(world.ann.id)) == []


class TestOptingOut:
    async def test_stops_learning_and_recall_until_they_opt_in(self, start: Start) -> None:
        async with start() as world:
            assert (await says(world, "optin")).startswith("You haven't opted out")
            await says(world, "remember I like zebras")
            answer = await says(world, "optout")
            assert "stays on disk, unused" in answer and "`!memory erase`" in answer
            assert (await says(world, "optout")).startswith("You have opted out already.")
            world.brain.learns("User likes lions.", about="lions")
            await world.says(world.ann, world.general, "which zebras and lions do I like?")
            assert "I like zebras" not in world.prompt and world.background("upserts") == []
            for words in (
                *("remember I like lions", "edit I like zebras => no", "merge main", "consolidate"),
                "create-branch x",
            ):
                assert await says(world, words) == (
                    "You have opted out of memory, so I add nothing to it; `!memory optin` turns it on again."
                )
            assert world.memories(world.ann) == ["I like zebras"]
            await world.restart()
            assert (await says(world, "show")).startswith("**You have opted out**")
            assert (await says(world, "optin")).startswith("Welcome back")
            assert await says(world, "remember I like lions") == "Remembered: I like lions"
            await world.says(world.ann, world.general, "do I like zebras or lions?")
            assert "I like zebras" in world.prompt

    @pytest.mark.long
    async def test_or_erasing_leaves_nothing_of_what_was_answered_among_many_conversations(
        self, start: Start
    ) -> None:
        def noted(name: str) -> bool:
            paths = (world.data / "memory" / "cursors").glob("inbox*.json")
            return any(name in path.read_text() for path in paths)

        # More conversations than are written each time, the first of which are these.
        async with start(extraction_enabled=False, summary_enabled=False) as world:
            for person, place in ((world.ann, world.ann_dm), (world.bob, world.bob_dm)):
                await world.says(person, place, "hello")
            cid = world.env.create_user("cid")
            guest = world.guild.add_member(cid)
            for number in range(25):
                await guest.send(world.guild.create_text_channel(f"room-{number}"), "hello")
            await world.settle()
            before = len(world.turns())
            await world.restart()
            assert len(world.turns()) == before  # nothing is answered twice
            await world.says(world.ann, world.ann_dm, "and now?")
            assert noted(f"dm:{world.ann.id}") and noted(f"dm:{world.bob.id}")
            await world.says(world.ann, world.general, "!memory optout")
            await world.says(world.ann, world.ann_dm, "are you there?")
            await world.says(world.bob, world.general, "!memory erase --yes")
            assert not noted(f"dm:{world.ann.id}") and not noted(f"dm:{world.bob.id}")

    async def test_and_erasing_in_either_order_leaves_no_name(self, start: Start) -> None:
        async with start(summary_every=1, auto_save="all", response_cache=True) as world:
            for person, commands in (
                (world.ann, ("optout", "erase --yes")),
                (world.bob, ("erase --yes", "optout")),
            ):
                await world.says(person, world.general, "I use zsh")
                for command in commands:
                    await world.env.advance_time(60)
                    await says(world, command, person, person.user.dm_channel)
            for _ in range(2):
                await world.restart()
                await world.settle()
            audit = world.cli("audit", "privacy")
            assert (audit.exit_code, audit.stdout) == (0, "Nothing is readable that shouldn't be.\n")
            assert world.files_with(str(world.ann.id)) == ["memory/choices.json"]
