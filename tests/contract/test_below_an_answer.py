"""The buttons below an answer: Stop while it is written, then Again, and Go on for the rest."""

import asyncio
from typing import Any

from tests.contract.cards import labels
from tests.contract.meanwhile import as_seen, press, until, writes
from tests.contract.prompts import section
from tests.contract.world import GUILD_ID, Start, World
from tests.servers.messages_api import Behaviour, cut, text, tool_use

LIVE: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "edit_interval_s": 0.0}
CUT = "\n\n*(My answer reached its length limit here. Say “go on” for the rest.)*"
BEGUN = "One sheep. Two sheep."


def endless(said: str = BEGUN) -> Behaviour:
    """An answer that goes on for ever after this."""
    return text(said, " Three sheep.", hold=asyncio.Event())


def seen(place: Any) -> list[tuple[str, list[str]]]:
    """What a place shows, with the buttons below it."""
    return [(str(one.content), labels(one)) for one in place.history()]


async def streaming(world: World, place: Any) -> Any:
    """The message that shows an answer while it is written."""
    await until(lambda: seen(place)[-1][1] == ["Stop"])
    return place.last_message


class TestStop:
    async def test_ends_an_answer_for_who_asked_but_no_change_of_the_memory_that_has_begun(
        self, start: Start
    ) -> None:
        async with start(**LIVE) as world:
            world.brain.says(endless(), about="Count sheep")
            writes(world, world.ann, world.general, "Count sheep")
            answer = await streaming(world, world.general)
            writes(world, world.bob, world.general, "Good night")
            refused = press(world, world.bob, answer)
            await until(lambda: refused.response is not None)
            assert refused.response.content == "These buttons are for somebody else."
            assert refused.response.ephemeral and seen(world.general)[1:] == [
                (BEGUN, ["Stop"]),
                ("Good night", []),
            ]
            stale = as_seen(world, answer)
            press(world, world.ann, answer)
            await asyncio.wait_for(world.server.left.wait(), 5)
            late = press(world, world.ann, stale)
            await world.settle()
            assert seen(world.general)[1:] == [
                (BEGUN, ["Again", "Go on"]),
                ("Good night", []),
                ("ok", ["Again"]),
            ]
            assert late.followups == [] and BEGUN in world.prompt and "Three" not in world.prompt
            store = ("t", "memory_store", {"text": "User likes tea.", "kind": "preference"})
            world.brain.says(tool_use(store, said="I note it."), endless("Done. "), about="tea")
            writes(world, world.ann, world.general, "I like tea")
            await until(lambda: world.memories(world.ann))
            press(world, world.ann, await streaming(world, world.general))
            await world.settle()
            assert world.memories(world.ann) == ["User likes tea."]
            assert seen(world.general)[-1][0].startswith("I note it.")

    async def test_before_the_first_word_leaves_a_note_and_is_below_the_last_message_alone_also_after_a_crash(
        self, start: Start
    ) -> None:
        async with start(**LIVE) as world:
            call = ("t", "memory_search", {"query": "tea"})
            thinks = tool_use(said="You like tea.", thought="Hm.", hold=asyncio.Event())
            world.brain.says(tool_use(call, thought="Tea?"), thinks, about="What do I like?")
            writes(world, world.ann, world.general, "What do I like?")
            answer = await streaming(world, world.general)
            assert answer.content == "*looking in my memory…*"
            press(world, world.ann, answer)
            await world.settle()
            assert seen(world.general)[1:] == [("-# Stopped.", ["Again"])]
            await world.restart()
            await world.says(world.ann, world.general, "Hello")
            assert "Stopped." not in world.prompt
        async with start(**LIVE) as world:
            world.brain.says(text("word " * 500, "word " * 100, hold=asyncio.Event()), about="Tell")
            writes(world, world.ann, world.general, "Tell me")
            await until(lambda: [below for _, below in seen(world.general)] == [[], [], ["Stop"]])
            press(world, world.ann, world.general.last_message)
            await world.settle()
            assert [below for _, below in seen(world.general)] == [[], [], ["Again", "Go on"]]
        async with start(**LIVE, catch_up_hours=0) as world:
            stop = {"type": 2, "style": 2, "label": "Stop", "custom_id": f"stop:{world.ann.id}:5"}
            rows = [{"type": 1, "components": [stop]}]
            left = writes(world, world.env.bot.user, world.general, BEGUN, components=rows)
            pressed = press(world, world.ann, left)
            await world.settle()
            assert [one.content for one in pressed.followups] == ["That is done already."]
            assert seen(world.general) == [(BEGUN, [])]


