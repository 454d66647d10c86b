"""What tests of previews share: things to know, places to ask about, and how a preview is read."""

import re
from collections.abc import Sequence
from typing import Any

import discord

from discoclaw.bot.texts.markup import words
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Kind, Sensitivity
from discoclaw.core.subject import user_subject
from discoclaw.core.yours import read_by, yours
from tests.app.conftest import World
from tests.app.models import Scripted
from tests.prompt.reader import GROUP_TITLE, TURN_TITLES, sections, talk

_, SENDER, DURABLE, ROLLING, RECENT, *_ = TURN_TITLES
ITEMS: Sequence[tuple[Kind, str, Sensitivity]] = (
    ("preference", "User prefers short answers.", "normal"),
    ("constraint", "User never wants emoji.", "normal"),
    ("fact", "User's teapot is blue.", "normal"),
    ("fact", "User's sister lives in Oslo.", "private"),
    ("project", "User builds a teapot robot in Rust.", "normal"),
    ("tool", "User writes in vim.", "normal"),
    ("person", "User's boss is called Maria.", "private"),
    ("fact", "User's teapot is BLUE?", "normal"),
    ("fact", "User's bank card has the PIN of old.", "confidential"),
    ("workflow", "User reviews pull requests on Monday. " + "That is how it goes. " * 30, "normal"),
    ("preference", "User prefers tea. " + "It should be green. " * 12, "normal"),
)
SENTENCES = (
    "what colour is my teapot?",
    "where does my sister live, and who is Maria?",
    "what else do you know about me?",
    "and why?",
    "how do I review pull requests in vim?",
    "hello",
)


async def knows(world: World, person: Any, *items: tuple[Kind, str, Sensitivity], **at: Any) -> None:
    """Have the bot remember things about a person."""

    def make(draft: Draft) -> str:
        for kind, text, marked in items:
            draft.upsert(kind, text, Origin("inferred", said_at=1, dm_privacy="open"), marked=marked)
        return ""

    await world.memory.change(user_subject(str(person.id)), "learned", make, **at)


async def shown(result: Any) -> str:
    """The whole answer to a slash command, the files included; only the person may see any of it."""
    messages = [result.response, *result.followups]
    assert all(message.ephemeral for message in messages)
    return await text_of(messages)


async def text_of(messages: Sequence[Any]) -> str:
    texts = []
    for message in messages:
        files = [(await file.read()).decode() for file in message.attachments]
        texts += files or [message.content]
    return "\n".join(texts)


async def preview(world: World, channel: Any = "", about: str = "", *, person: Any = None) -> str:
    """What somebody is answered who asks about #general, or another channel, in their DM.

    There the answer is a text. What a slash command shows is a card of the same.
    """
    who = person or world.ann
    named = channel if isinstance(channel, str) and channel else f"<#{(channel or world.general).id}>"
    dm = who.user.dm_channel
    asked = await who.send_dm(f"!memory preview {named} {about}".strip())
    await world.settle()
    return await text_of([message for message in dm.history() if message.id > asked.id])


def below(text: str, title: str) -> list[str] | None:
    """The lines below a title of a preview; None if there is no such title."""
    parts = re.split(r"\n\n(?=\*\*)", text)
    found = [part for part in parts if part.startswith(f"**{title}**")]
    return found[0].splitlines()[1:] if found else None


def memories(lines: Sequence[str] | None) -> list[str]:
    """What the memories in some lines of a preview say."""
    found = (re.fullmatch(r"- \[(\w+)\] (.*) \(id [^()]*\)(?:;.*)?", line) for line in lines or ())
    return [f"[{one[1]}] {one[2]}" for one in found if one is not None]


def left_out(text: str) -> dict[str, list[str]]:
    """The memories that a preview says would be left out, by the reason it gives."""
    found: dict[str, list[str]] = {}
    reason = ""
    for line in below(text, "Left out") or ():
        if line.startswith("- "):
            found[reason] += memories([line])
        elif not line.startswith("("):
            reason = line.rpartition(" (")[0] or line
            found[reason] = []
    return found


def durable(model: Scripted) -> list[str]:
    """What the memories in the last prompt say, as the model reads them."""
    lines = sections(model.prompt, TURN_TITLES).get(DURABLE, [])
    found = [re.fullmatch(r"- (\[\w+\] .*) \(src: .*\) \[i\d+\]", line) for line in lines]
    return [one[1] for one in found if one is not None]


def as_ann_reads(model: Scripted) -> list[str]:
    """The same, as Ann reads these memories."""
    with read_by("ann"):
        read = [re.sub(r"^(\[\w+\] )(.*)", lambda m: m[1] + yours(m[2]), one) for one in durable(model)]
    return [words(one).replace("\\[", "[", 1) for one in read]


def agrees(text: str, model: Scripted) -> None:
    """A preview lists exactly what the model was sent: memories, summary, talk, notes, and who is asking."""
    sent = sections(model.prompt, TURN_TITLES)
    assert sorted(memories(below(text, "From your memory"))) == sorted(as_ann_reads(model))
    assert "\n".join(below(text, "Summary of the conversation") or ()) == "\n".join(sent.get(ROLLING, []))
    recent = [line for line in below(text, "Recent messages") or () if line.startswith("- ")]
    assert recent == [f"- {words(line, 160)}" for line in talk(model.prompt)]
    listed = [line for line in below(text, "Notes about the channel") or () if line.startswith("> ")]
    assert listed == [f"> {words(line)}" for line in sent.get(GROUP_TITLE, [])]
    about = [line for line in below(text, "About you") or () if line.startswith("- ")]
    assert about == sent[SENDER]


async def places(world: World) -> dict[str, Any]:
    """Channels of every kind, and threads; None stands for the direct messages."""
    nobody = discord.PermissionOverwrite(view_channel=False)
    some = discord.PermissionOverwrite(view_channel=True, read_message_history=True, send_messages=True)
    few = world.guild.create_text_channel(
        "few", overwrites={world.guild.default_role: nobody, world.ann: some, world.env.bot.user: some}
    )
    await world.env.settle()
    found = {"general": world.general, "dev": world.dev, "few": few, "dm": None}
    return {**found, "thread": await thread(world, world.general), "closed": await closed(world, world.ann)}


async def thread(world: World, channel: Any, **more: Any) -> Any:
    parent: Any = world.env.bot.get_channel(channel.id)
    made = await parent.create_thread(
        name="a talk", type=more.pop("type", discord.ChannelType.public_thread), **more
    )
    await world.env.settle()
    return next(one for one in channel.threads if one.id == made.id)


async def closed(world: World, *members: Any) -> Any:
    """A private thread of #general with these members."""
    made = await thread(world, world.general, type=discord.ChannelType.private_thread)
    inside: Any = world.env.bot.get_channel(world.general.id).get_thread(made.id)
    for member in members:
        await inside.add_user(discord.Object(member.id))
    await world.env.settle()
    return made


async def says(world: World, place: Any, text: str, person: Any = None) -> None:
    """A message that somebody writes; in their direct messages without a place."""
    one = person or world.ann
    await (one.send(place, text) if place is not None else one.send_dm(text))
