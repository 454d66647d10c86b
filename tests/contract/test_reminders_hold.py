"""What reminders hold against: lost rights, hostile imports, outages, restored ledgers, and many at once."""

import json
from dataclasses import replace
from datetime import UTC
from typing import Any

import discord
import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import MANUAL
from discoclaw.core.reminder import Reminder
from discoclaw.core.view import EMPTY
from discoclaw.memory.cursors import Cursors
from discoclaw.reminders import when
from tests.contract.cards import labels, said
from tests.contract.published import mirrored, recovered, sent
from tests.contract.test_reminders import DAY_S, HOUR_S, QUIET, later, lists, reminders
from tests.contract.test_who_may_read_what import deny, thread
from tests.contract.tools import all_called, called, results
from tests.contract.world import Start, World
from tests.servers.messages_api import tool_use
from tests.servers.nostr_relay import LyingRelay


async def takes(world: World, *some: Reminder) -> None:
    """Ann has a history from elsewhere, with these reminders; an admin put it there."""
    draft = Draft(EMPTY, now_ms=round(world.env.now().timestamp() * 1000))
    for one in some:
        draft.remind(one, Origin("stated", MANUAL), "set")
    commit = draft.commit("a reminder was set", branch="main")
    assert commit is not None
    ledger = world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    line = f"{json.dumps(commit.to_json())}\n".encode()
    await world.restart(meanwhile=lambda: ledger.write_bytes(line) and None)
    await world.settle()


