"""Ask before remembering: what was learned waits, out of every prompt and view, for its person's yes."""

import json
import re
from typing import Any

import pytest

from discoclaw.bot.presses import GONE
from discoclaw.bot.texts.pending import TITLE
from discoclaw.core.draft_patch import MOST
from discoclaw.core.pending import MOST_PENDING
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_receipts import learned, talk
from tests.contract.cards import labels, parts, said

DAY_S = 86_400
TEA, TEA_READ = "User likes tea.", "You like tea."
ASKED = f"-# may I remember: {TEA_READ}"
SETTLED = "That is settled already, or has lapsed."
NOTHING = "Nothing waits for your yes."


async def says(world: World, text: str, *, privately: bool = False) -> str:
    """The answer to a text command of Ann's."""
    if privately:
        await world.ann.send_dm(f"!memory {text}")
        return world.answer(world.ann_dm)
    await world.ann.send(world.general, f"!memory {text}")
    return world.answer(world.general)


async def whispered(world: World, text: str, **options: Any) -> Any:
    """The answer to a slash command, which Ann alone sees."""
    result = await world.ann.slash(world.general, text, **options)
    return result.followups[-1] if result.followups else result.response


async def remembered(world: World, branch: str | None = None) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}", branch)
    return [item.text for item in view.active()]


async def waiting(world: World, branch: str | None = None) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}", branch)
    return [one.text for one in view.pending]


async def pick(world: World, message: Any, how: str, *wanted: str) -> Any:
    """Ann chooses the options whose labels end with these words, or all, in a menu ("Yes to …")."""
    menu = next(part for part in parts(message) if part.get("placeholder") == how)
    values = [
        option["value"] for option in menu["options"] if not wanted or option["label"].endswith(tuple(wanted))
    ]
    return await world.ann.select(message, values, custom_id=menu["custom_id"])


