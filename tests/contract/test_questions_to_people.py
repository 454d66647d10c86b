"""What people are asked: about contradictions, in a DM; and what the bot is unsure of, below an answer."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.contract.cards import labels, said
from tests.contract.meanwhile import as_seen, press, tidied
from tests.contract.world import Start, World

DAY_S = 86_400
TABS, SPACES = "I use tabs", "User uses spaces."
LAPSED = "That is settled already, or has lapsed."
GONE = "I can't find that any more: the memory or its persona was deleted since."

MOVED, MOVED_READ = "User works from Graz now.", "You work from Graz now."
ASK = "Shall I remember that you work from Graz now?"
ASKED = f"-# {ASK}\n-# With a yes, I remember “{MOVED_READ}”."
RULE = '"ask": a yes-or-no question'


async def types(world: World, words: str, person: Any = None, place: Any = None) -> str:
    """Somebody (Ann) types a command of `!memory`."""
    return await world.says(person or world.ann, place or world.general, f"!memory {words}")


async def contradicts(world: World, stated: str, learned: str, words: str = "I use spaces") -> None:
    """Ann's talk in #general says something else than what she stated before."""
    world.brain.learns({"id": stated, "kind": "fact", "text": learned, "tags": []}, about=words)
    await world.env.advance_time(60)  # talk counts against a command only when it is younger
    await world.says(world.ann, world.general, words)


@asynccontextmanager
async def contradicted(start: Start, **settings: Any) -> AsyncIterator[World]:
    """Ann has stated that she uses tabs, and her talk says spaces."""
    async with start(**settings) as world:
        await types(world, f"remember {TABS}")
        await contradicts(world, TABS, SPACES)
        yield world


