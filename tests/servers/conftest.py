"""The loopback Discord with a small bot in it, for the tests of the loopback Discord itself."""

from collections.abc import AsyncIterator

import pytest

from tests.servers.discord_parrot import Parrot, connected, redirected_server
from tests.servers.discord_server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with redirected_server() as running:
        yield running


@pytest.fixture
async def bot(server: DiscordServer) -> AsyncIterator[Parrot]:
    server.add_channel("talk")
    server.add_user("Alice")
    async with connected(server) as running:
        yield running
