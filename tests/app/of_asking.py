"""Questions in return: what the bot was unsure of is asked below a later answer, once, and one a day."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from discoclaw.core.model import Purpose
from discoclaw.core.patch import Patch
from discoclaw.core.ports import Shape
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_receipts import learned

MOVED, MOVED_READ = "User works from Graz now.", "You work from Graz now."
ASK = "Shall I remember that you work from Graz now?"
ASKED = f"-# {ASK}\n-# With a yes, I remember “{MOVED_READ}”."

SPACES = json.dumps({"upserts": [{"id": "I use tabs", "kind": "fact", "text": "User uses spaces."}]})
"""What an extraction returns that says something else than what Ann stated."""


class Asking(Scripted):
    """Notes what extraction was asked, and in which shape."""

    def __init__(self) -> None:
        super().__init__()
        self.systems: list[str] = []
        self.shapes: list[type[Any]] = []

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if issubclass(shape, Patch):
            self.systems.append(system)
            self.shapes.append(shape)
        return await super().structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )


def unsure(text: str = MOVED, ask: str = ASK, **more: str) -> str:
    """What an extraction returns that is unsure of one thing."""
    return learned(text, ask=ask, **more)


async def talk(world: World, *facts: str, privately: bool = False, person: Any = None) -> Any:
    """Somebody (Ann) talks and is answered, and the facts are extracted. Returns the last message there."""
    model = world.model
    model.facts = list(facts)
    person = person or world.ann
    await world.env.advance_time(60)
    if privately:
        await person.send_dm("something about me")
    else:
        await person.send(world.general, "something about me")
    await world.settle()
    return (world.ann_dm if privately else world.general).last_message


@asynccontextmanager
async def asking(start: Start, **settings: Any) -> AsyncIterator[tuple[World, Any]]:
    """A world in which Ann is shown a question in #general, and the message with it."""
    async with start(Asking(), **settings) as world:
        await talk(world, unsure())
        yield world, await talk(world)


def questions(world: World, channel: Any = None) -> list[str]:
    shown = world.shown(channel or world.general)
    return [text for text in shown if text.startswith("-# ") and "With a yes" in text]