class TestAContradiction:
    @pytest.mark.design(289)
    async def test_is_asked_once_in_a_dm_with_both_sides_their_places_and_a_hint(self, start: Start) -> None:
        async with contradicted(start) as world:
            (message,) = world.ann_dm.history()
            title, about, first, its_place, second, place = said(message).splitlines()
            assert title == "### Which is right?"
            assert about == "-# a question about what I remember about you"
            assert (first, second) == (f"You told me “{TABS}”", "Later talk suggests “You use spaces.”")
            assert re.fullmatch(r"-# <t:\d+:R> · from your command", its_place)
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/"
            assert re.fullmatch(rf"-# <t:\d+:R> · \[where you said it\]\({link}\d+\)", place)
            assert labels(message) == ["Keep the old", "Use the new", "Keep both"]
            assert world.shown(world.general)[-1] == "ok"
            await types(world, "remember I like tea")
            await world.restart()
            await world.settle()
            assert len(world.ann_dm.history()) == 1  # nobody is asked twice
        async with start() as world:
            old, new = ("I use " + "tabs " * 198).strip(), ("User uses " + "tea " * 240).strip()
            world.brain.writes("how", {"how": "use_new", "reason": "It was said later."})
            await types(world, f"remember {old}")
            await contradicts(world, old, new)
            asked = world.answer(world.ann_dm)
            assert "my guess: use the new (“It was said later.”)" in asked
            _, _, first, _, second, place, *_ = asked.splitlines()
            assert first.endswith("…”") and second.endswith("…”")
            assert "[where you said it](https://" in place
            assert (await types(world, "settle")).endswith("Which is right?")

    @pytest.mark.parametrize(
        ("label", "outcome", "remembered"),
        [
            ("Keep the old", "Settled: I keep “I use tabs”.", [TABS]),
            ("Use the new", "Settled: from now on I use “You use spaces.”.", [SPACES]),
            ("Keep both", "Settled: I keep both, “I use tabs” and “You use spaces.”.", [TABS, SPACES]),
        ],
    )
    @pytest.mark.design(289)
    async def test_is_settled_by_a_button_after_a_restart_too(
        self, start: Start, label: str, outcome: str, remembered: list[str]
    ) -> None:
        async with contradicted(start) as world:
            await world.restart()
            assert world.memories(world.ann) == [TABS]
            await world.ann.user.click(world.ann_dm.last_message, label=label)
            await world.settle()
            assert world.answer(world.ann_dm).startswith(f"-# {outcome}")
            assert labels(world.ann_dm.last_message) == []
            assert world.memories(world.ann) == remembered
            assert await types(world, "settle") == "There is nothing to settle."
            await world.says(world.ann, world.ann_dm, "hello")
            assert "Settled" not in world.prompt

    async def test_can_be_settled_once_by_its_person_and_waits_while_three_are_open(
        self, start: Start
    ) -> None:
        async with contradicted(start) as world:
            first, second = [(await types(world, "settle"), world.general.last_message)[1] for _ in range(2)]
            refused = await world.bob.click(first, label="Keep the old")
            assert refused.response.content == "These buttons are for somebody else."
            await world.ann.click(first, label="Keep the old")
            result = await world.ann.click(second, label="Use the new")
            assert [one.content for one in result.followups] == ["That is done already."]
            assert world.memories(world.ann) == [TABS]
        async with start() as world:
            for number in range(5):
                await types(world, f"remember plan {number} holds")
            plans = [f"plan {number} holds" for number in range(5)]
            offs = [{"id": plan, "kind": "fact", "text": f"Off: {plan}.", "tags": []} for plan in plans]
            world.brain.learns(*offs, about="all plans are off")
            await world.env.advance_time(60)
            await world.says(world.ann, world.general, "all plans are off")
            assert len(world.ann_dm.history()) == 3
            await world.ann.user.click(world.ann_dm.history()[0], label="Use the new")
            await world.settle()
            assert len(world.ann_dm.history()) == 4
            await types(world, "forget plan 1 holds")
            history = world.ann_dm.history()
            assert len(history) == 5 and labels(history[1]) == []
            assert said(history[1]).endswith("-# settled meanwhile")

    async def test_is_asked_later_of_a_discord_that_is_down_and_shown_where_dms_are_closed(
        self, start: Start
    ) -> None:
        async with start() as world:
            path = f"/channels/{world.ann_dm.id}/messages"
            await types(world, f"remember {TABS}")
            world.env.inject_error("POST", path, status=503, times=1)
            await contradicts(world, TABS, SPACES)
            assert world.ann_dm.history() == []
            await world.env.advance_time(40)
            await world.settle()
            assert len(world.ann_dm.history()) == 1
            await types(world, "remember I eat cake")
            world.env.inject_error("POST", path, status=403, code=50007, times=None)
            await contradicts(world, "I eat cake", "User eats pie.", "I eat pie")
            await types(world, "remember I like tea")
            tries = [one for one in world.env.http_requests if one.path == path and one.method == "POST"]
            assert len(tries) == 3  # closed DMs are not tried again
            unseen = await world.ann.slash(world.general, "memory show")
            assert "later talk suggests “You eat pie.”" in said(unseen.response)

    async def test_is_put_to_nobody_who_opted_out_or_may_not_talk_to_us(self, start: Start) -> None:
        async with contradicted(start) as world:
            asked = world.ann_dm.last_message
            await types(world, "optout")
            result = await world.ann.user.click(asked, label="Use the new")
            assert result.followups[0].content.startswith("You have opted out of memory")
            assert world.memories(world.ann) == [TABS]
        async with start() as world:
            await types(world, f"remember {TABS}")
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=503, times=None)
            await contradicts(world, TABS, SPACES)
            world.env.backend.faults.clear()
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            await world.env.advance_time(120)
            await world.settle()
            assert world.ann_dm.history() == []


async def talk(
    world: World, text: str = "", *, place: Any = None, person: Any = None, ask: str = ASK, **more: str
) -> Any:
    """Somebody (Ann) talks, and extraction is unsure of `text`. Returns the last message there."""
    about = f"something about me, {len(world.turns())}"
    if text:
        unsure = {"kind": "fact", "text": text, "tags": [], "ask": ask, **more}
        world.brain.learns(unsure, about=about)
    await world.env.advance_time(60)
    await world.says(person or world.ann, place or world.general, about)
    return (place or world.general).last_message


@asynccontextmanager
async def asking(start: Start, **settings: Any) -> AsyncIterator[tuple[World, Any]]:
    """A world in which Ann is shown a question in #general, and the message with it."""
    async with start(**settings) as world:
        await talk(world, MOVED)
        yield world, await talk(world)


