"""The whole bot with an embedding provider and an archive: what talk is found, what is sent, what leaves."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import discord
import pytest

from discoclaw.app.archive import Archived
from discoclaw.app.finding import Finding
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.subject import user_subject
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.recall.floor import texts
from discoclaw.session.archive_search import HEADING
from tests.app.conftest import Start, World
from tests.app.live import edit, here
from tests.app.models import Scripted
from tests.contract.cards import said
from tests.memory.archives import rows
from tests.servers.embeddings_api import EmbeddingsServer, Shaped, failure
from tests.servers.messages_api import MessagesServer, text, tool_use
from tests.session.scene import until

CAT = "my cat sleeps"
QUESTION = "where does the feline nap"
OTHERS = ("the lamp broke", "soup for lunch", "train was late", "rain all weekend", "printer jammed again")
NOTHING = "I found nothing like that in the messages I kept and you can read."


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"feline": "cat", "nap": "sleeps"}) as server:
        yield server


def near(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    return {
        "embedding_provider": "openai",
        "embedding_url": server.openai_url,
        "embedding_key": "sk-secret",
        "extraction_enabled": False,
        "auto_save": "all",
        "respond_mode": "mention",
        **changes,
    }


def far(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    """The same server at an address that is not taken for this machine."""
    return near(server, embedding_url=f"{server.elsewhere}/v1", **changes)


async def ready(world: World) -> None:
    """Wait until the provider is known to answer, and all talk is embedded."""
    meaning = world.app.feature(Finding).meaning
    await until(lambda: meaning.in_time, seconds=20)
    await world.settle()


async def say(world: World, *texts: str) -> None:
    for one in texts:
        await world.ann.send(world.general, one)
    await ready(world)


async def say_only(world: World, *texts: str) -> None:
    """The same where no provider answers."""
    for one in texts:
        await world.ann.send(world.general, one)
    await world.settle()


async def search(world: World, person: Any, query: str) -> str:
    """What /search answers a member, or a user in their DM."""
    await ready(world)
    asked = person.slash(world.general, "search", query=query) if hasattr(person, "user") else None
    return said((await (asked or person.slash("search", query=query))).response)


async def remember(world: World, fact: str) -> None:
    def wish(draft: Draft) -> None:
        draft.upsert("fact", fact, Origin("stated"))

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)


async def thread(world: World, channel: Any, kind: discord.ChannelType) -> Any:
    made = await world.env.bot.get_channel(channel.id).create_thread(name="a talk", type=kind)
    await world.env.settle()
    return next(one for one in channel.threads if one.id == made.id)


def talk_of(server: EmbeddingsServer) -> list[str]:
    """What was sent to be embedded, without questions, and what the model is measured with."""
    measured = set(texts())
    return [one for one in server.texts if one not in measured and not one.startswith(("what ", "where "))]


def bytes_of(world: World) -> bytes:
    return b"".join(path.read_bytes() for path in (world.folder / "data" / "memory").glob("archive.sqlite*"))


def vectors(world: World) -> dict[int, bytes]:
    archive = world.app.feature(Archived).archiving._archive
    return dict(rows(archive, "SELECT id, vector FROM vectors"))  # type: ignore[arg-type]


class TestSearch:
    async def test_finds_what_was_meant_though_no_word_is_the_same(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT, *OTHERS)
            found = await search(world, world.bob, QUESTION)
            assert CAT in found.split("\n-# <t:")[0]
            assert server.texts.count(QUESTION) == 1

    async def test_finds_nothing_that_nobody_said(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT, *OTHERS)
            assert await search(world, world.bob, "which giraffes knit wool") == NOTHING

    async def test_leaves_the_names_of_people_out_of_what_is_embedded(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT, *OTHERS)
            assert CAT in await search(world, world.bob, "did ann's feline nap")
        assert "did feline nap" in server.texts

    async def test_is_by_the_words_while_the_provider_fails(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT, *OTHERS)
            server.default = failure(500)
            assert CAT in said((await world.bob.slash(world.general, "search", query="cat")).response)
            assert said((await world.bob.slash(world.general, "search", query="feline")).response) == NOTHING

    async def test_of_the_model_embeds_a_query_once_for_memories_and_talk(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with MessagesServer() as api:
            api.script(tool_use(("t1", "memory_search", {"query": f"ann: {QUESTION}"})), text("On the sofa."))
            door = AnthropicProvider(api_key="k", base_url=api.base_url, connect_timeout_s=5)
            model = door.model("haiku", total_timeout_s=20)
            async with start(model, **near(server, context_history=2)) as world:
                await say(world, CAT, *OTHERS)
                await remember(world, "User has a cat.")
                await ready(world)
                assert world.app.client.user is not None
                await world.ann.send(world.general, f"<@{world.app.client.user.id}> what do we know")
                result = str(api.requests[-1].body["messages"][-1])
                assert "User has a cat." in result
                assert CAT in result.split(HEADING)[1]
                assert OTHERS[4] not in result
            await door.close()
        asked = [one for one in server.texts if "feline" in one]
        assert asked == [f": {QUESTION}"]


class TestWhatIsSent:
    async def test_a_provider_elsewhere_gets_what_others_read_along_with_and_no_more(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted("a secret answer"), **far(server, respond_mode="all")) as world:
            role = world.guild.create_role("staff", permissions=discord.Permissions.all())
            staff = world.guild.add_member(world.env.create_user("carl"), roles=[role])
            closed = await thread(world, world.general, discord.ChannelType.private_thread)
            open_ = await thread(world, world.general, discord.ChannelType.public_thread)
            await world.env.bot.get_channel(closed.id).add_user(discord.Object(world.ann.id))  # type: ignore[union-attr]
            await world.ann.send_dm("private zebra words")
            await world.ann.send(closed, "private lion words")
            assert "private zebra" in await search(world, world.ann.user, "zebra")
            await staff.send(world.hidden, "private panda words")
            await world.ann.send(open_, "open giraffe words")
            world.model.then = "an open answer"
            await say(world, CAT)
        assert {CAT, "open giraffe words", "an open answer"} <= set(server.texts)
        sent = " ".join(server.texts)
        assert not [word for word in ("private", "secret", "zebra") if word in sent]

    async def test_one_on_this_machine_gets_private_talk_too(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await world.ann.send_dm("my cat sleeps here")
            assert "my cat sleeps here" in await search(world, world.ann.user, "feline nap here")

    async def test_at_most_so_many_messages_a_day_go_elsewhere_the_newest_first(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await world.restart(embedding_provider="openai", embedding_talk_per_day=2)
            await say(world, "the soup boils")
            assert talk_of(server) == ["the soup boils", OTHERS[4]]
            await world.restart()  # which is no way around it
            await say(world, "a new message")
            assert talk_of(server) == ["the soup boils", OTHERS[4]]
            await world.env.advance_time(86_400)
            await ready(world)
            assert talk_of(server)[2:] == ["a new message", OTHERS[3]]

    async def test_what_was_kept_goes_nowhere_after_the_archive_was_switched_off(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await world.restart(embedding_provider="openai", auto_save="")
            await say(world, "a new message")
            assert talk_of(server) == []

    async def test_nothing_more_goes_elsewhere_from_where_the_archive_is_switched_off_meanwhile(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await world.restart(embedding_provider="openai", embedding_talk_per_day=2)
            await say(world, "the soup boils")
            assert len(talk_of(server)) == 2
            edit(world, {here(world): {"archive": False}})
            await world.ann.send(world.dev, "elsewhere life goes on")
            await world.env.advance_time(86_400)
            await ready(world)
            assert talk_of(server)[2:] == ["elsewhere life goes on"]

    async def test_a_search_that_nobody_else_sees_goes_nowhere_else(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server)) as world:
            await say(world, CAT, *OTHERS)
            await search(world, world.bob, "where is the secret lion")
        assert CAT in server.texts
        assert "lion" not in " ".join(server.texts)

    async def test_a_limit_that_is_reached_is_logged_once_a_day(
        self, start: Start, server: EmbeddingsServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.loops.talk_embedding")
        async with start(Scripted(), **far(server, embedding_talk_per_day=0)) as world:
            for one in OTHERS:
                await say(world, one)
        assert caplog.text.count("no more vectors today") == 1

    async def test_with_none_a_day_nothing_goes_elsewhere(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server, embedding_talk_per_day=0)) as world:
            await say(world, CAT, *OTHERS)
            assert talk_of(server) == []

    async def test_memories_come_first(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **near(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await remember(world, "User has a dog.")
            await world.restart(embedding_provider="openai", respond_mode="all")
            await world.ann.send(world.general, "good morning")
            await ready(world)
            assert server.texts.index("User has a dog.") < server.texts.index("good morning")

    async def test_nothing_of_who_opted_out(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **near(server, embedding_provider="")) as world:
            await say_only(world, CAT)
            await world.bob.send(world.general, "the garden needs water")
            await world.settle()
            await world.ann.send_dm("!memory optout")
            await world.restart(embedding_provider="openai")
            await ready(world)
            assert talk_of(server) == ["the garden needs water"]
            await search(world, world.ann, "what grows thirsty")
            assert "what grows thirsty" not in server.texts

    async def test_nothing_of_short_exclamations(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, "haha", "ok!", "and you?", CAT)
            assert talk_of(server) == [CAT]


class TestWhatLeaves:
    async def test_an_edited_message_gets_another_vector(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, *OTHERS)
            message = await world.ann.send(world.general, "my dog barks")
            await ready(world)
            before = vectors(world)[message.id]
            await world.ann.edit(message, CAT)
            assert CAT in await search(world, world.bob, QUESTION)
            assert vectors(world)[message.id] != before

    async def test_a_deleted_one_is_found_no_more_and_none_of_its_vector_is_left(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, *OTHERS)
            message = await world.ann.send(world.general, CAT)
            assert CAT in await search(world, world.bob, QUESTION)
            await world.ann.delete(message)
            assert await search(world, world.bob, QUESTION) == NOTHING
            assert message.id not in vectors(world)
            assert len(vectors(world)) == len(OTHERS)

    @pytest.mark.parametrize("command", ["!memory erase --yes", "!memory optout"])
    async def test_of_somebody_who_leaves_there_is_no_byte(
        self, start: Start, server: EmbeddingsServer, command: str
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT, *OTHERS)
            await world.bob.send(world.general, "the garden needs water")
            await ready(world)
            made = list(vectors(world).values())
            assert len(made) == len(OTHERS) + 2
            await world.env.advance_time(1)
            await world.ann.send_dm(command)
            await ready(world)
            assert len(vectors(world)) == 1
            left = bytes_of(world)
            assert [one in left for one in made] == [False] * (len(OTHERS) + 1) + [True]
            assert await search(world, world.bob, QUESTION) == NOTHING

    async def test_of_a_memory_that_is_taken_back_goes_what_it_rested_on(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, *OTHERS, "my rhinoceros snores loudly")
            made = list(vectors(world).values())[-1]
            assert made in bytes_of(world)
            await remember(world, "User has a rhinoceros.")
            await world.env.advance_time(1)
            await world.ann.send_dm("!memory forget User has a rhinoceros.")
            await ready(world)
            assert len(vectors(world)) == len(OTHERS)
            assert made not in bytes_of(world)

    async def test_a_deleted_channel_takes_its_vectors_along(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await world.ann.send(world.dev, CAT)
            await say(world, *OTHERS)
            await world.env.bot.get_channel(world.dev.id).delete()  # type: ignore[union-attr]
            await ready(world)
            assert len(vectors(world)) == len(OTHERS)


class TestFaults:
    async def test_another_model_makes_all_vectors_again(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server, embedding_model="old")) as world:
            await say(world, CAT, *OTHERS)
            await world.restart(embedding_model="new")
            assert CAT in await search(world, world.bob, QUESTION)
            made = [one for request in server.requests if request.model == "new" for one in request.texts]
            assert {CAT, *OTHERS} <= set(made)

    async def test_what_was_said_before_there_was_a_provider_gets_vectors_too(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await world.restart(embedding_provider="openai")
            assert CAT in await search(world, world.bob, QUESTION)

    async def test_vectors_without_a_direction_are_left_out(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **near(server)) as world:
            await say(world, CAT)
            server.script(Shaped(lambda vectors: [[0.0] * len(one) for one in vectors]))
            await say(world, "broken by the provider")
            assert len(vectors(world)) == 1
            assert CAT in await search(world, world.bob, QUESTION)
