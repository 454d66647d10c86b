"""Contradictions: asked about in a DM with buttons, listed by `!memory settle`, settled by the person."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source, item_id
from tests.app.conftest import Start, World
from tests.app.models import Scripted

TABS = "I use tabs"
QUESTION = "You told me “I use tabs”; later talk suggests “You use spaces.”. Which is right?"


async def says(world: World, person: Any, text: str) -> str:
    await person.send(world.general, f"!memory {text}")
    return world.answer(world.general)


def against(*pairs: tuple[str, str]) -> str:
    """What an extraction returns that says something else about items than what they say."""
    return json.dumps({"upserts": [{"id": old, "kind": "fact", "text": new} for old, new in pairs]})


@asynccontextmanager
async def contradicted(start: Start, *, hint: str = "{}", **settings: Any) -> AsyncIterator[World]:
    """Ann has stated that she uses tabs, and her talk in #general says spaces."""
    model = Scripted()
    async with start(model, **settings) as world:
        await says(world, world.ann, f"remember {TABS}")
        model.facts = [against((TABS, "User uses spaces.")), hint]
        await world.env.advance_time(60)  # talk counts against a command only when it is younger
        await world.ann.send(world.general, "I use spaces")
        await world.settle()
        yield world


async def contradict(world: World, stated: str, said: str) -> None:
    """Note that Ann's talk says something else than what she stated, as an extraction does."""
    source = Source("discord", str(world.general.id), "1")
    origin = Origin("inferred", source, said_at=4_000_000_000_000)
    wish = partial(Draft.upsert, kind="fact", text=said, origin=origin, given_id=item_id("fact", stated))
    await world.memory.change(f"user-{world.ann.id}", "learned from talk", wish)
