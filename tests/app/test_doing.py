"""What people see while the model uses tools and says nothing: between calls, today's models only think."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from discoclaw.models.anthropic.provider import AnthropicModel
from discoclaw.session.conversation import LOOKING, WORKING
from tests.app.conftest import Start, World
from tests.servers import messages_api as api
from tests.servers.messages_api import Answer, MessagesServer

QUIET = {"extraction_enabled": False, "summary_enabled": False}
LIVE = {**QUIET, "edit_interval_s": 0.0}  # the simulated clock stands still while a model is awaited
SEARCH = ("t", "memory_search", {"query": "tea"})
STORE = ("t", "memory_store", {"text": "User likes tea.", "kind": "fact"})


def thinking(said: str, until: asyncio.Event, stop_reason: str = "end_turn") -> Answer:
    """An answer that begins with a thought, which lasts until the test goes on."""
    return api.tool_use(said=said, thought="Hm.", hold=until, stop_reason=stop_reason)


async def seen(world: World, condition: Callable[[list[str]], bool]) -> list[str]:
    """What the channel shows as soon as that holds."""
    async with asyncio.timeout(10):
        while not condition(shown := world.shown(world.general)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return shown


@asynccontextmanager
async def asking(world: World, text: str, go_on: asyncio.Event) -> AsyncIterator[None]:
    """Ask, and look what there is meanwhile; then the model goes on."""
    task = asyncio.create_task(world.ann.send(world.general, text))
    yield
    go_on.set()
    await task
    await world.settle()


class TestWhileToolsRun:
    @pytest.mark.parametrize(("call", "line"), [(SEARCH, LOOKING), (STORE, WORKING)])
    async def test_a_line_says_so_until_the_answer_replaces_it(
        self, start: Start, server: MessagesServer, model: AnthropicModel, call: tuple, line: str
    ) -> None:
        go_on = asyncio.Event()
        server.script(api.tool_use(call, thought="Tea?"), thinking("You like tea.", go_on), api.text("Yes."))
        async with start(model, **LIVE) as world:
            async with asking(world, "What do I like?", go_on):
                assert await seen(world, lambda shown: len(shown) == 2) == ["What do I like?", line]
            assert world.shown(world.general) == ["What do I like?", "You like tea."]
            await world.ann.send(world.general, "Sure?")
            read = str(server.requests[-1].body)
            assert "You like tea." in read and line not in read
            stored = [path for path in (world.folder / "data").rglob("*") if path.is_file()]
            assert not any(line.encode() in path.read_bytes() for path in stored)

    async def test_it_stands_below_what_was_said_in_an_earlier_round(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        go_on = asyncio.Event()
        server.script(
            api.tool_use(SEARCH, said="Let me look."),
            api.tool_use(SEARCH, thought="Once more."),
            thinking("You like tea.", go_on),
        )
        async with start(model, **LIVE) as world:
            async with asking(world, "What do I like?", go_on):
                _, said = await seen(world, lambda shown: LOOKING in "".join(shown))
                assert said == f"Let me look.\n\n{LOOKING}"
            assert world.shown(world.general)[1:] == ["Let me look.\n\nYou like tea."]

    async def test_it_is_not_there_in_a_round_that_says_something_itself(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        go_on = asyncio.Event()
        server.script(api.tool_use(SEARCH, said="Let me look."), thinking("You like tea.", go_on))
        async with start(model, **LIVE) as world, asking(world, "What do I like?", go_on):
            await seen(world, lambda shown: len(shown) == 2 and len(server.requests) == 2)
            # A further question is answered only then, so everything there was to show is shown.
            await asyncio.sleep(0.2)
            assert world.answer(world.general).strip() == "Let me look."

    async def test_it_goes_away_where_no_answer_comes(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        go_on = asyncio.Event()
        server.script(api.tool_use(SEARCH), thinking("", go_on, "refusal"))
        async with start(model, **LIVE) as world:
            async with asking(world, "What do I like?", go_on):
                await seen(world, lambda shown: shown[-1:] == [LOOKING])
            _, told = world.shown(world.general)
            assert told.startswith("The model declined to answer that.")

    async def test_it_goes_away_where_the_answer_is_empty(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        go_on = asyncio.Event()
        server.script(api.tool_use(SEARCH), thinking(" ", go_on))
        async with start(model, **LIVE) as world:
            async with asking(world, "What do I like?", go_on):
                await seen(world, lambda shown: shown[-1:] == [LOOKING])
            _, told = world.shown(world.general)
            assert told.startswith("I have no answer to that.")

    async def test_what_takes_a_moment_only_shows_no_line(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.tool_use(SEARCH), api.text("You like tea."))
        async with start(model, edit_interval_s=5.0, **QUIET) as world:
            await world.ann.send(world.general, "What do I like?")
            assert world.shown(world.general)[1:] == ["You like tea."]
            assert not [one for one in world.env.http_requests if one.method in ("PATCH", "DELETE")]
