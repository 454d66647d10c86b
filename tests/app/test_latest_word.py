"""The latest word wins: what people say over weeks changes what is remembered, and isn't added to it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import item_id
from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from discoclaw.core.subject import user_subject
from discoclaw.core.view import View
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.schedule import Loops
from discoclaw.session.meaning import Meaning
from tests.app.conftest import Start, World, running
from tests.app.models import Scripted
from tests.citing import items_of
from tests.core.builders import item
from tests.servers.embeddings_api import EmbeddingsServer, Shaped, Vectors, failure
from tests.session.scene import until

WEEK_S = 7 * 86_400
LINZ = f"User lives in Linz, beside {', '.join(f'house{number}' for number in range(20))}."
"""Longer than the others, so that it is not shown only because it fits in."""
GRAZ = "User lives in Graz."
LEFT = "We left Linz, all books of the shelf are in Graz now!"
"""It shares more words with the other memories than with the old home, but common ones."""
MOVED = "Everything is packed, next week we move to Graz"
QUIET: dict[str, Any] = {"summary_enabled": False, "durable_every": 1, "max_items": 10_000}


class Mover(Scripted):
    """Answers an extraction as a good small model would: it changes the home it is shown, or adds one."""

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if purpose == "extraction" and "Graz" in prompt.partition("\nTalk:\n")[2]:
            homes = [short for short, text in items_of(prompt).items() if "lives in Linz" in text]
            proposal = {"kind": "fact", "text": GRAZ, "id": homes[0] if homes else None}
            self.facts.insert(0, json.dumps({"upserts": [proposal]}))
        return await super().structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )


async def live_in_linz(world: World, others: int = 3_000, **given: Any) -> None:
    """Let Ann's memory have her old home and, later, many other things."""
    home = item(LINZ, updated_at=1_000, **{"author": "inferred", **given})
    items = [
        item(f"Shelf {number} holds {'books ' * 12}.", updated_at=2_000 + number, author="inferred")
        for number in range(others)
    ]

    def wish(draft: Draft) -> None:
        for one in (home, *items):
            draft.emit("add", one, one.to_json(), Origin("inferred"))  # an upsert would compare all

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)
    await world.env.advance_time(WEEK_S)


async def view(world: World) -> View:
    return await world.memory.view(user_subject(str(world.ann.id)))


async def homes(world: World) -> list[str]:
    return [one.text for one in (await view(world)).active() if "lives in" in one.text]


@pytest.fixture
async def vectors() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"move": "lives", "graz": "linz"}) as server:
        yield server


def by(server: EmbeddingsServer, *, here: bool = True) -> dict[str, Any]:
    """The settings for a provider of vectors; `here`: its address is one of this machine."""
    url = server.openai_url if here else f"{server.elsewhere}/v1"
    return {"embedding_provider": "openai", "embedding_url": url, "embedding_key": "sk-secret", **QUIET}


async def ready(world: World) -> None:
    """Wait until the provider is known to answer, and all is embedded."""
    meaning = running(world.app, Meaning)
    meaning.want(user_subject(str(world.ann.id)), (await view(world)).active())
    await until(lambda: meaning.in_time, seconds=20)
    await meaning.settle()


