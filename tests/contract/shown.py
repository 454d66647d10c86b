"""Reading what the model was shown, and putting memories where it finds them."""

import json
from typing import Any

from tests.contract.world import World
from tests.servers.messages_api import Received

DURABLE = "Durable memory (user-specific notes; may be empty):\n"
ROLLING = "Conversation memory (rolling summary; may be empty):\n"
RECENT, MESSAGE, SEPARATOR = "Recent conversation:\n", "User message:\n", "\n\n---\n"
MAY = 1_746_057_600_000
"""In 2025, before the simulated present (ms)."""
Row = tuple[str, str, dict[str, Any]]


def stored(world: World, *items: Row, person: Any = None) -> list[str]:
    """Write somebody's (Ann's) durable file by hand: kind, text and other fields. Returns the ids."""
    rows = [
        {
            "id": f"durable-{number:08x}",
            "kind": kind,
            "text": text,
            "tags": [],
            "status": "active",
            "source": {"type": "discord", "channelId": "1", "messageId": "2", "guildId": "3"},
            "createdAt": MAY,
            "updatedAt": MAY,
            **more,
        }
        for number, (kind, text, more) in enumerate(items)
    ]
    path = world.durable(person or world.ann)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "updatedAt": MAY, "items": rows}), encoding="utf-8")
    return [str(row["id"]) for row in rows]


def durable(prompt: str) -> list[str]:
    """The texts of the durable section, in their order."""
    lines = prompt.partition(DURABLE)[2].partition(SEPARATOR)[0].splitlines()
    return [line.partition("] ")[2].partition(" (src: ")[0] for line in lines]


def talk_of(prompt: str) -> list[str]:
    """The recent conversation, with the lines that name its days."""
    return prompt.partition(RECENT)[2].partition("\n---\n")[0].rstrip("\n").splitlines()


def first(request: Received) -> str:
    """The first message of a request, which is the person's part of the prompt."""
    content = request.body["messages"][0]["content"]
    return content if isinstance(content, str) else "".join(one.get("text", "") for one in content)


def whole(request: Received) -> str:
    """Everything that a model is shown, in its order."""
    return f"{request.system}\n{first(request)}"
