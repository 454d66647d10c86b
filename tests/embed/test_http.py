"""Providers over HTTP: what is sent, what is believed, and how each fault is named."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import pytest

from discoclaw.core.errors import EmbeddingError, EmbeddingRefused, EmbeddingUnavailable
from discoclaw.embed.providers import MAX_RESPONSE, OLLAMA, OPENAI, HttpEmbedder
from tests.servers.embeddings_api import Behaviour, Cut, EmbeddingsServer, Raw, Shaped, failure, stall
from tests.tables import each_row

KEY = "sk-secret"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(dims=8) as server:
        yield server


@pytest.fixture(params=["openai", "ollama"])
async def embedder(request: pytest.FixtureRequest, server: EmbeddingsServer) -> AsyncIterator[HttpEmbedder]:
    if request.param == "openai":
        embedder = HttpEmbedder(OPENAI, model="m", base_url=server.openai_url, key=KEY)
    else:
        embedder = HttpEmbedder(OLLAMA, model="m", base_url=server.url, key=KEY)
    yield embedder
    await embedder.close()


def floats(vectors: object) -> list[list[float]]:
    return [list(vector) for vector in vectors]  # type: ignore[attr-defined]


class TestGoodAnswers:
    async def test_come_in_the_order_of_the_texts(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        texts = ["one", "two words", "three other words"]
        vectors = await embedder.embed(texts, timeout_s=5)
        assert floats(vectors) == [server.vector(text) for text in texts]

    async def test_carry_the_key_and_the_model_and_nothing_else(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        await embedder.embed(["one"], timeout_s=5)
        (request,) = server.requests
        assert (request.model, request.texts) == ("m", ["one"])
        assert request.headers["authorization"] == f"Bearer {KEY}"

    async def test_without_a_key_no_header_is_sent(self, server: EmbeddingsServer) -> None:
        embedder = HttpEmbedder(OLLAMA, model="m", base_url=server.url)
        await embedder.embed(["one"], timeout_s=5)
        await embedder.close()
        assert "authorization" not in server.requests[0].headers

    async def test_many_texts_go_in_several_requests(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        texts = [f"text {number}" for number in range(130)]
        vectors = await embedder.embed(texts, timeout_s=10)
        assert [len(request.texts) for request in server.requests] == [64, 64, 2]
        assert floats(vectors) == [server.vector(text) for text in texts]

    async def test_half_a_character_does_not_break_a_request(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        await embedder.embed(["broken \ud83d heart"], timeout_s=5)
        assert server.texts == ["broken ? heart"]

    async def test_no_texts_make_no_request(self, server: EmbeddingsServer, embedder: HttpEmbedder) -> None:
        assert await embedder.embed([], timeout_s=5) == []
        assert server.requests == []


NONSENSE: dict[str, Behaviour] = {
    "prose": Raw(b"Here are your vectors."),
    "not UTF-8": Raw(b"\xff\xfe\xfa"),
    "nothing": Raw(b""),
    "another shape": Raw(b'{"result": []}'),
    "a list": Raw(b"[]"),
    "deep": Raw(b"[" * 100_000),
    "too few": Shaped(lambda vectors: vectors[1:]),
    "too many": Shaped(lambda vectors: [*vectors, vectors[0]]),
    "none at all": Shaped(lambda vectors: []),
    "null": Shaped(lambda vectors: None),
    "unequal lengths": Shaped(lambda vectors: [vectors[0], vectors[1][1:]]),
    "empty vectors": Shaped(lambda vectors: [[], []]),
    "endless vectors": Shaped(lambda vectors: [[0.1] * 10_000] * 2),
    "not a number": Shaped(lambda vectors: [[float("nan")] * 8, vectors[1]]),
    "infinity": Shaped(lambda vectors: [[float("inf")] * 8, vectors[1]]),
    "too large for a float": Raw(
        json.dumps({"embeddings": [[1e300] * 8] * 2, "data": [{"embedding": [1e300] * 8}] * 2}).encode()
    ),
    "a huge integer": Raw(
        json.dumps({"embeddings": [[10**400]] * 2, "data": [{"embedding": [10**400]}] * 2}).encode()
    ),
    "words": Shaped(lambda vectors: [["one"] * 8, vectors[1]]),
    "nested": Shaped(lambda vectors: [[[0.1]] * 8, vectors[1]]),
    "the same index twice": Raw(
        json.dumps({"data": [{"index": 0, "embedding": [1, 2]}] * 2, "embeddings": "no"}).encode()
    ),
    "a huge body": Raw(b"[" + b"0," * (MAX_RESPONSE // 2 + 10) + b"0]"),
}


class TestNonsense:
    @each_row("behaviour", NONSENSE.values())
    async def test_is_refused_and_the_next_answer_counts(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, behaviour: Behaviour
    ) -> None:
        server.script(behaviour)
        with pytest.raises(EmbeddingRefused):
            await embedder.embed(["one", "two"], timeout_s=10)
        assert len(await embedder.embed(["one", "two"], timeout_s=5)) == 2

    async def test_a_length_that_is_known_is_held_against_the_answer(self, server: EmbeddingsServer) -> None:
        embedder = HttpEmbedder(OPENAI, model="m", base_url=server.openai_url, dims=1536)
        with pytest.raises(EmbeddingRefused, match="8 or 1536 numbers"):
            await embedder.embed(["one"], timeout_s=5)
        await embedder.close()

    async def test_requests_of_one_call_agree_on_the_length(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        server.script(Shaped(lambda vectors: vectors), Shaped(lambda vectors: [[1.0]] * len(vectors)))
        with pytest.raises(EmbeddingRefused, match="differ in length"):
            await embedder.embed(["text"] * 70, timeout_s=5)


class TestFaults:
    @each_row("status", [401, 403])
    async def test_a_refused_key_names_the_setting(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, status: int
    ) -> None:
        server.script(failure(status))
        with pytest.raises(EmbeddingError, match="EMBEDDING_API_KEY") as error:
            await embedder.embed(["one"], timeout_s=5)
        assert not isinstance(error.value, EmbeddingUnavailable | EmbeddingRefused)

    @each_row("status", [302, 307, 404, 405])
    async def test_a_wrong_address_or_model_names_the_settings(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, status: int
    ) -> None:
        server.requests.clear()
        server.script(failure(status, location=server.openai_url + "/embeddings"))
        with pytest.raises(EmbeddingError, match="EMBEDDING_MODEL and EMBEDDING_BASE_URL"):
            await embedder.embed(["one"], timeout_s=5)
        assert len(server.requests) == 1  # nothing goes to where a redirect points

    @each_row("status", [408, 429, 500, 502, 503, 529])
    async def test_a_passing_failure_is_unavailable(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, status: int
    ) -> None:
        server.script(failure(status, retry_after="7"))
        with pytest.raises(EmbeddingUnavailable) as error:
            await embedder.embed(["one"], timeout_s=5)
        assert error.value.after_s == 7
        assert len(await embedder.embed(["one"], timeout_s=5)) == 1

    @each_row("header", ["-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 400, "²"])
    async def test_a_retry_after_that_is_not_a_number_is_ignored(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, header: str
    ) -> None:
        server.script(failure(429, retry_after=header))
        with pytest.raises(EmbeddingUnavailable) as error:
            await embedder.embed(["one"], timeout_s=5)
        assert error.value.after_s == 0

    @each_row("status", [400, 413, 422])
    async def test_texts_can_be_refused(
        self, server: EmbeddingsServer, embedder: HttpEmbedder, status: int
    ) -> None:
        server.script(failure(status))
        with pytest.raises(EmbeddingRefused):
            await embedder.embed(["one"], timeout_s=5)

    async def test_a_server_that_stalls_is_left(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        server.script(stall())
        with pytest.raises(EmbeddingUnavailable, match="did not answer within"):
            await embedder.embed(["one"], timeout_s=0.05)
        assert len(await embedder.embed(["one"], timeout_s=5)) == 1

    async def test_a_connection_that_breaks_is_unavailable(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        server.script(Cut())
        with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
            await embedder.embed(["one"], timeout_s=5)

    async def test_a_server_that_is_not_there_is_unavailable(self) -> None:
        async with EmbeddingsServer() as gone:
            url = gone.url
        embedder = HttpEmbedder(OLLAMA, model="m", base_url=url)
        with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
            await embedder.embed(["one"], timeout_s=5)
        await embedder.close()

    async def test_an_answer_packed_small_is_not_unpacked(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        import gzip

        server.script(Raw(gzip.compress(b" " * 5_000_000), headers={"content-encoding": "gzip"}))
        with pytest.raises(EmbeddingRefused):
            await embedder.embed(["one"], timeout_s=5)
        assert server.requests[0].headers["accept-encoding"] == "identity"

    @each_row("behaviour", [failure(401), failure(429), failure(400), failure(404), Raw(KEY.encode()), Cut()])
    async def test_neither_key_nor_texts_are_in_an_error_or_the_log(
        self,
        server: EmbeddingsServer,
        embedder: HttpEmbedder,
        behaviour: Behaviour,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG, "discoclaw")
        server.script(behaviour)
        with pytest.raises(EmbeddingError) as error:
            await embedder.embed(["my diary"], timeout_s=5)
        said = f"{error.value!r} {error.value.__cause__!r} {caplog.text}"
        assert KEY not in said
        assert "diary" not in said

    async def test_a_password_in_the_address_is_in_no_error(self, server: EmbeddingsServer) -> None:
        embedder = HttpEmbedder(OLLAMA, model="m", base_url=server.url.replace("//", "//ann:hunter2@"))
        server.script(failure(500))
        with pytest.raises(EmbeddingUnavailable) as error:
            await embedder.embed(["one"], timeout_s=5)
        await embedder.close()
        assert "hunter2" not in str(error.value)

    async def test_a_cancelled_caller_breaks_nothing(
        self, server: EmbeddingsServer, embedder: HttpEmbedder
    ) -> None:
        server.script(stall())
        task = asyncio.create_task(embedder.embed(["one"], timeout_s=30))
        await server.wait_for_requests(1)
        task.cancel()
        await asyncio.wait([task])
        assert len(await embedder.embed(["one"], timeout_s=5)) == 1


class TestThisMachine:
    @each_row(
        ("address", "here"),
        [
            ("http://127.0.0.1:11434", True),
            ("http://127.8.8.8", True),
            ("http://localhost:11434", True),
            ("http://[::1]:11434", True),
            ("http://LOCALHOST", True),
            ("http://192.168.1.5:11434", False),
            ("http://0.0.0.0:11434", False),
            ("http://host.docker.internal:11434", False),
            ("http://localhost.example.com", False),
            ("http://127.0.0.1.example.com", False),
            ("http://127.0.0.1@example.com", False),
            ("https://api.openai.com/v1", False),
        ],
    )
    async def test_is_recognised_by_the_address(self, address: str, here: bool) -> None:
        assert HttpEmbedder(OPENAI, model="m", base_url=address).stays_here is here
