"""Has somebody's memory erased while the whole bot runs, and looks for what is left."""

import json
import os
from pathlib import Path
from typing import Any

from discoclaw.cli.main import cli
from discoclaw.core.subject import user_subject
from tests.app.conftest import World
from tests.cli.shell import Runner


async def erase(world: World, person: Any) -> None:
    """As a command does it: asked for at the chat's present."""
    asked_at = int(world.env.now().timestamp() * 1000)
    erased = await world.memory.erase(user_subject(str(person.id)), asked_at=asked_at)
    assert erased.left == ()
    await world.env.advance_time(1)
    await world.settle()


def found(folder: Path, store: str = "files") -> list[tuple[str, str, str]]:
    """What `discoclaw audit privacy` finds: (part, the place's name, why)."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("DISCO")}
    given = {"DISCOCLAW_DATA_DIR": str(folder / "data"), "DISCOCLAW_STORE": store}
    result = Runner().invoke(cli, ["audit", "privacy", "--json"], env={**unset, **given})
    rows = json.loads(result.stdout)
    assert result.exit_code == (1 if rows else 0), result.output
    return [(one["part"], Path(one["place"]).name, one["why"]) for one in rows]


def summaries(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.folder / "data" / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))
