"""What people said while `discoclaw run` was away, and what was under way when it ended."""

import asyncio
import json
import random
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from discoclaw.bot.absence import COMMAND_STOPPED
from discoclaw.bot.deliver import AGAIN
from discoclaw.bot.threads import DELETED
from discoclaw.session.agent import STOPPED
from discoclaw.session.talk import LATE
from tests.citing import own_of
from tests.process.forks import Source
from tests.process.house import House, is_talk, message_of
from tests.servers.discord_server import Channel, Message
from tests.servers.messages_api import Behaviour, text

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only"),
]

FORKED = True
HOUR_MS = 3_600_000
QUESTION = re.compile(r"\d+x\d+")


def replies(house: House, question: Message) -> list[str]:
    """The bot's replies to a message, as they are now."""
    return [one.content for one in house.discord.bot_messages(question.channel) if one.reply_to is question]


async def replied(house: House, question: Message, words: str = "") -> str:
    """The bot's only reply to a message, once it holds `words`."""

    def fits(message: Message) -> bool:
        return message.reply_to is question and words in message.content

    await house.discord.wait_for_message(question.channel, predicate=fits, after=question, timeout=30)
    (only,) = replies(house, question)
    return only


def in_threads(house: House, channel: Channel) -> Channel:
    """A channel in which every question is answered in a thread of its own."""
    path = house.data / "memory" / "config.json"
    path.write_text(json.dumps({f"group:{channel.id}": {"threads": True}}), encoding="utf-8")
    return channel


async def in_its_thread(house: House, question: Message, words: str = "") -> list[str]:
    """What the bot has said in the thread below a message, once that holds `words`."""
    async with asyncio.timeout(30):
        while True:
            said = house.discord.bot_messages(question.thread) if question.thread is not None else []
            if any(words in one.content for one in said):
                return [one.content for one in said]
            await asyncio.sleep(0.02)


async def buttons(house: House, question: Message, name: str) -> None:
    """Wait until the reply to a message has this button and no other."""

    def fits(message: Message) -> bool:
        found = [one["custom_id"] for row in message.components for one in row["components"]]
        return message.reply_to is question and [one.partition(":")[0] for one in found] == [name]

    await house.discord.wait_for_message(question.channel, predicate=fits, after=question, timeout=30)


async def gone(house: House) -> None:
    """The bot is killed, once everything it has handled is on disk."""
    bot = await house.running()
    bot.terminate()
    assert await bot.ended() == 0


async def killed(house: House) -> None:
    """The bot is killed, wherever it is."""
    bot = await house.running()
    bot.kill()
    await bot.ended()


async def quiet(house: House) -> None:
    """Wait until the bot has nothing to do: it answers a command behind everything else."""
    ask = await house.discord.say(house.ann, house.discord.dm(house.ann), "!memory help")
    await replied(house, ask)


def asked_of_the_model(house: House, about: str) -> int:
    return sum(is_talk(one) and about in message_of(one) for one in house.model.requests)


