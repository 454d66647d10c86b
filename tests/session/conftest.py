"""A provider of vectors, for which a cat is a feline, and a desk with it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.servers.embeddings_api import EmbeddingsServer
from tests.session.vectors import Desk


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"feline": "cat"}) as server:
        yield server


@pytest.fixture
async def desk(tmp_path: Path, server: EmbeddingsServer) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        yield Desk(tmp_path / "memory", server, stack)
