"""`preview`: what people are told that the model would read about them is what it then reads, and no more."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import discord
import pytest

from tests.contract.brain import sum_up
from tests.contract.cards import said
from tests.contract.world import Start, World
from tests.prompt.reader import DURABLE, RECENT, ROLLING, TURN_TITLES, sections

ITEMS = (
    ("preference", "User prefers short answers.", "normal"),
    ("constraint", "User never wants emoji.", "normal"),
    ("fact", "User's teapot is blue.", "normal"),
    ("fact", "User's sister lives in Oslo.", "private"),
    ("project", "User builds a teapot robot in Rust.", "normal"),
    ("tool", "User writes in vim.", "normal"),
    ("person", "User's boss is called Maria.", "private"),
    ("fact", "User's teapot is BLUE?", "normal"),
    ("fact", "User's bank card has the PIN of old.", "confidential"),
    ("preference", "User prefers tea. " + "It should be green. " * 12, "normal"),
)
SENTENCES = (
    "what colour is my teapot?",
    "where does my sister live, and who is Maria?",
    "what else do you know about me?",
    "how do I review pull requests in vim?",
    "hello",
)
NO_CHANNEL = "I can't preview that: there is no such channel, you can't read it, or I don't listen there."
QUIET = {"extraction_enabled": False}


def read(text: str) -> str:
    """A memory as its person reads it."""
    told = text.strip().replace("User's", "Your")
    for verb in ("prefers", "builds", "writes", "wants", "has", "likes", "owns"):
        told = told.replace(f"User {verb}", f"You {verb.removesuffix('s') if verb != 'has' else 'have'}")
    return told.replace("User never wants", "You never want")


async def knows(world: World, person: Any, *items: tuple[str, str, str]) -> None:
    """Somebody imports memories, by a file of ours."""
    memories = [
        {"id": f"durable-{number:08x}", "kind": kind, "text": text, "sensitivity": marked}
        for number, (kind, text, marked) in enumerate(items)
    ]
    body = json.dumps({"format": "discoclaw-memory", "version": 1, "memories": memories}).encode()
    file = ("memories.json", body)
    taken = await person.slash(world.general, "memory data import", file=file)
    assert f"{len(items)} memor" in taken.response.content, taken.response.content
    await world.settle()


async def preview(world: World, channel: Any = "", about: str = "", *, person: Any = None) -> str:
    """What somebody is answered who asks about #general, or another channel, in their DM."""
    who = person or world.ann
    named = channel if isinstance(channel, str) and channel else f"<#{(channel or world.general).id}>"
    asked = await who.send_dm(f"!memory preview {named} {about}".strip())
    await world.settle()
    texts = []
    for message in who.user.dm_channel.history():
        if message.id > asked.id:
            files = [(await file.read()).decode() for file in message.attachments]
            texts += files or [said(message)]
    return "\n".join(texts)


def below(text: str, title: str) -> list[str] | None:
    """The lines below a title of a preview; None if there is no such title."""
    found = [part for part in re.split(r"\n\n(?=\*\*)", text) if part.startswith(f"**{title}**")]
    return found[0].splitlines()[1:] if found else None


def memories(lines: Sequence[str] | None) -> list[str]:
    """What the memories in some lines of a preview say."""
    found = (re.fullmatch(r"- \[\w+\] (.*) \(id [^()]*\)(?:;.*)?", line) for line in lines or ())
    return [one[1].replace("\\", "") for one in found if one is not None]


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


def used(world: World) -> list[str]:
    """The memories in the newest prompt, as their person reads them."""
    lines = sections(world.prompt, TURN_TITLES).get(DURABLE, [])
    found = [re.fullmatch(r"- \[\w+\] (.*) \(src: .*\) \[i\d+\]", line) for line in lines]
    return sorted(read(one[1]) for one in found if one is not None)


