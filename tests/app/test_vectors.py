"""The whole bot with a provider of embeddings: what it finds, what it sends, and what it survives."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from discoclaw import settings
from discoclaw.app import build
from discoclaw.app.finding import Finding
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.model import ModelRequest
from discoclaw.core.subject import user_subject
from discoclaw.embed import local
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.recall.floor import PROBE, texts
from discoclaw.session.meaning import Meaning, NoMeaning
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.servers.embeddings_api import EmbeddingsServer, Held, Shaped, failure
from tests.servers.messages_api import MessagesServer, text, tool_use
from tests.session.scene import until

CAT = "User has a cat called Miso."
THINGS = ("lamp", "sofa", "boat", "kite", "drum", "harp", "vase", "oven", "bike", "sled")
OTHERS = [f"User owns the {thing}." for thing in THINGS]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"feline": "cat"}) as server:
        yield server


def openai(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    return {
        "embedding_provider": "openai",
        "embedding_url": server.openai_url,
        "embedding_key": "sk-secret",
        "extraction_enabled": False,
        **changes,
    }


def far(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    """The same server at an address that is not taken for this machine."""
    return openai(server, embedding_url=f"{server.elsewhere}/v1", **changes)


async def ready(world: World) -> None:
    """Wait until the provider is known to answer, and all is embedded."""
    meaning = world.app.feature(Finding).meaning
    assert meaning is not None
    await until(lambda: meaning.in_time, seconds=20)
    await meaning.settle()


async def remember(world: World, *texts: str, private: bool = False, marked: str = "normal") -> None:
    def wish(draft: Draft) -> None:
        for one in texts:
            draft.upsert("fact", one, Origin("stated", private=private, dm_privacy="strict"), marked=marked)  # type: ignore[arg-type]

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)


class TestRecall:
    @pytest.mark.design(170, 183)
    @pytest.mark.parametrize("provider", ["openai", "ollama"])
    @pytest.mark.design(312)
    async def test_finds_what_is_meant_though_no_word_is_the_same(
        self, start: Start, server: EmbeddingsServer, provider: str
    ) -> None:
        model = Scripted()
        url = server.openai_url if provider == "openai" else server.url
        changes = openai(server, embedding_provider=provider, embedding_url=url)
        async with start(model, **changes) as world:
            await remember(world, CAT, *OTHERS)
            await ready(world)
            await world.ann.send(world.general, "my feline?")
            assert CAT in model.prompt
            assert server.texts.count("my feline?") == 1
            assert not [one for one in OTHERS if one in model.prompt]
            await world.ann.send(world.general, "giraffe wool?")
            assert CAT not in model.prompt

    @pytest.mark.design(174, 185, 190, 329)
    async def test_without_a_provider_it_goes_by_the_words(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        model = Scripted()
        async with start(model, openai_key="sk-chat") as world:
            assert isinstance(world.app.feature(Finding).meaning, NoMeaning)
            await remember(world, CAT, *OTHERS)
            await world.ann.send(world.general, "my feline?")
            assert CAT not in model.prompt
            await world.ann.send(world.general, "my cat?")
            assert CAT in model.prompt
        assert not (world.folder / "data" / "cache" / "vectors.sqlite").exists()

    async def test_the_models_search_finds_it_too(self, start: Start, server: EmbeddingsServer) -> None:
        async with MessagesServer() as api:
            api.script(tool_use(("t1", "memory_search", {"query": "feline"})), text("A cat."))
            door = AnthropicProvider(api_key="k", base_url=api.base_url, connect_timeout_s=5)
            async with start(door.model("haiku", total_timeout_s=20), **openai(server)) as world:
                await remember(world, CAT, *OTHERS)
                await ready(world)
                await world.ann.send(world.general, "what do we know")
                result = str(api.requests[-1].body["messages"][-1])
                assert CAT in result
                assert OTHERS[0] not in result
            await door.close()


class TestWhatIsSent:
    async def test_a_provider_elsewhere_sees_nothing_private(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        model = Scripted()
        async with start(model, **far(server)) as world:
            await remember(world, CAT, *OTHERS)
            await remember(world, "User is in therapy.", private=True)
            await remember(world, "User is a spy.", marked="confidential")
            await ready(world)
            await world.ann.send_dm("my therapy, a private question")
            await world.ann.send(world.general, "my open question")
            await ready(world)
            assert "therapy" in model.user_turn(0)  # in the DM the private item is there all the same
        assert "my open question" in server.texts
        sent = " ".join(server.texts)
        assert not [word for word in ("private", "therapy", "spy") if word in sent]

    async def test_one_on_this_machine_sees_what_is_private_but_nothing_confidential(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **openai(server)) as world:
            await remember(world, "User is in therapy.", private=True)
            await remember(world, "User is a spy.", marked="confidential")
            await ready(world)
            await world.ann.send_dm("my private question")
            await ready(world)
        assert "User is in therapy." in server.texts
        assert "my private question" in server.texts
        assert "spy" not in " ".join(server.texts)

    async def test_nothing_is_sent_of_who_opted_out(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **openai(server)) as world:
            await world.ann.send(world.general, "!memory optout")
            await remember(world, CAT, *OTHERS)
            await ready(world)
            await world.ann.send(world.general, "my feline?")
            await ready(world)
        assert server.texts == [PROBE, *texts()]  # the bot's own, by which it measures the model

    async def test_names_are_left_out_of_a_question(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **openai(server)) as world:
            await remember(world, CAT)
            await ready(world)
            await world.bob.send(world.general, "good morning")
            await world.ann.send(world.general, "did bob see my feline, ann asks")
        assert "did see my feline, asks" in server.texts

    async def test_only_the_persons_own_words_are_asked_about(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **openai(server)) as world:
            await remember(world, CAT)
            await ready(world)
            said = await world.bob.send(world.general, "words of another")
            await world.ann.send(world.general, "feline", reply_to=said)
            await world.ann.send(world.general, "why?")
        assert "feline" in server.texts
        assert "why? feline" in server.texts
        assert "words of another" not in " ".join(server.texts)


class TestFaults:
    @pytest.mark.design(188, 321)
    async def test_a_provider_that_stalls_keeps_no_reply(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        awake = asyncio.Event()

        def ok(_: ModelRequest) -> str:
            assert not awake.is_set()
            awake.set()  # the bot is not quiet, and nothing more can be said, before the provider answers
            return "ok"

        model = Scripted(ok)
        server.default = Held(awake)
        async with start(model, **openai(server)) as world:
            await remember(world, CAT, *OTHERS)
            await world.ann.send(world.general, "my cat, a question?")
            assert world.answer(world.general) == "ok"
            assert CAT in model.prompt  # it is found by its words
        assert not [one for one in server.texts if "question" in one]

    async def test_one_whose_model_is_being_measured_keeps_none_either(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        model, measured = Scripted(), asyncio.Event()
        server.script(Shaped(lambda vectors: vectors))
        server.default = Held(measured)
        async with start(model, **openai(server)) as world:
            await remember(world, CAT, *OTHERS)
            await server.wait_for_text(texts()[-1])
            await world.ann.send(world.general, "my cat?")
            assert CAT in model.prompt
            assert "my cat?" not in server.texts
            measured.set()
            await ready(world)
            await world.ann.send(world.general, "whose feline is it?")
            assert CAT in model.prompt
        assert [one for one in server.texts if one.startswith("whose feline is it?")]

    async def test_a_cache_that_somebody_else_keeps_locked_keeps_none_either(
        self,
        start: Start,
        server: EmbeddingsServer,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr("discoclaw.memory.disk.database.BUSY_S", 0.01)
        model = Scripted()
        async with start(model, **openai(server)) as world:
            await remember(world, CAT, *OTHERS)
            await ready(world)
            path = world.folder / "data" / "cache" / "vectors.sqlite"
            with ExitStack() as stack:

                def lock() -> None:
                    other = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
                    other.execute("PRAGMA locking_mode = EXCLUSIVE")
                    other.execute("BEGIN EXCLUSIVE")

                await world.restart(meanwhile=lock)
                await world.ann.send(world.general, "my cat?")
                assert CAT in model.prompt
                await until(lambda: "is kept in RAM alone" in caplog.text, seconds=20)
                await world.ann.send(world.general, "the cat, again?")
                assert CAT in model.prompt
                assert world.answer(world.general) == "ok"

    @pytest.mark.design(188)
    @pytest.mark.parametrize("status", [401, 404, 429, 500])
    async def test_one_that_fails_neither(
        self, start: Start, server: EmbeddingsServer, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Scripted()
        server.default = failure(status)
        async with start(model, **openai(server)) as world:
            await remember(world, CAT)
            await world.ann.send(world.general, "my cat?")
            assert CAT in model.prompt
            assert world.answer(world.general) == "ok"
        assert "sk-secret" not in caplog.text

    @pytest.mark.design(185)
    async def test_another_model_is_caught_up_on_after_a_restart(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        model = Scripted()
        async with start(model, **openai(server, embedding_model="old")) as world:
            await remember(world, CAT, *OTHERS)
            await ready(world)
            await world.restart(embedding_model="new")
            await ready(world)
            await world.ann.send_dm("hello again")  # by which the memory is used
            await ready(world)
            asked = [one for request in server.requests if request.model == "new" for one in request.texts]
            assert {CAT, *OTHERS} <= set(asked)
            await world.ann.send(world.general, "my feline?")
            assert CAT in model.prompt


class TestTheModel:
    async def test_that_tells_nothing_brings_nothing_into_a_prompt(
        self, start: Start, server: EmbeddingsServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Scripted()
        server.default = Shaped(lambda vectors: [[1.0] * len(one) for one in vectors])
        async with start(model, **openai(server)) as world:
            await remember(world, CAT, *OTHERS)
            await until(lambda: "can't tell texts that belong together" in caplog.text, seconds=20)
            await world.ann.send(world.general, "my feline?")
            assert not [one for one in (CAT, *OTHERS) if one in model.prompt]
            await world.ann.send(world.general, "my cat?")
            assert CAT in model.prompt
        assert not {"my feline?", "my cat?"} & set(server.texts)

    async def test_may_be_replaced_by_another_with_its_name(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Scripted()
        async with EmbeddingsServer(same={"feline": "cat"}) as server:
            async with start(model, **openai(server)) as world:
                await remember(world, CAT, *OTHERS)
                await ready(world)
                server.default = Shaped(lambda vectors: [one[100:] + one[:100] for one in vectors])
                await world.restart()
                await ready(world)
                await world.ann.send_dm("hello again")  # by which the memory is used
                await ready(world)
                await world.ann.send(world.general, "my feline?")
                assert CAT in model.prompt
                assert not [one for one in OTHERS if one in model.prompt]
            assert server.texts.count(CAT) == 2


class TestErasing:
    async def test_leaves_no_row_and_no_byte(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **openai(server)) as world:
            await remember(world, CAT, *OTHERS)
            await ready(world)
            await world.ann.send(world.general, "my feline?")
            memory, subject = world.memory, user_subject(str(world.ann.id))
            assert memory is not None
            cache = world.folder / "data" / "cache"
            assert subject.encode() in b"".join(path.read_bytes() for path in cache.glob("vectors*"))
            erased = await memory.erase(subject)
            assert erased.left == ()
            await ready(world)
            assert subject.encode() not in b"".join(path.read_bytes() for path in cache.glob("vectors*"))
        assert subject.encode() not in b"".join(path.read_bytes() for path in cache.glob("vectors*"))


ELSEWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "the-key-of-that-server"}


class TestSettings:
    @pytest.mark.design(168, 169, 171, 173, 174)
    @pytest.mark.parametrize(
        ("environment", "name"),
        [
            ({}, None),
            ({"OPENAI_API_KEY": "sk-chat"}, None),
            ({"OPENAI_API_KEY": "sk-chat", "EMBEDDING_AUTO": "0"}, None),
            ({"OPENAI_API_KEY": "sk-chat", "EMBEDDING_AUTO": "1"}, "openai/text-embedding-3-small"),
            ({"EMBEDDING_AUTO": "1"}, None),
            ({"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "k"}, "openai/text-embedding-3-small"),
            (ELSEWHERE | {"EMBEDDING_AUTO": "1"}, None),  # the key is another server's
            (ELSEWHERE | {"EMBEDDING_PROVIDER": "openai"}, None),
            (
                ELSEWHERE | {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1/"},
                "openai/text-embedding-3-small",
            ),
            (
                ELSEWHERE | {"EMBEDDING_AUTO": "1", "OPENAI_BASE_URL": "https://api.openai.com/v1"},
                "openai/text-embedding-3-small",
            ),
            ({"EMBEDDING_PROVIDER": "ollama"}, "ollama/nomic-embed-text"),
            ({"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_MODEL": "bge"}, "ollama/bge"),
            ({"EMBEDDING_PROVIDER": "cohere", "EMBEDDING_API_KEY": "k"}, None),
            ({"EMBEDDING_PROVIDER": "openai"}, None),
        ],
        ids=str,
    )
    def test_say_whether_there_are_vectors_and_the_bot_starts_anyway(
        self,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        environment: dict[str, str],
        name: str | None,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        caplog.set_level(logging.WARNING, "discoclaw")
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        meaning = build(settings.load(), model=Scripted()).feature(Finding).meaning
        assert (meaning._embedder.name if isinstance(meaning, Meaning) else None) == name
        wanted = "EMBEDDING_PROVIDER" in environment and name is None
        assert caplog.text.count("vectors are switched off") == wanted


@pytest.mark.skipif(bool(local.missing()), reason="needs the extra local-vectors")
class TestTheLocalModel:
    async def test_finds_what_is_meant_without_any_server(self, start: Start) -> None:
        model = Scripted()
        async with start(model, embedding_provider="local", extraction_enabled=False) as world:
            await remember(world, "User cooks lasagne and pizza.", *OTHERS)
            await ready(world)
            await world.ann.send(world.general, "Italian food?")
            assert "User cooks lasagne and pizza." in model.prompt
            assert OTHERS[0] not in model.prompt
