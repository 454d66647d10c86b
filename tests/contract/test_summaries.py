"""The summary of a conversation: when it is made, what is in it, and what comes back when it is lost."""

import json
import re
import shutil
from itertools import pairwise
from typing import Any

import discord
import pytest

from tests.contract.brain import own_lines
from tests.contract.published import record_on_disk, renamed
from tests.contract.shown import MAY, ROLLING, durable, stored
from tests.contract.world import Start, World
from tests.servers.messages_api import Received, failure

QUIET = {"extraction_enabled": False, "heartbeat_minutes": 0}
REBUILT = "**Summary of this conversation**\nbeing rebuilt."
NONE_YET = "**Summary of this conversation**\nnone yet"


def rolling(world: World, place: Any) -> Any:
    """A channel's summary as its file has it; None if there is none."""
    path = world.data / "memory" / "rolling" / f"discord:channel:{place.id}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def summed_up(world: World) -> list[str]:
    """What each summary was made from, oldest first."""
    return [request.prompt for request in world.background("summary")]


async def lost(world: World, **changes: Any) -> int:
    """The folder of summaries is deleted while the bot is down. Returns how many were made before."""
    await world.settle()
    before = len(summed_up(world))
    folder = world.data / "memory" / "rolling"
    await world.restart(meanwhile=lambda: shutil.rmtree(folder, ignore_errors=True), **changes)
    return before


class TestWhen:
    @pytest.mark.design(215, 216, 218, 240)
    async def test_is_every_five_turns_of_a_conversation_after_the_answer_and_it_is_cut(
        self, start: Start
    ) -> None:
        shown: list[str] = []

        def long(_: Received) -> str:
            shown.append(world.answer(world.general))
            return "s" * 5000

        async with start(summary_every=5, **QUIET) as world:
            world.brain.writes("summary", long)
            for number in range(4):
                await world.says(world.ann, world.general, f"turn {number}")
                await world.says(world.bob, world.dev, f"elsewhere {number}")
            assert summed_up(world) == []
            world.brain.says("the fifth answer")
            await world.says(world.bob, world.general, "turn 4")
            (prompt,) = summed_up(world)
            assert shown == ["the fifth answer"]
            assert all(f"turn {number}" in prompt for number in range(5)) and "elsewhere" not in prompt
            assert "1200" in prompt.partition("Maximum length:")[2]  # of 2,000: room for old lines
            stored_summary = rolling(world, world.general)
            assert list(stored_summary) == ["summary", "updatedAt"]
            assert 1990 <= len(stored_summary["summary"]) <= 2000
            for number in range(4):
                await world.says(world.ann, world.general, f"later {number}")
            await world.restart()
            await world.settle()
            assert len(summed_up(world)) == 1
            await world.says(world.ann, world.general, "later 4")  # four turns before, and one after it
            assert len(summed_up(world)) == 2
            assert all(f"later {number}" in summed_up(world)[1] for number in range(5))
            assert "turn 1" not in summed_up(world)[1]

    async def test_is_before_unseen_words_leave_the_window_of_a_talk_with_the_bot(self, start: Start) -> None:
        settings = {"summary_every": 1000, "context_history": 5, "respond_mode": "mention"}
        async with start(**settings, **QUIET) as world:
            for number in range(12):
                await world.bob.send(world.dev, f"aside {number}.")
            await world.settle()
            assert summed_up(world) == []  # a conversation that the bot has no part in
            await world.says(world.ann, world.general, f"{world.mention} hello")
            gone = await world.bob.send(world.general, "a regret")
            await world.bob.delete(gone)
            for number in range(12):
                await world.says(world.bob, world.general, f"line {number}.")
            shown = "".join(summed_up(world))
            assert all(shown.count(f"line {number}.") == 1 for number in range(6))
            assert "a regret" not in shown

    async def test_of_much_talk_is_made_in_pieces_in_its_order_and_so_is_what_is_learned(
        self, start: Start
    ) -> None:
        async with start(summary_every=1, durable_every=1, respond_mode="mention") as world:
            world.brain.writes("summary", *(f"Part {number}." for number in range(20)))
            for number in range(1, 12):
                await world.ann.send(world.general, f"<{number}>{'x' * 1900}")
            await world.says(world.ann, world.general, f"{world.mention} well?")
            for field, part in (("summary", "New messages:"), ("upserts", "Talk:")):
                asked = [request.prompt for request in world.background(field)]
                assert len(asked) > 1 and max(map(len, asked)) < 18_000
                pieces = [prompt.partition(part)[2] for prompt in asked]
                if field == "upserts":
                    pieces = ["".join(own_lines(prompt).values()) for prompt in asked]
                numbers = [int(one) for one in re.findall(r"<(\d+)>", "".join(pieces))]
                assert numbers == list(range(1, 12)), field
            assert "Part 0." in summed_up(world)[1]

    async def test_asks_a_model_that_fails_ever_more_rarely(self, start: Start) -> None:
        async with start(context_history=5, summary_every=1000, respond_mode="mention", **QUIET) as world:
            broken = failure(401, "authentication_error")
            world.brain.writes("summary", broken)
            await world.says(world.ann, world.general, f"{world.mention} hello")
            asked_after = []
            for number in range(50):
                before = len(summed_up(world))
                await world.bob.send(world.general, f"line {number}.")
                await world.settle()
                if len(summed_up(world)) > before:
                    asked_after.append(number)
            waits = [later - earlier for earlier, later in pairwise(asked_after)]
            assert 3 <= len(asked_after) <= 6
            assert waits == sorted(waits) and waits[-1] > waits[0]


