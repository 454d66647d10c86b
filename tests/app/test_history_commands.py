"""Looking at one's history with commands, and going back in it."""

import re
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from discoclaw.bot.commands.parsing import Misused, options_of
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.core.draft import Draft, Origin
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import said
from tests.core.builders import ANY_TEXT, MODEST


async def says(world: World, person: Any, text: str) -> str:
    """What a text command in #general is answered."""
    await person.send(world.general, f"!memory {text}")
    return world.answer(world.general)


async def tea_then_coffee(world: World) -> None:
    await says(world, world.ann, "remember I like tea")
    await says(world, world.ann, "edit I like tea => I like coffee")


class TestLog:
    async def test_shows_the_commits_newest_first_with_what_they_did(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            log = await says(world, world.ann, "log")
            assert re.match(r"- <t:\d+:R> by you, with a command, id `[0-9a-f]{8}`\n", log)
            assert log.index("corrected ") < log.index("remembered ")
            assert re.search(r"\n  - corrected [0-9a-f]{8}: “I like coffee”\n", log)

    @pytest.mark.parametrize(
        "words", ["log --oneline", "log —oneline", "log --ONELINE --limit 5", "log main --oneline"]
    )
    async def test_options_are_taken_as_people_write_them(self, start: Start, words: str) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            lines = (await says(world, world.ann, words)).splitlines()
            assert len(lines) == 2
            assert re.fullmatch(r"- `[0-9a-f]{8}` <t:\d+:R> corrected: I like coffee", lines[0])

    async def test_a_limit_says_how_many_more_there_are(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "(and 1 earlier change)" in await says(world, world.ann, "log --limit=1")

    async def test_what_can_not_be_meant_is_answered_with_the_usage(self, start: Start) -> None:
        async with start() as world:
            for words, why in (
                ("log --colour", "There is no option `--colour`."),
                ("log --limit", "`--limit` needs a value."),
                ("log --limit many", "`--limit` is a number from 1 to 1000."),
            ):
                usage = "Please use it like this: `!memory log [--oneline] [--limit n] [persona]`"
                assert await says(world, world.ann, words) == f"{why} {usage}"
            assert world.env.errors == []

    async def test_private_texts_are_not_shown_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm("!memory remember I live in Oslo")
            assert "Oslo" not in await says(world, world.ann, "log")
            assert "(private)" in world.answer(world.general)
            unseen = await world.ann.slash(world.general, "memory history log")
            assert unseen.ephemeral
            assert "Oslo" in said(unseen.response)

    async def test_somebody_elses_history_is_not_to_be_seen(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            commit = (await says(world, world.ann, "log --oneline")).splitlines()[0].split("`")[1]
            for words in ("log", f"view {commit}", f"diff {commit}", f"revert {commit}", "stats", "graph"):
                answer = await says(world, world.bob, words)
                assert "tea" not in answer
                assert "coffee" not in answer
            assert "I like coffee" in await says(world, world.ann, "show")


class TestOptions:
    @MODEST
    @given(ANY_TEXT)
    def test_any_text_is_parsed_or_refused_in_words(self, text: str) -> None:
        for name in ("log", "view", "diff"):
            params = CATALOGUE.command(f"memory history {name}").params
            with suppress(Misused):
                parsed = options_of(params, text)
                assert parsed.keys() <= {param.name for param in params}
                assert all(parsed.values())

    @pytest.mark.parametrize(
        ("text", "parsed"),
        [
            ("", {}),
            ("a b", {"start": "a", "end": "b"}),
            ("--new b a", {"end": "b", "start": "a"}),
            ("--end b --start a", {"end": "b", "start": "a"}),
            ("a b c", {"start": "a", "end": "b c"}),
        ],
    )
    def test_plain_words_fill_the_places_in_order(self, text: str, parsed: dict[str, str]) -> None:
        assert options_of(CATALOGUE.command("memory history diff").params, text) == parsed

    def test_a_phrase_ends_at_the_next_option(self) -> None:
        params = CATALOGUE.command("memory history view").params
        for name in ("branch", "persona"):
            parsed = options_of(params, f"--at 2026-02-01 10:00 --{name} coding")
            assert parsed == {"at": "2026-02-01 10:00", "persona": "coding"}


class TestViewAndDiff:
    async def test_the_past_is_shown_by_date_commit_and_steps_back(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "I like coffee" in await says(world, world.ann, "view")
            for words in ("view --at HEAD~1", "view HEAD~1"):
                await world.ann.send_dm(f"!memory {words}")
                assert "I like tea" in world.answer(world.ann_dm)
            assert "I remembered nothing then" in await says(world, world.ann, "view --at 2015-02-01")
            assert "I like coffee" in await says(world, world.ann, "view --at 2999-01-01 --branch main")

    @pytest.mark.parametrize(
        ("words", "says_"),
        [
            ("view --at 2026-02-31", "is not a time"),
            ("view --at HEAD~9", "goes back beyond the first change"),
            ("view --branch codign", "there are: main"),
            ("diff HEAD nonsense", "there is no change or persona"),
            ("revert nonsense", "there is no change or persona"),
        ],
    )
    async def test_a_point_that_is_not_there_is_refused_with_the_way_out(
        self, start: Start, words: str, says_: str
    ) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert says_.lower() in (await says(world, world.ann, words)).lower()

    @pytest.mark.parametrize("words", ["view HEAD~1", "view HEAD~2", "diff HEAD~2 HEAD~1", "diff HEAD~2"])
    async def test_what_became_private_is_not_shown_in_its_past_either(
        self, start: Start, words: str
    ) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I like tea")
            await says(world, world.ann, "remember I see a therapist")
            await says(world, world.ann, "edit I see a therapist => I see a therapist on Mondays")
            await says(world, world.ann, "private I see a therapist on Mondays")
            answer = await says(world, world.ann, words)
            assert "therapist" not in answer
            assert "private" in answer
            await world.ann.send_dm(f"!memory {words}")
            assert "therapist" in world.answer(world.ann_dm)

    @pytest.mark.parametrize("words", ["undo", "restore HEAD~1", "revert HEAD"])
    async def test_going_back_says_what_is_no_longer_private(self, start: Start, words: str) -> None:
        async with start() as world:
            await says(world, world.ann, "remember I see a therapist")
            await says(world, world.ann, "private I see a therapist")
            answer = await says(world, world.ann, words)
            assert "Now I use outside our DMs again: " in answer
            assert "`!memory private <id>`" in answer
            assert "outside" not in await says(world, world.ann, "undo")

    async def test_a_diff_is_of_the_last_change_or_of_two_points(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            last = await says(world, world.ann, "diff")
            assert last.startswith("```diff\n~ ")
            assert "“(taken back)” → “I like coffee”" in last
            assert await says(world, world.ann, "diff HEAD~1 HEAD") == last
            await world.ann.send_dm("!memory diff")
            assert "“I like tea” → “I like coffee”" in world.answer(world.ann_dm)
            assert "There is no difference." in await says(world, world.ann, "diff HEAD HEAD")

    async def test_a_text_can_not_break_out_of_its_block(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "remember ```@everyone``` is loud")
            view = await says(world, world.ann, "view")
            assert "```" not in view
            assert view.count("\\`") == 6


class TestGraph:
    @pytest.mark.design(302)
    async def test_is_a_mermaid_block_for_who_asks_for_it(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert (await says(world, world.ann, "graph mermaid")).startswith("```mermaid\ngitGraph")
            assert world.general.last_message.attachments == []

    async def test_is_a_picture_first(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "mermaid\n" not in await says(world, world.ann, "graph")
            (picture,) = world.general.last_message.attachments
            assert picture.filename == "memory.png"
            assert (await picture.read()).startswith(b"\x89PNG")

    async def test_can_be_text(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "corrected: I like coffee" in await says(world, world.ann, "graph timeline")
            assert world.general.last_message.attachments == []

    async def test_a_long_one_comes_as_a_file(self, start: Start) -> None:
        async with start() as world:
            for number in range(60):
                wish = partial(Draft.upsert, kind="fact", text=f"number {number}", origin=Origin("stated"))
                await world.memory.change(f"user-{world.ann.id}", f"a message {number}", wish)
            result = await world.ann.slash(world.general, "memory history graph", form="mermaid")
            (file,) = result.response.attachments
            assert file.filename == "memory.mmd"
            assert (await file.read()).startswith(b"gitGraph")

    async def test_there_is_nothing_to_draw_of_somebody_unknown(self, start: Start) -> None:
        async with start() as world:
            assert "nothing to draw" in await says(world, world.bob, "graph")


class TestWhy:
    async def test_says_what_the_last_answer_was_given_with_links(self, start: Start) -> None:
        model = Scripted("Tea, of course.")
        async with start(model) as world:
            model.facts = ['{"upserts": [{"kind": "preference", "text": "User prefers green tea."}]}']
            said = await world.ann.send(world.general, "I prefer green tea")
            await world.settle()
            await says(world, world.ann, "remember my teapot is blue and holds green tea")
            await world.ann.send(world.general, "which green tea in which teapot?")
            answered = world.general.last_message
            why = await says(world, world.ann, "why")
            place = f"https://discord.com/channels/{world.guild.id}/{world.general.id}"
            assert f"({place}/{answered.id})" in why.replace("<", "").replace(">", "")
            assert f"said in <{place}/{said.id}>" in why
            assert "my teapot is blue" in why
            assert "from your command" in why
            assert re.search(r"\d+ recent messages?", why)

    async def test_after_a_restart_it_is_not_known(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await world.ann.send(world.general, "hello")
            await world.restart()
            assert "I no longer know" in await says(world, world.ann, "why")

    @pytest.mark.design(290)
    async def test_of_an_item_says_every_event_that_touched_it(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            await world.ann.send_dm("!memory why I like coffee")
            why = world.answer(world.ann_dm)
            assert why.count("you told me directly, in <https://discord.com/channels/") == 2
            assert "“I like tea”" in why

    async def test_of_a_private_item_says_nothing_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm("!memory remember I live in Oslo")
            told = await says(world, world.ann, "why I live in Oslo")
            assert told == "Only a private memory matches that. Use `/memory why`, or ask me in a DM."
            unseen = await world.ann.slash(world.general, "memory why", memory="I live in Oslo")
            assert "I live in Oslo" in said(unseen.response)
            assert f"{world.ann_dm.id}/" in said(unseen.response)


class TestGoingBack:
    async def test_undo_takes_back_the_last_change_and_then_the_one_before(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "“I like coffee” → “I like tea”" in await says(world, world.ann, "undo")
            assert "- [fact] I like tea" in await says(world, world.ann, "show")
            assert "Done: took back: 1 change" in await says(world, world.ann, "undo")
            assert "Nothing yet" in await says(world, world.ann, "show")
            assert await says(world, world.ann, "undo") == "There is nothing left to undo."

    async def test_a_commit_is_taken_back_by_its_id_and_what_changed_since_stays(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            log = (await says(world, world.ann, "log --oneline")).splitlines()
            first = log[1].split("`")[1]
            answer = await says(world, world.ann, f"revert {first[:8]}")
            assert "changed on both sides" in answer
            assert "I like coffee" in await says(world, world.ann, "show")

    async def test_restore_brings_a_whole_point_back(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            await says(world, world.ann, "remember I like cake")
            await says(world, world.ann, "restore HEAD~2")
            shown = await says(world, world.ann, "show")
            assert "I like tea" in shown
            assert "cake" not in shown

    async def test_restore_is_a_slash_command_too_and_has_its_new_name_as_text(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            log = (await says(world, world.ann, "history log --oneline")).splitlines()
            first = log[1].split("`")[1]
            result = await world.ann.slash(world.general, "memory history restore", change=first)
            assert result.ephemeral
            assert "“I like coffee” → “I like tea”" in result.response.content
            await says(world, world.ann, f"history restore {log[0].split('`')[1]}")
            assert "I like coffee" in await says(world, world.ann, "show")

    async def test_commits_complete_by_id_and_message(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            choices = await world.ann.autocomplete(
                world.general, "memory history revert", "change", "correct"
            )
            assert [choice["name"].split(",")[0] for choice in choices] == ["corrected: I like coffee"]
            result = await world.ann.slash(world.general, "memory history revert", change=choices[0]["value"])
            assert "“I like coffee” → “I like tea”" in result.response.content
            assert await world.bob.autocomplete(world.general, "memory history revert", "change", "") == []


class TestFigures:
    async def test_stats_and_verify_are_of_oneself(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            assert "**Memories**: 1, of these 0 private; 0 forgotten" in await says(world, world.ann, "stats")
            assert "Your history is intact: 2 changes checked." in await says(world, world.ann, "verify")
            assert "I remember nothing yet" in await says(world, world.bob, "stats")

    async def test_verify_finds_what_was_changed_on_disk(self, start: Start) -> None:
        async with start() as world:
            await tea_then_coffee(world)
            path = world.folder / "data" / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            path.write_text(path.read_text().replace("I like tea", "I like war"))
            assert "Your history is damaged." in await says(world, world.ann, "verify")


class TestWhatAToolDid:
    async def test_is_called_by_what_it_did_and_not_by_the_tools_name(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "please remember that my cat is called Tom")
            await world.settle()
            await world.ann.send(world.general, "!memory history log")
            answer = world.answer(world.general)
            assert "by me, while we talked" in answer
            assert "memory_store" not in answer
