"""Configuration that changes while the bot runs: the next message goes by it, in the real app."""

import json
from collections.abc import Mapping
from typing import Any

import discord
import pytest

from discoclaw.core.live import GLOBAL, Scope, address
from discoclaw.memory.live import FILE
from discoclaw.nostr.event import Keys
from discoclaw.nostr.names import Names
from discoclaw.nostr.owner import OwnerEvents
from tests.app.conftest import Start, World
from tests.app.models import Scripted

OWNER, BOT = Keys.generate(), Keys.generate()
NAMES = Names(BOT)


class Hand:
    """What the owner signs while a bot runs. Each event is a second newer than the one before."""

    def __init__(self, world: World) -> None:
        self.config = world.app.storage.live
        self.config.names = NAMES
        self.events = OwnerEvents(OWNER.public, BOT, self.config)
        self.at = int(world.env.now().timestamp())

    async def signs(self, scope: Scope, *, by: Keys = OWNER, **overrides: Any) -> None:
        self.at += 1
        event = by.sign(30078, json.dumps(overrides), [["d", address(scope)]], self.at)
        await self.events.handle(event)


def edit(world: World, overrides: Mapping[str, Any]) -> None:
    """Somebody edits the local file by hand."""
    path = world.folder / "data" / "memory" / FILE
    path.write_text(json.dumps(overrides, indent=2), encoding="utf-8")


def lines(model: Scripted) -> list[str]:
    """The messages that the model was last shown as the recent talk, without names."""
    talk = model.prompt.split("Recent conversation:\n")[1].split("\n---\n")[0]
    return [line.partition(": ")[2] for line in talk.splitlines() if line.startswith("[")]


class TestTheNextMessageGoesByIt:
    async def test_when_to_answer_changes_without_a_restart(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="mention") as world:
            hand = Hand(world)
            await world.ann.send(world.general, "nobody is meant")
            assert len(model.requests) == 0
            await hand.signs(GLOBAL, respond_mode="all")
            await world.ann.send(world.general, "and now?")
            assert len(model.requests) == 1
            await hand.signs(Scope("group", str(world.general.id)), respond_mode="none")
            await world.ann.send(world.general, "still there?")
            await world.ann.send(world.dev, "and here?")
            assert len(model.requests) == 2
            await hand.signs(Scope("user", NAMES.user(str(world.bob.id))[:32]), respond_mode="all")
            await world.bob.send(world.general, "it is me")
            assert len(model.requests) == 3
            await hand.signs(Scope("group", str(world.general.id)))
            await world.ann.send(world.general, "back again?")
            assert len(model.requests) == 4

    async def test_direct_messages_go_by_the_person_and_by_everybodys_wishes(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            hand = Hand(world)
            await hand.signs(GLOBAL, respond_mode="none")
            await world.ann.send_dm("psst")
            assert len(model.requests) == 0
            await hand.signs(Scope("user", str(world.ann.id)), respond_mode="mention")
            await world.ann.send_dm("psst")
            assert len(model.requests) == 1

    async def test_a_thread_goes_by_its_channel(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await Hand(world).signs(Scope("group", str(world.dev.id)), respond_mode="none")
            channel = world.env.bot.get_channel(world.dev.id)
            assert isinstance(channel, discord.TextChannel)
            thread = await channel.create_thread(name="a thread", type=discord.ChannelType.public_thread)
            await world.env.settle()
            await world.ann.send(next(one for one in world.dev.threads if one.id == thread.id), "anybody?")
            await world.ann.send(world.general, "you?")
            assert len(model.requests) == 1

    async def test_nobody_but_the_owner_changes_anything(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            hand = Hand(world)
            await hand.signs(GLOBAL, respond_mode="none", by=Keys.generate())
            await hand.signs(GLOBAL, respond_mode="none", by=BOT)
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 1

    async def test_a_message_that_is_not_answered_is_still_heard(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            hand = Hand(world)
            await hand.signs(GLOBAL, respond_mode="none")
            await world.bob.send(world.general, "the code is 42")
            await hand.signs(GLOBAL, respond_mode="all")
            await world.ann.send(world.general, "what did bob say?")
            assert "the code is 42" in model.prompt


class TestHowMuchIsShown:
    async def test_the_window_shrinks_at_once_and_grows_again(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="none") as world:
            hand = Hand(world)
            here = Scope("group", str(world.general.id))
            for number in range(6):
                await world.bob.send(world.general, f"message {number}")
            await hand.signs(here, respond_mode="all", context_history=3)
            await world.ann.send(world.general, "short?")
            assert lines(model) == ["message 4", "message 5"]
            await hand.signs(here, respond_mode="none", context_history=30)
            for number in range(6, 14):
                await world.bob.send(world.general, f"message {number}")
            await hand.signs(here, respond_mode="all", context_history=30)
            await world.ann.send(world.general, "long?")
            shown = lines(model)
            assert shown[-8:] == [f"message {number}" for number in range(6, 14)]
            assert "message 3" not in shown

    async def test_one_persons_wish_takes_nothing_from_the_others(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="mention") as world:
            me = f"<@{world.env.bot.user.id}>"
            await Hand(world).signs(Scope("user", str(world.ann.id)), context_history=2)
            for number in range(5):
                await world.bob.send(world.general, f"message {number}")
            await world.ann.send(world.general, f"{me} little?")
            assert lines(model) == ["message 4"]
            await world.bob.send(world.general, f"{me} all of it?")
            assert [line for line in lines(model) if "message" in line] == [f"message {n}" for n in range(5)]


class TestTheLocalFile:
    async def test_edited_by_hand_counts_for_the_next_message(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="all") as world:
            edit(world, {"global": {"respond_mode": "none"}})
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 0
            edit(world, {"global": {"respond_mode": "non"}})
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 0
            edit(world, {f"group:{world.general.id}": {"respond_mode": "all"}})
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 1

    @pytest.mark.design(47)
    async def test_is_outranked_by_the_owner_in_the_same_scope(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            edit(world, {"global": {"respond_mode": "all"}})
            await Hand(world).signs(GLOBAL, respond_mode="none")
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 0

    async def test_in_a_database_counts_as_well(self, start: Start) -> None:
        model = Scripted()
        async with start(model, store="sqlite") as world:
            documents = world.memory.disk.documents("")
            assert documents is not None
            documents.write(FILE, b'{"global": {"respond_mode": "none"}}')
            await world.restart()
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 0


async def test_what_was_signed_holds_after_a_restart_and_an_older_event_does_not_come_back(
    start: Start,
) -> None:
    model = Scripted()
    async with start(model) as world:
        hand = Hand(world)
        await hand.signs(GLOBAL, respond_mode="none")
        await world.restart()
        await world.ann.send(world.general, "there?")
        assert len(model.requests) == 0
        later = Hand(world)
        later.at = hand.at - 2
        await later.signs(GLOBAL, respond_mode="all")
        await world.ann.send(world.general, "there?")
        assert len(model.requests) == 0


async def test_the_settings_hold_where_nothing_is_wished(start: Start) -> None:
    async with start(Scripted(), respond_mode="owner", context_history=7) as world:
        assert world.app.storage.live.explain()["respond_mode"].source == "settings"
        assert world.app.client.settings.overrides == {"respond_mode": "owner", "context_history": 7}
