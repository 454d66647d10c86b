"""Answers that Discord doesn't take for a while: a real process, which may be killed meanwhile."""

import asyncio
import json
from pathlib import Path

import pytest

from discoclaw.bot.absence import IN_DM, TOO_LATE
from discoclaw.memory.conversations.undelivered import TAKEN_BACK
from tests.process.forks import Source
from tests.process.house import House, is_talk, message_of
from tests.servers.discord_server import Channel, Message, User
from tests.servers.messages_api import text

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
ALWAYS = 10_000
PAGE = {"Content-Type": "text/html", "Retry-After": "3"}
PARAGRAPHS = [f"Paragraph {number}. " + f"word{number} " * 200 for number in range(3)]
HOUR_MS = 3_600_000


def fails(house: House, status: int = 503, path: str = "/channels/*/messages") -> None:
    """From now on, Discord takes no message."""
    house.discord.fail_next("POST", path, status, times=ALWAYS)


def works(house: House) -> None:
    house.discord.faults.clear()


def kept(house: House) -> list[dict[str, object]]:
    """The answers that wait on disk."""
    files = sorted((house.data / "memory" / "cursors").glob("undelivered-*.json"))
    return [json.loads(path.read_bytes()) for path in files]


async def keeps(house: House, count: int) -> None:
    """Wait until so many answers are kept on disk."""
    async with asyncio.timeout(30):
        while len(kept(house)) != count:  # noqa: ASYNC110 - a file rings no bell
            await asyncio.sleep(0.02)


async def killed(house: House) -> None:
    bot = house.lives[-1]
    bot.kill()
    await bot.ended()


def model_asked(house: House, about: str) -> int:
    return sum(is_talk(one) and about in message_of(one) for one in house.model.requests)


def replies(house: House, question: Message) -> list[str]:
    said = house.discord.bot_messages(question.channel)
    return [one.content for one in said if one.reply_to is question]


async def delivered(house: House, question: Message, words: str = "") -> None:
    def fits(message: Message) -> bool:
        return message.reply_to is question and words in message.content

    await house.discord.wait_for_message(question.channel, predicate=fits, after=question, timeout=30)
    await keeps(house, 0)


async def asks_in_vain(house: House, person: User, place: Channel, *questions: str) -> list[Message]:
    """Ask while Discord takes no answer, until the answers are kept."""
    fails(house)
    before = len(kept(house))
    asked = []
    for number, words in enumerate(questions, before + 1):
        asked.append(await house.ask(person, place, words))
        await keeps(house, number)
    return asked


