"""`discoclaw demo` as a newcomer has it: a process, and its page as a browser talks with it."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.process.house import OURS, PATIENCE, START_S, Bot, Brain, is_talk
from tests.process.pages import ADDRESS, Page, said
from tests.servers.messages_api import Behaviour, MessagesServer, Received, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

STARTED = "Stop with Ctrl-C"


class Demo:
    """One run. Its page is opened once for each name: "#general", "direct messages", "#general, as Sam"."""

    def __init__(self, bot: Bot, session: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.bot = bot
        self._session, self._stack = session, stack
        self._pages: dict[str, Page] = {}

    async def at(self, name: str) -> Page:
        where, _, who = name.partition(", as ")
        if name not in self._pages:
            page = Page(self._session, self.bot.stdout, where, who or "you")
            self._pages[name] = await self._stack.enter_async_context(page)
        return self._pages[name]


async def begin(folder: Path, *options: str, **told: str) -> Bot:
    """Start the command in a folder of its own; nobody waits for it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return Bot(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-m", "discoclaw", "demo", *options),
            cwd=folder,
            env=inherited | told,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
    )


@asynccontextmanager
async def running(folder: Path, *options: str, **told: str) -> AsyncIterator[Demo]:
    """A demo that has started; it is stopped as Ctrl-C does it."""
    bot = await begin(folder, *(options or ("--port", "0")), **told)
    try:
        async with asyncio.timeout(START_S):
            while STARTED not in bot.stdout and bot.runs:  # noqa: ASYNC110 - its stdout rings no bell
                await asyncio.sleep(0.02)
        assert bot.runs, bot.stderr
        async with aiohttp.ClientSession() as session, AsyncExitStack() as stack:
            yield Demo(bot, session, stack)
    finally:
        if bot.runs:
            bot.process.send_signal(signal.SIGINT)
        assert await bot.ended() == 0, bot.stderr
    assert "Traceback" not in bot.stderr


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    """One without a key, for the tests that don't stop it."""
    async with running(tmp_path_factory.mktemp("demo")) as started:
        yield started


