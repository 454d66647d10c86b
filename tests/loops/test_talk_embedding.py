"""Vectors of talk: made from a real archive by a provider on loopback, whatever that does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.errors import MemoryFault
from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.batches import BATCH
from discoclaw.loops.embedding import Embedding
from discoclaw.loops.talk_embedding import LONGEST, TalkEmbedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.archive_rows import Drop, Put
from discoclaw.search.archive_sqlite import SqliteArchive
from discoclaw.search.archive_vectors import Provider
from discoclaw.search.talk_vectors import TalkVectors
from discoclaw.search.vectors import VectorCache
from tests.memory.kit import ANN, NOW, Clock, remember
from tests.memory.test_archive import said, write
from tests.servers.embeddings_api import (
    FAULTS,
    Behaviour,
    EmbeddingsServer,
    Held,
    Shaped,
    stall,
)
from tests.session.scene import until

TEXT = "the kettle whistles loudly"


class Bench:
    """An archive, and the provider that makes its vectors."""

    def __init__(self, folder: Path, server: EmbeddingsServer, stack: AsyncExitStack) -> None:
        self.server = server
        self.memory = Memory(folder / "memory", clock=Clock())
        self.memory.open()
        self.archive = SqliteArchive(folder / "archive.sqlite", clock=Clock())
        cache = VectorCache(folder / "cache" / "vectors.sqlite")
        for part in (self.memory, self.archive, cache):
            stack.callback(part.close)
        self._cache = cache
        self._stack = stack

    def begin(self, *, model: str = "m", timeout_s: float = 10.0) -> TalkEmbedding:
        door = HttpEmbedder(OLLAMA, model=model, base_url=self.server.url)
        self.items = Embedding(door, self.memory, self._cache, rest_s=0.01)
        self.memory.join(self.items)
        self.vectors = TalkVectors(self.archive, Provider(door.name, here=True), consent=UNLIMITED)
        embedding = TalkEmbedding(
            door, self.vectors, clock=lambda: NOW, items=self.items, rest_s=0.01, timeout_s=timeout_s
        )
        for part in (door, self.items, embedding):
            self._stack.push_async_callback(part.close)
        return embedding

    def known(self) -> list[str]:
        """The texts that have vectors."""
        sql = "SELECT text FROM vectors JOIN entries USING (id) ORDER BY id"
        try:
            return [row[0] for row in self.archive.read(lambda db: db.execute(sql).fetchall(), [])]
        except MemoryFault:
            return []  # the tables are not there yet

    def say(self, *texts: str, first: int = 1) -> None:
        write(self.archive, *(Put(said(number, text)) for number, text in enumerate(texts, start=first)))


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer() as server:
        yield server


@pytest.fixture
async def bench(tmp_path: Path, server: EmbeddingsServer) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(tmp_path, server, stack)


class TestKeepingUp:
    async def test_starts_with_what_was_left_and_goes_on_with_what_is_new(self, bench: Bench) -> None:
        bench.say(TEXT)
        embedding = bench.begin()
        await embedding.start()
        await embedding.settle()
        bench.say("the milk boils over", first=2)
        embedding.touch()
        await embedding.settle()
        assert bench.server.texts == [TEXT, "the milk boils over"]
        assert bench.known() == [TEXT, "the milk boils over"]

    async def test_of_a_long_message_goes_the_beginning(self, bench: Bench) -> None:
        bench.say("kettle " * 2_000)
        embedding = bench.begin()
        await embedding.start()
        await embedding.settle()
        assert [len(one) for one in bench.server.texts] == [LONGEST]

    async def test_memories_come_first(self, bench: Bench) -> None:
        bench.say(TEXT)
        embedding = bench.begin()
        await bench.memory.change(ANN, "a test", remember("User likes tea."))
        await embedding.start()
        await embedding.settle()
        assert bench.server.texts == ["User likes tea.", TEXT]

    async def test_a_replaced_model_makes_all_again_and_keeps_nothing_of_the_old_one(
        self, bench: Bench
    ) -> None:
        bench.say(TEXT)
        embedding = bench.begin()
        await embedding.start()
        await embedding.settle()
        released = asyncio.Event()
        bench.server.script(Held(released))
        bench.say("the milk boils over", first=2)
        embedding.touch()
        await bench.server.wait_for_text("the milk boils over")
        await bench.items.replaced()
        assert bench.known() == []
        released.set()
        await embedding.settle()
        assert bench.known() == [TEXT, "the milk boils over"]
        assert bench.server.texts.count("the milk boils over") == 2

    async def test_vectors_of_another_length_than_the_measured_one_are_made_again(self, bench: Bench) -> None:
        bench.say(TEXT)
        embedding = bench.begin()
        await embedding.start()
        await embedding.settle()
        bench.server.dims = 64
        bench.items.expect(64)
        embedding.touch()
        await embedding.settle()
        assert bench.known() == [TEXT]
        assert bench.vectors.dims == 64

    async def test_a_message_that_is_deleted_meanwhile_gets_none(self, bench: Bench) -> None:
        bench.say(TEXT, "the milk boils over")
        released = asyncio.Event()
        bench.server.script(Held(released))
        embedding = bench.begin()
        await embedding.start()
        await bench.server.wait_for_text(TEXT)
        write(bench.archive, Drop("1"))
        released.set()
        await embedding.settle()
        assert bench.known() == ["the milk boils over"]


class TestFaults:
    @pytest.mark.parametrize("fault", [*FAULTS.values(), stall()], ids=[*FAULTS, "stall"])
    async def test_pass_after_a_while(self, bench: Bench, fault: Behaviour) -> None:
        bench.say(TEXT)
        embedding = bench.begin(timeout_s=1.0)
        bench.server.script(fault, fault)
        await embedding.start()
        await bench.server.wait_for_requests(3)
        await embedding.settle()
        assert bench.known() == [TEXT]

    async def test_a_text_that_is_always_refused_does_not_keep_the_others_waiting(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = bench.server

        def poisoned(vectors: list[list[float]]) -> list[list[float]]:
            return [] if "poison for soup" in server.requests[-1].texts else vectors

        server.default = Shaped(poisoned)
        texts = [f"soup with spoon {number}" for number in range(20)]
        bench.say(*texts[:9], "poison for soup", *texts[9:])
        embedding = bench.begin()
        await embedding.start()
        await until(lambda: len(bench.known()) == 20, seconds=30)
        await embedding.settle()
        assert bench.known() == texts
        assert "gets no vector until the next start" in caplog.text
        assert "poison" not in caplog.text

    async def test_a_long_backlog_leaves_the_provider_to_others_most_of_the_time(self, bench: Bench) -> None:
        bench.say(*(f"soup with spoon {number}" for number in range(BATCH + 1)))
        embedding = bench.begin()
        await embedding.start()
        await embedding.settle()
        assert len(bench.known()) == BATCH  # the rest waits for its time
        await until(lambda: len(bench.known()) == BATCH + 1, seconds=30)