class TestAnAnswerThatDiscordDoesNotTake:
    async def test_for_one_page_of_a_proxy_is_there_as_soon_as_that_allows(self, house: House) -> None:
        await house.running()
        pond = house.discord.add_channel("pond")
        house.brain.answer("how deep", text("It is two metres deep."))
        house.discord.fail_next("POST", f"/channels/{pond.id}/messages", 429, headers=PAGE)
        question = await house.ask(house.ann, pond, "how deep is the pond?")
        await delivered(house, question)
        assert house.texts(pond) == ["It is two metres deep."]
        sent = [one for one in house.discord.requests if one.method == "POST" and str(pond.id) in one.path]
        assert [one.status for one in sent if one.path.endswith("/messages")] == [429, 200]
        assert model_asked(house, "how deep is the pond?") == 1

    async def test_comes_once_and_in_order_and_is_then_part_of_the_talk(self, house: House) -> None:
        await house.running()
        lake = house.discord.add_channel("lake")
        house.brain.answer("how cold", text("Four degrees."))
        house.brain.answer("how wide", text("Nine miles."))
        cold, wide = await asks_in_vain(house, house.ann, lake, "how cold is it?", "how wide is it?")
        works(house)
        await delivered(house, wide)
        assert house.texts(lake) == ["Four degrees.", "Nine miles."]
        assert replies(house, cold) == ["Four degrees."] and replies(house, wide) == ["Nine miles."]
        await house.answered_to(house.ann, lake, "and how long?")
        assert "Four degrees." in house.request("and how long?").prompt
        assert "Nine miles." in house.request("and how long?").prompt
        assert model_asked(house, "how cold is it?") == model_asked(house, "how wide is it?") == 1

    async def test_is_overtaken_by_none_that_is_ready_before_it_is_sent_again(self, house: House) -> None:
        bot = await house.running()
        ford = house.discord.add_channel("ford")
        house.brain.answer("how shallow", text("One foot."))
        house.discord.fail_next("POST", f"/channels/{ford.id}/messages", 503, times=3)  # all tries of a turn
        await house.ask(house.ann, ford, "how shallow is it?")
        await bot.logged(f"{ford.id}: the answer could not be delivered")
        quick = await house.ask(house.ann, ford, "and how quick?")
        await delivered(house, quick)
        assert house.texts(ford) == ["One foot.", "ok"]

    async def test_outlives_a_kill_and_no_model_is_asked_again(self, house: House) -> None:
        await house.running()
        moor = house.discord.add_channel("moor")
        house.brain.answer("how wet", text("Very wet."))
        wet, dry = await asks_in_vain(house, house.bea, moor, "how wet is it?", "how dry is it?")
        await killed(house)
        works(house)
        await house.running()
        await delivered(house, dry)
        assert house.texts(moor) == ["Very wet.", "ok"]
        assert replies(house, wet) == ["Very wet."]
        assert model_asked(house, "how wet is it?") == model_asked(house, "how dry is it?") == 1
        await house.answered_to(house.bea, moor, "and how green?")
        assert "Very wet." in house.request("and how green?").prompt

    async def test_but_has_is_not_sent_again_after_a_kill(self, house: House) -> None:
        await house.running()
        moat = house.discord.add_channel("moat")
        house.brain.answer("how old", text("Nine hundred years."))
        path = f"/channels/{moat.id}/messages"
        house.discord.fail_next("POST", path, 503, times=ALWAYS, applied=True)
        question = await house.ask(house.ann, moat, "how old is it?")
        await keeps(house, 1)
        await killed(house)
        works(house)
        house.discord.clock.advance(600)  # Discord knows its nonce no longer
        await house.running()
        await keeps(house, 0)
        assert house.texts(moat) == ["Nine hundred years."] == replies(house, question)
        assert model_asked(house, "how old is it?") == 1

    async def test_to_its_end_goes_on_where_it_stopped(self, house: House) -> None:
        await house.running()
        for killing in (False, True):
            hill = house.discord.add_channel(f"hill-{killing}")
            house.brain.answer("tell me all", text("\n\n".join(PARAGRAPHS)))
            path = f"/channels/{hill.id}/messages"
            house.discord.fail_next("POST", path, 503, times=ALWAYS, after=1)
            question = await house.ask(house.ann, hill, "tell me all about it")
            await keeps(house, 1)
            (first,) = house.discord.bot_messages(hill)
            if killing:
                await killed(house)
            works(house)
            await house.running()
            await delivered(house, question)
            said = house.discord.bot_messages(hill)
            assert said[0] is first and len(said) > 1
            assert " ".join(one.content for one in said).split() == " ".join(PARAGRAPHS).split()
        assert model_asked(house, "tell me all about it") == 2

    async def test_while_it_is_written_is_completed_in_its_place(self, house: House) -> None:
        await house.running()
        road, more = house.discord.add_channel("road"), asyncio.Event()
        house.brain.answer("how far", text("It is ", "far.", hold=more))
        question = await house.ask(house.ann, road, "how far is it?")
        await house.discord.wait_for_message(road, "It is", timeout=30)
        fails(house)
        house.discord.fail_next("PATCH", "/channels/*/messages/*", 503, times=ALWAYS)
        more.set()
        await keeps(house, 1)
        await killed(house)
        works(house)
        await house.running()
        await delivered(house, question, "It is far.")
        assert house.texts(road) == ["It is far."] and model_asked(house, "how far is it?") == 1

    async def test_is_dropped_if_its_question_is_deleted_meanwhile(self, house: House) -> None:
        await house.running()
        barn = house.discord.add_channel("barn")
        house.brain.answer("what is in", text("A secret cow."))
        first, second = await asks_in_vain(house, house.ann, barn, "what is in the barn?", "and where?")
        await house.discord.delete(first)
        works(house)
        await delivered(house, second)
        assert house.texts(barn) == ["ok"]

    async def test_is_replaced_by_a_sentence_if_something_in_it_is_taken_back(self, house: House) -> None:
        await house.running()
        mill = house.discord.add_channel("mill")
        await house.discord.say(house.bea, house.discord.dm(house.bea), "!memory remember I collect zithers")
        await house.answered(house.discord.dm(house.bea), "Remembered")
        house.brain.answer("what do I collect", text("You collect zithers."))
        house.discord.fail_next("POST", f"/channels/{mill.id}/messages", 503, times=ALWAYS)
        question = await house.ask(house.bea, mill, "what do I collect?")
        await keeps(house, 1)
        await house.discord.say(house.bea, house.discord.dm(house.bea), "!memory forget I collect zithers")
        await house.answered(house.discord.dm(house.bea), "Forgotten")
        async with asyncio.timeout(10):
            while "zithers" in json.dumps(kept(house)):  # noqa: ASYNC110 - a file rings no bell
                await asyncio.sleep(0.02)
        works(house)
        await delivered(house, question)
        assert house.texts(mill) == [TAKEN_BACK]

    async def test_is_gone_with_its_person(self, house: House) -> None:
        await house.running()
        den, dm = house.discord.add_channel("den"), house.discord.dm(house.bea)
        house.brain.answer("who am I", text("You are Bea of Bergen."))
        house.discord.fail_next("POST", f"/channels/{den.id}/messages", 503, times=ALWAYS)
        await house.ask(house.bea, den, "who am I?")
        await keeps(house, 1)
        await house.discord.say(house.bea, dm, "!memory erase --yes")
        await house.answered(dm, "I erased everything")
        assert kept(house) == []
        works(house)
        await killed(house)
        await house.running()
        after = await house.ask(house.ann, den, "is anybody here?")
        await delivered(house, after)
        assert not any("Bergen" in one for one in house.texts(den))

    async def test_is_on_no_disk_if_its_person_wants_no_memory(self, house: House) -> None:
        await house.running()
        attic, dm = house.discord.add_channel("attic"), house.discord.dm(house.bea)
        await house.discord.say(house.bea, dm, "!memory optout")
        await house.answered(dm)
        fails(house)
        question = await house.ask(house.bea, attic, "is it dark?")
        await house.lives[-1].logged("could not be delivered: Discord is not available (503")
        waits = await house.ask(house.ann, attic, "is it dry?")
        await keeps(house, 1)
        assert kept(house)[0]["ids"] == [str(waits.id)]
        works(house)
        await delivered(house, waits)
        assert replies(house, question) == ["ok"]
        await house.discord.say(house.bea, dm, "!memory optin")
        await house.answered(dm)


