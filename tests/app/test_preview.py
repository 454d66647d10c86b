"""`preview`: what people are told that the model would read about them is what it then reads, and no more."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import discord
import pytest

from discoclaw.bot.texts.markup import words
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Kind, Sensitivity
from discoclaw.core.policy import Personas
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_groups import Agreeing
from tests.app.test_hatching import begun, owned
from tests.app.test_live_config import edit
from tests.app.test_vectors import CAT, OTHERS, openai, ready, remember
from tests.prompt.reader import GROUP_TITLE, TURN_TITLES, sections
from tests.servers.embeddings_api import EmbeddingsServer

SENDER, DURABLE, ROLLING, RECENT, _, _ = TURN_TITLES
NO_CHANNEL = "I can't preview that: there is no such channel, you can't read it, or I don't listen there."
ITEMS: Sequence[tuple[Kind, str, Sensitivity]] = (
    ("preference", "User prefers short answers.", "normal"),
    ("constraint", "User never wants emoji.", "normal"),
    ("fact", "User's teapot is blue.", "normal"),
    ("fact", "User's sister lives in Oslo.", "private"),
    ("project", "User builds a teapot robot in Rust.", "normal"),
    ("tool", "User writes in vim.", "normal"),
    ("person", "User's boss is called Maria.", "private"),
    ("fact", "User's teapot is BLUE", "normal"),
    ("fact", "User's bank card has the PIN of old.", "confidential"),
    ("workflow", "User reviews pull requests on Monday. " + "That is how it goes. " * 30, "normal"),
    ("preference", "User prefers tea. " + "It should be green. " * 12, "normal"),
)
SENTENCES = (
    "what colour is my teapot?",
    "where does my sister live, and who is Maria?",
    "what do you know about me?",
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
    """What somebody is answered who asks in #general, by a slash command."""
    values = {"channel": channel if isinstance(channel, str) else str(channel.id), "about": about}
    given = {name: value for name, value in values.items() if value}
    return await shown(await (person or world.ann).slash(world.general, "memory preview", **given))


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
    """What the memories in the last prompt say."""
    lines = sections(model.prompt, TURN_TITLES).get(DURABLE, [])
    found = [re.fullmatch(r"- (\[\w+\] .*) \(src: .*\)", line) for line in lines]
    return [words(one[1]).replace("\\[", "[", 1) for one in found if one is not None]


def agrees(text: str, model: Scripted) -> None:
    """A preview lists exactly what the model was sent: memories, summary, talk, notes, and who is asking."""
    sent = sections(model.prompt, TURN_TITLES)
    assert memories(below(text, "From your memory")) == durable(model)
    assert "\n".join(below(text, "Summary of the conversation") or ()) == "\n".join(sent.get(ROLLING, []))
    recent = [line for line in below(text, "Recent messages") or () if line.startswith("- ")]
    assert recent == [f"- {words(line, 160)}" for line in sent.get(RECENT, [])]
    _, _, notes = model.requests[-1].system[1].text.partition(f"{GROUP_TITLE}\n")
    listed = [line for line in below(text, "Notes about the channel") or () if line.startswith("> ")]
    assert listed == [f"> {words(line)}" for line in notes.splitlines()]
    about = [line for line in below(text, "About you") or () if line.startswith("- ")]
    assert about == [line for line in sent[SENDER] if not line.startswith("- time:")]


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


SETTINGS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "little room for memories": {"inject_max_chars": 220},
    "no room for memories": {"inject_max_chars": 0},
    "a short prompt": {"prompt_budget": 4000, "inject_max_chars": 20_000},
    "few messages": {"context_history": 3},
    "little room for messages": {"history_budget": 120},
    "no room for messages": {"history_budget": 0},
    "no summaries": {"summary_enabled": False},
    "no memory": {"durable_enabled": False},
    "no store": {"store": "none"},
    "no tools": {"tools_enabled": False},
    "fading": {"knowledge_decay": True, "recency_half_life_s": 60.0},
}


