"""What was taken back never returns through the bot's own answers, whatever Discord still says about them."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import discord
import pytest

from discoclaw.bot.threads import DELETED, FORGOTTEN
from discoclaw.core.autosave import AutoSave
from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, TextDelta
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_answer_buttons import BEGUN, SEARCH, Begin, never, on_disk, seen, streaming
from tests.app.of_answer_buttons import begin as begin
from tests.app.of_answer_buttons import said as shown_in
from tests.app.of_threads import thread_of
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
KEPT: dict[str, Any] = {"auto_save": AutoSave(everywhere=True), "response_cache": True}
LONG = "Well. " + "many words and " * 125 + "\n\nSo that is why I like your zebra. " + "more words " * 60


def question(channel: Any, text: str) -> discord.Message:
    return next(one for one in channel.history() if one.content == text)


def gone(world: World, channel: Any, text: str) -> None:
    """Somebody deletes a message; nothing is waited for."""
    world.env.backend.delete_message(channel.id, question(channel, text).id)


def logs(folder: Path) -> str:
    """What is noted about answers, as it is on disk."""
    return "".join(path.read_text() for path in sorted((folder / "data/memory/answers").glob("*.jsonl")))


class TestAQuestionDeletedWhileItIsAnswered:
    async def test_ends_the_answer_and_takes_along_what_was_shown_of_it(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()), api.text("Good night."))
        async with begin(**KEPT) as world:
            await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            gone(world, world.general, "Count sheep")
            await asyncio.wait_for(server.left.wait(), 5)
            await seen(world.general, lambda shown: not shown)
            await world.bob.send(world.general, "Good night")
            assert [text for text, _ in shown_in(world.general)] == ["Good night", "Good night."]
            assert "heep" not in server.requests[-1].prompt
            await world.settle()
            assert on_disk(world, b"heep") == []

    async def test_takes_along_all_messages_of_a_long_answer(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text("word " * 500, "word " * 100, hold=never()))
        async with begin() as world:
            await streaming(world, world.ann.send(world.general, "Tell me"), world.general)
            await seen(world.general, lambda shown: len(shown) == 3)
            gone(world, world.general, "Tell me")
            await seen(world.general, lambda shown: not shown)
            await world.settle()
            assert shown_in(world.general) == []

    async def test_ends_it_also_while_tools_are_used(self, begin: Begin, server: MessagesServer) -> None:
        server.script(
            api.tool_use(SEARCH, thought="Tea?"),
            api.tool_use(said="You like tea.", thought="Hm.", hold=never()),
        )
        async with begin() as world:
            await streaming(world, world.ann.send(world.general, "What do I like?"), world.general)
            gone(world, world.general, "What do I like?")
            await seen(world.general, lambda shown: not shown)
            await world.settle()
            assert shown_in(world.general) == []

    async def test_is_never_answered_if_it_was_waiting_for_its_turn(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()), api.text("Good night."))
        async with begin() as world:
            answer = await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            await world.bob.send(world.general, "And my zebras?")
            gone(world, world.general, "And my zebras?")
            await world.ann.click(answer, label="Stop")
            await world.bob.send(world.general, "Good night")
            assert [text for text, _ in shown_in(world.general)][2:] == ["Good night", "Good night."]
            assert len(server.requests) == 2 and "zebra" not in server.requests[-1].prompt

    async def test_keeps_the_answer_away_that_is_complete_and_not_yet_sent(self, start: Start) -> None:
        model = Late("Your zebra is fine.")
        async with start(model, **QUIET, edit_interval_s=30) as world:
            model.meanwhile = lambda: deleted_and_heard(world, "How is my zebra?")
            await world.ann.send(world.general, "How is my zebra?")
            await world.ann.send(world.general, "And the wind?")
            assert world.shown(world.general) == ["And the wind?", "ok"]
            assert "zebra" not in model.prompt

    async def test_takes_along_the_answer_in_its_thread_and_the_name_of_that(
        self, begin: Begin, server: MessagesServer
    ) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()))
        async with begin(threads=True) as world:
            world.model.slow = True
            await world.ann.send(world.general, "Count sheep")
            thread = await opened(world)
            gone(world, world.general, "Count sheep")
            await seen(thread, lambda shown: not [one for one, _ in shown if one])
            await world.settle()
            assert thread_of(world, world.general).name == DELETED


async def opened(world: World) -> Any:
    """The thread below the question, once it shows something."""
    async with asyncio.timeout(10):
        while not world.general.threads or not world.answer(world.general.threads[0]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return thread_of(world, world.general)


class Late(Scripted):
    """Something happens `meanwhile`, once, behind the end of its answer."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        async for event in super().stream(request):
            yield event
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()


