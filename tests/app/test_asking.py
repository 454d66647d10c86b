"""Questions in return: what the bot was unsure of is asked below a later answer, once, and one a day."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from discoclaw.bot.presses import GONE
from discoclaw.core.model import Purpose
from discoclaw.core.patch import AskingPatch, Patch
from discoclaw.core.ports import Shape
from discoclaw.loops.facts_prompt import ASK as RULE
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_approval import DAY_S, SETTLED, remembered, says, waiting
from tests.app.test_receipts import learned
from tests.contract.cards import labels, said

MOVED, MOVED_READ = "User works from Graz now.", "You work from Graz now."
ASK = "Shall I remember that you work from Graz now?"
ASKED = f"-# {ASK}\n-# With a yes, I remember “{MOVED_READ}”."

SPACES = json.dumps({"upserts": [{"id": "I use tabs", "kind": "fact", "text": "User uses spaces."}]})
"""What an extraction returns that says something else than what Ann stated."""


class Asking(Scripted):
    """Notes what extraction was asked, and in which shape."""

    def __init__(self) -> None:
        super().__init__()
        self.systems: list[str] = []
        self.shapes: list[type[Any]] = []

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if issubclass(shape, Patch):
            self.systems.append(system)
            self.shapes.append(shape)
        return await super().structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )


def unsure(text: str = MOVED, ask: str = ASK, **more: str) -> str:
    """What an extraction returns that is unsure of one thing."""
    return learned(text, ask=ask, **more)


async def talk(world: World, *facts: str, privately: bool = False, person: Any = None) -> Any:
    """Somebody (Ann) talks and is answered, and the facts are extracted. Returns the last message there."""
    model = world.model
    model.facts = list(facts)
    person = person or world.ann
    await world.env.advance_time(60)
    if privately:
        await person.send_dm("something about me")
    else:
        await person.send(world.general, "something about me")
    await world.settle()
    return (world.ann_dm if privately else world.general).last_message


@asynccontextmanager
async def asking(start: Start, **settings: Any) -> AsyncIterator[tuple[World, Any]]:
    """A world in which Ann is shown a question in #general, and the message with it."""
    async with start(Asking(), **settings) as world:
        await talk(world, unsure())
        yield world, await talk(world)


def questions(world: World, channel: Any = None) -> list[str]:
    shown = world.shown(channel or world.general)
    return [text for text in shown if text.startswith("-# ") and "With a yes" in text]


