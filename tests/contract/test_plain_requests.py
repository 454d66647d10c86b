"""People ask in their own words for help and for what commands do: no model is asked, and buttons do it."""

from typing import Any

import pytest

from tests.contract.cards import buttons, labels, said
from tests.contract.commands import typed
from tests.contract.world import Start, World
from tests.servers.messages_api import failure

CAT, NUTS = "User's cat is called Ada.", "User is allergic to nuts."
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}

WHAT_I_AM = "I'm a bot you can talk to"
SHOWS = "This button shows what I remember about you."
ERASES = "I can delete everything I know about you"
STOPS = "Should I stop remembering you?"
STARTS = "Should I remember you again"
FORGETS = "Forget “Your cat is called Ada.”?"

ANSWERED = {
    WHAT_I_AM: ("what can you do?", "!help", "/help"),
    SHOWS: ("what do you remember about me?", "Was weißt du über mich?"),
    ERASES: ("how do I delete everything you know about me?",),
    STOPS: ("stop remembering me", "Please stop remembering things about me!"),
    STARTS: ("remember me again",),
    FORGETS: ("forget my cat", "olvida mi cat"),
    "Did you mean `!memory show`?": ("!memroy show", "/memory show", "/memory shwo", "!show", "!memory shwo"),
    "Did you mean `!memory forget my cat`?": (
        "!memroy forget my cat",
        "/memory forgt my cat",
        "/forget my cat",
    ),
    "Did you mean `!memory data optout`?": ("/memory data optout",),
    "Did you mean `!memory help`?": ("/memory help", "!memroy help"),
}
"""Some of the sentences of `bot/test_requests`, and how they are answered."""
TALK = (
    "how does it work?",
    "!important",
    "/shrug",
    "!play jazz",
    "> forget my cat",
    "forget my cat and tell me a joke",
)


class TestARequest:
    @pytest.mark.parametrize("mode", ["mention", "all"])
    async def test_is_answered_before_any_model_is_asked(self, start: Start, mode: str) -> None:
        async with start(respond_mode=mode, **QUIET) as world:
            await world.remember(world.ann, CAT, NUTS)
            before = f"{world.mention} " if mode == "mention" else ""
            for answer, sentences in ANSWERED.items():
                for sentence in sentences[: 1 if mode == "mention" else None]:
                    await world.ann.send(world.general, before + sentence)
                    assert answer in world.answer(world.general), sentence
            assert world.server.requests == []
            if mode == "mention":
                for sentence in ("help", "stop remembering me", "!show", "forget my cat"):
                    await world.ann.send(world.general, sentence)
                    assert world.answer(world.general) == sentence  # nobody asked the bot
                await world.restart()
                await world.says(world.ann, world.general, f"{world.mention} good morning")
                assert "opt out" not in world.prompt and STOPS not in world.prompt

    async def test_in_a_direct_message_is_shown_and_asked_right_there(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await typed(world, f"remember {CAT}", privately=True)
            answers = {"Ada": SHOWS, "**Erase everything I remember about you?**": ERASES}
            world.brain.usual = failure(529, "overloaded_error", "down")
            for answer, kind in [*answers.items(), (WHAT_I_AM, WHAT_I_AM), (STOPS, STOPS)]:
                for sentence in ANSWERED[kind][:2]:
                    await world.ann.send_dm(sentence)
                    assert answer in world.answer(world.ann_dm), sentence
            assert world.server.requests == []
            await world.restart(durable_enabled=False)
            await world.ann.send_dm("what can you do?")
            assert "My memory is switched off" in world.answer(world.ann_dm)
            assert labels(world.ann_dm.last_message) == ["All commands"]

    async def test_is_nothing_that_only_looks_like_one(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.usual = "Fine."
            await typed(world, f"remember {CAT}", privately=True)
            for count, sentence in enumerate(TALK, 1):
                await world.ann.send_dm(sentence)
                assert world.answer(world.ann_dm) == "Fine.", sentence
                assert len(world.turns()) == count
            assert world.memories(world.ann) == [CAT]
            other = await world.bob.send(world.dev, "I am new here")
            await world.ann.send(world.dev, f"{world.mention} who are you?", reply_to=other)
            assert world.answer(world.dev) == "Fine."
            await world.ann.send(world.dev, "help", attachments=[("help.txt", b"some text")])
            assert world.answer(world.dev) == "Fine."
            await world.restart(owners=frozenset({str(world.ann.id)}))
            world.brain.usual = "And what do you build?"
            await world.ann.send_dm("!hatch start")
            await world.ann.send_dm("who are you?")  # which belongs to the interview
            assert world.answer(world.ann_dm) == "And what do you build?"


class TestAButton:
    async def press(self, world: World, label: str, message: Any = None) -> Any:
        """What a press in #general shows to its person alone."""
        before = len(world.general.history())
        pressed = await world.ann.click(message or world.general.last_message, label=label)
        assert len(world.general.history()) == before and pressed.ephemeral
        return pressed.response

    async def test_shows_what_is_remembered_to_its_person_alone_after_a_restart_too(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await typed(world, f"remember {NUTS}", privately=True)
            await world.ann.send(world.general, "what do you know about me?")
            asked = world.general.last_message
            assert "nuts" not in said(asked)
            await world.restart()
            shown = await self.press(world, "What you remember", asked)
            assert "\nYou are allergic to nuts.\n" in said(shown)
            refused = await world.bob.click(asked, label="What you remember")
            assert refused.response.content == "These buttons are for somebody else."
            await world.ann.send(world.general, "help")
            everything = await self.press(world, "All commands")
            assert "`!memory forget <words or id>`" in said(everything)

    async def test_erases_and_stops_the_remembering_after_one_more_press(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            world.brain.learns("User likes tea.", about="I like tea")
            await world.ann.send(world.general, "help")
            question = await self.press(world, "Stop remembering me…")
            assert STOPS in said(question)
            await world.ann.click(question, label="Stop remembering me")
            await world.says(world.ann, world.general, "I like tea")
            assert world.memories(world.ann) == []
            await world.ann.send(world.general, "help")
            question = await self.press(world, "Stop remembering me…")
            await world.ann.click(question, label="Remember me again")
            await world.env.advance_time(1)  # what was said before stays unread
            await world.says(world.ann, world.general, "I like tea")
            assert world.memories(world.ann) == ["User likes tea."]
            await world.ann.send(world.general, "how do I delete everything you know about me?")
            question = await self.press(world, "Delete everything…")
            assert world.memories(world.ann) == ["User likes tea."]
            await world.ann.click(question, label="Erase everything")
            assert world.files_with("likes tea") == []

    async def test_gives_the_command_that_was_mistyped_with_its_words(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, CAT, NUTS)
            await world.ann.send(world.general, "!memroy forgt my cat")
            shown = await self.press(world, "!memory forget my cat")
            assert said(shown) == FORGETS
            await world.ann.click(shown, label="Forget")
            assert world.memories(world.ann) == [NUTS]
            long = await typed(world, f"rember {'I like tea, ' * 9}")
            assert long.endswith("Did you mean `!memory remember`?")
            assert [label for label, _ in buttons(world.general.last_message)] == ["All commands"]
