"""The archive in the whole bot: opt in, /search, what follows Discord, and what people have removed."""

import logging
from functools import partial
from typing import Any

import discord
import pytest
from pydantic import SecretStr

from discoclaw.app.archive import Archived
from discoclaw.bot.texts.search import BESIDE, found
from discoclaw.core.autosave import AutoSave
from discoclaw.core.entry import Entry
from discoclaw.core.text import utf16_length
from discoclaw.session.archive_search import ArchiveHit
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.models import Scripted
from tests.contract.cards import said
from tests.memory.leftovers import traces

CANARY = "Kanarie-Ü🐦-4711"
NOTHING = "I found nothing like that in the messages I kept and you can read."


@pytest.fixture(params=["files", "postgresql"])
def start(start: Start, request: pytest.FixtureRequest) -> Start:
    """The same with each kind of archive."""
    if request.param == "files":
        return start
    return partial(start, store=SecretStr(request.getfixturevalue("prepared_database")))


in_a_file = pytest.mark.parametrize("start", ["files"], indirect=True)


async def search(world: World, person: Any, query: str, *, in_dm: bool = False) -> str:
    """What /search answers a person, who alone sees it."""
    await world.settle()
    if in_dm:
        result = await person.user.slash("search", query=query)
    else:
        result = await person.slash(world.general, "search", query=query)
    assert result.ephemeral
    return said(result.response)


async def thread(world: World, channel: Any, kind: discord.ChannelType) -> Any:
    made = await world.env.bot.get_channel(channel.id).create_thread(name="a talk", type=kind)
    await world.env.settle()
    return next(one for one in channel.threads if one.id == made.id)


async def kept(world: World) -> list[str]:
    """All texts in the archive."""
    await world.settle()
    archive = world.app.feature(Archived).archiving._archive  # type: ignore[union-attr]
    return [one.text for one in sorted(archive.readable(), key=lambda one: int(one.message))]


