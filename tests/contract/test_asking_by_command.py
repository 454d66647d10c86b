"""Questions by `/ask`, whose answer only one person sees, also where the bot is not a member."""

import asyncio
import logging
import re
from typing import Any

import pytest
from simcord.http import router

from tests.contract import elsewhere
from tests.contract.commands import told
from tests.contract.meanwhile import until
from tests.contract.world import GUILD_ID, Start, World
from tests.servers.messages_api import failure, text, tool_use

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "respond_mode": "mention"}
REMEMBER, LEARNED, ASK = "Remember this", "What was learned from this?", "Ask about this"
LATE = "Discord brought me your command too late, so I did nothing. Please try it again."
MESSAGE = 900_000_000_000_000_077
PLACES = (elsewhere.in_group_dm, elsewhere.on_foreign_server)


async def ask(world: World, words: str, person: Any = None) -> str:
    """What somebody (Ann) is answered, which nobody else sees."""
    result = await (person or world.ann).slash(world.general, "ask", text=words)
    await world.settle()
    return told(result)


class TestInAChannel:
    async def test_is_for_the_asker_alone_and_knows_their_open_memories_but_nothing_said_there(
        self, start: Start
    ) -> None:
        async with start(**QUIET, auto_save="all", threads=True) as world:
            world.brain.says("A red bicycle.", about="give Bob")
            await world.remember(world.ann, "I prefer tabs")
            await world.ann.send_dm("!memory remember My doctor says I have diabetes")
            shown = world.shown(world.general)
            await world.bob.send(world.dev, "The release is on Friday")
            await world.restart()
            words = "Tabs? And have I diabetes, when is the release, and what shall I give Bob?"
            assert await ask(world, words) == "A red bicycle."
            assert world.shown(world.general) == shown and world.general.threads == []
            assert "I prefer tabs" in world.prompt
            assert "doctor" not in world.prompt and "Friday" not in world.prompt
            assert "with a command in #general. Nobody else sees the question" in world.turns()[-1].system
            assert "I prefer tabs" in told(await world.ann.slash(world.general, "memory why"))
            await ask(world, "Which colour?")
            assert "A red bicycle." in world.prompt
            await ask(world, "And I?", world.bob)
            assert "bicycle" not in world.prompt
            await world.says(world.bob, world.general, f"{world.mention} what was said?")
            assert "bicycle" not in world.prompt and "give Bob" not in world.prompt
            assert world.files_with("bicycle") == []
            await world.says(world.ann, world.general, "!memory data erase --yes")
            await ask(world, "Which colour?")
            assert "bicycle" not in world.prompt and "give Bob" not in world.prompt

    async def test_is_learned_from_as_in_private_and_is_nothing_of_the_channels(self, start: Start) -> None:
        async with start(summary_every=1, receipts=True) as world:
            decided = {"summary": "They agree.", "themes": [], "decisions": ["Releases are on Fridays"]}
            world.brain.writes("decisions", decided)
            world.brain.learns("User works at Acme Corp.", about="Acme")
            for words in ("We release on Fridays from now on", "Are we done?"):
                await world.says(world.bob, world.general, words)
            assert "Releases are on Fridays" in world.prompt
            shown, summed_up = world.shown(world.general), len(world.background("summary"))
            await ask(world, "I work at Acme Corp. Who are my customers, and are we done?")
            assert "Fridays" not in world.prompt + world.turns()[-1].system
            assert len(world.background("summary")) == summed_up and world.shown(world.general) == shown
            assert world.memories(world.ann) == ["User works at Acme Corp."]
            assert "Acme" not in await world.says(world.ann, world.general, "!memory show")
            why = told(await world.ann.slash(world.general, "memory why", memory="Acme"))
            assert "in what you asked me with a command" in why
            world.brain.learns("User works at Globex.", about="Globex")
            await world.bob.slash(world.general, "memory data optout")
            assert await ask(world, "I work at Globex. Who is my boss?", world.bob) == "ok"
            assert world.memories(world.bob) == [] and world.files_with("Globex") == []

    async def test_comes_in_parts_or_in_a_dm_or_says_why_it_does_not(self, start: Start) -> None:
        async with start(**QUIET, edit_interval_s=0.0) as world:
            world.brain.says("word " * 1000, "word " * 4000, about="Say much")
            result = await world.ann.slash(world.general, "ask", text="Say much")
            assert told(result).count("word") == 1000 and len(result.followups) == 2
            result = await world.ann.slash(world.general, "ask", text="Say much more")
            assert result.followups[-1].attachments[0].filename == "answer.md"
            asked = len(world.server.requests)
            assert await ask(world, " \u200b ") == "There is no question in that."
            for command, given in (("ask", "Hello?"), ("memory remember", "I like tea")):
                world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
                await world.ann.slash(world.general, command, text=given)
                await world.settle()
            assert world.shown(world.ann_dm) == [LATE] * 2 and world.memories(world.ann) == []
            assert len(world.server.requests) == asked
            world.brain.says(failure(401, "authentication_error"), about="Hello?")
            assert (await ask(world, "Hello?")).startswith("The model refused my API key")
            switch = {"action": "switch", "name": "coding"}
            world.brain.says(tool_use(("t", "memory_branch", switch)), "Here it is.", about="code")
            for words in ("create coding", "switch main"):
                await world.says(world.ann, world.ann_dm, f"!memory persona {words}")
            result = await world.ann.slash(world.general, "ask", text="Write me some code")
            await world.settle()
            assert told(result) == "Here it is.\n-# Switch to your persona **coding**?"
            await world.ann.click(result.followups[-1], label="Switch to coding")
            assert told(result).endswith("-# Your persona is now **coding**.")
            goes_on = asyncio.Event()
            world.brain.says(text("hop " * 250, "hop " * 600, hold=goes_on), about="Say a lot")
            asking = asyncio.create_task(world.ann.slash(world.general, "ask", text="Say a lot"))
            kept = world.env.backend.messages[world.general.id]
            await until(lambda: any(one.content and one.content.endswith("hop ") for one in kept.values()))
            expired = {"method": "*", "path": "/webhooks/*", "status": 401, "code": 50027, "times": None}
            world.env.backend.faults.append({**expired, "message": "Invalid Webhook Token"})
            before = len(world.shown(world.ann_dm))
            goes_on.set()
            here = told(await asking)
            await world.settle()
            there = "".join(world.shown(world.ann_dm)[before:])
            assert there.startswith("Discord no longer took the rest of my answer where you asked")
            assert 0 < here.count("hop") < 850 == here.count("hop") + there.count("hop")
            await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.settle()
            gone = "Discord no longer took my answer where you asked, so here it is:\n\nok"
            assert world.answer(world.ann_dm) == gone and world.shown(world.general) == []
            world.env.backend.faults.clear()
            await world.restart(respond_mode="none")
            off = "I don't answer here; whoever runs me has switched that off."
            assert await ask(world, "Hello?") == off


