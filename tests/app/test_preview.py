"""`preview`: what people are told that the model would read about them is what it then reads, and no more."""

import itertools
import re
from typing import Any

import pytest

from discoclaw.core.policy import Personas
from tests.app.conftest import Start
from tests.app.live import edit
from tests.app.models import Scripted
from tests.app.previewing import (
    ITEMS,
    SENTENCES,
    agrees,
    as_ann_reads,
    below,
    knows,
    left_out,
    memories,
    places,
    preview,
    says,
    thread,
)
from tests.app.test_groups import Agreeing
from tests.app.test_vectors import CAT, OTHERS, openai, ready, remember
from tests.attaching import picture
from tests.contract.cards import every_page, said
from tests.prompt.reader import talk
from tests.servers.embeddings_api import EmbeddingsServer

SETTINGS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "little room for memories": {"inject_max_chars": 220},
    "no room for memories": {"inject_max_chars": 0},
    "a short prompt": {"prompt_budget": 4000, "inject_max_chars": 20_000},
    "few messages": {"context_history": 3},
    "little room for messages": {"history_budget": 120},
    "no room for messages": {"history_budget": 0},
    "no summaries": {"summary_enabled": False},
    "no memory": {"durable_enabled": False},
    "no store": {"store": "none"},
    "no tools": {"tools_enabled": False},
    "fading": {"knowledge_decay": True, "recency_half_life_s": 60.0},
}


