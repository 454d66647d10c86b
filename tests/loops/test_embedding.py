"""Keeping up with memory: what is sent to a provider, in the background, whatever becomes of it."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.item import Item
from discoclaw.core.subject import user_subject
from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.embedding import Embedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.vectors import VectorCache
from tests.memory.kit import ANN, BOB, Clock, refusing, remember
from tests.servers.embeddings_api import (
    FAULTS,
    Behaviour,
    EmbeddingsServer,
    Held,
    Shaped,
    failure,
    stall,
)
from tests.session.scene import until


class Bench:
    """A memory on a real folder and a provider; `here` says whether the provider counts as this machine."""

    def __init__(self, root: Path, server: EmbeddingsServer, stack: AsyncExitStack) -> None:
        self.server = server
        self.memory = Memory(root, clock=Clock())
        self.vectors = VectorCache(root.parent / "cache" / "vectors.sqlite")
        self.memory.join(self.vectors)
        self.memory.open()
        stack.callback(self.vectors.close)
        stack.callback(self.memory.close)
        self._stack = stack
        self.opted_out: set[str] = set()

    def begin(self, *, model: str = "m", here: bool = True, timeout_s: float = 10.0) -> Embedding:
        server = self.server
        door = HttpEmbedder(OLLAMA, model=model, base_url=server.url if here else server.elsewhere)
        embedding = Embedding(
            door,
            self.memory,
            self.vectors,
            consent=refusing(lambda user_id: user_subject(user_id) in self.opted_out),
            rest_s=0.01,
            timeout_s=timeout_s,
        )
        self.memory.join(embedding)
        self._stack.push_async_callback(door.close)
        self._stack.push_async_callback(embedding.close)
        return embedding

    async def add(self, subject: str, *texts: str, private: bool = False) -> None:
        for text in texts:
            origin = Origin("stated", private=private, dm_privacy="strict")
            await self.memory.change(subject, "a test", remember(text, origin=origin))

    async def items(self, subject: str) -> list[Item]:
        return (await self.memory.view(subject)).active()

    async def known(self, embedding: Embedding, subject: str) -> set[str]:
        """The texts of a subject's items that have vectors."""
        matrix = await embedding.matrix(subject)
        return {item.text for item in await self.items(subject) if item.text in matrix}


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer() as server:
        yield server


@pytest.fixture
async def bench(tmp_path: Path, server: EmbeddingsServer) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(tmp_path / "memory", server, stack)


