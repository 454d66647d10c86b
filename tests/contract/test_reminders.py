"""Reminders: asked for by command or in talk, shown, given once at their time, and taken back."""

import re
from pathlib import Path
from typing import Any

import pytest

from discoclaw.models.offline.model import OfflineModel
from tests.contract.cards import button, labels, said
from tests.contract.tools import called, commits
from tests.contract.world import Start, World

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "timezone": "Europe/Berlin"}
HOUR_S, DAY_S = 3_600, 86_400
# The simulated Discord begins on Thursday, 2026-01-01, at 00:00 UTC, which is one o'clock in Berlin.


async def later(world: World, seconds: float) -> None:
    """Let time pass in steps that a bot would notice, until everything is done."""
    await world.env.advance_time(seconds)
    await world.settle()


async def away(world: World, seconds: float) -> None:
    """The bot is off for so long."""
    await world.stop()
    await world.env.advance_time(seconds)
    await world.restart()
    await world.settle()


def reminders(place: Any) -> list[str]:
    """What the reminders in a channel say, oldest first, without their small print."""
    shown = [said(one) for one in place.history()]
    return [one.partition("\n")[2] for one in shown if one.startswith("-# ⏰ ")]


async def lists(world: World, person: Any = None) -> Any:
    """The card of somebody's reminders."""
    return (await (person or world.ann).slash(world.general, "remind list")).response


