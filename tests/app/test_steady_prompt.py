"""The beginning of a prompt stays the same from turn to turn, so that a server needn't read it again."""

import json
from itertools import takewhile

from discoclaw.models.anthropic.provider import AnthropicModel
from tests.app.conftest import Start, World
from tests.app.providers import Provider
from tests.servers import chat_api
from tests.servers.messages_api import MessagesServer
from tests.servers.messages_api import Received as OfMessages

Received = OfMessages | chat_api.Received

QUIET = {"summary_enabled": False, "extraction_enabled": False}
MEMORIES = ("Tom is a cat who eats fish", "Rex is a dog who sleeps", "I sail the boat Argo")


def beginning(received: Received) -> str:
    """What a request begins with: the system prompt and the tools, in the order of most templates."""
    return f"{received.system}\n{json.dumps(received.tools, ensure_ascii=False)}\n"


def prompt(received: Received) -> str:
    """A whole request as a model reads it."""
    return beginning(received) + received.prompt


def shared(before: Received, after: Received) -> float:
    """How much of the later prompt is the same, from its start."""
    one, other = prompt(before), prompt(after)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len(list(same)) / len(other)


async def asked(world: World, server: MessagesServer | chat_api.ChatServer, words: str) -> Received:
    """Ann writes in the channel. Returns the request of her turn."""
    await world.ann.send(world.general, words)
    await world.settle()
    last: Received = server.requests[-1]
    return last


class TestTheBeginning:
    async def test_is_nine_tenths_of_the_next_turns_prompt(self, start: Start, provider: Provider) -> None:
        server = provider.server
        server.default = lambda _: provider.api.text("He is well, and has eaten all the fish that was there.")
        async with start(**provider.settings(**QUIET)) as world:
            for one in MEMORIES:
                await world.ann.send(world.general, f"!memory remember {one}")
            for number in range(5):
                await asked(world, server, f"{number} is a number, and {'so on ' * 35}")
            before = await asked(world, server, "how are Tom the cat and Rex today?")
            for words in (
                "does Rex the dog sleep near Tom?",  # the same memories, and another one fits best
                "please tidy up what you remember of Tom and Rex, and link it",
                "do I prefer Tom to Rex?",
            ):
                await world.env.advance_time(700)
                after = await asked(world, server, words)
                assert [one in after.prompt for one in MEMORIES] == [True, True, False]
                assert after.prompt.endswith(words)
                assert shared(before, after) >= 0.9
                kept = before.prompt.partition("\n\n---\nCurrent time:")[0]
                assert kept.endswith("fish that was there.") and after.prompt.startswith(f"{kept}\n[ann]: ")
                before = after

    async def test_is_the_same_bytes_for_everybody_in_a_channel(
        self, start: Start, server: MessagesServer
    ) -> None:
        async with start(None, base_url=server.base_url, **QUIET) as world:
            await asked(world, server, "hello")
            await world.ann.send(world.general, "!memory remember I sail the boat Argo")
            await asked(world, server, "please forget the boat Argo, and tell me its history")
            await world.ann.send(world.general, "!memory create-branch work")
            await asked(world, server, "switch to my persona work")
            await world.bob.send(world.general, "and what else do you know about me?")
            await world.restart()
            await asked(world, server, "and after a restart?")
            assert len(server.requests) == 5
            assert len({beginning(received) for received in server.requests}) == 1

    async def test_ends_behind_the_known_memories_when_one_is_added(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, f"!memory remember {MEMORIES[0]}")
            before = await asked(world, server, "how are Tom the cat and Rex?")
            await world.ann.send(world.general, f"!memory remember {MEMORIES[1]}")
            after = await asked(world, server, "how are Rex and Tom the cat?")
            line = next(line for line in before.prompt.splitlines() if MEMORIES[0] in line)
            begin = f"{before.prompt.partition(line)[0]}{line}\n"
            assert after.prompt.startswith(f"{begin}- [fact] {MEMORIES[1]}")
