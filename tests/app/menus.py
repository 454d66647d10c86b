"""What tests of menus share."""

from typing import Any

from tests.app.conftest import World
from tests.contract import cards

REMEMBER, LEARNED = "Remember this", "What was learned from this?"
WHY, ASK = "Why this answer?", "Ask about this"
QUIET = {"extraction_enabled": False, "summary_enabled": False, "respond_mode": "mention"}
ANSWERING = {**QUIET, "respond_mode": "all"}


def said(result: Any) -> str:
    """What the one who chose reads, and nobody else."""
    shown = [one for one in (result.response, *result.followups) if one is not None]
    assert shown and all(one.ephemeral for one in shown)
    return "\n".join(map(cards.said, shown))


async def remembered(world: World, person: Any) -> list[Any]:
    """The memories of a person that are in use."""
    return list((await world.memory.view(f"user-{person.id}")).active())


async def texts(world: World, person: Any) -> list[str]:
    return [item.text for item in await remembered(world, person)]