async def on_disk(house: House, *messages: Message) -> None:
    """Wait until these messages are on disk as waiting for their answer."""
    async with asyncio.timeout(30):
        while not {str(one.id) for one in messages} <= set(house.open_on_disk()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class TestWhileItWasAway:
    async def test_questions_are_answered_once_wherever_they_were_asked(self, house: House) -> None:
        await house.running()
        cafe, dm = house.discord.add_channel("cafe"), house.discord.dm(house.ann)
        thread = house.discord.add_thread(cafe, "plans", owner=house.ann)
        for place in (cafe, thread, dm):
            await house.answered_to(house.ann, place, "good morning")
        await gone(house)
        new = house.discord.add_channel("new")  # nothing was ever said here
        questions = [await house.ask(house.bea, cafe, "is there any cake?")]
        questions += [await house.ask(house.ann, place, "where is the cake?") for place in (thread, dm, new)]
        await house.discord.say(house.bea, cafe, "I only talk to people here")
        await house.running()
        for question in questions:
            assert await replied(house, question) == "ok"
        await gone(house)
        await house.running()
        await quiet(house)
        assert [replies(house, question) for question in questions] == [["ok"]] * 4
        await house.answered_to(house.bea, cafe, "what did I say?")
        assert "I only talk to people here" in house.request("what did I say?").prompt

    async def test_a_stranger_s_direct_messages_are_answered_when_they_write_again(
        self, house: House
    ) -> None:
        role = house.discord.add_role("new here")
        zoe = house.discord.add_user("Zoe", roles=[role])
        dm = house.discord.dm(zoe)
        await house.running()
        await house.answered_to(house.ann, house.discord.dm(house.ann), "good morning")
        await gone(house)
        missed = [await house.discord.say(zoe, dm, words) for words in ("hello?", "anybody there?")]
        await house.running(DISCORD_ALLOW_ROLE_IDS=str(role.id))
        await quiet(house)
        assert [replies(house, one) for one in missed] == [[], []]  # nothing names them by then
        now = await house.discord.say(zoe, dm, "and now?")
        for one in (*missed, now):
            assert await replied(house, one) == "ok"
        assert [one.reply_to for one in house.discord.bot_messages(dm)] == [*missed, now]
        assert all(asked_of_the_model(house, one.content) == 1 for one in missed)

    async def test_what_was_said_before_an_erasing_is_not_answered_after_it(self, house: House) -> None:
        await house.running()
        dm = house.discord.dm(house.bea)
        for person in (house.ann, house.bea):
            await house.answered_to(person, house.discord.dm(person), "good morning")
        await gone(house)
        before = await house.discord.say(house.bea, dm, "a word before it")
        done = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "discoclaw", "memory", "erase", str(house.bea.id), "--yes"),
            cwd=house.folder,
            env=house.environment(),
        )
        assert await done.wait() == 0
        await house.running()
        after = await house.discord.say(house.bea, dm, "a word after it")
        assert await replied(house, after) == "ok"
        await gone(house)
        assert replies(house, before) == []

    async def test_many_questions_of_one_person_get_one_answer(self, house: House) -> None:
        await house.running()
        mill = house.discord.add_channel("mill")
        await house.answered_to(house.ann, mill, "good morning")
        await gone(house)
        many = [await house.ask(house.ann, mill, f"how is flour {number} ground?") for number in range(5)]
        other = await house.ask(house.bea, mill, "is there bread?")
        house.brain.answer("flour", text("All of it between stones."))
        await house.running()
        assert await replied(house, many[-1]) == "All of it between stones."
        assert await replied(house, other) == "ok"
        assert all(replies(house, one) == [] for one in many[:-1])
        sent = message_of(house.request("flour 4"))
        assert all(f"flour {number} ground" in sent for number in range(5)) and "bread" not in sent

    async def test_commands_are_carried_out_once(self, house: House) -> None:
        await house.running()
        yard = house.discord.add_channel("yard")
        await house.answered_to(house.bea, yard, "good morning")
        await gone(house)
        command = await house.discord.say(house.bea, yard, "!memory remember I keep geese")
        await house.running()
        assert "I keep geese" in await replied(house, command)
        assert "I keep geese" in house.durable(house.bea)
        await gone(house)
        await house.running()
        await quiet(house)
        assert len(replies(house, command)) == 1

    async def test_they_are_answered_before_what_is_asked_now(self, house: House) -> None:
        await house.running()
        well, dm = house.discord.add_channel("well"), house.discord.dm(house.ann)
        for place in (well, dm):
            await house.answered_to(house.ann, place, "good morning")
        async with house.discord.outage():
            missed = [await house.ask(house.ann, place, "is it deep?") for place in (well, dm)]
            house.discord.gateway.sessions.clear()  # so that nothing is sent again
            for place in (well, dm):  # and what was missed is known a while after what is said now
                path = f"/channels/{place.id}/messages"
                house.discord.fail_next("GET", path, 429, {"retry_after": 0.3, "message": "slow down"})
            before = len(house.discord.received("identify"))
        await house.discord.wait_for_gateway("identify", count=before + 1, timeout=30)
        now = [await house.ask(house.ann, place, "and now?") for place in (well, dm)]
        for question in (*missed, *now):
            assert await replied(house, question) == "ok"
        for place, first, second in zip((well, dm), missed, now, strict=True):
            assert [one.reply_to for one in house.discord.bot_messages(place)][-2:] == [first, second]

    async def test_edits_and_deletions_are_followed(self, house: House) -> None:
        await house.running()
        barn = house.discord.add_channel("barn")
        first = await house.discord.say(house.ann, barn, "the cow is brown")
        second = await house.discord.say(house.ann, barn, "the cat is a secret")
        await house.answered_to(house.ann, barn, "good morning")
        async with house.discord.outage():
            await house.discord.edit(first, "the cow is white")
            await house.discord.delete(second)
            house.discord.gateway.sessions.clear()  # so that nothing is sent again
        await house.discord.wait_for_gateway(
            "identify", count=len(house.discord.received("identify")) + 1, timeout=30
        )
        # Behind everything else it asks whether a thread is below what was deleted.
        await house.discord.wait_for_request("GET", f"/channels/{second.id}", timeout=30)
        await house.answered_to(house.ann, barn, "and now?")
        prompt = house.request("and now?").prompt
        assert "the cow is white" in prompt and "brown" not in prompt and "secret" not in prompt

    async def test_a_channel_that_is_gone_or_closed_does_not_hold_up_the_others(self, house: House) -> None:
        await house.running()
        open_one, closed = house.discord.add_channel("open"), house.discord.add_channel("closed")
        for place in (open_one, closed):
            await house.answered_to(house.ann, place, "good morning")
        await gone(house)
        lost = await house.ask(house.ann, closed, "can you hear me?")
        question = await house.ask(house.ann, open_one, "can you hear me?")
        path = f"/channels/{closed.id}/messages"
        house.discord.fail_next("GET", path, 403, {"code": 50001, "message": "Missing Access"})
        path = f"/channels/{open_one.id}/messages"
        house.discord.fail_next("GET", path, 429, {"retry_after": 0.01, "message": "slow down"})
        await house.running()
        assert await replied(house, question) == "ok"
        assert replies(house, lost) == []

    async def test_a_thousand_messages_in_forty_channels_are_a_call_each(self, house: House) -> None:
        await house.running()
        places = [house.discord.add_channel(f"stall-{number}") for number in range(40)]
        for place in places:
            await house.discord.say(house.ann, place, "good morning")
        await house.answered_to(house.ann, places[0], "are you there?")
        await gone(house)
        for place in places:
            for number in range(25):
                await house.discord.say(house.bea, place, f"apple {number}")
        question = await house.ask(house.bea, places[7], "what did I say?")
        before = len(house.discord.requests)
        bot = await house.running()
        said = await bot.logged("missed messages in")
        assert int(said.partition("caught up: ")[2].split()[0]) >= 1001
        assert await replied(house, question) == "ok"
        paths = {f"/channels/{place.id}/messages" for place in places}
        reads = [call for call in house.discord.requests[before:] if call.path in paths]
        assert 40 <= sum(call.method == "GET" for call in reads) <= 50
        assert "apple 24" in house.request("what did I say?").prompt

    async def test_what_somebody_said_before_they_were_erased_goes_to_no_model(self, house: House) -> None:
        await house.running()
        moat = house.discord.add_channel("moat")
        await house.answered_to(house.bea, moat, "good morning")
        await gone(house)
        question = await house.ask(house.bea, moat, "is the moat deep?")
        command = await house.discord.say(house.bea, moat, "!memory erase --yes")
        await house.running()
        assert "I erased everything" in await replied(house, command, "I erased everything")
        assert await replied(house, question) == LATE
        assert asked_of_the_model(house, "is the moat deep?") == 0

    async def test_a_folder_restored_from_a_backup_answers_nothing_again(self, house: House) -> None:
        await house.running()
        dock = house.discord.add_channel("dock")
        await house.answered_to(house.ann, dock, "good morning")
        await gone(house)
        backup = house.folder / "backup"
        shutil.copytree(house.data, backup)
        await house.running()
        question = await house.ask(house.ann, dock, "is the ship in?")
        await replied(house, question)
        await gone(house)
        missed = await house.ask(house.ann, dock, "and the boat?")
        shutil.rmtree(house.data)
        backup.rename(house.data)
        await house.running()
        assert await replied(house, missed) == "ok" == await replied(house, question)


