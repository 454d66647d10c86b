"""What the offline model makes of sentences, from Discord: what it remembers, and what it answers then.

Each case is a person of their own, who says something in direct messages and then asks about it. What is
expected is what a careful reader would remember; where there is any doubt, nothing.
"""

import pytest

from tests.app.conftest import Start, World
from tests.app.offline_sentences import CASES, Case

UNKNOWN = ("I don't know that", "I don't remember anything", "Das weiß ich nicht", "Ich weiß noch nichts")
UNKNOWN += ("Je ne le sais pas", "Je ne sais encore rien", "No lo sé", "Todavía no sé nada")
INTRODUCTION = "*(offline model: no API key is set, so I only repeat what I remember.)*\n\n"


async def wrong(world: World, case: Case, number: int) -> list[str]:
    """What is not as it should be when somebody new says this in direct messages."""
    user = world.env.create_user(f"person{number}")
    person = world.guild.add_member(user)
    for message in case.said:
        await person.send_dm(message)
        await world.settle()
    found: list[str] = []
    day = world.env.now().date().isoformat()
    view = await world.memory.view(f"user-{person.id}")
    kept = sorted(item.text for item in view.active())
    wanted = sorted(text.replace("DAY", day) for text in case.kept)
    if kept != wanted:
        found.append(f"{case.said}: remembers {kept}, not {wanted}")
    for question, answer in case.answers.items():
        await person.send_dm(question)
        await world.settle()
        told = world.answer(user.dm_channel).removeprefix(INTRODUCTION)
        good = told.startswith(UNKNOWN) if answer is None else told == answer.replace("DAY", day)
        if not good:
            found.append(f"{case.said} {question!r}: {told!r}, not {answer!r}")
    return found


@pytest.mark.parametrize("part", range(8))
async def test_nothing_wrong_is_remembered_or_said(start: Start, part: int) -> None:
    found: list[str] = []
    async with start() as world:
        for number, case in enumerate(CASES[part::8]):
            found += await wrong(world, case, number)
    assert not found, "\n".join(found)


LOG = b"npm warn deprecated glob\nnpm error code E404\nnpm error left-pad is missing\ndone in 3 s\n"


class TestTextFiles:
    async def test_are_asked_about_by_quoting(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "Which code is it?", attachments=[("build.log", LOG)])
            assert world.answer(world.general).endswith("“build.log” says:\n> npm error code E404")
            await world.ann.send(world.general, "What is missing?")
            assert world.answer(world.general) == "“build.log” says:\n> npm error left-pad is missing"

    async def test_that_say_nothing_about_it_are_not_quoted(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "What about Berlin?", attachments=[("build.log", LOG)])
            assert world.answer(world.general).endswith("I found nothing about that in “build.log”.")
            await world.ann.send(world.general, "", attachments=[("other.log", LOG)])
            assert "I can quote from “other.log”" in world.answer(world.general)


async def test_nobody_is_answered_with_what_somebody_else_said(start: Start) -> None:
    async with start() as world:
        await world.ann.send(world.general, "I work as a nurse")
        await world.settle()
        await world.bob.send(world.general, "What's my job?")
        assert world.answer(world.general).endswith(
            "I don't remember anything about you yet. Tell me something about yourself."
        )
        await world.ann.send(world.general, "What's my job?")
        assert world.answer(world.general) == "You work as a nurse."


async def test_what_was_taken_back_is_not_repeated(start: Start) -> None:
    async with start() as world:
        await world.ann.send(world.general, "I work as a nurse and I live in Graz")
        await world.settle()
        await world.ann.slash(world.general, "memory forget", memory="User works as a nurse.")
        await world.settle()
        await world.ann.send(world.general, "What's my job?")
        assert "I don't know that." in world.answer(world.general)
        await world.ann.send(world.general, "What else do you know about me?")
        assert world.answer(world.general) == "Here is what I remember about you:\n- You live in Graz."


async def test_of_many_memories_the_one_that_is_asked_for_is_found(start: Start) -> None:
    async with start() as world:
        for number in range(60):
            await world.ann.slash(world.general, "memory remember", text=f"Box {number} stands in the cellar")
        await world.ann.send(world.general, "I'm a carpenter")
        await world.settle()
        await world.ann.send(world.general, "Was ist mein Beruf?")
        assert world.answer(world.general).endswith("You are a carpenter.")
