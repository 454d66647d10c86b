"""Questions whose answer only one person sees, also where the bot is not a member."""

import asyncio
import logging
import re
from typing import Any

import discord
import pytest

from discoclaw.bot.answers import FAILED, NOT_ALLOWED
from discoclaw.bot.commands.dispatch import NO_FORM
from discoclaw.bot.commands.parsing import menus, reach, slash_commands
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.refused import TOO_LATE
from discoclaw.core.errors import ModelTimeout
from discoclaw.models.anthropic.provider import AnthropicModel
from tests.app import elsewhere
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.menus import ASK, LEARNED, QUIET, REMEMBER, remembered, said, texts
from tests.app.models import Scripted
from tests.app.test_groups import Agreeing, shown
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer


def everything_stored(world: World) -> bytes:
    return b"\n".join(one.read_bytes() for one in (world.folder / "data").rglob("*") if one.is_file())


class TestAskingInAChannel:
    async def test_only_the_asker_sees_the_answer(self, start: Start) -> None:
        async with start(Scripted("Tabs."), **QUIET) as world:
            result = await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.settle()
            assert said(result) == "Tabs." and world.shown(world.general) == []

    async def test_memories_are_used_but_private_ones_only_in_dms(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            await world.ann.slash(world.general, "memory remember", text="My doctor says I have diabetes")
            await world.ann.slash(world.general, "ask", text="What do I prefer, and what have I?")
            await world.settle()
            assert "I prefer tabs" in world.model.prompt and "diabetes" not in world.model.prompt

    async def test_what_is_said_in_the_channel_is_not_read_for_it(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(Scripted(), **QUIET, auto_save="all") as world:
            await world.bob.send(world.general, "The release is on Friday")
            await world.restart()
            await world.ann.slash(world.general, "ask", text="When is the release?")
            await world.settle()
            assert "Friday" not in world.model.prompt
            where = world.model.requests[-1].system[-1].text
            assert "with a command in #general. Nobody else sees the question" in where
        assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []

    async def test_what_others_decided_in_the_channel_stays_out(self, start: Start) -> None:
        model = Agreeing(decisions=["Releases are on Fridays"])
        async with start(model, extraction_enabled=False, summary_every=1) as world:
            await world.bob.send(world.general, "We release on Fridays from now on")
            await world.settle()
            await world.bob.send(world.general, "Are we done?")
            assert "Releases are on Fridays" in model.place()
            await world.ann.slash(world.general, "ask", text="Are we done?")
            await world.settle()
            assert "Fridays" not in shown(model)

    async def test_it_is_not_summarised(self, start: Start) -> None:
        async with start(Scripted("A bicycle."), extraction_enabled=False, summary_every=1) as world:
            await world.ann.slash(world.general, "ask", text="What shall I give Bob?")
            await world.settle()
            assert world.model.structured_prompts == []

    async def test_nobody_else_finds_it_in_a_prompt_or_in_the_archive(self, start: Start) -> None:
        async with start(Scripted("A red bicycle."), **QUIET, auto_save="all", summary_every=1) as world:
            await world.ann.slash(world.general, "ask", text="What shall I give Bob?")
            await world.settle()
            await world.bob.send(world.general, f"<@{world.app.client.user.id}> what was said?")
            await world.settle()
            assert "bicycle" not in world.model.prompt and "give Bob" not in world.model.prompt
            found = await world.bob.slash(world.general, "memory search", query="bicycle")
            assert "bicycle" not in said(found).replace("“bicycle”", "")
            assert b"bicycle" not in everything_stored(world)

    async def test_it_goes_on_with_the_next_question_there(self, start: Start) -> None:
        async with start(Scripted("A bicycle."), **QUIET) as world:
            await world.ann.slash(world.general, "ask", text="What shall I give Bob?")
            await world.settle()
            await world.ann.slash(world.general, "ask", text="Which colour?")
            await world.settle()
            assert "A bicycle." in world.model.prompt
            await world.bob.slash(world.general, "ask", text="And I?")
            await world.settle()
            assert "A bicycle." not in world.model.prompt

    async def test_it_is_learned_from_as_from_a_private_place(self, start: Start) -> None:
        async with start(respond_mode="mention") as world:
            await world.ann.slash(world.general, "ask", text="I work at Acme Corp. Who are my customers?")
            await world.settle()
            (item,) = await remembered(world, world.ann)
            assert "Acme" in item.text and item.facets.sensitivity == "private"
            why = await world.ann.slash(world.general, "memory why", memory=item.text)
            assert "in what you asked me with a command" in said(why)

    async def test_no_receipt_in_the_channel_tells_of_it(self, start: Start) -> None:
        async with start(respond_mode="mention", receipts=True) as world:
            await world.ann.slash(world.general, "ask", text="I prefer tabs over spaces. Is that wise?")
            await world.settle()
            assert await texts(world, world.ann) and world.shown(world.general) == []

    async def test_of_somebody_who_opted_out_nothing_is_learned(self, start: Start) -> None:
        async with start(respond_mode="mention") as world:
            await world.ann.slash(world.general, "memory data optout")
            result = await world.ann.slash(world.general, "ask", text="I work at Acme Corp. Who is my boss?")
            await world.settle()
            assert said(result) and await remembered(world, world.ann) == []
            assert b"Acme" not in everything_stored(world)

    async def test_an_erasing_leaves_nothing_of_it(self, start: Start) -> None:
        async with start(Scripted("A bicycle."), **QUIET) as world:
            await world.ann.slash(world.general, "ask", text="What shall I give Bob?")
            await world.ann.send(world.general, "!memory data erase --yes")
            await world.settle()
            await world.ann.slash(world.general, "ask", text="Which colour?")
            await world.settle()
            assert "bicycle" not in world.model.prompt and "give Bob" not in world.model.prompt

    async def test_a_long_answer_comes_in_several_messages_and_then_as_a_file(self, start: Start) -> None:
        async with start(Scripted("word " * 1000, "word " * 4000), **QUIET) as world:
            result = await world.ann.slash(world.general, "ask", text="Say much")
            await world.settle()
            assert said(result).count("word") == 1000 and len(result.followups) == 2
            result = await world.ann.slash(world.general, "ask", text="Say more")
            await world.settle()
            assert result.followups[-1].attachments[0].filename == "answer.md"

    async def test_where_the_bot_is_switched_off_it_says_so(self, start: Start) -> None:
        async with start(Scripted(), **{**QUIET, "respond_mode": "none"}) as world:
            result = await world.ann.slash(world.general, "ask", text="Hello?")
            assert said(result) == "I don't answer here; whoever runs me has switched that off."
            assert world.model.requests == []

    async def test_a_question_that_says_nothing_is_refused(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            result = await world.ann.slash(world.general, "ask", text=" \u200b ")
            assert said(result) == "There is no question in that." and world.model.requests == []

    async def test_a_file_can_come_with_it(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            file = ("plan.txt", b"We release on Friday.")
            await world.ann.slash(world.general, "ask", text="When do we release?", file=file)
            await world.settle()
            assert "plan.txt" in world.model.prompt

    async def test_where_answers_get_a_thread_this_one_gets_none(self, start: Start) -> None:
        async with start(Scripted("Tabs."), **QUIET, threads=True) as world:
            result = await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.settle()
            assert said(result) == "Tabs." and world.general.threads == []

    async def test_a_failing_model_is_told_of(self, start: Start) -> None:
        async with start(Scripted(ModelTimeout("down")), **QUIET) as world:
            result = await world.ann.slash(world.general, "ask", text="Hello?")
            await world.settle()
            assert said(result) == ModelTimeout.user_message

    async def test_a_question_that_came_too_late_is_told_of_in_a_dm(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.slash(world.general, "ask", text="Hello?")
            await world.settle()
            assert world.answer(world.ann_dm) == TOO_LATE and world.model.requests == []

    async def test_what_discord_no_longer_takes_comes_in_a_dm(self, start: Start) -> None:
        async with start(Scripted("Tabs."), **QUIET) as world:
            world.env.inject_error("POST", "/webhooks/*", status=401, code=50027, times=None)
            await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.settle()
            told = "Discord no longer took my answer where you asked, so here it is:\n\nTabs."
            assert world.answer(world.ann_dm) == told

    async def test_the_rest_of_an_answer_comes_in_a_dm(self, start: Start) -> None:
        model = Scripted("word " * 700, chunk=1000)
        model.hold = asyncio.Event()
        async with start(model, **QUIET, edit_interval_s=0.0) as world:
            asking = asyncio.create_task(world.ann.slash(world.general, "ask", text="Say much"))
            async with asyncio.timeout(10):
                said_there = world.env.backend.messages[world.general.id]
                while not any(one.content for one in said_there.values()):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            expired = {"method": "*", "path": "/webhooks/*", "status": 401, "code": 50027}
            world.env.backend.faults.append({**expired, "message": "Invalid Webhook Token", "times": None})
            model.hold.set()
            result = await asking
            await world.settle()
            here, there = said(result), "".join(world.shown(world.ann_dm))
            assert there.startswith("Discord no longer took the rest of my answer where you asked")
            assert here.count("word") + there.count("word") == 700 and here.count("word") > 0

    async def test_what_the_answer_proposes_is_seen_and_pressed_by_the_asker_only(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        switch = {"action": "switch", "name": "coding"}
        server.script(api.tool_use(("t", "memory_branch", switch)), api.text("Here is your code."))
        async with start(model, **QUIET) as world:
            await world.ann.slash(world.general, "memory persona create", name="coding")
            await world.ann.slash(world.general, "memory persona switch", name="main")
            result = await world.ann.slash(world.general, "ask", text="Write me some code")
            await world.settle()
            assert said(result) == "Here is your code.\n-# Switch to your persona **coding**?"
            await world.ann.click(result.followups[-1], label="Switch to coding")
            assert said(result).endswith("-# Your persona is now **coding**.")
            assert world.shown(world.general) == []

    async def test_why_tells_what_it_was_based_on(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.settle()
            result = await world.ann.slash(world.general, "memory why")
            assert "I prefer tabs" in said(result)


class TestWhereTheBotIsNotAMember:
    @pytest.mark.parametrize("place", [elsewhere.in_group_dm, elsewhere.on_foreign_server])
    async def test_somebody_on_the_allowlist_is_answered(self, start: Start, place: Any) -> None:
        async with start(Scripted("Tabs."), **QUIET) as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            await world.ann.slash(world.general, "memory remember", text="My doctor says I have diabetes")
            result = await place(
                world, world.ann, elsewhere.slash(world, "ask", text="Tabs, and have I diabetes?")
            )
            assert said(result) == "Tabs."
            assert "I prefer tabs" in world.model.prompt and "My doctor" not in world.model.prompt
            assert world.shown(world.general) == []

    @pytest.mark.parametrize("place", [elsewhere.in_group_dm, elsewhere.on_foreign_server])
    async def test_a_stranger_is_not(self, start: Start, place: Any) -> None:
        async with start(Scripted(), **QUIET, allow_users=frozenset({"1"})) as world:
            stranger = world.env.create_user("eve")
            result = await place(world, stranger, elsewhere.slash(world, "ask", text="Hello?"))
            assert said(result) == NOT_ALLOWED and world.model.requests == []

    async def test_a_role_counts_only_on_a_server_that_the_bot_is_in(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            stranger = world.env.create_user("eve")
            question = elsewhere.slash(world, "ask", text="Hello?")
            result = await elsewhere.on_foreign_server(world, stranger, question, GUILD_ID)
            assert said(result) == NOT_ALLOWED and world.model.requests == []

    @pytest.mark.parametrize("place", [elsewhere.in_group_dm, elsewhere.on_foreign_server])
    async def test_memory_can_be_seen_and_changed(self, start: Start, place: Any) -> None:
        async with start(Scripted(), **QUIET) as world:
            await place(world, world.ann, elsewhere.slash(world, "memory remember", text="I prefer tabs"))
            result = await place(world, world.ann, elsewhere.slash(world, "memory show"))
            assert await texts(world, world.ann) == ["I prefer tabs"]
            assert result.response is not None and result.response.ephemeral

    @pytest.mark.parametrize("place", [elsewhere.in_group_dm, elsewhere.on_foreign_server])
    async def test_every_command_of_memory_answers_there(
        self, start: Start, place: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(Scripted(), **QUIET, auto_save="all") as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            for command in CATALOGUE.commands:
                if command.path.startswith("memory ") and not any(one.required for one in command.params):
                    result = await place(world, world.ann, elsewhere.slash(world, command.path))
                    shown = [one for one in (result.response, *result.followups) if one is not None]
                    assert shown and all(one.ephemeral for one in shown), command.path
                    assert not any(one.content == FAILED for one in shown), command.path
        assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []

    async def test_others_words_are_remembered_as_said_in_private(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            menu = elsewhere.chosen(
                world, REMEMBER, 900_000_000_000_000_077, world.bob, "The release is on Friday"
            )
            result = await elsewhere.in_group_dm(world, world.ann, menu)
            (item,) = await remembered(world, world.ann)
            assert (
                item.text == "bob said: “The release is on Friday”" and item.facets.sensitivity == "private"
            )
            assert "Remembered" in said(result)

    async def test_what_was_remembered_there_is_found_by_its_message(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            said_there = (900_000_000_000_000_077, world.bob, "The release is on Friday")
            await elsewhere.in_group_dm(world, world.ann, elsewhere.chosen(world, REMEMBER, *said_there))
            result = await elsewhere.in_group_dm(
                world, world.ann, elsewhere.chosen(world, LEARNED, *said_there)
            )
            assert re.search(
                r"^- bob said: “The release is on Friday” \(<t:\d+:R>, private\)$", said(result), re.M
            )

    async def test_a_message_that_was_deleted_meanwhile_is_not_remembered(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.general, "The release is on Friday")
            await world.bob.delete(message)
            await world.settle()
            menu = elsewhere.chosen(world, REMEMBER, message.id, world.bob, "The release is on Friday")
            await elsewhere.in_group_dm(world, world.ann, menu)
            assert await texts(world, world.ann) == []

    async def test_a_message_there_can_be_asked_about(self, start: Start) -> None:
        async with start(Scripted("Friday."), **QUIET) as world:
            menu = elsewhere.chosen(world, ASK, 900_000_000_000_000_077, world.bob, "EOW, as usual")
            form = await elsewhere.in_group_dm(world, world.ann, menu)
            result = await elsewhere.submitted(world, world.ann, form, question="What does that mean?")
            assert said(result) == "Friday." and "EOW, as usual" in world.model.prompt

    async def test_after_a_restart_it_has_to_be_chosen_again(self, start: Start) -> None:
        async with start(Scripted("Friday."), **QUIET) as world:
            menu = elsewhere.chosen(world, ASK, 900_000_000_000_000_077, world.bob, "EOW, as usual")
            form = await elsewhere.in_group_dm(world, world.ann, menu)
            await world.restart()
            result = await elsewhere.submitted(world, world.ann, form, question="What does that mean?")
            assert said(result).startswith("I no longer have that message")
            assert world.model.requests == []

    async def test_a_form_that_is_unknown_since_an_update_gets_a_sentence(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            menu = elsewhere.chosen(world, ASK, 900_000_000_000_000_077, world.bob, "EOW, as usual")
            form = await elsewhere.in_group_dm(world, world.ann, menu)
            form._interaction.modal["custom_id"] = f"menu:{world.ann.id}:Ask of old:900000000000000077"
            result = await elsewhere.submitted(world, world.ann, form, question="What does that mean?")
            assert said(result) == NO_FORM

    async def test_a_message_whose_author_was_erased_meanwhile_is_gone(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            menu = elsewhere.chosen(world, ASK, 900_000_000_000_000_077, world.bob, "EOW, as usual")
            form = await elsewhere.in_group_dm(world, world.ann, menu)
            await world.bob.send(world.general, "!memory data erase --yes")
            await world.settle()
            result = await elsewhere.submitted(world, world.ann, form, question="What does that mean?")
            assert said(result).startswith("I no longer have that message")
            assert world.model.requests == []

    async def test_nothing_was_learned_where_it_doesnt_listen(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            menu = elsewhere.chosen(world, LEARNED, 900_000_000_000_000_077, world.ann, "Good morning")
            assert said(await elsewhere.in_group_dm(world, world.ann, menu)).startswith("Nothing was learned")


class TestHowItIsInstalled:
    @pytest.mark.parametrize(
        ("answer", "people"), [({}, True), ({"0": {}}, False), ({"0": {}, "1": {}}, True)]
    )
    def test_people_can_install_it_for_themselves_if_its_admin_lets_them(
        self, answer: Any, people: bool
    ) -> None:
        assert reach(application(answer)).people is people

    def test_only_what_is_harmless_anywhere_is_offered_there(self) -> None:
        payloads = payloads_of({"0": {}, "1": {}})
        anywhere = {name for name, one in payloads.items() if 1 in one["integration_types"]}
        assert anywhere == {"memory", "ask", REMEMBER, LEARNED, ASK}
        assert all((2 in one["contexts"]) is (name in anywhere) for name, one in payloads.items())
        assert all(
            {0} <= set(one["integration_types"]) and {0, 1} <= set(one["contexts"])
            for one in payloads.values()
        )

    def test_without_that_nothing_wants_to_be_installed_by_people(self) -> None:
        assert all(one["integration_types"] == [0] for one in payloads_of({"0": {}}).values())


def application(installs: dict[str, Any]) -> discord.AppInfo:
    """What Discord tells a bot about its application."""
    data: Any = {
        "id": "1",
        "name": "DiscoClaw",
        "description": "",
        "icon": None,
        "rpc_origins": [],
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "",
        "flags": 0,
        "owner": {"id": "2", "username": "ann", "discriminator": "0", "avatar": None},
        "integration_types_config": installs,
    }
    return discord.AppInfo(discord.Client(intents=discord.Intents.none())._connection, data)


def payloads_of(installs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The commands as Discord gets them, by name."""

    async def nothing(*_: object) -> Any:
        """Stands in for what they do."""

    tree = discord.app_commands.CommandTree(discord.Client(intents=discord.Intents.none()))
    far = reach(application(installs))
    made = [*slash_commands(CATALOGUE, far, nothing, nothing), *menus(CATALOGUE, far, nothing)]
    return {one.name: dict(one.to_dict(tree)) for one in made}
