"""What a model's cosines say: measured at its first use, and again when another model has its name."""

import asyncio
import logging
import math
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from discoclaw.core.item import Item
from discoclaw.core.ports import NO_SIGNALS, Signals
from discoclaw.core.query import Query
from discoclaw.embed import local
from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.local import LocalEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.embedding import Embedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.floor import NEVER, PROBE, texts
from discoclaw.recall.rank import Ranked, Ranker
from discoclaw.search.vectors import VectorCache
from discoclaw.session.meaning import Meaning
from tests.memory.kit import ANN
from tests.servers.embeddings_api import EmbeddingsServer, Held, Shaped, Vectors, failure
from tests.session.scene import ANN as ANN_HERSELF
from tests.session.scene import Recorder, calls, house, inbound, until
from tests.session.vectors import TEXTS, Desk

CAT, TEA, GO = TEXTS


async def again(desk: Desk, **how: float) -> Meaning:
    """The same desk after a restart of the bot."""
    await desk.meaning.close()
    desk.server.requests.clear()
    meaning = desk.begin(**how)
    await meaning.start()
    meaning.want(ANN, await desk.items())
    return meaning


class Turned(EmbeddingsServer):
    """A server behind whose name another model can be put, whose vectors have the same length."""

    turned = 0

    def vector(self, text: str) -> list[float]:
        vector = super().vector(text)
        return vector[self.turned :] + vector[: self.turned]


class Crowded(EmbeddingsServer):
    """A server whose vectors all point in about the same direction, or hardly so."""

    def __init__(self, common: float) -> None:
        super().__init__()
        self._common = common

    def vector(self, text: str) -> list[float]:
        vector = super().vector(text)
        return [*vector, self._common * math.hypot(*vector)]


