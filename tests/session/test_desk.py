"""The queue of a conversation when the program ends."""

import asyncio

from discoclaw.session import desk as desks
from discoclaw.session.desk import Desk, Job


async def test_nothing_speaks_any_more_once_it_is_closed() -> None:
    desk, said = Desk(), list[str]()

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            said.append("I stop")
            await asyncio.sleep(2 * desks.WORD_S)  # the chat doesn't take it in time
            said.append("too late")

    async def dropped() -> None:
        said.append("dropped")

    async def answers() -> None:
        said.append("answered")

    assert desk.submit("dm", Job(hangs, dropped, "ann", beside=True))
    assert desk.submit("dm", Job(answers, dropped, "ann"))
    await asyncio.sleep(0)
    await desk.close(0.0)
    assert sorted(said) == ["I stop", "dropped"]
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("desk")]
