"""One house a module: its tests run in one event loop, and share the bot that runs in it."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.process.forks import Source
from tests.process.house import House


@pytest.fixture(scope="session")
def forks() -> Iterator[Source | None]:
    """The process that forks, where the system has forks."""
    source = Source() if hasattr(os, "fork") else None
    yield source
    if source is not None:
        source.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, forks: Source | None
) -> AsyncIterator[House]:
    """The lives of a module that sets FORKED begin as forks, where the system has these."""
    forked = getattr(request.module, "FORKED", False)
    async with House(tmp_path_factory.mktemp("house"), forks=forks if forked else None) as built:
        yield built
