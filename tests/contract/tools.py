"""Calls of tools, as a model makes them while it answers Ann."""

import json
from typing import Any

from tests.contract.world import World


async def call(world: World, *wanted: tuple[str, dict[str, Any]], place: Any = None) -> tuple[bool, str]:
    """Ann writes for each call, and the model makes it; whether the last one failed, and what it was told."""
    block: dict[str, Any] = {}
    for name, given in wanted:
        world.brain.calls(name, json.loads(json.dumps(given)), "Done.", about="please")
        assert await world.says(world.ann, place or world.general, "please") == "Done."
        (block,) = [
            one for one in world.turns("please")[-1].body["messages"][-1]["content"] if "content" in one
        ]
    said = block["content"]
    text = said if isinstance(said, str) else "".join(one["text"] for one in said)
    return bool(block.get("is_error")), text


def commits(world: World, person: Any = None, subject: str = "") -> list[dict[str, Any]]:
    """The commits in the ledger of a person (Ann) or another subject, oldest first."""
    name = subject or f"user-{(person or world.ann).id}"
    path = world.data / "memory" / "ledger" / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [one for one in map(json.loads, lines) if one["type"] == "commit"]
