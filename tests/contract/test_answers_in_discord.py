"""What Discord shows of an answer: all of it, live, within Discord's limits, and whatever fails meanwhile."""

import asyncio
import random
import re
from typing import Any

from tests.contract.meanwhile import until, writes
from tests.contract.world import Start, World
from tests.servers.messages_api import Behaviour, text, tool_use

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "answer_buttons": False}
LIVE: dict[str, Any] = {**QUIET, "edit_interval_s": 0.0}
NOTHING = "I have no answer to that. Please put it another way."
CODE = "".join(f"value_{i} = {i}\n" for i in range(400))


def prose(length: int) -> str:
    """Words, paragraphs, code blocks and emoji; every word has its number."""
    dice, parts, size, number = random.Random(7), [], 0, 0
    while size < length:
        number += 1
        kind = dice.random()
        if kind < 0.02:
            words = f"\n\n```python\nvalue_{number} = {number}\nprint(value_{number})\n```\n\n"
        else:
            words = f"word{number} 🧠{'. ' if kind < 0.1 else ' '}" + ("\n\n" if kind > 0.98 else "")
        parts.append(words)
        size += len(words)
    return "".join(parts)


def words_of(said: str) -> list[str]:
    return re.findall(r"\w+", said.replace("```python", " ").replace("```", " "))


def streamed(said: str, size: int) -> Behaviour:
    return text(*(said[at : at + size] for at in range(0, len(said), size)))


