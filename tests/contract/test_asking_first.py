"""Ask before remembering: what was learned waits, out of every prompt and view, for its person's yes."""

import json
import re
from typing import Any

from tests.contract.cards import labels, parts, said
from tests.contract.meanwhile import tidied
from tests.contract.tools import commits
from tests.contract.world import Start, World

DAY_S = 86_400
TEA, TEA_READ = "User likes tea.", "You like tea."
ASKED = f"-# may I remember: {TEA_READ}"
SETTLED = "That is settled already, or has lapsed."
GONE = "I can't find that any more: the memory or its persona was deleted since."
TITLE, NOTHING = "Waiting for your yes", "Nothing waits for your yes."


async def says(world: World, text: str, place: Any = None) -> str:
    """The answer to a text command of Ann's."""
    return await world.says(world.ann, place or world.general, f"!memory {text}")


async def talk(world: World, *texts: str, person: Any = None, place: Any = None, **patch: Any) -> Any:
    """Somebody (Ann) talks and these are learned. Returns the last message there."""
    words = f"about me, {len(world.turns())}."
    upserts = [{"kind": "fact", "text": text, **patch.pop("as_", {})} for text in texts]
    world.brain.learns(*upserts, about=words, **patch)
    await world.says(person or world.ann, place or world.general, words)
    return (place or world.general).last_message


async def listed(world: World) -> Any:
    """The card of what waits for Ann's yes, which she alone sees."""
    result = await world.ann.slash(world.general, "memory pending")
    return result.followups[-1] if result.followups else result.response


async def waiting(world: World, person: Any = None) -> list[str]:
    """What waits for somebody's (Ann's) yes, as their DM has it."""
    person = person or world.ann
    told = await world.says(person, person.user.dm_channel, "!memory pending")
    return re.findall(r"^\d+\. \w+ “(.*?)”", told, re.M)


async def pick(world: World, message: Any, how: str, *wanted: str) -> None:
    """Ann chooses the options whose labels end with these words, or all, in a menu ("Yes to …")."""
    menu = next(part for part in parts(message) if part.get("placeholder") == how)
    values = [one["value"] for one in menu["options"] if not wanted or one["label"].endswith(wanted)]
    await world.ann.select(message, values, custom_id=menu["custom_id"])


async def pressed(world: World, message: Any, label: str) -> list[str]:
    """What Ann alone is told after she pressed a button."""
    return [told.content for told in (await world.ann.click(message, label=label)).followups]