class TestACommandWhoseAnswer:
    async def test_is_not_taken_is_answered_later(self, house: House) -> None:
        await house.running()
        dock, dm = house.discord.add_channel("dock"), house.discord.dm(house.ann)
        await house.answered_to(house.ann, dock, "good morning")
        fails(house)
        typed = await house.discord.say(house.ann, dock, "!memory remember I sail")
        await keeps(house, 1)
        works(house)
        house.discord.fail_next("POST", "/webhooks/*/*", 503, times=ALWAYS)
        await house.discord.command(house.ann, dock, "memory show")
        await house.discord.wait_for_message(dm, "Discord didn't take my answer in", timeout=30)
        assert house.texts(dm)[-1].startswith(IN_DM.format(place=f" in {dock.mention}"))
        works(house)
        await delivered(house, typed, "Remembered: I sail")
        assert len(replies(house, typed)) == 1


class TestAfterAnHour:
    async def test_an_answer_comes_in_a_dm_or_there_is_a_sentence(
        self, tmp_path: Path, forks: Source | None
    ) -> None:
        async with House(tmp_path, forks=forks) as house:
            house.discord.set_back(3 * HOUR_MS)
            await house.running()
            cafe = house.discord.add_channel("cafe")
            house.brain.answer("cake", text("There is cake."))
            (cake,) = await asks_in_vain(house, house.ann, cafe, "is there cake?")
            (tea,) = await asks_in_vain(house, house.bea, cafe, "is there tea?")
            async with asyncio.timeout(30):  # until their turns have given up
                while house.printed().count("the answer could not be delivered") < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            closed = {"code": 50007, "message": "Cannot send messages to this user"}
            works(house)
            path = f"/channels/{house.discord.dm(house.bea).id}/messages"
            house.discord.fail_next("POST", path, 403, closed, times=ALWAYS)
            await delivered(house, tea)
            assert replies(house, cake) == [] and replies(house, tea) == [TOO_LATE]
            assert house.texts(house.discord.dm(house.ann)) == [
                f"{IN_DM.format(place=f' in {cafe.mention}')}\n\nThere is cake."
            ]
            assert model_asked(house, "is there cake?") == model_asked(house, "is there tea?") == 1
