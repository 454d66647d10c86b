"""Questions: what is asked of a provider while somebody waits for an answer, and how long they wait."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.embedding import Embedding
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.floor import PROBE, texts
from discoclaw.search.vectors import VectorCache
from discoclaw.session.meaning import Meaning, without_names
from tests.memory.kit import ANN
from tests.servers.embeddings_api import FAULTS, Behaviour, EmbeddingsServer, failure, stall
from tests.session.scene import ANN as ANN_HERSELF
from tests.session.scene import Recorder, house, inbound, until
from tests.session.vectors import TEXTS, Desk


class TestQuestions:
    async def test_find_what_is_meant_and_ask_once(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        near = await desk.near("feline?")
        assert near.keys() == set(TEXTS)
        assert near["User has a cat."] > near["User drinks tea."] == 0
        assert desk.server.texts.count("feline?") == 1

    async def test_are_not_asked_before_the_provider_has_shown_that_it_answers(self, desk: Desk) -> None:
        desk.begin()
        await desk.remember(*TEXTS)
        await desk.meaning.settle()
        assert await desk.near("feline?") == {}
        assert "feline?" not in desk.server.texts

    async def test_are_not_asked_about_somebody_without_vectors(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.ready()
        assert await desk.near("feline?") == {}
        await desk.meaning.settle()
        assert desk.server.texts == [PROBE, *texts()]

    async def test_an_item_without_a_vector_has_no_cosine(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.script(stall())
        await desk.remember("User sails.")
        await desk.server.wait_for_text("User sails.")
        assert (await desk.near("feline?")).keys() == set(TEXTS)

    async def test_private_words_go_to_no_other_machine(self, desk: Desk) -> None:
        await desk.begin(url=desk.server.elsewhere).start()
        await desk.remember(*TEXTS)
        await desk.ready()
        assert desk.meaning.ask(ANN, "my private feline", private=True) is None
        assert (await desk.near("my open feline"))["User has a cat."] > 0
        assert "my private feline" not in desk.server.texts

    @pytest.mark.parametrize("text", ["", "  \n", "Ann", "@Ann"])
    async def test_nothing_is_asked_with_no_words(self, desk: Desk, text: str) -> None:
        await desk.begin().start()
        await desk.ready()
        assert desk.meaning.ask(ANN, text, private=False, names=["Ann"]) is None

    async def test_the_cosines_are_those_of_whoever_is_meant(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        assert await desk.near("feline?", subject="user-456") == {}


class TestFaults:
    @pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
    async def test_nobody_waits_after_one_until_a_try_succeeds(self, desk: Desk, fault: Behaviour) -> None:
        await desk.begin(rest_s=0.5).start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.script(fault)
        assert await desk.near("feline?") == {}
        assert not desk.meaning.in_time
        assert await desk.near("another feline?") == {}
        assert "another feline?" not in desk.server.texts
        await desk.ready()
        assert (await desk.near("feline?"))["User has a cat."] > 0

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

    async def test_vectors_of_another_length_are_made_anew(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.dims = 300
        assert await desk.near("feline?") == {}
        await desk.ready()
        assert (await desk.near("feline?"))["User has a cat."] > 0

    async def test_a_question_nobody_looks_at_disturbs_nobody(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        desk.server.script(failure(500))
        assert desk.meaning.ask(ANN, "feline?", private=False) is not None
        await desk.meaning.settle()
        assert desk.meaning.in_time

    async def test_closing_waits_for_nothing(self, desk: Desk) -> None:
        desk.server.default = stall()
        await desk.begin().start()
        await desk.server.wait_for_requests(1)
        await desk.meaning.close()
        assert desk.meaning.ask(ANN, "feline?", private=False) is None

    async def test_after_an_erasing_nothing_is_near(self, desk: Desk) -> None:
        await desk.begin().start()
        await desk.remember(*TEXTS)
        await desk.ready()
        items = await desk.items()
        await desk.memory.erase(ANN)
        assert await desk.near("feline?", items=items) == {}


class TestATurn:
    """A whole turn, with a provider that stalls later on."""

    async def test_goes_on_without_a_provider_that_stalls(
        self, tmp_path: Path, server: EmbeddingsServer
    ) -> None:
        door = HttpEmbedder(OLLAMA, model="m", base_url=server.url)
        cache = VectorCache(None)

        def vectors(memory: Memory) -> Meaning:
            embedding = Embedding(door, memory, cache)
            memory.join(embedding)
            return Meaning(door, embedding, wait_s=1.0, rest_s=60.0)

        home = house(tmp_path, meaning=vectors)
        meaning = home.meaning
        home.memory.open()
        await meaning.start()
        for text in TEXTS:
            await home.remember(ANN_HERSELF, text)
        await until(lambda: meaning.in_time, seconds=20)
        await meaning.settle()
        server.default = stall()
        for number in range(3):
            reply = Recorder()
            async with asyncio.timeout(20):
                home.answer(inbound(100 + number, f"question {number} on the cat?"), reply)
                await home.desk.settle()
            assert reply.text == "All right."
            assert "User has a cat." in home.model.user_turn()
        assert [text for text in server.texts if "question" in text] == ["question 0 on the cat?"]
        await meaning.close()
        home.memory.close()
        cache.close()


class TestNames:
    @pytest.mark.parametrize(
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
