"""Contradictions: asked about in a DM with buttons, listed by `!memory settle`, settled by the person."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from discoclaw.bot.buttons import settle_view
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source, item_id
from discoclaw.core.view import Conflict
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import labels, said

TABS = "I use tabs"
QUESTION = "You told me “I use tabs”; later talk suggests “You use spaces.”. Which is right?"


async def says(world: World, person: Any, text: str) -> str:
    await person.send(world.general, f"!memory {text}")
    return world.answer(world.general)


def against(*pairs: tuple[str, str]) -> str:
    """What an extraction returns that says something else about items than what they say."""
    return json.dumps({"upserts": [{"id": old, "kind": "fact", "text": new} for old, new in pairs]})


@asynccontextmanager
async def contradicted(start: Start, *, hint: str = "{}", **settings: Any) -> AsyncIterator[World]:
    """Ann has stated that she uses tabs, and her talk in #general says spaces."""
    model = Scripted()
    async with start(model, **settings) as world:
        await says(world, world.ann, f"remember {TABS}")
        model.facts = [against((TABS, "User uses spaces.")), hint]
        await world.env.advance_time(60)  # talk counts against a command only when it is younger
        await world.ann.send(world.general, "I use spaces")
        await world.settle()
        yield world


async def contradict(world: World, stated: str, said: str) -> None:
    """Note that Ann's talk says something else than what she stated, as an extraction does."""
    source = Source("discord", str(world.general.id), "1")
    origin = Origin("inferred", source, said_at=4_000_000_000_000)
    wish = partial(Draft.upsert, kind="fact", text=said, origin=origin, given_id=item_id("fact", stated))
    await world.memory.change(f"user-{world.ann.id}", "learned from talk", wish)


