"""Live configuration in tests: signed by an owner, edited by hand, and what the model is shown."""

import json
from collections.abc import Mapping
from typing import Any

from discoclaw.core.live import Scope, address
from discoclaw.memory.live import FILE
from discoclaw.nostr.event import Keys
from discoclaw.nostr.names import Names
from discoclaw.nostr.owner import OwnerEvents
from tests.app.conftest import World
from tests.app.models import Scripted

OWNER, BOT = Keys.generate(), Keys.generate()
NAMES = Names(BOT)


class Hand:
    """What the owner signs while a bot runs. Each event is a second newer than the one before."""

    def __init__(self, world: World) -> None:
        self.config = world.app.storage.live
        self.config.names = NAMES
        self.events = OwnerEvents(OWNER.public, BOT, self.config)
        self.at = int(world.env.now().timestamp())

    async def signs(self, scope: Scope, *, by: Keys = OWNER, **overrides: Any) -> None:
        self.at += 1
        event = by.sign(30078, json.dumps(overrides), [["d", address(scope)]], self.at)
        await self.events.handle(event)


def edit(world: World, overrides: Mapping[str, Any]) -> None:
    """Somebody edits the local file by hand."""
    path = world.folder / "data" / "memory" / FILE
    path.write_text(json.dumps(overrides, indent=2), encoding="utf-8")


def lines(model: Scripted) -> list[str]:
    """The messages that the model was last shown as the recent talk, without names."""
    talk = model.prompt.split("Recent conversation:\n")[1].split("\n---\n")[0]
    return [line.partition(": ")[2] for line in talk.splitlines() if line.startswith("[")]


def here(world: World) -> str:
    """The scope of #general."""
    return f"group:{world.general.id}"
