"""`discoclaw run` over real sockets: it connects, talks, meets a Discord that fails, and learns."""

import asyncio
import time

import pytest

from discoclaw.core.errors import ModelOverloaded
from tests.process.house import KEY, TOKEN, House, message_of
from tests.servers.messages_api import cut, failure, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGES = "/channels/{}/messages"
FAILED = failure(529, "overloaded_error", retry_after_ms="1")


class TestConnecting:
    async def test_it_identifies_with_its_token_and_asks_for_what_it_reads_and_no_more(
        self, house: House
    ) -> None:
        await house.running()
        data = house.discord.received("identify")[-1].data
        assert data["token"] == TOKEN
        guilds, messages, content = 1 << 0, (1 << 9) | (1 << 12), 1 << 15
        assert data["intents"] == guilds | messages | content

    async def test_it_says_in_the_log_who_it_is(self, house: House) -> None:
        bot = await house.running()
        assert "in 1 servers" in await bot.logged("logged in as")

    async def test_slash_commands_are_told_to_discord(self, house: House) -> None:
        await house.running()
        memory = next(one for one in house.discord.commands[None] if one["name"] == "memory")
        assert {"show", "remember", "forget"} <= {option["name"] for option in memory["options"]}


class TestTalking:
    async def test_a_mention_is_answered_with_text_that_grows(self, house: House) -> None:
        await house.running()
        lobby = house.discord.add_channel("lobby")
        more = asyncio.Event()
        house.brain.answer("grow", text("It begins here. ", "It goes on ", "and ends.", hold=more))
        said = await house.ask(house.ann, lobby, "let it grow")
        answer = await house.answered(lobby, "It begins here.")
        assert answer.content.strip() == "It begins here."
        more.set()
        await house.answered(lobby, "It begins here. It goes on and ends.")
        assert answer.reply_to is said
        assert answer.mentions == []
        assert len(house.texts(lobby)) == 1
        typed = [call for call in house.discord.requests if call.path == f"/channels/{lobby.id}/typing"]
        assert typed != []

    async def test_the_model_is_asked_with_the_key_and_what_was_said_before(self, house: House) -> None:
        await house.running()
        hall = house.discord.add_channel("hall")
        await house.discord.say(house.guy, hall, "the red door sticks")
        await house.ask(house.ann, hall, "which door?")
        await house.answered(hall, "ok")
        request = house.request("which door?")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert "the red door sticks" in request.prompt
        assert message_of(request).strip() == "which door?"

    async def test_who_does_not_mention_it_or_may_not_talk_is_not_answered(self, house: House) -> None:
        await house.running()
        quiet = house.discord.add_channel("quiet")
        await house.discord.say(house.ann, quiet, "just thinking aloud")
        await house.ask(house.guy, quiet, "answer me")
        await house.ask(house.ann, quiet, "and now me")
        await house.answered(quiet, "ok")
        assert len(house.texts(quiet)) == 1
        assert not any("answer me" in message_of(one) for one in house.model.requests)

    async def test_a_direct_message_needs_no_mention(self, house: House) -> None:
        await house.running()
        house.brain.answer("psst", text("I am listening."))
        await house.discord.say(house.bea, house.discord.dm(house.bea), "psst")
        await house.answered(house.discord.dm(house.bea), "I am listening.")


class TestWhenDiscordFails:
    async def test_a_dropped_socket_is_resumed_and_what_was_said_meanwhile_is_answered_once(
        self, house: House
    ) -> None:
        await house.running()
        pier = house.discord.add_channel("pier")
        identified = len(house.discord.received("identify"))
        house.brain.answer("are you there", text("Here I am."))
        async with house.discord.outage():
            await house.ask(house.ann, pier, "are you there?")
        await house.answered(pier, "Here I am.")
        await house.ask(house.ann, pier, "and again?")
        await house.answered(pier, "ok")
        assert house.texts(pier) == ["Here I am.", "ok"]
        assert len(house.discord.received("resume")) == 1
        assert len(house.discord.received("identify")) == identified

    async def test_a_rate_limit_is_waited_out(self, house: House) -> None:
        await house.running()
        rush = house.discord.add_channel("rush")
        path = MESSAGES.format(rush.id)
        house.discord.fail_next("POST", path, 429, json={"retry_after": 0.3, "global": False}, times=2)
        house.brain.answer("hurry", text("No hurry."))
        began = time.monotonic()
        await house.ask(house.ann, rush, "hurry")
        await house.answered(rush, "No hurry.")
        assert time.monotonic() - began >= 0.6
        assert house.texts(rush) == ["No hurry."]

    async def test_a_send_that_fails_although_it_worked_is_seen_once(self, house: House) -> None:
        await house.running()
        fog = house.discord.add_channel("fog")
        house.discord.fail_next("POST", MESSAGES.format(fog.id), 500, applied=True)
        house.brain.answer("once", text("Once."))
        await house.ask(house.ann, fog, "say it once")
        await house.discord.wait_for_request("POST", MESSAGES.format(fog.id), count=2)
        await house.ask(house.ann, fog, "and now?")
        await house.answered(fog, "ok")
        assert house.texts(fog) == ["Once.", "ok"]

    async def test_where_it_may_not_write_the_person_is_told_in_a_dm(self, house: House) -> None:
        await house.running()
        attic = house.discord.add_channel("attic")
        house.discord.fail_next("POST", MESSAGES.format(attic.id), 403, times=100)
        try:
            await house.ask(house.ann, attic, "can you write here?")
            told = await house.answered(house.discord.dm(house.ann), "not allowed to write in")
        finally:
            house.discord.faults.clear()
        assert attic.mention in told.content
        assert house.texts(attic) == []

    async def test_a_failure_of_the_model_that_may_not_be_said_there_is_said_in_a_dm(
        self, house: House
    ) -> None:
        await house.running()
        cellar = house.discord.add_channel("cellar")
        house.discord.fail_next("POST", MESSAGES.format(cellar.id), 403, times=100)
        house.brain.answer("both fail", *[FAILED] * 3)
        try:
            await house.ask(house.bea, cellar, "now both fail")
            told = await house.answered(house.discord.dm(house.bea), "not allowed to write in")
        finally:
            house.discord.faults.clear()
        assert cellar.mention in told.content


