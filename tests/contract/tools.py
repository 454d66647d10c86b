"""Calls of tools, as a model makes them while it answers Ann."""

import json
from typing import Any

from tests.contract.world import World
from tests.servers.messages_api import tool_use


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


async def called(
    world: World, tool: str, place: Any = None, /, *, by: Any = None, words: str = "please", **given: Any
) -> str:
    """What the model is told when it calls a tool in the answer to a message of Ann's in #general."""
    (found,) = await all_called(world, (tool, given), place=place, by=by, words=words)
    return found


async def all_called(
    world: World, *calls: tuple[str, dict[str, Any]], place: Any = None, by: Any = None, words: str = "please"
) -> list[str]:
    """What the model is told of several calls in one answer, in their order."""
    made = tool_use(*((f"toolu_{number}", name, given) for number, (name, given) in enumerate(calls)))
    world.brain.says(made, "Done.", about=words.rpartition("> ")[2])  # mentions of the bot are left out
    await world.says(by or world.ann, place or world.general, words)
    return results(world)


def results(world: World) -> list[str]:
    """What the model was told of the calls in its newest answer; one that failed begins with "failed: "."""
    last = world.turns()[-1].body["messages"][-1]["content"]
    return [
        ("failed: " if one.get("is_error") else "") + content_of(one["content"])
        for one in last
        if one["type"] == "tool_result"
    ]


def content_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one["text"] for one in content)
