"""Whether the bot is ready, and what it measures: asked over HTTP while each thing really breaks and recovers."""

import aiohttp

from discoclaw.app.monitoring import Monitoring
from discoclaw.settings_types import Listen
from tests.app.conftest import Start, World

ANYWHERE = Listen("127.0.0.1", 0)


async def get(world: World, path: str) -> tuple[int, str]:
    listener = world.app.feature(Monitoring).listener
    assert listener is not None
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{listener.port}{path}") as answer:
            return answer.status, await answer.text()


async def test_it(start: Start) -> None:
    async with start(metrics=ANYWHERE) as world:
        await world.ann.send(world.general, "hello")
        await world.settle()
        for path in ("/healthz", "/readyz", "/metrics"):
            print(*await get(world, path))
