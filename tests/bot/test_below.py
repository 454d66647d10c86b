"""The buttons below an answer: which there are when, and what they cost in requests."""

import asyncio
from typing import Any

import discord
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.bot.below.controls import AgainButton, MoreButton, StopButton
from discoclaw.bot.below.rows import LONGEST, Below, above
from tests.bot.stage import Stage, set_stage

IDS = st.integers(min_value=10**17, max_value=2**63)
MINUTE = 60_000 << 22


@pytest.fixture
def simcord_bot() -> discord.Client:
    return discord.Client(intents=discord.Intents.all())


@pytest.fixture
async def at(simcord_env: Any) -> Stage:
    return await set_stage(simcord_env)


def below(at: Stage) -> Below:
    asked = str(at.asked.id)
    return Below(str(at.asked.author.id), asked, asked)


async def rows(at: Stage) -> list[list[str]]:
    """The buttons of each of our messages."""
    return [[one.label for row in said.components for one in row.children] for said in await at.answers()]


async def say(reply: Any, *deltas: str) -> None:
    for delta in deltas:
        await reply.push(delta)
        if reply._pen is not None:
            await asyncio.wait([reply._pen])


class TestARow:
    @given(
        ids=st.tuples(IDS, IDS),
        waits=st.integers(0, 600 * MINUTE * 144),  # up to 60 days until the first message
        between=st.lists(st.integers(1, 10 * MINUTE), max_size=4),
    )
    def test_knows_all_messages_of_its_answer_in_100_characters(
        self, ids: tuple[int, int], waits: int, between: list[int]
    ) -> None:
        user, asked = ids
        messages = [asked + waits]
        for further in between:
            messages.append(messages[-1] + further)
        again, more = Below(str(user), str(asked), str(asked)).after("cut", messages)
        assert max(len(again), len(more)) <= LONGEST
        found = AgainButton.__discord_ui_compiled_template__.fullmatch(again)
        assert found is not None and MoreButton.__discord_ui_compiled_template__.fullmatch(more)
        assert above(found["asked"], found["above"]) == messages
        (stop,) = Below(str(user), str(asked), str(asked)).live()
        assert StopButton.__discord_ui_compiled_template__.fullmatch(stop)

    def test_of_the_rest_of_an_answer_offers_only_more(self) -> None:
        rest = Below("1", "2", "3")
        assert rest.live() == ("stop:1:3",)
        assert rest.after("whole", []) == ()
        assert rest.after("cut", []) == rest.after("missing", []) == ("more:1:2",)


class TestRequests:
    async def test_an_answer_sent_in_one_go_costs_one(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await reply.push("Tea.")
        await reply.finish("whole")
        assert await rows(at) == [["Again"]]
        assert (len(at.calls("POST", "/messages")), at.edits) == (1, 0)

    async def test_an_answer_that_grows_costs_none_more(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await say(reply, "A first sentence. ", "And a second.")
        assert await rows(at) == [["Stop"]]
        await reply.push(" And a third.")
        await reply.finish("whole")
        assert await rows(at) == [["Again"]]
        assert (len(at.calls("POST", "/messages")), at.edits) == (1, 2)
        first, last = at.calls("PATCH")
        assert "components" not in first.json and last.json["components"]

    async def test_an_answer_that_is_shown_already_costs_one_for_the_other_buttons(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await say(reply, "A whole sentence. ")
        await reply.finish("cut")
        assert await rows(at) == [["Again", "Go on"]]
        assert at.edits == 1

    async def test_only_the_last_message_has_any(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        for _ in range(12):
            await say(reply, "word " * 60)
            assert (await rows(at))[:-1] == [[]] * (len(await rows(at)) - 1)
        await reply.finish("whole")
        assert await rows(at) == [[], ["Again"]]

    async def test_a_failure_is_asked_again_below_its_reason(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await say(reply, "A first sentence. ")
        await reply.fail("No more.", ending="missing")
        assert await rows(at) == [[], ["Again"]]
        last = (await at.answers())[-1]
        (button,) = last.components[0].children
        asked, _, messages = button.custom_id.rpartition(":")
        assert above(asked.rpartition(":")[2], messages) == [(await at.answers())[0].id]

    async def test_what_cannot_be_asked_again_has_none(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await say(reply, "A question of an interview?")
        await reply.finish()
        assert await rows(at) == [[]]


class TestRefused:
    @staticmethod
    def refuse(at: Stage, method: str, path: str) -> None:
        why = "Invalid Form Body\nIn components.0: not here"
        at.env.inject_error(method, path, status=400, times=1, code=50035, message=why)

    async def test_buttons_are_left_out_of_the_whole_answer(self, at: Stage) -> None:
        self.refuse(at, "POST", "/channels/*/messages")
        reply = at.reply(below=below(at))
        await say(reply, "A first sentence. ")
        await reply.push("And a second.")
        await reply.finish("whole")
        (answer,) = await at.answers()
        assert answer.content == "A first sentence. And a second." and not answer.components
        assert answer.reference is not None
        sent = [bool(call.json.get("components")) for call in at.calls("POST", "/messages")]
        assert sent == [True, False]
        assert "components" not in at.calls("PATCH")[-1].json

    async def test_buttons_that_are_refused_in_an_edit_go(self, at: Stage) -> None:
        reply = at.reply(below=below(at))
        await say(reply, "A first sentence. ")
        self.refuse(at, "PATCH", "/channels/*/messages/*")
        await reply.push("And a second.")
        await reply.finish("whole")
        (answer,) = await at.answers()
        assert answer.content == "A first sentence. And a second." and not answer.components
