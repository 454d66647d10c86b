"""Snowclaw's events on a relay: records of people and groups, and what the owner signs, as the bot runs."""

import asyncio
import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from nostr_sdk import PublicKey, SecretKey, nip44_decrypt

from discoclaw.nostr.event import Keys
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_groups import Agreeing, file
from tests.app.test_nostr import BOT, OWNER, connected, mirrored
from tests.servers.nostr_relay import LyingRelay

NPUB, GROUP, CONFIG = "snowclaw:memory:npub:", "snowclaw:memory:group:", "snowclaw:config:"
Event = dict[str, Any]


def held(relay: LyingRelay, prefix: str) -> list[Event]:
    """The events that a relay holds at addresses with this beginning."""
    return [event for event in relay.events if tag(event, "d").startswith(prefix)]


def tag(event: Event, name: str) -> str:
    return str({one[0]: one[1] for one in event["tags"]}.get(name, ""))


def opened(event: Event) -> dict[str, Any]:
    """The record in an event, decrypted with the bot's key alone; our own fields begin with "x_"."""
    text = nip44_decrypt(SecretKey.parse(BOT.secret_hex()), PublicKey.parse(BOT.public), event["content"])
    return {name: value for name, value in json.loads(text).items() if not name.startswith("x_")}


async def sent(world: World) -> None:
    await world.settle()
    await world.mirror.flush(10)


