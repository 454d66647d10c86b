"""What is noted of tools, and what `!memory reset rolling` notes, in the whole bot."""

from collections.abc import AsyncGenerator

from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, ToolCall, ToolTurn
from discoclaw.memory.conversations import clears
from discoclaw.memory.people import tool_calls
from discoclaw.memory.people.tool_calls import KEPT_MS, Call
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.memory.leftovers import traces

WORD = "Kanarie-4711"


class Storing(Scripted):
    """Calls a tool once for each message, then answers."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if request.tools and not isinstance(request.turns[-1], ToolTurn):
            call = ToolCall("1", "memory_store", {"text": f"User likes {WORD}."})
            yield Finished(AssistantTurn("", (call,)), "tools")
            return
        async for event in super().stream(request):
            yield event


def noted(world: World) -> list[Call]:
    return tool_calls.read(tool_calls.log_of(world.memory.disk, f"user-{world.ann.id}"))


async def test_a_call_is_noted_kept_for_thirty_days_and_erased_with_its_person(start: Start) -> None:
    async with start(Storing()) as world:
        await world.ann.send(world.general, "please")
        await world.ann.send_dm("please")
        await world.settle()
        assert [(one.tool, one.ok, one.channel, one.private) for one in noted(world)] == [
            ("memory_store", True, str(world.general.id), False),
            ("memory_store", True, str(world.ann_dm.id), True),
        ]
        assert all(WORD in one.content for one in noted(world))
        now = noted(world)[0].at  # the simulated clock may have moved a little since
        assert (await world.hygiene.run(now + KEPT_MS)).lines == 0
        assert (await world.hygiene.run(now + KEPT_MS + 2 * 86_400_000)).lines == 2
        assert noted(world) == []
        await world.ann.send(world.general, "please")
        await world.settle()
        assert len(noted(world)) == 1
        await world.ann.send(world.general, "!memory erase --yes")
        await world.settle()
        assert traces(world.folder / "data", WORD, str(world.ann.id)) == []


async def test_a_reset_summary_is_noted_with_who_wanted_it(start: Start) -> None:
    async with start(summary_every=1) as world:
        await world.ann.send(world.general, "we talk about boats")
        await world.settle()
        await world.ann.send(world.general, "!memory reset rolling")
        (one,) = clears.read(world.memory.disk.log(clears.FILE))
        assert (one.session, one.by) == (f"discord:channel:{world.general.id}", str(world.ann.id))
        assert await world.app.storage.conversations.clears.hidden(one.session, one.at)