class TestKeepingUp:
    async def test_what_is_remembered_gets_a_vector_once(self, bench: Bench) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.", "User has a cat.")
        await embedding.settle()
        await bench.add(ANN, "User plays go.")
        await embedding.settle()
        assert sorted(bench.server.texts) == ["User has a cat.", "User likes tea.", "User plays go."]
        assert len(await bench.known(embedding, ANN)) == 3

    async def test_what_was_there_before_is_caught_up_on_in_batches(self, bench: Bench) -> None:
        texts = [f"Fact number {number}." for number in range(150)]
        await bench.add(ANN, *texts)
        embedding = bench.begin()
        embedding.want(ANN, await bench.items(ANN))
        await embedding.settle()
        assert [len(request.texts) for request in bench.server.requests] == [64, 64, 22]
        assert await bench.known(embedding, ANN) == set(texts)

    async def test_after_a_restart_nothing_is_asked_twice(self, bench: Bench) -> None:
        first = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await first.settle()
        await first.close()
        second = bench.begin()
        second.want(ANN, await bench.items(ANN))
        await second.settle()
        assert bench.server.texts == ["User likes tea."]

    async def test_what_comes_to_items_that_all_have_vectors_gets_one_too(self, bench: Bench) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await embedding.settle()
        seen = (await bench.memory.view(ANN)).visible(in_dm=True)
        embedding.want(ANN, seen)
        embedding.want(ANN, seen)
        await bench.add(ANN, "User has a cat.")
        embedding.want(ANN, (await bench.memory.view(ANN)).visible(in_dm=True))
        await embedding.settle()
        await embedding.outdated(ANN)
        embedding.want(ANN, seen)
        await embedding.settle()
        texts = ["User likes tea.", "User has a cat."]
        assert await bench.known(embedding, ANN) == set(texts)
        assert sorted(bench.server.texts) == sorted(texts * 2)

    async def test_vectors_of_an_unexpected_length_are_refused(self, bench: Bench) -> None:
        embedding = bench.begin()
        embedding.expect(bench.server.dims)
        doubts: list[None] = []
        embedding.doubted = lambda: doubts.append(None)
        await bench.add(ANN, "User likes tea.", "User has a cat.")
        await embedding.settle()
        bench.server.script(Shaped(lambda vectors: [one[:9] for one in vectors]))
        await bench.add(ANN, "User plays go.")
        await until(lambda: bench.server.texts.count("User plays go.") == 2, seconds=20)
        await embedding.settle()
        assert len(await bench.known(embedding, ANN)) == 3
        assert len(bench.server.texts) == 4  # nothing else was made again
        assert len(doubts) == 1

    async def test_what_else_has_vectors_learns_that_the_model_was_replaced(self, bench: Bench) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await embedding.settle()
        left: list[int] = []

        async def remove() -> None:
            left.append(len(bench.vectors.load(ANN, "ollama/m")))

        embedding.replacing.append(remove)
        await embedding.replaced()
        assert left == [0]
        await embedding.settle()
        assert bench.server.texts == ["User likes tea."] * 2

    async def test_another_model_embeds_all_anew(self, bench: Bench) -> None:
        first = bench.begin(model="old")
        await bench.add(ANN, "User likes tea.", "User has a cat.")
        await first.settle()
        await first.close()
        second = bench.begin(model="new")
        second.want(ANN, await bench.items(ANN))
        await second.settle()
        (request,) = [request for request in bench.server.requests if request.model == "new"]
        assert sorted(request.texts) == ["User has a cat.", "User likes tea."]
        assert len(await bench.known(second, ANN)) == 2
        assert bench.vectors.load(ANN, "ollama/old") == {}

    async def test_a_provider_whose_vectors_change_their_length_is_asked_for_all_anew(
        self, bench: Bench
    ) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.", "User has a cat.")
        await embedding.settle()
        bench.server.dims = 16
        await bench.add(ANN, "User plays go.")
        await embedding.settle()
        assert len(await bench.known(embedding, ANN)) == 3
        assert (await embedding.matrix(ANN)).dims == 16
        assert {len(one) for one in bench.vectors.load(ANN, "ollama/m").values()} == {64}

    async def test_the_cache_can_be_deleted_at_any_time(self, bench: Bench, tmp_path: Path) -> None:
        first = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await first.settle()
        await first.close()
        bench.vectors.close()
        (tmp_path / "cache" / "vectors.sqlite").unlink()
        second = bench.begin()
        second.want(ANN, await bench.items(ANN))
        await second.settle()
        assert await bench.known(second, ANN) == {"User likes tea."}

    async def test_a_cache_that_takes_nothing_is_said_and_vectors_work(
        self, bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        embedding = bench.begin()
        await embedding.matrix(ANN)  # read before the disk fails
        bench.vectors.close()
        for path in (tmp_path / "cache").glob("vectors*"):
            path.unlink()
        (tmp_path / "cache" / "vectors.sqlite").mkdir()
        await bench.add(ANN, "User likes tea.")
        await embedding.settle()
        assert await bench.known(embedding, ANN) == {"User likes tea."}
        assert "kept in RAM alone" in caplog.text


class TestWhatMayBeSent:
    async def test_private_items_go_to_no_other_machine(self, bench: Bench) -> None:
        await bench.add(ANN, "User is in therapy.", private=True)
        await bench.add(ANN, "User likes tea.")
        assert {item.facets.sensitivity for item in await bench.items(ANN)} == {"normal", "private"}
        far = bench.begin(here=False)
        far.want(ANN, await bench.items(ANN))
        await far.settle()
        assert bench.server.texts == ["User likes tea."]
        near = bench.begin()
        near.want(ANN, await bench.items(ANN))
        await near.settle()
        assert sorted(bench.server.texts) == ["User is in therapy.", "User likes tea."]

    async def test_confidential_items_go_nowhere(self, bench: Bench) -> None:
        def wish(draft: object) -> None:
            draft.upsert("fact", "User is a spy.", Origin("stated"), marked="confidential")  # type: ignore[attr-defined]

        embedding = bench.begin()
        await bench.memory.change(ANN, "a test", wish)
        await bench.add(ANN, "User likes tea.")
        embedding.want(ANN, await bench.items(ANN))
        await embedding.settle()
        assert bench.server.texts == ["User likes tea."]

    async def test_nothing_goes_of_somebody_who_opted_out(self, bench: Bench) -> None:
        bench.opted_out.add(ANN)
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await bench.add(BOB, "User likes coffee.")
        embedding.want(ANN, await bench.items(ANN))
        await embedding.settle()
        assert bench.server.texts == ["User likes coffee."]

    async def test_what_is_forgotten_while_it_waits_is_not_sent(self, bench: Bench) -> None:
        embedding = bench.begin()
        held = asyncio.Event()
        bench.server.script(Held(held))
        await bench.add(BOB, "User likes coffee.")
        await bench.server.wait_for_requests(1)  # the worker is busy with somebody else
        await bench.add(ANN, "User likes tea.")
        embedding.want(ANN, await bench.items(ANN))
        (item,) = await bench.items(ANN)
        await bench.memory.change(ANN, "a test", lambda draft: draft.remove(item, Origin("stated")))
        held.set()
        await embedding.settle()
        assert bench.server.texts == ["User likes coffee."]


class TestErasing:
    async def test_what_is_on_its_way_is_not_kept(self, bench: Bench) -> None:
        embedding = bench.begin()
        held = asyncio.Event()
        bench.server.script(Held(held))
        await bench.add(ANN, "User likes tea.")
        await bench.server.wait_for_requests(1)
        erased = await bench.memory.erase(ANN)
        assert erased.left == ()
        held.set()
        await embedding.settle()
        assert bench.vectors.load(ANN, "ollama/m") == {}
        assert len(await embedding.matrix(ANN)) == 0

    async def test_lets_go_of_what_waits_and_of_what_is_in_ram(self, bench: Bench) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await embedding.settle()
        await bench.memory.erase(ANN)
        await embedding.settle()
        assert len(await embedding.matrix(ANN)) == 0
        assert bench.vectors.load(ANN, "ollama/m") == {}

    async def test_what_is_learned_afterwards_gets_vectors_again(self, bench: Bench) -> None:
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await embedding.settle()
        await bench.memory.erase(ANN)
        await bench.add(ANN, "User likes coffee.")
        await embedding.settle()
        assert await bench.known(embedding, ANN) == {"User likes coffee."}


class TestFaults:
    @pytest.mark.parametrize("fault", [*FAULTS.values(), stall()], ids=[*FAULTS, "stall"])
    async def test_pass_after_a_while(self, bench: Bench, fault: Behaviour) -> None:
        await bench.add(ANN, "User likes tea.")
        embedding = bench.begin(timeout_s=1.0)
        bench.server.script(fault, fault)
        embedding.want(ANN, await bench.items(ANN))
        await bench.server.wait_for_requests(3)
        await embedding.settle()
        assert await bench.known(embedding, ANN) == {"User likes tea."}

    async def test_a_text_that_is_always_refused_does_not_keep_the_others_waiting(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = bench.server

        def poisoned(vectors: list[list[float]]) -> list[list[float]]:
            return [] if "Poison." in server.requests[-1].texts else vectors

        server.default = Shaped(poisoned)
        texts = [f"Fact number {number}." for number in range(20)]
        await bench.add(ANN, *texts[:9], "Poison.", *texts[9:])
        embedding = bench.begin()
        embedding.want(ANN, await bench.items(ANN))
        for _ in range(500):
            await embedding.settle()
            if len(await bench.known(embedding, ANN)) == 20:
                break
            await asyncio.sleep(0.02)
        assert await bench.known(embedding, ANN) == set(texts)
        before = len(server.requests)
        embedding.want(ANN, await bench.items(ANN))
        await embedding.settle()
        assert len(server.requests) == before  # it is not tried again and again
        assert "gets no vector until the next start" in caplog.text
        assert "Poison" not in caplog.text

    async def test_a_provider_that_fails_for_good_is_asked_less_and_less(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "discoclaw.work")
        bench.server.default = failure(429)
        embedding = bench.begin()
        await bench.add(ANN, "User likes tea.")
        await until(lambda: caplog.text.count("making vectors failed") >= 5)
        rests = re.findall(r"making vectors failed, next try in ([0-9.]+) s", caplog.text)
        assert rests[:5] == ["0.01", "0.02", "0.04", "0.08", "0.16"]
        levels = [record.levelno for record in caplog.records if "making vectors" in record.getMessage()]
        assert levels.count(logging.WARNING) == 1  # that it fails is no news the second time
        bench.server.default = None
        await bench.server.wait_for_requests(6)
        await embedding.settle()
        assert await bench.known(embedding, ANN) == {"User likes tea."}

    async def test_what_a_provider_wants_us_to_wait_counts(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench.server.script(failure(429, retry_after="99999"))
        bench.begin()
        await bench.add(ANN, "User likes tea.")
        await until(lambda: "making vectors failed, next try in 600 s" in caplog.text)
        assert bench.server.texts == ["User likes tea."]

    async def test_closing_does_not_wait_for_a_provider(self, bench: Bench) -> None:
        bench.server.default = stall()
        embedding = bench.begin(timeout_s=1000)
        await bench.add(ANN, "User likes tea.")
        await bench.server.wait_for_requests(1)
        await embedding.close()
        await bench.add(ANN, "User likes coffee.")
        assert len(bench.server.requests) == 1
