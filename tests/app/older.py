"""What the old tests of the whole bot share about vectors, the archive, files and voice messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import discord

from discoclaw.bot.files.linked import Links
from discoclaw.bot.voice.shown import MARK
from discoclaw.core.attached import Unreadable
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.message import Inbound, Said
from discoclaw.core.subject import user_subject
from discoclaw.session.meaning import Meaning
from tests.app.conftest import World, running
from tests.contract.cards import said
from tests.servers.embeddings_api import EmbeddingsServer
from tests.session.scene import until

CAT = "User has a cat called Miso."
THINGS = ("lamp", "sofa", "boat", "kite", "drum", "harp", "vase", "oven", "bike", "sled")
OTHERS = [f"User owns the {thing}." for thing in THINGS]
SILENT, VOICE = 1 << 12, 1 << 13
PORTO = "I moved to Porto."
SHOWN = f"{MARK}“{PORTO}”"


def openai(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    return {
        "embedding_provider": "openai",
        "embedding_url": server.openai_url,
        "embedding_key": "sk-secret",
        "extraction_enabled": False,
        **changes,
    }


async def ready(world: World) -> None:
    """Wait until the provider is known to answer, and all is embedded."""
    meaning = running(world.app, Meaning)
    await until(lambda: meaning.in_time, seconds=20)
    await meaning.settle()


async def remember(world: World, *texts: str, private: bool = False, marked: str = "normal") -> None:
    def wish(draft: Draft) -> None:
        for one in texts:
            draft.upsert("fact", one, Origin("stated", private=private, dm_privacy="strict"), marked=marked)  # type: ignore[arg-type]

    await world.memory.change(user_subject(str(world.ann.id)), "a test", wish)


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


class Ears:
    """The messages that the bot hears, as the parts inside know them."""

    def __init__(self, world: World) -> None:
        self.heard: list[Inbound] = []
        self._linked = Links(world.app.client)
        client = world.app.client
        client.door = replace(client.door, heard=(*client.door.heard, self.heard.append))

    @property
    def last(self) -> Inbound:
        return self.heard[-1]

    async def linked(self) -> Sequence[Said | Unreadable]:
        return await self._linked.messages(self.last)


def link(message: Any, channel: Any, *, host: str = "discord.com", server: Any = None) -> str:
    guild = getattr(channel, "guild", None) if server is None else server
    return f"https://{host}/channels/{guild.id if guild else '@me'}/{channel.id}/{message.id}"


def put(world: World, actor: Any, channel: Any, audio: bytes, reply_to: Any, seconds: float) -> int:
    """Put a voice message into a channel, as a phone sends it. Returns its id."""
    backend = world.env.backend
    (file,) = backend.store_attachments(channel.id, [("voice-message.ogg", audio)])
    file |= {"duration_secs": seconds, "waveform": "AAAA", "content_type": "audio/ogg"}
    reference = {"channel_id": str(channel.id), "message_id": str(reply_to.id)} if reply_to else None
    made = backend.create_message(
        channel.id, actor.id, "", attachments=[file], flags=VOICE, reference=reference
    )
    return int(made.id)


async def speak(
    world: World,
    actor: Any,
    channel: Any,
    audio: bytes = b"porto",
    *,
    reply_to: Any = None,
    seconds: float = 3.2,
) -> discord.Message:
    """Send a voice message, and wait until the bot has done what it does about it."""
    message_id = put(world, actor, channel, audio, reply_to, seconds)
    await world.settle()
    await world.env.settle()
    return next(one for one in channel.history() if one.id == message_id)


def notes(world: World, channel: Any) -> list[str]:
    """Our notes about voice messages in a channel."""
    return [text for text in world.shown(channel) if text.startswith(MARK)]


async def known(world: World, person: Any) -> list[str]:
    await world.settle()
    view = await world.memory.view(user_subject(str(person.id)))
    return sorted(item.text for item in view.active())
