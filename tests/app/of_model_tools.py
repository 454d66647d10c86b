"""Tools that a model calls while it answers somebody in Discord: what it reads, and what is remembered."""

import json
from typing import Any

from discoclaw.core.item import Item
from discoclaw.core.subject import user_subject
from tests.app.conftest import World
from tests.session.scene import ScriptedModel, calls

CAT = "User has a cat called Tom."
VET = "Dr. Paw looks after animals in Elm Street."


async def call(world: World, model: ScriptedModel, *wanted: tuple[str, dict[str, Any]]) -> tuple[bool, str]:
    """Ann writes, and the model makes one call, with the JSON as a model writes it."""
    results = []
    for name, given in wanted:
        model.answers.extend([calls((name, json.loads(json.dumps(given)))), "Done."])
        await world.ann.send(world.general, "please")
        await world.settle()
        assert world.answer(world.general) == "Done."
        results += model.results()
    return results[-1]


async def items(world: World) -> dict[str, Item]:
    """Ann's memories by the first word of their text that tells them apart."""
    view = await world.memory.view(user_subject(str(world.ann.id)))
    return {"cat" if "cat" in item.text else "vet": item for item in view.active()}


async def linked(world: World) -> bool:
    found = await items(world)
    cat, vet = found["cat"], found["vet"]
    assert (vet.id in cat.facets.links) == (cat.id in vet.facets.links)
    return vet.id in cat.facets.links


async def offered(world: World, model: ScriptedModel, text: str) -> list[str]:
    """The tools that the model may call to answer a text of Ann's."""
    await world.ann.send(world.general, text)
    return [tool.name for tool in model.requests[-1].tools]


TEAS = ("green", "black", "white", "iced", "mint", "chai", "bubble")
