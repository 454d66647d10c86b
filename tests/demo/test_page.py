"""The demo's page over HTTP, with a client of a few lines: each kind of answer, and who may see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import discord
import pytest
from discord import app_commands
from discord.ext import commands

from discoclaw.demo.feed import Feed, Held
from discoclaw.demo.serve import Site
from discoclaw.demo.show import about, demo_settings
from discoclaw.demo.world import World
from discoclaw.settings_types import Listen
from discoclaw.web import listening
from discoclaw.web.listening import MOST_CONNECTIONS, Listener
from tests.process.pages import ADDRESS, Page, Refused

DISHES = ("lasagne", "lentils", "pizza")


@pytest.fixture(autouse=True)
def closes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is open never ends by itself, so that closing would take the whole second."""
    monkeypatch.setattr(listening, "CLOSE_S", 0.02)
    monkeypatch.chdir(tmp_path)


class Question(discord.ui.Modal, title="A question"):
    """Says what was filled in."""

    words: discord.ui.TextInput["Question"] = discord.ui.TextInput(label="Words", custom_id="words")

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"You wrote: {self.words.value}")


class Choice(discord.ui.View):
    """A select of people."""

    @discord.ui.select(cls=discord.ui.UserSelect, custom_id="who", placeholder="Who?")
    async def who(self, interaction: discord.Interaction, select: Any) -> None:
        await interaction.response.send_message(f"You chose {select.values[0].display_name}")


@app_commands.command(name="ask", description="Open a modal")
async def ask(interaction: discord.Interaction) -> None:
    await interaction.response.send_modal(Question())


@app_commands.command(name="choose", description="Show a select")
async def choose(interaction: discord.Interaction) -> None:
    await interaction.response.send_message("Choose", view=Choice())


@app_commands.command(name="cook", description="Has suggestions")
@app_commands.describe(dish="What")
async def cook(interaction: discord.Interaction, dish: str, times: int = 1) -> None:
    await interaction.response.send_message(f"{dish} × {times}")


@cook.autocomplete("dish")
async def dishes(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
    return [app_commands.Choice(name=one, value=one) for one in DISHES if one.startswith(current)]


@app_commands.command(name="whisper", description="Only for you")
async def whisper(interaction: discord.Interaction) -> None:
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Mine", custom_id="mine"))
    await interaction.response.send_message("Psst", ephemeral=True, view=view)


@app_commands.context_menu(name="Repeat")
async def repeat(interaction: discord.Interaction, message: discord.Message) -> None:
    await interaction.response.send_message(f"It said: {message.content}")


class Client(commands.Bot):
    """What it answers to a message, and to `/think`, is complete when the test says so."""

    def __init__(self) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__("!", intents=intents)
        self.go_on = asyncio.Event()

        @app_commands.command(name="think", description="Answer later")
        async def think(interaction: discord.Interaction) -> None:
            await interaction.response.defer(ephemeral=True)
            await self.go_on.wait()
            await interaction.followup.send("Thought through")

        for command in (ask, choose, cook, whisper, repeat, think):
            self.tree.add_command(command)

    async def setup_hook(self) -> None:
        await self.tree.sync()

    async def on_message(self, message: discord.Message) -> None:
        if self.user is not None and message.author.id != self.user.id and message.content:
            answer = await message.channel.send(f"{message.content}: begun")
            await self.go_on.wait()
            await answer.edit(content=f"{message.content}: done")


class Demo:
    """A page that is served; `at` opens it as somebody somewhere."""

    def __init__(
        self, world: World, address: str, session: aiohttp.ClientSession, stack: AsyncExitStack
    ) -> None:
        self.world, self.address, self.session, self._stack = world, address, session, stack

    async def at(self, where: str = "#general", who: str = "you") -> Page:
        return await self._stack.enter_async_context(Page(self.session, self.address, where, who))


@asynccontextmanager
async def served(client: Client) -> AsyncIterator[Demo]:
    """The demo's Discord with a client in it, and its page."""
    world, settings = World("general"), demo_settings(owner="1")
    site = Site(world, Feed(world, Held(settings)), "the-token", about(world, settings))
    listener = Listener(site.application(), Listen("127.0.0.1", 0), "--port")
    await listener.start()
    try:
        await world.env.connect(client)
        unbounded = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=unbounded) as session, AsyncExitStack() as stack:
            yield Demo(world, f"http://127.0.0.1:{listener.port}/#the-token", session, stack)
    finally:
        client.go_on.set()
        await listener.close()
        await world.env.shutdown()


