"""Typing commands, as people do. Ann does it, unless another person is named."""

from typing import Any

from tests.contract.cards import said
from tests.contract.world import World


async def typed(world: World, words: str, person: Any = None, *, privately: bool = False) -> str:
    """What `!memory <words>` is answered, in #general or in the person's DM."""
    person = person or world.ann
    if privately:
        await person.send_dm(f"!memory {words}")
        return world.answer(person.user.dm_channel)
    await person.send(world.general, f"!memory {words}")
    return world.answer(world.general)


async def card(world: World, command: str = "memory show", person: Any = None, **options: Any) -> Any:
    """What a slash command in #general answers with."""
    return (await (person or world.ann).slash(world.general, command, **options)).response


def told(result: Any) -> str:
    """All that a command, a press or a form is answered, which nobody else may see."""
    answers = [one for one in (result.response, *result.followups) if one is not None]
    assert answers and all(one.ephemeral for one in answers)
    return "\n".join(map(said, answers))


def refused(result: Any) -> str:
    """What a press is told beside its card."""
    answers = [*result.followups, result.response]
    return "\n".join(one.content for one in answers if one is not None and one.content)
