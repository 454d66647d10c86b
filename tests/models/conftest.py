"""The loopback servers and providers to them, for every test of this folder.

Without a mark, a test is about Anthropic's API. One that is marked `every_adapter` runs for that and for each
dialect of OpenAI's: `api` is the module whose functions make the server's behaviours, the same in both.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from discoclaw.models.anthropic import AnthropicProvider
from discoclaw.models.asking import ServedModel
from discoclaw.models.openai import OpenAIProvider
from tests.servers import chat_api, messages_api
from tests.servers.chat_api import DIALECTS, ChatServer
from tests.servers.messages_api import MessagesServer

KEY = "sk-ant-api03-0123456789abcdefABCDEF"

Provider = AnthropicProvider | OpenAIProvider
AnyServer = MessagesServer | ChatServer


@dataclass(frozen=True)
class Adapter:
    """An API, a server that speaks it in one way, and what makes a provider to it."""

    name: str
    api: ModuleType
    serve: Callable[[], AnyServer]
    open: Callable[..., Provider]


ANTHROPIC = Adapter("anthropic", messages_api, MessagesServer, AnthropicProvider)
CHAT = [Adapter(one, chat_api, partial(ChatServer, one), OpenAIProvider) for one in DIALECTS]


def _each(*adapters: Adapter) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("adapter", adapters, indirect=True, ids=[one.name for one in adapters])


every_adapter = _each(ANTHROPIC, *CHAT)
each_api = _each(ANTHROPIC, CHAT[0])
every_dialect = _each(*CHAT)
one_dialect = _each(CHAT[0])


@pytest.fixture
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return getattr(request, "param", ANTHROPIC)


@pytest.fixture
def api(adapter: Adapter) -> Any:
    return adapter.api


@pytest.fixture
async def server(adapter: Adapter) -> AsyncIterator[AnyServer]:
    async with adapter.serve() as running:
        yield running


@pytest.fixture
async def provider(adapter: Adapter, server: AnyServer) -> AsyncIterator[Provider]:
    opened = adapter.open(api_key=KEY, base_url=server.base_url, connect_timeout_s=1)
    yield opened
    await opened.close()


@pytest.fixture
async def once(adapter: Adapter, server: AnyServer) -> AsyncIterator[Provider]:
    """A provider whose SDK tries nothing again."""
    opened = adapter.open(api_key=KEY, base_url=server.base_url, connect_timeout_s=1, max_retries=0)
    yield opened
    await opened.close()


@pytest.fixture
def model(provider: Provider) -> ServedModel:
    return provider.model("haiku", total_timeout_s=5)