class Interrupted(Scripted):
    """Somebody else says something in the middle of its first answer, which is `LONG`."""

    world: World

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if self.requests:
            async for event in super().stream(request):
                yield event
            return
        self.requests.append(request)
        yield TextDelta(LONG[:1_500])
        async with asyncio.timeout(10):
            while not (shown := self.world.general.history()) or not shown[-1].author.bot:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        self.world.env.backend.create_message(self.world.general.id, self.world.bob.id, "what a long answer")
        yield TextDelta(LONG[1_500:])
        yield Finished(AssistantTurn(LONG), "end")


async def deleted_and_heard(world: World, text: str) -> None:
    heard = asyncio.create_task(world.app.client.wait_for("raw_message_delete"))
    await asyncio.sleep(0)
    gone(world, world.general, text)
    await heard
    await asyncio.sleep(0)


class TestAnEditMeanwhile:
    async def test_while_it_waits_is_answered_as_edited(self, begin: Begin, server: MessagesServer) -> None:
        server.script(api.text(BEGUN, " Three sheep.", hold=never()), api.text("Fine."))
        async with begin() as world:
            answer = await streaming(world, world.ann.send(world.general, "Count sheep"), world.general)
            await world.bob.send(world.general, "And my zebras?")
            asked = question(world.general, "And my zebras?")
            world.env.backend.edit_message(world.general.id, asked.id, {"content": "And my otters?"})
            await world.env.settle()
            await world.ann.click(answer, label="Stop")
            await world.settle()
            assert "otters" in server.requests[-1].prompt and "zebra" not in server.requests[-1].prompt

    async def test_of_what_is_answered_leaves_the_answer_out_of_the_talk_if_it_has_the_old_words(
        self, start: Start
    ) -> None:
        model = Late("Your zebra is fine.", "It blows.")
        async with start(model, **QUIET) as world:

            async def edited() -> None:
                heard = asyncio.create_task(world.app.client.wait_for("raw_message_edit"))
                await asyncio.sleep(0)
                asked = question(world.general, "How is my zebra?")
                world.env.backend.edit_message(world.general.id, asked.id, {"content": "How is my otter?"})
                await heard
                await asyncio.sleep(0)
                await world.app.client.retractions.settle()

            model.meanwhile = edited
            await world.ann.send(world.general, "How is my zebra?")
            assert world.answer(world.general) == "Your zebra is fine."
            await world.ann.send(world.general, "And the wind?")
            assert "otter" in model.prompt and "zebra" not in model.prompt