class TestWhereTheBotIsNotAMember:
    @pytest.mark.parametrize("place", PLACES)
    async def test_people_on_the_allowlist_are_answered_and_have_their_memory_and_strangers_are_not(
        self, start: Start, place: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**QUIET, auto_save="all", allow_users=frozenset({"1"})) as world:
            await world.remember(world.ann, "I prefer tabs")
            told_there = elsewhere.slash(world, "memory remember", text="I drink tea")
            assert told(await place(world, world.ann, told_there)).startswith("Remembered: I drink tea")
            await world.ann.send_dm("!memory remember My doctor says I have diabetes")
            question = elsewhere.slash(world, "ask", text="Tabs, and have I diabetes?")
            assert told(await place(world, world.ann, question)) == "ok"
            assert "I prefer tabs" in world.prompt and "My doctor" not in world.prompt
            for path in plain_commands(world, "memory"):
                answer = told(await place(world, world.ann, elsewhere.slash(world, path)))
                assert answer and "I couldn't save or read" not in answer, path
            eve, asked = world.env.create_user("eve"), len(world.server.requests)
            for roles in ((), (GUILD_ID,)):  # a role counts on servers alone that the bot is in
                if not roles or place is elsewhere.on_foreign_server:
                    answer = told(await place(world, eve, question, *roles))
                    assert answer.startswith("You aren't on my allowlist.")
            assert len(world.server.requests) == asked
        assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []

    async def test_a_message_is_remembered_as_said_in_private_and_can_be_asked_about(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            said = (MESSAGE, world.bob, "The release is on Friday")

            async def chosen(name: str, *what: Any) -> Any:
                menu = elsewhere.chosen(world, name, *(what or said))
                return await elsewhere.in_group_dm(world, world.ann, menu)

            async def submitted(form: Any) -> str:
                return told(await elsewhere.submitted(world, world.ann, form, question="Which one?"))

            assert "Remembered" in told(await chosen(REMEMBER))
            quoted = "bob said: “The release is on Friday”"
            assert world.memories(world.ann) == [quoted]
            assert "Friday" not in await world.says(world.ann, world.general, "!memory show")
            assert re.search(
                rf"^- {re.escape(quoted)} \(<t:\d+:R>, private\)$", told(await chosen(LEARNED)), re.M
            )
            nothing = await chosen(LEARNED, MESSAGE + 1, world.ann, "Good morning")
            assert told(nothing).startswith("Nothing was learned")
            deleted = await world.bob.send(world.general, "We meet on Monday")
            await world.bob.delete(deleted)
            await world.settle()
            await chosen(REMEMBER, deleted.id, world.bob, "We meet on Monday")
            assert world.memories(world.ann) == [quoted]
            assert await submitted(await chosen(ASK)) == "ok" and said[2] in world.prompt
            asked = len(world.server.requests)
            form = await chosen(ASK)
            old = await chosen(ASK)
            old._interaction.modal["custom_id"] = f"menu:{world.ann.id}:Ask of old:{MESSAGE}"
            assert (await submitted(old)).startswith("I no longer know this form.")
            await world.says(world.bob, world.general, "!memory data erase --yes")
            assert (await submitted(form)).startswith("I no longer have that message")
            form = await chosen(ASK, MESSAGE + 2, world.ann, "EOW, as usual")
            await world.restart()
            assert (await submitted(form)).startswith("I no longer have that message")
            assert len(world.server.requests) == asked

    async def test_only_what_is_harmless_is_offered_and_only_if_the_admin_lets_people_install_it(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = ["oauth2", "applications", "@me"]
        others = [one for one in router._ROUTES["GET"] if one[0] != path]
        ((_, usual),) = [one for one in router._ROUTES["GET"] if one[0] == path]
        chosen: dict[str, Any] = {}
        mine = (path, lambda ctx: usual(ctx) | {"integration_types_config": chosen})
        monkeypatch.setitem(router._ROUTES, "GET", [*others, mine])
        async with start(**QUIET) as world:
            for answer, people in (({}, True), ({"0": {}}, False), ({"0": {}, "1": {}}, True)):
                chosen = answer
                await world.restart()
                registered = world.env.backend.commands[None].values()
                kinds = {one["name"]: one["integration_types"] for one in registered}
                anywhere = {name for name, where in kinds.items() if 1 in where}
                assert anywhere == ({"memory", "remind", "ask", REMEMBER, LEARNED, ASK} if people else set())
                assert all(0 in where for where in kinds.values()) and len(kinds) > 5
                for one in registered:
                    assert {0, 1} <= set(one["contexts"])
                    assert (2 in one["contexts"]) is (one["name"] in anywhere)


def plain_commands(world: World, root: str) -> list[str]:
    """The commands below a root that need nothing to be said with them."""

    def below(options: list[dict[str, Any]], path: str) -> list[str]:
        inner = [one for one in options if one["type"] in (1, 2)]
        if not inner:
            return [] if any(one.get("required") for one in options) else [path]
        return [name for one in inner for name in below(one.get("options", []), f"{path} {one['name']}")]

    return below(world.env.backend.commands[None][root, 1]["options"], root)
