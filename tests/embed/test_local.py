"""The model in this process. Without the extra `local-vectors` only what needs no model is tested."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from discoclaw.core.errors import EmbeddingError, EmbeddingUnavailable
from discoclaw.embed import local
from discoclaw.embed.local import BATCH, DIMS, LocalEmbedder
from tests.cosines import cosine

installed = pytest.mark.skipif(bool(local.missing()), reason="needs the extra local-vectors")


@pytest.fixture
async def model() -> AsyncIterator[LocalEmbedder]:
    model = LocalEmbedder()
    yield model
    await model.close()


@installed
class TestTheModel:
    async def test_gives_vectors_of_length_one(self, model: LocalEmbedder) -> None:
        vectors = await model.embed(["User prefers tabs over spaces.", "", "日本語"], timeout_s=60)
        assert [len(vector) for vector in vectors] == [DIMS] * 3
        assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-5) for vector in vectors)

    async def test_what_means_the_same_is_nearer_than_what_shares_words(self, model: LocalEmbedder) -> None:
        asked, meant, other = await model.embed(
            ["Which pets do I have?", "User owns a cat called Miso.", "User has which-key in Emacs."],
            timeout_s=60,
        )
        assert cosine(asked, meant) > cosine(asked, other) + 0.1

    async def test_a_text_has_the_same_vector_in_whatever_company(self, model: LocalEmbedder) -> None:
        texts = [f"note {number}, " + "and so on " * number for number in range(2 * BATCH + 1)]
        together = await model.embed(texts, timeout_s=60)
        for text, vector in zip(texts, together, strict=True):
            (alone,) = await model.embed([text], timeout_s=60)
            assert cosine(alone, vector) > 0.999

    async def test_a_question_does_not_wait_for_all_that_is_being_caught_up_on(
        self, model: LocalEmbedder
    ) -> None:
        await model.embed(["warm"], timeout_s=60)
        catching_up = asyncio.create_task(model.embed(["User likes tea."] * 40 * BATCH, timeout_s=600))
        await asyncio.sleep(0)
        await model.embed(["question"], timeout_s=60)
        assert not catching_up.done()
        catching_up.cancel()

    async def test_a_run_that_takes_too_long_is_unavailable(self, model: LocalEmbedder) -> None:
        with pytest.raises(EmbeddingUnavailable):
            await model.embed(["User likes tea."] * 100 * BATCH, timeout_s=0.001)

    async def test_changed_weights_are_not_used(self, tmp_path: Path) -> None:
        weights = tmp_path / "model.onnx"
        changed = bytearray(local._installed().read_bytes())
        changed[-1] ^= 1
        weights.write_bytes(changed)
        model = LocalEmbedder(weights)
        with pytest.raises(EmbeddingError, match="its checksum differs"):
            await model.embed(["hello"], timeout_s=60)
        await model.close()

    async def test_weights_that_are_gone_are_a_clear_error(self, tmp_path: Path) -> None:
        model = LocalEmbedder(tmp_path / "none.onnx")
        with pytest.raises(EmbeddingError, match="cannot read the model's file"):
            await model.embed(["hello"], timeout_s=60)
        await model.close()
