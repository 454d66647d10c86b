"""The loopback server and a provider to it, for every test of this folder."""

from collections.abc import AsyncIterator

import pytest

from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from tests.servers.messages_api import MessagesServer

KEY = "sk-ant-api03-0123456789abcdefABCDEF"


@pytest.fixture
async def server() -> AsyncIterator[MessagesServer]:
    async with MessagesServer() as running:
        yield running


@pytest.fixture
async def provider(server: MessagesServer) -> AsyncIterator[AnthropicProvider]:
    opened = AnthropicProvider(api_key=KEY, base_url=server.base_url, connect_timeout_s=1)
    yield opened
    await opened.close()


@pytest.fixture
def model(provider: AnthropicProvider) -> AnthropicModel:
    return provider.model("haiku", total_timeout_s=5)
