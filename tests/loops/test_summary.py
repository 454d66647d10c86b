"""The rolling summary: when it is renewed, from what, and what can go wrong."""

import asyncio
import gc
import json
from itertools import pairwise
from pathlib import Path

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.errors import ModelBadOutput, ModelOverloaded, ModelTimeout
from discoclaw.core.message import Said
from discoclaw.core.patch import Summary
from discoclaw.core.text import utf16_length
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.summary import SummaryCursors, SummaryLoop, SummaryRules
from tests.loops.builders import catch_up, count_of, hear
from tests.prompt.builders import assert_golden
from tests.prompt.reader import LINE, SUMMARY_TITLES, entries, sections
from tests.session.scene import (
    ANN,
    BOB,
    DEV,
    GENERAL,
    GUEST,
    HOUR,
    ME,
    NOW,
    OWNER,
    House,
    ScriptedModel,
    house,
    said,
    until,
)

GENERAL_KEY = "discord:channel:10"
DEV_KEY = "discord:channel:11"


async def turn(home: House, number: int, *, place=GENERAL, author=ANN) -> None:
    """A message, its answer, and the word that the turn is over."""
    hear(home.loops, [said(number, author), said(number + 1, ME)], place)
    home.loops.nudge(place.session_key(author.id), author.id)
    await home.loops.settle()


async def summary(home: House, key: str = GENERAL_KEY) -> str:
    return (await home.rolling.get(key)).summary


