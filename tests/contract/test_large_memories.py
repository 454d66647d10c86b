"""A memory of thousands of items finds what a small one finds, and nobody waits for it."""

import asyncio.events
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.contract.embedding import QUIET
from tests.contract.tools import called
from tests.contract.world import Start, World

COUNT = 2100
"""More than are ranked one by one."""
ZEBRA, ROOM = "User saw a zebra.", "Rehearsals are on the second floor of the old mill behind the park"
STYLE, ALLERGY = "User prefers short answers.", "User is allergic to nuts."
SECRET = "User fears a zebra."


async def knows(world: World, *items: dict[str, Any]) -> None:
    """Have the bot know these about Ann, out of a file."""
    known = [{"kind": "fact", "sensitivity": "normal", **one} for one in items]
    content = json.dumps({"format": "discoclaw-memory", "version": 1, "memories": known}).encode()
    await world.says(world.ann, world.general, "!memory import", attachments=[("memories.json", content)])


@contextmanager
def nobody_held_up() -> Iterator[None]:
    """Fail if one step of the event loop takes its thread more than 0.1 s of computing."""
    longest, run = 0.0, asyncio.events.Handle._run

    def timed(step: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        run(step)
        longest = max(longest, time.thread_time() - began)

    asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        asyncio.events.Handle._run = run  # type: ignore[method-assign, assignment]
    assert longest < 0.1


async def found(world: World, question: str, place: Any = None) -> set[str]:
    """Which of the memories that matter here the prompt of a question has."""
    await world.says(world.ann, place or world.general, question)
    known = (ZEBRA, ROOM, STYLE, ALLERGY, SECRET)
    return {one for one in known if one in world.prompt}


async def test_finds_what_a_small_one_finds_until_it_is_forgotten_and_leaves_nothing(start: Start) -> None:
    async with start(**QUIET, max_items=5000, dm_privacy="strict") as world:
        await called(world, "memory_store", text=ROOM, key="green-room")
        with nobody_held_up():
            await knows(
                world,
                {"text": STYLE, "kind": "preference"},
                {"text": ALLERGY, "kind": "preference"},
                {"text": ZEBRA},
                {"text": SECRET, "sensitivity": "private"},
                {"text": "User rides a motorcycle."},
                *({"text": f"User likes tea number{number} in the green room."} for number in range(COUNT)),
            )
        always = {STYLE, ALLERGY}
        assert await found(world, "what of the zebra?") == {ZEBRA, *always}
        assert await found(world, "what happens in the green room?") == {ROOM, *always}
        assert await found(world, "how is my motorcyle?") == always and "motorcycle" in world.prompt
        assert await found(world, "what of the zebra?", world.ann_dm) == {ZEBRA, SECRET, *always}
        await world.restart()
        assert await found(world, "what of the zebra?") == {ZEBRA, *always}
        await world.says(world.ann, world.general, "!memory remember User was given a quagga.")
        await world.says(world.ann, world.general, "what of my quagga?")
        assert "quagga." in world.prompt
        await world.says(world.ann, world.general, f"!memory forget {ZEBRA}")
        assert await found(world, "what of the zebra now?") == always
        for path in (world.data / "cache").rglob("*"):  # which may be damaged or deleted at any time
            if path.is_file():
                path.write_bytes(b"nonsense" * 1000)
        assert always <= await found(world, "once more, what happens in the green room?")
        assert world.answer(world.general) == "ok"
        assert ROOM in await found(world, "what happens in the green room?")  # it was made anew
        await world.env.advance_time(1)
        await world.says(world.ann, world.general, "!memory erase --yes")
        assert world.files_with("motorcycle") == world.files_with("quagga") == []
