"""People see what changed in their memory, when and why, and go back in it."""

import re
from itertools import pairwise

import pytest

from tests.contract.cards import button, every_page, parts, said
from tests.contract.commands import card, refused, typed
from tests.contract.world import Start, World

QUIET = {"summary_enabled": False, "extraction_enabled": False}


async def tea_then_coffee(world: World) -> None:
    await typed(world, "remember I like tea")
    await typed(world, "edit I like tea => I like coffee")


async def ids(world: World) -> list[str]:
    """The short ids of the changes, newest first."""
    return re.findall(r"^- `([0-9a-f]{8})`", await typed(world, "log --oneline"), re.M)


class TestTheLog:
    async def test_lists_what_changed_newest_first_with_options_as_people_write_them(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            log = await typed(world, "log")
            assert re.search(r"\n- <t:\d+:R> by you, with a command, id `[0-9a-f]{8}`\n", log)
            assert log.index("corrected ") < log.index("remembered ")
            assert re.search(r"\n  - corrected [0-9a-f]{8}: “I like coffee”\n", log)
            for words in (
                "--oneline",
                "—oneline",
                "--ONELINE --limit 5",
                "main --oneline",
                "--branch main —ONELINE",
            ):
                title, *lines = (await typed(world, f"log {words}")).splitlines()
                assert title == "**What changed in your memory** (2 changes)"
                assert re.fullmatch(r"- `[0-9a-f]{8}` <t:\d+:R> corrected: I like coffee", lines[0]), words
                assert len(lines) == 2, words
            assert "and 1 earlier change" in await typed(world, "log --limit=1")

    async def test_shows_nothing_private_in_the_open_and_nothing_of_anybody_else(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            await typed(world, "remember I live in Oslo", privately=True)
            for words in ("log", "graph timeline", "graph mermaid", "log --oneline"):
                assert "Oslo" not in await typed(world, words), words
            assert "(private)" in await typed(world, "log")
            assert "Oslo" in said(await card(world, "memory history log"))
            newest = (await ids(world))[0]
            for words in (
                "log",
                f"view {newest}",
                f"diff {newest}",
                f"revert {newest}",
                "stats",
                "graph",
                "why",
            ):
                answer = await typed(world, words, world.bob)
                assert not re.search("tea|coffee|Oslo", answer), words
            assert "nothing to draw" in await typed(world, "graph", world.bob)
            assert "I remember nothing yet" in await typed(world, "stats", world.bob)
            choices = await world.bob.autocomplete(world.general, "memory history revert", "change", "")
            assert choices == []
            assert world.memories(world.ann) == ["I like coffee", "I live in Oslo"]

    async def test_calls_what_a_tool_did_by_what_it_did(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.calls("memory_store", {"text": "User's cat is called Tom."}, "Done.", about="my cat")
            await world.says(world.ann, world.general, "please remember my cat is called Tom")
            log = await typed(world, "history log")
            assert "by me, while we talked" in log and "memory_store" not in log

    async def test_is_a_card_on_which_changes_are_taken_back_once(self, start: Start) -> None:
        async with start(**QUIET) as world:
            facts = [f"User likes tea number {number}." for number in range(1, 7)]
            for fact in facts:
                await card(world, "memory remember", text=fact)
            shown, other = await card(world, "memory history log"), await card(world, "memory history log")
            assert "### What changed in your memory\n-# 6 changes\n" in said(shown)
            assert "\nRemembered: “You like tea number 6.”\n-# <t:" in said(shown)
            assert not any(one in said(shown) for one in await ids(world))
            await world.ann.click(shown, custom_id=button(shown, "Take back", 1))
            assert said(shown).startswith("-# taken back\n### What changed") and "7 changes" in said(shown)
            assert world.memories(world.ann) == [*facts[:4], facts[5]]
            again = await world.ann.click(other, custom_id=button(other, "Take back", 1))
            assert refused(again) == "That is done already."
            await world.ann.click(shown, label="Undo")
            assert sorted(world.memories(world.ann)) == facts
            turned = await card(world, "memory history log", limit=7, oneline=True)
            assert "Added:" not in said(turned)
            everything = await every_page(world.ann, turned)
            assert everything.count("Remembered: you like tea number ") == 5  # and what was taken back
            assert "-# and 1 earlier change" in everything


class TestThePast:
    async def test_is_shown_by_date_by_change_and_by_steps_back(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            assert "I like coffee" in await typed(world, "view")
            first = (await ids(world))[1]
            for words in (
                "view --at HEAD~1",
                "view HEAD~1",
                f"view {first}",
                "view --persona main --at HEAD~1",
            ):
                assert "I like tea" in await typed(world, words, privately=True), words
            assert "I remembered nothing then" in await typed(world, "view --at 2015-02-01 10:00")
            assert "I like coffee" in await typed(world, "view --at 2999-01-01 --branch main")
            last = await typed(world, "diff")
            assert (
                last.startswith("**What differs** (1 memory)\n- changed: ")
                and "“(taken back)” → “I like coffee”" in last
            )
            for words in ("diff HEAD~1 HEAD", "diff --new main HEAD~1", "diff --end HEAD --start HEAD~1"):
                assert await typed(world, words) == last, words
            assert "“I like tea” → “I like coffee”" in await typed(world, "diff", privately=True)
            assert "There is no difference." in await typed(world, "diff HEAD HEAD")
            for words, answer in {
                "view --at 2026-02-31": "is not a time",
                "view --at HEAD~9": "goes back beyond the first change",
                "view --branch codign": "there are: main",
                "diff HEAD nonsense": "there is no change or persona",
                "revert nonsense": "there is no change or persona",
            }.items():
                assert answer in (await typed(world, words)).lower(), words
            await typed(world, "remember ```@everyone``` is loud")
            view = await typed(world, "view")
            assert "```" not in view and view.count("\\`") == 6

    async def test_of_what_became_private_is_private_too_and_going_back_says_so(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await typed(world, "remember I like tea")
            await typed(world, "remember I see a therapist")
            await typed(world, "edit I see a therapist => I see a therapist on Mondays")
            await typed(world, "private I see a therapist on Mondays")
            for words in ("view HEAD~1", "view HEAD~2", "diff HEAD~2 HEAD~1", "diff HEAD~2"):
                answer = await typed(world, words)
                assert "therapist" not in answer and "private" in answer, words
                assert "therapist" in await typed(world, words, privately=True), words
            for words in ("undo", "restore HEAD~1", "revert HEAD"):
                answer = await typed(world, words)
                assert "Now I use outside our DMs again: " in answer, words
                assert "`!memory private <id>`" in answer
                await typed(world, "private I see a therapist on Mondays")

    async def test_is_a_card_too_with_what_was_forgotten_and_every_page_of_what_was_asked(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            facts = [f"I like tea number {number}" for number in range(7)]
            for fact in facts:
                await card(world, "memory remember", text=fact)
            await typed(world, f"forget {facts[0]}")
            shown = await every_page(world.ann, await card(world, "memory history view"))
            assert "-# 6 memories · 1 forgotten" in shown
            assert f"{facts[0]}\n-# forgotten · fact · <t:" in shown
            await card(world, "memory persona create", name="work")
            await card(world, "memory remember", text="User likes cake.")
            older = await card(world, "memory history view", at="work", persona="main")
            everything = await every_page(world.ann, older)
            assert everything.startswith("### What I remembered at work\n-# 6 memories")
            assert all(fact in everything for fact in facts) and "cake" not in everything
            await card(world, "memory edit", memory=facts[1], text="I like *coffee*")
            difference = await card(world, "memory history diff")
            assert f"~~{facts[1]}~~\nI like \\*coffee\\*\n-# changed" in said(difference)
            whole = await card(world, "memory history diff", start=(await ids(world))[-1])
            assert f"{facts[2]}\n-# new" in await every_page(world.ann, whole)
            assert "(id " not in said(whole) and "durable-" not in said(whole)
            nothing = await card(world, "memory history diff", start="HEAD", end="HEAD")
            assert "There is no difference." in said(nothing)


class TestTheGraph:
    @pytest.mark.design(302)
    async def test_is_a_picture_a_text_or_mermaid(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            assert "mermaid\n" not in await typed(world, "graph")
            (picture,) = world.general.last_message.attachments
            assert picture.filename == "memory.png"
            assert (await picture.read()).startswith(b"\x89PNG")
            for words in ("graph timeline", "graph --form timeline"):
                assert "corrected: I like coffee" in await typed(world, words)
                assert world.general.last_message.attachments == []
            assert (await typed(world, "graph mermaid")).startswith("```mermaid\ngitGraph")
            assert world.general.last_message.attachments == []
            shown = await card(world, "memory history graph")
            assert "## Memory of ann\n-# 2 changes" in said(shown)
            (picture,) = shown.attachments
            assert (await picture.read()).startswith(b"\x89PNG")
            assert 12 in [part["type"] for part in parts(shown)]
            for number in range(40):
                await typed(world, f"remember number {number} of what I have")
            (file,) = (await card(world, "memory history graph", form="mermaid")).attachments
            assert file.filename == "memory.mmd" and (await file.read()).startswith(b"gitGraph")


class TestWhy:
    async def test_an_answer_names_what_it_was_given_with_links_until_a_restart(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            world.brain.learns("User prefers green tea.", about="I prefer green tea", kind="preference")
            source = await world.ann.send(world.general, "I prefer green tea")
            await world.settle()
            await typed(world, "remember my teapot is blue and holds green tea")
            await world.says(world.ann, world.general, "which green tea in which teapot?")
            answer = world.general.last_message
            why = await typed(world, "why")
            place = f"https://discord.com/channels/{world.guild.id}/{world.general.id}"
            assert f"({place}/{answer.id})" in why.replace("<", "").replace(">", "")
            assert f"said in <{place}/{source.id}>" in why
            assert "my teapot is blue" in why and "from your command" in why
            assert re.search(r"\d+ recent messages?", why)
            shown = said(await card(world, "memory why"))
            assert f"## What my last answer was based on\n-# [my last answer here]({place}" in shown
            assert "my teapot is blue and holds green tea\n-# fact · <t:" in shown and "chosen: " in shown
            assert "Also no summary, " in shown
            learned = said(await card(world))
            assert "You prefer green tea.\n-# preference · <t:" in learned
            assert f"[where you said it]({place}/{source.id})" in learned
            await world.restart()
            assert "I no longer know" in await typed(world, "why")

    @pytest.mark.design(290)
    async def test_a_memory_tells_its_story_on_as_many_pages_as_it_needs(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            why = await typed(world, "why I like coffee", privately=True)
            assert why.count("you told me directly, in <https://discord.com/channels/") == 2
            assert "“I like tea”" in why
            shown = said(await card(world, "memory why", memory="I like coffee"))
            assert "remembered: “I like tea”\n-# <t:" in shown
            assert "corrected: “I like coffee”\n-# <t:" in shown
            assert "you told me directly, in [this message](https://discord.com/channels/" in shown
            assert "(id " not in shown
            texts = ["I like coffee", *(f"I like {letter * 900}" for letter in "abcdefgh")]
            for old, new in pairwise(texts):
                await card(world, "memory edit", memory=old, text=new)
            long = await card(world, "memory why", memory=texts[-1])
            await world.restart()
            story = await every_page(world.ann, long)
            assert all(letter * 300 in story for letter in "abcdefgh")

    async def test_a_private_memory_tells_nothing_in_the_open(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await typed(world, "remember I live in Oslo", privately=True)
            answer = await typed(world, "why I live in Oslo")
            assert answer == "Only a private memory matches that. Use `/memory why`, or ask me in a DM."
            unseen = said(await card(world, "memory why", memory="I live in Oslo"))
            assert "I live in Oslo" in unseen and f"{world.ann_dm.id}/" in unseen

    async def test_a_preview_says_what_could_be_said_here_and_why(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for number in range(8):
                await typed(world, f"remember I own teapot {number}. " + "It is old. " * 60)
            question = "what about the teapots of my grandmother, and her cups?"
            shown = await card(world, "memory preview", about=question)
            everything = await every_page(world.ann, shown)
            title = f"## What I could say about you in #general\n-# if you wrote “{question}”"
            assert title in everything and f"if you wrote “{question}”" in said(shown)
            assert "- I own teapot " in everything and "(fact" in everything and "durable-" not in everything
            assert "**About you**" in everything and "\n\nEverybody also gets there: my rules" in everything


class TestGoingBack:
    async def test_undo_takes_back_the_last_change_and_then_the_one_before(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            assert "“I like coffee” → “I like tea”" in await typed(world, "undo")
            assert world.memories(world.ann) == ["I like tea"]
            assert "Done: took back: 1 change" in await typed(world, "undo")
            assert "Nothing yet" in await typed(world, "show")
            assert await typed(world, "undo") == "There is nothing left to undo."

    async def test_one_change_or_a_whole_point_comes_back(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tea_then_coffee(world)
            coffee, tea = await ids(world)
            assert "changed on both sides" in await typed(world, f"revert {tea}")
            assert world.memories(world.ann) == ["I like coffee"]
            await typed(world, "remember I like cake")
            await typed(world, "restore HEAD~2")
            assert world.memories(world.ann) == ["I like tea"]
            await typed(world, f"history restore {coffee}")
            assert world.memories(world.ann) == ["I like coffee"]
            result = await world.ann.slash(world.general, "memory history restore", change=tea)
            assert result.ephemeral and "“I like coffee” → “I like tea”" in result.response.content
            await typed(world, "undo")
            choices = await world.ann.autocomplete(
                world.general, "memory history revert", "change", "correct"
            )
            named = {one["name"].split(",")[0]: one["value"] for one in choices}
            change = named["corrected: I like coffee"]
            reverted = await card(world, "memory history revert", change=change)
            assert "“I like coffee” → “I like tea”" in reverted.content


class TestFigures:
    async def test_are_about_oneself_and_the_history_is_checked_to_the_byte(self, start: Start) -> None:
        async with start(**QUIET, tools_enabled=False) as world:
            await tea_then_coffee(world)
            assert "**Memories**: 1, of these 0 private; 0 forgotten" in await typed(world, "stats")
            shown = said(await card(world, "memory data stats"))
            assert "## Your memory in numbers" in shown and "DISCOCLAW_TOOLS_ENABLED" in shown
            assert "**Memories**\n1, of these 0 private; 0 forgotten" in shown
            assert "Your history is intact: 2 changes checked." in await typed(world, "verify")
            ledger = world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            ledger.write_text(ledger.read_text().replace("I like tea", "I like war"))
            assert "Your history is damaged." in await typed(world, "verify")