class TestAReminder:
    async def test_comes_once_where_it_was_asked_for_with_a_link_and_mentions_only_its_person(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            asked = "!remind in 20 minutes to take @everyone's tea out"
            told = await world.says(world.ann, world.general, asked)
            assert told.startswith(
                "⏰ take @everyone's tea out\n-# Thu 2026-01-01 01:20 (Europe/Berlin), <t:"
            )
            await later(world, 20 * 60 - 1)
            assert reminders(world.general) == []
            await later(world, 1)
            last = world.general.last_message
            first, text = said(last).splitlines()
            assert text == f"<@{world.ann.id}> take @everyone's tea out"
            question = next(one for one in world.general.history() if one.content == asked)
            assert f"{world.general.id}/{question.id}" in first and "late" not in first
            assert [one.id for one in last.mentions] == [world.ann.id] and not last.mention_everyone
            await later(world, 30 * DAY_S)
            await world.restart()
            await later(world, 30 * DAY_S)
            assert len(reminders(world.general)) == 1
            assert world.memories(world.ann) == [] and world.items(world.ann) == []

    async def test_asked_for_in_a_dm_or_for_a_dm_is_seen_by_nobody_else(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.ann_dm, "!remind tomorrow at 9 to call the dentist")
            sent = await world.ann.slash(
                world.general, "remind me", when="in 2 hours", what="buy a ring", where="dm"
            )
            assert "in a direct message" in said(sent.response)
            listed = await world.says(world.ann, world.general, "!remind list")
            assert "dentist" not in listed and "ring" not in listed and "2 private" in listed
            assert "dentist" in said(await lists(world))
            log = await world.says(world.ann, world.general, "!memory history log")
            assert "dentist" not in log and "set a reminder" in log
            await later(world, 2 * DAY_S)
            assert reminders(world.general) == []
            assert [one.partition("> ")[2] for one in reminders(world.ann_dm)] == [
                "buy a ring",
                "call the dentist",
            ]

    async def test_repeats_by_the_wall_clock_and_moves_with_its_person(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!memory timezone berlin")
            told = await world.says(world.ann, world.general, "!remind every day at 9 to stretch")
            assert "every day at 09:00, next Thu 2026-01-01 09:00 (Europe/Berlin)" in told
            await later(world, 8 * HOUR_S)
            assert len(reminders(world.general)) == 1
            await world.says(world.ann, world.general, "!memory timezone tokyo")
            assert "Fri 2026-01-02 09:00 (Asia/Tokyo)" in said(await lists(world))
            await later(world, 16 * HOUR_S)  # midnight UTC is nine in Tokyo
            assert len(reminders(world.general)) == 2
            await world.ann.click(world.general.last_message, label="Stop")
            await later(world, 3 * DAY_S)
            assert len(reminders(world.general)) == 1  # the message says now that it was deleted
            assert "None. Try" in said(await lists(world))

    async def test_every_last_monday_and_in_german(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(
                world.ann, world.general, "!remind every last Monday of the month at 10 pay rent"
            )
            await world.says(world.ann, world.general, "!remind am Freitag um 9 an den Zahnarzt")
            for _ in range(27):
                await later(world, DAY_S)
            assert [one.partition("> ")[2] for one in reminders(world.general)] == [
                "den Zahnarzt",
                "pay rent",
            ]
            for odd in (
                "!remind gibberish at some point",
                "!remind call mum",
                "!remind every 5 minutes blink",
            ):
                told = await world.says(world.ann, world.general, odd)
                assert "try `tomorrow at 9`, `in 20 minutes` or `every last" in told or "once an hour" in told


class TestWhileTheBotIsAway:
    async def test_it_comes_once_at_the_start_and_says_how_late_it_is(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.says(world.ann, world.general, "!remind every day at 9 to stretch")
            await away(world, 3 * HOUR_S)
            assert [one.partition("> ")[2] for one in reminders(world.general)] == ["breathe"]
            assert " · 2 h late" in world.answer(world.general)
            await world.restart()
            await world.settle()
            assert len(reminders(world.general)) == 1

    async def test_old_ones_come_as_one_message(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for number in range(3):
                await world.says(
                    world.ann, world.general, f"!remind in {number + 1} hours to do thing {number}"
                )
            await away(world, 9 * DAY_S)
            (only,) = reminders(world.general)
            assert all(f"thing {number}" in only for number in range(3)) and "8 d late" in only
            assert only.index("thing 0") < only.index("thing 2")

    async def test_due_times_are_made_anew_from_the_ledger(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            cursors = world.data / "memory" / "cursors"
            assert [one.name for one in cursors.glob("reminder-*")] == [f"reminder-{world.ann.id}.json"]

            def meanwhile() -> None:
                for one in cursors.glob("reminder-*"):
                    one.unlink()

            await world.restart(meanwhile=meanwhile)
            await later(world, HOUR_S)
            assert len(reminders(world.general)) == 1
            assert list(cursors.glob("reminder-*")) == []


class TestChangingOne:
    async def test_undo_cancels_it_and_the_log_says_so(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            told = await world.says(world.ann, world.general, "!memory undo")
            assert told.startswith("Done: took back: 1 reminder") and "- reminder: breathe" in told
            await world.says(world.ann, world.general, "!remind in 1 hour to eat")
            await world.ann.click(world.general.last_message, label="Undo")
            assert world.answer(world.general) == "-# deleted: eat"
            await later(world, DAY_S)
            assert reminders(world.general) == []
            await world.says(world.ann, world.general, "!memory undo")  # the deletion, a day later
            await world.settle()
            assert [one.partition("> ")[2] for one in reminders(world.general)] == ["eat"]
            log = await world.says(world.ann, world.general, "!memory history log")
            for words in ("set a reminder: breathe", "deleted a reminder: eat", "reminded you"):
                assert words in log, log
            assert "by itself, when it was due" in log

    async def test_that_has_come_can_not_be_taken_back(self, start: Start) -> None:
        async with start(**QUIET) as world:
            sent = await world.ann.slash(world.general, "remind me", when="in 1 hour", what="breathe")
            await later(world, HOUR_S)
            pressed = await world.ann.click(sent.response, label="Undo")
            assert "that reminder is over: it has come" in said(pressed.followups[-1]).lower()
            told = await world.says(world.ann, world.general, "!memory undo")
            assert "nothing left to undo" in told

    async def test_snooze_edit_and_delete_from_the_list(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            card = await lists(world)
            await world.ann.click(card, custom_id=button(card, "⋯"))
            assert labels(card) == ["10 min", "1 hour", "Tomorrow", "Edit", "Delete", "Back"]
            form = await world.ann.click(card, label="Edit")
            await world.ann.submit_modal(form, {"what": "breathe deeply", "when": "tomorrow at 9"})
            assert "Fri 2026-01-02 09:00" in said(card) and "breathe deeply" in said(card)
            await later(world, HOUR_S)
            assert reminders(world.general) == []
            await world.ann.click(card, custom_id=button(card, "⋯"))
            await world.ann.click(card, label="Delete")
            assert "Deleted: breathe deeply" in said(card) and "None. Try" in said(card)

    async def test_snooze_below_the_message_says_it_once_more(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await later(world, HOUR_S)
            await world.ann.click(world.general.last_message, label="10 min")
            assert reminders(world.general) == [] or "again" in world.answer(world.general)
            await later(world, 600)
            assert reminders(world.general)[-1].endswith("breathe")
            assert "late" not in world.answer(world.general)
            other = await world.bob.click(world.general.last_message, label="1 hour")
            assert "for somebody else" in said(other.response)

    async def test_by_words_as_text(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.says(world.ann, world.general, "!remind in 1 hour to eat")
            told = await world.says(world.ann, world.general, "!remind snooze breathe in 3 hours")
            assert told.startswith("breathe: Thu 2026-01-01 04:00")
            told = await world.says(
                world.ann, world.general, "!remind edit eat --what eat slowly --when at 7"
            )
            assert told.startswith("eat slowly: Thu 2026-01-01 07:00")
            assert (await world.says(world.ann, world.general, "!remind delete nothing")).startswith(
                "No reminder has the words"
            )
            told = await world.says(world.ann, world.general, "!remind delete slowly")
            assert told == "Deleted: eat slowly. `!memory undo` brings it back."
            assert (
                "no reminder has the words"
                in (await world.says(world.ann, world.general, "!remind delete slowly")).lower()
            )


class TestWhereItCanNotBeSaid:
    async def test_a_lost_channel_falls_back_to_a_dm_that_says_why(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            world.env.inject_error("POST", f"/channels/{world.general.id}/messages", status=403, times=None)
            await later(world, HOUR_S)
            assert reminders(world.general) == []
            assert f"because one of us can't use <#{world.general.id}>" in world.answer(world.ann_dm)
            assert reminders(world.ann_dm) == [f"<@{world.ann.id}> breathe"]

    async def test_blocked_everywhere_it_waits_in_the_list(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.ann_dm, "!remind in 1 hour to breathe")
            world.env.inject_error("POST", f"/channels/{world.ann_dm.id}/messages", status=403, times=None)
            await later(world, HOUR_S)
            await later(world, DAY_S)
            shown = said(await lists(world))
            assert "breathe" in shown and "could not be sent" in shown
            assert "None. Try" in said(await lists(world))  # it was seen

    async def test_while_discord_is_down_it_is_tried_again_and_comes_once(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            world.env.inject_error("POST", f"/channels/{world.general.id}/messages", status=503, times=2)
            await later(world, HOUR_S)
            for _ in range(4):
                await later(world, 120)
            assert len(reminders(world.general)) == 1


class TestAskedForInTalk:
    async def test_the_tool_sets_it_on_the_persons_own_words_and_shows_a_card(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me on Friday at 9 to call the dentist"
            given = {"what": "call the dentist", "when": "2026-01-02 09:00", "quote": words}
            told = await called(world, "remind", words=words, **given)
            assert re.fullmatch(r"Set: call the dentist, Fri 2026-01-02 09:00 \[[0-9a-f]{8}\]\.", told)
            card = world.general.last_message
            assert said(card).startswith("⏰ call the dentist\n-# Fri 2026-01-02 09:00 (Europe/Berlin)")
            assert labels(card) == ["Undo", "My time zone"]
            assert "call the dentist" in await called(world, "remind", action="list")
            told = await called(world, "remind", words="please hello", **given)
            assert told.startswith("failed: quote must be copied from the person's own message")
            await later(world, 2 * DAY_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> call the dentist"]

    async def test_whose_zone_isnt_known_may_name_it_below_and_is_asked_no_more(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me tomorrow at 9 to call"
            await called(world, "remind", words=words, what="call", when="tomorrow at 9", quote=words)
            card = world.general.last_message
            assert "(Europe/Berlin)" in said(card)
            assert "so I took the server's; `/memory timezone <city>` sets yours" in said(card)
            form = await world.ann.click(card, label="My time zone")
            wrong = await world.ann.submit_modal(form, {"city": "Atlantis"})
            assert "I don't know which time zone" in said(wrong.followups[-1])
            form = await world.ann.click(card, label="My time zone")
            await world.ann.submit_modal(form, {"city": "New York"})
            card = world.general.last_message
            assert "2026-01-02 09:00 (America/New_York)" in said(card) and labels(card) == ["Undo"]
            await world.says(world.ann, world.general, "!remind tomorrow at 10 to eat")
            assert labels(world.general.last_message) == ["Undo"]
            await later(world, 2 * DAY_S)
            assert len(reminders(world.general)) == 2
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 20 minutes to eat")  # in whatever zone
            assert labels(world.general.last_message) == ["Undo"]
            await world.says(world.ann, world.general, "!remind tomorrow at 9 to call")
            card = world.general.last_message
            await later(world, 2 * DAY_S)  # it is over, and where they are still counts
            form = await world.ann.click(card, label="My time zone")
            await world.ann.submit_modal(form, {"city": "New York"})
            shown = next(one for one in world.general.history() if one.id == card.id)
            assert said(shown).startswith("-# From now on your time zone is `America/New_York`")

    async def test_undo_below_the_answer_cancels_it(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to eat"
            await called(world, "remind", words=words, what="eat", when="in 20 minutes", quote=words)
            await world.ann.click(world.general.last_message, label="Undo")
            await later(world, HOUR_S)
            assert reminders(world.general) == []

    async def test_a_deleted_message_takes_it_back(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to eat"
            await called(world, "remind", words=words, what="eat", when="in 20 minutes", quote=words)
            asked = next(one for one in world.general.history() if one.content == words)
            await world.ann.delete(asked)
            await world.settle()
            await later(world, HOUR_S)
            assert reminders(world.general) == []
            assert commits(world)[-1]["events"][0]["ext"]["reminder"]["did"] == "unsaid"

    async def test_the_offline_model_understands_it(self, start: Start) -> None:
        async with start(**QUIET, model=OfflineModel()) as world:
            await world.says(world.ann, world.general, "Remind me in 20 minutes here to take the tea out!")
            shown = world.shown(world.general)
            assert any("take the tea out, Thu 2026-01-01 01:20" in one for one in shown), shown
            await later(world, 20 * 60)
            assert reminders(world.general) == [f"<@{world.ann.id}> take the tea out"]
            await world.says(world.bob, world.general, "Erinnere mich am Freitag um 9 an den Zahnarzt")
            await later(world, 2 * DAY_S)
            assert reminders(world.general)[-1] == f"<@{world.bob.id}> den Zahnarzt"


class TestWhoWantsNoMemory:
    async def test_is_refused_and_what_was_set_waits(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.says(world.ann, world.general, "!memory data optout")
            told = await world.says(world.ann, world.general, "!remind in 1 hour to eat")
            assert "opted out" in told
            await later(world, 2 * HOUR_S)
            assert reminders(world.general) == []
            await world.says(world.ann, world.general, "!memory data optin")
            await world.settle()
            assert len(reminders(world.general)) == 1

    async def test_an_erasing_destroys_them(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.says(world.ann, world.general, "!memory data erase --yes")
            await world.settle()
            assert world.files_with("breathe") == []
            assert list((world.data / "memory" / "cursors").glob("reminder-*")) == []
            await later(world, DAY_S)
            assert reminders(world.general) == []

    @pytest.mark.parametrize("how", ["history", "objects", "everybody"])
    async def test_an_export_that_is_imported_elsewhere_brings_them_along(
        self, start: Start, tmp_path: Path, how: str
    ) -> None:
        out = str(tmp_path / "export")
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            who = str(world.ann.id)
            asked = {
                "history": (who, "--history"),
                "objects": (who, "--format", "objects"),
                "everybody": ("--all",),
            }
            assert world.cli("memory", "export", *asked[how], "--output", out).exit_code == 0
        async with start(**QUIET) as other:

            def imported() -> None:
                result = other.cli("memory", "import", out, *(("--as", who) if how == "objects" else ()))
                assert result.exit_code == 0, result.output

            await other.restart(meanwhile=imported)
            assert "breathe" in said(await lists(other))
            await later(other, HOUR_S)
            assert sum("breathe" in one for one in other.shown(other.general)) == 1