class TestTheDemo:
    async def test_prints_one_address_and_little_else(self, demo: Demo) -> None:
        assert len(ADDRESS.findall(demo.bot.stdout)) == 1
        assert len(demo.bot.stdout.strip().splitlines()) <= 5

    async def test_shows_that_the_bot_knows_you_in_another_channel_and_not_sam(self, demo: Demo) -> None:
        general, cooking, sam = [await demo.at(name) for name in ("#general", "#cooking", "#cooking, as Sam")]
        await general.say("I prefer tabs over spaces")
        await general.shows("remembered")
        await cooking.say("What do I prefer?")
        await cooking.shows("tabs over spaces")
        before = len(sam.messages)
        await sam.say("What do I prefer?")
        assert "tabs" not in said(await sam.shows("", after=before + 1))

    async def test_shows_what_one_says_to_the_other(self, demo: Demo) -> None:
        await (await demo.at("#general, as Sam")).say("Hello there, you!")
        await (await demo.at("#general")).shows("Hello there, you!", by="Sam")

    async def test_shows_that_a_private_matter_stays_in_direct_messages(self, demo: Demo) -> None:
        private, general = await demo.at("direct messages"), await demo.at("#general")
        await general.say("I prefer tabs over spaces")
        await general.holds("file", "tabs over spaces")
        await private.say("I'm allergic to penicillin")
        await private.holds("file", "penicillin")
        before = len(private.messages)
        await private.say("What am I allergic to?")
        await private.shows("You are allergic to penicillin.", after=before)
        before = len(general.messages)
        await general.say("What am I allergic to?")
        await general.shows("I don't know that.", after=before)

    async def test_shows_that_a_contradiction_is_asked_about(self, demo: Demo) -> None:
        cooking, private = await demo.at("#cooking"), await demo.at("direct messages")
        await cooking.say("!memory remember My favourite dish is lasagne")
        await cooking.shows("My favourite dish is lasagne")
        await cooking.say("My favourite dish is pizza")
        await private.shows("Which is right?")
        await private.press("Use the new")
        await private.holds("file", "favourite dish is pizza")
        before = len(cooking.messages)
        await cooking.say("What is my favourite dish?")
        await cooking.shows("pizza", after=before)

    async def test_shows_what_the_bot_holds_about_each_person_and_nobody_else(self, demo: Demo) -> None:
        you, sam = await demo.at("#general"), await demo.at("#general, as Sam")
        await sam.say("I prefer green tea")
        await sam.holds("file", "green tea")
        await sam.holds("commits", "learned: you prefer green tea")
        await sam.say("What do I prefer?")
        await sam.holds("prompt", "What do I prefer?")
        assert "green tea" not in you.view["held"]["file"]
        assert "What do I prefer?" not in you.view["held"]["prompt"].rpartition("\n")[2]

    async def test_takes_the_last_prompt_back_with_what_it_was_made_from(self, demo: Demo) -> None:
        sam = await demo.at("#general, as Sam")
        await sam.say("I prefer a window seat")
        await sam.holds("file", "window seat")
        await sam.say("Where do I sit?")
        await sam.holds("prompt", "window seat")
        await sam.command("memory forget", {"memory": "window seat"})
        await sam.press("Forget")
        await sam.until(lambda: "window seat" not in sam.view["held"]["prompt"])

    async def test_makes_you_the_owner_and_not_sam(self, demo: Demo) -> None:
        you, sam = await demo.at("#general"), await demo.at("#general, as Sam")
        await sam.command("hatch show")
        await sam.shows("Only my owners can do that")
        await you.command("hatch show")
        await you.shows("I have no personality yet")

    async def test_offers_its_settings_to_admins_and_not_to_sam(self, demo: Demo) -> None:
        for name, offered in [("#general", True), ("#general, as Mo", True), ("#general, as Sam", False)]:
            commands = (await (await demo.at(name)).offered())["commands"]
            assert ("settings" in [one["name"] for one in commands]) is offered

    @pytest.mark.parametrize("place", ["#cooking", "direct messages"])
    async def test_sends_a_file_as_a_message_of_yours(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.say("Look at this", ("notes.txt", b"flour, eggs"))
        message = await page.shows("Look at this", by="you")
        assert await page.file(message) == ("notes.txt", b"flour, eggs")

    async def test_takes_a_typo_for_one(self, demo: Demo) -> None:
        general = await demo.at("#general")
        await general.say("!memory foo")
        await general.shows("`!memory foo`")


class TestAModel:
    """With a model that takes its time. The test says when it goes on."""

    async def test_is_seen_writing_and_heard_while_what_was_said_is_learned(self, tmp_path: Path) -> None:
        brain, written, learned = Brain(), asyncio.Event(), asyncio.Event()
        brain.answer("first", text("It begins", " and it ends.", hold=written))
        asked = asyncio.Event()

        def slow_to_learn(request: Received) -> Behaviour:
            if is_talk(request):
                return brain(request)
            asked.set()
            return text('{"up', 'serts": []}', hold=learned)

        async with MessagesServer(default=slow_to_learn) as model:
            told = {"ANTHROPIC_BASE_URL": model.base_url, "DISCOCLAW_EDIT_INTERVAL_S": "0"}
            async with running(tmp_path, **told) as demo:
                page = await demo.at("#general")
                await page.say("the first")
                assert "ends" not in (await page.shows("It begins"))["content"]
                cooking = await demo.at("#cooking")
                await cooking.say("meanwhile")
                await cooking.shows("ok")
                written.set()
                await page.shows("It begins and it ends.")
                async with asyncio.timeout(PATIENCE):
                    await asked.wait()
                await page.say("the second")
                await page.shows("ok")
                assert not learned.is_set()
                learned.set()


class TestTheNextDemo:
    async def test_knows_you_unless_it_is_fresh(self, tmp_path: Path) -> None:
        async with running(tmp_path) as demo:
            general = await demo.at("#general")
            await general.say("I prefer tabs over spaces")
            await general.holds("file", "tabs over spaces")
        async with running(tmp_path) as demo:
            general = await demo.at("#general")
            assert general.messages == []
            await general.say("What do I prefer?")
            await general.shows("tabs over spaces")
        async with running(tmp_path, "--port", "0", "--fresh") as demo:
            general = await demo.at("#general")
            await general.say("What do I prefer?")
            assert "tabs" not in said(await general.shows(""))
            assert general.view["held"]["file"] == ""