class TestAgain:
    async def test_replaces_the_answer_and_leaves_nothing_of_it(self, start: Start) -> None:
        async with start(**LIVE, auto_save="all", response_cache=True) as world:
            world.brain.says("Heads.", "Tails.", "Edge.", about="coin")
            await world.says(world.ann, world.general, "Toss a coin")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            asked, answer = world.general.history()
            assert (answer.content, labels(answer)) == ("Tails.", ["Again"])
            assert answer.reference.message_id == asked.id and "Heads" not in world.prompt
            assert world.files_with("Tails.") and not world.files_with("Heads.")
            found = await world.ann.slash(world.general, "search", query="heads tails")
            assert "Heads." not in str(found.response.components)
            await world.restart()
            stale = as_seen(world, world.general.last_message)
            presses = [press(world, world.ann, stale) for _ in range(3)]
            await world.settle()
            told = [[str(one.content) for one in pressed.followups] for pressed in presses]
            assert sorted(told) == [[], *[["That is done already."]] * 2]
            assert seen(world.general)[1:] == [("Edge.", ["Again"])]
            assert len(world.turns("coin")) == 3 and not world.files_with("Tails.")
            await world.says(world.ann, world.general, "Sure?")
            assert "Edge." in world.prompt and "Tails." not in world.prompt

    async def test_rests_on_what_was_said_before_the_question_also_after_a_restart(
        self, start: Start
    ) -> None:
        async with start(**LIVE, context_history=3, catch_up_hours=0) as world:
            long = "".join(f"{number}. A sentence about sheep.\n" for number in range(150))
            world.brain.says(long, "Three.", about="Count sheep")
            await world.says(world.ann, world.general, "Good morning")
            await world.says(world.ann, world.general, "Count sheep")
            parts = world.general.history()[3:]
            assert [labels(one) for one in parts] == [[]] * (len(parts) - 1) + [["Again"]]
            world.brain.says("Fine.", about="How are you?")
            await world.says(world.ann, world.general, "How are you?")
            await world.restart()
            await world.ann.click(parts[-1], label="Again")
            await world.settle()
            shown = ["Good morning", "ok", "Count sheep", "How are you?", "Fine.", "Three."]
            assert [words for words, _ in seen(world.general)] == shown
            assert "Good morning" in world.prompt
            assert "A sentence" not in world.prompt and "Fine." not in world.prompt
            await world.says(world.ann, world.general, "Thanks")
            assert "Three." in world.prompt and "Fine." in world.prompt  # what was said since is known, too

    async def test_asks_what_the_question_says_now_and_goes_by_who_may_ask_now(self, start: Start) -> None:
        async with start(**LIVE) as world:
            asked = await world.ann.send(world.general, "Toss a coin")
            world.env.backend.get_guild(GUILD_ID).members[world.ann.id].nick = "Annie"
            await world.restart()
            await world.ann.edit(asked, "Roll a die")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert "Roll a die" in world.prompt and "coin" not in world.prompt
            assert "name: Annie" in section(world.prompt, "Sender:")
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            pressed = await world.ann.click(world.general.last_message, label="Again")
            assert pressed.followups[0].content.startswith("You aren't on my allowlist.")
            await world.restart(allow_users=frozenset({str(world.ann.id)}))
            answer = world.general.last_message
            await world.ann.delete(asked)
            pressed = await world.ann.click(answer, label="Again")
            told = "I can't find your question any more: it was deleted."
            assert [one.content for one in pressed.followups] == [told]
            assert seen(world.general) == [("ok", [])] and len(world.turns()) == 2

    async def test_works_below_a_failure_and_after_a_shutdown_and_waits_for_an_interview(
        self, start: Start
    ) -> None:
        async with start(**LIVE, durable_enabled=False, tools_enabled=False, shutdown_grace_s=0.0) as world:
            world.brain.says(cut("Heads or"), endless("Tails, or"), "Edge.", about="coin")
            await world.says(world.ann, world.general, "Toss a coin")
            assert [below for _, below in seen(world.general)] == [[], [], ["Again"]]
            press(world, world.ann, world.general.last_message)
            await streaming(world, world.general)
            await world.restart()
            assert [below for _, below in seen(world.general)] == [[], [], ["Again"]]
            assert world.answer(world.general).startswith("I was stopped before I could finish this.")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert seen(world.general)[1:] == [("Edge.", ["Again"])]
        async with start(**LIVE) as world:
            await world.ann.send_dm("Toss a coin")
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.user.slash("hatch start")
            await world.ann.send_dm("A dry old cat.")
            assert seen(world.ann_dm)[-1][1] == []
            asked = len(world.server.requests)
            pressed = await world.ann.user.click(world.ann_dm.history()[1], label="Again")
            assert "interview" in pressed.followups[0].content
            assert (len(world.server.requests), seen(world.ann_dm)[1]) == (asked, ("ok", ["Again"]))


