"""Deleting a message in Discord, or editing it, takes back what was learned from that message alone."""

import asyncio
import json
import re
from typing import Any

import discord
import pytest
from simcord.backend import serializers

from tests.contract.brain import likes, message_of, sum_up
from tests.contract.cards import said as told
from tests.contract.meanwhile import until
from tests.contract.world import Start, World
from tests.servers.messages_api import Behaviour, Received, json_answer, text, tool_use

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "edit_interval_s": 0.0}


def repeating(world: World) -> None:
    """Learn from each "I like …", and sum up all that is said."""
    world.brain.writes("upserts", likes)
    world.brain.writes("summary", sum_up)


def summaries(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.data / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))


def known(world: World, person: Any = None) -> list[str]:
    return sorted(world.memories(person or world.ann))


async def shown(world: World, command: str = "show") -> str:
    """What the bot says that it remembers about Ann."""
    answer = await world.says(world.ann, world.dev, f"!memory {command}")
    return answer.partition("**Summary of")[0]


def commits(world: World, why: str) -> int:
    """How many changes to Ann's memory were made because of that."""
    ledger = world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
    return len(re.findall(f'"by": ?"{why}"', ledger.read_text()))


async def say(world: World, *lines: str, place: Any = None) -> list[discord.Message]:
    """Ann says some things one after another, and each is learned from."""
    sent = []
    for line in lines:
        sent.append(await world.ann.send(place or world.general, line))
        await world.settle()
    return sent


async def edit(world: World, message: Any, words: str) -> None:
    """Ann edits a message, some time after everything before it."""
    await world.env.advance_time(60)
    await world.ann.edit(message, words)
    await world.settle()


def question(channel: Any, words: str) -> Any:
    return next(one for one in channel.history() if one.content == words)


def gone(world: World, channel: Any, words: str) -> None:
    """Somebody deletes a message; nothing is waited for."""
    world.env.backend.delete_message(channel.id, question(channel, words).id)


