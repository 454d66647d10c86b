"""An interview about the bot's personality, for tests of other things that need one."""

import json
from typing import Any

from discoclaw.core.bot_memory import BOT
from tests.app.conftest import World
from tests.app.models import Scripted

CANARY = "Kanarie-Ü🐦-4711"


def block(**parts: Any) -> str:
    soul = {
        "identity": "You are Mog, a dry old cat.",
        "user": "Ann builds boats.",
        "philosophy": "Short answers, no lies.",
    }
    return f"<soul>{json.dumps({**soul, **parts}, ensure_ascii=False)}</soul>"


READY = "I know who I am now."


async def owned(world: World, *others: Any, **changes: Any) -> World:
    """The world again, with Ann as its owner."""
    owners = frozenset(str(person.id) for person in (world.ann, *others))
    await world.restart(owners=owners, **changes)
    return world


async def begun(world: World) -> str:
    """Ann begins an interview in her DM. Returns the first question."""
    result = await world.ann.user.slash("hatch start")
    return str(result.response.content)


async def hatched(world: World, model: Scripted, **parts: Any) -> str:
    """A whole interview in Ann's DM. Returns the last words."""
    model.words += ["And who are you?", f"{READY}\n{block(**parts)}"]
    await begun(world)
    await world.ann.send_dm("A dry old cat called Mog.")
    await world.ann.send_dm("I build boats. No lies, please.")
    await world.settle()
    return world.answer(world.ann_dm)


def system(model: Scripted, index: int = -1) -> str:
    return "\n".join(one.text for one in model.requests[index].system)


def commits(world: World) -> list[Any]:
    path = world.folder / "data" / "memory" / "ledger" / f"{BOT}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def cursor(world: World, person: Any) -> Any:
    path = world.folder / "data" / "memory" / "cursors" / f"hatching-{person.id}.json"
    return json.loads(path.read_text()) if path.exists() else None


async def items(world: World) -> dict[str, Any]:
    """The bot's own active items by key."""
    return {str(item.facets.key): item for item in (await world.memory.view(BOT)).active()}
