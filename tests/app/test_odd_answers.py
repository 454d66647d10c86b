"""Answers that no channel should see as they are: far too long ones, and ones that show nothing."""

import random
import re
from typing import Any

import pytest

from discoclaw.bot.deliver import MOST_MESSAGES
from discoclaw.session.turn import EMPTY_ANSWER
from tests.app.conftest import Start, World
from tests.app.models import Scripted


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


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.replace("```python", " ").replace("```", " "))


async def seen(world: World, channel: Any) -> tuple[list[str], list[str]]:
    """The bot's messages there, and the contents of their files."""
    texts, files = [], []
    for message in channel.history():
        if message.author.id != world.env.backend.bot_user.id:
            continue
        texts.append(str(message.content))
        files += [(await file.read()).decode() for file in message.attachments]
    return texts, files


class TestAVeryLongAnswer:
    @pytest.mark.parametrize("chunk", [0, 5_000, 700], ids=["at once", "in chunks", "streamed"])
    async def test_is_a_few_messages_and_a_file(self, start: Start, chunk: int) -> None:
        answer = prose(200_000)
        async with start(Scripted(answer, chunk=chunk)) as world:
            await world.ann.send(world.general, "tell me everything")
            texts, files = await seen(world, world.general)
            assert len(texts) == MOST_MESSAGES + 1
            assert "The rest of my answer is in `answer.md`" in texts[-1]
            (rest,) = files
            assert words_of("".join(f"{text}\n" for text in texts[:-1]) + rest) == words_of(answer)
            assert rest.count("```") % 2 == 0

    async def test_that_fits_into_one_more_message_has_no_file(self, start: Start) -> None:
        answer = "".join(f"{number:>5}. A line of forty characters, as it is.\n" for number in range(230))
        async with start(Scripted(answer)) as world:
            await world.ann.send(world.general, "tell me more")
            texts, files = await seen(world, world.general)
            assert files == []
            assert len(texts) == MOST_MESSAGES + 1
            assert words_of("\n".join(texts)) == words_of(answer)


class TestAnAnswerThatShowsNothing:
    @pytest.mark.parametrize(
        "nothing",
        [
            "\u200b",
            "\u200b\u200d\ufeff\u2060 \n\u00ad",
            "\u2800\u3164\u115f",
            "\ufe0f\U000e0020\U000e0041",
            "\x01\x02",
            "\u200b" * 5_000,
            "```\n```",
            "```python\n\n```\n\u200b",
            "```\u200b```",
            "> ```\n> ```",
        ],
    )
    @pytest.mark.parametrize("chunk", [0, 1])
    async def test_is_told_to_be_none(self, start: Start, nothing: str, chunk: int) -> None:
        async with start(Scripted(nothing[:300] if chunk else nothing, chunk=chunk)) as world:
            await world.ann.send(world.general, "hello")
            texts, _ = await seen(world, world.general)
            assert texts == [EMPTY_ANSWER]

    @pytest.mark.parametrize("text", ["\u200b.", "```\nx\n```", "👍", "…", "\u0600"])
    async def test_is_not_one_that_shows_a_little(self, start: Start, text: str) -> None:
        async with start(Scripted(text)) as world:
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == text

    async def test_has_no_last_message_that_shows_nothing(self, start: Start) -> None:
        async with start(Scripted("A word." + "\u2060" * 6_000)) as world:
            await world.ann.send(world.general, "hello")
            texts, _ = await seen(world, world.general)
            assert [text.strip("\u2060") for text in texts] == ["A word."]
