"""A model that reads little at once: the bot learns that from its server, and keeps within it."""

import asyncio
import json
import re

from discoclaw.loops.facts_prompt import BRIEF, SYSTEM
from tests.app.conftest import Start, World
from tests.app.live import edit, here
from tests.app.of_offered_tools import ALL
from tests.app.previewing import below, knows, preview
from tests.servers.messages_api import (
    Answer,
    Held,
    MessagesServer,
    Raw,
    Received,
    failure,
    json_answer,
    text,
)

QUIET = {"summary_enabled": False, "extraction_enabled": False}
LONG = {"history_budget": 40_000, "context_history": 40}
TOKEN = re.compile(r"\w{1,4}|[^\w\s]")
READS = 8192
USUAL, LOOPS, OTHER = "claude-sonnet-5-5", "claude-haiku-5-5", "llama-test"
MEMORIES = tuple(f"User likes kettle number {number} for its colour and handle" for number in range(12))


def tokens(received: Received) -> int:
    """The tokens of a request and of the answer that it asks for, counted as a strict server may."""
    tools = json.dumps(received.body.get("tools", []))
    said = json.dumps(received.body["messages"], ensure_ascii=False)
    return len(TOKEN.findall(f"{received.system}{tools}{said}")) + int(received.body["max_tokens"])


def small(server: MessagesServer, *names: str, reads: int = READS) -> None:
    """Make it a server that says how much it reads at once, and refuses more."""
    listed = {"data": [{"id": one, "max_model_len": reads} for one in names or (USUAL, LOOPS)]}
    server.models = Raw(json.dumps(listed).encode(), 200, {"content-type": "application/json"})

    def answer(received: Received) -> Answer | Raw:
        if (count := tokens(received)) > reads:
            return failure(400, "invalid_request_error", f"prompt is too long: {count} tokens > {reads}")
        if received.system.startswith("You keep the long-term memory"):
            return json_answer({"upserts": [], "deprecations": []})
        if received.system.startswith("You keep the running summary"):
            return json_answer({"summary": "Now:\n- 2026-01-01 bob: goes on and on"})
        return text("Here you are.")

    server.default = answer


async def talked(world: World, server: MessagesServer) -> Received:
    """Ann has memories, and has talked for long, when she asks for her kettles. Returns the last request."""
    for one in MEMORIES:
        await world.ann.send(world.general, f"!memory remember {one}")
    for number in range(16):
        await world.bob.send(world.general, f"{number}: {'it goes on and on, as talk does. ' * 24}")
    await world.ann.send(world.general, "which kettles do I like, and in which colour?")
    await world.settle()
    return server.requests[-1]


class TestASmallWindow:
    async def test_has_the_rules_the_memories_and_the_message(
        self, start: Start, server: MessagesServer
    ) -> None:
        small(server)
        async with start(base_url=server.base_url, **QUIET, **LONG) as world:
            sent = await talked(world, server)
            assert world.answer(world.general) == "Here you are."
            assert tokens(sent) <= READS and sent.body["max_tokens"] == READS // 4
            assert "What always holds:" in sent.system and "## Memory" in sent.system
            assert all(one in sent.prompt for one in MEMORIES)
            assert sent.prompt.endswith("which kettles do I like, and in which colour?")
            assert "15: it goes on" in sent.prompt and "[bob]: 0: it goes on" not in sent.prompt
            assert [one["name"] for one in sent.body["tools"]] == ALL[:4]
            said = await preview(world)
            (title,) = [line for line in said.splitlines() if line.startswith("**Left out because")]
            assert title == "**Left out because the model here reads 8,192 tokens at once**"
            left = below(said, title.strip("*"))
            assert left is not None and re.fullmatch(r"- \d+ older messages", left[0])

    async def test_is_not_mentioned_where_everything_fits(self, start: Start, server: MessagesServer) -> None:
        small(server, reads=60_000)
        async with start(base_url=server.base_url, **QUIET, **LONG) as world:
            sent = await talked(world, server)
            assert "[bob]: 0: it goes on" in sent.prompt and len(sent.body["tools"]) == len(ALL)
            assert "Left out because" not in await preview(world)

    async def test_is_what_the_setting_says_if_there_is_one(
        self, start: Start, server: MessagesServer
    ) -> None:
        small(server)
        wrong = {"context_tokens": 128_000, **QUIET, **LONG}
        async with start(base_url=server.base_url, **wrong) as world:
            sent = await talked(world, server)
            assert tokens(sent) > READS and "[bob]: 0: it goes on" in sent.prompt
            assert "Here you are." not in world.answer(world.general)

    async def test_is_that_of_the_model_which_a_channel_has(
        self, start: Start, server: MessagesServer
    ) -> None:
        small(server, OTHER)
        async with start(base_url=server.base_url, **QUIET, **LONG) as world:
            edit(world, {here(world): {"model": OTHER}})
            await world.ann.send(world.dev, "hello")
            assert server.requests[-1].body["max_tokens"] == 4096
            await world.ann.send(world.general, "hello")  # only now anybody asks about that model
            await world.settle()
            sent = await talked(world, server)
            assert sent.body["model"] == OTHER and tokens(sent) <= READS
            assert world.answer(world.general) == "Here you are."

    async def test_is_asked_for_while_people_are_answered(self, start: Start, server: MessagesServer) -> None:
        small(server)
        until = asyncio.Event()
        server.listing = Held(until)
        async with start(base_url=server.base_url, **QUIET) as world:
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "Here you are."
            assert server.requests[-1].body["max_tokens"] == 4096
            until.set()
            await world.settle()
            await world.ann.send(world.general, "and now?")
            assert server.requests[-1].body["max_tokens"] == READS // 4

    async def test_of_hardly_a_token_is_a_mistake_of_the_server(
        self, start: Start, server: MessagesServer
    ) -> None:
        small(server, reads=1_000_000)
        listed = {"data": [{"id": one, "max_model_len": 1} for one in (USUAL, LOOPS)]}
        server.models = Raw(json.dumps(listed).encode(), 200, {"content-type": "application/json"})
        async with start(base_url=server.base_url, **LONG) as world:
            await world.ann.send(world.general, "hello")
            await world.settle()
            await talked(world, server)
            loops = [one for one in server.requests if one.system.startswith(SYSTEM)]
            assert loops and all(one.body["max_tokens"] > 1_000 for one in server.requests)


class TestLearning:
    async def test_keeps_within_what_the_small_models_read(
        self, start: Start, server: MessagesServer
    ) -> None:
        small(server)
        async with start(base_url=server.base_url, **LONG) as world:
            await knows(
                world,
                world.ann,
                *(("fact", f"User has cup {n} {'of clay ' * 12}", "normal") for n in range(150)),
            )
            for number in range(6):
                await world.ann.send(
                    world.general, f"I have {number} cups. {'And so it goes, on and on. ' * 65}"
                )
            await world.settle()
            loops = [one for one in server.requests if one.system.startswith("You keep")]
            learned = [one for one in loops if one.system.startswith(BRIEF)]
            assert len(learned) >= 2 and len(loops) > len(learned) and max(map(tokens, loops)) <= READS
            for number in range(6):
                assert any(f"I have {number} cups" in one.prompt for one in learned)

    async def test_has_its_whole_rules_for_others(self, start: Start, server: MessagesServer) -> None:
        small(server, reads=60_000)
        async with start(base_url=server.base_url) as world:
            await world.ann.send(world.general, "I have five cups")
            await world.settle()
            assert any(one.system.startswith(SYSTEM) for one in server.requests)