class TestLongAgo:
    async def test_is_given_a_word_instead_of_an_answer(self, tmp_path: Path, forks: Source | None) -> None:
        async with House(tmp_path, forks=forks) as house:
            house.discord.set_back(3 * HOUR_MS)
            await house.running()
            cafe = house.discord.add_channel("cafe")
            await house.answered_to(house.ann, cafe, "good morning")
            await gone(house)
            old = [await house.ask(house.ann, cafe, f"is there cake {number}?") for number in range(2)]
            house.discord.set_back(0)
            new = await house.ask(house.bea, cafe, "is there bread?")
            await house.running()
            assert await replied(house, old[1]) == LATE
            assert await replied(house, new) == "ok"
            assert replies(house, old[0]) == [] and asked_of_the_model(house, "cake") == 0


class TestWhatWasUnderWay:
    async def test_half_an_answer_is_written_anew_in_its_place(self, house: House) -> None:
        await house.running()
        well = house.discord.add_channel("well")
        house.brain.answer(
            "how deep", text("It is ", "deep.", hold=asyncio.Event()), text("It is twelve metres deep.")
        )
        deep = await house.ask(house.bea, well, "how deep is it?")
        waiting = await house.ask(house.ann, well, "and how wide?")
        await replied(house, deep, "It is")
        await buttons(house, deep, "stop")
        await on_disk(house, deep, waiting)
        await killed(house)
        await house.running()
        assert await replied(house, deep, AGAIN) == "It is twelve metres deep." + AGAIN
        await buttons(house, deep, "again")
        assert await replied(house, waiting) == "ok"

    async def test_half_an_answer_in_a_thread_is_written_anew_there(self, house: House) -> None:
        await house.running()
        mine = in_threads(house, house.discord.add_channel("mine"))
        whole = text("It is seven miles long.")
        house.brain.answer("how long", text("It is ", "long.", hold=asyncio.Event()), whole)
        long = await house.ask(house.bea, mine, "how long is it?")
        await in_its_thread(house, long, "It is")
        await on_disk(house, long)
        await killed(house)
        await house.running()
        assert await in_its_thread(house, long, AGAIN) == ["It is seven miles long." + AGAIN]
        assert house.discord.bot_messages(mine) == []

    async def test_an_answer_in_a_thread_is_found_there_and_not_given_again(self, house: House) -> None:
        await house.running()
        cave = in_threads(house, house.discord.add_channel("cave"))
        await house.ask(house.ann, cave, "good morning")
        await gone(house)
        backup = house.folder / "before"
        shutil.copytree(house.data, backup)
        await house.running()
        dark = await house.ask(house.ann, cave, "is it dark?")
        assert await in_its_thread(house, dark) == ["ok"]
        await gone(house)
        shutil.rmtree(house.data)
        backup.rename(house.data)
        missed = await house.ask(house.ann, cave, "is it cold?")
        await house.running()
        assert await in_its_thread(house, missed) == ["ok"]
        assert await in_its_thread(house, dark) == ["ok"]
        assert asked_of_the_model(house, "is it dark?") == 1

    async def test_what_is_written_while_it_stops_is_answered_by_the_next_start(self, house: House) -> None:
        bot = await house.running()
        dock = house.discord.add_channel("dock")
        more = asyncio.Event()
        house.brain.answer("long story", text("Once there was ", "a lighthouse.", hold=more))
        story = await house.ask(house.ann, dock, "tell me a long story")
        await replied(house, story, "Once")
        bot.terminate()
        await bot.logged("stopping")
        for number in range(5):  # somewhere among these the queues are closed
            asked = await house.ask(house.bea, dock, f"are you there? {number}")
            await asyncio.sleep(0.2)
        more.set()
        assert await bot.ended() == 0
        await house.running()
        assert await replied(house, asked) == "ok"
        assert not any(STOPPED in one for one in house.texts(dock))

    async def test_a_command_is_not_repeated_but_spoken_of(self, house: House) -> None:
        await house.running()
        lake = house.discord.add_channel("lake")
        house.brain.answer("how cold", text("Very ", "cold.", hold=asyncio.Event()), text("Four degrees."))
        cold = await house.ask(house.bea, lake, "how cold is it?")
        await replied(house, cold, "Very")
        command = await house.discord.say(house.bea, lake, "!memory remember I swim")
        await on_disk(house, command)
        await killed(house)
        await house.running()
        assert await replied(house, command) == COMMAND_STOPPED
        await replied(house, cold, "Four")

    async def test_the_answer_to_a_command_cannot_be_given_twice(self, house: House) -> None:
        await house.running()
        command = await house.discord.say(house.ann, house.discord.add_channel("quay"), "!memory help")
        await replied(house, command)
        (answer,) = house.discord.bot_messages(command.channel)
        assert answer.nonce == f"{command.id}.1"  # which another process would send, too

    async def test_what_discord_sends_again_is_not_answered_again(self, house: House) -> None:
        await house.running()
        pier = house.discord.add_channel("pier")
        question = await house.ask(house.ann, pier, "is the boat there?")
        assert await replied(house, question) == "ok"
        (session,) = [one for one in house.discord.gateway.sessions.values() if one.socket is not None]
        session.replay(0)
        after = await house.ask(house.ann, pier, "and now?")
        await replied(house, after)
        await quiet(house)
        assert replies(house, question) == ["ok"] == replies(house, after)
        assert asked_of_the_model(house, "is the boat there?") == 1


