"""One house a module: its tests run in one event loop, and share the bot that runs in it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.process.house import House


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with House(tmp_path_factory.mktemp("house")) as built:
        yield built
