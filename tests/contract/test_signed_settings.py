"""What an owner signs changes how the bot behaves: for all, a channel, or one person, at once."""

import asyncio
import time
from typing import Any

import pytest
from nostr_sdk import Keys

from tests.contract.published import (
    BOT,
    CONFIG,
    OWNED,
    OWNER,
    PERSON,
    Owner,
    arrives,
    held,
    mirrored,
    opened,
    record_on_disk,
    recovered,
    sent,
    tag,
)
from tests.contract.world import Start, World
from tests.servers.nostr_relay import LyingRelay


async def configured(world: World, owner: Owner, scope: str, **fields: Any) -> None:
    """The owner publishes a setting, and the bot has it."""
    event = await owner.signs(f"{CONFIG}{scope}", fields)
    await has(world, event["id"])


async def has(world: World, event_id: str) -> None:
    path = world.data / "memory" / "signed.json"
    await arrives(lambda: path.exists() and event_id in path.read_text())


def recent(world: World) -> list[str]:
    """The messages that the model was last shown as the recent talk, without names."""
    talk = world.prompt.split("Recent conversation:\n")[1].split("\n---\n")[0]
    return [line.partition(": ")[2] for line in talk.splitlines() if line.startswith("[")]


class TestWhatTheOwnerSigns:
    @pytest.mark.design(28, 43, 44, 45, 46, 47, 50, 67)
    async def test_counts_for_a_person_before_a_channel_before_all_field_by_field(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, **OWNED)) as world:

            async def answers(person: Any, place: Any, words: str) -> int:
                before = len(world.turns())
                await world.says(person, place, words)
                return len(world.turns()) - before

            owner = Owner(world, relay)
            assert await answers(world.ann, world.general, "are you there?") == 1  # the settings say "all"
            await configured(world, owner, "global", respond_mode="none", context_history=4)
            assert await answers(world.ann, world.general, "and now?") == 0
            assert await answers(world.ann, world.ann_dm, "and here?") == 0
            await configured(world, owner, f"group:{world.general.id}", respond_mode="all")
            assert await answers(world.ann, world.dev, "and in dev?") == 0
            for number in range(6):
                assert await answers(world.bob, world.general, f"message {number}") == 1
            assert len(recent(world)) == 3
            await sent(world)
            ann = next(one for one in held(relay, PERSON) if opened(one)["display_names"][0][0] == "ann")
            pseudonym = tag(ann, "d").removeprefix(PERSON)
            await configured(world, owner, f"npub:{pseudonym}", context_history=2)
            assert await answers(world.ann, world.general, "only me?") == 1
            assert len(recent(world)) == 1
            await configured(world, owner, f"npub:{pseudonym}", respond_mode="none")
            assert await answers(world.ann, world.general, "still?") == 0
            here = f"group:{world.general.id}"
            await configured(world, owner, here, respond_mode="none", context_history=30)
            for number in range(28):
                assert await answers(world.bob, world.general, f"again {number}") == 0
            await configured(world, owner, here, respond_mode="all", context_history=30)
            assert await answers(world.bob, world.general, "long?") == 1
            assert recent(world)[-28:] == [f"again {number}" for number in range(28)]

    @pytest.mark.design(49, 51, 52)
    async def test_holds_from_the_first_message_after_a_recovery_and_nobody_elses_does(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, **OWNED)) as world:
            await world.says(world.ann, world.general, "hello")
            await sent(world)
            owner = Owner(world, relay)
            relay.lies.ignores_filters = True  # so that other authors' events arrive at all
            for by in (Keys.generate(), BOT):
                await owner.signs(f"{CONFIG}global", {"respond_mode": "none"}, by=by)
            await configured(world, owner, f"group:{world.dev.id}", respond_mode="none")  # comes after them
            await world.says(world.ann, world.general, "there?")
            assert len(world.turns("there?")) == 1
            assert [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")] == []
            relay.lies.ignores_filters = False
            relay.frames.clear()
            await recovered(
                world, signing=lambda: relay.put(owner.event(f"{CONFIG}global", {"respond_mode": "none"}))
            )
            asked = {one for _, _, *filters in relay.requests for some in filters for one in some["authors"]}
            assert asked == {BOT.public_key().to_hex(), OWNER.public_key().to_hex()}
            assert record_on_disk(world, "profiles", world.ann)["display_names"][0][0] == "ann"
            await world.says(world.ann, world.general, "anybody?")
            assert world.turns("anybody?") == []

    @pytest.mark.design(62, 63)
    async def test_can_be_typed_in_the_terminal_and_is_shown_there(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, **OWNED)) as world:
            world._now = lambda: int(time.time() * 1000)  # by which the terminal signs
            await world.restart()
            here = f"group:{world.general.id}"
            keys = {
                "NOSTR_RELAYS": relay.url,
                "NOSTR_SECRET_KEY": BOT.secret_key().to_bech32(),
                "NOSTR_OWNER": OWNER.public_key().to_bech32(),
                "NOSTR_OWNER_SECRET_KEY": OWNER.secret_key().to_bech32(),
            }
            told = await asyncio.to_thread(world.cli, "config", "set", here, "respond_mode=mention", **keys)
            assert told.exit_code == 0 and "respond_mode=mention" in told.stdout
            (event,) = held(relay, f"{CONFIG}group:")
            assert event["pubkey"] == OWNER.public_key().to_hex()
            await has(world, event["id"])
            await world.says(world.ann, world.general, "are you there?")
            assert world.turns() == []
            shown = await asyncio.to_thread(world.cli, "config", "get", here, **keys)
            assert shown.stdout.split()[:2] == ["respond_mode", "mention"]