def questions(place: Any) -> list[str]:
    return [text for text in map(said, place.history()) if text.startswith("-# ") and "With a yes" in text]


async def waiting(world: World) -> bool:
    """Whether Ann has something to decide."""
    return "Graz" in await types(world, "pending")


def rule_told(world: World) -> bool:
    """Whether extraction was told last that it may ask."""
    return RULE in world.background("upserts")[-1].system


class TestWhatTheBotIsUnsureOf:
    async def test_is_asked_once_below_the_next_answer_where_it_belongs(self, start: Start) -> None:
        async with start() as world:
            assert said(await talk(world, MOVED)) == "ok" and rule_told(world)
            await talk(world, person=world.bob)
            await talk(world, place=world.dev)
            assert (questions(world.general), questions(world.dev)) == ([], [])
            await world.restart()
            question = await talk(world)
            assert (said(question), labels(question)) == (ASKED, ["Yes", "No"])
            assert question.flags.suppress_notifications and world.memories(world.ann) == []
            await world.restart()
            await world.env.advance_time(2 * DAY_S)
            await talk(world)
            assert questions(world.general) == [ASKED]
            assert not any("Graz" in one.prompt for one in world.turns())
        async with start(dm_privacy="open") as world:
            await talk(world, MOVED, sensitivity="private")
            await talk(world)
            assert questions(world.general) == []
            question = await talk(world, place=world.ann_dm)
            assert said(question) == ASKED
            await world.ann.user.click(question, label="Yes")
            await world.settle()
            assert world.memories(world.ann) == [MOVED]
            assert not any("Graz" in text for text in world.shown(world.general))
            await world.env.advance_time(DAY_S)
            tea = "Do you like tea?"  # it was said in a DM, so it is asked there, too
            await talk(world, "User likes tea.", ask=tea, place=world.ann_dm)
            await talk(world)
            assert questions(world.general) == []
            assert tea in said(await talk(world, place=world.ann_dm))

    async def test_is_neither_markup_nor_a_ping_and_is_remembered_with_a_yes_after_a_restart_too(
        self, start: Start
    ) -> None:
        key = "sk-ant-" + "a1b2c3d4" * 4
        async with start() as world:
            await talk(world, "User likes *tea*.", ask=f"Do you like **tea**, {key} and `mate`?")
            assert said(await talk(world)).splitlines() == [
                "-# Do you like \\*\\*tea\\*\\*, \\[REDACTED Anthropic key] and \\`mate\\`?",
                "-# With a yes, I remember “You like \\*tea\\*.”.",
            ]
            sent = [one.json for one in world.env.http_requests if "mate" in str(one.json)]
            assert [one["allowed_mentions"] for one in sent if "content" in one][-1] == {"parse": []}
            assert world.files_with(key) == []
        async with asking(start) as (world, question):
            assert f"1. remember “{MOVED_READ}”" in await types(world, "pending")
            await world.restart()
            for label in ("Yes", "No"):
                refused = await world.bob.click(question, label=label)
                assert refused.response.content == "These buttons are for somebody else."
            await world.ann.click(question, label="Yes")
            await world.settle()
            shown = next(one for one in world.general.history() if one.id == question.id)
            assert (said(shown), labels(shown)) == (f"-# remembered: {MOVED_READ}", [])
            (item,) = world.items(world.ann)
            assert item["text"] == MOVED
            why = said((await world.ann.slash(world.general, "memory why", memory="Graz")).response)
            assert f"you agreed to: “{MOVED_READ}”" in why

    async def test_is_dropped_with_a_no_asked_once_a_day_and_settled_by_a_command_or_in_time(
        self, start: Start
    ) -> None:
        async with asking(start) as (world, question):
            await talk(world, "User likes tea.", ask="Do you like tea?")
            assert not rule_told(world)  # as long as one is open
            await world.ann.click(question, label="No")
            shown = next(one for one in world.general.history() if one.id == question.id)
            assert said(shown) == f"-# not remembered: {MOVED_READ}"
            assert world.memories(world.ann) == [] and not await waiting(world)
            await talk(world, "User likes tea.", ask="Do you like tea?")
            await talk(world)
            assert not rule_told(world) and questions(world.general) == []
            await world.restart()
            await world.env.advance_time(DAY_S)
            await talk(world, "User likes tea.", ask="Do you like tea?")
            assert said(await talk(world)).startswith("-# Do you like tea?")
        async with asking(start, pending_days=3.0) as (world, question):
            await types(world, f"remember {MOVED}")
            result = await world.ann.click(question, label="No")
            assert [one.content for one in result.followups] == [LAPSED]
            assert world.memories(world.ann) == [MOVED]
            await world.env.advance_time(DAY_S)
            await talk(world, "User likes tea.", ask="Do you like tea?")
            question = await talk(world)
            assert said(question).startswith("-# Do you like tea?")
            await world.env.advance_time(5 * DAY_S)
            await tidied(world)
            result = await world.ann.click(question, label="Yes")
            assert [one.content for one in result.followups] == [LAPSED]
            assert world.memories(world.ann) == [MOVED]

    @pytest.mark.parametrize("choice", ["optout", "erase --yes", "approve off", "undo", "delete"])
    async def test_is_not_asked_of_who_took_back_what_it_rests_on_or_wants_no_questions(
        self, start: Start, choice: str
    ) -> None:
        async with start() as world:
            await types(world, "remember I love Graz")
            await world.env.advance_time(60)
            about = f"something about me, {len(world.turns())}"
            await talk(world, MOVED)
            await world.env.advance_time(60)
            if choice == "delete":
                (asked,) = [one for one in world.general.history() if one.content == about]
                await world.ann.delete(asked)
                await world.settle()
            else:
                await types(world, choice)
            await talk(world)
            await talk(world, place=world.ann_dm)
            assert (questions(world.general), questions(world.ann_dm)) == ([], [])

    async def test_adds_nothing_for_who_left_and_is_left_alone_where_questions_are_off(
        self, start: Start
    ) -> None:
        async with asking(start) as (world, question):
            stale = as_seen(world, question)
            await types(world, "optout")
            result = await world.ann.click(question, label="Yes")
            assert "opted out" in result.followups[0].content and world.memories(world.ann) == []
            await types(world, "optin")
            await world.env.advance_time(60)
            await types(world, "erase --yes")
            result = press(world, world.ann, stale)
            await world.settle()
            assert [one.content for one in result.followups] == [GONE]
            assert world.files_with("Graz") == []
        async with start() as world:
            for choice in ("on", "off"):
                await types(world, f"approve {choice}")
                await talk(world, MOVED)
                await talk(world)
                assert not rule_told(world) and not await waiting(world)
            await world.restart(ask_back=False)
            await talk(world, MOVED, person=world.bob)
            await talk(world, person=world.bob)
            assert not rule_told(world)
            assert questions(world.general) == [] and world.memories(world.bob) == []

    async def test_waits_for_a_contradiction_and_a_disk_and_is_one_over_all_personas(
        self, start: Start
    ) -> None:
        async with start() as world:
            await types(world, f"remember {TABS}")
            await talk(world, MOVED)
            world.brain.learns({"id": TABS, "kind": "fact", "text": SPACES, "tags": []}, about="I use spaces")
            await world.says(world.ann, world.dev, "I use spaces")
            await talk(world)
            assert questions(world.general) == []
            await world.ann.user.click(world.ann_dm.last_message, label="Keep the old")
            cursor = world.data / "memory" / "cursors" / f"asked-{world.ann.id}.json"
            cursor.mkdir()
            assert said(await talk(world)) == "ok"
            cursor.rmdir()
            await world.restart()
            assert said(await talk(world)) == ASKED
        async with start() as world:
            for words in ("create-branch work", "checkout work"):
                await types(world, words)
            await talk(world, MOVED)
            await types(world, "checkout main")
            await talk(world, "User likes tea.", ask="Do you like tea?")
            await talk(world)
            assert questions(world.general) == [] and world.memories(world.ann) == []
            await types(world, "checkout work")
            assert said(await talk(world)) == ASKED