class TestWhatItIsFor:
    @pytest.mark.design(229, 232, 259)
    async def test_is_shown_and_cleared_for_its_conversation_and_outlived_by_a_preference(
        self, start: Start
    ) -> None:
        async with start(summary_every=1, **QUIET) as world:
            world.brain.writes("summary", "They like boats.")
            stored(world, ("preference", "User prefers green tea", {}))
            for number in range(15):
                await world.says(world.ann, world.general, f"rain {number}")
            await world.says(world.ann, world.dev, "hello")
            assert len(summed_up(world)) >= 16
            await world.says(world.ann, world.general, "which tea do I prefer?")
            assert durable(world.prompt) == ["User prefers green tea"]
            assert f"{ROLLING}They like boats." in world.prompt
            assert [item["createdAt"] for item in world.items(world.ann)] == [MAY]
            shown = await world.says(world.ann, world.general, "!memory show")
            assert "You prefer green tea (id " in shown and "They like boats." in shown
            told = await world.says(world.ann, world.general, "!memory reset rolling")
            assert told == "I cleared the summary of this conversation."
            assert rolling(world, world.general) is None and rolling(world, world.dev) is not None
            assert NONE_YET in await world.says(world.ann, world.general, "!memory show")

    async def test_tells_a_channel_and_its_threads_what_was_decided_there_and_asks_no_dm(
        self, start: Start
    ) -> None:
        agreed = {"summary": "They talked.", "decisions": ["We use tabs."]}
        async with start(**QUIET) as world:
            world.brain.writes("summary", agreed)
            for words in ("tabs?", "tabs!"):
                await world.says(world.ann, world.ann_dm, words)
            assert "Known" not in summed_up(world)[-1]
            assert not (world.data / "memory" / "groups").exists()
            for words in ("shall we use tabs?", "tabs it is", "really?", "yes"):
                await world.says(world.ann, world.general, words)
            assert "Known decisions of this channel:\n- We use tabs." in summed_up(world)[-1]
            await world.restart()
            channel = world.env.bot.get_channel(world.general.id)
            await channel.create_thread(name="release", type=discord.ChannelType.public_thread)
            await world.env.settle()
            (thread,) = world.general.threads
            await world.says(world.bob, thread, "what did we decide?")
            assert ": We use tabs." in world.prompt + world.turns()[-1].system
            assert {name for _, name in record_on_disk(world, "groups", world.general)["members"]} == {
                "ann",
                "bob",
            }
            assert record_on_disk(world, "groups", thread) is None
            await world.env.advance_time(2)
            await world.says(world.ann, world.ann_dm, "!memory erase --yes")
            assert world.files_with("We use tabs.") == []
            await world.says(world.bob, world.general, "what did we decide?")
            assert "We use tabs." not in world.prompt + world.turns()[-1].system