class TestWhatItLists:
    @pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
    async def test_is_what_the_model_is_then_sent(self, start: Start, changes: dict[str, Any]) -> None:
        model = Agreeing(themes=["indentation"], decisions=["We use tabs. " * 20])
        own = Personas({"dev": "work", "dm": "home"})
        async with start(model, personas=own, extraction_enabled=False, **changes) as world:
            if world.app.storage.remembers:
                await knows(world, world.ann, *ITEMS)
                await knows(world, world.ann, ("fact", "User's work teapot is red.", "normal"), branch="work")
                await says(world, world.general, "!memory forget User writes in vim.")
            everywhere = await places(world)
            for place in everywhere.values():
                for text in ("shall we use *tabs*?", "tabs it is, " * 30):
                    await says(world, place, text)
                    await world.settle()
            await world.restart()
            for number, (name, place) in enumerate(everywhere.items()):
                for about in SENTENCES[number % 2 :: 2]:
                    text = await preview(world, place if place is not None else "dm", about)
                    await says(world, place, about)
                    assert model.prompt.endswith(about), name
                    agrees(text, model)
                    await world.settle()

    async def test_goes_by_the_configuration_of_the_moment(self, start: Start) -> None:
        model = Scripted()
        async with start(model, context_history=4, extraction_enabled=False) as world:
            everybody, ann = f"group:{world.general.id}", f"user:{world.ann.id}"
            for given in ({everybody: 12}, {everybody: 3}, {everybody: 12, ann: 2}):
                edit(world, {scope: {"context_history": most} for scope, most in given.items()})
                for number in range(8):
                    await world.bob.send(world.general, f"line {number}")
                await world.settle()
                text = await preview(world, about="hello")
                await world.ann.send(world.general, "hello")
                agrees(text, model)
                most = given.get(ann, given[everybody])
                assert f"**Recent messages** ({most - 1})" in text
            edit(world, {everybody: {"context_history": 12}})
            await world.env.advance_time(10 * 3600)  # the window is closed, and read from Discord again
            assert "**Recent messages** (11)" in await preview(world)
            await world.ann.send(world.general, "still there?")
            assert len(talk(model.prompt)) == 11

    async def test_has_what_is_found_by_its_meaning(self, start: Start) -> None:
        model = Scripted()
        async with (
            EmbeddingsServer(same={"feline": "cat"}) as server,
            start(model, **openai(server)) as world,
        ):
            await remember(world, CAT, *OTHERS)
            await ready(world)
            text = await preview(world, about="my feline?")
            assert re.search(r"called Miso\. \(id .*\); for meaning$", text, re.MULTILINE)
            await world.ann.send(world.general, "my feline?")
            agrees(text, model)

    async def test_is_about_the_place_where_it_is_asked(self, start: Start) -> None:
        async with start(Scripted()) as world:
            assert (await preview(world)).startswith("**What I could say about you in #general**")
            inside = await thread(world, world.general)
            card = (await world.ann.slash(inside, "memory preview")).response
            assert said(card).startswith("### What I could say about you in the thread “a talk”")
            await world.ann.send_dm("!memory preview")
            assert "in our direct messages**" in world.answer(world.ann_dm)

    async def test_without_a_sentence_is_what_is_always_there_and_what_may_come(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            for place, about in itertools.product((world.general, None), SENTENCES):
                text = await preview(world, place or "dm")
                always = memories(below(text, "Always"))
                fits = memories(below(text, "When it fits what you write"))
                assert len(always) == 3
                assert len(fits) == (5 if place else 7)
                await says(world, place, about)
                assert set(always) <= set(as_ann_reads(model)) <= {*always, *fits}
                await world.settle()

    async def test_says_when_what_is_always_there_may_have_to_make_room(self, start: Start) -> None:
        async with start(Scripted(), inject_max_chars=500, extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            assert "(Some of these leave if" in await preview(world)
            assert "(Some of these leave if" not in await preview(world, about="hello")

    async def test_names_the_reason_for_each(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            text = await preview(world, about="what colour is my teapot?")
            assert re.search(r"teapot is BLUE\? \(id .*\); for colour, teapot$|teapot$", text, re.MULTILINE)
            assert re.search(r"short answers\. \(id .*\); always$", text, re.MULTILINE)
            assert "; you ask for everything" in await preview(world, about="what do you know about me?")


class TestWhatItLeavesOut:
    async def test_is_named_with_the_reason(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.ann.send(world.general, "!memory forget User writes in vim.")
            text = await preview(world, about="what colour is my teapot?")
            found = left_out(text)
            assert sorted(found) == [
                "Confidential: I give these to no model",
                "Forgotten",
                "Not related closely enough to that message",
                "Private: I use these in our DMs only",
                "Says the same as one that is used",
            ]
            assert found["Forgotten"] == ["[tool] You write in vim."]
            assert found["Confidential: I give these to no model"] == [
                "[fact] Your bank card has the PIN of old."
            ]
            assert len(found["Private: I use these in our DMs only"]) == 2
            assert len(found["Says the same as one that is used"]) == 1
            everything = memories(text.splitlines())
            assert len(everything) == len(ITEMS) == len(set(everything))
            in_dm = left_out(await preview(world, "dm", "what colour is my teapot?"))
            assert "Private: I use these in our DMs only" not in in_dm
            assert "Confidential: I give these to no model" in in_dm

    @pytest.mark.parametrize(
        "tight", [{"inject_max_chars": 220}, {"prompt_budget": 4000, "inject_max_chars": 20_000}]
    )
    async def test_says_what_there_is_no_room_for(self, start: Start, tight: dict[str, int]) -> None:
        long = [("preference", f"User prefers {n}. " + "So it is. " * 90, "normal") for n in range(5)]
        model = Scripted()
        async with start(model, extraction_enabled=False, **tight) as world:
            await knows(world, world.ann, *long, ("fact", "User's teapot is blue.", "normal"))  # type: ignore[arg-type]
            text = await preview(world, about="what colour is my teapot?")
            assert left_out(text)["No room: what I give the model at once is limited"]
            await world.ann.send(world.general, "what colour is my teapot?")
            agrees(text, model)
            why = (await world.ann.slash(world.general, "memory why")).response
            based_on = await every_page(world.ann, why)
            read = as_ann_reads(model)
            assert read and all(line.partition("] ")[2][:60] in based_on for line in read)

    async def test_counts_what_only_other_personas_know(self, start: Start) -> None:
        async with start(Scripted(), personas=Personas({"dev": "work"})) as world:
            await knows(world, world.ann, ("fact", "User likes tea.", "normal"))
            await knows(world, world.ann, ("fact", "User has a desk.", "normal"), branch="work")
            here, there = await preview(world), await preview(world, world.dev)
            assert "as your persona main" in here
            assert "- 1 memory that only your persona work has" in here
            assert "desk" not in here
            assert "as your persona work" in there
            assert "[fact] You have a desk." in there

    async def test_says_what_was_not_used_for_too_long(self, start: Start) -> None:
        fades = {"knowledge_decay": True, "knowledge_max_idle_days": 30, "knowledge_survival_chance": 1.0}
        async with start(Scripted(), **fades) as world:
            await knows(world, world.ann, *ITEMS)
            await world.env.advance_time(40 * 86_400)
            long_ago = left_out(await preview(world))["Not used for too long"]
            assert "[fact] Your teapot is blue." in long_ago
            assert left_out(await preview(world, about="what colour is my teapot?"))["Not used for too long"]


class TestFiles:
    async def test_of_the_last_messages_are_named(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await world.ann.send(world.general, "look", attachments=[("*my* cat.png", picture())])
            card = (await world.ann.slash(world.general, "memory preview")).response
            text = await every_page(world.ann, card)
        assert "**Files** (1)\n- Picture 1: “\\*my\\* cat.png”, from ann, 2 messages ago" in text