class TestTheChoice:
    async def test_is_each_persons_own_and_a_setting_decides_for_the_others(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            assert (await says(world, "approve")).startswith("I remember without asking")
            on = await world.ann.slash(world.general, "memory approve", state="on")
            assert on.response.content.startswith("From now on I ask before I remember")
            choices = json.loads((world.data / "memory" / "choices.json").read_text())
            assert choices["people"] == {str(world.ann.id): {"asks_first": True}}
            await world.restart()
            assert labels(await talk(world, TEA)) == ["Yes", "No"]
            assert (await waiting(world), world.memories(world.ann)) == ([TEA_READ], [])
            off = "From now on I remember what I learn without asking. 1 still waiting for your yes: "
            assert await says(world, "approve off") == f"{off}`!memory pending`."
            await world.restart(asks_first=True)
            await talk(world, "User likes cake.")
            await talk(world, "User likes cocoa.", person=world.bob)
            assert (await waiting(world), world.memories(world.ann)) == ([TEA_READ], ["User likes cake."])
            assert (await waiting(world, world.bob), world.memories(world.bob)) == (["You like cocoa."], [])

    async def test_leaves_what_the_person_asks_for_and_lets_the_models_own_tool_wait(
        self, start: Start
    ) -> None:
        async with start(asks_first=True, extraction_enabled=False) as world:
            await says(world, "remember I like tea")
            await says(world, "edit I like tea => I love tea")
            path = world.durable(world.ann)
            path.write_text(path.read_text().replace("I love tea", "I adore tea"))
            assert "I adore tea" in await says(world, "show")
            assert (world.memories(world.ann), await waiting(world)) == (["I adore tea"], [])
            world.brain.calls("memory_store", {"text": "User likes rum."}, "Well.", about="rum")
            await world.says(world.ann, world.general, "please note that I like rum")
            assert "only their yes makes it a memory" in json.dumps(world.turns()[-1].body["messages"][-1])
            assert (world.memories(world.ann), await waiting(world)) == (["I adore tea"], ["You like rum."])
            assert "-# may I remember: You like rum." in world.shown(world.general)
            tools = world.data / "memory" / "tools"
            assert "likes rum" not in "".join(path.read_text() for path in tools.rglob("*.jsonl"))


class TestWhatWaits:
    async def test_is_in_no_prompt_view_file_or_channel_until_the_person_agrees(self, start: Start) -> None:
        async with start(asks_first=True) as world:
            await world.restart(memory_channel=str(world.dev.id))
            await says(world, "remember I live in Oslo")
            question = await talk(world, TEA, as_={"tags": ["drinks"]})
            assert (said(question), question.flags.suppress_notifications) == (ASKED, True)
            await world.restart()
            await world.says(world.ann, world.general, "what do I like in Oslo?")
            assert "Oslo" in world.prompt and "about me" in world.prompt
            for seen in (
                *(one.prompt for one in world.server.requests),
                *world.shown(world.dev),
                world.durable(world.ann).read_text(),
                await says(world, "show"),
                await says(world, "history view"),
                await says(world, "data export"),
            ):
                assert not re.search("likes? tea", seen)
            assert "**Waiting for your yes**: 1 pending" in await says(world, "data stats")
            assert "asked whether to remember" in await says(world, "history log")
            assert "intact" in await says(world, "verify")
            for label in ("Yes", "No"):
                refused = await world.bob.click(question, label=label)
                assert refused.response.content == "These buttons are for somebody else."
            await world.ann.click(question, label="Yes")
            assert f"-# remembered: {TEA_READ}" in world.shown(world.general)
            assert TEA_READ in await says(world, "show")
            assert any("ann likes tea." in shown for shown in world.shown(world.dev))
            (item,) = [one for one in world.items(world.ann) if one["text"] == TEA]
            assert (item["tags"], item["source"]["channelId"]) == (["drinks"], str(world.general.id))
            events = [one for commit in commits(world) for one in commit["events"]]
            (added,) = [one for one in events if (one["event_type"], one["object"]) == ("add", TEA)]
            assert added["ext"]["facets"]["author"] == "stated"  # the yes makes it the person's own word

    async def test_is_quoted_to_its_person_alone_if_it_is_private(self, start: Start) -> None:
        in_the_open = (
            "**Waiting for your yes** (1 proposal)\n(1 private one: use `/memory pending`, or ask me in a DM)"
        )
        async with start(asks_first=True) as world:
            question = await talk(world, "User has diabetes.", as_={"sensitivity": "private"})
            assert said(question) == "-# may I remember: something private"
            assert labels(question) == ["Choose"]
            assert await says(world, "pending") == in_the_open
            assert "diabetes" not in await says(world, "history log")
            own = (await world.ann.click(question, label="Choose")).followups[0]
            assert own.ephemeral and "You have diabetes." in said(own)
            await pick(world, own, "Yes to …")
            assert said(own) == f"Done: you said yes to 1.\n### {TITLE}\n{NOTHING}"
            assert not any("diabetes" in shown for shown in world.shown(world.general))
            question = await talk(world, "User lives in Oslo.", place=world.ann_dm)
            assert said(question) == "-# may I remember: You live in Oslo."
            assert await says(world, "pending") == in_the_open
            await world.ann.user.click(question, label="Yes")
            assert world.shown(world.ann_dm).count("-# remembered: You live in Oslo.") == 1
            shown = await says(world, "show")
            assert "diabetes" not in shown and "Oslo" not in shown
            assert sorted(world.memories(world.ann)) == ["User has diabetes.", "User lives in Oslo."]

    async def test_may_be_a_change_or_a_forgetting_and_a_no_leaves_all_as_it_is(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            await talk(world, TEA, "User likes cake.")
            await says(world, "approve on")
            await world.env.advance_time(60)
            gone = [{"id": "User likes cake.", "reason": "no more"}]
            question = await talk(world, "User likes green tea.", as_={"id": TEA}, deprecations=gone)
            assert said(question).splitlines() == [
                "-# may I correct what I remember to: You like green tea.",
                "-# may I forget: You like cake.",
            ]
            assert world.memories(world.ann) == [TEA, "User likes cake."]
            told = await says(world, "pending")
            assert f"1. change “{TEA_READ}” to “You like green tea.”" in told
            assert "2. forget “You like cake.”" in told
            await world.ann.click(question, label="Yes")
            assert world.memories(world.ann) == ["User likes green tea."]
            question = await talk(world, "User likes rum.")
            await world.ann.click(question, label="No")
            assert "-# not remembered: You like rum." in world.shown(world.general)
            await world.restart()
            assert await says(world, "pending") == f"**{TITLE}**\n{NOTHING}"
            assert world.memories(world.ann) == ["User likes green tea."]

    async def test_lapses_in_time_unless_it_never_does_and_no_merge_or_import_remembers_it(
        self, start: Start
    ) -> None:
        async with start(asks_first=True, pending_days=3.0) as world:
            question = await talk(world, TEA)
            await world.env.advance_time(3 * DAY_S - 3_600)
            await tidied(world)
            assert await waiting(world) == [TEA_READ]
            await world.env.advance_time(7_200)
            await tidied(world)
            assert (await waiting(world), world.memories(world.ann)) == ([], [])
            assert await pressed(world, question, "Yes") == [SETTLED]
            assert "got no answer about" in await says(world, "history log")
            await world.restart(pending_days=0.0)
            await talk(world, "User sails.")
            assert "lapses" not in await says(world, "pending")
            await world.env.advance_time(1000 * DAY_S)
            await tidied(world)
            assert await waiting(world) == ["You sail."]
            for words in ("create-branch work", "checkout work"):
                await says(world, words)
            await talk(world, "User likes milk.")
            for words in ("checkout main", "merge work", "remember I live in Oslo"):
                await says(world, words)
            both = ["You sail.", "You like milk."]
            assert (await waiting(world), world.memories(world.ann)) == (both, ["I live in Oslo"])
            await says(world, "export --history", world.ann_dm)
            attachment = world.ann_dm.last_message.attachments[0]
            file = (attachment.filename, await attachment.read())
            await world.ann.send(world.general, "!memory import", attachments=[file])
            await world.settle()
            assert (await waiting(world), world.memories(world.ann)) == (both, ["I live in Oslo"])


class TestTheButtons:
    async def test_say_in_words_what_came_of_it_meanwhile(self, start: Start) -> None:
        async with start(asks_first=True, summary_enabled=False) as world:

            async def late(text: str, *commands: str) -> list[str]:
                question = await talk(world, text)
                for words in commands:
                    await says(world, words)
                    await world.env.advance_time(2)
                return await pressed(world, question, "Yes")

            assert await late(TEA, f"remember {TEA}") == [SETTLED]
            assert await late("User likes cake.", "remember I sail", "undo", "forget User likes tea.") == []
            stale = await talk(world, "User likes rum.")
            own = await listed(world)
            await world.ann.click(stale, label="Yes")
            before = len(commits(world))
            await pick(world, own, "Yes to …")
            assert said(own) == f"{SETTLED}\n### {TITLE}\n{NOTHING}" and len(commits(world)) == before
            (told,) = await late("User likes gin.", "optout")
            assert "opted out" in told
            await says(world, "optin")
            await world.env.advance_time(2)
            for words in ("create-branch work", "checkout work"):
                await says(world, words)
            assert await late("User skis.", "checkout main", "delete-branch work") == [GONE]
            assert await late("User swims.", "erase --yes") == [GONE]
            assert await says(world, "pending") == f"**{TITLE}**\n{NOTHING}"

    async def test_let_the_person_choose_among_the_newest_fifty(self, start: Start) -> None:
        async with start(asks_first=True, summary_enabled=False) as world:
            question = await talk(world, "a", "b", "c")
            assert labels(question) == ["Yes", "No", "Choose"]
            own = await listed(world)
            assert said(own).startswith(f"### {TITLE}\n-# 3 proposals\n1\\. remember “a”\n-# lapses <t:")
            assert labels(own) == ["Yes to …", "No to …"]
            await pick(world, own, "Yes to …", "a", "c")
            assert said(own).startswith(f"Done: you said yes to 2.\n### {TITLE}\n-# 1 proposal\n")
            await world.restart()
            await pick(world, own, "No to …", "b")
            assert said(own) == f"Done: you said no to 1.\n### {TITLE}\n{NOTHING}"
            assert (labels(own), world.memories(world.ann)) == ([], ["a", "c"])
            for first in range(0, 60, 5):
                await talk(world, *(f"Fact {number}." for number in range(first, first + 5)))
            own = await listed(world)
            assert "\n1\\. remember “Fact 10.”\n" in said(own)
            assert [len(part["options"]) for part in parts(own) if part["type"] == 3] == [25, 25]
            assert "-# and 25 more, which come when these are answered" in said(own)
            await pick(world, own, "Yes to …")
            await pick(world, own, "No to …")
            assert said(own) == f"Done: you said no to 25.\n### {TITLE}\n{NOTHING}"
            assert len(world.memories(world.ann)) == 27
