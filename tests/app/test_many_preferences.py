"""With many preferences, a prompt has those that the message calls for; and what was replaced says so."""

import re

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Kind
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.older import openai, ready
from tests.app.previewing import DURABLE, TURN_TITLES, agrees, below, durable, left_out, memories, preview
from tests.prompt.reader import sections
from tests.recall.test_standing import SHORT, TOPICS
from tests.servers.embeddings_api import EmbeddingsServer

WAITING = "Too many to use in every answer: these come when you write about their topic"
NO_ROOM = "No room: what I give the model at once is limited"


async def learned(world: World, *texts: str, kind: Kind = "preference", author: str = "inferred") -> None:
    def make(draft: Draft) -> str:
        origin = Origin("stated") if author == "stated" else Origin("inferred", said_at=1, dm_privacy="open")
        for text in texts:
            draft.upsert(kind, text, origin)
        return ""

    await world.memory.change(user_subject(str(world.ann.id)), "learned", make)


class TestManyPreferences:
    async def test_those_of_another_topic_are_not_sent(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await learned(world, *TOPICS, SHORT)
            await world.ann.send(world.general, "suggest a film for tonight")
            assert durable(model) == [f"[preference] {TOPICS[4]}", f"[preference] {SHORT}"]
            await world.ann.send(world.general, "write a Python function that sorts names")
            assert durable(model)[0] == f"[preference] {TOPICS[0]}"
            assert f"[preference] {SHORT}" in durable(model)
            assert f"[preference] {TOPICS[7]}" not in durable(model)

    async def test_a_few_are_all_sent(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await learned(world, *TOPICS[:5])
            await world.ann.send(world.general, "hello")
            assert sorted(durable(model)) == sorted(f"[preference] {text}" for text in TOPICS[:5])

    async def test_what_the_person_ruled_is_sent_whatever_is_said(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await learned(world, *TOPICS)
            await learned(world, "Never mention my job.", kind="constraint", author="stated")
            await learned(world, "User is allergic to nuts.", kind="constraint")
            await world.ann.send(world.general, "tell me a joke")
            sent = ["[constraint] Never mention my job.", "[constraint] User is allergic to nuts."]
            assert sorted(durable(model)) == sent


class TestThePreview:
    async def test_says_what_waits_for_its_topic(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await learned(world, *TOPICS, SHORT)
            text = await preview(world, about="suggest a film for tonight")
            assert len(left_out(text)[WAITING]) == len(TOPICS) - 1
            await world.ann.send(world.general, "suggest a film for tonight")
            agrees(text, model)

    async def test_without_a_sentence_says_what_is_always_there_and_what_may_come(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await learned(world, *TOPICS, SHORT)
            for talk in (None, "suggest a film for tonight"):
                if talk is not None:
                    await world.ann.send(world.general, talk)
                text = await preview(world)
                assert memories(below(text, "Always")) == ["[preference] You want short answers."]
                assert len(memories(below(text, "When it fits what you write"))) == len(TOPICS)

    async def test_does_not_say_always_of_what_only_the_talk_before_means(self, start: Start) -> None:
        async with (
            EmbeddingsServer(same={"feline": "cat"}) as server,
            start(Scripted(), **openai(server)) as world,
        ):
            await learned(world, *TOPICS, SHORT, "User loves the cat.")
            await ready(world)
            await world.ann.send(world.general, "my feline?")
            await world.settle()
            text = await preview(world)
            assert memories(below(text, "Always")) == ["[preference] You want short answers."]
            cat = "[preference] You love the cat."
            assert cat in memories(below(text, "When it fits what you write"))
            text = await preview(world, about="my feline?")
            assert cat in memories(below(text, "From your memory"))

    async def test_says_which_constraints_have_no_room(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            rules = [f"Never mention subject{n}." for n in range(32)]
            await learned(world, *rules, kind="constraint", author="stated")
            text = await preview(world, about="tell me a joke")
            await world.ann.send(world.general, "tell me a joke")
            agrees(text, model)
            assert len(left_out(text)[NO_ROOM]) + len(durable(model)) == len(rules)


class TestWhatWasReplaced:
    async def test_comes_behind_what_replaced_it_and_says_so(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await learned(world, "User lives in Linz.", kind="fact")
            await world.env.advance_time(40 * 86_400)
            await learned(world, "User lives in Graz.", kind="fact")
            await world.ann.send(world.general, "what do you know about Linz?")
            first, second = sections(model.prompt, TURN_TITLES)[DURABLE]
            assert first.startswith("- [fact] User lives in Graz. (src:")
            assert re.match(r"- \[fact\] \(until \d{4}-\d\d\) User lives in Linz\. \(src:", second)
            text = await preview(world, about="what do you know about Linz?")
            assert "; newer than one that fits" in text
            assert re.search(r"Linz\. .*; for linz; until \d{4}-\d\d$", text, re.MULTILINE)
