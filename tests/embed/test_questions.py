"""Questions to a provider of embeddings while somebody waits for an answer: how long they wait, and no names.

The rest is seen from outside (`tests/contract/test_finding_by_meaning.py`); the simulated Discord can't wait
for a server that stalls.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from discoclaw.embed.providers import OLLAMA, HttpEmbedder
from discoclaw.loops.embedding import Embedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.vectors import VectorCache
from discoclaw.session.meaning import Meaning, without_names
from tests.contract.meanwhile import until
from tests.memory.kit import ANN, Clock, remember
from tests.servers.embeddings_api import EmbeddingsServer, failure, stall
from tests.tables import each_row

TEXTS = ("User has a cat.", "User drinks tea.", "User plays go.")


class Desk:
    """One person's memory with vectors, and questions about it."""

    def __init__(self, root: Path, server: EmbeddingsServer, stack: AsyncExitStack) -> None:
        self.server = server
        self.memory = Memory(root, clock=Clock())
        self.vectors = VectorCache(root.parent / "cache" / "vectors.sqlite")
        self.memory.join(self.vectors)
        self.memory.open()
        stack.callback(self.vectors.close)
        stack.callback(self.memory.close)
        self._stack = stack

    def begin(self, *, wait_s: float) -> Meaning:
        door = HttpEmbedder(OLLAMA, model="m", base_url=self.server.url)
        embedding = Embedding(door, self.memory, self.vectors, rest_s=0.01)
        self.memory.join(embedding)
        self.meaning = Meaning(door, embedding, wait_s=wait_s, rest_s=0.01)
        self._stack.push_async_callback(self.meaning.close)
        return self.meaning

    async def remember(self, *texts: str) -> None:
        for text in texts:
            await self.memory.change(ANN, "a test", remember(text))

    async def near(self, text: str) -> Mapping[str, float]:
        """What a question finds, by the texts of the items."""
        question = self.meaning.ask(ANN, text, private=False)
        if question is None:
            return {}
        items = (await self.memory.view(ANN)).active()
        found = await question.cosines(items)
        return {item.text: found[item.id] for item in items if item.id in found}

    async def ready(self) -> None:
        await until(lambda: self.meaning.in_time)
        await self.meaning.settle()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddingsServer(same={"feline": "cat"}))
        yield Desk(tmp_path / "memory", server, stack)


class TestFaults:
    async def test_an_answer_that_comes_too_late_is_not_waited_for(self, desk: Desk) -> None:
        await desk.begin(wait_s=1.0).start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.default = stall()
        async with asyncio.timeout(20):
            assert await desk.near("feline?") == {}
        assert not desk.meaning.in_time
        assert await desk.near("another feline?") == {}
        assert "another feline?" not in desk.server.texts

    async def test_a_try_that_is_answered_too_late_does_not_count(self, desk: Desk) -> None:
        await desk.begin(wait_s=0.05).start()
        desk.server.script(failure(500))
        desk.server.default = stall()
        await desk.server.wait_for_requests(4)
        assert not desk.meaning.in_time


class TestNames:
    @each_row(
        ("text", "names", "left"),
        [
            ("What is Ann's cat called?", ["Ann"], "What is cat called?"),
            ("@DiscoClaw, ann said tea", ["DiscoClaw", "Ann Lee"], ", said tea"),
            ("Ann Lee likes planning", ["Ann Lee"], "likes planning"),
            ("I like C++ (really)", ["C++ (fan)", ".*", "ik"], "I like (really)"),
            ("A cat and a b", ["a", "b", "", " "], "A cat and a b"),
            ("nothing to do", [], "nothing to do"),
        ],
    )
    def test_say_nothing_of_what_is_meant(self, text: str, names: list[str], left: str) -> None:
        assert without_names(text, names) == left