class TestAfterARestart:
    """The words are in an answer of the bot, and nobody but `answers/` knows whom that was for."""

    async def forgets(self, world: World, place: Any) -> None:
        await world.ann.send(place, "!memory remember I keep a zebra")
        await world.settle()
        await world.ann.send(place, "!memory forget I keep a zebra")
        await world.settle()

    @pytest.mark.every_store
    async def test_a_second_message_below_other_peoples_words_is_known_to_be_hers(
        self, start: Start, store: str
    ) -> None:
        model = Interrupted()
        async with start(model, **QUIET, store=store, edit_interval_s=0.0) as world:
            model.world = world
            await world.ann.send(world.general, "I keep a zebra")
            shown = world.shown(world.general)
            assert shown[2] == "what a long answer" and "zebra" in shown[3]
            await self.forgets(world, world.dev)
            for restart in (False, True):
                if restart:
                    await world.restart()
                await world.bob.send(world.general, "And the wind?")
                assert "more words" not in model.prompt and "what a long" in model.prompt

    async def test_the_first_answer_in_a_thread_is_known_to_be_hers(self, start: Start) -> None:
        model = Scripted("Your zebra is nice.")
        async with start(model, **QUIET, threads=True) as world:
            await world.ann.send(world.general, "I keep a zebra")
            await self.forgets(world, world.dev)
            await world.restart()
            await world.bob.send(thread_of(world, world.general), "And the wind?")
            assert "Your zebra" not in model.prompt and "And the wind?" in model.prompt

    @pytest.mark.parametrize("off", [False, True])
    async def test_an_answer_to_a_deleted_question_is_never_used_whatever_it_says(
        self, start: Start, *, off: bool
    ) -> None:
        model = Scripted("A striped animal!")
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "I keep a zebra")
            if off:
                await world.restart(meanwhile=lambda: gone(world, world.general, "I keep a zebra"))
            else:
                gone(world, world.general, "I keep a zebra")
                await world.settle()
                await world.bob.send(world.general, "And the clouds?")
                assert "striped" not in model.prompt
                await world.restart()
            answer = question(world.general, "A striped animal!")
            await world.bob.send(world.general, "And the wind?")
            assert "striped" not in model.prompt
            await world.bob.send(world.general, "What does that mean?", reply_to=answer)
            assert "striped" not in model.prompt and "What does that mean?" in model.prompt

    @pytest.mark.every_store
    async def test_what_was_said_to_the_erased_is_not_used_and_names_nobody(
        self, start: Start, store: str
    ) -> None:
        model = Interrupted()
        async with start(model, **QUIET, store=store, edit_interval_s=0.0) as world:
            model.world = world
            await world.ann.send(world.general, "I keep a zebra")
            await world.bob.send(world.general, "Hello")
            if store == "files":
                assert f'"{world.ann.id}"' in logs(world.folder)
            await world.ann.send(world.general, "!memory erase --yes")
            await world.restart()
            await world.bob.send(world.general, "And the wind?")
            assert "many words" not in model.prompt and "more words" not in model.prompt
            assert "what a long" in model.prompt
            if store == "files":
                await world.settle()
                assert str(world.ann.id) not in logs(world.folder)
                assert f'"{world.bob.id}"' in logs(world.folder)

    async def test_what_was_said_to_her_who_opted_out_stays_unused_once_she_is_back(
        self, start: Start
    ) -> None:
        model = Scripted("A striped animal!")
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "I keep a zebra")
            await world.ann.send(world.general, "!memory optout")
            await world.settle()
            assert f'"{world.ann.id}"' not in logs(world.folder)
            await world.ann.send(world.general, "!memory optin")
            await world.restart()
            await world.bob.send(world.general, "And the wind?")
            assert "striped" not in model.prompt

    async def test_what_was_noted_is_small_and_has_no_words(self, start: Start) -> None:
        async with start(Scripted("A striped animal!"), **QUIET) as world:
            await world.ann.send(world.general, "I keep a zebra")
            await world.settle()
            (line,) = logs(world.folder).splitlines()
            assert re.fullmatch(r'\{"id":"\d+","to":"\d+","of":\["\d+"\]\}', line)


class TestTheNameOfAThread:
    async def opened(self, world: World) -> Any:
        await world.ann.send(world.general, "I keep a zebra")
        await world.settle()
        thread = thread_of(world, world.general)
        assert "zebra" in thread.name
        return thread

    async def test_no_longer_tells_what_its_person_forgot(self, start: Start) -> None:
        async with start(Scripted("Nice."), summary_every=1, threads=True) as world:
            await self.opened(world)
            await world.ann.send(world.dev, "!memory remember I keep a zebra")
            await world.ann.send(world.dev, "!memory forget I keep a zebra")
            await world.settle()
            assert thread_of(world, world.general).name == FORGOTTEN

    async def test_stays_if_somebody_else_forgot_the_same(self, start: Start) -> None:
        async with start(Scripted("Nice."), summary_every=1, threads=True) as world:
            thread = await self.opened(world)
            await world.bob.send(thread, "me too")
            await world.bob.send(world.dev, "!memory remember I keep a zebra")
            await world.bob.send(world.dev, "!memory forget I keep a zebra")
            await world.settle()
            assert "zebra" in thread_of(world, world.general).name

    async def test_no_longer_tells_what_the_erased_asked(self, start: Start) -> None:
        async with start(Scripted("Nice."), summary_every=1, threads=True) as world:
            await self.opened(world)
            await world.ann.send(world.dev, "!memory erase --yes")
            await world.settle()
            assert thread_of(world, world.general).name == FORGOTTEN