async def ours(world: World, place: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """The bot's messages there, and their files: names and contents."""
    texts, files = [], []
    for message in place.history():
        if message.author.id == world.env.backend.bot_user.id:
            texts.append(str(message.content))
            files += [(file.filename, (await file.read()).decode()) for file in message.attachments]
    return texts, files


def sent(world: World, method: str) -> list[dict[str, Any]]:
    """What the bot wrote to channels, with each try."""
    asked = [one for one in world.env.http_requests if one.method == method and "/messages" in one.path]
    return [one.json for one in asked if one.json]


class TestALongAnswer:
    async def test_is_a_few_messages_and_a_file_if_they_do_not_do_with_all_its_words(
        self, start: Start
    ) -> None:
        answer = prose(200_000)
        async with start(**LIVE) as world:
            world.brain.says(answer, streamed(answer, 700), about="everything")
            for _ in range(2):
                place = world.guild.create_text_channel("room")
                await world.says(world.ann, place, "tell me everything")
                texts, [(name, rest)] = await ours(world, place)
                assert len(texts) == 6 and name == "answer.md"
                assert "The rest of my answer is in `answer.md`" in texts[-1]
                assert words_of("\n".join(texts[:-1]) + rest) == words_of(answer)
                assert rest.count("```") % 2 == 0
            answer = "".join(f"{number:>5}. A line of forty characters, as it is.\n" for number in range(230))
            world.brain.says(streamed(answer, 90))
            await world.says(world.ann, world.general, "tell me more")
            texts, files = await ours(world, world.general)
            assert (len(texts), files) == (6, []) and all(len(one) <= 2000 for one in texts)
            assert words_of("\n".join(texts)) == words_of(answer)

    async def test_has_its_long_code_as_a_file_between_the_words(self, start: Start) -> None:
        async with start(**LIVE) as world:
            for size in (100_000, 900):
                world.brain.says(streamed(f"Here it is:\n\n```python\n{CODE}```\n\nRun it.", size))
                place = world.guild.create_text_channel("room")
                await world.says(world.ann, place, "show me the code")
                texts, files = await ours(world, place)
                assert [one.strip() for one in texts] == ["Here it is:", "`code.py` (400 lines)", "Run it."]
                assert files == [("code.py", CODE)]


class TestAnAnswer:
    async def test_grows_live_as_a_reply_that_pings_nobody_and_has_few_previews(self, start: Start) -> None:
        said = "@everyone <@1> <@&2> look at https://example.com/one first. "
        goes_on = asyncio.Event()
        async with start(**LIVE) as world:
            world.brain.says(text(said, "Then at https://example.com/two.", hold=goes_on))
            asked = writes(world, world.ann, world.general, "ping them")
            await until(lambda: world.answer(world.general) == said)
            assert not world.general.last_message.flags.suppress_embeds
            goes_on.set()
            await world.settle()
            answer = world.general.last_message
            assert answer.content == f"{said}Then at https://example.com/two."
            assert answer.reference.message_id == asked.id and answer.flags.suppress_embeds
            requests = [*sent(world, "POST"), *sent(world, "PATCH")]
            assert len(requests) >= 2 and all(one["allowed_mentions"] == {"parse": []} for one in requests)
            assert sent(world, "POST")[0]["message_reference"]["fail_if_not_exists"] is False
            goes_on = asyncio.Event()
            world.brain.says(text("Look:\n```py\nx = 1\n``", "`\nYes.", " 👍", hold=goes_on))
            writes(world, world.ann, world.general, "hello")
            await until(lambda: world.answer(world.general) == "Look:\n```py\nx = 1\n```")
            typing = [one.path for one in world.env.http_requests if one.method == "POST"]
            assert typing[0].endswith("/typing") and not typing[-1].endswith("/typing")
            goes_on.set()
            await world.settle()
            assert world.answer(world.general) == "Look:\n```py\nx = 1\n```\nYes. 👍"

    async def test_says_what_is_being_done_while_tools_run_and_is_told_to_be_none_if_nothing_shows(
        self, start: Start
    ) -> None:
        goes_on = asyncio.Event()
        async with start(**LIVE) as world:
            one, two = ("t1", "memory_search", {"query": "cat"}), ("t2", "memory_recall", {"query": "Tom"})
            more = ("t3", "memory_store", {"text": "User has a cat."})
            world.brain.says(
                tool_use(one, said="Let me look."),
                tool_use(two),
                tool_use(more, thought="Hm.", hold=goes_on),
                "Here it is.",
            )
            writes(world, world.ann, world.general, "my cat?")
            await until(lambda: world.answer(world.general) == "Let me look.\n\n*looking in my memory…*")
            goes_on.set()
            await world.settle()
            assert world.shown(world.general)[1:] == ["Let me look.\n\nHere it is."]
            await world.says(world.ann, world.general, "and?")
            assert "]: Let me look.\n" in world.prompt and "looking in" not in world.prompt
            nothing = ["", "  \n", "\u200b\u200d\ufeff\u2060 \n\u00ad", "\u2800\u3164\u115f", "\x01\x02"]
            nothing += [
                "\ufe0f\U000e0020\U000e0041",
                "\u200b" * 5_000,
                "```\n```",
                "```\u200b```",
                "> ```\n> ```",
            ]
            for said in nothing:
                world.brain.says(streamed(said, 1) if 0 < len(said) < 50 else said, about="hello")
                assert await world.says(world.ann, world.general, "hello") == NOTHING, repr(said)
            world.brain.says("A word." + "\u2060" * 6_000, about="hello")
            assert (await world.says(world.ann, world.general, "hello")).strip("\u2060") == "A word."
            for said in ("\u200b.", "```\nx\n```", "👍", "\u0600"):
                world.brain.says(said, about="hello")
                assert await world.says(world.ann, world.general, "hello") == said


class TestWhenDiscordFails:
    async def test_an_answer_comes_once_all_the_same_or_its_person_is_told_in_private(
        self, start: Start
    ) -> None:
        async with start(**LIVE) as world:
            path = f"/channels/{world.general.id}/messages"
            world.env.inject_error("POST", "/channels/*/typing", status=403, times=None)
            for status, code in ((500, 0), (503, 0), (400, 160002)):  # the last: replying is refused
                world.env.inject_error("POST", path, status=status, times=1, code=code)
                assert await world.says(world.ann, world.general, f"hello {status}") == "ok"
            assert world.general.last_message.reference is None
            nonces = [one["nonce"] for one in sent(world, "POST")]
            assert len(nonces) == 6 and len(set(nonces)) == 3
            assert all(one["enforce_nonce"] for one in sent(world, "POST"))
        async with start(**QUIET) as world:
            world.env.inject_error("POST", f"/channels/{world.general.id}/messages", status=403, times=None)
            assert await world.says(world.ann, world.general, "hello") == "hello"
            assert "not allowed to write in" in world.answer(world.ann_dm)

    async def test_a_refused_edit_or_a_deletion_by_somebody_loses_nothing(self, start: Start) -> None:
        async with start(**LIVE) as world:
            world.env.inject_error("PATCH", "/channels/*/messages/*", status=403, times=None)
            for first, rest, shown in (
                ("First sentence. ", "Another one.", ["First sentence. ", "Another one."]),
                ("```py\nx = 1\n", "y = 2\n```\nDone.", ["```py\nx = 1\n```", "```py\ny = 2\n```\nDone."]),
            ):
                goes_on = asyncio.Event()
                world.brain.says(text(first, rest, hold=goes_on), about="hello")
                place = world.guild.create_text_channel("room")
                writes(world, world.ann, place, "hello")
                await until(lambda place=place: len(place.history()) == 2)
                goes_on.set()
                await world.settle()
                assert [one.strip() for one in world.shown(place)[1:]] == [one.strip() for one in shown]
        goes_on = asyncio.Event()
        async with start(**LIVE) as world:
            world.brain.says(text("First sentence. ", "Second sentence.", hold=goes_on))
            writes(world, world.ann, world.general, "hello")
            await until(lambda: len(world.general.history()) == 2)
            world.env.backend.delete_message(world.general.id, world.general.last_message.id)
            goes_on.set()
            await world.settle()
            assert world.shown(world.general)[1:] == ["First sentence. Second sentence."]

    async def test_each_word_is_shown_once_whatever_fails_meanwhile(self, start: Start) -> None:
        async with start(**LIVE) as world:
            for seed in range(3):
                chance = random.Random(seed)
                words = [f"w{number}" + chance.choice([" ", " ", ". ", "\n"]) for number in range(600)]
                place = world.guild.create_text_channel("room")
                for method, path in (("POST", "messages"), ("PATCH", "messages/*")):
                    status, times = chance.choice([429, 500, 503]), chance.randint(1, 4)
                    at = f"/channels/{place.id}/{path}"
                    world.env.inject_error(method, at, status=status, times=times)
                world.brain.says(streamed("".join(words), chance.choice([7, 90, 2000])), about="hello")
                await world.ann.send(place, "hello")
                await world.settle()
                world.env.backend.faults.clear()
                await world.env.advance_time(300)
                await world.settle()
                told = "".join(world.shown(place)[1:])
                assert "".join(told.split()) == "".join("".join(words).split()), seed