@pytest.fixture
async def demo() -> AsyncIterator[Demo]:
    """With a client that answers at once."""
    client = Client()
    client.go_on.set()
    async with served(client) as running:
        yield running


class TestWhatTakesTime:
    async def test_an_answer_is_seen_while_it_grows_and_nobody_waits_for_it(self) -> None:
        client = Client()
        async with served(client) as demo:
            general, sam, private = [
                await demo.at(*one) for one in (("#general",), ("#general", "Sam"), ("direct messages",))
            ]
            for page, words in ((general, "one"), (general, "two"), (sam, "three"), (private, "four")):
                await page.say(words)
            for page, words in ((general, "two"), (general, "three"), (private, "four")):
                await page.shows(f"{words}: begun", by="TestBot")
            client.go_on.set()
            for page, words in ((general, "one"), (sam, "three"), (private, "four")):
                await page.shows(f"{words}: done", by="TestBot")

    async def test_a_command_that_takes_long_holds_nobody_up_and_is_shown_to_its_person_alone(self) -> None:
        client = Client()
        async with served(client) as demo:
            yours, of_sam = await demo.at(), await demo.at(who="Sam")
            await yours.command("think")
            await yours.say("meanwhile")
            await yours.shows("meanwhile: begun", by="TestBot")
            client.go_on.set()
            await yours.shows("Thought through", by="TestBot")
            await of_sam.shows("meanwhile: done", by="TestBot")
            assert "Thought through" not in of_sam.texts