async def arrives(condition: Callable[[], object]) -> None:
    """Wait until something that was published has come round."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


class Owner:
    """What somebody signs with a Nostr client and publishes; each event is a second newer."""

    def __init__(self, world: World, relay: LyingRelay) -> None:
        self.relay = relay
        self.at = int(world.env.now().timestamp())

    async def signs(self, d: str, content: object, *, by: Keys = OWNER, **more: str) -> None:
        self.at += 1
        tags = [["d", d], *([name, value] for name, value in more.items())]
        async with connected(self.relay) as out:
            await out.publish(by.sign(30078, json.dumps(content), tags, self.at))


class TestPeople:
    @pytest.mark.design(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 340)
    async def test_a_record_is_made_with_the_first_message_and_published(self, start: Start) -> None:
        model = Scripted()
        prefers = {"kind": "preference", "text": "User prefers tabs."}
        works = {"kind": "project", "text": "User works on the compiler."}
        model.facts.append(json.dumps({"upserts": [prefers, works]}))
        async with LyingRelay() as relay, start(model, **mirrored(relay)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            assert file(world, "profiles", world.ann) is None
            at = int(world.env.now().timestamp())
            await world.ann.send(world.general, "I prefer tabs, and I work on the compiler")
            await sent(world)
            await world.env.advance_time(60)
            await renamed(world, "Annie")
            again = int(world.env.now().timestamp())
            await world.ann.send(world.general, "hello again")
            await world.bob.send(world.general, "me too")
            await sent(world)
            records = {opened(event)["display_names"][0][0]: event for event in held(relay, NPUB)}
            assert sorted(records) == ["ann", "bob"] and len(held(relay, NPUB)) == 2
            record = opened(records["ann"])
            key, text = record["preferences"].popitem()
            assert key and text == "User prefers tabs."
            assert record == {
                "display_names": [["ann", at], ["Annie", again]],
                "first_seen": at,
                "notes": ["User works on the compiler."],
                "preferences": {},
                "is_owner": True,
            }
            assert opened(records["bob"])["is_owner"] is False
            for event in records.values():
                pseudonym = tag(event, "d").removeprefix(NPUB)
                assert len(pseudonym) == 32 and int(pseudonym, 16)
                assert event["pubkey"] == BOT.public
                assert event["kind"] == 30078
            assert len([event for event in relay.sent if tag(event, "d") == tag(records["ann"], "d")]) > 1

    @pytest.mark.design(2, 3, 18)
    async def test_a_new_name_is_added_to_the_old_one(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await world.ann.send(world.general, "hello")
            await world.settle()
            first = file(world, "profiles", world.ann)
            await world.env.advance_time(60)
            await renamed(world, "Annie")
            again = int(world.env.now().timestamp())
            await world.ann.send(world.general, "hello, it is still me")
            await world.settle()
            record = file(world, "profiles", world.ann)
            assert record["display_names"] == [*first["display_names"], ["Annie", again]]
            assert record["first_seen"] == first["first_seen"]
            assert file(world, "groups", world.general)["members"] == [[str(world.ann.id), "Annie"]]

    @pytest.mark.design(14, 66, 337)
    async def test_a_note_that_the_owner_posts_is_part_of_the_record_also_after_a_recovery(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay), **OWNED) as world:
            await world.ann.send(world.general, "hello")
            await sent(world)
            pseudonym = tag(held(relay, NPUB)[0], "d")
            note = {"notes": ["Leads the core team."], "preferences": {"language": "German"}}
            await Owner(world, relay).signs(pseudonym, note)
            await arrives(lambda: (file(world, "profiles", world.ann) or {}).get("notes"))
            await sent(world)
            kept = file(world, "profiles", world.ann)
            assert kept["notes"] == ["Leads the core team."]
            assert kept["preferences"] == {"language": "German"}
            (ours,) = [event for event in held(relay, NPUB) if event["pubkey"] == BOT.public]
            assert opened(ours)["preferences"] == {"language": "German"}
            await world.end()
            shutil.rmtree(world.folder / "data")
            await world.restart(nostr_mode="canonical")
            assert file(world, "profiles", world.ann) == kept
            await world.ann.send(world.general, "!memory show")
            assert "Leads the core team." in world.answer(world.general)
            assert "contains a secret" not in caplog.text

    @pytest.mark.design(14, 15, 49, 337)
    async def test_what_anybody_else_signs_counts_for_nothing(self, start: Start) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay), **OWNED) as world:
            await world.ann.send(world.general, "hello")
            await sent(world)
            record = held(relay, NPUB)[0]
            kept = file(world, "profiles", world.ann)
            stranger = Owner(world, relay)
            await stranger.signs(tag(record, "d"), {"notes": ["Is a spy."]}, by=Keys.generate())
            forged = {**opened(record), "notes": ["Is a spy."]}
            await stranger.signs(tag(record, "d"), forged, by=Keys.generate())
            relay.lies.ignores_filters = True  # or nobody else's events would even be served
            assert {event["pubkey"] for event in relay.events} > {BOT.public}
            await world.end()
            shutil.rmtree(world.folder / "data")
            await world.restart(nostr_mode="canonical")
            assert file(world, "profiles", world.ann) == kept


class TestGroups:
    @pytest.mark.design(16, 17, 18, 19, 20, 21, 64)
    async def test_a_record_is_made_with_the_first_message_and_published(self, start: Start) -> None:
        model = Agreeing(themes=["tea"], decisions=["We drink tea."])
        async with LyingRelay() as relay, start(model, **mirrored(relay)) as world:
            boats = world.guild.create_text_channel("boats", topic="All about boats")
            await world.restart(nostr_groups={str(boats.id): "inner-circle"})
            assert file(world, "groups", boats) is None
            for text in ("shall we drink tea?", "tea it is"):
                await world.ann.send(boats, text)
                await world.bob.send(world.general, text)
                await sent(world)
            events = {opened(event)["purpose"]: event for event in held(relay, GROUP)}
            assert set(events) == {"All about boats", None} and len(held(relay, GROUP)) == 2
            event = events["All about boats"]
            record, person = opened(event), held(relay, NPUB)
            ann = next(tag(one, "d") for one in person if opened(one)["display_names"][0][0] == "ann")
            ((decision, when),) = record.pop("decisions")
            assert decision == "We drink tea." and type(when) is int
            assert record == {
                "purpose": "All about boats",
                "members": [[ann.removeprefix(NPUB), "ann"]],
                "themes": ["tea"],
            }
            assert event["tags"][1:] == [["h", "inner-circle"], ["encrypted", "nip44"]]
            assert len(tag(event, "d").removeprefix(GROUP)) == 32
            assert tag(events[None], "h") == ""


OWNED: dict[str, Any] = {"owner_pubkey": OWNER.public}


async def renamed(world: World, name: str) -> None:
    """Ann gets another nickname on the server."""
    guild = world.env.bot.get_guild(world.guild.id)
    assert guild is not None
    await (await guild.fetch_member(world.ann.id)).edit(nick=name)
    await world.env.settle()
