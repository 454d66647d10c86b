"""Receipts, questions and offers as cards: their form, what stands in for them, and messages of before."""

import json
import logging
from functools import partial
from typing import Any

import discord
import pytest

from discoclaw.bot.cards.card import Button
from discoclaw.bot.cards.layout import below
from discoclaw.bot.cards.sending import NO_CARD
from discoclaw.bot.deliver import DiscordReply
from discoclaw.bot.receipts import Receipts
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from discoclaw.core.ports import HatchOffer, Offer
from discoclaw.core.taken_back import Withdrawal, Words
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_questions import TABS, contradicted
from tests.app.of_receipts import learned, talk
from tests.app.test_approval import says, waiting
from tests.contract.cards import labels, parts, said

TEA, TEA_READ = "User likes tea.", "You like tea."
CONTAINER, SECTION = 17, 9


def refuse(world: World, channel: Any, **fault: Any) -> None:
    """Have Discord refuse the next message in a channel."""
    world.env.inject_error("POST", f"/channels/{channel.id}/messages", **{"status": 400, **fault})


def posted(world: World, channel: Any) -> list[dict[str, Any]]:
    """What the bot has sent to a channel, what was refused included."""
    path = f"/channels/{channel.id}/messages"
    return [one.json for one in world.env.http_requests if one.method == "POST" and one.path.endswith(path)]


async def learn(world: World) -> None:
    """Something is learned from #general, without an answer there."""
    origin = Origin("inferred", Source("discord", str(world.general.id), "2"))
    wish = partial(Draft.upsert, kind="fact", text=TEA, origin=origin)
    await world.memory.change(f"user-{world.ann.id}", "learned", wish, by="extraction")
    await world.settle()


async def propose(world: World, *texts: str) -> None:
    """Something is learned from #general that waits for Ann's yes."""
    origin = Origin("inferred", Source("discord", str(world.general.id), "2"), needs_yes=True)

    def make(draft: Draft) -> None:
        for text in texts:
            draft.upsert("fact", text, origin)

    await world.memory.change(f"user-{world.ann.id}", "learned", make, by="extraction")
    await world.settle()


async def plainly(world: World, channel: Any, text: str, *controls: Button) -> Any:
    """A message as the bot sent it before it had cards."""
    client = world.app.client
    there = client.get_channel(channel.id) or await client.fetch_channel(channel.id)
    assert isinstance(there, discord.abc.Messageable)
    await there.send(text, view=below(controls))
    return channel.last_message


def now(world: World, message: Any) -> Any:
    """A message as it is by now."""
    shown = [*world.general.history(), *world.ann_dm.history()]
    return next(one for one in shown if one.id == message.id)


async def head(world: World) -> str:
    history = await world.memory.history(f"user-{world.ann.id}")
    return str(history.branch("main").head)


