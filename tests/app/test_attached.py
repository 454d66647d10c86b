"""What people attach and link to, from Discord to what a turn gets of it."""

from collections.abc import Sequence
from typing import Any

import discord
import pytest

from discoclaw.app.files import Files
from discoclaw.core.attached import FileRef, Picture, TextFile, Unreadable
from discoclaw.core.message import Inbound, Said
from tests.app.conftest import Start, World
from tests.app.previewing import closed, says, thread
from tests.session.files import corpus

SECRET = "ghp_" + "a1B2" * 9


class Ears:
    """The messages that the bot hears, as the parts inside know them."""

    def __init__(self, world: World) -> None:
        self.heard: list[Inbound] = []
        self._files = world.app.feature(Files)
        world.app.client.heard_hooks.append(self.heard.append)

    @property
    def last(self) -> Inbound:
        return self.heard[-1]

    async def read(self, files: Sequence[FileRef]) -> list[Any]:
        return [await self._files.reader.read(one) for one in files]

    async def linked(self) -> Sequence[Said | Unreadable]:
        return await self._files.linked.messages(self.last)


def link(message: Any, channel: Any, *, host: str = "discord.com", server: Any = None) -> str:
    guild = getattr(channel, "guild", None) if server is None else server
    return f"https://{host}/channels/{guild.id if guild else '@me'}/{channel.id}/{message.id}"


class TestAttachedFiles:
    async def test_arrive_with_their_message_and_can_be_read(self, start: Start) -> None:
        async with start() as world:
            ears = Ears(world)
            sent = await world.ann.send(
                world.general,
                "look",
                attachments=[
                    ("cat.png", corpus.saved(corpus.photo(), "PNG")),
                    ("message.txt", b"a paste"),
                ],
            )
            picture, paste = ears.last.files
            assert (picture.name, picture.type, picture.voice) == ("cat.png", "image/png", False)
            ids = (str(sent.id), str(world.ann.id), str(world.general.id))
            assert (paste.message_id, paste.author_id, paste.channel_id) == ids
            seen, text = await ears.read(ears.last.files)
            assert isinstance(seen, Picture) and (seen.width, seen.height) == (640, 480)
            assert text == TextFile("message.txt", "a paste")

    async def test_of_forwarded_and_of_replied_to_messages_arrive_too(self, start: Start) -> None:
        async with start() as world:
            ears = Ears(world)
            first = await world.bob.send(world.dev, "the log", attachments=[("build.log", b"it failed")])
            await world.ann.forward(first, world.general)
            assert await ears.read(ears.last.files) == [TextFile("build.log", "it failed")]
            assert ears.last.files[0].author_id == str(world.ann.id)
            await world.ann.send(world.dev, "what does this say?", reply_to=first)
            quoted = ears.last.quoted
            assert quoted is not None and ears.last.files == ()
            assert await ears.read(quoted.files) == [TextFile("build.log", "it failed")]
            assert quoted.files[0].author_id == str(world.bob.id)

    async def test_have_names_without_secrets(self, start: Start) -> None:
        async with start() as world:
            ears = Ears(world)
            await world.ann.send(world.general, "keys", attachments=[(f"{SECRET}.txt", SECRET.encode())])
            (file,) = ears.last.files
            assert SECRET not in file.name and SECRET not in repr(file)
            (found,) = await ears.read(ears.last.files)
            assert isinstance(found, TextFile) and "[REDACTED GitHub token]" in found.text

    async def test_that_are_broken_or_gone_have_a_sentence(self, start: Start) -> None:
        async with start(file_max_mb=1) as world:
            ears = Ears(world)
            await world.ann.send(
                world.general, "see", attachments=[("half.png", corpus.PNG), ("large.txt", b"a" * 1_100_000)]
            )
            half, large = await ears.read(ears.last.files)
            assert "“half.png” can't be opened" in half.why
            assert "“large.txt” is larger than 1 MB" in large.why
            world.env.backend.cdn._blobs.clear()
            assert "no longer there" in (await ears.read(ears.last.files[:1]))[0].why


async def room(world: World, *people: Any) -> Any:
    """A channel that only these people see, and the bot."""
    seen = {one: discord.PermissionOverwrite(view_channel=True) for one in (*people, world.guild.me)}
    nobody = {world.guild.default_role: discord.PermissionOverwrite(view_channel=False)}
    return world.guild.create_text_channel("room", overwrites={**nobody, **seen})