class TestGoOn:
    async def test_gives_the_rest_which_is_no_message_of_its_person_and_can_be_stopped(
        self, start: Start
    ) -> None:
        async with start(**{**LIVE, "extraction_enabled": True}) as world:
            parts = (BEGUN, "Three sheep.", "Four.")
            reasons = ("max_tokens", "max_tokens", "end_turn")
            for words, about, why in zip(parts, ("Count", "go on", "go on"), reasons, strict=True):
                world.brain.says(text(words, stop_reason=why), about=about)
            await world.says(world.ann, world.general, "Count sheep")
            assert labels(world.general.last_message) == ["Again", "Go on"]
            await world.ann.click(world.general.last_message, label="Go on")
            await world.settle()
            assert [below for _, below in seen(world.general)] == [[], [], ["Go on"]]
            assert BEGUN in world.prompt and section(world.prompt, "User message:") == "go on"
            await world.restart()
            await world.ann.click(world.general.last_message, label="Go on")
            await world.settle()
            assert seen(world.general)[1:] == [(BEGUN + CUT, []), ("Three sheep." + CUT, []), ("Four.", [])]
            assert "Three sheep." in world.prompt
            asked, *answers = world.general.history()
            assert {one.reference.message_id for one in answers} == {asked.id}
            await world.says(world.ann, world.general, "Enough of that")
            assert not any(": go on" in one.prompt for one in world.server.requests)
        async with start(**LIVE) as world:
            world.brain.says(text(BEGUN, stop_reason="max_tokens"), about="Count")
            world.brain.says(endless("Three. Four."), about="go on")
            await world.says(world.ann, world.general, "Count sheep")
            seen_now = as_seen(world, world.general.last_message)
            seen_now["components"][0]["components"].reverse()
            press(world, world.ann, seen_now)
            press(world, world.ann, await streaming(world, world.general))
            await world.settle()
            assert seen(world.general)[-1] == ("Three. Four.", ["Go on"])


async def test_buttons_that_are_off_or_that_discord_refuses_are_left_out_of_the_answer(start: Start) -> None:
    hold = asyncio.Event()
    async with start(**LIVE, answer_buttons=False) as world:
        world.brain.says(text(BEGUN, " Three.", hold=hold, stop_reason="max_tokens"))
        writes(world, world.ann, world.general, "Count sheep")
        await until(lambda: seen(world.general)[-1] == (BEGUN, []))
        hold.set()
        await world.settle()
        assert seen(world.general)[-1] == (BEGUN + " Three." + CUT, [])
    hold = asyncio.Event()
    async with start(**LIVE) as world:
        world.brain.says(text("A first sentence. ", "And a second.", hold=hold))
        why = "Invalid Form Body\nIn components.0: not here"
        world.env.inject_error("POST", "/channels/*/messages", status=400, times=1, code=50035, message=why)
        writes(world, world.ann, world.general, "hello")
        await until(lambda: seen(world.general)[-1] == ("A first sentence. ", []))
        hold.set()
        await world.settle()
        assert seen(world.general)[1:] == [("A first sentence. And a second.", [])]
        assert world.general.last_message.reference is not None