class TestWhatIsInIt:
    async def test_stays_word_for_word_over_many_updates_and_no_lie_comes_in(self, start: Start) -> None:
        today = "2026-01-01"
        things = ("kayak", "lantern", "violin", "pepper")
        facts = [f"- {today} ann: the {thing} costs {1000 + n} euros" for n, thing in enumerate(things)]

        def drifting(request: Received) -> str:
            """Writes down what is new and a lie, and leaves out one of the lines that were there."""
            number = len(summed_up(world)) - 1
            before = facts[:number]
            lie = f"- 2020-01-01 ann: owns {900 + number} boats"
            return "\n".join(["Decided:", facts[number], lie, *before[number % 2 :]])

        async with start(summary_every=1, **QUIET) as world:
            world.brain.writes("summary", drifting)
            for number, thing in enumerate(things):
                await world.says(world.ann, world.general, f"the {thing} costs {1000 + number} euros")
            lines = rolling(world, world.general)["summary"].splitlines()
            assert sorted(line for line in lines if line.startswith("- ")) == sorted(facts)

    async def test_changes_line_by_line_for_what_the_model_quotes(self, start: Start) -> None:
        def patch(**changes: dict[str, str]) -> dict[str, Any]:
            return {"summary": {how: [{"source": "m1", **one}] for how, one in changes.items()}, "themes": []}

        kayak, cost = (
            {"section": "decided", "text": "the kayak costs 1000 euros"},
            "the kayak costs 900 euros",
        )
        turns = [
            (kayak["text"], patch(add={**kayak, "quote": kayak["text"]})),
            ("who paddles?", patch(add={"section": "open", "text": "who paddles?", "quote": "who paddles"})),
            (f"no, {cost}", patch(change={"id": "l2", "text": cost, "quote": cost})),
            (
                "I am a good boy",
                patch(change={"id": "l2", "text": "the kayak is mine", "quote": "never said so"}),
            ),
            ("Ann will paddle", patch(done={"id": "l1", "quote": "Ann will paddle"})),
            ("thanks", {"summary": {}}),
        ]
        found = list[str]()
        async with start(summary_every=1, **QUIET) as world:
            world.brain.writes("summary", *(answer for _, answer in turns))
            for said, _ in turns:
                await world.says(world.ann, world.general, said)
                found.append(rolling(world, world.general)["summary"])
            assert "Decided:\nl2 2026-01-01 ann: the kayak costs 900 euros" in summed_up(world)[-1]
            assert cost in await world.says(world.ann, world.general, "!memory show")
        first = "Decided:\n- 2026-01-01 ann: the kayak costs 1000 euros"
        question = "Open:\n- 2026-01-01 ann: who paddles?\n"
        later = first.replace("1000", "900")
        settled = question.replace("?", "? (done)")
        assert found == [first, question + first, question + later, question + later, settled + later, later]

    async def test_that_loses_its_last_line_is_empty_and_does_not_come_back(self, start: Start) -> None:
        lent, denied = "I lend Bob my red kayak", "I never lent Bob a red kayak"
        line = {"section": "open", "text": "lends Bob the red kayak", "source": "m1", "quote": lent}
        gone = {"id": "l1", "source": "m1", "quote": denied}
        answers = [{"summary": one, "themes": []} for one in ({"add": [line]}, {"drop": [gone]}, {})]
        async with start(summary_every=1, **QUIET) as world:
            world.brain.writes("summary", *answers)
            await world.says(world.ann, world.general, lent)
            assert "lends Bob the red kayak" in rolling(world, world.general)["summary"]
            await world.says(world.ann, world.general, denied)
            assert rolling(world, world.general)["summary"] == ""
            await world.restart()
            assert NONE_YET in await world.says(world.ann, world.general, "!memory show")
            await world.says(world.ann, world.general, "hello")
            assert "Previous summary:\nnone" in summed_up(world)[-1] and lent not in summed_up(world)[-1]
            before = await lost(world)
            await world.says(world.ann, world.general, "good morning")
            assert lent not in "".join(summed_up(world)[before:])

    async def test_is_never_replaced_by_nothing_and_its_messages_come_again(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(summary_every=1, **QUIET) as world:
            broken = failure(401, "authentication_error")
            world.brain.writes("summary", "Old.", "none", "Now:\n- none\nOpen:", broken, "New.")
            for number in range(4):
                await world.says(world.ann, world.general, f"line {number}.")
                assert rolling(world, world.general)["summary"] == "Old."
            assert "changed nothing" in caplog.text
            await world.says(world.ann, world.general, "line 4.")
            assert rolling(world, world.general)["summary"] == "New."
            assert all(f"line {number}." in summed_up(world)[-1] for number in range(1, 5))

    async def test_names_people_the_same_until_they_take_another_name_or_leave(self, start: Start) -> None:
        async with start(summary_every=1, timezone="Asia/Tokyo", **QUIET) as world:
            for person in (world.ann, world.bob):
                await renamed(world, person, "Sam")
            await world.says(world.ann, world.general, "the kayak is mine")
            await world.says(world.bob, world.general, "the lantern is mine")
            await world.restart()
            await world.says(world.bob, world.general, "and the violin")
            assert "[Sam #2]: and the violin" in summed_up(world)[-1]
            assert "(UTC+09:00)" in summed_up(world)[-1]
            await renamed(world, world.bob, "Samira")
            await world.says(world.bob, world.general, "the pepper is mine")
            assert "[Samira (was Sam #2)]: the pepper is mine" in summed_up(world)[-1]
            await world.env.advance_time(2)
            await world.says(world.bob, world.general, "!memory erase --yes")
            assert world.files_with("Samira") == []


class TestALostSummary:
    @pytest.mark.design(314)
    @pytest.mark.parametrize("archive", [False, True])
    async def test_comes_back_from_all_that_was_said_and_until_then_people_are_told(
        self, start: Start, archive: bool
    ) -> None:
        async with start(archive_enabled=archive, **QUIET) as world:
            for number in range(24):
                await world.ann.send(world.general, f"boat number {number}.")
            before = await lost(world, catch_up_hours=0)
            assert REBUILT in await world.says(world.ann, world.general, "!memory show")
            await world.says(world.ann, world.general, "And now?")
            assert rolling(world, world.general)["summary"] == "They talked."
            shown = "".join(summed_up(world)[before:])  # the window has 20 messages; the talk had 48
            assert all(f"boat number {number}." in shown for number in range(24)) and "And now?" in shown
            told = await world.says(world.ann, world.general, "!memory show")
            assert "They talked." in told and REBUILT not in told
            before = await lost(world, catch_up_hours=24)  # and by itself where the bot catches up
            await world.settle()
            assert rolling(world, world.general) is not None
            assert "boat number 20." in "".join(summed_up(world)[before:])

    @pytest.mark.parametrize("how", ["optout", "reset later", "deleted"])
    async def test_brings_nothing_back_that_was_taken_back(self, start: Start, how: str) -> None:
        async with start(catch_up_hours=0, **QUIET) as world:
            await world.says(world.ann, world.general, "I have a boat.")
            gone = await world.bob.send(world.general, "I have a yacht.")
            await world.says(world.ann, world.dev, "The sloop is elsewhere.")
            if how == "reset later":
                await lost(world)
            if how == "deleted":
                await world.bob.delete(gone)
            else:
                await world.says(world.bob, world.general, f"!memory {how.replace('later', 'rolling')}")
            await world.env.advance_time(1)
            before = await lost(world)
            for number in range(4):
                await world.says(world.ann, world.general, f"raft number {number}.")
            before = await lost(world) and before
            await world.says(world.ann, world.general, "And now?")
            shown = "".join(summed_up(world)[before:])
            assert rolling(world, world.general) is not None and "raft number 0." in shown
            assert "yacht" not in shown and "sloop" not in shown