class TestWhenTheModelFails:
    async def test_an_overload_is_tried_again_and_then_told(self, house: House) -> None:
        await house.running()
        queue = house.discord.add_channel("queue")
        house.brain.answer("crowded", *[FAILED] * 3)
        await house.ask(house.ann, queue, "is it crowded?")
        await house.answered(queue, ModelOverloaded.user_message)
        await house.ask(house.ann, queue, "and now?")
        await house.answered(queue, "ok")

    async def test_a_stream_that_breaks_off_keeps_what_was_said_and_tells(self, house: House) -> None:
        await house.running()
        bridge = house.discord.add_channel("bridge")
        house.brain.answer("cross", cut("Half of the way is "))
        await house.ask(house.ann, bridge, "how to cross?")
        await house.answered(
            bridge, "The model's answer broke off before its end. Please try again in a minute."
        )
        assert house.texts(bridge)[0].startswith("Half of the way is")


class TestLearning:
    async def test_a_preference_is_on_disk_and_known_in_another_channel(self, house: House) -> None:
        await house.running()
        kitchen, garden = house.discord.add_channel("kitchen"), house.discord.add_channel("garden")
        house.brain.learn("black coffee", "User prefers black coffee")
        await house.ask(house.ann, kitchen, "I only ever drink black coffee")
        await house.answered(kitchen, "ok")
        await house.remembers(house.ann, "User prefers black coffee")
        await house.ask(house.ann, garden, "what would you bring me?")
        await house.answered(garden, "ok")
        assert "- [preference] User prefers black coffee" in house.request("bring me").prompt

    async def test_what_one_person_said_is_no_memory_of_another(self, house: House) -> None:
        await house.running()
        stairs = house.discord.add_channel("stairs")
        house.brain.learn("rye bread", "User prefers rye bread")
        await house.ask(house.ann, stairs, "rye bread for me, please")
        await house.remembers(house.ann, "User prefers rye bread")
        await house.ask(house.bea, stairs, "and what do I eat?")
        await house.answered(stairs, "ok")
        assert "User prefers rye bread" not in house.request("what do I eat").prompt
        assert house.durable(house.bea) == []

    async def test_a_command_and_its_answer(self, house: House) -> None:
        await house.running()
        desk = house.discord.add_channel("desk")
        await house.discord.say(house.bea, desk, "!memory remember my cat is called Ada")
        await house.answered(desk, "Remembered: my cat is called Ada")
        assert house.durable(house.bea) == ["my cat is called Ada"]
        await house.discord.say(house.bea, desk, "!memory forget my cat is called Ada")
        await house.answered(desk, "Forgotten: my cat is called Ada")
        assert house.durable(house.bea) == []


class TestWhenTheDiskFails:
    async def test_memory_that_can_not_be_written_does_not_keep_it_from_answering(self, house: House) -> None:
        bot = await house.running()
        shed = house.discord.add_channel("shed")
        ledgers = house.data / "memory" / "ledger"
        aside = ledgers.rename(ledgers.with_name("ledger-aside"))
        ledgers.write_text("in the way")
        try:
            house.brain.learn("blue paint", "User prefers blue paint")
            await house.ask(house.ann, shed, "blue paint, please")
            await house.answered(shed, "ok")
            await bot.logged(f"extraction {house.ann.id} changed nothing")
            await house.discord.say(house.ann, shed, "!memory remember red paint too")
            await house.answered(shed, "nothing has changed")
        finally:
            ledgers.unlink()
            aside.rename(ledgers)
        await house.ask(house.ann, shed, "did that work?")
        await house.remembers(house.ann, "User prefers blue paint")


class TestSecrets:
    async def test_neither_token_nor_key_is_ever_printed_or_stored_even_when_everything_is_logged(
        self, house: House
    ) -> None:
        bot = await house.running()
        safe = house.discord.add_channel("safe")
        house.brain.answer("refuse", failure(401, "authentication_error", f"invalid x-api-key: {KEY}"))
        await house.ask(house.ann, safe, f"do they refuse {KEY}?")
        await house.answered(safe, "The model refused my API key")
        bot.terminate()
        assert await bot.ended() == 0  # while it runs, files come and go
        assert " DEBUG " in bot.stderr
        assert TOKEN not in house.printed()
        assert KEY not in house.printed()
        stored = [path for path in house.folder.rglob("*") if path.is_file()]
        assert not any(KEY.encode() in path.read_bytes() for path in stored)
