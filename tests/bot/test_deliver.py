"""Answers reach Discord completely, live within its limits, and whatever Discord does meanwhile."""

import asyncio
import inspect
import random
from typing import Any, ClassVar

import aiohttp
import discord
import pytest
import simcord
from discord.ext import commands

from discoclaw.bot.deliver import DiscordReply
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pages import send_pieces
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable
from tests.bot.fences import read
from tests.bot.stage import Stage, set_stage

CODE = "".join(f"value_{i} = {i}\n" for i in range(400))
LONG = "".join(f"{i}. A sentence about memory, größer and 👩‍👩‍👧.\n" for i in range(230))


@pytest.fixture
def simcord_bot() -> discord.Client:
    return discord.Client(intents=discord.Intents.all())


@pytest.fixture
async def at(simcord_env: Any) -> Stage:
    return await set_stage(simcord_env)


async def written(reply: DiscordReply) -> None:
    """Let the pen catch up, as it does between the words of a slow model."""
    if reply._pen is not None:
        await asyncio.wait([reply._pen])


async def say(reply: DiscordReply, *deltas: str) -> None:
    for delta in deltas:
        await reply.push(delta)
        await written(reply)


def tokens(text: str) -> list[str]:
    return [text[at : at + 4] for at in range(0, len(text), 4)]