class TestWhoMayNotUseTheChannelAnyMore:
    @pytest.mark.parametrize("rights", [{"view_channel": False}, {"send_messages": False}])
    async def test_gets_it_as_a_direct_message(self, start: Start, rights: dict[str, bool]) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.dev, "!remind in 1 hour to breathe")
            await deny(world, world.dev, world.ann, **rights)
            await later(world, HOUR_S)
            assert reminders(world.dev) == []
            assert reminders(world.ann_dm) == [f"<@{world.ann.id}> breathe"]

    async def test_gets_no_dead_link_if_the_channel_is_gone(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.dev, "!remind in 1 hour to breathe")
            world.env.backend.delete_channel(world.dev.id)
            await later(world, HOUR_S)
            assert said(world.ann_dm.last_message) == (
                f"-# ⏰ reminder (here, because the channel is gone)\n<@{world.ann.id}> breathe"
            )

    async def test_is_not_drawn_back_into_a_private_thread_they_left(self, start: Start) -> None:
        async with start(**QUIET) as world:
            place = await thread(world, world.general, type=discord.ChannelType.private_thread)
            known: Any = world.env.bot.get_channel(world.general.id).get_thread(place.id)  # type: ignore[union-attr]
            ann = await known.guild.fetch_member(world.ann.id)
            await known.add_user(ann)
            await world.env.settle()
            await world.says(world.ann, place, "!remind in 1 hour to breathe")
            await known.remove_user(ann)
            await later(world, HOUR_S)
            assert reminders(place) == []
            assert reminders(world.ann_dm) == [f"<@{world.ann.id}> breathe"]

    async def test_nobody_elses_direct_messages_are_written_to(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.bob, world.bob_dm, "hello")
            now = round(world.env.now().timestamp() * 1000)
            one = Reminder("0123abcd", "send me your password", at=now + 1000, channel=str(world.bob_dm.id))
            await takes(world, one)
            await later(world, 60)
            assert reminders(world.bob_dm) == []
            assert reminders(world.ann_dm) == [f"<@{world.ann.id}> send me your password"]

    async def test_an_outage_of_the_roles_only_delays_it(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.restart()
            path = f"/guilds/{world.guild.id}/members/{world.ann.id}"
            world.env.inject_error("GET", path, status=503, times=6)
            await later(world, HOUR_S)
            for _ in range(6):
                await later(world, 200)
            assert reminders(world.general) == [f"<@{world.ann.id}> breathe"]


BAD = [
    {"wall": "2026-01-01T01:10", "rule": "FREQ=DAILY;INTERVAL=0"},
    {"wall": "2026-01-01T01:10", "rule": "FREQ=MONTHLY;INTERVAL=0;BYMONTHDAY=1"},
    {"wall": "2026-01-01T01:10", "rule": "FREQ=MONTHLY"},
    {"wall": "2026-01-01T01:10", "rule": "nonsense"},
    {"wall": "soon"},
    {"wall": "9999-12-31T23:59"},
    {"at": 1_767_226_200_000, "rule": "FREQ=HOURLY;INTERVAL=0"},
    {"at": 1_767_226_200_000, "rule": "FREQ=MONTHLY;BYMONTHDAY=1"},
    {"at": 1_767_226_200_000, "id": "x" * 100},
    {"at": 1_767_226_200_000, "channel": "general"},
]


class TestAHistoryThatSomebodyMade:
    async def test_stops_neither_the_bot_nor_its_persons_other_reminders(self, start: Start) -> None:
        async with start(**QUIET) as world:
            odd = [
                Reminder(**{"id": f"{number:08x}", "text": f"odd {number}", **one})
                for number, one in enumerate(BAD)
            ]
            await takes(world, *odd)
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            shown = said(await lists(world))
            assert "breathe" in shown and "odd" not in shown
            await later(world, HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> breathe"]

    def test_of_long_ago_costs_little(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []
        known = when.moment
        monkeypatch.setattr(when, "moment", lambda wall, zone: asked.append(wall) or known(wall, zone))
        one = Reminder("01234567", "old", "1971-01-01T09:00", rule="FREQ=DAILY")
        assert when.later(one, 1_767_225_600_000, UTC) == replace(one, wall="2026-01-01T09:00")
        assert len(asked) < 5


class TestManyAtOnce:
    async def test_come_as_few_messages_that_leave_none_out(self, start: Start) -> None:
        async with start(**QUIET) as world:
            at = round(world.env.now().timestamp() * 1000) + HOUR_S * 1000
            channel = str(world.general.id)
            await takes(
                world, *(Reminder(f"{one:08x}", f"thing {one};", at=at, channel=channel) for one in range(60))
            )
            await later(world, HOUR_S)
            told = "\n".join(reminders(world.general))
            assert [one for one in range(60) if told.count(f"thing {one};") != 1] == []
            assert len(reminders(world.general)) <= 4 and "late" not in told

    async def test_of_long_words_none_is_cut(self, start: Start) -> None:
        async with start(**QUIET) as world:
            at = round(world.env.now().timestamp() * 1000) + HOUR_S * 1000
            some = (Reminder(f"{one:08x}", f"{'* ' * 240}end {one};", at=at) for one in range(8))
            await takes(world, *some)
            await world.stop()
            await world.env.advance_time(5 * DAY_S)
            await world.restart()
            await world.settle()
            told = "\n".join(reminders(world.ann_dm))
            assert [one for one in range(8) if told.count(f"end {one};") != 1] == []


class TestOnce:
    async def test_though_the_ledger_that_is_restored_knows_nothing_of_it(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            ledger = world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            before = ledger.read_bytes()
            await later(world, HOUR_S)
            await later(world, HOUR_S)
            assert len(reminders(world.general)) == 1

            def restored() -> None:
                ledger.write_bytes(before)
                for one in (world.data / "memory" / "cursors").glob("*remind*"):
                    one.unlink()

            await world.restart(meanwhile=restored)
            await world.settle()
            assert len(reminders(world.general)) == 1
            assert "None. Try" in said(await lists(world))

    async def test_though_the_clock_is_put_back_while_discord_is_down(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now, shift_ms = World._now, [0]
        monkeypatch.setattr(World, "_now", lambda world: now(world) + shift_ms[0])
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            path = f"/channels/{world.general.id}/messages"
            world.env.inject_error("POST", path, status=503, times=None)
            await later(world, HOUR_S)
            shift_ms[0] = -2 * HOUR_S * 1000
            world.env.backend.faults.clear()
            await later(world, 600)
            assert reminders(world.general) == []
            await later(world, 2 * HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> breathe"]

    async def test_on_time_though_the_disk_refused_when_that_is(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 5 hours to eat")
            await world.settle()
            update, refused = Cursors.update, list[str]()

            async def refuse(cursors: Cursors, name: str, change: Any) -> bool:
                if name.startswith("reminder-") and not refused:
                    refused.append(name)
                    return False
                return await update(cursors, name, change)

            monkeypatch.setattr(Cursors, "update", refuse)
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            await world.settle()
            assert refused
            await later(world, 120)
            await world.restart()
            await later(world, HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> breathe"]


class TestAskedForInTalk:
    async def test_an_answer_that_is_made_anew_sets_it_once(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to eat"
            given = {"what": "eat", "when": "in 20 minutes", "quote": words}
            await called(world, "remind", words=words, **given)
            answer = next(one for one in world.general.history() if "Again" in labels(one))
            world.brain.says(tool_use(("toolu_again", "remind", {**given, "what": "Eat."})), "Well.")
            await world.env.advance_time(60)
            await world.ann.click(answer, label="Again")
            await world.settle()
            assert results(world)[0].startswith("Set already: eat, Thu 2026-01-01 01:20")
            await later(world, HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> eat"]

    async def test_it_stays_if_its_message_is_corrected(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to call the dentsit"
            given = {"what": "call the dentsit", "when": "in 20 minutes", "quote": words}
            await called(world, "remind", words=words, **given)
            asked = next(one for one in world.general.history() if one.content == words)
            await world.ann.edit(asked, words.replace("dentsit", "dentist"))
            await world.settle()
            await later(world, HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> call the dentsit"]

    async def test_one_message_may_ask_for_several(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to eat and to drink"
            given = {"when": "in 20 minutes", "quote": words}
            told = await all_called(
                world,
                ("remind", {**given, "what": "eat"}),
                ("remind", {**given, "what": "drink"}),
                words=words,
            )
            assert [one.partition(",")[0] for one in told] == ["Set: eat", "Set: drink"]

    async def test_one_that_was_taken_back_is_not_set_again(self, start: Start) -> None:
        async with start(**QUIET) as world:
            words = "please remind me in 20 minutes to eat"
            given = {"what": "eat", "when": "in 20 minutes", "quote": words}
            await called(world, "remind", words=words, **given)
            answer = next(one for one in world.general.history() if "Again" in labels(one))
            await world.ann.click(world.general.last_message, label="Undo")
            world.brain.says(tool_use(("toolu_again", "remind", given)), "Well.")
            await world.ann.click(answer, label="Again")
            await world.settle()
            assert results(world)[0].startswith("failed: that reminder was set for this message before")
            await later(world, HOUR_S)
            assert reminders(world.general) == []


class TestWhatCouldNotBeSent:
    async def test_once_goes_on_if_it_repeats(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.ann_dm, "!remind every day at 9 to stretch")
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=403, times=1)
            await later(world, 8 * HOUR_S)
            assert reminders(world.ann_dm) == []
            shown = said(await lists(world))
            assert "**could not be sent**" in shown and "next Fri 2026-01-02 09:00" in shown
            assert "could not be sent" not in said(await lists(world))  # it was seen
            world.env.inject_error("POST", path, status=403, times=1)
            await later(world, DAY_S)
            await later(world, DAY_S)
            assert reminders(world.ann_dm) == [f"<@{world.ann.id}> stretch"]
            assert "could not be sent" not in said(await lists(world))

    async def test_waits_until_the_page_that_has_it_was_shown(self, start: Start) -> None:
        async with start(**QUIET) as world:
            at = round(world.env.now().timestamp() * 1000) + 1000
            some = (
                Reminder(f"{one:08x}", f"thing {one};", at=at, private=True, held=True) for one in range(30)
            )
            await takes(world, *some)
            shown = ""
            while "None. Try" not in (page := said(await lists(world))):
                shown += page
            assert [one for one in range(30) if f"thing {one};" not in shown] == []


class TestWhatOthersWrote:
    async def test_makes_the_model_set_and_delete_nothing(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.says(world.ann, world.general, "!remind in 1 hour to breathe")
            words = "please sum this file up for me"
            for given in (
                {"what": "send Eve your password", "when": "in 20 minutes"},
                {"action": "delete", "what": "breathe"},
            ):
                told = await called(world, "remind", words=words, quote=words, **given)
                assert told.startswith("failed: the person's words don't ask for that; they can write “")
            await later(world, HOUR_S)
            assert reminders(world.general) == [f"<@{world.ann.id}> breathe"]

    async def test_is_not_needed_by_who_asks_themselves_or_answers_with_a_time(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for words in (
                "please erinnere mich morgen ans Essen",
                "please rappelle-moi de manger demain",
                "please tomorrow at noon",
                "please set a reminder for me",
                "please at 9 then",
            ):
                told = await called(
                    world, "remind", words=words, quote=words, what=words, when="tomorrow at 9"
                )
                assert told.startswith("Set: "), (words, told)
            words = "please cancel the last one"
            told = await called(world, "remind", words=words, quote=words, action="delete", what="reminder")
            assert told.startswith("Deleted: please set a reminder for me")


class TestALostDisk:
    async def test_costs_no_reminder_that_was_mirrored_and_brings_back_none_that_came(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, start(**QUIET, **mirrored(relay)) as world:
            await world.says(world.ann, world.dev, "!remind in 1 hour to breathe")
            await world.says(world.ann, world.dev, "!remind in 2 hours to eat")
            await later(world, HOUR_S)
            await sent(world)
            await recovered(world)
            listed = said(await lists(world))
            assert "eat" in listed and "breathe" not in listed
            await later(world, HOUR_S)
            assert reminders(world.dev) == [f"<@{world.ann.id}> breathe", f"<@{world.ann.id}> eat"]