class TestTheChoice:
    async def test_is_made_by_command_kept_over_a_restart_and_taken_back(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            assert (await says(world, "approve")).startswith("I remember without asking")
            on = await whispered(world, "memory approve", state="on")
            assert on.content.startswith("From now on I ask before I remember")
            choices = world.folder / "data" / "memory" / "choices.json"
            assert json.loads(choices.read_text())["people"] == {str(world.ann.id): {"asks_first": True}}
            await world.restart()
            await talk(world, model, learned(TEA))
            assert (await waiting(world), await remembered(world)) == ([TEA], [])
            off = await says(world, "approve off")
            assert off == (
                "From now on I remember what I learn without asking. 1 still waiting for your yes: "
                "`!memory pending`."
            )
            await talk(world, model, learned("User likes cake."))
            assert (await waiting(world), await remembered(world)) == ([TEA], ["User likes cake."])

    async def test_is_the_persons_own_and_a_setting_decides_for_all_others(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            await talk(world, model, learned(TEA))
            assert await waiting(world) == [TEA]
            assert (await says(world, "approve")).startswith("I ask before I remember")
            await says(world, "approve off")
            await world.restart()
            await talk(world, model, learned("User likes cake."))
            assert await remembered(world) == ["User likes cake."]
            model.facts = [learned("User likes cocoa.")]
            await world.bob.send(world.general, "something about me")
            await world.settle()
            view = await world.memory.view(f"user-{world.bob.id}")
            assert (view.active(), [one.text for one in view.pending]) == ([], ["User likes cocoa."])

    async def test_leaves_what_the_person_asks_for_to_be_remembered_at_once(self, start: Start) -> None:
        async with start(asks_first=True) as world:
            await says(world, "remember I like tea")
            await says(world, "edit I like tea => I love tea")
            path = world.durable(world.ann)
            path.write_text(path.read_text().replace("I love tea", "I adore tea"))
            assert "I adore tea" in await says(world, "show")
            assert (await remembered(world), await waiting(world)) == (["I adore tea"], [])


class TestWhatWaits:
    async def test_is_in_no_prompt_view_file_or_channel_until_the_person_agrees(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True, memory_channel=None) as world:
            await world.restart(memory_channel=str(world.dev.id))
            await says(world, "remember I live in Oslo")
            question = await talk(world, model, learned(TEA))
            assert said(question) == ASKED
            assert question.flags.suppress_notifications
            await world.ann.send(world.general, "what do I like in Oslo?")
            await world.settle()
            assert "Oslo" in model.prompt
            for seen in (
                *(model.user_turn(number) for number in range(len(model.requests))),
                *model.structured_prompts,
                *world.shown(world.dev),
                world.durable(world.ann).read_text(),
                await says(world, "show"),
                await says(world, "history view"),
                await says(world, "data export"),
            ):
                assert not re.search("likes? tea", seen)
            assert await says(world, "why likes tea") != ""
            await world.ann.click(question, label="Yes")
            assert TEA_READ in await says(world, "show")
            await world.settle()
            assert TEA in world.durable(world.ann).read_text()
            assert any("ann likes tea." in shown for shown in world.shown(world.dev))

    async def test_of_the_models_own_tool_waits_too_and_the_model_is_told_so(self, start: Start) -> None:
        async with start(asks_first=True, extraction_enabled=False) as world:  # the offline model calls it
            await world.ann.send(world.general, "please remember that I like tea")
            await world.settle()
            assert (await remembered(world), await waiting(world)) == ([], [TEA])
            assert ASKED in world.shown(world.general)
            assert any("only their yes makes it a memory" in text for text in world.shown(world.general))
            tools = world.folder / "data" / "memory" / "tools"
            assert "likes tea" not in "".join(path.read_text() for path in tools.rglob("*.jsonl"))

    async def test_is_not_quoted_in_the_open_if_it_is_private_and_is_shown_to_the_person_alone(
        self, start: Start
    ) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            secret = "User has diabetes."
            question = await talk(world, model, learned(secret, sensitivity="private"))
            assert said(question) == "-# may I remember: something private"
            assert labels(question) == ["Choose"]
            listed = await says(world, "pending")
            assert listed.splitlines()[1:] == ["(1 private one: use `/memory pending`, or ask me in a DM)"]
            assert "diabetes" not in await says(world, "history log")
            own = (await world.ann.click(question, label="Choose")).followups[0]
            assert own.ephemeral
            assert "You have diabetes." in said(own)
            await pick(world, own, "Yes to …")
            assert said(own) == f"Done: you said yes to 1.\n### {TITLE}\n{NOTHING}"
            assert not any("diabetes" in shown for shown in world.shown(world.general))
            (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
            assert (item.text, item.facets.sensitivity) == (secret, "private")

    async def test_is_quoted_in_a_dm_where_its_person_said_it(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned("User lives in Oslo."), privately=True)
            assert said(question) == "-# may I remember: You live in Oslo."
            assert await says(world, "pending") == (
                "**Waiting for your yes** (1)\n(1 private one: use `/memory pending`, or ask me in a DM)"
            )
            assert "1. remember “You live in Oslo.”" in await says(world, "pending", privately=True)
            await world.ann.user.click(question, label="Yes")
            assert world.shown(world.ann_dm).count("-# remembered: You live in Oslo.") == 1
            (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
            assert item.facets.sensitivity == "private"

    async def test_is_counted_in_the_statistics_and_named_in_the_log(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            await talk(world, model, learned("a", "b", "c"))
            assert "**Waiting for your yes**: 3 pending" in await says(world, "data stats")
            assert "asked whether to remember" in await says(world, "history log")
            assert "complete" in await says(world, "verify") or "intact" in world.answer(world.general)

    async def test_is_asked_about_without_receipts_and_with_them(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            assert labels(await talk(world, model, learned(TEA_READ))) == ["Yes", "No"]
            await world.restart(receipts=True)
            assert labels(await talk(world, model, learned("a", "b"))) == ["Yes", "No", "Choose"]
            await says(world, "approve off")
            assert said(await talk(world, model, learned("c"))) == "-# remembered: c"

    async def test_is_no_talk_after_a_restart(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            await talk(world, model, learned(TEA))
            await says(world, "pending")
            await world.restart()
            await world.ann.send(world.general, "and now?")
            assert "something about me" in model.prompt
            assert "likes tea" not in model.prompt


class TestTheButtons:
    async def test_yes_remembers_it_as_the_persons_own_word_after_a_restart_too(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned(TEA, tags=["drinks"]))
            await world.restart()
            await world.ann.click(question, label="Yes")
            assert world.answer(world.general) == f"-# remembered: {TEA_READ}"
            assert labels(world.general.last_message) == []
            (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
            assert (item.text, item.tags, item.facets.author) == (TEA, ("drinks",), "stated")
            assert item.source.channel_id == str(world.general.id)
            assert await waiting(world) == []

    async def test_no_ends_it_and_the_same_words_do_not_ask_again(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned(TEA))
            await world.ann.click(question, label="No")
            assert world.answer(world.general) == f"-# not remembered: {TEA_READ}"
            await world.restart()
            assert (await remembered(world), await waiting(world)) == ([], [])

    async def test_a_change_and_a_forgetting_of_what_was_learned_wait_as_well(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned(TEA, "User likes cake."))
            await says(world, "approve on")
            patch = {
                "upserts": [{"id": TEA, "kind": "fact", "text": "User likes green tea."}],
                "deprecations": [{"id": "User likes cake.", "reason": "no more"}],
            }
            question = await talk(world, model, json.dumps(patch))
            assert said(question).splitlines() == [
                "-# may I correct what I remember to: You like green tea.",
                "-# may I forget: You like cake.",
            ]
            assert await remembered(world) == [TEA, "User likes cake."]
            listed = await says(world, "pending")
            assert f"1. change “{TEA_READ}” to “You like green tea.”" in listed
            assert "2. forget “You like cake.”" in listed
            await world.ann.click(question, label="Yes")
            assert await remembered(world) == ["User likes green tea."]

    async def test_are_for_the_person_alone(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned("a", "b"))
            for label in ("Yes", "No", "Choose"):
                result = await world.bob.click(question, label=label)
                assert result.response.content == "These buttons are for somebody else."
                assert result.followups == []
            await says(world, "pending")
            menu = world.general.last_message
            choice = next(part for part in parts(menu) if part["type"] == 3)
            result = await world.bob.select(
                menu, [choice["options"][0]["value"]], custom_id=choice["custom_id"]
            )
            assert result.ephemeral
            assert (await remembered(world), await waiting(world)) == ([], ["a", "b"])

    @pytest.mark.parametrize("before", ["approve", "remember User likes tea.", "undo"])
    async def test_say_that_it_is_settled_when_it_was_meanwhile(self, start: Start, before: str) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned(TEA))
            if before == "approve":
                await says(world, "pending")
                await pick(world, world.general.last_message, "No to …")
            else:
                await says(world, before)
            known = await remembered(world)
            result = await world.ann.click(question, label="Yes")
            assert [told.content for told in result.followups] == [SETTLED]
            assert await remembered(world) == known

    async def test_two_presses_remember_it_once(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned(TEA))
            stale = (await world.ann.slash(world.general, "memory pending")).response
            await world.ann.click(question, label="Yes")
            commits = len((await world.memory.history(f"user-{world.ann.id}")).commits)
            await pick(world, stale, "Yes to …")
            assert said(stale) == f"{SETTLED}\n### {TITLE}\n{NOTHING}"
            assert len((await world.memory.history(f"user-{world.ann.id}")).commits) == commits

    async def test_say_in_words_that_memory_or_persona_are_gone(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            for words in ("create-branch work", "checkout work"):
                await says(world, words)
            first = await talk(world, model, learned("a", "b"))
            assert await waiting(world, "work") == ["a", "b"]
            for words in ("checkout main", "delete-branch work"):
                await says(world, words)
            await world.env.advance_time(60)
            result = await world.ann.click(first, label="Yes")
            assert [told.content for told in result.followups] == [f"{GONE}."]
            second = await talk(world, model, learned("c", "d"))
            await world.env.advance_time(60)
            await says(world, "erase --yes")
            result = await world.ann.click(second, label="Yes")
            assert [told.content for told in result.followups] == [f"{GONE}."]
            assert await says(world, "pending") == NOTHING

    async def test_add_nothing_for_somebody_who_has_opted_out(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            question = await talk(world, model, learned(TEA))
            await says(world, "optout")
            result = await world.ann.click(question, label="Yes")
            assert "opted out" in result.followups[0].content
            assert await waiting(world) == [TEA]


class TestTheMenus:
    async def test_let_the_person_choose_what_to_keep_and_what_to_drop(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            await talk(world, model, learned("a", "b", "c"))
            own = await whispered(world, "memory pending")
            assert said(own).startswith(f"### {TITLE}\n-# 3 proposals\n1\\. remember “a”\n-# lapses <t:")
            assert labels(own) == ["Yes to …", "No to …"]
            await pick(world, own, "Yes to …", "a", "c")
            assert said(own).startswith(f"Done: you said yes to 2.\n### {TITLE}\n-# 1 proposal\n")
            await world.restart()
            await pick(world, own, "No to …", "b")
            assert said(own) == f"Done: you said no to 1.\n### {TITLE}\n{NOTHING}"
            assert labels(own) == []
            assert (await remembered(world), await waiting(world)) == (["a", "c"], [])

    async def test_of_a_thousand_proposals_hold_25_of_the_50_that_are_kept(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True, prompt_budget=100_000) as world:
            texts = [f"Fact {number}: {'x' * 900}." for number in range(1000)]
            question = await talk(world, model, learned(*texts))
            assert labels(question) == ["Yes", "No", "Choose"]
            assert len(await waiting(world)) == MOST
            for first in range(MOST, MOST_PENDING + 30, MOST):
                await talk(world, model, learned(*texts[first : first + MOST]))
            assert len(await waiting(world)) == MOST_PENDING
            own = await whispered(world, "memory pending")
            assert [len(part["options"]) for part in parts(own) if part["type"] == 3] == [25, 25]
            assert "-# and 25 more, which come when these are answered" in said(own)
            await pick(world, own, "Yes to …")
            await pick(world, own, "No to …")
            assert said(own) == f"Done: you said no to 25.\n### {TITLE}\n{NOTHING}"
            assert (len(await remembered(world)), await waiting(world)) == (25, [])

    async def test_of_two_hundred_learned_one_after_another_show_the_newest(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            for first in range(0, 200, MOST):
                await talk(world, model, learned(*(f"Fact {n}." for n in range(first, first + MOST))))
            assert await waiting(world) == [f"Fact {n}." for n in range(150, 200)]
            own = await whispered(world, "memory pending")
            assert "\n1\\. remember “Fact 150.”\n" in said(own)


class TestTime:
    async def test_lets_it_lapse_after_so_many_days_and_not_before(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True, pending_days=3.0) as world:
            question = await talk(world, model, learned(TEA))
            await world.env.advance_time(3 * DAY_S - 60)
            await world.hygiene.run()
            assert await waiting(world) == [TEA]
            await world.env.advance_time(120)
            purged = await world.hygiene.run()
            assert (purged.lapsed, await waiting(world), await remembered(world)) == (1, [], [])
            result = await world.ann.click(question, label="Yes")
            assert [told.content for told in result.followups] == [SETTLED]
            assert "got no answer about" in await says(world, "history log")

    async def test_never_ends_it_if_so_set(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True, pending_days=0.0) as world:
            await talk(world, model, learned(TEA))
            assert "lapses" not in await says(world, "pending")
            await world.env.advance_time(1000 * DAY_S)
            await world.hygiene.run()
            assert await waiting(world) == [TEA]


class TestPersonas:
    async def test_a_merge_brings_what_waits_and_remembers_nothing_by_the_way(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            for words in ("create-branch work", "checkout work"):
                await says(world, words)
            await talk(world, model, learned(TEA))
            for words in ("checkout main", "merge work"):
                await says(world, words)
            assert (await waiting(world), await remembered(world)) == ([TEA], [])

    async def test_an_import_of_an_export_remembers_nothing_that_waited(self, start: Start) -> None:
        model = Scripted()
        async with start(model, asks_first=True) as world:
            await says(world, "remember I live in Oslo")
            await talk(world, model, learned(TEA))
            await world.ann.send_dm("!memory export --history")
            attachment = world.ann_dm.last_message.attachments[0]
            file = (attachment.filename, await attachment.read())
            await world.ann.send(world.general, "!memory import", attachments=[file])
            assert (await remembered(world), await waiting(world)) == (["I live in Oslo"], [TEA])
