"""The offline model in Discord: what it remembers of sentences, and what it answers then.

Each case is a person of their own, who says something in direct messages and then asks about it. What is
expected is what a careful reader would remember; where there is any doubt, nothing.
"""

from pathlib import Path

import pytest

from discoclaw.models.offline.model import OfflineModel
from tests.contract.world import Start, World, starting
from tests.models.offline_sentences import CASES, Case

UNKNOWN = ("I don't know that", "I don't remember anything", "Das weiß ich nicht", "Ich weiß noch nichts")
UNKNOWN += ("Je ne le sais pas", "Je ne sais encore rien", "No lo sé", "Todavía no sé nada")
INTRODUCTION = "*(offline model: no API key is set, so I only repeat what I remember.)*\n\n"
LOG = b"npm warn deprecated glob\nnpm error code E404\nnpm error left-pad is missing\ndone in 3 s\n"


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path)


async def wrong(world: World, case: Case, number: int) -> list[str]:
    """What is not as it should be when somebody new says this in direct messages."""
    person = world.guild.add_member(world.env.create_user(f"person{number}"))
    place = person.user.dm_channel
    for message in case.said:
        await world.says(person, place, message)
    found: list[str] = []
    day = world.env.now().date().isoformat()
    kept = sorted(world.memories(person))
    wanted = sorted(text.replace("DAY", day) for text in case.kept)
    if kept != wanted:
        found.append(f"{case.said}: remembers {kept}, not {wanted}")
    for question, answer in case.answers.items():
        told = (await world.says(person, place, question)).removeprefix(INTRODUCTION)
        good = told.startswith(UNKNOWN) if answer is None else told == answer.replace("DAY", day)
        if not good:
            found.append(f"{case.said} {question!r}: {told!r}, not {answer!r}")
    return found


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
async def test_nothing_wrong_is_remembered_or_said(start: Start, part: int) -> None:
    found: list[str] = []
    async with start(model=OfflineModel()) as world:
        for number, case in enumerate(CASES[part::4]):
            found += await wrong(world, case, number)
    assert not found, "\n".join(found)


async def test_it_answers_with_ones_own_memories_and_quotes_files(start: Start) -> None:
    async with start(model=OfflineModel()) as world:
        ann, general = world.ann, world.general
        await world.says(ann, general, "I work as a nurse and I live in Graz")
        nothing = "I don't remember anything about you yet. Tell me something about yourself."
        assert (await world.says(world.bob, general, "What's my job?")).endswith(nothing)
        assert await world.says(ann, general, "What's my job?") == "You work as a nurse."
        await world.says(ann, general, "!memory forget User works as a nurse.")
        assert "I don't know that." in await world.says(ann, general, "What's my job?")
        known = "Here is what I remember about you:\n- You live in Graz."
        assert await world.says(ann, general, "What else do you know about me?") == known
        await world.remember(ann, *(f"Box {number} stands in the cellar" for number in range(40)))
        await world.says(ann, general, "I'm a carpenter")
        assert (await world.says(ann, general, "Was ist mein Beruf?")).endswith("You are a carpenter.")
        file = {"attachments": [("build.log", LOG)]}
        quoted = "“build.log” says:\n> npm error "
        assert (await world.says(ann, general, "Which code is it?", **file)).endswith(f"{quoted}code E404")
        assert await world.says(ann, general, "What is missing?") == f"{quoted}left-pad is missing"
        without = "I found nothing about that in “build.log”."
        assert (await world.says(ann, general, "What about Berlin?", **file)).endswith(without)
        assert "I can quote from “build.log”" in await world.says(ann, general, "", **file)