class TestTheMoment:
    async def test_is_the_next_answer_and_nothing_comes_out_of_the_blue(self, start: Start) -> None:
        async with start(Asking()) as world:
            assert said(await talk(world, unsure())) == "ok"
            assert (await remembered(world), await waiting(world)) == ([], [MOVED])
            question = await talk(world)
            assert (said(question), labels(question)) == (ASKED, ["Yes", "No"])
            assert world.shown(world.general)[-3:] == ["something about me", "ok", ASKED]
            assert question.flags.suppress_notifications

    async def test_comes_once_also_over_restarts(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await world.restart()
            assert said(await talk(world)) == ASKED
            await talk(world)
            await world.restart()
            await world.env.advance_time(2 * DAY_S)
            await talk(world)
            assert questions(world) == [ASKED]

    async def test_is_not_an_answer_to_somebody_else_nor_one_elsewhere(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await talk(world, person=world.bob)
            await world.ann.send(world.dev, "and here?")
            await world.settle()
            assert (questions(world), questions(world, world.dev)) == ([], [])
            assert said(await talk(world)) == ASKED

    async def test_may_be_a_dm_with_the_person(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            assert said(await talk(world, privately=True)) == ASKED
            await talk(world)
            assert questions(world) == []

    async def test_is_no_talk_and_in_no_prompt(self, start: Start) -> None:
        async with asking(start) as (world, _):
            await talk(world)
            await world.restart()
            await talk(world)
            model = world.model
            turns = [model.user_turn(number) for number in range(len(model.requests))]
            assert not any("Graz" in seen for seen in (*turns, *model.structured_prompts))

    async def test_waits_for_a_disk_that_fails(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            cursor = world.folder / "data" / "memory" / "cursors" / f"asked-{world.ann.id}.json"
            cursor.mkdir()
            assert said(await talk(world)) == "ok"
            cursor.rmdir()
            await world.restart()
            assert said(await talk(world)) == ASKED


class TestPrivacy:
    async def test_what_is_private_is_asked_in_a_dm_alone(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure(sensitivity="private"))
            await talk(world)
            assert questions(world) == []
            question = await talk(world, privately=True)
            assert said(question) == ASKED
            await world.ann.user.click(question, label="Yes")
            assert await remembered(world) == [MOVED]
            assert not any("Graz" in text for text in world.shown(world.general))

    async def test_what_was_said_in_a_dm_is_asked_there_even_if_it_is_not_private(self, start: Start) -> None:
        async with start(Asking(), dm_privacy="open") as world:
            await talk(world, unsure(), privately=True)
            await talk(world)
            assert questions(world) == []
            assert said(await talk(world, privately=True)) == ASKED

    async def test_nobody_can_be_pinged_and_nothing_is_markup(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure(text="User likes *tea*.", ask="Do you like **tea** and `mate`?"))
            question = await talk(world)
            assert said(question).splitlines() == [
                "-# Do you like \\*\\*tea\\*\\* and \\`mate\\`?",
                "-# With a yes, I remember “You like \\*tea\\*.”.",
            ]
            sent = [r.json for r in world.env.http_requests if r.method == "POST" and "mate" in str(r.json)]
            assert [one["allowed_mentions"] for one in sent] == [{"parse": []}]

    async def test_a_secret_in_a_question_is_taken_out(self, start: Start) -> None:
        key = "sk-ant-" + "a1b2c3d4" * 4
        async with start(Asking()) as world:
            await talk(world, unsure(ask=f"Is {key} yours?"))
            assert said(await talk(world)).startswith("-# Is \\[REDACTED Anthropic key] yours?")
            ledger = world.folder / "data" / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            assert key not in ledger.read_text()


class TestTheAnswer:
    async def test_yes_remembers_it_after_a_restart_too(self, start: Start) -> None:
        async with asking(start) as (world, question):
            await world.restart()
            await world.ann.click(question, label="Yes")
            assert world.answer(world.general) == f"-# remembered: {MOVED_READ}"
            assert labels(world.general.last_message) == []
            (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
            assert (item.text, item.facets.author) == (MOVED, "stated")
            assert item.source.channel_id == str(world.general.id)

    async def test_no_ends_it(self, start: Start) -> None:
        async with asking(start) as (world, question):
            await world.ann.click(question, label="No")
            assert world.answer(world.general) == f"-# not remembered: {MOVED_READ}"
            assert (await remembered(world), await waiting(world)) == ([], [])

    async def test_is_the_persons_alone(self, start: Start) -> None:
        async with asking(start) as (world, question):
            for label in ("Yes", "No"):
                result = await world.bob.click(question, label=label)
                assert result.response.content == "These buttons are for somebody else."
            assert (await remembered(world), await waiting(world)) == ([], [MOVED])

    async def test_may_be_given_by_command(self, start: Start) -> None:
        async with asking(start) as (world, question):
            assert f"1. remember “{MOVED_READ}”" in await says(world, "pending")
            await says(world, f"remember {MOVED}")
            result = await world.ann.click(question, label="No")
            assert [told.content for told in result.followups] == [SETTLED]
            assert await remembered(world) == [MOVED]

    async def test_comes_too_late_once_the_question_has_lapsed(self, start: Start) -> None:
        async with asking(start, pending_days=3.0) as (world, question):
            await world.env.advance_time(3 * DAY_S + 60)
            assert (await world.hygiene.run()).lapsed == 1
            result = await world.ann.click(question, label="Yes")
            assert [told.content for told in result.followups] == [SETTLED]
            assert await remembered(world) == []

    async def test_a_question_that_lapsed_unseen_is_not_asked(self, start: Start) -> None:
        async with start(Asking(), pending_days=3.0) as world:
            await talk(world, unsure())
            await world.env.advance_time(3 * DAY_S + 60)
            await world.hygiene.run()
            await talk(world)
            assert questions(world) == []


class TestWhoIsLeftAlone:
    async def test_who_opted_out_before_the_question(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await says(world, "optout")
            await talk(world)
            await talk(world, privately=True)
            assert (questions(world), questions(world, world.ann_dm)) == ([], [])

    async def test_who_opted_out_while_they_were_answered(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            world.model.hold, world.model.asked = asyncio.Event(), asyncio.Event()

            async def opt_out() -> None:
                await world.model.asked.wait()
                await world.app.storage.people.choices.choose(str(world.ann.id), opted_out=True)
                world.model.hold.set()

            leaving = asyncio.create_task(opt_out())
            await talk(world)
            await leaving
            assert questions(world) == []

    async def test_who_opted_out_after_it_adds_nothing_with_a_yes(self, start: Start) -> None:
        async with asking(start) as (world, question):
            await says(world, "optout")
            result = await world.ann.click(question, label="Yes")
            assert "opted out" in result.followups[0].content
            assert await remembered(world) == []

    async def test_who_erased_everything(self, start: Start) -> None:
        async with asking(start) as (world, question):
            cursor = world.folder / "data" / "memory" / "cursors" / f"asked-{world.ann.id}.json"
            assert cursor.exists()
            await world.env.advance_time(60)
            await says(world, "erase --yes")
            assert not cursor.exists()
            result = await world.ann.click(question, label="Yes")
            assert [told.content for told in result.followups] == [f"{GONE}."]
            for path in (world.folder / "data").rglob("*"):
                assert not path.is_file() or b"Graz" not in path.read_bytes()

    async def test_who_erased_everything_before_the_question(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await world.env.advance_time(60)
            await says(world, "erase --yes")
            await talk(world)
            assert questions(world) == []

    async def test_who_took_back_what_it_is_about(self, start: Start) -> None:
        async with start(Asking()) as world:
            await says(world, "remember I love Graz")
            await talk(world, unsure())
            await world.env.advance_time(60)
            await says(world, "undo")
            await talk(world)
            assert (questions(world), await waiting(world)) == ([], [])

    async def test_who_deleted_the_message_that_it_rests_on(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await world.general.history()[0].delete()
            await world.settle()
            await talk(world)
            assert (questions(world), await waiting(world)) == ([], [])

    @pytest.mark.parametrize("choice", ["on", "off"])
    async def test_who_chose_to_be_asked_always_or_never(self, start: Start, choice: str) -> None:
        async with start(Asking()) as world:
            await says(world, f"approve {choice}")
            await talk(world, unsure())
            await talk(world)
            assert (questions(world), await waiting(world), await remembered(world)) == ([], [], [])
            assert RULE not in "".join(world.model.systems)

    async def test_who_chose_never_to_be_asked_meanwhile(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world, unsure())
            await says(world, "approve off")
            await talk(world)
            assert questions(world) == []

    async def test_everybody_where_it_is_switched_off_and_the_model_hears_nothing_of_it(
        self, start: Start
    ) -> None:
        async with start(Asking(), ask_back=False) as world:
            await talk(world, unsure())
            await talk(world)
            assert (questions(world), await waiting(world), await remembered(world)) == ([], [], [])
            assert set(world.model.shapes) == {Patch}
            assert RULE not in "".join(world.model.systems)

    async def test_nobody_else_and_the_model_knows_the_rule(self, start: Start) -> None:
        async with start(Asking()) as world:
            await talk(world)
            assert RULE in world.model.systems[0]
            assert world.model.shapes == [AskingPatch]


class TestOneADay:
    async def test_a_second_one_stays_out_until_a_day_has_passed(self, start: Start) -> None:
        tea = unsure(text="User likes tea.", ask="Do you like tea?")
        async with asking(start) as (world, question):
            await world.ann.click(question, label="No")
            await talk(world, tea)
            assert (await remembered(world), await waiting(world)) == ([], [])
            assert RULE not in world.model.systems[-1]
            await world.restart()
            await talk(world, tea)
            assert await waiting(world) == []
            await world.env.advance_time(DAY_S)
            await talk(world, tea)
            assert said(await talk(world)).startswith("-# Do you like tea?")

    async def test_a_second_one_stays_out_as_long_as_the_first_is_open(self, start: Start) -> None:
        async with asking(start) as (world, _):
            await world.env.advance_time(2 * DAY_S)
            await talk(world, unsure(text="User likes tea.", ask="Do you like tea?"))
            await talk(world)
            assert (questions(world), await waiting(world)) == ([ASKED], [MOVED])
            assert RULE not in world.model.systems[-1]

    async def test_a_second_one_stays_out_as_long_as_one_is_open_in_another_persona(
        self, start: Start
    ) -> None:
        async with start(Asking()) as world:
            for words in ("create-branch work", "checkout work"):
                await says(world, words)
            await talk(world, unsure())
            await says(world, "checkout main")
            await talk(world, unsure(text="User likes tea.", ask="Do you like tea?"))
            await talk(world)
            assert (questions(world), await waiting(world), await waiting(world, "work")) == ([], [], [MOVED])
            await says(world, "checkout work")
            assert said(await talk(world)) == ASKED

    async def test_none_comes_beside_a_contradiction(self, start: Start) -> None:
        async with start(Asking()) as world:
            await says(world, "remember I use tabs")
            await talk(world, SPACES)
            assert len(world.ann_dm.history()) == 1
            await talk(world, unsure())
            assert await waiting(world) == []

    async def test_one_that_was_left_before_a_contradiction_waits_for_its_end(self, start: Start) -> None:
        async with start(Asking()) as world:
            await says(world, "remember I use tabs")
            await talk(world, unsure())
            world.model.facts = [SPACES]
            await world.env.advance_time(60)
            await world.ann.send(world.dev, "I use spaces")
            await world.settle()
            await talk(world)
            assert questions(world) == []
            await world.ann.user.click(world.ann_dm.last_message, label="Keep the old")
            assert said(await talk(world)) == ASKED
