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
