"""What is learned belongs to the persona it was said to; and nothing of people who want no memory."""

import asyncio
from pathlib import Path

from discoclaw.core.errors import ModelTimeout
from discoclaw.core.message import Place
from discoclaw.core.personal import Erasure
from discoclaw.core.policy import Personas, Policy
from discoclaw.core.times import snowflake_at
from discoclaw.memory.subjects import verbs
from tests.loops.builders import catch_up, hear, upsert
from tests.session.scene import ANN, BOB, DEV, DM, GENERAL, NOW, House, house, inbound, said, until

ANNS = "user-1"


async def texts(home: House, branch: str) -> list[str]:
    return [item.text for item in (await home.memory.view(ANNS, branch)).active()]


async def learn(home: House, *facts: str) -> None:
    """Let the extraction run; each batch becomes one of the facts."""
    home.model.patches.extend(upsert(fact) for fact in facts)
    home.loops.nudge(GENERAL.session_key("1"), "1")
    await home.loops.settle()


class TestThePersonaItWasSaidTo:
    async def test_is_the_one_that_was_head_then(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await verbs.create_branch(home.memory, ANNS, "coding")
        hear(home.loops, [said(1, text="I have a cat")])
        home.clock.now = NOW + 50
        await verbs.switch(home.memory, ANNS, "coding")
        hear(home.loops, [said(1000, text="I write Go")])
        await learn(home, "User has a cat.", "User writes Go.")
        assert await texts(home, "main") == ["User has a cat."]
        assert await texts(home, "coding") == ["User writes Go."]
        first, second = home.model.extractions
        assert ("cat" in first, "Go" in first) == (True, False)
        assert ("cat" in second, "Go" in second) == (False, True)

    async def test_is_told_what_waited_for_it_after_a_restart_too(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await verbs.create_branch(home.memory, ANNS, "coding")
        past = [said(1, text="I have a cat"), said(100, text="I write Go"), said(200, text="I have a dog")]
        for at, persona in ((NOW + 50, "coding"), (NOW + 150, "main")):
            home.clock.now = at
            await verbs.switch(home.memory, ANNS, persona)
        hear(home.loops, past, DM)
        home.model.patches.extend([upsert("User has a cat and a dog."), ModelTimeout("slow")])
        await learn(home)
        await home.loops.close()
        again = house(tmp_path, facts_every=1)
        await catch_up(again, past, DM)
        await learn(again, "User writes Go.")
        assert await texts(again, "main") == ["User has a cat and a dog."]
        assert await texts(again, "coding") == ["User writes Go."]
        [prompt] = again.model.extractions
        assert "I write Go" in prompt

    async def test_is_told_by_the_chats_clock_where_a_message_asked_for_the_switch(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path, facts_every=1)
        await verbs.create_branch(home.memory, ANNS, "coding")
        home.clock.now = NOW + 60_000  # our clock is a minute ahead
        await verbs.switch(home.memory, ANNS, "coding", said_at=NOW + 50)
        hear(home.loops, [said(100, text="I write Go")])
        await learn(home, "User writes Go.")
        assert await texts(home, "coding") == ["User writes Go."]

    async def test_is_the_places_own_where_it_has_one(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, personas=Personas({"dev": "coding"}))
        hear(home.loops, [said(1, text="I write Go")], DEV)
        thread = Place("thread", "77", DEV.channel_id, "bugs", private=False, group_name="dev")
        hear(home.loops, [said(2, text="and Rust")], thread)
        hear(home.loops, [said(3, text="I have a cat")], GENERAL)
        await learn(home, "User writes Go and Rust.", "User has a cat.")
        assert await texts(home, "coding") == ["User writes Go and Rust."]
        assert await texts(home, "main") == ["User has a cat."]

    async def test_what_was_said_to_one_that_is_gone_is_learned_nowhere(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await verbs.create_branch(home.memory, ANNS, "coding")
        await verbs.switch(home.memory, ANNS, "coding")
        hear(home.loops, [said(1000, text="I write Go")])
        home.clock.now = NOW + 5000
        await verbs.switch(home.memory, ANNS, "main")
        await verbs.delete_branch(home.memory, ANNS, "coding")
        await learn(home, "User writes Go.")
        assert home.model.extractions == []
        assert await home.texts(ANN) == []

    async def test_one_that_goes_while_a_model_reads_does_not_come_back(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await verbs.create_branch(home.memory, ANNS, "coding")
        await verbs.switch(home.memory, ANNS, "coding")
        hear(home.loops, [said(1000, text="I write Go")])
        home.model.gate = asyncio.Event()
        learning = asyncio.create_task(learn(home, "User writes Go."))
        await until(lambda: bool(home.model.extractions))
        await verbs.switch(home.memory, ANNS, "main")
        await verbs.delete_branch(home.memory, ANNS, "coding")
        home.model.gate.set()
        await learning
        assert list((await home.memory.branches(ANNS)).all) == ["main"]
        await learn(home)
        assert len(home.model.extractions) == 1  # it is not read again and again

    async def test_items_of_the_other_personas_are_not_in_the_prompt(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, personas=Personas({"dev": "coding"}))
        hear(home.loops, [said(1, text="I write Go")], DEV)
        await learn(home, "User writes Go.")
        await home.remember(ANN, "User has a cat.")
        hear(home.loops, [said(2, text="Hello")], DEV)
        await learn(home)
        assert "cat" not in home.model.extractions[-1]


class TestNobodyWhoOptedOut:
    async def test_is_extracted_or_summarised(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, summary_every=1)
        await home.choose("1", opted_out=True)
        hear(home.loops, [said(1, text="I have a cat")])
        await learn(home, "User has a cat.")
        assert (home.model.extractions, home.model.summarised) == ([], [])

    async def test_is_learned_from_the_chats_past_in_their_dms(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, summary_every=1)
        await home.choose("1", opted_out=True)
        past = [said(1, text="I have a cat")]
        await home.loops.catch_up(past, DM, DM.session_key("1"), window=20)
        await learn(home, "User has a cat.")
        assert (home.model.extractions, home.model.summarised) == ([], [])

    async def test_is_learned_from_what_they_said_before_that(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, summary_every=1)
        hear(home.loops, [said(1, text="I have a cat"), said(2, BOB, text="I have a dog")])
        await home.choose("1", opted_out=True)
        await learn(home, "User has a cat.")
        home.loops.nudge(GENERAL.session_key("2"), "2")
        await home.loops.settle()
        prompts = [*home.model.extractions, *home.model.summarised]
        assert len(prompts) == 2
        assert all("dog" in prompt and "cat" not in prompt for prompt in prompts)

    async def test_is_learned_from_by_an_extraction_that_was_under_way(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(1, text="I have a cat")])
        home.model.gate = asyncio.Event()
        learning = asyncio.create_task(learn(home, "User has a cat."))
        await until(lambda: bool(home.model.extractions))
        await home.choose("1", opted_out=True)
        home.model.gate.set()
        await learning
        assert await home.texts(ANN) == []

    async def test_is_learned_from_when_they_opt_in_again(self, tmp_path: Path) -> None:
        """Neither in a channel nor in their DM; what they say from then on is."""
        home = house(tmp_path, facts_every=1)
        await home.choose("1", opted_out=True)
        await home.choose("1", opted_out=False, since=NOW + 10)
        for place, number in ((GENERAL, 9), (DM, 8)):
            past = [said(number, text="I have a cat"), said(number + 10, text="I have a dog")]
            await home.loops.catch_up(past, place, place.session_key("1"), window=20)
        await learn(home, "User has a dog.", "User has a dog.")
        assert len(home.model.extractions) == 2
        assert all("dog" in prompt and "cat" not in prompt for prompt in home.model.extractions)


class TestAfterAnErasure:
    async def test_what_waited_is_not_learned(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2, summary_every=2)
        home.hear(inbound(1, "I have a cat"), Policy("all"))
        home.personal.forget(Erasure("user-1", NOW + 10))
        await learn(home, "User has a cat.")
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await home.loops.settle()
        assert (home.model.extractions, home.model.summarised) == ([], [])
        assert home.windows.use(GENERAL.session_key("1")).recent() == ()

    def test_ids_of_its_time_are_known(self) -> None:
        # Discord's documentation: the id 175928847299117063 was made at 2016-04-30 11:18:25.796 UTC.
        made = 1_462_015_105_796
        assert snowflake_at(made - 1) < 175928847299117063 <= snowflake_at(made)
