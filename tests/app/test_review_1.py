"""What answers in threads, menus and questions on the side leave behind, and whom they could tell."""

import asyncio
from typing import Any

import discord

from discoclaw.bot.threads import DELETED
from discoclaw.core.attached import Unreadable
from discoclaw.core.message import Said
from tests.app import elsewhere
from tests.app.conftest import Start, World
from tests.app.erasing import summaries
from tests.app.menus import ASK, QUIET, REMEMBER, remembered, said, texts
from tests.app.models import Scripted
from tests.app.of_threads import QUESTION, Namer, shown, thread_of
from tests.app.older import Ears, link

SECRET = "The password of the safe is ostrich"


class Summing(Namer):
    """Writes into each summary what it was given to sum up."""

    async def structured(self, *, prompt: str, shape: Any, **more: Any) -> Any:
        if "summary" not in shape.model_fields:
            return await super().structured(prompt=prompt, shape=shape, **more)
        return shape.model_validate({"summary": SECRET if "ostrich" in prompt else "They talked."})


class TestAQuestionThatIsTakenBack:
    async def test_leaves_the_thread_also_if_its_person_wants_no_memory(self, start: Start) -> None:
        model = Namer("I see.", "Well.")
        async with start(model, threads=True) as world:
            await world.ann.slash(world.general, "memory data optout")
            asked = await world.ann.send(world.general, f"{SECRET}. Is that good?")
            await world.settle()
            thread = thread_of(world, world.general)
            await world.ann.delete(asked)
            await world.settle()
            await world.bob.send(thread, "What was it about?")
            await world.settle()
            assert "ostrich" not in model.prompt

    async def test_leaves_the_thread_when_it_is_edited(self, start: Start) -> None:
        model = Namer("I see.", "Well.")
        async with start(model, threads=True) as world:
            asked = await world.ann.send(world.general, f"{SECRET}. Is that good?")
            await world.settle()
            thread = thread_of(world, world.general)
            await world.ann.edit(asked, "Is that good?")
            await world.settle()
            await world.bob.send(thread, "What was it about?")
            await world.settle()
            assert "ostrich" not in model.prompt and "Is that good?" in model.prompt

    async def test_leaves_the_threads_summary(self, start: Start) -> None:
        model = Summing("I see.", "Well.")
        async with start(model, threads=True, summary_every=1, extraction_enabled=False) as world:
            asked = await world.ann.send(world.general, f"{SECRET}. Is that good?")
            await world.settle()
            thread = thread_of(world, world.general)
            await world.bob.send(thread, "Who knows?")
            await world.settle()
            assert "ostrich" in summaries(world)
            await world.ann.delete(asked)
            await world.settle()
            assert "ostrich" not in summaries(world)

    async def test_is_not_told_by_the_name_after_a_bulk_deletion(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            asked = await world.ann.send(world.general, QUESTION)
            await world.settle()
            channel = world.app.client.get_channel(world.general.id)
            assert isinstance(channel, discord.TextChannel)
            other = await world.bob.send(world.dev, "x")
            await channel.delete_messages([discord.Object(asked.id), discord.Object(other.id)])
            await world.settle()
            assert thread_of(world, world.general).name == DELETED


class TestTheName:
    async def test_tells_nothing_that_is_hidden_as_a_spoiler(self, start: Start) -> None:
        model = Namer("||The butler||, again.")
        async with start(model, threads=True) as world:
            await world.ann.send(world.general, "Is ||the butler|| the murderer?")
            await world.settle()
            (named,) = model.named
            assert "Is … the murderer?" in named and "butler" not in named

    async def test_is_not_made_for_somebody_who_was_erased_meanwhile(self, start: Start) -> None:
        model = Namer()
        model.wait.clear()
        async with start(model, threads=True) as world:
            sending = asyncio.ensure_future(world.ann.send(world.general, QUESTION))
            await model.asked_for_name.wait()
            await world.memory.erase(f"user-{world.ann.id}")
            model.wait.set()
            await sending
            await world.settle()
            assert thread_of(world, world.general).name == "Forgotten question"

    async def test_no_longer_tells_what_was_deleted_while_the_bot_was_away(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            await world.ann.send(world.general, "Hello!")
            asked = await world.ann.send(world.general, QUESTION)
            await world.settle()

            def meanwhile() -> None:
                world.env.backend.delete_message(world.general.id, asked.id)

            await world.restart(meanwhile=meanwhile)
            await world.settle()
            assert world.env.backend.channels[asked.id].name == DELETED

    async def test_no_longer_tells_what_was_edited_away(self, start: Start) -> None:
        async with start(Namer(title="Ostrich as a password"), threads=True) as world:
            asked = await world.ann.send(world.general, f"{SECRET}. Is that good?")
            await world.settle()
            assert thread_of(world, world.general).name == "Ostrich as a password"
            await world.ann.edit(asked, "Is that password good?")
            await world.settle()
            assert thread_of(world, world.general).name == "Is that password good?"

    async def test_stays_when_an_edit_takes_nothing_of_it_away(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            asked = await world.ann.send(world.general, QUESTION)
            await world.settle()
            await world.ann.edit(asked, QUESTION + " Thanks")
            await world.settle()
            assert thread_of(world, world.general).name == "Kneading sourdough by hand"

    async def test_is_not_made_of_what_was_edited_away_while_it_was_being_made(self, start: Start) -> None:
        model = Editing("Is it good?", title="An ostrich")
        async with start(model, threads=True) as world:
            model.world = world
            await world.ann.send(world.general, f"Is it good? {'x' * 70} ostrich")
            await world.settle()
            (named,) = model.named
            assert "ostrich" in named and "ostrich" not in thread_of(world, world.general).name

    async def test_is_of_the_question_as_it_is_when_its_turn_comes(self, start: Start) -> None:
        model = Editing("Is that good?", "I see.", "Well.")
        async with start(model, threads=True) as world:
            model.world = world
            model.second = f"{SECRET}. Is that good?"
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            names = [one.name for one in world.general.threads]
            assert len(names) == 2 and not any("ostrich" in one for one in names)
            await world.ann.send(world.general.threads[-1], "What was it about?")
            assert "ostrich" not in model.prompt


class Editing(Namer):
    """Has the newest message of #general edited to `now`: while it makes a title, or, if there is a `second`
    message to be said, while it answers the first."""

    def __init__(self, now: str, *words: Any, title: str = "A title") -> None:
        super().__init__(*words, title=title)
        self.now = now
        self.second = ""
        self.world: Any = None

    async def stream(self, request: Any) -> Any:
        second, self.second = self.second, ""
        if second:
            backend = self.world.env.backend
            heard = self.world.app.client.wait_for("message")
            backend.create_message(self.world.general.id, self.world.bob.id, second)
            await heard
            await asyncio.sleep(0)
            await self._edit()
        async for event in super().stream(request):
            yield event

    async def structured(self, *, purpose: Any, **more: Any) -> Any:
        made = await super().structured(purpose=purpose, **more)
        if purpose == "title" and self.title == "An ostrich":
            await self._edit()
        return made

    async def _edit(self) -> None:
        world = self.world
        heard = world.app.client.wait_for("raw_message_edit")
        talk = [one for one in world.general.history() if one.type is discord.MessageType.default]
        world.env.backend.edit_message(world.general.id, talk[-1].id, {"content": self.now})
        await heard
        await asyncio.sleep(0)


class TestWhereNoThreadOpens:
    async def test_a_question_that_was_deleted_tells_nothing_about_threads(self, start: Start) -> None:
        async with start(Namer("one"), threads=True) as world:
            world.env.inject_error("POST", "/channels/*/messages/*/threads", status=404, code=10008)
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            assert shown(world.general) == [QUESTION, "one"]


class TestRememberedWordsOfOthers:
    async def test_go_when_they_are_deleted_where_the_bot_does_not_listen(self, start: Start) -> None:
        async with start(Scripted(), **QUIET, channels=frozenset({"1"})) as world:
            message = await world.bob.send(world.dev, "The release is on Friday")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            assert len(await texts(world, world.ann)) == 1
            await world.bob.delete(message)
            await world.settle()
            assert await texts(world, world.ann) == []

    async def test_go_when_they_are_edited_away_where_the_bot_does_not_listen(self, start: Start) -> None:
        async with start(respond_mode="mention", channels=frozenset({"1"})) as world:
            message = await world.bob.send(world.dev, "The release is on Friday")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            await world.bob.edit(message, "I prefer tabs over spaces.")
            await world.settle()
            assert await texts(world, world.ann) == [] and await texts(world, world.bob) == []

    async def test_of_somebody_who_wants_no_memory_cannot_be_asked_about(self, start: Start) -> None:
        async with start(Scripted("Friday."), **QUIET) as world:
            await world.bob.slash(world.dev, "memory data optout")
            message = await world.bob.send(world.dev, "EOW, as usual")
            form = await world.ann.context_menu(world.dev, ASK, message)
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            await world.settle()
            assert said(result).startswith("I can't read what they wrote") and world.model.requests == []

    async def test_asked_about_is_not_shown_as_it_was_before_an_edit(self, start: Start) -> None:
        async with start(Scripted("Friday."), **QUIET) as world:
            message = await world.bob.send(world.dev, f"{SECRET}, as usual")
            form = await world.ann.context_menu(world.dev, ASK, message)
            await world.bob.edit(message, "As usual")
            await world.settle()
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            await world.settle()
            assert said(result) == "Friday."
            assert "As usual" in world.model.prompt and "ostrich" not in world.model.prompt

    async def test_a_forward_is_not_ones_own_words(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            first = await world.bob.send(world.dev, "I like cats")
            await world.ann.forward(first, world.general)
            message = world.general.last_message
            result = await world.ann.context_menu(world.general, REMEMBER, message)
            (item,) = await remembered(world, world.ann)
            assert item.facets.author == "inferred", (said(result), item)


async def locked(world: World) -> Any:
    """A voice channel that everybody sees and only Ann and the bot may join: only they read its talk."""
    board = world.guild.create_voice_channel("board")
    await world.settle()
    channel = world.app.client.get_channel(board.id)
    assert isinstance(channel, discord.VoiceChannel)
    for who, may in ((world.ann, True), (world.guild.me, True), (world.guild.default_role, False)):
        allow, deny = discord.PermissionOverwrite(connect=may).pair()
        kind: Any = 0 if who.id == world.guild.id else 1
        await channel._state.http.edit_channel_permissions(
            board.id, who.id, str(allow.value), str(deny.value), kind
        )
    await world.settle()
    return board


class TestALockedVoiceChannel:
    async def test_is_not_read_by_a_link_for_somebody_who_may_not_join(self, start: Start) -> None:
        async with start() as world:
            ears, board = Ears(world), await locked(world)
            told = await world.ann.send(board, "We buy Initech")
            for person, why in ((world.bob, "one of us may not read"), (world.ann, "not everybody here")):
                await person.send(world.general, f"see {link(told, board, server=world.guild)}")
                (refused,) = await ears.linked()
                assert isinstance(refused, Unreadable) and why in refused.why
            await world.ann.send(board, f"see {link(told, board, server=world.guild)}")
            (found,) = await ears.linked()
            assert isinstance(found, Said) and found.text == "We buy Initech"

    async def test_is_no_open_place_for_what_is_remembered_of_it(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            board = await locked(world)
            message = await world.ann.send(board, "We buy Initech")
            await world.ann.forward(message, board)
            await world.ann.context_menu(board, REMEMBER, board.last_message)
            (item,) = await remembered(world, world.ann)
            assert item.facets.sensitivity == "private"


class TestAForeignServer:
    async def test_its_channels_name_opens_no_context_file(self, start: Start) -> None:
        async with start(Scripted("Tabs."), **QUIET) as world:
            folder = world.folder / "content" / "discord" / "channels"
            folder.mkdir(parents=True)
            (folder / "plans.md").write_text("We buy Initech in May.", encoding="utf-8")
            await world.restart()
            await elsewhere.on_foreign_server(world, world.ann, elsewhere.slash(world, "ask", text="Plans?"))
            request = world.model.requests[-1]
            assert "Initech" not in world.model.prompt + "".join(one.text for one in request.system)