class TestALimitOfDiscord:
    async def test_on_threads_holds_up_no_answer(self, house: House) -> None:
        await house.running()
        attic = in_threads(house, house.discord.add_channel("attic"))
        wait = {"retry_after": 600.0, "global": False}
        house.discord.fail_next("POST", "/channels/*/messages/*/threads", 429, json=wait)
        question = await house.ask(house.ann, attic, "what is in the attic?")
        assert await replied(house, question) == "ok"


class TestAThreadThatCannotBeRead:
    async def test_keeps_no_question_of_its_channel_from_being_answered(self, house: House) -> None:
        await house.running()
        loft = in_threads(house, house.discord.add_channel("loft"))
        for one in range(2):
            await in_its_thread(house, await house.ask(house.ann, loft, f"is loft {one} dry?"), "ok")
        first = await house.ask(house.ann, loft, "is loft 2 dry?")
        await in_its_thread(house, first, "ok")
        await gone(house)
        missed = await house.ask(house.ann, loft, "is loft 3 dry?")
        assert first.thread is not None
        house.discord.fail_next("GET", f"/channels/{first.thread.id}/messages", 403, times=100)
        await house.running()
        assert any("ok" in one for one in await in_its_thread(house, missed, "ok"))


class TestAnArchivedThread:
    async def test_no_longer_tells_by_its_name_what_was_deleted(self, house: House) -> None:
        await house.running()
        cave = in_threads(house, house.discord.add_channel("cave"))
        asked = [await house.ask(house.ann, cave, f"how deep is cave number {one}?") for one in range(3)]
        for one in asked:
            await in_its_thread(house, one, "ok")
        await gone(house)
        for one in asked:
            assert one.thread is not None
            one.thread.archived = True
        await house.discord.delete(asked[1])
        await house.running()
        await named(asked[1], DELETED)
        await house.discord.delete(asked[2])
        await named(asked[2], DELETED)
        assert asked[0].thread is not None and asked[0].thread.name != DELETED


