"""The buttons below an answer: Stop while it is written, then Again, and Go on for the rest."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import discord
import pytest
from simcord import interactions
from simcord.backend import serializers
from simcord.results import InteractionResult

from discoclaw.bot.answers import NOT_ALLOWED, sentence
from discoclaw.bot.below.acts import GO_ON, QUESTION_GONE
from discoclaw.bot.below.controls import view_of
from discoclaw.bot.below.rows import Below
from discoclaw.bot.pressed import NOT_YOURS
from discoclaw.bot.presses import DONE_ALREADY
from discoclaw.core import titles
from discoclaw.core.errors import Refused
from discoclaw.core.model import ModelRequest, StreamEvent
from discoclaw.core.ports import Model
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.session.conversation import CUT_ANSWER, LOOKING
from discoclaw.session.turn import SAID_NOTHING, STOPPED
from tests.app import carding
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.test_archive import thread as thread_in
from tests.servers import messages_api as api
from tests.servers.messages_api import Json, MessagesServer, Received

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
LIVE = {**QUIET, "edit_interval_s": 0.0}  # the simulated clock stands still while a model is awaited
BEGUN = "One sheep. Two sheep."
SEARCH = ("t", "memory_search", {"query": "tea"})


def labels(message: Any) -> list[str]:
    """The buttons of a message."""
    return [one.label for row in message.components for one in row.children]


def said(channel: Any) -> list[tuple[str, list[str]]]:
    """What a channel shows, with the buttons below it."""
    return [(str(one.content), labels(one)) for one in channel.history()]


async def seen(channel: Any, condition: Callable[[list[tuple[str, list[str]]]], bool]) -> None:
    """Wait until the channel shows that."""
    async with asyncio.timeout(10):
        while not condition(said(channel)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def never() -> asyncio.Event:
    """What a model waits for that would go on for ever."""
    return asyncio.Event()


def answer_as_seen(world: World, message: Any) -> Json:
    """A message as it is shown to somebody who is about to press its first button."""
    backend = world.env.backend
    return dict(serializers.message_payload(backend, backend.get_message(message.channel.id, message.id)))


def press(world: World, person: Any, message: Json) -> InteractionResult:
    """Press the first button of a message as it was seen, and wait for nothing, as `click` does."""
    backend, channel_id = world.env.backend, int(message["channel_id"])
    data = {"custom_id": message["components"][0]["components"][0]["custom_id"], "component_type": 2}
    record, payload = interactions.base_payload(
        backend, type=3, channel_id=channel_id, guild_id=GUILD_ID, user_id=person.id, data=data
    )
    record.source_message_id = int(message["id"])
    backend.emit("INTERACTION_CREATE", {**payload, "message": message})
    return InteractionResult(world.env, record)


def on_disk(world: World, words: bytes) -> list[Path]:
    """The files of the bot that contain these words."""
    files = (path for path in (world.folder / "data").rglob("*") if path.is_file())
    return [path for path in files if words in path.read_bytes()]


def message_of(received: Received) -> str:
    """What the model was to answer."""
    return titles.sections(received.prompt).get(titles.MESSAGE, "")


class Slow:
    """A model. While it is `slow`, the simulated Discord doesn't wait for it: people go on meanwhile."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.slow = False
        self.world: World

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        slow = self.slow
        async with aclosing(self._model.stream(request)) as events:
            with suppress(StopAsyncIteration):
                while True:
                    event = anext(events)
                    yield await (self.world.env.external_wait(event, reason="slow") if slow else event)

    async def close(self) -> None:
        """It outlives a restart of the bot."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


Begin = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def begin(start: Start, server: MessagesServer) -> Begin:
    """`async with begin(**settings) as world`, with a model that has more time than anybody here waits."""

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[World]:
        provider = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1)
        slow = Slow(provider.model("haiku", total_timeout_s=600))
        try:
            async with start(slow, **{**LIVE, **settings}) as world:
                slow.world = world
                world.env.settle_timeout = 7.0  # it waits for timers that end within that: typing's take 8 s
                yield world
        finally:
            await provider.close()

    return opened


async def streaming(world: World, act: Awaitable[Any], channel: Any) -> Any:
    """The message that shows an answer while it is written; `act` makes the bot answer."""
    world.model.slow = True
    await act
    await seen(channel, lambda shown: "Stop" in shown[-1][1])
    world.model.slow = False
    return channel.last_message


class TestStop:
    async def test_lets_the_next_be_answered_while_the_model_would_go_on(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()), api.text("Good night."))
        async with begin() as world:
            answer = await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            await world.bob.send(world.general, "Good night")
            assert said(world.general)[1:] == [(BEGUN, ["Stop"]), ("Good night", [])]
            await world.ann.click(answer, label="Stop")
            await asyncio.wait_for(server.left.wait(), 5)
            await seen(world.general, lambda shown: len(shown) == 4)
            await world.settle()
            assert said(world.general) == [
                ("Count sheep", []),
                (BEGUN, ["Again", "Go on"]),
                ("Good night", []),
                ("Good night.", ["Again"]),
            ]
            assert BEGUN in server.requests[-1].prompt and "Three" not in server.requests[-1].prompt

    async def test_is_for_who_asked_and_a_second_press_does_nothing(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()))
        async with begin() as world:
            answer = await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            refused = await world.bob.click(answer, label="Stop")
            assert refused.response.content == NOT_YOURS and refused.response.ephemeral
            assert labels(world.general.last_message) == ["Stop"]
            stale = answer_as_seen(world, answer)
            await world.ann.click(answer, label="Stop")
            late = press(world, world.ann, stale)
            await world.settle()
            assert late.followups == []
            assert said(world.general)[1:] == [(BEGUN, ["Again", "Go on"])]

    async def test_before_the_first_word_leaves_a_note_that_is_no_talk(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(
            api.tool_use(SEARCH, thought="Tea?"),
            api.tool_use(said="You like tea.", thought="Hm.", hold=never()),
            api.text("Tea."),
        )
        async with begin() as world:
            answer = await streaming(world, world.ann.send(world.general, "What do I like?"), world.general)
            assert answer.content == LOOKING
            await world.ann.click(answer, label="Stop")
            assert said(world.general)[1:] == [(SAID_NOTHING, ["Again"])]
            await world.restart()
            await world.ann.send(world.general, "Hello")
            assert "Stopped." not in server.requests[-1].prompt

    async def test_is_gone_from_the_messages_above_the_last(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text("word " * 500, "word " * 100, hold=never()))
        async with begin() as world:
            await streaming(world, world.ann.send(world.general, "Tell me"), world.general)
            await seen(world.general, lambda shown: len(shown) == 3)
            assert [below for _, below in said(world.general)] == [[], [], ["Stop"]]
            await world.ann.click(world.general.last_message, label="Stop")
            assert [below for _, below in said(world.general)] == [[], [], ["Again", "Go on"]]

    async def test_of_an_answer_that_a_crash_has_left_says_so_and_goes(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        async with begin(catch_up_hours=0) as world:
            world.env.backend.create_message(
                world.general.id,
                world.app.client.user.id,
                BEGUN,
                components=view_of(Below(str(world.ann.id), "5", "5").live()).to_components(),
            )
            pressed = press(world, world.ann, answer_as_seen(world, world.general.last_message))
            await world.settle()
            assert [one.content for one in pressed.followups] == [sentence(Refused(DONE_ALREADY))]
            assert said(world.general) == [(BEGUN, [])]


class TestAgain:
    async def test_replaces_the_answer_and_leaves_nothing_of_it(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text("Heads."), api.text("Tails."), api.text("Yes."))
        async with begin(auto_save="all") as world:
            await world.ann.send(world.general, "Toss a coin")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            first, second = server.requests
            assert message_of(second) == message_of(first) and "Heads" not in second.prompt
            assert said(world.general) == [("Toss a coin", []), ("Tails.", ["Again"])]
            assert world.general.last_message.reference.message_id == world.general.history()[0].id
            await world.ann.send(world.general, "Sure?")
            assert "Tails." in server.requests[-1].prompt and "Heads" not in server.requests[-1].prompt
            found = await world.ann.slash(world.general, "search", query="heads tails")
            shown = carding.said(found.response)
            assert "Tails." in shown and "Heads." not in shown

    async def test_rests_on_what_was_said_before_the_question(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(*(api.text(f"Answer {number}.") for number in range(1, 5)))
        async with begin() as world:
            for number in range(1, 4):
                await world.ann.send(world.general, f"Question {number}")
            await world.ann.click(world.general.history()[3], label="Again")
            await world.settle()
            prompt = server.requests[-1].prompt
            assert "Answer 1." in prompt and "Answer 2." not in prompt
            assert "Question 3" not in prompt and "Answer 3." not in prompt
            await world.ann.send(world.general, "Next")
            prompt = server.requests[-1].prompt
            assert "Answer 2." not in prompt and "Answer 3." in prompt and "Answer 4." in prompt

    @pytest.mark.parametrize("capacity", [20, 3])
    async def test_works_after_a_restart_for_all_messages_of_an_answer(
        self, begin: Begin, server: MessagesServer, capacity: int
    ) -> None:
        long = "".join(f"{number}. A sentence about sheep.\n" for number in range(150))
        server.script(
            api.text("Hello."), api.text(long), api.text("Fine."), api.text("Three."), api.text("Four.")
        )
        async with begin(context_history=capacity, catch_up_hours=0) as world:
            await world.ann.send(world.general, "Good morning")
            await world.ann.send(world.general, "Count sheep")
            parts = world.general.history()[3:]
            assert len(parts) >= 3 and [labels(one) for one in parts[:-1]] == [[]] * (len(parts) - 1)
            await world.ann.send(world.general, "How are you?")
            await world.restart()
            await world.ann.click(parts[-1], label="Again")
            await world.settle()
            assert [text for text, _ in said(world.general)] == [
                "Good morning",
                "Hello.",
                "Count sheep",
                "How are you?",
                "Fine.",
                "Three.",
            ]
            prompt = server.requests[-1].prompt
            assert "Good morning" in prompt and "A sentence" not in prompt and "Fine." not in prompt
            await world.ann.send(world.general, "Thanks")
            prompt = server.requests[-1].prompt
            assert "Three." in prompt and "A sentence" not in prompt
            assert "Fine." in prompt  # what was said since is known, too

    async def test_asks_what_the_question_says_now_under_its_present_name(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        async with begin() as world:
            asked = await world.ann.send(world.general, "Toss a coin")
            world.env.backend.get_guild(GUILD_ID).members[world.ann.id].nick = "Annie"
            await world.restart()
            await world.ann.edit(asked, "Roll a die")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            prompt = server.requests[-1].prompt
            assert "Roll a die" in prompt and "coin" not in prompt and "name: Annie" in prompt

    async def test_of_a_deleted_question_is_refused_with_a_sentence(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        async with begin() as world:
            asked = await world.ann.send(world.general, "Toss a coin")
            await world.ann.delete(asked)
            pressed = await world.ann.click(world.general.last_message, label="Again")
            assert [one.content for one in pressed.followups] == [sentence(Refused(QUESTION_GONE))]
            assert said(world.general) == [("ok", [])] and len(server.requests) == 1

    async def test_pressed_twice_is_done_once(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text("Heads."), api.text("Tails."), api.text("Edge."))
        async with begin() as world:
            await world.ann.send(world.general, "Toss a coin")
            answer = answer_as_seen(world, world.general.last_message)
            presses = [press(world, world.ann, answer) for _ in range(3)]
            await world.settle()
            told = [[str(one.content) for one in pressed.followups] for pressed in presses]
            assert sorted(told) == [[], *[[sentence(Refused(DONE_ALREADY))]] * 2]
            assert len(server.requests) == 2
            assert said(world.general)[1:] == [("Tails.", ["Again"])]

    async def test_goes_by_who_may_talk_now(self, begin: Begin, server: MessagesServer) -> None:
        async with begin() as world:
            await world.ann.send(world.general, "Toss a coin")
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            pressed = await world.ann.click(world.general.last_message, label="Again")
            assert [one.content for one in pressed.followups] == [NOT_ALLOWED]
            assert len(server.requests) == 1

    async def test_is_not_taken_from_the_cache(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text("Heads."), api.text("Tails."))
        async with begin(response_cache=True) as world:
            await world.ann.send_dm("Toss a coin")
            await world.settle()
            await world.ann.user.click(world.ann_dm.last_message, label="Again")
            await world.settle()
            assert said(world.ann_dm)[1:] == [("Tails.", ["Again"])]

    async def test_after_a_restart_leaves_nothing_of_the_answer_on_disk(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text("Heads."), api.text("Tails."))
        async with begin(response_cache=True, auto_save="all") as world:
            await world.ann.send(world.general, "Toss a coin")
            await world.settle()
            assert on_disk(world, b"Heads.")
            await world.restart()
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert not on_disk(world, b"Heads.") and on_disk(world, b"Tails.")

    async def test_works_in_a_thread(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text("Heads."), api.text("Tails."))
        async with begin() as world:
            thread = await thread_in(world, world.general, discord.ChannelType.public_thread)
            await world.ann.send(thread, "Toss a coin")
            await world.ann.click(thread.last_message, label="Again")
            await world.settle()
            assert said(thread)[1:] == [("Tails.", ["Again"])]

    async def test_stays_in_the_thread_that_grew_out_of_the_question(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        cut = [api.text(f"{side} is", stop_reason="max_tokens") for side in ("Heads", "Tails")]
        answers = iter([*cut, api.text("the winner.")])
        title = api.json_answer({"title": "Coins"})
        server.default = lambda asked: title if "You name threads" in asked.system else next(answers)
        async with begin(threads=True) as world:
            await world.ann.send(world.general, "Toss a coin")
            await world.settle()
            (thread,) = world.general.threads
            await world.ann.click(thread.last_message, label="Again")
            await world.settle()
            assert said(thread)[-1] == ("Tails is" + CUT_ANSWER, ["Again", "Go on"])
            await world.ann.click(thread.last_message, label="Go on")
            await world.settle()
            assert said(thread)[-2:] == [("Tails is" + CUT_ANSWER, []), ("the winner.", [])]
            assert "Heads" not in str(said(thread)) and len(world.general.threads) == 1
            assert all(one.author.id == world.ann.id or one.is_system() for one in world.general.history())
            going_on = next(one.prompt for one in server.requests if message_of(one).endswith(GO_ON))
            assert "Tails is" in going_on and "Heads" not in going_on

    async def test_works_below_the_reason_why_there_is_no_answer(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.cut("Heads or"), api.text("Tails."))
        async with begin() as world:
            await world.ann.send(world.general, "Toss a coin")
            assert [below for _, below in said(world.general)] == [[], [], ["Again"]]
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert said(world.general)[1:] == [("Tails.", ["Again"])]

    async def test_finishes_what_a_shutdown_has_cut_short(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text(BEGUN, " Three.", hold=never()), api.text("A thousand sheep."))
        async with begin(shutdown_grace_s=0.0) as world:
            await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            await world.restart()
            assert said(world.general)[1:] == [(BEGUN, []), (STOPPED, ["Again"])]
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert said(world.general)[1:] == [("A thousand sheep.", ["Again"])]

    async def test_waits_for_an_interview_which_has_no_buttons(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        async with begin() as world:
            await world.ann.send_dm("Toss a coin")
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.user.slash("hatch start")
            await world.ann.send_dm("A dry old cat.")
            assert said(world.ann_dm)[-1] == ("ok", [])
            asked = len(server.requests)
            pressed = await world.ann.user.click(world.ann_dm.history()[1], label="Again")
            assert "interview" in pressed.followups[0].content
            assert len(server.requests) == asked
            assert said(world.ann_dm)[1] == ("ok", ["Again"])

    async def test_needs_no_memory(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text("Heads."), api.text("Tails."))
        async with begin(durable_enabled=False, tools_enabled=False) as world:
            await world.ann.send(world.general, "Toss a coin")
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert said(world.general)[1:] == [("Tails.", ["Again"])]


class TestGoOn:
    async def test_gives_the_rest_of_an_answer_that_was_cut_off(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(
            api.text(BEGUN, stop_reason="max_tokens"),
            api.text("Three sheep.", stop_reason="max_tokens"),
            api.text("Four."),
        )
        async with begin() as world:
            await world.ann.send(world.general, "Count sheep")
            assert labels(world.general.last_message) == ["Again", "Go on"]
            await world.ann.click(world.general.last_message, label="Go on")
            await world.settle()
            assert [below for _, below in said(world.general)] == [[], [], ["Go on"]]
            prompt = server.requests[-1].prompt
            assert BEGUN in prompt and prompt.rstrip().endswith(GO_ON)
            await world.restart()
            await world.ann.click(world.general.last_message, label="Go on")
            await world.settle()
            assert said(world.general)[1:] == [
                (BEGUN + CUT_ANSWER, []),
                ("Three sheep." + CUT_ANSWER, []),
                ("Four.", []),
            ]
            assert "Three sheep." in server.requests[-1].prompt
            asked, *answers = world.general.history()
            assert {one.reference.message_id for one in answers} == {asked.id}

    async def test_is_no_message_of_its_person(self, begin: Begin, server: MessagesServer) -> None:
        server.default = lambda received: (
            api.json_answer({"upserts": [], "deprecations": []})
            if "Conversation" not in received.system and "tools" not in received.body
            else api.text(BEGUN, stop_reason="max_tokens")
        )
        async with begin(extraction_enabled=True) as world:
            await world.ann.send(world.general, "Count sheep")
            await world.settle()
            await world.ann.click(world.general.last_message, label="Go on")
            await world.ann.send(world.general, "Enough of that")
            await world.settle()
            later = [one for one in server.requests if "Enough of that" in one.prompt]
            assert len(later) >= 2 and not any(f": {GO_ON}" in one.prompt for one in later)

    async def test_can_be_stopped(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text(BEGUN, stop_reason="max_tokens"), api.text("Three. Four.", "5", hold=never()))
        async with begin() as world:
            await world.ann.send(world.general, "Count sheep")
            pressed = world.ann.click(world.general.last_message, label="Go on")
            answer = await streaming(world, pressed, world.general)
            await world.ann.click(answer, label="Stop")
            assert said(world.general)[-1] == ("Three. Four.", ["Go on"])


async def test_the_setting_turns_all_of_them_off(begin: Begin, server: MessagesServer) -> None:
    hold = asyncio.Event()
    server.script(api.text(BEGUN, " Three.", hold=hold, stop_reason="max_tokens"))
    async with begin(answer_buttons=False) as world:
        world.model.slow = True
        await world.ann.send(world.general, "Count sheep")
        await seen(world.general, lambda shown: shown[-1][0] == BEGUN)
        assert said(world.general)[-1] == (BEGUN, [])
        hold.set()
        await seen(world.general, lambda shown: "Three" in shown[-1][0])
        await world.settle()
        assert said(world.general)[-1] == (BEGUN + " Three." + CUT_ANSWER, [])
