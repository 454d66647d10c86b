"""Ask before remembering: what was learned waits, out of every prompt and view, for its person's yes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from discoclaw.bot.commands.approving import MOST_SHOWN
from discoclaw.bot.presses import GONE
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source, item_id
from discoclaw.core.pending import MOST_PENDING
from discoclaw.core.text import normalise
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_receipts import learned, talk

DAY_S = 86_400
TEA = "User likes tea."
SETTLED = "That is settled already, or has lapsed."


async def says(world: World, text: str, person: Any = None) -> str:
    await (person or world.ann).send(world.general, f"!memory {text}")
    return world.answer(world.general)


async def whispered(world: World, text: str, **options: Any) -> Any:
    """The answer to a slash command, which Ann alone sees."""
    result = await world.ann.slash(world.general, text, **options)
    return result.followups[-1] if result.followups else result.response


async def remembered(world: World, branch: str | None = None) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}", branch)
    return [item.text for item in view.active()]


async def waiting(world: World, branch: str | None = None) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}", branch)
    return [one.text for one in view.pending]


def labels(message: Any) -> list[str]:
    return [child.label for row in message.components for child in row.children if hasattr(child, "label")]


def options(message: Any, menu: int = 0) -> dict[str, str]:
    """The options of a menu, as value by label."""
    return {option.label: option.value for option in message.components[menu].children[0].options}


def menu_id(message: Any, menu: int) -> str:
    return str(message.components[menu].children[0].custom_id)
