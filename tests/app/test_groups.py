"""A model that finds themes and decisions, for tests of other things that need one."""

import json
from typing import Any

from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from tests.app.conftest import World
from tests.app.models import Scripted
from tests.prompt.reader import GROUP_TITLE, TURN_TITLES, sections

CANARY = "Kanarie-Ü🐦-4711"
NOTES = "Notes about this channel:"


class Agreeing(Scripted):
    """Finds, in whatever it is to sum up, what is given; `summed_up` are (system, prompt) of these calls."""

    def __init__(self, *words: Any, **found: list[str]) -> None:
        super().__init__(*words)
        self.found: dict[str, list[str]] = found
        self.summed_up: list[tuple[str, str]] = []

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if "summary" not in shape.model_fields:
            return await super().structured(purpose=purpose, system=system, prompt=prompt, shape=shape)
        self.summed_up.append((system, prompt))
        return shape.model_validate({"summary": "They talked.", **self.found})

    def place(self, index: int = -1) -> str:
        """What people wrote about the place, in a request."""
        return "\n".join(sections(self.user_turn(index), TURN_TITLES).get(GROUP_TITLE, []))


def shown(model: Scripted) -> str:
    """Everything that the model was shown last."""
    return "\n".join([*(block.text for block in model.requests[-1].system), model.prompt])


def file(world: World, folder: str, who: Any) -> Any:
    """A profile's or group's file; None when there is none."""
    path = world.folder / "data" / "memory" / folder / f"{who.id}.json"
    return json.loads(path.read_bytes()) if path.exists() else None


async def agree(world: World) -> None:
    """Two turns, which is when a conversation is summed up."""
    for text in ("shall we use tabs?", "tabs it is"):
        await world.ann.send(world.general, text)
        await world.settle()