class TestAMove:
    async def test_changes_the_home_that_was_learned_weeks_before(self, start: Start) -> None:
        model = Mover()
        async with start(model, **QUIET) as world:
            model.facts = [json.dumps({"upserts": [{"kind": "fact", "text": "User lives in Linz."}]})]
            await world.ann.send(world.general, "I live in Linz by the way")
            await world.settle()
            assert await homes(world) == ["User lives in Linz."]
            for _ in range(3):
                await world.env.advance_time(WEEK_S)
                await world.ann.send(world.general, "and what about tea?")
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert await homes(world) == [GRAZ]

    async def test_finds_the_old_home_among_three_thousand_memories(self, start: Start) -> None:
        async with start(Mover(), **QUIET) as world:
            await live_in_linz(world)
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert await homes(world) == [GRAZ] and len((await view(world)).active()) == 3_001
            await world.restart()
            assert await homes(world) == [GRAZ]

    async def test_finds_it_by_its_meaning_where_no_word_is_the_same(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        async with start(Mover(), **by(vectors)) as world:
            await live_in_linz(world, 400)
            await ready(world)
            await world.ann.send(world.general, MOVED)
            await world.settle()
            assert await homes(world) == [GRAZ]

    async def test_goes_by_words_where_the_provider_fails(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        vectors.default = failure(500)
        async with start(Mover(), **by(vectors)) as world:
            await live_in_linz(world, 400)
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert await homes(world) == [GRAZ]

    async def test_asks_about_a_home_that_was_stated(self, start: Start) -> None:
        async with start(Mover(), **QUIET) as world:
            await live_in_linz(world, 400, author="stated")
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert await homes(world) == [LINZ]
            assert [one.text for one in (await view(world)).conflicts] == [GRAZ]

    async def test_shows_no_private_home_to_open_talk_however_near_it_is(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        model = Mover()
        async with start(model, **by(vectors)) as world:
            await live_in_linz(world, 400, sensitivity="private")
            await ready(world)
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert "lives in Linz" not in model.structured_prompts[-1]
            await world.env.advance_time(60)
            await world.ann.send_dm(LEFT)
            await world.settle()
            assert "lives in Linz" in model.structured_prompts[-1]

    async def test_in_a_dm_goes_to_no_provider_elsewhere(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        async with start(Mover(), **by(vectors, here=False)) as world:
            await live_in_linz(world, 400)
            await ready(world)
            await world.ann.send_dm(LEFT)
            await world.settle()
            assert not [text for text in vectors.texts if "of the shelf" in text]
            assert await homes(world) == [GRAZ]

    async def test_of_somebody_who_opted_out_is_sent_to_nobody(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        model = Mover()
        async with start(model, **by(vectors)) as world:
            await ready(world)
            await world.ann.send(world.general, "!memory optout")
            await world.settle()
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert LEFT not in vectors.texts and model.structured_prompts == []

    async def test_shows_no_model_what_others_take_back_while_the_provider_is_asked(
        self, start: Start, vectors: EmbeddingsServer
    ) -> None:
        model = Mover()
        async with start(model, **by(vectors)) as world:
            await live_in_linz(world, 400)
            await ready(world)
            gone = await world.bob.send(world.general, "Ann, the marmalade is our secret")
            await world.bob.send(world.general, "Ann, the honey is not")

            def take_back(made: Vectors) -> Vectors:  # the reply asked first, the extraction asks now
                if vectors.texts.count(LEFT) > 1:
                    running(world.app, Loops).tracks.forget(str(gone.id))
                return made

            vectors.default = Shaped(take_back)
            await world.ann.send(world.general, LEFT)
            await world.settle()
            assert "honey" in model.structured_prompts[-1]
            assert "marmalade" not in model.structured_prompts[-1]


class TestTidying:
    async def test_finds_what_slipped_through_however_long_ago_it_was_learned(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            await live_in_linz(world, 400)
            await world.ann.send(world.general, "!memory consolidate")
            await world.settle()
            assert any("lives in Linz" in prompt for prompt in model.structured_prompts)
            model.facts = [json.dumps({"upserts": [{"kind": "fact", "text": "User moved to Linz, house3."}]})]
            await world.ann.send(world.general, "I moved to Linz, house3")
            await world.settle()
            pair = {"keep": item_id("fact", LINZ), "drop": [item_id("fact", "User moved to Linz, house3.")]}
            count = len(model.structured_prompts)
            model.facts = [json.dumps({"duplicates": [{**pair, "text": None}]})]
            await running(world.app, Heartbeat).beat()
            (prompt,) = model.structured_prompts[count:]
            assert LINZ in prompt and "moved to Linz" in prompt and prompt.count("\n- ") <= 10
            assert [one.text for one in (await view(world)).active() if "Linz" in one.text] == [LINZ]