class TestMeasuring:
    async def test_is_done_once_for_a_model(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.ready()
        floor = desk.meaning.floor
        assert 0 < floor < 1
        assert desk.server.texts == [PROBE, *texts()]
        await again(desk)
        await desk.ready()
        assert desk.meaning.floor == floor
        assert desk.server.texts == [PROBE]

    async def test_is_done_again_when_the_cache_was_deleted(self, desk: Desk, tmp_path: Path) -> None:
        await desk.begin().start()
        await desk.ready()
        desk.vectors.close()
        (tmp_path / "cache" / "vectors.sqlite").unlink()
        await again(desk)
        await desk.ready()
        assert desk.server.texts == [PROBE, *texts()]

    async def test_is_done_again_with_other_texts_and_keeps_the_vectors(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        monkeypatch.setattr("discoclaw.session.floor.SAMPLE", b"of a later version")
        await again(desk)
        await desk.ready()
        assert desk.server.texts == [PROBE, *texts()]

    @pytest.mark.parametrize("common", [0.5, 2.0])
    async def test_follows_a_model_whose_cosines_lie_close_together(
        self, tmp_path: Path, desk: Desk, common: float
    ) -> None:
        await desk.begin().start()
        await desk.ready()
        async with AsyncExitStack() as stack:
            other = await stack.enter_async_context(Crowded(common))
            crowded = Desk(tmp_path / "other" / "memory", other, stack)
            await crowded.begin().start()
            await crowded.ready()
            share = common**2
            expected = (desk.meaning.floor + share) / (1 + share)
            assert crowded.meaning.floor == pytest.approx(expected, abs=1e-3)

    async def test_asks_for_less_at_once_where_so_much_is_refused(self, desk: Desk) -> None:
        desk.server.default = Shaped(lambda vectors: vectors if len(vectors) <= 10 else [])
        await desk.begin().start()
        await desk.ready()
        assert 0 < desk.meaning.floor < 1

    async def test_is_tried_again_after_a_failure(self, desk: Desk) -> None:
        good = Shaped(lambda vectors: vectors)
        desk.server.script(good, failure(500), good, failure(429))
        await desk.begin().start()
        await desk.ready()
        assert 0 < desk.meaning.floor < 1

    async def test_is_waited_for_by_no_question(self, desk: Desk) -> None:
        held = asyncio.Event()
        desk.server.script(Shaped(lambda vectors: vectors), Held(held))
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.server.wait_for_text(texts()[-1])
        assert desk.meaning.ask(ANN, "feline?", private=False) is None
        assert desk.meaning.floor == NEVER
        held.set()
        await desk.ready()
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor

    @pytest.mark.skipif(bool(local.missing()), reason="needs the extra local-vectors")
    async def test_puts_the_floor_of_the_local_model_near_two_fifths(self, desk: Desk) -> None:
        embedder = LocalEmbedder()
        meaning = Meaning(embedder, Embedding(embedder, desk.memory, desk.vectors), wait_s=20)
        await meaning.start()
        await until(lambda: meaning.in_time, seconds=60)
        assert meaning.floor == pytest.approx(0.4, abs=0.07)
        await meaning.close()


def all_alike(vectors: Vectors) -> Vectors:
    return [[1.0] * len(one) for one in vectors]


def zeros(vectors: Vectors) -> Vectors:
    return [[0.0] * len(one) for one in vectors]


def mixed_up(vectors: Vectors) -> Vectors:
    return sorted(vectors)


class TestAModelThatTellsNothing:
    @pytest.mark.parametrize("change", [all_alike, zeros, mixed_up])
    async def test_finds_nothing_and_is_not_asked(
        self, desk: Desk, caplog: pytest.LogCaptureFixture, change: Callable[[Vectors], Vectors]
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.session")
        desk.server.default = Shaped(change)
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await until(lambda: "can't tell" in caplog.text, seconds=20)
        await desk.meaning.settle()
        assert desk.meaning.floor == NEVER
        assert await desk.near("feline?") == {}
        assert "feline?" not in desk.server.texts
        assert caplog.text.count("can't tell") == 1
        assert "by their meaning too" not in caplog.text

    async def test_is_measured_no_second_time(self, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
        desk.server.default = Shaped(all_alike)
        await desk.begin().start()
        await until(lambda: "can't tell" in caplog.text, seconds=20)
        caplog.clear()
        await again(desk)
        await until(lambda: "can't tell" in caplog.text, seconds=20)
        assert desk.server.texts == [PROBE]


class TestAnotherModelBehindTheSameName:
    @pytest.fixture
    async def server(self) -> AsyncIterator[EmbeddingsServer]:
        async with Turned(same={"feline": "cat"}) as server:
            yield server

    async def test_has_all_vectors_made_again_after_a_restart(
        self, desk: Desk, server: Turned, caplog: pytest.LogCaptureFixture
    ) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.turned = 100
        await again(desk)
        await desk.ready()
        desk.meaning.want(ANN, await desk.items())  # as a reply does
        await desk.meaning.settle()
        assert set(TEXTS) <= set(server.texts)
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor
        assert caplog.text.count("not the one that it was") == 1

    async def test_has_them_made_again_after_an_outage(self, desk: Desk, server: Turned) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.requests.clear()
        server.turned = 100
        server.script(failure(500))
        assert await desk.near("feline?") == {}
        await desk.ready()
        assert set(TEXTS) <= set(server.texts)
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor

    async def test_has_them_made_again_though_the_provider_was_never_away(
        self, desk: Desk, server: Turned, caplog: pytest.LogCaptureFixture
    ) -> None:
        await desk.begin(again_s=0.0).start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.turned = 100
        await desk.near("feline?")
        await until(lambda: "not the one that it was" in caplog.text, seconds=20)
        await desk.ready()
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor

    async def test_is_looked_for_once_an_hour(self, desk: Desk, server: Turned) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.requests.clear()
        for number in range(5):
            await desk.near(f"feline {number}?")
        await desk.meaning.settle()
        assert PROBE not in server.texts

    async def test_has_them_made_again_when_the_new_model_cannot_be_measured_at_once(
        self, desk: Desk, server: Turned
    ) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.turned = 100
        server.script(Shaped(lambda vectors: vectors), failure(500), failure(500))
        await again(desk)
        await desk.ready()
        desk.meaning.want(ANN, await desk.items())
        await desk.meaning.settle()
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor

    async def test_is_not_used_while_the_old_vectors_cannot_be_removed(
        self,
        desk: Desk,
        server: Turned,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.turned = 100
        monkeypatch.setattr("discoclaw.memory.disk.database.BUSY_S", 0.01)
        desk.vectors.close()
        with closing(sqlite3.connect(tmp_path / "cache" / "vectors.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await again(desk)
            await until(lambda: "vectors cannot be used" in caplog.text, seconds=20)
            assert await desk.near("feline?") == {}
        await desk.ready()
        desk.meaning.want(ANN, await desk.items())
        await desk.meaning.settle()
        assert (await desk.near("feline?"))[CAT] >= desk.meaning.floor

    async def test_is_no_other_if_only_the_last_digits_differ(self, desk: Desk, server: Turned) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        server.default = Shaped(lambda vectors: [[x + 0.001 for x in one] for one in vectors])
        await again(desk)
        await desk.ready()
        assert server.texts == [PROBE]


class TestOddVectors:
    async def test_a_batch_of_another_length_makes_no_other_vector_again(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(CAT, TEA)
        await desk.ready()
        desk.server.script(Shaped(lambda vectors: [one[:100] for one in vectors]))
        await desk.remember(GO)
        await desk.server.wait_for_text(GO)
        await desk.ready()
        await until(lambda: desk.server.texts.count(GO) == 2, seconds=20)
        await desk.ready()
        assert (await desk.near("feline?")).keys() == set(TEXTS)
        assert [desk.server.texts.count(text) for text in (CAT, TEA)] == [1, 1]

    async def test_a_model_with_longer_vectors_is_noticed_though_nobody_asks(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(CAT, TEA)
        await desk.ready()
        desk.server.dims = 300
        await desk.remember(GO)
        await until(lambda: desk.server.texts.count(CAT) == 2, seconds=20)
        await desk.ready()
        assert (await desk.near("feline?")).keys() == set(TEXTS)

    async def test_an_item_with_zeros_has_no_cosine_and_is_not_sent_again(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(CAT, TEA)
        await desk.ready()
        desk.server.script(Shaped(zeros))
        await desk.remember(GO)
        await desk.meaning.settle()
        desk.meaning.want(ANN, await desk.items())
        await desk.meaning.settle()
        assert (await desk.near("feline?")).keys() == {CAT, TEA}
        assert desk.server.texts.count(GO) == 1

    @pytest.mark.parametrize("change", [all_alike, zeros])
    async def test_a_question_that_is_like_all_or_none_means_nothing(
        self, desk: Desk, change: Callable[[Vectors], Vectors]
    ) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.script(Shaped(change))
        near = await desk.near("feline?")
        assert not [text for text, cos in near.items() if cos >= desk.meaning.floor]

    async def test_an_answer_after_the_reply_is_not_taken_for_another_question(self, desk: Desk) -> None:
        await desk.begin(wait_s=0.5).start()
        await desk.remember(*TEXTS)
        await desk.ready()
        held = asyncio.Event()
        desk.server.script(Held(held))
        assert await desk.near("feline?") == {}  # the reply goes on without
        held.set()
        await desk.ready()
        near = await desk.near("tea?")
        assert max(near, key=lambda text: near[text]) == TEA


class Noting(Ranker):
    """A ranker that notes what it was told beside the words."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Signals] = []

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        self.told.append(signals)
        return super().rank(query, items, now_ms=now_ms, signals=signals)


class TestRanking:
    async def test_is_told_the_floor_for_a_prompt_and_for_a_search(
        self, tmp_path: Path, server: EmbeddingsServer
    ) -> None:
        ranker = Noting()
        embedder, cache = HttpEmbedder(OLLAMA, model="m", base_url=server.url), VectorCache(None)

        def vectors(memory: Memory) -> Meaning:
            embedding = Embedding(embedder, memory, cache)
            memory.join(embedding)
            return Meaning(embedder, embedding, wait_s=5.0)

        home = house(tmp_path, meaning=vectors, ranker=ranker)
        home.memory.open()
        await home.meaning.start()
        for text in TEXTS:
            await home.remember(ANN_HERSELF, text)
        await until(lambda: home.meaning.in_time, seconds=20)
        await home.meaning.settle()
        home.model.answers.extend([calls(("memory_recall", {"query": "feline"})), "Done."])
        home.answer(inbound(100, "my feline?"), Recorder())
        await home.desk.settle()
        told = [signals for signals in ranker.told if signals.cosines]
        assert len(told) == 2
        assert {signals.floor for signals in told} == {home.meaning.floor}
        assert 0 < home.meaning.floor < 1
        await home.meaning.close()
        home.memory.close()
        cache.close()