class TestAsking:
    async def test_shows_both_sides_where_they_were_said_and_three_buttons(self, start: Start) -> None:
        async with contradicted(start) as world:
            (message,) = world.ann_dm.history()
            title, about, *rows = said(message).splitlines()
            assert title == "### Which is right?"
            assert about == "-# a question about what I remember about you"
            first, its_place, second, place = rows
            assert (first, second) == (f"You told me “{TABS}”", "Later talk suggests “You use spaces.”")
            assert re.fullmatch(r"-# <t:\d+:R> · from your command", its_place)
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/"
            assert re.fullmatch(rf"-# <t:\d+:R> · \[where you said it\]\({link}\d+\)", place)
            assert labels(message) == ["Keep the old", "Use the new", "Keep both"]
            assert world.shown(world.general)[-1] == "ok"

    async def test_long_words_leave_room_for_the_question_and_its_links(self, start: Start) -> None:
        async with start() as world:
            old, new = ("I use " + "tabs " * 198).strip(), ("User uses " + "tea " * 240).strip()
            await says(world, world.ann, f"remember {old}")
            await contradict(world, old, new)
            await world.settle()
            _, _, first, _, second, place, *_ = world.answer(world.ann_dm).splitlines()
            assert first.endswith("…”") and second.endswith("…”")
            assert "[where you said it](https://" in place
            assert (await says(world, world.ann, "settle")).endswith("Which is right?")

    @pytest.mark.design(289)
    async def test_the_small_model_may_give_a_hint(self, start: Start) -> None:
        hint = '{"how": "use_new", "reason": "It was said later."}'
        async with contradicted(start, hint=hint) as world:
            assert "my guess: use the new (“It was said later.”)" in world.answer(world.ann_dm)

    async def test_what_is_settled_is_no_talk_after_a_restart(self, start: Start) -> None:
        async with contradicted(start) as world:
            await world.ann.user.click(world.ann_dm.last_message, label="Keep the old")
            model = Scripted()
            await world.restart(model)
            await world.ann.send_dm("hello")
            assert "hello" in model.prompt
            assert "Settled" not in model.prompt

    async def test_nobody_is_asked_twice_not_even_after_a_restart(self, start: Start) -> None:
        async with contradicted(start) as world:
            await says(world, world.ann, "remember I like tea")
            await world.settle()
            await world.restart()
            await world.settle()
            assert len(world.ann_dm.history()) == 1

    async def test_at_most_three_wait_and_the_next_comes_when_one_is_answered(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            for number in range(5):
                await says(world, world.ann, f"remember plan {number} holds")
            pairs = [(f"plan {number} holds", f"Plan {number} is off.") for number in range(5)]
            model.facts = [against(*pairs)]
            await world.env.advance_time(60)
            await world.ann.send(world.general, "all plans are off")
            await world.settle()
            assert len(world.ann_dm.history()) == 3
            await world.ann.user.click(world.ann_dm.history()[0], label="Use the new")
            await world.settle()
            assert len(world.ann_dm.history()) == 4
            await says(world, world.ann, "forget plan 1 holds")
            await world.settle()
            history = world.ann_dm.history()
            assert len(history) == 5
            assert said(history[1]).endswith("-# settled meanwhile")
            assert labels(history[1]) == []

    async def test_closed_dms_are_not_tried_again_and_show_has_the_question(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await says(world, world.ann, f"remember {TABS}")
            world.env.inject_error(
                "POST", f"/channels/{world.ann_dm.id}/messages", status=403, code=50007, times=None
            )
            model.facts = [against((TABS, "User uses spaces."))]
            await world.env.advance_time(60)
            await world.ann.send(world.general, "I use spaces")
            await world.settle()
            asked = [r for r in world.env.http_requests if r.path.endswith(f"/{world.ann_dm.id}/messages")]
            assert len(asked) == 1
            unseen = await world.ann.slash(world.general, "memory show")
            assert "later talk suggests “You use spaces.”" in said(unseen.response)
            await world.ann.slash(world.general, "memory remember", text="I like tea")
            await world.settle()
            again = [r for r in world.env.http_requests if r.path.endswith(f"/{world.ann_dm.id}/messages")]
            assert len(again) == 1

    async def test_a_discord_that_is_down_is_tried_again_later(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Scripted()
        async with start(model) as world:
            await says(world, world.ann, f"remember {TABS}")
            world.env.inject_error("POST", f"/channels/{world.ann_dm.id}/messages", status=503, times=1)
            model.facts = [against((TABS, "User uses spaces."))]
            await world.env.advance_time(60)
            await world.ann.send(world.general, "I use spaces")
            await world.settle()
            assert "next try in 30 s" in caplog.text
            await world.env.advance_time(40)
            await world.settle()
            assert len(world.ann_dm.history()) == 1

    async def test_who_opted_out_is_left_alone(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, f"remember {TABS}")
            await says(world, world.ann, "optout")
            await contradict(world, TABS, "User uses spaces.")
            await world.settle()
            assert len((await world.memory.view(f"user-{world.ann.id}")).conflicts) == 1
            assert world.ann_dm.history() == []

    async def test_who_may_not_talk_to_us_is_not_written_to(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, f"remember {TABS}")
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            await contradict(world, TABS, "User uses spaces.")
            await world.settle()
            assert world.ann_dm.history() == []


class TestTheButtons:
    @pytest.mark.parametrize(
        ("label", "outcome", "remembered"),
        [
            ("Keep the old", "Settled: I keep “I use tabs”.", [TABS]),
            ("Use the new", "Settled: from now on I use “You use spaces.”.", ["User uses spaces."]),
            (
                "Keep both",
                "Settled: I keep both, “I use tabs” and “You use spaces.”.",
                [TABS, "User uses spaces."],
            ),
        ],
    )
    @pytest.mark.design(289)
    async def test_each_settles_in_its_way_after_a_restart_too(
        self, start: Start, label: str, outcome: str, remembered: list[str]
    ) -> None:
        async with contradicted(start) as world:
            await world.restart()
            await world.ann.user.click(world.ann_dm.last_message, label=label)
            await world.settle()
            assert world.answer(world.ann_dm).startswith(f"-# {outcome}")
            assert labels(world.ann_dm.last_message) == []
            view = await world.memory.view(f"user-{world.ann.id}")
            assert [item.text for item in view.active()] == remembered
            assert view.conflicts == ()

    async def test_who_opted_out_meanwhile_adds_nothing_with_them(self, start: Start) -> None:
        async with contradicted(start) as world:
            await says(world, world.ann, "settle")
            await says(world, world.ann, "optout")
            result = await world.ann.user.click(world.ann_dm.last_message, label="Use the new")
            assert result.followups[0].content.startswith("You have opted out of memory")
            view = await world.memory.view(f"user-{world.ann.id}")
            assert [item.text for item in view.active()] == [TABS]

    async def test_a_second_press_says_that_it_is_done(self, start: Start) -> None:
        async with contradicted(start) as world:
            for _ in range(2):
                await says(world, world.ann, "settle")
            *_, first, _, second = world.general.history()
            await world.ann.click(first, label="Keep the old")
            result = await world.ann.click(second, label="Use the new")
            assert [told.content for told in result.followups] == ["That is done already."]
            assert result.followups[0].ephemeral
            assert labels(world.general.last_message) == []
            await world.settle()
            assert world.answer(world.ann_dm).endswith("-# settled meanwhile")
            view = await world.memory.view(f"user-{world.ann.id}")
            assert [item.text for item in view.active()] == [TABS]

    async def test_what_they_know_fits_into_a_custom_id(self) -> None:
        conflict = Conflict("durable-12345678", "other words", "", "0123456789abcdef")
        view = settle_view("9" * 20, conflict, "x" * 32)
        ids = [str(getattr(button, "custom_id", "")) for button in view.children]
        assert len(set(ids)) == 3
        assert max(len(one) for one in ids) <= 100

    async def test_what_is_said_to_hold_no_longer_has_two(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await says(world, world.ann, f"remember {TABS}")
            gone = {"id": TABS, "matchText": None, "reason": "no more tabs"}
            model.facts = [json.dumps({"deprecations": [gone]})]
            await world.env.advance_time(60)
            await world.ann.send(world.general, "no more tabs")
            await world.settle()
            message = world.ann_dm.last_message
            assert labels(message) == ["Still true", "Forget it"]
            await world.ann.user.click(message, label="Forget it")
            told = "-# Settled: I forgot “I use tabs”.\n-# It is also gone from 1 recent message."
            assert world.answer(world.ann_dm) == told

    async def test_others_can_not_press_what_a_text_command_shows(self, start: Start) -> None:
        async with contradicted(start) as world:
            await says(world, world.ann, "settle")
            result = await world.bob.click(world.general.last_message, label="Use the new")
            assert result.ephemeral
            assert result.response.content == "These buttons are for somebody else."
            assert (await world.memory.view(f"user-{world.ann.id}")).conflicts != ()

    async def test_a_disk_that_fails_is_said_and_the_buttons_stay(self, start: Start) -> None:
        async with contradicted(start) as world:
            message = world.ann_dm.last_message
            ledger = world.folder / "data" / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            ledger.write_bytes(ledger.read_bytes() + b"x")  # somebody else wrote: nothing is appended
            result = await world.ann.user.click(message, label="Use the new")
            assert result.followups[0].content.startswith("I couldn't save or read your memory")
            assert labels(world.ann_dm.last_message) == labels(message)


class TestTheCommand:
    async def test_lists_each_question_with_its_buttons(self, start: Start) -> None:
        async with contradicted(start) as world:
            assert await says(world, world.bob, "settle") == "There is nothing to settle."
            assert await says(world, world.ann, "settle") == QUESTION
            result = await world.ann.slash(world.general, "memory settle")
            assert result.ephemeral
            await world.ann.click(result.response, label="Use the new")
            assert "Settled: from now on I use “You use spaces.”." in said(result.response)
            assert "There is nothing to settle." in said(result.response)

    async def test_a_question_that_is_taken_back_is_nothing_to_settle(self, start: Start) -> None:
        async with contradicted(start) as world:
            assert "settle" not in await says(world, world.ann, "undo")
            assert await says(world, world.ann, "settle") == "There is nothing to settle."

    async def test_private_questions_are_counted_only_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm("!memory remember I live in Oslo")
            await contradict(world, "I live in Oslo", "User lives in Bergen.")
            await world.settle()
            assert await says(world, world.ann, "settle") == (
                "(1 private question: use `/memory settle`, or ask me in a DM)"
            )
            assert "Bergen" in world.answer(world.ann_dm)


class TestTidying:
    async def test_a_report_on_demand_quotes_nothing_private_in_the_open(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            for words in ("I live in Oslo", "my home is in Oslo"):
                await world.ann.send_dm(f"!memory remember {words}")
            one, other = (item_id("fact", words) for words in ("I live in Oslo", "my home is in Oslo"))
            pair = {"older": one, "newer": other, "reason": "two homes"}
            model.facts = [json.dumps({"contradictions": [pair]})]
            answer = await says(world, world.ann, "consolidate")
            assert answer.startswith("Tidied: 1 question.")
            assert "Oslo" not in answer
            assert answer.endswith("To answer the questions, use `!memory settle`.")

    async def test_a_model_that_fails_changes_nothing(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            for words in ("I like tea", "I like green tea"):
                await says(world, world.ann, f"remember {words}")
            model.facts = ["no JSON at all"]
            assert "nothing has changed" in await says(world, world.ann, "consolidate")
