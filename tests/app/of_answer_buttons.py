"""The buttons below an answer: Stop while it is written, then Again, and Go on for the rest."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from simcord import interactions
from simcord.backend import serializers
from simcord.results import InteractionResult

from discoclaw.core import titles
from discoclaw.core.model import ModelRequest, StreamEvent
from discoclaw.core.ports import Model
from discoclaw.models.anthropic.provider import AnthropicProvider
from tests.app.conftest import GUILD_ID, Start, World
from tests.servers.messages_api import Json, MessagesServer, Received

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
LIVE = {**QUIET, "edit_interval_s": 0.0}  # the simulated clock stands still while a model is awaited
BEGUN = "One sheep. Two sheep."
SEARCH = ("t", "memory_search", {"query": "tea"})


def labels(message: Any) -> list[str]:
    """The buttons of a message."""
    return [one.label for row in message.components for one in row.children]


def said(channel: Any) -> list[tuple[str, list[str]]]:
    """What a channel shows, with the buttons below it."""
    return [(str(one.content), labels(one)) for one in channel.history()]


async def seen(channel: Any, condition: Callable[[list[tuple[str, list[str]]]], bool]) -> None:
    """Wait until the channel shows that."""
    async with asyncio.timeout(10):
        while not condition(said(channel)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def never() -> asyncio.Event:
    """What a model waits for that would go on for ever."""
    return asyncio.Event()


def answer_as_seen(world: World, message: Any) -> Json:
    """A message as it is shown to somebody who is about to press its first button."""
    backend = world.env.backend
    return dict(serializers.message_payload(backend, backend.get_message(message.channel.id, message.id)))


def press(world: World, person: Any, message: Json) -> InteractionResult:
    """Press the first button of a message as it was seen, and wait for nothing, as `click` does."""
    backend, channel_id = world.env.backend, int(message["channel_id"])
    data = {"custom_id": message["components"][0]["components"][0]["custom_id"], "component_type": 2}
    record, payload = interactions.base_payload(
        backend, type=3, channel_id=channel_id, guild_id=GUILD_ID, user_id=person.id, data=data
    )
    record.source_message_id = int(message["id"])
    backend.emit("INTERACTION_CREATE", {**payload, "message": message})
    return InteractionResult(world.env, record)


def on_disk(world: World, words: bytes) -> list[Path]:
    """The files of the bot that contain these words."""
    files = (path for path in (world.folder / "data").rglob("*") if path.is_file())
    return [path for path in files if words in path.read_bytes()]


def message_of(received: Received) -> str:
    """What the model was to answer."""
    return titles.sections(received.prompt).get(titles.MESSAGE, "")


class Slow:
    """A model. While it is `slow`, the simulated Discord doesn't wait for it: people go on meanwhile."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.slow = False
        self.world: World

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        slow = self.slow
        async with aclosing(self._model.stream(request)) as events:
            with suppress(StopAsyncIteration):
                while True:
                    event = anext(events)
                    yield await (self.world.env.external_wait(event, reason="slow") if slow else event)

    async def close(self) -> None:
        """It outlives a restart of the bot."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


Begin = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def begin(start: Start, server: MessagesServer) -> Begin:
    """`async with begin(**settings) as world`, with a model that has more time than anybody here waits."""

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[World]:
        provider = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1)
        slow = Slow(provider.model("haiku", total_timeout_s=600))
        try:
            async with start(slow, **{**LIVE, **settings}) as world:
                slow.world = world
                world.env.settle_timeout = 7.0  # it waits for timers that end within that: typing's take 8 s
                yield world
        finally:
            await provider.close()

    return opened


async def streaming(world: World, act: Awaitable[Any], channel: Any) -> Any:
    """The message that shows an answer while it is written; `act` makes the bot answer."""
    world.model.slow = True
    await act
    await seen(channel, lambda shown: "Stop" in shown[-1][1])
    world.model.slow = False
    return channel.last_message
