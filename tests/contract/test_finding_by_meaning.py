"""With a provider of embeddings, memories are found by what is meant; a provider sees no more than it may."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discoclaw.app import build
from discoclaw.settings import Settings
from tests.contract.embedding import QUIET, far, health, near, ready, sent
from tests.contract.meanwhile import answered, until
from tests.contract.tools import called
from tests.contract.world import Start, World
from tests.servers.embeddings_api import FAULTS, EmbeddingsServer, Held, Shaped, Vectors

CAT = "User has a cat called Miso."
THINGS = ("lamp", "sofa", "boat", "kite", "drum", "harp", "vase", "oven", "bike", "sled")
OTHERS = [f"User owns the {thing}." for thing in THINGS]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"feline": "cat"}) as running:
        yield running


async def knows(world: World, *texts: str) -> None:
    """Have the bot know these about Ann, out of a file that says they were said in the open."""
    items = [{"kind": "fact", "text": one, "sensitivity": "normal"} for one in texts]
    await takes(world, *items)


async def takes(world: World, *items: dict[str, Any]) -> None:
    content = json.dumps({"format": "discoclaw-memory", "version": 1, "memories": items}).encode()
    await world.says(world.ann, world.general, "!memory import", attachments=[("memories.json", content)])


async def ask(world: World, question: str) -> set[str]:
    """Which of the memories the prompt of a question has."""
    await world.says(world.ann, world.general, question)
    return {one for one in (CAT, *OTHERS) if one in world.prompt}


class TestAQuestion:
    @pytest.mark.design(169, 170, 171, 183, 186, 187, 312)
    @pytest.mark.parametrize(
        ("provider", "dims", "path", "name", "key"),
        [
            ("openai", 1536, "/v1/embeddings", "text-embedding-3-small", "Bearer sk-chat"),
            ("ollama", 768, "/api/embed", "nomic-embed-text", None),
        ],
    )
    async def test_finds_what_is_meant_though_no_word_is_the_same(
        self, start: Start, provider: str, dims: int, path: str, name: str, key: str | None
    ) -> None:
        async with EmbeddingsServer(dims=dims, same={"feline": "cat"}) as server:
            changes: dict[str, Any] = {"embedding_provider": provider, **QUIET}
            if provider == "openai":
                changes |= {"embedding_url": server.openai_url, "openai_key": "sk-chat"}
            else:
                changes["embedding_url"] = server.url
            async with start(**changes) as world:
                await knows(world, CAT, *OTHERS)
                await ready(world)
                assert await ask(world, "my feline?") == {CAT}
                assert await ask(world, "giraffe wool?") == set()
                found = await called(world, "memory_search", query="feline")
                assert CAT in found and OTHERS[0] not in found
                await world.restart()
                await ready(world)
                assert CAT in await called(world, "memory_recall", query="feline")
            asked = {(one.path, one.model, one.headers.get("authorization")) for one in server.requests}
            assert asked == {(path, name, key)}
            assert server.texts.count(CAT) == 1  # its vector was kept, over a restart too
            assert server.texts.count("my feline?") == 1
            assert len([one for one in sent(server) if one == "feline"]) == 2  # once for each search

    @pytest.mark.design(174, 185, 190, 329)
    async def test_goes_by_the_words_without_a_provider_and_by_meaning_once_there_is_one(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(openai_key="sk-chat", **QUIET) as world:
            await knows(world, CAT, *OTHERS)
            assert await ask(world, "my feline?") == set()
            assert await ask(world, "my cat?") == {CAT}
            assert health(world) == "" and not (world.data / "cache" / "vectors.sqlite").exists()
            await world.restart(**near(server))
            assert await ask(world, "my cat?") == {CAT}  # by which it is used, and gets its vector
            await ready(world)
            assert await ask(world, "and my feline?") == {CAT}

    @pytest.mark.design(172, 184)
    @pytest.mark.parametrize(
        ("weights", "first"),
        [({}, CAT), ((0.51, 0.49), OTHERS[2])],
    )
    async def test_weighs_words_and_vectors(self, start: Start, weights: Any, first: str) -> None:
        changes = dict(zip(("text_weight", "vector_weight"), weights, strict=True)) if weights else {}
        async with Placed() as server, start(**near(server), **changes) as world:
            await knows(world, CAT, *OTHERS, *(f"User owns thing {number}." for number in range(10)))
            await ready(world)
            lines = (await called(world, "memory_recall", query=QUESTION)).splitlines()
            found = [line.partition(": ")[2] for line in lines]
            assert [one for one in found if one in (CAT, OTHERS[2])] == sorted(
                (CAT, OTHERS[2]), key=lambda one: one != first
            )


QUESTION = "feline boat"


class Placed(EmbeddingsServer):
    """For it the boat is the opposite of the question, the cat is the same, all others lie between."""

    def vector(self, text: str) -> list[float]:
        known: dict[str, Sequence[float]] = {QUESTION: (1, 0), OTHERS[2]: (-1, 0), CAT: (1, 0)}
        if text in self.measured:
            return [0.0, 0.0, *super().vector(text)]
        return [*known.get(text, (0, 1)), *([0.0] * self.dims)]


class TestWhatIsSent:
    async def test_elsewhere_is_nothing_private_and_on_this_machine_nothing_confidential(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        soul = {"identity": "You are Mog.", "user": "Ann builds boats.", "philosophy": "No lies."}
        async with start(**far(server)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.slash(world.general, "hatch start")
            await world.settle()
            world.brain.usual = f"I know who I am now.\n<soul>{json.dumps(soul)}</soul>"
            told = await world.says(world.ann, world.general, "An old cat called Mog. I build boats.")
            assert "I know who I am now." in told
            world.brain.usual = "ok"
            await knows(world, CAT, *OTHERS)
            spy = {"id": "durable-12345678", "kind": "fact", "text": "User is a spy."}
            await takes(world, spy | {"sensitivity": "confidential"})
            await world.says(world.ann, world.ann_dm, "!memory remember I am in therapy.")
            await ready(world)
            await world.says(world.ann, world.ann_dm, "my therapy, a private question")
            assert "therapy." in world.prompt  # the private memory is found by its words
            said = await world.bob.send(world.general, "words of another")
            await world.says(world.ann, world.general, "did bob see my feline, ann asks", reply_to=said)
            await world.says(world.ann, world.general, "why?")
            assert "Ann builds boats." in world.turns()[-1].system
        assert {CAT, "did see my feline, asks"} <= set(server.texts)
        assert any(one.startswith("why? did see my feline") for one in server.texts)
        every = " ".join(sent(server))
        secrets = ("private", "therapy", "spy", "You are Mog", "builds boats", "No lies", "another")
        assert [one for one in secrets if one in every] == []
        async with start(**near(server)) as world:
            spy = {"id": "durable-12345678", "kind": "fact", "text": "User is a spy."}
            await takes(world, spy | {"sensitivity": "confidential"})
            await world.says(world.ann, world.ann_dm, "!memory remember I am in therapy.")
            await ready(world)
            await world.says(world.ann, world.ann_dm, "my private question")
        assert {"I am in therapy.", "my private question"} <= set(server.texts)
        assert "spy" not in " ".join(server.texts)

    async def test_of_somebody_who_opted_out_is_nothing_and_of_one_who_is_erased_nothing_is_left(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(**near(server)) as world:
            await knows(world, CAT, *OTHERS)
            await ready(world)
            await ask(world, "my feline?")

            def left() -> bool:
                files = (world.data / "cache").glob("vectors*")
                return str(world.ann.id).encode() in b"".join(path.read_bytes() for path in files)

            assert left()
            await world.env.advance_time(1)
            await world.says(world.ann, world.general, "!memory erase --yes")
            assert not left()
            await knows(world, CAT)
            await world.env.advance_time(1)
            await ready(world)
            assert server.texts.count(CAT) == 2 and await ask(world, "the feline?") == {CAT}
            await world.says(world.ann, world.general, "!memory optout")
            before = len(server.texts)
            await ask(world, "my feline again?")
            assert len(server.texts) == before

    async def test_is_nothing_that_is_taken_back_before_its_turn(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        busy = asyncio.Event()
        async with start(**near(server)) as world:
            await ready(world)
            server.script(Held(busy))
            await answered(world, world.bob, world.general, "!memory remember I like coffee")
            await server.wait_for_text("I like coffee")
            for words in ("remember I like quokkas", "forget I like quokkas", "remember okapis", "optout"):
                await answered(world, world.ann, world.general, f"!memory {words}")
            busy.set()
            await world.settle()
        assert not [one for one in ("quokka", "okapi") if one in " ".join(server.texts)]


def alike(vectors: Vectors) -> Vectors:
    return [[1.0] * len(one) for one in vectors]


def zeros(vectors: Vectors) -> Vectors:
    return [[0.0] * len(one) for one in vectors]


def turned(vectors: Vectors) -> Vectors:
    """As another model would have them, with vectors of the same length."""
    return [one[100:] + one[:100] for one in vectors]


class TestAProviderThatFails:
    @pytest.mark.design(188, 321)
    async def test_keeps_no_reply_when_it_stalls_or_is_being_measured(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        awake, measured = asyncio.Event(), asyncio.Event()
        server.script(Held(awake), Held(measured))
        async with start(**near(server)) as world:

            async def ask(question: str) -> None:
                assert await answered(world, world.ann, world.general, question) == "ok"
                assert "I have a cat" in world.prompt

            await answered(world, world.ann, world.general, "!memory remember I have a cat")
            await ask("my cat, while it stalls?")
            awake.set()
            await server.wait_for_requests(2)
            await ask("my cat, while it is measured?")
            assert not [one for one in server.texts if "while" in one]
            measured.set()
            await ready(world)

    @pytest.mark.design(188)
    @pytest.mark.parametrize("fault", ["500", "nan"])
    async def test_leaves_answers_by_words_says_so_once_and_is_asked_again_later(
        self, start: Start, server: EmbeddingsServer, fault: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        async with start(**near(server)) as world:
            await knows(world, CAT)
            await ready(world)
            server.default = FAULTS[fault]
            for question in ("my cat?", "the cat, again?"):
                assert await ask(world, question) == {CAT}
                assert world.answer(world.general) == "ok"
            assert health(world) == "warning" and caplog.text.count("by their words alone for now") == 1
            server.default = None
            await world.env.advance_time(5)
            await ready(world)
            assert await ask(world, "my feline?") == {CAT}
        assert server.texts.count(CAT) == 1
        assert "sk-secret" not in caplog.text

    @pytest.mark.parametrize("change", [alike, zeros, sorted])
    async def test_finds_nothing_by_meaning_if_its_model_can_tell_nothing(
        self,
        start: Start,
        server: EmbeddingsServer,
        caplog: pytest.LogCaptureFixture,
        change: Callable[[Vectors], Vectors],
    ) -> None:
        server.default = Shaped(change)
        async with start(**near(server)) as world:
            await knows(world, CAT, *OTHERS)
            await until(lambda: "can't tell texts that belong together" in caplog.text)
            assert await ask(world, "my feline?") == set()
            assert await ask(world, "my cat?") == {CAT}
        assert not {"my feline?", "my cat?"} & set(server.texts)

    async def test_is_a_broken_or_locked_cache_that_keeps_no_reply(
        self, start: Start, server: EmbeddingsServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**near(server)) as world:
            await knows(world, CAT, *OTHERS)
            await ready(world)
            path = world.data / "cache" / "vectors.sqlite"

            def broken() -> None:
                path.unlink()
                path.mkdir()

            await world.restart(meanwhile=broken)
            assert await ask(world, "my cat?") == {CAT}
            await ready(world)
            assert "is kept in RAM alone" in caplog.text
            assert await ask(world, "my feline?") == {CAT}
            await world.restart(meanwhile=path.rmdir)
            assert await ask(world, "my cat once more?") == {CAT}
            await ready(world)
            with closing(sqlite3.connect(path)) as kept:
                assert kept.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
            assert await ask(world, "my feline again?") == {CAT}


class TestAnotherModel:
    @pytest.mark.design(185)
    @pytest.mark.parametrize("how", ["another name", "another length", "another one of that name"])
    async def test_has_all_vectors_made_again(self, start: Start, server: EmbeddingsServer, how: str) -> None:
        async with start(**near(server, embedding_model="old")) as world:
            await knows(world, CAT, *OTHERS)
            await ready(world)
            changes = {"embedding_model": "new"} if how == "another name" else {}
            if how == "another length":
                server.dims = 300
            elif not changes:
                server.default = Shaped(turned)
            await world.restart(**changes)
            await ready(world)
            await world.says(world.ann, world.ann_dm, "hello again")  # by which the memory is used
            await ready(world)
            assert await ask(world, "my feline?") == {CAT}
        assert [server.texts.count(one) for one in (CAT, *OTHERS)] == [2] * (1 + len(OTHERS))

    async def test_is_none_if_only_the_last_digits_differ(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(**near(server)) as world:
            await knows(world, CAT, *OTHERS)
            await ready(world)
            server.requests.clear()
            server.default = Shaped(lambda vectors: [[x + 0.001 for x in one] for one in vectors])
            await world.restart()
            await ready(world)
            assert await ask(world, "my feline?") == {CAT}
        assert sent(server) == ["my feline?"] and len(server.texts) == 2


ELSEWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "the-key-of-that-server"}
OPENAI = {"EMBEDDING_PROVIDER": "openai"}


NO_VECTORS: list[dict[str, str]] = [
    {},
    {"OPENAI_API_KEY": "sk-chat"},
    ELSEWHERE | {"EMBEDDING_AUTO": "1"},  # the key is another server's
    ELSEWHERE | OPENAI,
    {"EMBEDDING_PROVIDER": "cohere", "EMBEDDING_API_KEY": "k"},
    OPENAI,
]
VECTORS: list[dict[str, str]] = [
    {"OPENAI_API_KEY": "sk-chat", "EMBEDDING_AUTO": "1"},
    OPENAI | {"OPENAI_API_KEY": "k"},
    ELSEWHERE | OPENAI | {"EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1/"},
    {"EMBEDDING_PROVIDER": "ollama"},
]


class TestSettings:
    @pytest.mark.design(168, 173, 174)
    def test_say_whether_there_are_vectors_and_one_that_cannot_be_used_is_logged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        for environment in (*NO_VECTORS, *VECTORS):
            caplog.clear()
            with monkeypatch.context() as patched:
                for variable, value in environment.items():
                    patched.setenv(variable, value)
                app = build(Settings(_env_file=None, base_url="http://127.0.0.1:9", data_dir=tmp_path))
            on = environment in VECTORS
            found = [one.name for one in app.health() if one.name == "embeddings"]
            assert found == ["embeddings"] * on, environment
            said = caplog.text.count("vectors are switched off")
            assert said == ("EMBEDDING_PROVIDER" in environment and not on), environment