@pytest.mark.parametrize("place", ["#cooking", "direct messages", "#weekend-trip"])
class TestEverywhere:
    async def test_a_modal_is_opened_and_answered(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.command("ask")
        await page.fill(words="by hand")
        await page.shows("You wrote: by hand", by="TestBot")

    async def test_a_select_of_people_is_answered(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.command("choose")
        message = await page.shows("Choose", by="TestBot")
        await page.act("choose", message=message["id"], id="who", kind=5, values=[page.place["as"]])
        await page.shows("You chose you", by="TestBot")

    async def test_a_command_is_completed_and_used(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        found = await page.act("complete", name="cook", option="dish", value="l", options={"times": "x"})
        assert [one["value"] for one in found["choices"]] == ["lasagne", "lentils"]
        await page.command("cook", {"dish": "lentils", "times": "2"})
        await page.shows("lentils × 2", by="TestBot")
        with pytest.raises(Refused, match="dish"):
            await page.command("cook", {"times": "2"})

    async def test_a_message_has_its_menus(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.say("soup")
        message = await page.shows("soup", by="you")
        assert (await page.offered())["menus"] == ["Repeat"]
        await page.act("menu", name="Repeat", message=message["id"])
        await page.shows("It said: soup", by="TestBot")

    async def test_a_message_is_answered_edited_reacted_to_and_deleted(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.say("soop")
        own = (await page.shows("soop", by="you"))["id"]
        await page.act("edit", message=own, text="soup")
        await page.shows("soup", by="you")
        await page.say("which?", reply=own)
        assert (await page.shows("which?", by="you"))["referenced_message"]["id"] == own
        await page.act("react", message=own, emoji="👍", on=True)
        await page.until(lambda: page.view[f"m{own}"]["reactions"])
        assert page.view[f"m{own}"]["reactions"][0]["me"] is True
        await page.act("delete", message=own)
        await page.until(lambda: f"m{own}" not in page.view)

    async def test_several_files_are_sent_at_once(self, demo: Demo, place: str) -> None:
        page = await demo.at(place)
        await page.say("", ("a.txt", b"a"), ("b.html", b"<script>alert(1)</script>"))
        [message] = [one for one in page.messages if one["attachments"]] or [
            await page.until(lambda: next((one for one in page.messages if one["attachments"]), None))
        ]
        assert [one["filename"] for one in message["attachments"]] == ["a.txt", "b.html"]


class TestThreads:
    async def test_a_thread_is_opened_at_a_message_and_answered_in(self, demo: Demo) -> None:
        general = await demo.at()
        await general.say("A long story")
        message = await general.shows("A long story", by="you")
        made = await general.act("thread", message=message["id"], name="story")
        await general.until(lambda: any(one["name"] == "story" for one in general.view["world"]["places"]))
        assert made == {"channel": message["id"]}
        thread = await demo.at("#story")
        await thread.say("Go on")
        await thread.shows("Go on: done", by="TestBot")


class TestWhatIsSent:
    async def test_is_only_what_changed(self, demo: Demo) -> None:
        page = await demo.at()
        for number in range(5):
            await page.say(f"message {number}")
        first = await page.shows("message 4: done", by="TestBot")
        await asyncio.sleep(0.2)  # what is on its way
        page.lines.clear()
        await page.act("edit", message=page.messages[0]["id"], text="message zero")
        await page.shows("message zero", by="you")
        assert [list(line["set"]) for line in page.lines] == [[f"m{page.messages[0]['id']}"]]
        assert first["id"] in {one["id"] for one in page.messages}

    async def test_says_who_types(self, demo: Demo) -> None:
        yours, of_sam = await demo.at(), await demo.at(who="Sam")
        await of_sam.act("type")
        await yours.until(lambda: yours.view["typing"] == [of_sam.place["as"]])
        assert of_sam.view["typing"] == []
        await of_sam.say("There")
        await yours.until(lambda: yours.view["typing"] == [])


class TestWhoMaySee:
    async def test_a_private_channel_is_there_for_those_who_may_read_it(self, demo: Demo) -> None:
        staff, sam = await demo.at("#staff", "Mo"), await demo.at(who="Sam")
        await staff.say("The secret plan", ("plan.txt", b"secret"))
        message = await staff.shows("The secret plan", by="Mo")
        await staff.shows("The secret plan: done", by="TestBot")
        assert "staff" in str(staff.view["world"]) and "staff" not in str(sam.view["world"])
        sam.place["channel"] = staff.place["channel"]
        for path, more in (("/view", {}), ("/commands", {}), ("/attached", _of(message))):
            with pytest.raises(Refused, match="There is no such channel"):
                await sam.ask(path, params={**sam.place, **more})
        for do in ("send", "delete", "press"):
            with pytest.raises(Refused, match="There is no such channel"):
                await sam.act(do, text="x", message=message["id"], id="x")

    async def test_what_is_no_id_is_nothing(self, demo: Demo) -> None:
        page = await demo.at()
        for no_id in ("²", "9" * 5000, "x", "-1", ""):
            with pytest.raises(Refused, match="There is no such message"):
                await page.act("delete", message=no_id)
            for name, what in (("channel", "channel"), ("as", "person")):
                at = {**page.place, name: no_id}
                with pytest.raises(Refused, match=f"There is no such {what}"):
                    await page.ask("/view", params=at)

    async def test_direct_messages_are_there_for_their_person(self, demo: Demo) -> None:
        private, sam = await demo.at("direct messages"), await demo.at(who="Sam")
        await private.say("Between us")
        await private.shows("Between us: done", by="TestBot")
        assert private.place["channel"] not in str(sam.view["world"])
        sam.place["channel"] = private.place["channel"]
        with pytest.raises(Refused, match="There is no such channel"):
            await sam.ask("/view")

    async def test_an_answer_for_one_person_is_neither_shown_to_others_nor_theirs_to_press(
        self, demo: Demo
    ) -> None:
        yours, of_sam = await demo.at(), await demo.at(who="Sam")
        await yours.command("whisper")
        message = await yours.shows("Psst", by="TestBot")
        await of_sam.say("anything")
        await of_sam.shows("anything: done", by="TestBot")
        assert "Psst" not in of_sam.texts
        with pytest.raises(Refused):
            await of_sam.act("press", message=message["id"], id="mine")
        with pytest.raises(Refused, match="There is no such message"):
            await of_sam.act("thread", message=message["id"], name="Psst")

    async def test_a_file_is_there_for_those_who_see_its_message(self, demo: Demo) -> None:
        general, sam = await demo.at(), await demo.at("#cooking", "Sam")
        await general.say("A page", ("page.html", b"<script>alert(1)</script>"))
        message = await general.shows("A page", by="you")
        with pytest.raises(Refused, match="There is no such file"):
            await sam.ask("/attached", params={**sam.place, **_of(message)})
        asked = {**general.place, **_of(message), "type": "text/html"}
        async with demo.session.get(
            f"{_base(demo)}/attached", params=asked, headers=general.headers
        ) as answer:
            assert answer.content_type == "application/octet-stream"
            assert answer.headers["Content-Disposition"] == "attachment"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


class TestAnAttacker:
    async def test_who_is_another_site_can_do_nothing(self, demo: Demo) -> None:
        page = await demo.at()
        act = f'{{"as":"{page.place["as"]}","channel":"{page.place["channel"]}"}}'
        for headers, status in (
            ({"X-Demo-Token": ""}, 401),
            ({"X-Demo-Token": "the-tokem"}, 401),
            ({"Host": "evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": ""}, 403),
        ):
            form, sent = aiohttp.FormData({"act": act}), page.headers | headers
            async with demo.session.post(f"{_base(demo)}/act", data=form, headers=sent) as answer:
                assert answer.status == status, headers
        async with demo.session.get(f"{_base(demo)}/about", headers={"X-Demo-Token": "x"}) as answer:
            assert answer.status == 401 and "steps" not in await answer.text()

    async def test_finds_no_secret_in_the_page_and_no_way_for_a_script(self, demo: Demo) -> None:
        async with demo.session.get(f"{_base(demo)}/") as answer:
            text, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        assert "the-token" not in text
        assert "script-src 'self'" in policy and "default-src 'none'" in policy and "unsafe" not in policy
        assert "onclick=" not in text and "<style" not in text

    async def test_sends_nonsense_and_gets_a_sentence(self, demo: Demo) -> None:
        page = await demo.at()
        for act in ("[]", "{", '"x"', '{"do": "__init__"}', '{"do": ["send"]}', '{"do": "shown"}'):
            with pytest.raises(Refused):
                await page.ask("/act", "POST", data=aiohttp.FormData({"act": act}))

    async def test_opens_connections_without_end_and_the_page_still_answers(self, demo: Demo) -> None:
        page = await demo.at()
        streams = [
            await demo.session.get(f"{_base(demo)}/view", params=page.place, headers=page.headers)
            for _ in range(MOST_CONNECTIONS + 10)
        ]
        try:
            assert (await page.offered())["menus"] == ["Repeat"]
            assert streams[0].closed or (await _ends(streams[0]))
        finally:
            for one in streams:
                one.close()


def _of(message: Any) -> dict[str, str]:
    return {"message": message["id"], "url": message["attachments"][0]["url"]}


def _base(demo: Demo) -> str:
    found = ADDRESS.search(demo.address)
    assert found is not None
    return found[1]


async def _ends(stream: aiohttp.ClientResponse) -> bool:
    try:
        async with asyncio.timeout(10):
            while await stream.content.read(65536):
                pass
    except aiohttp.ClientError:
        return True
    return True