async def named(question: Message, name: str) -> None:
    """Wait until the thread below a question has a name, and is archived as before."""
    thread = question.thread
    assert thread is not None
    async with asyncio.timeout(30):
        while not (thread.name == name and thread.archived):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class TestKilledAtAnyPoint:
    async def test_a_hundred_questions_are_answered_exactly_once_or_told(self, house: House) -> None:
        """Five lives, each killed somewhere between hearing a message and recording its answer."""
        dice = random.Random(4242)
        places = [house.discord.add_channel(f"square-{number}") for number in range(4)]
        places += [house.discord.dm(person) for person in (house.ann, house.bea)]
        await house.running()
        for place in places:
            await house.answered_to(place.recipient or house.ann, place, "good morning")
        house.brain.usual = repeated
        asked: list[Message] = []
        for life in range(5):
            for number in range(20):
                place = dice.choice(places)
                person = place.recipient or dice.choice([house.ann, house.bea])
                asked.append(await house.ask(person, place, f"what is {life}x{number}?"))
                await asyncio.sleep(dice.random() * 0.02)
            await asyncio.sleep(dice.choice([0.05, 0.3, 0.5 + dice.random()]))  # before, at and after READY
            await killed(house)
            await house.running()
        async with asyncio.timeout(60):
            while not all(answers_to(house, one) for one in asked):  # noqa: ASYNC110 - many may be the last
                await asyncio.sleep(0.05)
            # Half answers are written anew behind the others.
            while house.open_on_disk():  # noqa: ASYNC110 - a file rings no bell
                await asyncio.sleep(0.05)
        await house.answered_to(house.ann, places[0], "that was all")
        await house.answered_to(house.bea, places[0], "that was all")
        await gone(house)  # it ends when everything is learned
        counts = Counter(len(answers_to(house, one)) for one in asked)
        assert len(asked) == 100 and set(counts) == {1}, counts
        said = [one.content for place in places for one in house.discord.bot_messages(place)]
        every = {one for asking in asked for one in QUESTION.findall(asking.content)}
        assert every - learned_from(house) == set()
        halves = [one for one in said if one.startswith("You asked") and "I think." not in one]
        assert halves == []


def repeated(message: str) -> Behaviour:
    """An answer that names every question in a message, and takes its time."""
    return text("You asked ", *(f"{one}; " for one in QUESTION.findall(message)), "I think.", delay_s=0.02)


def learned_from(house: House) -> set[str]:
    """The questions in everything that extraction was shown as a person's own words."""
    prompts = [one.prompt for one in house.model.requests if not is_talk(one)]
    own = ["\n".join(own_of(prompt).values()) for prompt in prompts]
    return {one for part in own for one in QUESTION.findall(part)}


def answers_to(house: House, question: Message) -> list[str]:
    """The bot's messages that answer a question, alone or with others."""
    (about,) = QUESTION.findall(question.content)
    said = [one.content for one in house.discord.bot_messages(question.channel)]
    return [one for one in said if about in QUESTION.findall(one) and "I think." in one]
