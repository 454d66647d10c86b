"""One person's memory with vectors of a provider on loopback, and questions about it."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from discoclaw.core.item import Item
from discoclaw.core.view import View
from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.embedding import Embedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.vectors import VectorCache
from discoclaw.session.meaning import Meaning
from tests.memory.kit import ANN, Clock, remember
from tests.servers.embeddings_api import EmbeddingsServer
from tests.session.scene import until

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

    def begin(
        self, *, wait_s: float = 5.0, rest_s: float = 0.01, again_s: float = 3600.0, url: str = ""
    ) -> Meaning:
        """`wait_s` is long unless a test is about waiting: the machine may be busy."""
        door = HttpEmbedder(OLLAMA, model="m", base_url=url or self.server.url)
        embedding = Embedding(door, self.memory, self.vectors, rest_s=0.01)
        self.memory.join(embedding)
        self.meaning = Meaning(door, embedding, wait_s=wait_s, rest_s=rest_s, again_s=again_s)
        self._stack.push_async_callback(self.meaning.close)
        return self.meaning

    async def remember(self, *texts: str) -> None:
        for text in texts:
            await self.memory.change(ANN, "a test", remember(text))

    async def items(self) -> list[Item]:
        view: View = await self.memory.view(ANN)
        return view.active()

    async def near(
        self, text: str, *, subject: str = ANN, items: Sequence[Item] | None = None
    ) -> Mapping[str, float]:
        """What a question finds among items, by their texts; without `items`, among those there are now."""
        question = self.meaning.ask(subject, text, private=False)
        if question is None:
            return {}
        items = items if items is not None else await self.items()
        found = await question.cosines(items)
        return {item.text: found[item.id] for item in items if item.id in found}

    async def ready(self) -> None:
        await until(lambda: self.meaning.in_time, seconds=20)
        await self.meaning.settle()
