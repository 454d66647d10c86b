"""Vectors in the whole bot: what goes over the wire, how they weigh, and memories that have none."""

from collections.abc import Sequence
from typing import Any

import pytest

from discoclaw.app.finding import Finding
from discoclaw.core.draft import Draft, Origin
from discoclaw.recall.floor import texts
from tests.app.conftest import Start, World
from tests.servers.embeddings_api import EmbeddingsServer
from tests.session.scene import ScriptedModel, calls, until

WORDS, MEANING = "User owns the boat.", "User has a cat called Miso."
OTHERS = [f"User owns thing number {number}." for number in range(20)]
QUESTION = "feline boat"


class Placed(EmbeddingsServer):
    """For this server one memory is the opposite of the question, one is the same, all others are between.

    Of the texts by which the bot measures a model, it says what any server does.
    """

    def vector(self, text: str) -> list[float]:
        known: dict[str, Sequence[float]] = {QUESTION: (1, 0), WORDS: (-1, 0), MEANING: (1, 0)}
        measured = text in texts()
        place = (0, 0) if measured else known.get(text, (0, 1))
        return [*place, *(super().vector(text) if measured else [0.0] * self.dims)]


async def remember(world: World, *memories: str) -> None:
    def request(draft: Draft) -> None:
        for one in memories:
            draft.upsert("fact", one, Origin("stated"))

    await world.memory.change(f"user-{world.ann.id}", "a test", request)


async def ready(world: World) -> None:
    meaning = world.app.feature(Finding).meaning
    await until(lambda: meaning.in_time, seconds=20)
    await meaning.settle()


async def recalled(world: World, model: ScriptedModel, query: str) -> list[str]:
    """What memory_recall finds, best first."""
    model.answers.extend([calls(("memory_recall", {"query": query})), "Done."])
    await world.ann.send(world.general, "please")
    await world.settle()
    ((_, text),) = model.results()
    return [line.partition(": ")[2] for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.design(172, 184)
@pytest.mark.parametrize(
    ("weights", "first"), [({}, MEANING), ((0.49, 0.51), MEANING), ((0.51, 0.49), WORDS), ((0.6, 0.4), WORDS)]
)
async def test_words_and_vectors_are_weighed(start: Start, weights: Any, first: str) -> None:
    model = ScriptedModel()
    changes = dict(zip(("text_weight", "vector_weight"), weights, strict=True)) if weights else {}
    async with Placed() as server:
        provider = {"embedding_provider": "ollama", "embedding_url": server.url}
        async with start(model, extraction_enabled=False, **provider, **changes) as world:
            await remember(world, WORDS, MEANING, *OTHERS)
            await ready(world)
            assert [one for one in await recalled(world, model, QUESTION) if one in (WORDS, MEANING)] == [
                first,
                WORDS if first == MEANING else MEANING,
            ]


@pytest.mark.design(169, 170, 171, 183, 186, 187)
@pytest.mark.parametrize(
    ("provider", "dims", "path", "name", "key"),
    [
        ("openai", 1536, "/v1/embeddings", "text-embedding-3-small", "Bearer sk-chat"),
        ("ollama", 768, "/api/embed", "nomic-embed-text", None),
    ],
)
async def test_each_provider_gets_its_own_request_once(
    start: Start, provider: str, dims: int, path: str, name: str, key: str | None
) -> None:
    model = ScriptedModel()
    async with EmbeddingsServer(dims=dims, same={"feline": "cat"}) as server:
        changes = {
            "embedding_provider": provider,
            "embedding_url": server.openai_url if provider == "openai" else server.url,
            "openai_key": "sk-chat" if provider == "openai" else None,
        }
        async with start(model, extraction_enabled=False, **changes) as world:
            await remember(world, MEANING, *OTHERS)
            await ready(world)
            assert MEANING in await recalled(world, model, "feline")
            await world.restart()
            await ready(world)
            assert MEANING in await recalled(world, model, "feline")
        assert {(one.path, one.model, one.headers.get("authorization")) for one in server.requests} == {
            (path, name, key)
        }
        assert server.texts.count(MEANING) == 1  # its vector was kept, over a restart too
        assert server.texts.count("feline") == 2  # once for each search


@pytest.mark.design(185)
async def test_memories_from_before_are_found_as_ever(start: Start) -> None:
    model = ScriptedModel()
    async with start(model, extraction_enabled=False) as world:
        await remember(world, MEANING, *OTHERS)
        async with EmbeddingsServer(same={"feline": "cat"}) as server:
            await world.restart(embedding_provider="ollama", embedding_url=server.url)
            assert (await recalled(world, model, "cat"))[0] == MEANING
            await ready(world)
            assert (await recalled(world, model, "feline"))[0] == MEANING