class TestLinkedMessages:
    @pytest.mark.parametrize("host", ["discord.com", "canary.discord.com", "ptb.discord.com"])
    async def test_of_an_open_channel_are_read_with_their_files(self, start: Start, host: str) -> None:
        async with start() as world:
            ears = Ears(world)
            told = await world.bob.send(world.dev, f"it is {SECRET}", attachments=[("a.txt", b"words")])
            await world.ann.send(world.general, f"see {link(told, world.dev, host=host)}, please")
            (found,) = await ears.linked()
            assert isinstance(found, Said)
            assert (found.name, found.author_id) == ("bob", str(world.bob.id))
            assert found.text.startswith("it is [REDACTED GitHub token]")
            assert await ears.read(found.files) == [TextFile("a.txt", "words")]

    async def test_of_a_hidden_channel_are_not_read_in_an_open_one(self, start: Start) -> None:
        async with start() as world:
            ears, hidden = Ears(world), await room(world, world.ann)
            told = await world.ann.send(hidden, "the plan is secret")
            there = link(told, hidden)
            await world.ann.send(world.general, f"see {there}")
            (refused,) = await ears.linked()
            assert isinstance(refused, Unreadable) and "not everybody here may read" in refused.why
            for place in (hidden, None):
                await says(world, place, f"see {there}")
                (found,) = await ears.linked()
                assert isinstance(found, Said) and found.text == "the plan is secret"

    async def test_that_the_person_may_not_read_are_as_good_as_gone(self, start: Start) -> None:
        async with start() as world:
            ears, hidden = Ears(world), await room(world, world.ann)
            told = await world.ann.send(hidden, "the plan is secret")
            whys = set()
            for there in (link(told, hidden), link(told, world.dev), link(told, hidden, server=told)):
                await world.bob.send(world.general, f"see {there}")
                (refused,) = await ears.linked()
                assert isinstance(refused, Unreadable)
                whys.add(refused.why)
            assert len(whys) == 1 and "it's gone, or one of us may not read" in whys.pop()

    async def test_of_a_private_thread_are_for_those_in_it(self, start: Start) -> None:
        async with start() as world:
            ears, inside = Ears(world), await closed(world, world.ann)
            told = await world.ann.send(inside, "only for us")
            for person, place, why in (
                (world.ann, world.general, "not everybody here"),
                (world.bob, world.general, "it's gone, or one of us"),
            ):
                await person.send(place, f"see {link(told, inside, server=world.guild)}")
                (refused,) = await ears.linked()
                assert isinstance(refused, Unreadable) and why in refused.why
            await world.ann.send(inside, f"see {link(told, inside, server=world.guild)}")
            (found,) = await ears.linked()
            assert isinstance(found, Said) and found.text == "only for us"

    async def test_of_a_hidden_channels_thread_are_read_in_that_channel(self, start: Start) -> None:
        async with start() as world:
            ears, hidden = Ears(world), await room(world, world.ann)
            talk = await thread(world, hidden)
            told = await world.ann.send(talk, "in the thread")
            await world.ann.send(hidden, f"see {link(told, talk, server=world.guild)}")
            (found,) = await ears.linked()
            assert isinstance(found, Said) and found.text == "in the thread"

    async def test_of_direct_messages_are_read_only_there(self, start: Start) -> None:
        async with start() as world:
            ears = Ears(world)
            told = await world.ann.send_dm("between us")
            await world.ann.send_dm(f"see {link(told, world.ann_dm)}")
            (found,) = await ears.linked()
            assert isinstance(found, Said) and found.text == "between us"
            for person in (world.ann, world.bob):
                await person.send(world.general, f"see {link(told, world.ann_dm)}")
                (refused,) = await ears.linked()
                assert isinstance(refused, Unreadable) and "one of us may not read" in refused.why

    async def test_are_read_only_where_the_bot_listens(self, start: Start) -> None:
        async with start(channels=frozenset()) as world:
            told = await world.bob.send(world.dev, "elsewhere")
            await world.restart(channels=frozenset({str(world.general.id)}))
            ears = Ears(world)
            await world.ann.send(world.general, f"see {link(told, world.dev)}")
            (refused,) = await ears.linked()
            assert isinstance(refused, Unreadable) and "I don't listen" in refused.why

    async def test_of_many_links_the_first_three_are_read(self, start: Start) -> None:
        async with start() as world:
            ears = Ears(world)
            told = [await world.bob.send(world.dev, f"number {one}") for one in range(4)]
            links = [link(one, world.dev) for one in (told[0], *told)]
            await world.ann.send(world.general, " ".join(links))
            *read, refused = await ears.linked()
            assert [one.text for one in read if isinstance(one, Said)] == [
                "number 0",
                "number 1",
                "number 2",
            ]
            assert isinstance(refused, Unreadable) and "I read 3 links" in refused.why
