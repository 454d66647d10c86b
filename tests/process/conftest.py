"""One house a module: its tests run in one event loop, and share the bot that runs in it."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.process.forks import Forks
from tests.process.house import House


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[House]:
    """The lives of a module that sets FORKED begin as forks, where the system has these."""
    forked = getattr(request.module, "FORKED", False) and hasattr(os, "fork")
    async with House(tmp_path_factory.mktemp("house"), forks=Forks() if forked else None) as built:
        yield built