class TestOptIn:
    @pytest.mark.design(156)
    async def test_by_default_nothing_is_kept_and_search_says_how_to_change_that(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await world.ann.send(world.general, "zebras are striped")
            answer = await search(world, world.ann, "zebra")
            assert f"it takes this server's id, `{GUILD_ID}`, or `all`" in answer
            assert "it takes `dm`, or `all`" in await search(world, world.ann, "zebra", in_dm=True)
            assert not (world.folder / "data" / "memory" / "archive.sqlite").exists()

    async def test_of_one_server_its_direct_messages_are_not(self, start: Start) -> None:
        async with start(Scripted(), auto_save=str(GUILD_ID)) as world:
            await world.ann.send(world.general, "zebras are striped")
            await world.ann.send_dm("zebras are secret")
            assert await kept(world) == ["zebras are striped", "ok"]

    async def test_only_people_on_the_allowlist_search_and_are_kept(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all", allow_roles=frozenset()) as world:
            await world.restart(allow_users=frozenset({str(world.ann.id)}))
            await world.bob.send(world.general, "zebras of a guest")
            await world.ann.send(world.general, "zebras of ann")
            assert await kept(world) == ["zebras of ann", "ok"]
            assert "You aren't on my allowlist" in await search(world, world.bob, "zebra")

    async def test_after_it_was_switched_off_nothing_is_found(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all") as world:
            await world.ann.send(world.general, "zebras are striped")
            await world.restart(auto_save="")
            assert "aren't kept" in await search(world, world.ann, "zebra")


class TestSearch:
    async def test_finds_talk_and_answers_with_who_when_where_and_links(self, start: Start) -> None:
        async with start(Scripted("A zebra has stripes."), auto_save="all") as world:
            asked = await world.ann.send(world.general, "what does a zebra look like?")
            found = await search(world, world.bob, "zebra")
            assert found.count("\n-# <t:") == 2
            link = f"https://discord.com/channels/{GUILD_ID}/{world.general.id}/{asked.id}"
            assert (
                "**ann**: `what does a zebra look like?`\n"
                f"-# <t:{int(world.env.now().timestamp())}:R> · <#{world.general.id}> · [open it]({link})"
            ) in found
            assert await search(world, world.bob, "giraffe") == NOTHING

    async def test_says_what_matches_and_what_was_only_said_next_to_it(self, start: Start) -> None:
        async with start(Scripted("They even played my song."), auto_save="all") as world:
            await world.ann.send(world.general, "how was the concert of the zebras?")
            for answer in (
                await search(world, world.bob, "zebra"),
                said((await world.bob.slash(world.general, "memory search", query="zebra")).response),
            ):
                matching, beside = answer.split(BESIDE)
                assert "concert of the zebras" in matching
                assert "played my song" in beside
            assert BESIDE not in await search(world, world.bob, "zebra song")

    async def test_has_a_name_below_memory_and_as_text_answers_where_nobody_else_reads(
        self, start: Start
    ) -> None:
        async with start(Scripted("A zebra has stripes."), auto_save="all", respond_mode="mention") as world:
            await world.ann.send(world.general, "zebras are striped")
            await world.ann.send_dm("zebras are secret")
            await world.settle()
            unseen = await world.ann.slash(world.general, "memory search", query="zebra")
            assert unseen.ephemeral
            assert "zebras are striped" in said(unseen.response)
            await world.ann.send(world.general, "!memory search zebra")
            assert world.answer(world.general).startswith("Only you may see what I find")
            await world.ann.send_dm("!memory search zebra")
            assert "zebras are secret" in world.answer(world.ann_dm)
            assert "striped" not in world.answer(world.ann_dm)

    async def test_only_what_one_may_read_at_that_moment(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all") as world:
            staff = world.guild.create_role("staff", permissions=discord.Permissions.all())
            carl = world.guild.add_member(world.env.create_user("carl"), roles=[staff])
            await carl.send(world.hidden, "zebra hidden")
            await world.ann.send(world.dev, "zebra in dev")
            await world.ann.send_dm("zebra in private")
            for person, texts in ((world.bob, ["zebra in dev"]), (carl, ["zebra hidden", "zebra in dev"])):
                found = await search(world, person, "zebra")
                assert [text for text in ("zebra hidden", "zebra in dev") if text in found] == texts
                assert "private" not in found
            dev = world.env.bot.get_channel(world.dev.id)
            bob = await dev.guild.fetch_member(world.bob.id)  # type: ignore[union-attr]
            for denied in ({"read_message_history": False}, {"view_channel": False}):
                await dev.set_permissions(bob, **denied)  # type: ignore[union-attr]
                assert await search(world, world.bob, "zebra") == NOTHING
            assert "zebra in dev" in await search(world, world.ann, "zebra")

    async def test_a_direct_message_is_its_persons_alone(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all") as world:
            await world.ann.send_dm("zebra of ann")
            await world.bob.user.send_dm("zebra of bob")
            await world.ann.send(world.general, "zebra in the open")
            found = await search(world, world.ann, "zebra", in_dm=True)
            assert "zebra of ann" in found
            assert f"/channels/@me/{world.ann_dm.id}/" in found
            assert "in the open" not in found and "of bob" not in found

    async def test_open_threads_go_by_their_channel_and_private_ones_by_who_is_in_them(
        self, start: Start
    ) -> None:
        async with start(Scripted(), auto_save="all") as world:
            open_ = await thread(world, world.general, discord.ChannelType.public_thread)
            closed = await thread(world, world.general, discord.ChannelType.private_thread)
            inside = world.env.bot.get_channel(closed.id)
            await inside.add_user(discord.Object(world.ann.id))  # type: ignore[union-attr]
            await world.env.settle()
            await world.ann.send(open_, "zebra open")
            await world.ann.send(closed, "zebra closed")
            found = await search(world, world.ann, "zebra")
            assert "zebra open" in found and "zebra closed" in found
            found = await search(world, world.bob, "zebra")
            assert "zebra open" in found and "zebra closed" not in found
            await inside.remove_user(discord.Object(world.ann.id))  # type: ignore[union-attr]
            assert "zebra closed" not in await search(world, world.ann, "zebra")

    @in_a_file
    async def test_an_archive_that_can_not_be_read_is_said_and_costs_no_reply(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(Scripted(), auto_save="all") as world:
            path = world.folder / "data" / "memory" / "archive.sqlite"
            path.mkdir(parents=True)
            await world.ann.send(world.general, "zebras are striped")
            await world.ann.send(world.general, "and white")
            assert world.answer(world.general) == "ok"
            assert "I can't search the archive right now" in await search(world, world.ann, "zebra")
            warnings = [one for one in caplog.messages if "archive: writing failed" in one]
            assert len(warnings) == 1
            path.rmdir()

    @in_a_file
    async def test_a_damaged_archive_is_kept_aside_and_said(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(Scripted(), auto_save="all") as world:
            folder = world.folder / "data" / "memory"
            (folder / "archive.sqlite").write_bytes(b"nonsense" * 1000)
            await world.ann.send(world.general, "zebras are striped")
            assert world.answer(world.general) == "ok"
            assert "zebras are striped" in await search(world, world.ann, "zebra")
            assert len(list(folder.glob("archive.sqlite.corrupt-*"))) == 1
            assert [one.levelno for one in caplog.records if "is damaged" in one.getMessage()] == [
                logging.ERROR
            ]


class TestAnotherStore:
    @in_a_file
    async def test_what_it_left_is_found_no_more_but_still_erased(
        self, start: Start, prepared_database: str
    ) -> None:
        async with start(Scripted(), auto_save="all", respond_mode="mention") as world:
            await world.ann.send(world.general, f"{CANARY} zebra")
            assert await kept(world) == [f"{CANARY} zebra"]
            await world.restart(store=SecretStr(prepared_database))
            path = world.folder / "data" / "memory" / "archive.sqlite"
            assert CANARY.encode() in path.read_bytes()
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            assert CANARY.encode() not in path.read_bytes()


class TestItFollowsDiscord:
    async def test_edits_and_deletions(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all", respond_mode="mention") as world:
            gone = await world.ann.send(world.general, "zebra gone")
            edited = await world.ann.send(world.general, "zebra before")
            assert await kept(world) == ["zebra gone", "zebra before"]
            await world.ann.delete(gone)
            await world.ann.edit(edited, "zebra behind")
            assert await kept(world) == ["zebra behind"]

    async def test_of_an_edited_message_no_old_word_is_left(self, start: Start) -> None:
        async with start(auto_save=AutoSave(everywhere=True)) as world:
            said = await world.ann.send(world.general, "I saw a quokkaedit")
            await world.ann.send(world.general, "I saw a quokka")
            await world.settle()
            await world.ann.edit(said, "a cat")
            assert "a cat" in await kept(world)
            assert traces(world.folder / "data", "quokkaedit") == []
            assert "a cat" in await search(world, world.ann, "cat")
            assert await search(world, world.ann, "quokkaedit") == NOTHING

    async def test_what_was_edited_or_deleted_while_we_were_away(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all", respond_mode="mention") as world:
            await world.ann.send(world.general, "zebra first")
            gone = await world.ann.send(world.general, "zebra gone")
            edited = await world.ann.send(world.general, "zebra before")
            await world.bob.send(world.dev, "zebra elsewhere")
            await kept(world)
            await world.end()
            await world.ann.delete(gone)
            await world.ann.edit(edited, "zebra behind")
            await world.restart(respond_mode="all")
            await world.ann.send(world.general, "hello")
            texts = ["zebra first", "zebra behind", "zebra elsewhere", "hello", "ok"]
            assert await kept(world) == texts

    async def test_a_channel_that_is_deleted(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all", respond_mode="mention") as world:
            await world.ann.send(world.dev, "zebra in dev")
            await world.ann.send(world.general, "zebra in general")
            await kept(world)
            await world.env.bot.get_channel(world.dev.id).delete()  # type: ignore[union-attr]
            assert await kept(world) == ["zebra in general"]

    @in_a_file
    async def test_what_a_crash_lost_comes_back_from_the_history(self, start: Start) -> None:
        async with start(Scripted("Striped, a zebra is."), auto_save="all") as world:
            await world.ann.send(world.general, "what is a zebra like?")
            await world.ann.send(world.general, "!memory remember tea")
            await world.app.feature(Archived).archiving.close()  # type: ignore[union-attr]
            await world.restart()
            for path in (world.folder / "data" / "memory").glob("archive.sqlite*"):
                path.unlink()
            await world.restart()
            assert await kept(world) == ["what is a zebra like?", "Striped, a zebra is."]
            await world.ann.send(world.general, "and now?")
            texts = ["what is a zebra like?", "Striped, a zebra is.", "and now?", "ok"]
            assert await kept(world) == texts


class TestPeopleDecide:
    async def test_erasing_leaves_no_byte_and_nobody_elses_goes(self, start: Start) -> None:
        async with start(Scripted(then=f"You like {CANARY}."), auto_save="all") as world:
            for _ in range(3):
                await world.ann.send(world.general, f"I like {CANARY}")
                await world.ann.send_dm(f"I like {CANARY}")
            world.model.then = "ok"
            await world.bob.send(world.general, "I like coffee")
            assert len(await kept(world)) == 14
            await world.env.advance_time(1)
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            assert traces(world.folder / "data" / "memory", CANARY, str(world.ann.id)) == []
            assert await kept(world) == ["I like coffee", "ok"]
            await world.restart()
            await world.bob.send(world.general, "good morning")  # the history is read again
            assert traces(world.folder / "data" / "memory", CANARY) == []

    async def test_opting_out_removes_ones_talk_and_says_so(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all") as world:
            await world.ann.send(world.general, "I like zebras")
            await world.bob.send(world.general, "I like coffee")
            await world.settle()
            await world.ann.send(world.general, "!memory optout")
            assert "I removed 2 messages from the archive." in world.answer(world.general)
            await world.ann.send(world.general, "I like lions")
            assert await kept(world) == ["I like coffee", "ok"]


class TestTheText:
    @staticmethod
    def hit(text: str, name: str = "Ann", number: int = 1) -> ArchiveHit:
        entry = Entry(str(number), "discord:channel:5", "5", "5", "9", "1", name, text, 1_770_000_000_000)
        return ArchiveHit(entry, 1.0, "")

    def test_nothing_in_a_message_is_markup_or_a_line_of_its_own(self) -> None:
        text = found([self.hit("`x` **bold** <@1> @everyone\n- 2026 [a](http://b)", "A*n*n`\n#")])
        assert text == (
            "- <t:1770000000:R>, <#5>, **A\\*n\\*n #**: "
            "`'x' **bold** <@1> @everyone - 2026 [a](http://b)` <https://discord.com/channels/9/5/1>"
        )

    def test_ten_long_ones_fit_into_a_message(self) -> None:
        text = found([self.hit("👍" * 3000, "n" * 200, number) for number in range(10)])
        assert utf16_length(text) <= 2000
        assert text.splitlines()[-1].startswith("(")
        assert "more messages; add words to find fewer)" in text