class TestADeletedMessage:
    async def test_takes_along_what_only_it_said(self, start: Start) -> None:
        async with start(summary_every=1, receipts=True) as world:
            repeating(world)
            zebras, _ = await say(world, "I like zebras.", "I like vim.")
            assert "zebras" in await shown(world) and "vim" in await shown(world)
            await world.ann.delete(zebras)
            await world.settle()
            line = world.general.last_message
            assert told(line) == "-# forgotten, because a message was deleted: 1 memory"
            assert "zebras" not in await shown(world) and "vim" in await shown(world)
            await world.says(world.ann, world.dev, "what do I like?")
            assert "zebra" not in world.prompt and "vim" in world.prompt
            assert "zebra" not in summaries(world) and "vim" in summaries(world)
            await world.ann.click(line, label="Undo")  # for good
            await world.restart()
            assert "zebras" in await shown(world)

    async def test_leaves_what_another_says_too_or_was_stated_by_hand(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            (one,) = await say(world, "I like zebras.")
            other, tea = await say(world, "I like zebras.", "I like tea.", place=world.dev)
            await world.ann.delete(one)
            await world.settle()
            assert known(world) == ["User likes tea.", "User likes zebras."]
            command = await world.ann.send(world.general, "!memory remember User likes tea.")
            for each in (other, tea, command):
                await world.ann.delete(each)
            await world.settle()
            assert known(world) == ["User likes tea."]
            await say(world, "I like zebras.")  # which is learned again
            assert known(world) == ["User likes tea.", "User likes zebras."]

    async def test_may_be_deleted_by_a_moderator_or_in_a_dm_and_many_at_once(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            (zebras,) = await say(world, "I like zebras.")
            role = world.guild.create_role("mods", permissions=discord.Permissions(manage_messages=True))
            await world.guild.add_member(world.env.create_user("mod"), roles=[role]).delete(zebras)
            direct = await world.ann.send_dm("I like lions.")
            await world.settle()
            assert known(world) == ["User likes lions."]
            await world.ann.user.delete(direct)
            await world.settle()
            assert known(world) == []
            many = await say(world, "I like cats.", "I like dogs.")
            many.append(await world.bob.send(world.general, "I like newts."))
            (last,) = await say(world, "I like otters.")
            before = commits(world, "deletion")
            ids = [one.id for one in many]
            payload = {"ids": [str(one) for one in (*ids, *range(last.id + 100, last.id + 300))]}
            where = {"channel_id": str(world.general.id), "guild_id": str(world.guild.id)}
            for _ in range(2):  # Discord may say it twice
                world.env.backend.emit("MESSAGE_DELETE_BULK", {**payload, **where})
                await world.settle()
            assert (known(world), known(world, world.bob)) == (["User likes otters."], [])
            assert commits(world, "deletion") == before + 1

    async def test_takes_it_from_every_persona_and_everybody_who_learned_from_it(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            (zebras,) = await say(world, "I like zebras.")
            ledgers = world.data / "memory" / "ledger"
            await world.restart(
                meanwhile=lambda: (ledgers / f"user-{world.bob.id}.jsonl").write_bytes(
                    (ledgers / f"user-{world.ann.id}.jsonl").read_bytes()
                )
            )
            await world.says(world.bob, world.general, "!memory show")
            assert known(world, world.bob) == ["User likes zebras."]
            for command in ("persona create work", "persona switch work"):
                await world.says(world.ann, world.general, f"!memory {command}")
            assert known(world) == ["User likes zebras."]
            await world.ann.delete(zebras)
            await world.settle()
            assert (known(world), known(world, world.bob)) == ([], [])
            await world.says(world.ann, world.general, "!memory persona switch main")
            assert known(world) == []

    async def test_is_never_learned_from_if_it_goes_before_or_meanwhile(self, start: Start) -> None:
        async with start(durable_every=2, summary_every=1) as world:
            repeating(world)
            (zebras,) = await say(world, "I like zebras.")
            await world.ann.delete(zebras)
            unheard = world.env.backend.create_message(world.general.id, world.ann.id, "I like newts.")
            world.env.backend.delete_message(world.general.id, unheard.id)
            await say(world, "I like tea.", "I like coffee.")
            assert "User likes tea." in known(world)
            assert not {"User likes zebras.", "User likes newts."} & set(known(world))
            assert "newts" not in summaries(world) and "zebras" not in summaries(world)

            go_on, asked = asyncio.Event(), asyncio.Event()

            def held(request: Received) -> Behaviour:
                learned = likes(request)
                if "lions" not in str(learned):
                    return json_answer(learned)
                asked.set()
                return json_answer(learned, hold=go_on)

            await world.restart(durable_every=1)
            world.brain._written.clear()
            world.brain.writes("upserts", held)
            sending = asyncio.create_task(world.ann.send(world.general, "I like lions."))
            await asked.wait()
            heard = asyncio.create_task(world.app.client.wait_for("raw_message_delete"))
            await asyncio.sleep(0)
            gone(world, world.general, "I like lions.")
            await heard
            go_on.set()
            await sending
            await say(world, "I like cakes.")
            assert "User likes cakes." in known(world) and "User likes lions." not in known(world)

    async def test_stores_nothing_by_a_tool_that_is_called_meanwhile(self, start: Start) -> None:
        async with start(**QUIET) as world:

            def store(_: Received) -> Behaviour:
                gone(world, world.general, "Remember the zebra")
                return tool_use(("t1", "memory_store", {"text": "User likes zebras."}))

            world.brain.says(store, "Done.", about="Remember the zebra")
            await world.says(world.ann, world.dev, "hello")
            await world.ann.send(world.general, "Remember the zebra")
            await world.settle()
            assert known(world) == [] and world.shown(world.general) == []

    @pytest.mark.parametrize("kind", ["conflict", "proposal"])
    async def test_asks_no_more_what_it_raised(self, start: Start, kind: str) -> None:
        async with start() as world:
            await world.remember(world.ann, "User prefers tabs.")
            await world.env.advance_time(60)
            if kind == "proposal":
                await world.says(world.ann, world.general, "!memory approve on")
            named = {"id": "tabs"} if kind == "conflict" else {}
            new = {**named, "kind": "preference", "text": "User prefers spaces."}
            world.brain.learns(new, about="I prefer spaces")
            (spaces,) = await say(world, "I prefer spaces.")
            look = "show" if kind == "conflict" else "pending"
            assert "spaces" in await shown(world, look)
            await world.ann.delete(spaces)
            await world.settle()
            assert "spaces" not in await shown(world, look)
            assert known(world) == ["User prefers tabs."]

    async def test_leaves_the_summary_whoever_wrote_it_though_nothing_was_learned(self, start: Start) -> None:
        async with start(summary_every=1, extraction_enabled=False) as world:
            repeating(world)
            world.brain.says("A striped animal.", about="escaped")
            (zebra,) = await say(world, "The zebra escaped yesterday.")
            await say(world, "Which tea is good?")
            assert "zebra" in summaries(world) and "striped" in summaries(world)
            gone(world, world.general, "A striped animal.")
            await world.settle()
            assert "striped" not in summaries(world) and "zebra" in summaries(world)
            await world.ann.delete(zebra)
            await world.settle()
            assert "zebra" not in summaries(world) and "tea" in summaries(world)
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.ann.id)}))
            guests = await world.bob.send(world.general, "A lion escaped, too.")
            await say(world, "Which cake is good?")
            assert "lion" in summaries(world)
            await world.bob.delete(guests)
            await world.settle()
            assert "lion" not in summaries(world)

    async def test_is_followed_after_a_gap_a_kill_and_a_disk_that_refuses(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            repeating(world)
            _, zebras, _ = await say(world, "Hello!", "I like zebras.", "I like vim.")
            await world.restart(
                meanwhile=lambda: world.env.backend.delete_message(world.general.id, zebras.id)
            )
            for _ in range(2):
                await world.settle()
                assert known(world) == ["User likes vim."]
                assert "zebra" not in summaries(world) and "vim" in summaries(world)
                assert commits(world, "deletion") == 1
                await world.restart(catch_up_hours=0)
            (lions,) = await say(world, "I like lions.")
            cursor = world.data / "memory" / "cursors" / "unsaid.json"

            def killed() -> None:
                world.env.backend.delete_message(world.general.id, lions.id)
                cursor.write_text(json.dumps({"deleted": {str(lions.id): str(world.general.id)}}))

            await world.restart(meanwhile=killed)
            await world.settle()
            assert known(world) == ["User likes vim."]
            assert "deleted" not in json.loads(cursor.read_text())
            (newts,) = await say(world, "I like newts.")
            (summary,) = (world.data / "memory" / "cursors").glob("summary-*channel*")
            aside = summary.rename(summary.with_name("aside"))
            (summary / "wall").mkdir(parents=True)
            await world.ann.delete(newts)
            await world.settle()
            assert "newts" in summaries(world)
            (summary / "wall").rmdir()
            summary.rmdir()
            aside.rename(summary)
            await world.restart()
            await world.settle()
            assert "newts" not in summaries(world)


class TestAnEditedMessage:
    async def test_teaches_what_it_says_now_instead(self, start: Start) -> None:
        async with start(summary_every=1, receipts=True) as world:
            repeating(world)
            (said,) = await say(world, "I like zebras.")
            await edit(world, said, "I like zebras!!")  # the same words
            assert known(world) == ["User likes zebras."] and commits(world, "edit") == 0
            stored = world.env.backend.messages[world.general.id][said.id]
            stored.embeds.append({"type": "link", "title": "Otters", "url": "http://localhost/"})
            payload = serializers.message_payload(world.env.backend, stored)
            world.env.backend.emit("MESSAGE_UPDATE", dict(payload))  # Discord adds a preview
            await world.settle()
            assert known(world) == ["User likes zebras."] and commits(world, "edit") == 0
            stored.embeds.clear()
            for animal in ("otters", "zebras", "newts"):
                await edit(world, said, f"I like {animal}.")
                assert known(world) == [f"User likes {animal}."]
                assert animal in summaries(world)
                assert sum(one in summaries(world) for one in ("zebras", "otters", "newts")) == 1
            await edit(world, said, "never mind")
            assert known(world) == []
            shown = world.shown(world.general)
            assert "-# forgotten, because a message was edited: 1 memory" in shown

    async def test_leaves_what_another_says_and_may_say_what_was_forgotten(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            (said,) = await say(world, "I like zebras.")
            await say(world, "I like zebras.", place=world.dev)
            await edit(world, said, "never mind")
            assert known(world) == ["User likes zebras."]
            await world.says(world.ann, world.general, "!memory forget User likes zebras.")
            await edit(world, said, "I like zebras.")
            await say(world, "Hello!")
            assert known(world) == ["User likes zebras."]
            direct = await world.ann.user.send_dm("I like lions.")
            await world.settle()
            await world.env.advance_time(60)
            await world.ann.user.edit(direct, "I like cats.")
            await world.settle()
            assert known(world) == ["User likes cats.", "User likes zebras."]
            await world.says(world.ann, world.general, "!memory optout")
            await edit(world, said, "I like otters.")
            assert "User likes otters." not in known(world)

    async def test_many_times_in_a_row_is_followed_to_its_last_words(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            (said,) = await say(world, "I like zebras.")
            await world.env.advance_time(60)
            for number in range(200):
                words = {"content": f"I like animal{number}."}
                world.env.backend.edit_message(world.general.id, said.id, words)
            await world.settle()
            assert known(world) == ["User likes animal199."]
            assert commits(world, "edit") < 10
            asked = len(world.background("upserts"))
            tries = 0

            def busy(request: Received) -> Any:
                nonlocal tries
                tries += 1
                if tries < 50:
                    words = {"content": f"I like beast{tries}."}
                    world.env.backend.edit_message(world.general.id, said.id, words)
                return likes(request)

            world.brain._written.clear()
            world.brain.writes("upserts", busy)
            await edit(world, said, "I like beast0.")
            assert len(world.background("upserts")) - asked < 10  # it doesn't keep the model busy

    async def test_is_followed_once_after_a_gap(self, start: Start) -> None:
        async with start() as world:
            repeating(world)
            _, said = await say(world, "Hello!", "I like zebras.")
            await world.env.advance_time(60)
            words = {"content": "I like otters."}
            await world.restart(
                meanwhile=lambda: world.env.backend.edit_message(world.general.id, said.id, words)
            )
            for _ in range(2):
                await world.settle()
                assert known(world) == ["User likes otters."] and commits(world, "edit") == 1
                await world.restart()

    async def test_is_shown_to_models_as_it_is_now_also_where_it_is_quoted(self, start: Start) -> None:
        async with start(respond_mode="mention") as world:
            repeating(world)
            said = await world.bob.send(world.general, "my salary is 4711")
            await world.bob.edit(said, "never mind")
            zebras = await world.ann.send(world.general, f"{world.mention} I like zebras.")
            await world.settle()
            prompt = world.background("upserts")[-1].prompt
            assert "never mind" in prompt and "4711" not in prompt
            await world.bob.send(world.general, f"{world.mention} Why?", reply_to=zebras)
            assert "zebras" in world.prompt
            await world.says(world.ann, world.general, "!memory forget User likes zebras.")
            await world.env.advance_time(60)
            await world.bob.send(world.general, f"{world.mention} Why on earth?", reply_to=zebras)
            assert "Why on earth?" in world.prompt and "zebras" not in world.prompt


class TestAQuestionThatIsBeingAnswered:
    async def begin(self, world: World, words: str, shown: str) -> None:
        """Ann asks, and the answer begins to be shown."""
        world.env.backend.create_message(world.general.id, world.ann.id, words)
        await until(lambda: any(shown in one for one in world.shown(world.general)[1:]))

    @pytest.mark.parametrize("kind", ["begun", "long", "with tools"])
    async def test_takes_along_what_was_shown_once_it_is_deleted(self, start: Start, kind: str) -> None:
        never = asyncio.Event()
        answers: dict[str, list[Behaviour]] = {
            "begun": [text("One sheep.", " Two.", hold=never)],
            "long": [text("One sheep. " + "word " * 500, "word " * 100, hold=never)],
            "with tools": [
                tool_use(("t", "memory_search", {"query": "tea"})),
                text("One sheep.", "You like tea.", hold=never),
            ],
        }
        async with start(**QUIET, auto_save="all", response_cache=True) as world:
            world.brain.says(*answers[kind], about="Count sheep")
            await self.begin(world, "Count sheep", "One sheep.")
            if kind == "long":
                await until(lambda: len(world.general.history()) == 3)
            gone(world, world.general, "Count sheep")
            await until(lambda: not world.general.history())
            await world.says(world.bob, world.general, "Good night")
            assert world.shown(world.general) == ["Good night", "ok"]
            assert "heep" not in world.prompt
            assert world.files_with("sheep") == []

    async def test_is_answered_as_edited_or_not_at_all_if_it_waits_its_turn(self, start: Start) -> None:
        go_on = asyncio.Event()
        async with start(**QUIET) as world:
            world.brain.says(text("One sheep.", " Two.", hold=go_on), about="Count sheep")
            await self.begin(world, "Count sheep", "One sheep.")
            for words in ("And my zebras?", "And my lions?"):
                world.env.backend.create_message(world.general.id, world.bob.id, words)
                await until(lambda words=words: words in world.shown(world.general))  # type: ignore[misc]
            gone(world, world.general, "And my zebras?")
            lions = question(world.general, "And my lions?")
            world.env.backend.edit_message(world.general.id, lions.id, {"content": "And my otters?"})
            go_on.set()
            await world.settle()
            await world.says(world.bob, world.general, "Good night")
            assert [message_of(one) for one in world.turns()] == [
                f"\n{words}" for words in ("Count sheep", "And my otters?", "Good night")
            ]
            assert "zebra" not in world.prompt and "lions" not in world.prompt


class TestAnAnswerToWordsThatAreGone:
    """The words are in an answer of the bot, and nobody but `answers/` knows whom that was for."""

    async def test_is_never_used_again_whatever_it_says(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for number, off in enumerate((False, True)):
                world.brain.says(f"A striped animal {number}!", about=f"zebra {number}")
                await say(world, f"I keep a zebra {number}")
                answer = world.general.last_message
                if off:
                    await world.restart(meanwhile=lambda: gone(world, world.general, "I keep a zebra 1"))
                else:
                    gone(world, world.general, "I keep a zebra 0")
                    await world.settle()
                    await world.says(world.bob, world.general, "And the clouds?")
                    assert "striped" not in world.prompt
                    await world.restart()
                await world.says(world.bob, world.general, "And the wind?")
                assert "striped" not in world.prompt
                await world.bob.send(world.general, "What does that mean?", reply_to=answer)
                assert "striped" not in world.prompt and "What does that mean?" in world.prompt

    @pytest.mark.parametrize("way", ["forget", "erase", "opt out"])
    async def test_is_known_to_be_hers_after_a_restart(self, start: Start, way: str) -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        def answer(_: Received) -> Behaviour:
            begun.set()
            first = "Well. " + "many words and " * 90 + "\n\n"
            return text(first, "many words and " * 40 + "your zebra. " + "more words " * 60, hold=go_on)

        async with start(**QUIET) as world:
            world.brain.says(answer, about="I keep a zebra")
            world.env.backend.create_message(world.general.id, world.ann.id, "I keep a zebra")
            await until(lambda: len(world.general.history()) > 1)
            world.env.backend.create_message(world.general.id, world.bob.id, "what a long answer")
            await until(lambda: "what a long answer" in world.shown(world.general))
            go_on.set()
            await world.settle()
            assert world.shown(world.general)[2] == "what a long answer"
            assert "zebra" in "".join(world.shown(world.general)[3:])
            logs = sorted((world.data / "memory" / "answers").glob("*.jsonl"))
            noted = [json.loads(line) for path in logs for line in path.read_text().splitlines()]
            assert noted and all(set(one) == {"id", "to", "of"} for one in noted)  # small, and no words
            assert world.files_with(f'"{world.ann.id}"')
            if way == "forget":
                await world.says(world.ann, world.dev, "!memory remember I keep a zebra")
                await world.says(world.ann, world.dev, "!memory forget I keep a zebra")
            else:
                await world.says(
                    world.ann, world.dev, f"!memory {'erase --yes' if way == 'erase' else 'optout'}"
                )
                answers = [path for path in world.files_with(str(world.ann.id)) if "answers/" in path]
                assert answers == []
                if way == "opt out":
                    await world.says(world.ann, world.dev, "!memory optin")
            for restarted in (False, True):
                await world.says(world.bob, world.general, "And the wind?")
                assert "more words" not in world.prompt
                assert "what a long" in world.prompt or (way, restarted) == ("erase", False)
                await world.restart()

    async def test_names_its_thread_no_more_what_its_person_took_back(self, start: Start) -> None:
        async with start(summary_every=1, threads=True) as world:
            world.brain.writes("name", "About a zebra")
            world.brain.writes("title", "About a zebra")
            for person, way, stays in (
                (world.bob, "forget I keep a zebra", True),
                (world.ann, "forget I keep a zebra", False),
                (world.ann, "erase --yes", False),
            ):
                await world.env.advance_time(60)
                world.brain.says("Your zebra is nice.", about="I keep a zebra")
                await say(world, "I keep a zebra")
                thread = world.general.threads[-1]
                assert "zebra" in thread.name
                await world.says(world.bob, thread, "me too")
                if way.startswith("forget"):
                    await world.says(person, world.dev, "!memory remember I keep a zebra")
                await world.says(person, world.dev, f"!memory {way}")
                assert ("zebra" in world.general.threads[-1].name) is stays
                await world.restart()
                await world.says(world.bob, thread, "And the wind?")
                assert ("Your zebra" in world.prompt) is stays
