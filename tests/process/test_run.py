"""`discoclaw run` over real sockets: it connects, talks, meets a Discord that fails, and learns."""

import asyncio
import time

import pytest

from tests.process.house import KEY, TOKEN, House
from tests.servers.messages_api import failure, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGES = "/channels/{}/messages"


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
        assert house.request("let it grow").headers["authorization"] == f"Bearer {KEY}"


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