class TestAnAnswer:
    async def test_is_a_reply_to_the_message_and_its_id_is_returned(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "You like ", "tea.")
        told = await reply.finish()
        (answer,) = await at.answers()
        assert (answer.content, str(answer.id)) == ("You like tea.", told)
        assert answer.reference is not None and answer.reference.message_id == at.asked.id

    async def test_pings_nobody_neither_when_sent_nor_when_edited(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, f"@everyone and {at.asked.author.mention}: a first sentence. ", "And a second.")
        await reply.finish()
        requests = [*at.calls("POST", "/messages"), *at.calls("PATCH")]
        assert len(requests) >= 2
        for request in requests:
            assert request.json["allowed_mentions"] == {"parse": []}  # no "replied_user" either

    async def test_shows_no_previews_from_its_second_link_on(self, at: Stage) -> None:
        reply = at.reply()
        await say(
            reply, "Look at https://example.com/one first. That is where it all begins, and it is good. "
        )
        (shown,) = await at.answers()
        assert not shown.flags.suppress_embeds
        await say(reply, "Then at https://example.com/two.")
        (shown,) = await at.answers()
        assert shown.flags.suppress_embeds
        await reply.push(" And that is all.")
        await reply.finish()
        (shown,) = await at.answers()
        assert shown.flags.suppress_embeds and shown.content.endswith("all.")

    @pytest.mark.parametrize("deltas", [(), ("",), (" ", "\n\n", "\t")])
    async def test_of_nothing_visible_is_no_message(self, at: Stage, deltas: tuple[str, ...]) -> None:
        reply = at.reply()
        await say(reply, *deltas)
        assert await reply.finish() is None
        assert await at.texts() == []

    async def test_to_a_deleted_message_is_still_sent(self, at: Stage) -> None:
        await at.person.delete(at.asked)
        reply = at.reply()
        await say(reply, "Still here.")
        await reply.finish()
        assert await at.texts() == ["Still here."]
        (sent,) = at.calls("POST", "/messages")
        assert sent.json["message_reference"]["fail_if_not_exists"] is False

    async def test_is_sent_without_the_reference_where_replying_is_refused(self, at: Stage) -> None:
        at.fail_sends(400, times=1, code=160002)
        reply = at.reply()
        await say(reply, "No history for me.")
        await reply.finish()
        (answer,) = await at.answers()
        assert answer.reference is None

    async def test_of_10000_characters_arrives_token_by_token_and_whole(self, at: Stage) -> None:
        reply = at.reply()
        for count, token in enumerate(tokens(LONG)):
            await reply.push(token)
            if count % 25 == 0:
                await written(reply)
        await reply.finish()
        answers = await at.texts()
        assert len(LONG) > 10_000 and len(answers) == len({*answers}) >= 6
        assert "\n".join(answers) + "\n" == LONG

    async def test_joins_an_emoji_that_came_in_two_halves(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Yes. \ud83d", "\udc4d", "\x00 and half \ud83d")
        await reply.finish()
        assert await at.texts() == ["Yes. 👍 and half \ufffd"]

    async def test_can_be_finished_twice(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Once.")
        assert await reply.finish() == await reply.finish()
        assert await at.texts() == ["Once."]


class TestTheLiveView:
    async def test_what_was_full_is_never_changed_again(self, at: Stage) -> None:
        reply, before = at.reply(), []
        for token in tokens(LONG):
            await reply.push(token)
            if token.endswith("\n"):
                await written(reply)
                now = await at.texts()
                assert now[: len(before) - 1] == before[:-1]
                assert all(not read(text).open for text in now)
                before = now
        await reply.finish()
        assert (await at.texts())[: len(before) - 1] == before[:-1]

    async def test_an_open_code_block_is_shown_closed(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Look at this:\n```py\n", "x = 1\n")
        assert await at.texts() == ["Look at this:\n```py\nx = 1\n```"]
        await say(reply, "y = 2\n``")
        assert await at.texts() == ["Look at this:\n```py\nx = 1\ny = 2\n```"]
        await say(reply, "`\nDone.")
        await reply.finish()
        assert await at.texts() == ["Look at this:\n```py\nx = 1\ny = 2\n```\nDone."]

    async def test_edits_at_most_once_per_interval(self, at: Stage) -> None:
        reply = at.reply(edit_every_s=0.2)
        started = asyncio.get_running_loop().time()
        await say_without_waiting(reply, "A first sentence, which is sent at once. ", *["word "] * 100)
        took = asyncio.get_running_loop().time() - started
        await reply.finish()
        assert 1 <= at.edits <= took / 0.2 + 2

    async def test_is_not_edited_when_nobody_would_see_a_change(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "A whole sentence. ", "\n", "\n")
        await reply.finish()
        assert at.edits == 0

    async def test_starts_with_a_sentence_not_with_a_token(self, at: Stage) -> None:
        reply = at.reply(edit_every_s=60)
        await reply.push("I")
        await asyncio.sleep(0.05)
        assert await at.texts() == []
        await reply.push(" remember. ")
        await written(reply)
        assert await at.texts() == ["I remember."]
        await reply.push("More")
        await asyncio.sleep(0.05)
        assert at.edits == 0
        await reply.finish()
        assert await at.texts() == ["I remember. More"]

    async def test_shows_a_short_start_when_the_interval_is_over(self, at: Stage) -> None:
        reply = at.reply(edit_every_s=0.05)
        await reply.push("Hm")
        await asyncio.sleep(0.2)
        assert await at.texts() == ["Hm"]
        await reply.finish()

    async def test_pushing_does_not_wait_for_discord(self, at: Stage) -> None:
        reply = at.reply()
        for token in tokens(LONG):
            await reply.push(token)
        assert at.calls("POST", "/messages") == []
        await reply.finish()


async def say_without_waiting(reply: DiscordReply, *deltas: str) -> None:
    for delta in deltas:
        await reply.push(delta)
        await asyncio.sleep(0.01)


class TestLongCode:
    async def test_arrives_as_a_file_between_the_words(self, at: Stage) -> None:
        reply = at.reply()
        for token in tokens(f"Here it is:\n\n```python\n{CODE}```\n\nRun it."):
            await reply.push(token)
            await asyncio.sleep(0)
        await reply.finish()
        before, file, after = await at.answers()
        assert (before.content.strip(), after.content) == ("Here it is:", "Run it.")
        assert file.content == "`code.py` (400 lines)"
        assert (await file.attachments[0].read()).decode() == CODE

    async def test_that_was_shown_as_text_at_first_becomes_a_file_in_place(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, *[f"```python\n{CODE}"[at : at + 900] for at in range(0, len(CODE) + 10, 900)])
        assert (await at.texts())[0].startswith("`code.py` (")
        await say(reply, "```\n", "That was it. " * 200)
        await reply.finish()
        answers = await at.answers()
        assert [len(answer.attachments) for answer in answers] == [1] + [0] * (len(answers) - 1)
        assert (await answers[0].attachments[0].read()).decode() == CODE

    async def test_is_sent_again_whole_when_the_upload_fails_at_first(self, at: Stage) -> None:
        at.fail_sends(503, times=1)
        reply = at.reply()
        await reply.push(f"```python\n{CODE}```")
        await reply.finish()
        (answer,) = await at.answers()
        assert (await answer.attachments[0].read()).decode() == CODE


class TestTyping:
    async def test_is_shown_before_the_first_text_and_never_after(self, at: Stage) -> None:
        async with at.reply() as reply:
            await asyncio.sleep(0.01)
            assert len(at.calls("POST", "/typing")) == 1
            await say(reply, "First sentence. ")
            await at.env.advance_time(60)
            await say(reply, "Second sentence. ")
            await reply.finish()
        posts = [request.path.rsplit("/", 1)[1] for request in at.calls("POST")]
        assert posts == ["typing", "messages"]

    async def test_is_renewed_while_the_model_thinks_and_not_once_it_speaks(self) -> None:
        client, starts = discord.Client(intents=discord.Intents.all()), asyncio.Event()

        @client.event
        async def on_message(message: discord.Message) -> None:
            if not message.author.bot:
                async with DiscordReply(message.channel, message) as reply:
                    await asyncio.sleep(20)
                    await reply.push("That took a while. ")
                    await asyncio.sleep(20)  # a tool, say
                    await reply.finish()
                    starts.set()

        async with simcord.run(client) as env:
            guild = env.create_guild()
            handle = guild.create_text_channel("general")
            ann = guild.add_member(env.create_user("ann"))
            await ann.send(handle, "Hello?")
            await env.advance_time(45)
            assert starts.is_set()
            posts = [r.path.rsplit("/", 1)[1] for r in env.http_requests if r.method == "POST"]
            assert posts == ["typing"] * 3 + ["messages"]
            assert handle.last_message.content == "That took a while. "

    async def test_that_fails_does_not_stop_the_answer(self, at: Stage) -> None:
        at.env.inject_error("POST", "/channels/*/typing", status=403, times=None)
        async with at.reply() as reply:
            await say(reply, "Fine.")
            await reply.finish()
        assert await at.texts() == ["Fine."]

    async def test_ends_when_a_turn_is_given_up(self, at: Stage) -> None:
        async with at.reply():
            await asyncio.sleep(0.01)
        await at.env.advance_time(60)
        assert len(at.calls("POST", "/typing")) == 1


class TestWhenDiscordFails:
    async def test_after_somebody_deleted_our_message_all_of_it_is_said_again(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "First sentence. ")
        await (await at.answers())[0].delete()
        await say(reply, "Second sentence. ")
        told = await reply.finish()
        (answer,) = await at.answers()
        assert answer.content.strip() == "First sentence. Second sentence."
        assert str(answer.id) == told

    @pytest.mark.parametrize("status", [403, 429, 500, 503])
    async def test_a_failed_edit_ends_the_live_view_but_loses_nothing(self, at: Stage, status: int) -> None:
        at.fail_edits(status)
        reply = at.reply()
        await say(reply, "First sentence. ", *["Another sentence. "] * 10)
        assert at.edits == 1
        await reply.finish()
        assert await at.texts() == ["First sentence.", ("Another sentence. " * 10).rstrip()]

    async def test_a_code_block_goes_on_as_code_in_the_next_message(self, at: Stage) -> None:
        at.fail_edits(403)
        reply = at.reply()
        await say(reply, "```py\nx = 1\n", "y = 2\n```\nDone.")
        await reply.finish()
        assert await at.texts() == ["```py\nx = 1\n```", "```py\ny = 2\n```\nDone."]

    async def test_an_edit_that_works_again_at_the_end_keeps_one_message(self, at: Stage) -> None:
        at.fail_edits(500, times=1)
        reply = at.reply()
        await say(reply, "First sentence. ", "Second sentence. ")
        await reply.finish()
        assert await at.texts() == ["First sentence. Second sentence."]

    async def test_a_send_is_repeated_with_the_same_nonce(self, at: Stage) -> None:
        at.fail_sends(503, times=2)
        reply = at.reply()
        await reply.push("Hello.")
        await reply.finish()
        sends = at.calls("POST", "/messages")
        assert len(sends) == 3 and len({send.json["nonce"] for send in sends}) == 1
        assert await at.texts() == ["Hello."]

    async def test_a_send_is_not_repeated_at_once_under_a_rate_limit(self, at: Stage) -> None:
        at.fail_sends(429)
        reply = at.reply()
        await reply.push("Hello.")
        with pytest.raises(ChatUnavailable):
            await reply.finish()
        assert len(at.calls("POST", "/messages")) == 1

    @pytest.mark.parametrize(
        ("status", "error"), [(403, ChatForbidden), (404, ChatGone), (500, ChatUnavailable), (400, ChatError)]
    )
    async def test_what_can_not_be_sent_is_raised_and_handed_back(
        self, at: Stage, status: int, error: type[ChatError]
    ) -> None:
        at.fail_sends(status)
        reply = at.reply()
        await say(reply, "This is a whole sentence. ", "And more.")
        with pytest.raises(error):
            await reply.finish()
        assert reply.unsaid == "This is a whole sentence. And more."

    async def test_only_what_is_not_visible_is_handed_back(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Visible. ")
        at.fail_edits(403)
        at.fail_sends(403)
        await say(reply, "Invisible.")
        with pytest.raises(ChatForbidden):
            await reply.finish()
        assert (await at.texts(), reply.unsaid) == (["Visible."], "Invisible.")

    @pytest.mark.parametrize("seed", range(25))
    async def test_whatever_fails_each_word_is_visible_or_handed_back_once(
        self, at: Stage, seed: int
    ) -> None:
        chance = random.Random(seed)
        words = [f"word{number}" + chance.choice([" ", " ", ". ", "\n"]) for number in range(900)]
        reply, left = at.reply(), ""
        for word in words:
            if chance.random() < 0.02:
                fail = chance.choice([at.fail_sends, at.fail_edits])
                fail(chance.choice([403, 429, 500, 503]), times=chance.randint(1, 4))
            await reply.push(word)
            if chance.random() < 0.1:
                await written(reply)
        try:
            await reply.finish()
        except ChatError:
            left = reply.unsaid
        said = " ".join([*await at.texts(), left])
        assert said.split() == "".join(words).split()


class TestTellingThatItFailed:
    async def test_keeps_what_was_said_and_adds_the_reason(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Half an ans")
        await reply.fail("The model is overloaded.")
        assert await at.texts() == ["Half an ans", "The model is overloaded."]

    async def test_is_a_reply_when_nothing_was_said(self, at: Stage) -> None:
        async with at.reply() as reply:
            await reply.fail("The model is overloaded.")
        (answer,) = await at.answers()
        assert answer.reference is not None and answer.content == "The model is overloaded."

    async def test_is_tried_even_when_the_rest_can_not_be_sent(self, at: Stage) -> None:
        at.fail_sends(400, times=2)
        reply = at.reply()
        await reply.push("Something Discord does not like.")
        with pytest.raises(ChatError):
            await reply.fail("The model is overloaded.")
        assert await at.texts() == ["The model is overloaded."]


class TestLongListsOfCommands:
    async def test_go_out_in_several_messages_that_ping_nobody(self, at: Stage) -> None:
        text = "- an item of memory\n" * 150
        await send_pieces(at.channel.send, text)
        assert "\n".join(await at.texts()) + "\n" == text
        assert all(r.json["allowed_mentions"]["parse"] == [] for r in at.calls("POST", "/messages"))

    async def test_become_one_file_when_they_would_flood_the_channel(self, at: Stage) -> None:
        text = "- an item of memory\n" * 1500
        await send_pieces(at.channel.send, text, name="memory.md")
        (answer,) = await at.answers()
        assert answer.content == "`memory.md` (1,500 lines)"
        assert (await answer.attachments[0].read()).decode() == text

    async def test_are_answers_only_the_asking_person_sees(self) -> None:
        client = commands.Bot("!", intents=discord.Intents.all())

        @client.tree.command(name="list", description="Lists")
        async def listing(interaction: discord.Interaction) -> None:
            await interaction.response.defer(ephemeral=True)

            async def send(**options: Any) -> None:
                await interaction.followup.send(ephemeral=True, **options)

            await send_pieces(send, "- an item of memory\n" * 150)

        async with simcord.run(client, strict_sync=False) as env:
            guild = env.create_guild()
            handle = guild.create_text_channel("general")
            ann = guild.add_member(env.create_user("ann"))
            result = await ann.slash(handle, "list")
            assert result.ephemeral
            answers = [result.response, *result.followups]
            assert [len(answer.content) >= 1000 for answer in answers] == [True, True]

    async def test_say_that_discord_refused(self, at: Stage) -> None:
        at.fail_sends(403)
        with pytest.raises(ChatForbidden):
            await send_pieces(at.channel.send, "text")


class TestErrors:
    STATUSES = (
        (400, ChatError),
        (401, ChatForbidden),
        (403, ChatForbidden),
        (404, ChatGone),
        (408, ChatUnavailable),
        (413, ChatError),
        (429, ChatUnavailable),
        (500, ChatUnavailable),
        (503, ChatUnavailable),
    )

    @pytest.mark.parametrize(("status", "error"), STATUSES)
    async def test_each_answer_of_discord_has_its_meaning(
        self, at: Stage, status: int, error: type[ChatError]
    ) -> None:
        at.env.inject_error("GET", "/channels/*/messages/*", status=status, code=50013)
        with pytest.raises(ChatError) as raised, discord_errors():
            await at.channel.fetch_message(at.asked.id)
        assert type(raised.value) is error
        assert "50013" in str(raised.value) and isinstance(raised.value.__cause__, discord.HTTPException)

    @pytest.mark.parametrize(
        "error",
        [
            discord.RateLimited(30.0),
            aiohttp.ClientConnectionError("reset"),
            aiohttp.ServerDisconnectedError(),
            TimeoutError(),
            ConnectionResetError(104, "reset"),
        ],
    )
    def test_without_an_answer_discord_is_not_available(self, error: Exception) -> None:
        with pytest.raises(ChatUnavailable), discord_errors():
            raise error

    def test_every_error_of_a_request_that_discord_py_knows_is_translated(self) -> None:
        ours = [kind for _, kind in inspect.getmembers(discord, inspect.isclass) if _is_of_a_request(kind)]
        assert {discord.Forbidden, discord.NotFound, discord.DiscordServerError} < {*ours}
        for kind in ours:
            with pytest.raises(ChatError), discord_errors():
                raise kind(_Answer(), "no")

    def test_our_own_mistakes_are_not_hidden(self) -> None:
        with pytest.raises(TypeError), discord_errors():
            raise TypeError("ours")


class _Answer:
    """As much of an HTTP answer as the errors read."""

    status = 500
    reason = "Internal Server Error"
    headers: ClassVar[dict[str, str]] = {}


def _is_of_a_request(kind: type) -> bool:
    return issubclass(kind, discord.HTTPException)


class TestWhatIsBeingDone:
    LINE = "*looking…*"

    async def do(self, reply: DiscordReply, line: str = LINE) -> None:
        await reply.doing(line)
        await written(reply)

    async def test_is_shown_below_the_text_and_replaced_by_more(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Let me look.\n\n")
        await self.do(reply)
        assert await at.texts() == [f"Let me look.\n\n{self.LINE}"]
        await say(reply, "Here it is.")
        assert await at.texts() == ["Let me look.\n\nHere it is."]
        await self.do(reply)
        assert reply.unsaid == ""
        await reply.finish()
        assert await at.texts() == ["Let me look.\n\nHere it is."]

    async def test_alone_is_a_reply_that_becomes_the_answer(self, at: Stage) -> None:
        reply = at.reply()
        await self.do(reply)
        (line,) = await at.answers()
        await self.do(reply, "*writing…*")
        assert await at.texts() == ["*writing…*"]
        await say(reply, "You like tea.")
        assert await reply.finish() == str(line.id)
        (answer,) = await at.answers()
        assert answer.content == "You like tea." and answer.reference is not None

    @pytest.mark.parametrize("refused", [False, True])
    async def test_alone_is_no_answer_even_if_it_cannot_be_deleted(self, at: Stage, refused: bool) -> None:
        reply = at.reply()
        await self.do(reply)
        if refused:
            at.env.inject_error("DELETE", "/channels/*/messages/*", status=403, times=None)
        assert await reply.finish() is None
        assert await at.texts() == ([self.LINE] if refused else [])

    async def test_goes_when_nothing_is_to_be_said(self, at: Stage) -> None:
        reply = at.reply()
        await self.do(reply)
        await reply.drop()
        assert await at.texts() == []

    async def test_is_left_out_where_a_message_has_no_room_for_it(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "x" * 1_995)
        await self.do(reply)
        assert await at.texts() == ["x" * 1_995]

    async def test_is_said_in_a_message_of_its_own_behind_one_that_is_full(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, "Word by word. " * 150)
        await self.do(reply)
        assert (await at.texts())[-1].endswith(self.LINE)
        await reply.finish()
        assert self.LINE not in "".join(await at.texts())

    async def test_that_somebody_deletes_is_followed_by_the_answer(self, at: Stage) -> None:
        reply = at.reply()
        await self.do(reply)
        (line,) = await at.answers()
        await line.delete()
        await say(reply, "You like tea.")
        await reply.finish()
        assert await at.texts() == ["You like tea."]

    async def test_leaves_with_its_message_where_that_cannot_be_edited(self, at: Stage) -> None:
        reply = at.reply()
        await self.do(reply)
        at.fail_edits(403)
        await say(reply, "You like tea.")
        await reply.finish()
        assert await at.texts() == ["You like tea."]

    async def test_does_not_replace_half_an_answer_of_before_a_restart(self, at: Stage) -> None:
        half = await at.channel.send("Half an ans")
        reply = DiscordReply(at.channel, at.asked, edit_every_s=0.0, onto=[half])
        await self.do(reply)
        assert await at.texts() == ["Half an ans"]


class TestWhatWasNoPartOfTheAnswer:
    THOUGHT = "They ask what I remember. "

    async def test_gives_way_to_what_is_said(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, f"Let me look.\n\n{self.THOUGHT}")
        (first,) = await at.answers()
        await reply.retract("Let me look.\n\n")
        await say(reply, "Tea.")
        assert await at.texts() == ["Let me look.\n\nTea."]
        assert await reply.finish() == str(first.id)
        assert await at.texts() == ["Let me look.\n\nTea."]

    async def test_leaves_with_all_messages_that_it_filled(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, self.THOUGHT * 200)
        assert len(await at.texts()) == 3
        await reply.retract("")
        await reply.push("Tea.")
        shown = await reply.finish("whole")
        assert await at.texts() == ["Tea."]
        assert [str(one.id) for one in await at.answers()] == [shown]

    async def test_leaves_nothing_where_no_more_is_said(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, self.THOUGHT)
        await reply.retract("")
        assert await reply.finish() is None
        assert await at.texts() == []

    async def test_is_not_said_where_it_was_not_shown_yet(self, at: Stage) -> None:
        reply = at.reply(edit_every_s=60)
        await reply.push("They")
        await reply.retract("")
        await reply.push("Tea.")
        await reply.finish()
        assert await at.texts() == ["Tea."]

    async def test_stays_below_the_answer_where_discord_keeps_it(self, at: Stage) -> None:
        reply = at.reply()
        await say(reply, self.THOUGHT * 100)
        at.env.inject_error("DELETE", "/channels/*/messages/*", status=403, times=None)
        await reply.retract("")
        await reply.push("Tea.")
        await reply.finish()
        assert (await at.texts())[0] == "Tea."
