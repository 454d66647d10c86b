"""`discoclaw demo` as a newcomer has it: a process, and its pages as a browser talks with them."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.process.house import OURS, PATIENCE, START_S, Bot, Brain, is_talk
from tests.process.pages import ADDRESS, Page
from tests.servers.messages_api import Behaviour, MessagesServer, Received, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

STARTED = "Stop with Ctrl-C"
NOBODY_KNOWN = "I don't remember anything about you yet"


class Demo:
    """One run, with each of its pages open."""

    def __init__(self, bot: Bot, session: aiohttp.ClientSession) -> None:
        self.bot = bot
        self._pages = {name: Page(session, address) for name, address in ADDRESS.findall(bot.stdout)}

    async def open(self) -> "Demo":
        for page in self._pages.values():
            await page.open()
        return self

    def __getitem__(self, name: str) -> Page:
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
        async with aiohttp.ClientSession() as session:
            yield await Demo(bot, session).open()
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
    async def test_names_its_pages(self, demo: Demo) -> None:
        names = [name for name, _ in ADDRESS.findall(demo.bot.stdout)]
        assert names == ["#general", "#cooking", "direct messages", "#general, as Sam"]

    async def test_shows_that_the_bot_knows_you_in_another_channel_and_not_sam(self, demo: Demo) -> None:
        await demo["#general"].say("I prefer tabs over spaces")
        await demo["#general"].shows("remembered: You prefer tabs over spaces.")
        await demo["#cooking"].say("What do I prefer?")
        await demo["#cooking"].shows("You prefer tabs over spaces.")
        await demo["#general, as Sam"].say("What do I prefer?")
        await demo["#general, as Sam"].shows(NOBODY_KNOWN)

    async def test_shows_what_one_says_to_the_other(self, demo: Demo) -> None:
        await demo["#general, as Sam"].say("Hello there, you!")
        await demo["#general"].shows("Hello there, you!", by="Sam")

    async def test_shows_that_a_private_matter_stays_in_direct_messages(self, demo: Demo) -> None:
        private, general = demo["direct messages"], demo["#general"]
        await private.say("I'm allergic to penicillin")
        await private.shows("remembered: You are allergic to penicillin.")
        await private.say("What do you know about me?")
        await private.shows("allergic to penicillin.")
        await general.say("What do you know about me?")
        assert "penicillin" not in (await general.shows("Only you see it."))["content"]

    async def test_shows_that_a_contradiction_is_asked_about(self, demo: Demo) -> None:
        cooking, private = demo["#cooking"], demo["direct messages"]
        await cooking.say("!memory remember My favourite dish is lasagne")
        await cooking.shows("Remembered: My favourite dish is lasagne")
        await cooking.say("My favourite dish is pizza")
        await private.shows("Which is right?")
        await private.press("Use the new")
        await cooking.say("What is my favourite dish?")
        await cooking.shows("Your favourite dish is pizza.")

    async def test_makes_you_the_owner_and_not_sam(self, demo: Demo) -> None:
        await demo["#general, as Sam"].command("hatch show")
        await demo["#general, as Sam"].shows("Only my owners can do that")
        await demo["#general"].command("hatch show")
        await demo["#general"].shows("I have no personality yet")

    async def test_offers_its_settings_to_you_and_not_to_sam(self, demo: Demo) -> None:
        assert "settings" in await demo["#general"].commands()
        assert "settings" not in await demo["#general, as Sam"].commands()

    @pytest.mark.parametrize("page", ["#cooking", "direct messages"])
    async def test_sends_a_file_as_a_message_of_yours(self, demo: Demo, page: str) -> None:
        await demo[page].command("attach", {"text": "Look at this"}, file=("notes.txt", b"flour, eggs"))
        message = await demo[page].shows("Look at this", by="you")
        assert await demo[page].file(message) == ("notes.txt", b"flour, eggs")

    async def test_takes_a_typo_for_one(self, demo: Demo) -> None:
        await demo["#general"].say("!memory foo")
        await demo["#general"].shows("There is no `!memory foo`.")

    async def test_opens_a_page_where_the_talk_is_now(self, demo: Demo) -> None:
        await demo["#cooking"].say("This is the newest")
        await demo["#cooking"].shows("I'm the offline model")
        await demo["#cooking"].open()
        assert "This is the newest" in demo["#cooking"].texts


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
                page = demo["#general"]
                await page.say("the first")
                assert "ends" not in (await page.shows("It begins"))["content"]
                await demo["#cooking"].say("meanwhile")
                await demo["#cooking"].shows("ok")
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
            await demo["#general"].say("I prefer tabs over spaces")
            await demo["#general"].shows("remembered: You prefer tabs over spaces.")
        async with running(tmp_path) as demo:
            await demo["#general"].say("What do I prefer?")
            await demo["#general"].shows("You prefer tabs over spaces.")
        async with running(tmp_path, "--port", "0", "--fresh") as demo:
            await demo["#general"].say("What do I prefer?")
            await demo["#general"].shows(NOBODY_KNOWN)