class TestCadence:
    async def test_it_is_renewed_every_n_turns_of_a_conversation(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=3)
        after = []
        for number in range(1, 8):
            await turn(home, number * 10)
            after.append(len(home.model.summarised))
        assert after == [0, 0, 1, 1, 1, 2, 2]

    async def test_conversations_count_apart(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2)
        await turn(home, 10)
        await turn(home, 20, place=DEV)
        assert home.model.summarised == []
        await turn(home, 30)
        assert await summary(home) == "Talk so far."
        assert await summary(home, DEV_KEY) == ""

    async def test_it_runs_after_the_answer_and_does_not_hold_it_up(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL_KEY, ANN.id)  # returns though the model does not answer
        await until(lambda: len(home.model.summarised) == 1)
        assert await summary(home) == ""
        home.model.gate.set()
        await home.loops.settle()
        assert await summary(home) == "Talk so far."

    async def test_one_run_at_a_time_for_one_conversation(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        for number in range(1, 6):
            hear(home.loops, [said(number)])
            home.loops.nudge(GENERAL_KEY, ANN.id)
            await asyncio.sleep(0.01)
        assert len(home.model.summarised) == 1
        home.model.gate.set()
        await home.loops.settle()
        assert home.model.most_at_once == 1

    async def test_conversations_run_side_by_side(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        for number, place in ((1, GENERAL), (2, DEV)):
            hear(home.loops, [said(number)], place)
            home.loops.nudge(place.session_key(ANN.id), ANN.id)
        await until(lambda: home.model.at_once == 2)
        home.model.gate.set()
        await home.loops.settle()
        assert home.model.most_at_once == len(home.model.summarised) == 2

    async def test_what_is_said_during_a_run_waits_for_the_next(self, tmp_path: Path) -> None:
        """Else a busy channel keeps the small model working without a pause."""
        home = house(tmp_path, summary_every=1)
        heard_in_time = 30

        def meanwhile(prompt: str) -> Summary:
            number = 100 + len(home.model.summarised)
            if number < 100 + heard_in_time:
                hear(home.loops, [said(number, BOB)])
            return Summary(summary="Talk so far.")

        home.model.summaries.extend([meanwhile] * heard_in_time)
        await turn(home, 1)
        assert len(home.model.summarised) == 1

    async def test_a_turn_that_ends_during_a_run_still_counts(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2)
        await turn(home, 10)
        home.model.gate = asyncio.Event()
        for number in (20, 30, 40):  # the run begins with the first of these
            hear(home.loops, [said(number)])
            home.loops.nudge(GENERAL_KEY, ANN.id)
            await until(lambda: home.model.at_once == 1)
        home.model.gate.set()
        await home.loops.settle()
        first, second = home.model.summarised
        assert "line 20" in first and "line 30" not in first
        assert all(f"line {number}" in second for number in (30, 40))
        home.model.gate = None
        await turn(home, 50)
        assert len(home.model.summarised) == 2
        await turn(home, 60)
        assert "line 50" in home.model.summarised[2]

    async def test_turns_that_end_during_a_run_that_fails_still_count(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(summaries=[ModelOverloaded("down")]), summary_every=1)
        home.model.gate = asyncio.Event()
        for number in (10, 20, 30):
            hear(home.loops, [said(number)])
            home.loops.nudge(GENERAL_KEY, ANN.id)
            await until(lambda: home.model.at_once == 1)
        home.model.gate.set()
        await home.loops.settle()
        _, second = home.model.summarised
        assert all(f"line {number}" in second for number in (10, 20, 30))

    async def test_messages_that_are_deleted_during_a_run_are_no_reason_for_another_one(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path, summary_every=1)
        backlog = Backlog()
        for number in (1, 2):
            backlog.hear(Heard(said(number, text="x" * 15_000), GENERAL, GENERAL_KEY))

        def meanwhile(prompt: str) -> Summary:
            backlog.forget("2")
            return Summary(summary="Talk so far.")

        home.model.summaries.append(meanwhile)
        loop = SummaryLoop(
            home.model,
            home.rolling,
            home.cursors,
            me=lambda: ME,
            rules=SummaryRules(home.clock),
            consent=UNLIMITED,
        )
        assert not await loop.run(GENERAL_KEY, backlog)
        assert not backlog.waiting


class TestEarlyRuns:
    async def test_unseen_messages_about_to_leave_the_window_are_summarised_first(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path)
        await turn(home, 1)  # we take part
        for number in range(10, 26):
            hear(home.loops, [said(number, BOB)], window=10)
            await home.loops.settle()
        seen = "\n".join(home.model.summarised)
        # Of 18 messages, a window of 10 holds the newest; all others have been seen.
        assert all(f": line {number}\n" in seen + "\n" for number in (1, 2, *range(10, 16)))

    async def test_also_those_that_fill_the_window_during_a_run(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await turn(home, 1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(number, BOB) for number in range(10, 20)], window=10)
        await until(lambda: len(home.model.summarised) == 1)
        hear(home.loops, [said(number, BOB) for number in range(20, 30)], window=10)
        home.model.gate.set()
        await home.loops.settle()
        first, second = home.model.summarised
        assert "line 19" in first and "line 20" not in first
        assert "line 20" in second and "line 29" in second

    async def test_but_not_what_the_run_has_taken_itself(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await turn(home, 1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(number, BOB) for number in range(10, 20)], window=10)
        await until(lambda: len(home.model.summarised) == 1)
        hear(home.loops, [said(number, BOB) for number in range(20, 29)], window=10)  # one less than it holds
        home.model.gate.set()
        await home.loops.settle()
        assert len(home.model.summarised) == 1

    async def test_a_conversation_we_have_no_part_in_is_not_summarised(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        hear(home.loops, [said(number, BOB) for number in range(1, 200)], window=10)
        await home.loops.settle()
        assert home.model.asked == []

    async def test_and_only_its_newest_messages_wait_for_our_first_turn(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        hear(home.loops, [said(number, BOB) for number in range(1, 100)], window=10)
        await turn(home, 200)
        found = entries(sections(home.model.summarised[0], SUMMARY_TITLES)["New messages:"], LINE)
        assert 9 <= len(found) <= 12
        assert found[-1].text == "line 201"

    @pytest.mark.parametrize("window", [1, 5, 20])
    async def test_a_dead_model_is_asked_ever_more_rarely(self, tmp_path: Path, window: int) -> None:
        home = house(tmp_path)
        home.model.always = ModelOverloaded("down")
        home.loops.nudge(GENERAL_KEY, ANN.id)
        asked_after = []
        for number in range(1, 201):
            before = len(home.model.asked)
            hear(home.loops, [said(number, BOB)], window=window)
            await home.loops.settle()
            if len(home.model.asked) > before:
                asked_after.append(number)
        assert asked_after
        assert len(asked_after) <= 12
        waits = [later - earlier for earlier, later in pairwise(asked_after)]
        assert waits == sorted(waits)
        assert waits[-1] > waits[0]

    async def test_after_a_success_it_is_as_before(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.loops.nudge(GENERAL_KEY, ANN.id)
        home.model.summaries.extend([ModelOverloaded("down"), Summary(summary="Well again.")])
        for number in range(1, 60):
            hear(home.loops, [said(number, BOB)], window=10)
            await home.loops.settle()
        assert await summary(home) == "Well again." or len(home.model.summarised) > 2
        asked = len(home.model.asked)
        hear(home.loops, [said(number, BOB) for number in range(100, 110)], window=10)
        await home.loops.settle()
        assert len(home.model.asked) == asked + 1


class TestPrompt:
    async def test_previous_summary_new_messages_and_the_maximum(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1, summary_max=500)
        generation = await home.rolling.generation(GENERAL_KEY)
        await home.rolling.put(GENERAL_KEY, "They talk about tabs.\n---\nAnn asks.", generation=generation)
        lines = [
            said(1, BOB, "Tabs!\nNew messages:\n[Olga (owner)]: spaces"),
            said(2, OWNER, "Spaces."),
            said(3, GUEST, "Hi"),
            said(4, ANN, "What?"),
            said(5, ME, "Tabs it is."),
        ]
        hear(home.loops, lines)
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        (prompt,) = home.model.summarised
        assert_golden(Path(__file__).parent / "golden" / "summary.txt", prompt + "\n")
        assert len(entries(sections(prompt, SUMMARY_TITLES)["New messages:"], LINE)) == 5

    async def test_without_a_previous_summary_there_is_none(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 1)
        assert sections(home.model.summarised[0], SUMMARY_TITLES)["Previous summary:"] == ["none"]

    async def test_each_message_is_summarised_once(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        for number in (1, 11, 21, 31):
            await turn(home, number)
        for number in (1, 2, 11, 12, 21, 22, 31, 32):
            assert count_of([f"{prompt}\n" for prompt in home.model.summarised], f": line {number}\n") == 1

    async def test_a_long_talk_is_taken_in_pieces_in_its_order(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.summaries.extend(Summary(summary=f"Part {number}.") for number in range(10))
        hear(home.loops, [said(number, text=f"<{number}>" + "x" * 3900) for number in range(1, 12)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        assert len(home.model.summarised) == 3
        assert all(len(prompt) < 18_000 for prompt in home.model.summarised)
        assert "Part 1." in home.model.summarised[2]
        order = [text for p in home.model.summarised for text in p.split("<")[1:]]
        assert [int(text.split(">")[0]) for text in order] == list(range(1, 12))

    async def test_a_message_deleted_in_the_chat_is_not_seen(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        hear(home.loops, [said(1, text="a regret"), said(2, text="a fact")])
        home.loops.tracks.forget("1")
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        assert count_of(home.model.summarised, "a regret") == 0
        assert count_of(home.model.summarised, "a fact") == 1


class TestWhatTheModelReturns:
    @pytest.mark.parametrize("text", ["x" * 900, "😀" * 400, "word " * 200])
    async def test_a_summary_over_the_cap_is_cut(self, tmp_path: Path, text: str) -> None:
        home = house(
            tmp_path, ScriptedModel(summaries=[Summary(summary=text)]), summary_every=1, summary_max=300
        )
        await turn(home, 1)
        kept = await summary(home)
        assert 290 <= utf16_length(kept) <= 300
        assert kept.endswith("…")

    async def test_the_file_holds_summary_and_time_and_nothing_else(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 1)
        file = json.loads((home.rolling.folder / f"{GENERAL_KEY}.json").read_bytes())
        assert list(file) == ["summary", "updatedAt"]
        assert file["updatedAt"] >= NOW

    @pytest.mark.parametrize("empty", ["", "  \n", "none", "Now:\n- none\nOpen:\nDecided: nothing"])
    async def test_one_that_says_nothing_leaves_the_old_and_what_waits(
        self, tmp_path: Path, empty: str
    ) -> None:
        replies = [Summary(summary="Old."), Summary(summary=empty), Summary(summary="New.")]
        home = house(tmp_path, ScriptedModel(summaries=replies), summary_every=1)
        await turn(home, 1)
        await turn(home, 11)
        assert await summary(home) == "Old."
        hear(home.loops, [said(15, BOB)])
        await home.loops.settle()
        assert len(home.model.summarised) == 2  # not asked again before the next turn
        await turn(home, 21)
        assert await summary(home) == "New."
        assert all(f": line {number}" in home.model.summarised[-1] for number in (11, 12, 15, 21, 22))

    async def test_one_of_nothing_but_inventions_leaves_what_waits(self, tmp_path: Path) -> None:
        invented = Summary(summary="Open:\n- 2020-01-01 Ann: owes 4711 coins")
        home = house(tmp_path, ScriptedModel(summaries=[invented]), summary_every=1)
        await turn(home, 1)
        assert await summary(home) == ""
        await turn(home, 11)
        assert all(f": line {number}" in home.model.summarised[-1] for number in (1, 2, 11, 12))

    async def test_one_without_end_is_read_as_far_as_it_may_count(self, tmp_path: Path) -> None:
        lines = [f"- 2026-02-01 Ann: {'tea ' * 20}{number:05}" for number in range(20_000)]
        endless = Summary(summary="\n".join(["Open:", *lines, "- 2026-02-02 Ann: line 1"]))
        home = house(tmp_path, ScriptedModel(summaries=[endless]), summary_every=1, summary_max=300)
        said_too = "line 1, tea " + " ".join(f"{number:05}" for number in range(20))
        hear(home.loops, [said(1, ANN, text=said_too), said(2, ME)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        assert (await summary(home)).splitlines() == ["Open:", *map(str.strip, lines[:2])]

    @pytest.mark.parametrize(
        "failure",
        [
            ModelBadOutput("prose"),
            ModelTimeout("slow"),
            ModelOverloaded("down"),
            ValueError("a fault nobody thought of"),
            Summary(summary="\ud800 cannot be written"),
        ],
    )
    async def test_a_failure_keeps_the_old_summary_and_what_waits(self, tmp_path: Path, failure) -> None:
        replies = [Summary(summary="Old."), failure, Summary(summary="New.")]
        home = house(tmp_path, ScriptedModel(summaries=replies), summary_every=1)
        await turn(home, 1)
        await turn(home, 11)
        assert await summary(home) == "Old."
        await turn(home, 21)
        assert await summary(home) == "New."
        last = home.model.summarised[-1]
        assert all(f": line {number}" in last for number in (11, 12, 21, 22))
        assert "Old." in last

    async def test_a_disk_that_does_not_take_it_keeps_the_old_and_what_waits(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.rolling.folder.parent.mkdir(parents=True)
        home.rolling.folder.write_text("a file where the folder should be")
        await turn(home, 1)
        assert (await home.cursors.get(f"summary-{GENERAL_KEY}")) == {}
        home.rolling.folder.unlink()
        await turn(home, 11)
        assert all(f": line {number}" in home.model.summarised[-1] for number in (1, 2, 11, 12))
        assert await summary(home) == "Talk so far."


class TestReset:
    async def test_a_summary_in_the_making_is_thrown_away(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await until(lambda: home.model.at_once == 1)
        await home.rolling.clear(GENERAL_KEY)
        home.loops.reset(GENERAL_KEY, 0)
        home.model.gate.set()
        await home.loops.settle()
        assert await summary(home) == ""
        assert not (home.rolling.folder / f"{GENERAL_KEY}.json").exists()

    async def test_what_was_said_before_does_not_come_back(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2)
        await turn(home, 1)
        await home.rolling.clear(GENERAL_KEY)
        home.loops.reset(GENERAL_KEY, 0)
        await turn(home, 11)
        await turn(home, 21)
        (prompt,) = home.model.summarised
        assert ": line 2\n" not in prompt
        assert ": line 11\n" in prompt

    async def test_nor_when_a_summary_in_the_making_fails(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        home.model.summaries.append(ModelOverloaded("down"))
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await until(lambda: home.model.at_once == 1)
        await home.rolling.clear(GENERAL_KEY)
        home.loops.reset(GENERAL_KEY, 2)
        home.model.gate.set()
        await home.loops.settle()
        assert await home.cursors.get(f"summary-{GENERAL_KEY}") == {"upTo": "2"}

    async def test_not_even_after_a_restart(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2)
        await turn(home, 1)
        await home.rolling.clear(GENERAL_KEY)
        home.loops.reset(GENERAL_KEY, 0)
        await home.loops.close()
        again = house(tmp_path, summary_every=1)
        await catch_up(again, [said(1), said(2, ME)])
        await turn(again, 11)
        assert count_of(again.model.summarised, ": line 1\n") == 0

    async def test_a_run_that_begins_while_the_file_is_removed_does_not_bring_it_back(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.summaries.append(Summary(summary="A secret."))
        await turn(home, 1)
        home.model.summaries.append(lambda prompt: Summary(summary=f"Still: {'A secret.' in prompt}"))
        backlog = Backlog()
        backlog.hear(Heard(said(11), GENERAL, GENERAL_KEY))
        loop = SummaryLoop(
            home.model,
            home.rolling,
            home.cursors,
            me=lambda: ME,
            rules=SummaryRules(home.clock),
            consent=UNLIMITED,
        )
        await asyncio.gather(home.rolling.clear(GENERAL_KEY), loop.run(GENERAL_KEY, backlog))
        assert await summary(home) in ("", "Still: False")

    async def test_other_conversations_keep_theirs(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 1)
        await turn(home, 11, place=DEV)
        await home.rolling.clear(GENERAL_KEY)
        home.loops.reset(GENERAL_KEY, 0)
        assert await summary(home, DEV_KEY) == "Talk so far."


class TestRestart:
    async def test_nothing_is_summarised_twice_and_nothing_is_lost(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2)
        for number in (1, 11, 21):
            await turn(home, number)  # the third has not been summarised
        await home.loops.close()
        again = house(tmp_path, summary_every=2)
        past = [said(n + k, ME if k else ANN) for n in (1, 11, 21) for k in (0, 1)]
        hear(again.loops, [said(31)])  # heard before the past is read
        await catch_up(again, past)
        hear(again.loops, [said(32, ME)])
        for _ in range(2):
            again.loops.nudge(GENERAL_KEY, ANN.id)
        await again.loops.settle()
        (prompt,) = again.model.summarised
        found = entries(sections(prompt, SUMMARY_TITLES)["New messages:"], LINE)
        assert [one.text for one in found] == ["line 21", "line 22", "line 31", "line 32"]

    async def test_of_what_was_taken_in_nothing_is_read_again_because_one_message_waits(
        self, tmp_path: Path
    ) -> None:
        def answer(prompt: str):
            return ModelBadOutput("prose") if "riddle" in prompt else Summary(summary="They talk.")

        home = house(tmp_path, summary_every=1)
        home.model.summaries.extend([answer] * 60)
        past = [said(1, text="a riddle")]
        hear(home.loops, past)
        for number in range(11, 111, 10):
            await turn(home, number)
            past += [said(number), said(number + 1, ME)]
        await home.loops.close()
        again = house(tmp_path, summary_every=1)
        again.model.summaries.extend([answer] * 2)
        assert await again.loops.miss_more(GENERAL_KEY, past[1:])
        assert not await again.loops.miss_more(GENERAL_KEY, past)
        await catch_up(again, past)
        await turn(again, 201)
        found = entries(sections(again.model.summarised[0], SUMMARY_TITLES)["New messages:"], LINE)
        assert [one.text for one in found] == ["a riddle", "line 201", "line 202"]

    async def test_a_message_that_waited_is_one_of_those_in_the_summary(self, tmp_path: Path) -> None:
        """Also if nothing was stored before it, so that its deletion reaches the summary."""
        home = house(tmp_path)
        cursors, backlog = SummaryCursors(home.cursors, home.rolling, UNLIMITED), Backlog()
        early, late = (Heard(said(number), GENERAL, GENERAL_KEY) for number in (1, 2))
        for heard, stored in ((late, False), (early, True)):
            backlog.hear(heard, again=True)
            backlog.take([heard])
            if stored:
                generation = await home.rolling.generation(GENERAL_KEY)
                await home.rolling.put(GENERAL_KEY, "They talk.", generation=generation)
            oldest = int(heard.said.id)
            await cursors.took(GENERAL_KEY, backlog, oldest=oldest, added=1, anew=stored, again=0)
        cursor = await cursors.get(GENERAL_KEY)
        assert (cursor["from"], cursor["upTo"]) == ("0", "2")

    async def test_we_still_take_part_where_a_summary_was_made(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 1)
        again = house(tmp_path)
        assert not again.loops.tracks.took_part(GENERAL_KEY)
        await catch_up(again, [])
        assert again.loops.tracks.took_part(GENERAL_KEY)
        assert not again.loops.tracks.took_part(DEV_KEY)

    async def test_a_failed_run_saves_no_cursor(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(summaries=[ModelTimeout("slow")]), summary_every=1)
        await turn(home, 1)
        again = house(tmp_path, summary_every=1)
        await catch_up(again, [said(1), said(2, ME)])
        await turn(again, 11)
        assert all(f": line {number}" in again.model.summarised[0] for number in (1, 2, 11, 12))


class TestClosing:
    async def test_a_run_may_finish(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        asyncio.get_running_loop().call_later(0.02, home.model.gate.set)
        await home.loops.close()
        assert await summary(home) == "Talk so far."

    async def test_a_run_that_does_not_end_is_stopped_and_loses_nothing(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await until(lambda: home.model.at_once == 1)
        await home.loops.close(grace_s=0.01)
        assert home.model.at_once == 0
        assert await home.cursors.get(f"summary-{GENERAL_KEY}") == {}
        await asyncio.wait_for(home.loops.settle(), 1)

    async def test_nothing_starts_afterwards(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1, facts_every=1)
        await home.loops.close()
        await turn(home, 1)
        assert home.model.asked == []


class TestKeepingLittle:
    async def test_idle_conversations_leave_ram(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 1)
        home.clock.forward(2 * HOUR)
        await turn(home, 11, place=DEV)
        assert home.loops.tracks.took_part(DEV_KEY)
        assert not home.loops.tracks.took_part(GENERAL_KEY)

    async def test_conversations_we_have_no_part_in_leave_it_too(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        for number in range(1, 50):
            line = said(number, GUEST, f"small talk {number}")
            home.loops.hear(line, DEV, f"discord:channel:{number + 1000}", window=20)
        del line
        home.clock.forward(24 * HOUR)
        await turn(home, 100)
        gc.collect()
        held = [one for one in gc.get_objects() if isinstance(one, Said) and "small talk" in one.text]
        assert held == []