def agrees(world: World, text: str) -> None:
    """A preview lists what the model was then sent: memories, summary, talk."""
    sent = sections(world.prompt, TURN_TITLES)
    assert sorted(memories(below(text, "From your memory"))) == used(world)
    assert "\n".join(below(text, "Summary of the conversation") or ()) == "\n".join(sent.get(ROLLING, []))
    listed = [line for line in below(text, "Recent messages") or () if line.startswith("- ")]
    talk = [line for line in sent.get(RECENT, []) if line.startswith("[")]
    assert [line.replace("\\", "")[2:20] for line in listed] == [line[:18] for line in talk]


async def private_thread(world: World, person: Any) -> Any:
    parent: Any = world.env.bot.get_channel(world.general.id)
    made = await parent.create_thread(name="a talk", type=discord.ChannelType.private_thread)
    await made.add_user(discord.Object(person.id))
    await world.env.settle()
    return next(one for one in world.general.threads if one.id == made.id)


class TestWhatItLists:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"inject_max_chars": 220, "context_history": 3, "history_budget": 120},
            {"prompt_budget": 4000, "inject_max_chars": 20_000, "history_budget": 0},
        ],
    )
    async def test_is_what_the_model_is_then_sent(self, start: Start, changes: dict[str, Any]) -> None:
        async with start(**QUIET, **changes) as world:
            world.brain.writes("summary", "They spoke of tabs.")
            await knows(world, world.ann, *ITEMS)
            await world.says(world.ann, world.general, "!memory forget User writes in vim.")
            places = [world.general, await private_thread(world, world.ann), world.ann_dm]
            for place in places:
                for words in ("shall we use tabs?", "tabs it is, " * 5):
                    await world.says(world.ann, place, words)
            await world.restart()
            for number, place in enumerate(places):
                for about in SENTENCES[number % 2 :: 2]:
                    text = await preview(world, place if place is not world.ann_dm else "dm", about)
                    await world.says(world.ann, place, about)
                    agrees(world, text)

    async def test_without_a_sentence_is_what_is_always_there_and_what_may_come(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await knows(world, world.ann, *ITEMS)
            for place, about in itertools.product((world.general, world.ann_dm), SENTENCES[:3]):
                text = await preview(world, place if place is not world.ann_dm else "dm")
                always = memories(below(text, "Always"))
                fits = memories(below(text, "When it fits what you write"))
                assert len(always) >= 2 and "(Some of these leave if" not in text
                await world.says(world.ann, place, about)
                assert set(always) <= set(used(world)) <= {*always, *fits}
            text = await preview(world, about="what colour is my teapot?")
            assert re.search(r"teapot is .* \(id .*\); for colour, teapot$|teapot$", text, re.MULTILINE)
            assert re.search(r"short answers\. \(id .*\); always$", text, re.MULTILINE)
            assert "; you ask for everything" in await preview(world, about="what do you know about me?")


class TestWhatItLeavesOut:
    async def test_is_named_with_the_reason(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await knows(world, world.ann, *ITEMS)
            await world.says(world.ann, world.general, "!memory forget User writes in vim.")
            text = await preview(world, about="what colour is my teapot?")
            found = left_out(text)
            assert found["Forgotten"] == ["You write in vim."]
            assert found["Confidential: I give these to no model"] == ["Your bank card has the PIN of old."]
            assert len(found["Private: I use these in our DMs only"]) == 2
            assert len(found["Says the same as one that is used"]) == 1
            everything = memories(text.splitlines())
            assert len(everything) == len(ITEMS) == len(set(everything))
            in_dm = left_out(await preview(world, "dm", "what colour is my teapot?"))
            assert "Private: I use these in our DMs only" not in in_dm
            assert "Confidential: I give these to no model" in in_dm


class TestWhoSeesIt:
    async def test_in_the_open_there_are_numbers_only(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await knows(world, world.ann, *ITEMS)
            await world.says(world.bob, world.general, "the build is broken")
            for about in ("", f"<#{world.general.id}>", "where does my sister live?"):
                answer = await world.says(world.ann, world.general, f"!memory preview {about}")
                assert answer.startswith("Here I would use: ") and "would be left out" in answer
                assert answer.endswith("use `/memory preview` here, or ask me in a DM.")
                for secret in ("teapot", "Oslo", "Maria", "PIN", "short answers", "broken"):
                    assert secret not in answer
            for name in (f"<#{world.dev.id}>", "#dev", f"<#{world.hidden.id}>", "#nowhere", "dm"):
                answer = await world.says(world.ann, world.general, f"!memory preview {name}")
                assert answer == "Only you may see that; use `/memory preview` here, or ask me in a DM."

    async def test_a_channel_that_one_cannot_read_is_as_one_that_does_not_exist(self, start: Start) -> None:
        async with start() as world:
            silent = discord.PermissionOverwrite(read_message_history=False)
            present = world.guild.create_text_channel("now", overwrites={world.guild.default_role: silent})
            forum = world.guild.create_forum_channel("ideas")
            secret = await private_thread(world, world.bob)
            await world.says(world.bob, world.bob_dm, "my secret")
            await world.says(world.bob, secret, "our plan")
            theirs = (world.hidden, present, forum, secret, world.bob_dm)
            for one in (*(str(one.id) for one in theirs), "4711", str(10**17), "#hidden", "#nowhere", "#now"):
                asked = await world.ann.slash(world.general, "memory preview", channel=one)
                assert said(asked.response) == NO_CHANNEL and asked.response.ephemeral
                if one.isdigit():
                    assert await preview(world, f"<#{one}>") == NO_CHANNEL
            assert "our plan" in await preview(world, secret, person=world.bob)
            choices = await world.ann.autocomplete(world.general, "memory preview", "channel", "")
            assert choices == [
                {"name": "our direct messages", "value": "dm"},
                {"name": "#general", "value": str(world.general.id)},
                {"name": "#dev", "value": str(world.dev.id)},
            ]
            await world.restart(channels=frozenset({"1"}))
            assert await preview(world) == NO_CHANNEL
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({"1"}))
            asked = await world.ann.slash(world.general, "memory preview")
            assert said(asked.response).startswith("You aren't on my allowlist.")

    async def test_nobody_is_shown_what_is_remembered_about_others(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await knows(world, world.bob, *ITEMS)
            for place, about in itertools.product(
                (world.general, "dm"), ("", "where does bob's sister live?", "what do you know about me?")
            ):
                text = await preview(world, place, about)
                assert memories(text.splitlines()) == [] and "Oslo" not in text
            assert "**Always** (0)" in await preview(world)


class TestIt:
    async def test_leaves_no_trace(self, start: Start) -> None:
        async with start(**QUIET, context_history=3) as world:
            world.brain.writes("summary", sum_up)
            await knows(world, world.ann, *ITEMS)
            for words in ("one", "two", "three"):
                await world.says(world.ann, world.general, words)
            asked, ledger = len(world.server.requests), world.data / "memory" / "ledger"
            before = {path: path.read_bytes() for path in ledger.iterdir()}
            secret = "ghp_" + "a1B2" * 9
            assert secret not in await preview(world, about=f"my token is {secret}")
            for about in ("", *SENTENCES):
                await preview(world, world.general, about)
            assert len(world.server.requests) == asked
            assert {path: path.read_bytes() for path in ledger.iterdir()} == before
            await world.says(world.ann, world.general, "four")
            assert not any(about in world.prompt for about in SENTENCES) and "[ann]: three" in world.prompt

    async def test_says_so_where_nothing_is_used(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await knows(world, world.ann, *ITEMS[:4])
            await world.says(world.ann, world.general, "!memory optout")
            text = await preview(world, about="what colour is my teapot?")
            assert "**You have opted out**" in text and memories(below(text, "From your memory")) == []
            assert len(left_out(text)["Not used, because you have opted out"]) == 4
            assert "The model can also search" not in text
            await world.restart(respond_mode="none")
            assert "I don't answer you there" in await preview(world)
            await world.restart(respond_mode="all", durable_enabled=False, summary_enabled=False)
            text = await preview(world)
            assert "I use nothing I remember: my memory is switched off here" in text
            assert "**Summary of the conversation**: switched off" in text
            told = await world.says(world.ann, world.general, "!memory preview")
            assert "my memory is switched off here" in told
