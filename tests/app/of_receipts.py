"""Receipts: a silent line where something was learned from talk, with a button that takes it back."""

import json
from typing import Any

from tests.app.conftest import World
from tests.app.models import Scripted


def learned(*texts: str, **more: str) -> str:
    """What an extraction returns."""
    return json.dumps({"upserts": [{"kind": "fact", "text": text, **more} for text in texts]})


async def talk(world: World, model: Scripted, facts: str, *, privately: bool = False) -> Any:
    """Ann says something of which the facts are learned. Returns the last message there."""
    model.facts = [facts]
    if privately:
        await world.ann.send_dm("something about me")
    else:
        await world.ann.send(world.general, "something about me")
    await world.settle()
    return (world.ann_dm if privately else world.general).last_message