class TestWhatItLists:
    @pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
    async def test_is_what_the_model_is_then_sent(self, start: Start, changes: dict[str, Any]) -> None:
        model = Agreeing(themes=["indentation"], decisions=["We use tabs. " * 20])
        own = Personas({"dev": "work", "dm": "home"})
        async with start(model, personas=own, extraction_enabled=False, **changes) as world:
            if world.app.storage.remembers:
                await knows(world, world.ann, *ITEMS)
                await knows(world, world.ann, ("fact", "User's work teapot is red.", "normal"), branch="work")
                await says(world, world.general, "!memory forget User writes in vim.")
            everywhere = await places(world)
            for place in everywhere.values():
                for text in ("shall we use *tabs*?", "tabs it is, " * 30):
                    await says(world, place, text)
                    await world.settle()
            await world.restart()
            for number, (name, place) in enumerate(everywhere.items()):
                for about in SENTENCES[number % 2 :: 2]:
                    text = await preview(world, place if place is not None else "dm", about)
                    await says(world, place, about)
                    assert model.prompt.endswith(about), name
                    agrees(text, model)
                    await world.settle()

    async def test_goes_by_the_configuration_of_the_moment(self, start: Start) -> None:
        model = Scripted()
        async with start(model, context_history=4, extraction_enabled=False) as world:
            everybody, ann = f"group:{world.general.id}", f"user:{world.ann.id}"
            for given in ({everybody: 12}, {everybody: 3}, {everybody: 12, ann: 2}):
                edit(world, {scope: {"context_history": most} for scope, most in given.items()})
                for number in range(8):
                    await world.bob.send(world.general, f"line {number}")
                await world.settle()
                text = await preview(world, about="hello")
                await world.ann.send(world.general, "hello")
                agrees(text, model)
                most = given.get(ann, given[everybody])
                assert f"**Recent messages** ({most - 1})" in text
            edit(world, {everybody: {"context_history": 12}})
            await world.env.advance_time(10 * 3600)  # the window is closed, and read from Discord again
            assert "**Recent messages** (11)" in await preview(world)
            await world.ann.send(world.general, "still there?")
            assert len(sections(model.prompt, TURN_TITLES)[RECENT]) == 11

    async def test_has_what_is_found_by_its_meaning(self, start: Start) -> None:
        model = Scripted()
        async with (
            EmbeddingsServer(same={"feline": "cat"}) as server,
            start(model, **openai(server)) as world,
        ):
            await remember(world, CAT, *OTHERS)
            await ready(world)
            text = await preview(world, about="my feline?")
            assert re.search(r"called Miso\. \(id .*\); for meaning$", text, re.MULTILINE)
            await world.ann.send(world.general, "my feline?")
            agrees(text, model)

    async def test_is_about_the_place_where_it_is_asked(self, start: Start) -> None:
        async with start(Scripted()) as world:
            assert (await preview(world)).startswith("**What I could say about you in #general**")
            inside = await thread(world, world.general)
            text = await shown(await world.ann.slash(inside, "memory preview"))
            assert text.startswith("**What I could say about you in the thread “a talk”**")
            await world.ann.send_dm("!memory preview")
            assert "in our direct messages**" in world.answer(world.ann_dm)

    async def test_without_a_sentence_is_what_is_always_there_and_what_may_come(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            for place, about in itertools.product((world.general, None), SENTENCES):
                text = await preview(world, place or "dm")
                always = memories(below(text, "Always"))
                fits = memories(below(text, "When it fits what you write"))
                assert len(always) == 3
                assert len(fits) == (5 if place else 7)
                await says(world, place, about)
                assert set(always) <= set(durable(model)) <= {*always, *fits}
                await world.settle()

    async def test_says_when_what_is_always_there_may_have_to_make_room(self, start: Start) -> None:
        async with start(Scripted(), inject_max_chars=500, extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            assert "(Some of these leave if" in await preview(world)
            assert "(Some of these leave if" not in await preview(world, about="hello")

    async def test_names_the_reason_for_each(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            text = await preview(world, about="what colour is my teapot?")
            assert re.search(r"teapot is BLUE \(id .*\); for colour, teapot$|teapot$", text, re.MULTILINE)
            assert re.search(r"short answers\. \(id .*\); always$", text, re.MULTILINE)
            assert "; you ask for everything" in await preview(world, about="what do you know about me?")


class TestWhatItLeavesOut:
    async def test_is_named_with_the_reason(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.ann.send(world.general, "!memory forget User writes in vim.")
            text = await preview(world, about="what colour is my teapot?")
            found = left_out(text)
            assert sorted(found) == [
                "Confidential: I give these to no model",
                "Forgotten",
                "Not related closely enough to that message",
                "Private: I use these in our DMs only",
                "Says the same as one that is used",
            ]
            assert found["Forgotten"] == ["[tool] User writes in vim."]
            assert found["Confidential: I give these to no model"] == [words(f"[fact] {ITEMS[8][1]}")[1:]]
            assert len(found["Private: I use these in our DMs only"]) == 2
            assert len(found["Says the same as one that is used"]) == 1
            everything = memories(text.splitlines())
            assert len(everything) == len(ITEMS) == len(set(everything))
            in_dm = left_out(await preview(world, "dm", "what colour is my teapot?"))
            assert "Private: I use these in our DMs only" not in in_dm
            assert "Confidential: I give these to no model" in in_dm

    @pytest.mark.parametrize(
        "tight", [{"inject_max_chars": 220}, {"prompt_budget": 4000, "inject_max_chars": 20_000}]
    )
    async def test_says_what_there_is_no_room_for(self, start: Start, tight: dict[str, int]) -> None:
        long = [("preference", f"User prefers {n}. " + "So it is. " * 60, "normal") for n in range(9)]
        model = Scripted()
        async with start(model, extraction_enabled=False, **tight) as world:
            await knows(world, world.ann, *long, ("fact", "User's teapot is blue.", "normal"))  # type: ignore[arg-type]
            text = await preview(world, about="what colour is my teapot?")
            assert left_out(text)["No room: what I give the model at once is limited"]
            await world.ann.send(world.general, "what colour is my teapot?")
            agrees(text, model)
            why = await shown(await world.ann.slash(world.general, "memory why"))
            assert memories(why.splitlines()) == durable(model)

    async def test_counts_what_only_other_personas_know(self, start: Start) -> None:
        async with start(Scripted(), personas=Personas({"dev": "work"})) as world:
            await knows(world, world.ann, ("fact", "User likes tea.", "normal"))
            await knows(world, world.ann, ("fact", "User has a desk.", "normal"), branch="work")
            here, there = await preview(world), await preview(world, world.dev)
            assert "as your persona main" in here
            assert "- 1 memory that only your persona work has" in here
            assert "desk" not in here
            assert "as your persona work" in there
            assert "[fact] User has a desk." in there

    async def test_says_what_was_not_used_for_too_long(self, start: Start) -> None:
        fades = {"knowledge_decay": True, "knowledge_max_idle_days": 30, "knowledge_survival_chance": 1.0}
        async with start(Scripted(), **fades) as world:
            await knows(world, world.ann, *ITEMS)
            await world.env.advance_time(40 * 86_400)
            long_ago = left_out(await preview(world))["Not used for too long"]
            assert "[fact] User's teapot is blue." in long_ago
            assert left_out(await preview(world, about="what colour is my teapot?"))["Not used for too long"]


class TestWhoSeesIt:
    async def test_in_the_open_there_are_numbers_only(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.bob.send(world.general, "the build is broken")
            for text in ("", f"<#{world.general.id}>", "where does my sister live?"):
                await world.ann.send(world.general, f"!memory preview {text}")
                answer = world.answer(world.general)
                assert answer.startswith("Here I would use: ")
                assert answer.endswith("use `/memory preview` here, or ask me in a DM.")
                assert "would be left out" in answer
                for secret in ("teapot", "Oslo", "Maria", "PIN", "short answers", "broken"):
                    assert secret not in answer

    async def test_the_numbers_are_those_of_the_list(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.bob.send(world.general, "the build is broken")
            await world.settle()
            await world.ann.send(world.general, "!memory preview")
            assert world.answer(world.general).splitlines()[:2] == [
                "Here I would use: 3 memories, 5 memories when it fits what you write, 2 recent messages.",
                "3 memories would be left out.",
            ]

    async def test_in_the_open_other_channels_are_not_spoken_of(self, start: Start) -> None:
        async with start(Scripted()) as world:
            answers = set()
            for name in (f"<#{world.dev.id}>", "#dev", f"<#{world.hidden.id}>", "#nowhere", "dm"):
                await world.ann.send(world.general, f"!memory preview {name}")
                answers.add(world.answer(world.general))
            assert answers == {"Only you may see that; use `/memory preview` here, or ask me in a DM."}

    async def test_the_dm_lists_what_is_private_about_an_open_channel(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await knows(world, world.ann, *ITEMS)
            for name in (f"<#{world.general.id}>", str(world.general.id), "#general", "#General"):
                before = len(world.ann_dm.history())
                await world.ann.send_dm(f"!memory preview {name} where does my sister live?")
                answer = await text_of(world.ann_dm.history()[before + 1 :])
                assert answer.startswith("**What I could say about you in #general** if you wrote “where")
                private = left_out(answer)["Private: I use these in our DMs only"]
                assert sorted(private) == [
                    "[fact] User's sister lives in Oslo.",
                    "[person] User's boss is called Maria.",
                ]

    async def test_a_channel_that_one_cannot_read_is_as_one_that_does_not_exist(self, start: Start) -> None:
        async with start(Scripted()) as world:
            silent = discord.PermissionOverwrite(read_message_history=False)
            present = world.guild.create_text_channel("now", overwrites={world.guild.default_role: silent})
            forum = world.guild.create_forum_channel("ideas")
            secret = await closed(world, world.bob)
            await world.bob.send_dm("my secret")
            theirs = world.bob.user.dm_channel
            await world.bob.send(secret, "our plan")
            assert "my secret" in await preview(world, "dm", person=world.bob)
            assert world.env.bot.get_channel(theirs.id) is not None
            places = (world.hidden.id, present.id, forum.id, secret.id, theirs.id, 4_711, 10**17)
            for one in places:
                assert await preview(world, str(one)) == NO_CHANNEL
                await world.ann.send_dm(f"!memory preview <#{one}>")
                assert world.answer(world.ann_dm) == NO_CHANNEL
            for name in ("#hidden", "hidden", "#nowhere", "#now"):
                assert await preview(world, name) == NO_CHANNEL
            assert "our plan" in await preview(world, secret, person=world.bob)

    async def test_a_channel_off_the_list_is_not_previewed(self, start: Start) -> None:
        async with start(Scripted(), channels=frozenset({"1"})) as world:
            assert await preview(world) == NO_CHANNEL
            assert (await preview(world, "dm")).startswith("**What I could say about you in our direct mess")

    async def test_nobody_is_shown_what_is_remembered_about_others(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.bob, *ITEMS)
            for place in (world.general, world.dev, "dm"):
                for about in ("", "where does bob's sister live?", "what do you know about me?"):
                    text = await preview(world, place, about)
                    assert memories(text.splitlines()) == []
                    assert "Oslo" not in text

    async def test_strangers_are_not_answered(self, start: Start) -> None:
        async with start(Scripted(), allow_roles=frozenset(), allow_users=frozenset({"1"})) as world:
            assert (await preview(world)).startswith("You aren't on my allowlist.")

    async def test_only_channels_that_one_can_read_are_offered(self, start: Start) -> None:
        async with start(Scripted()) as world:
            choices = await world.ann.autocomplete(world.general, "memory preview", "channel", "")
            assert choices == [
                {"name": "our direct messages", "value": "dm"},
                {"name": "#general", "value": str(world.general.id)},
                {"name": "#dev", "value": str(world.dev.id)},
            ]
            (one,) = await world.ann.autocomplete(world.general, "memory preview", "channel", "#de")
            assert one["value"] == str(world.dev.id)


class TestWhereThereIsLittleToSay:
    async def test_nobody_is_known_yet(self, start: Start) -> None:
        async with start(Scripted()) as world:
            text = await preview(world)
            assert "**Always** (0)" in text
            assert "**Summary of the conversation**: none yet" in text
            assert below(text, "Left out") is None
            assert "- name: ann" in text

    async def test_somebody_who_opted_out_is_told_that_nothing_is_used(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await knows(world, world.ann, *ITEMS[:4])
            await world.ann.send(world.general, "!memory optout")
            text = await preview(world, about="what colour is my teapot?")
            assert "**You have opted out**" in text
            assert memories(below(text, "From your memory")) == []
            assert len(left_out(text)["Not used, because you have opted out"]) == 4
            assert "The model can also search" not in text
            await world.ann.send(world.general, "what colour is my teapot?")
            agrees(text, model)

    async def test_a_memory_that_is_switched_off_is_said_to_be(self, start: Start) -> None:
        async with start(Scripted(), durable_enabled=False, summary_enabled=False) as world:
            await world.bob.send(world.general, "the build is broken")
            text = await preview(world)
            assert "I use nothing I remember: my memory is switched off here" in text
            assert "**Summary of the conversation**: switched off" in text
            assert "the build is broken" in text
            await world.ann.send(world.general, "!memory preview")
            assert "my memory is switched off here" in world.answer(world.general)

    async def test_where_the_bot_does_not_answer_it_says_so(self, start: Start) -> None:
        async with start(Scripted(), respond_mode="none") as world:
            assert "I don't answer you there" in await preview(world)
        async with start(Scripted(), respond_mode="mention") as world:
            assert "I don't answer you there" not in await preview(world)

    async def test_in_an_interview_nothing_is_used(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await owned(world)
            await begun(world)
            assert (await preview(world, "dm")).startswith("You are in the interview about my personality")
            assert (await preview(world)).startswith("**What I could say about you in #general**")

    async def test_a_long_answer_is_a_file(self, start: Start) -> None:
        async with start(Scripted()) as world:
            many = [
                ("fact", f"User owns teapot number {n}. " + "It is old. " * 20, "normal") for n in range(60)
            ]
            await knows(world, world.ann, *many)  # type: ignore[arg-type]
            result = await world.ann.slash(world.general, "memory preview")
            (file,) = result.response.attachments
            assert file.filename == "memory.md"
            assert len(memories((await file.read()).decode().splitlines())) == 60


class TestIt:
    async def test_leaves_no_trace(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False, context_history=3) as world:
            await knows(world, world.ann, *ITEMS)
            for text in ("one", "two", "three"):
                await world.ann.send(world.general, text)
            await world.settle()
            asked, subject = len(model.requests), user_subject(str(world.ann.id))
            before = await world.memory.history(subject)
            used = dict(await world.app.storage.people.last_used.load(subject))
            for about in ("", *SENTENCES):
                await preview(world, world.general, about)
            await world.settle()
            assert len(model.requests) == asked
            assert (await world.memory.history(subject)).records == before.records
            assert dict(await world.app.storage.people.last_used.load(subject)) == used
            await world.ann.send(world.general, "four")
            for about in SENTENCES:
                assert about not in model.prompt
            assert "[ann]: three" in model.prompt

    async def test_opens_no_window_that_forgets_whether_its_talk_is_private(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            item: tuple[Kind, str, Sensitivity] = ("preference", "User prefers green tea.", "normal")
            await knows(world, world.ann, item)
            few = (await places(world))["few"]
            await world.ann.send(few, "I prefer green tea")
            await world.env.advance_time(10 * 3600)
            assert "green tea" in await preview(world, few)
            await world.ann.send_dm(f"!memory private {item[1]}")  # which may still be said where few read it
            await world.settle()
            await world.ann.send(few, "and biscuits")
            assert "[ann]: I prefer green tea" in model.prompt

    async def test_takes_secrets_out_of_what_one_would_write(self, start: Start) -> None:
        async with start(Scripted()) as world:
            secret = "ghp_" + "a1B2" * 9
            assert secret not in await preview(world, about=f"my token is {secret}")