class TestTheForm:
    async def test_of_a_receipt_is_small_print_with_its_button_beside_it(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            message = await talk(world, world.model, learned(TEA))
            assert message.flags.components_v2 and message.flags.suppress_notifications
            assert [one["type"] for one in parts(message)].count(SECTION) == 1
            assert CONTAINER not in [one["type"] for one in parts(message)]
            assert (said(message), labels(message)) == (f"-# remembered: {TEA_READ}", ["Undo"])

    async def test_of_what_a_press_comes_to_is_as_quiet(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            message = await talk(world, world.model, learned(TEA))
            await world.ann.click(message, label="Undo")
            message = now(world, message)
            assert said(message).startswith("-# taken back")
            assert {one["type"] for one in parts(message)} == {10}

    async def test_of_a_question_has_a_frame_also_once_it_is_settled(self, start: Start) -> None:
        async with contradicted(start) as world:
            message = world.ann_dm.last_message
            assert parts(message)[0]["type"] == CONTAINER
            await world.ann.user.click(message, label="Keep the old")
            assert said(now(world, message)).startswith("-# Settled")
            assert parts(now(world, message))[0]["type"] == CONTAINER

    async def test_of_a_question_that_was_answered_elsewhere_keeps_both_sides(self, start: Start) -> None:
        async with contradicted(start) as world:
            before = said(world.ann_dm.last_message)
            await says(world, "settle")
            await world.ann.click(world.general.last_message, label="Keep both")
            await world.settle()
            message = world.ann_dm.last_message
            assert said(message) == f"{before}\n-# settled meanwhile"
            assert labels(message) == []
            assert parts(message)[0]["type"] == CONTAINER

    async def test_of_a_question_says_nothing_that_was_taken_back(self, start: Start) -> None:
        async with contradicted(start) as world:
            await says(world, f"forget {TABS}")
            await world.settle()
            told = said(world.ann_dm.last_message)
            assert told == "-# a question about something that you took back\n-# settled meanwhile"
            assert labels(world.ann_dm.last_message) == []


class TestAMessageOfBefore:
    async def test_takes_back_what_was_learned(self, start: Start) -> None:
        async with start(Scripted(), receipts=False) as world:
            await learn(world)
            undo = Button(f"undo:{world.ann.id}:{await head(world)}:main", "Undo")
            old = await plainly(world, world.general, f"-# remembered: {TEA_READ}", undo)
            await world.restart()
            result = await world.bob.click(old, label="Undo")
            assert result.response.content == "These buttons are for somebody else."
            await world.ann.click(old, label="Undo")
            old = now(world, old)
            assert old.content == "-# taken back"
            assert (labels(old), old.flags.components_v2) == ([], False)
            assert (await world.memory.view(f"user-{world.ann.id}")).active() == []

    async def test_settles_a_question(self, start: Start) -> None:
        async with contradicted(start) as world:
            old = await self.asked(world)
            await world.restart()
            await world.ann.user.click(old, label="Keep the old")
            assert now(world, old).content.startswith(f"-# Settled: I keep “{TABS}”.")
            assert (await world.memory.view(f"user-{world.ann.id}")).conflicts == ()

    async def test_is_closed_when_the_question_was_answered_elsewhere(self, start: Start) -> None:
        async with contradicted(start) as world:
            old = await self.asked(world)
            before = old.content
            await world.restart()
            await says(world, "settle")
            await world.ann.click(world.general.last_message, label="Keep the old")
            await world.settle()
            assert (now(world, old).content, labels(now(world, old))) == (
                f"{before}\n-# settled meanwhile",
                [],
            )

    async def test_says_no_longer_what_was_taken_back(self, start: Start) -> None:
        async with contradicted(start) as world:
            old = await self.asked(world)
            await world.restart()
            await says(world, f"forget {TABS}")
            await world.settle()
            told = "-# a question about something that you took back\n-# settled meanwhile"
            assert (now(world, old).content, labels(now(world, old))) == (told, [])

    async def asked(self, world: World) -> Any:
        """The question as a text, in place of the card that the bot knows of."""
        (conflict,) = (await world.memory.view(f"user-{world.ann.id}")).conflicts
        text = f"-# a question about what I remember about you\nYou told me “{TABS}”. Which is right?"
        answer = Button(f"settle:{world.ann.id}:{conflict.event_id}:keep_old:main", "Keep the old")
        old = await plainly(world, world.ann_dm, text, answer)
        cursor = world.folder / "data" / "memory" / "cursors" / f"questions-{world.ann.id}.json"
        assert conflict.event_id in cursor.read_text()
        cursor.write_text(cursor.read_text().replace(str(world.ann_dm.history()[0].id), str(old.id)))
        return old


class TestWhereDiscordTakesNoCard:
    async def test_a_receipt_is_a_text_once_and_can_be_undone(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            refuse(world, world.general, code=50035)
            await learn(world)
            assert len(posted(world, world.general)) == 2
            (message,) = world.general.history()
            assert (message.content, labels(message)) == (f"-# remembered: {TEA_READ}", ["Undo"])
            assert message.flags.suppress_notifications
            assert posted(world, world.general)[-1]["allowed_mentions"] == {"parse": []}
            await world.ann.click(message, label="Undo")
            assert now(world, message).content.startswith("-# taken back")

    async def test_what_waits_for_a_yes_is_asked_in_a_text(self, start: Start) -> None:
        async with start(Scripted(), asks_first=True) as world:
            refuse(world, world.general)
            await propose(world, TEA, "b")
            (message,) = world.general.history()
            assert message.content == f"-# may I remember: {TEA_READ}\n-# may I remember: b"
            assert labels(message) == ["Yes", "No", "Choose"]
            await world.ann.click(message, label="No")
            assert await waiting(world) == []

    async def test_a_question_says_so_and_is_no_talk(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await says(world, f"remember {TABS}")
            refuse(world, world.ann_dm)
            patch = {"upserts": [{"id": TABS, "kind": "fact", "text": "User uses spaces."}]}
            world.model.facts = [json.dumps(patch)]
            await world.env.advance_time(60)
            await world.ann.send(world.general, "I use spaces")
            await world.settle()
            (message,) = world.ann_dm.history()
            assert message.content.startswith(f"{NO_CARD}\n### Which is right?\n")
            assert f"You told me “{TABS}”" in message.content
            assert labels(message) == ["Keep the old", "Use the new", "Keep both"]
            await world.restart()
            await world.ann.send_dm("hello")
            assert "hello" in world.model.prompt
            assert "Which is right" not in world.model.prompt
            await world.ann.user.click(message, label="Use the new")
            assert now(world, message).content.startswith("-# Settled: from now on I use")

    @pytest.mark.parametrize("offer", [lambda ann: Offer(ann, "coding"), HatchOffer])
    async def test_an_offer_is_a_text_with_its_button(self, start: Start, offer: Any) -> None:
        async with start() as world:
            channel = world.app.client.get_channel(world.general.id)
            assert isinstance(channel, discord.abc.Messageable)
            async with DiscordReply(channel, None) as reply:
                await reply.push("Here is your code.")
                await reply.finish()
                refuse(world, world.general)
                await reply.offer(offer(str(world.ann.id)))
            _, message = world.general.history()
            assert message.content.startswith("-# ") and len(labels(message)) == 1

    async def test_a_channel_that_takes_nothing_is_asked_once(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with start(Scripted(), receipts=True) as world:
            refuse(world, world.general, status=403, code=50013, times=None)
            await learn(world)
            assert len(posted(world, world.general)) == 1
            assert "a receipt could not be sent" in caplog.text


class TestTakenBack:
    async def test_what_is_not_out_yet_asks_about_nothing_that_was_taken_back(self, start: Start) -> None:
        async with start(Scripted(), asks_first=True) as world:
            await propose(world, "User likes zebras.")
            (message,) = world.general.history()
            subject = f"user-{world.ann.id}"
            (commit,) = (await world.memory.history(subject)).commits.values()
            receipts = Receipts(world.app.client, lambda place, user_id: False)
            receipts.committed(subject, commit)
            receipts.let_go(Withdrawal(subject, 0, words=Words(texts=frozenset({"user likes zebras."}))))
            await receipts.settle()
            assert world.general.last_message.id == message.id


class TestAfterwards:
    async def test_cards_are_no_talk_after_a_restart(self, start: Start) -> None:
        async with contradicted(start, receipts=True) as world:
            await talk(world, world.model, learned(TEA))
            model = Scripted()
            await world.restart(model)
            await world.ann.send(world.general, "and now?")
            assert "something about me" in model.prompt
            assert "remembered:" not in model.prompt
            assert "]: \n" not in model.prompt
            await world.ann.send_dm("and here?")
            assert "Which is right" not in model.prompt

    async def test_a_card_that_somebody_replies_to_is_quoted(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            message = await talk(world, world.model, learned(TEA))
            await world.ann.send(world.general, "that is not quite right", reply_to=message)
            assert f"remembered: {TEA_READ}" in world.model.prompt

    async def test_a_press_on_a_card_that_was_deleted_meanwhile_is_answered(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            message = await talk(world, world.model, learned(TEA))
            world.env.inject_error("PATCH", "/webhooks/*/messages/@original", status=404, code=10008)
            result = await world.ann.click(message, label="Undo")
            assert result.followups[-1].content.startswith("-# taken back")
            assert (await world.memory.view(f"user-{world.ann.id}")).active() == []

    async def test_a_question_whose_card_was_deleted_makes_room_for_the_next(self, start: Start) -> None:
        async with contradicted(start) as world:
            await world.ann_dm.last_message.delete()
            await says(world, "settle")
            await world.ann.click(world.general.last_message, label="Keep the old")
            await world.settle()
            cursor = world.folder / "data" / "memory" / "cursors" / f"questions-{world.ann.id}.json"
            assert json.loads(cursor.read_text()) == {}

    async def test_a_refused_press_leaves_nothing_to_press(self, start: Start) -> None:
        async with start(Scripted(), receipts=True) as world:
            message = await talk(world, world.model, learned(TEA))
            await world.ann.send(world.general, "!memory undo")
            result = await world.ann.click(message, label="Undo")
            assert [told.content for told in result.followups] == ["That is done already."]
            assert (said(now(world, message)), labels(now(world, message))) == (
                f"-# remembered: {TEA_READ}",
                [],
            )
