"""The events in Aman's schema, as another program with the same secretbox key reads them from a relay."""

import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from pydantic import SecretStr

from tests.contract.published import Event, held, mirrored, recovered, sent, signed, tag
from tests.contract.world import Start, World
from tests.servers.nostr_relay import LyingRelay

BOX_KEY, OTHER_KEY = "11" * 32, "22" * 32
PREFERENCE, SUMMARY, TOOL, CLEAR, TOPICS = range(30093, 30098)


async def notes(world: World, drink: str) -> None:
    """Ann has a preference stored by the model's tool."""
    wish = {"text": f"User prefers {drink}.", "kind": "preference"}
    world.brain.calls("memory_store", wish, "ok", about=f"note that I like {drink}")
    await world.says(world.ann, world.general, f"please note that I like {drink}")
    await sent(world)


@asynccontextmanager
async def talked(start: Start, relay: LyingRelay, **settings: Any) -> AsyncIterator[World]:
    """Ann has a preference stored in a channel and talks in private; all of it is on the relay."""
    given = {**mirrored(relay), "nostr_box_key": SecretStr(f"hex:{BOX_KEY}"), "summary_every": 1}
    async with start(**{**given, **settings}) as world:
        world.brain.writes("summary", {"summary": "They talked.", "themes": ["tea"]})
        await notes(world, "tea")
        await world.says(world.ann, world.ann_dm, "hello there")
        await sent(world)
        yield world


def of_kind(relay: LyingRelay, kind: int) -> list[Event]:
    """What the relay holds of a kind, newest first."""
    return sorted(held(relay, kind=kind), key=lambda event: -event["created_at"])


def decrypted(event: Event, key: str = BOX_KEY) -> bytes:
    """What any program with the key reads."""
    return bytes(SecretBox(bytes.fromhex(key)).decrypt(base64.b64decode(event["content"])))


def seen(event: Event) -> dict[str, Any]:
    """The fields of the schema, in their order; ours begin with "x_"."""
    return {name: one for name, one in json.loads(decrypted(event)).items() if not name.startswith("x_")}


def version(event: Event, at: int, tags: list[list[str]] | None = None, **fields: Any) -> Event:
    """Another version of an event, signed by the bot: at this time, with these tags and payload fields."""
    body = json.dumps({**json.loads(decrypted(event)), **fields}).encode()
    content = base64.b64encode(SecretBox(bytes.fromhex(BOX_KEY)).encrypt(body)).decode()
    dated = [["ts", str(at)] if one[0] == "ts" else one for one in event["tags"]]
    return signed(event["kind"], content, dated if tags is None else tags, at)


def summary_on_disk(world: World) -> str:
    path = world.data / "memory" / "rolling" / f"discord:channel:{world.general.id}.json"
    return str(json.loads(path.read_bytes())["summary"]) if path.exists() else ""


def calls_on_disk(world: World) -> list[str]:
    path = world.data / "memory" / "tools" / f"user-{world.ann.id}.jsonl"
    return path.read_text().splitlines() if path.exists() else []


class TestWhatAnotherProgramReads:
    @pytest.mark.design(70, 71, 72, 73, 74, 75, 77, 79, 80, 81, 82, 83, 84, 85, 334)
    async def test_every_event_has_its_kind_tags_address_and_fields_in_order(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            preference, call = of_kind(relay, PREFERENCE)[0], of_kind(relay, TOOL)[0]
            summary = next(one for one in of_kind(relay, SUMMARY) if tag(one, "hk").startswith("group:"))
            topics, group = of_kind(relay, TOPICS)[0], tag(summary, "hk")
            person = tag(preference, "hk")
            sender, place = person.removeprefix("user:"), group.removeprefix("group:")
            await world.says(world.ann, world.general, "!memory reset rolling")
            await sent(world)
            clear = of_kind(relay, CLEAR)[0]
            kinds = {
                PREFERENCE: ("aman_preference", "preference"),
                SUMMARY: ("aman_summary", "summary"),
                TOOL: ("aman_tool_history", ""),
                CLEAR: ("aman_clear_context", ""),
                TOPICS: ("aman_subscription_state", "subscription_state"),
            }
            for kind, (name, ending) in kinds.items():
                assert of_kind(relay, kind), name
                for event in of_kind(relay, kind):
                    hk = tag(event, "hk")
                    d = f"{hk}:{ending or hashlib.sha256(decrypted(event)).hexdigest()}"
                    tags = [["d", d], ["k", name], ["hk", hk], ["v", "1"], ["ts", str(event["created_at"])]]
                    assert event["tags"] == [*tags, ["enc", "secretbox-v1"]]
            said = seen(call)["content"]
            assert "User prefers tea." in said
            counted = seen(summary)["message_count"]
            assert type(counted) is int
            fields: list[tuple[Event, dict[str, Any]]] = [
                (preference, {"history_key": person, "preference": "User prefers tea.", "updated_at": 0}),
                (
                    summary,
                    {
                        "history_key": group,
                        "summary": "They talked.",
                        "message_count": counted,
                        "updated_at": 0,
                    },
                ),
                (topics, {"history_key": group, "topics": ["tea"], "updated_at": 0}),
                (
                    call,
                    {
                        "history_key": group,
                        "tool_name": "memory_store",
                        "success": True,
                        "content": said,
                        "sender_id": sender,
                        "group_id": place,
                        "created_at": 0,
                    },
                ),
                (clear, {"history_key": group, "sender_id": sender, "created_at": 0}),
            ]
            for event, expected in fields:
                expected[list(expected)[-1]] = event["created_at"]
                assert list(seen(event).items()) == list(expected.items())

    @pytest.mark.design(86, 93)
    async def test_a_key_is_that_of_a_person_or_channel_for_good_and_versions_only_get_newer(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            keys = {tag(event, "hk") for event in of_kind(relay, SUMMARY)}
            assert sorted(key.partition(":")[0] for key in keys) == ["group", "user"]
            await world.restart()
            for drink in ("rum", "milk"):
                await notes(world, drink)
            await world.says(world.ann, world.ann_dm, "here too")
            await sent(world)
            assert {tag(event, "hk") for event in of_kind(relay, SUMMARY)} == keys
            await world.says(world.bob, world.bob_dm, "I am somebody else")
            await world.says(world.bob, world.dev, "and this is another channel")
            await sent(world)
            assert len({tag(event, "hk") for event in of_kind(relay, SUMMARY)}) == 4
            times = [event["created_at"] for event in relay.sent if event["kind"] == PREFERENCE]
            assert len(times) >= 3 and times == sorted(set(times))
            (left,) = of_kind(relay, PREFERENCE)
            assert len(seen(left)["preference"].splitlines()) == 3


class TestSecretbox:
    @pytest.mark.design(78, 89)
    async def test_all_is_encrypted_and_opens_with_no_other_key_nor_a_flipped_bit(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            events = [event for event in relay.events if event["kind"] in range(PREFERENCE, TOPICS + 1)]
            assert all(tag(event, "enc") == "secretbox-v1" for event in events)
            assert len({base64.b64decode(event["content"])[:24] for event in events}) == len(events)
            call = of_kind(relay, TOOL)[0]
            with pytest.raises(CryptoError):
                decrypted(call, OTHER_KEY)
            flipped = bytearray(base64.b64decode(call["content"]))
            flipped[-1] ^= 1
            broken = signed(TOOL, base64.b64encode(flipped).decode(), call["tags"], call["created_at"] + 1)
            relay.lose_all()
            relay.put(broken, *(one for one in events if one["kind"] != TOOL))
            await recovered(world)
            assert (calls_on_disk(world), summary_on_disk(world)) == ([], "They talked.")
            await recovered(world, nostr_box_key=SecretStr(f"hex:{OTHER_KEY}"))
            assert summary_on_disk(world) == ""

    @pytest.mark.design(78, 90, 318, 332)
    async def test_nothing_is_in_clear_unless_an_admin_allows_it(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay, nostr_box_key=None) as world:
            assert all(tag(event, "enc") == "secretbox-v1" for event in of_kind(relay, PREFERENCE))
            with pytest.raises(CryptoError):
                decrypted(of_kind(relay, PREFERENCE)[0])
            await world.restart(nostr_in_clear=True)
            await notes(world, "rum")
            (preference,) = of_kind(relay, PREFERENCE)
            assert tag(preference, "enc") == ""
            lines = json.loads(preference["content"])["preference"].splitlines()
            assert sorted(lines) == ["User prefers rum.", "User prefers tea."]
            others = [one for kind in (SUMMARY, TOOL, TOPICS) for one in of_kind(relay, kind)]
            assert others and all(tag(one, "enc") == "secretbox-v1" for one in others)


class TestWhatIsReadBack:
    @pytest.mark.design(75, 76, 77, 78)
    async def test_an_event_that_breaks_the_schema_is_skipped_with_a_log(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            call = of_kind(relay, TOOL)[0]
            tags, at = dict(call["tags"]), call["created_at"]

            def changed(**changes: str) -> Event:
                return version(call, at, [[*one] for one in {**tags, **changes}.items() if one[1]])

            wrong = {
                "the tag k is missing": changed(k=""),
                "unknown schema version '2'": changed(v="2"),
                "the tag ts differs from created_at": changed(ts=str(at + 1)),
                "the content is not JSON": changed(enc=""),
            }
            for why, event in wrong.items():
                relay.lose_all()
                relay.put(event)
                caplog.clear()
                with caplog.at_level(logging.INFO):
                    await recovered(world)
                assert (why, calls_on_disk(world)) == (why, [])
                assert why in caplog.text
            relay.lose_all()
            relay.put(changed())
            await recovered(world)
            assert len(calls_on_disk(world)) == 1

    @pytest.mark.design(86, 87, 325)
    async def test_the_newest_version_counts_and_of_a_tie_the_lowest_id(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            summary = next(one for one in of_kind(relay, SUMMARY) if tag(one, "hk").startswith("group:"))
            at = summary["created_at"]
            relay.lies.keeps_old = relay.lies.keeps_ties = True
            new = [version(summary, at + 10, summary=f"tie {number}") for number in range(4)]
            relay.put(*new, version(summary, at + 5, summary="older, and sent later"))
            await recovered(world)
            assert summary_on_disk(world) == seen(min(new, key=lambda event: event["id"]))["summary"]

    @pytest.mark.design(72, 73, 88, 92, 324)
    async def test_a_clear_hides_what_was_before_it_and_a_repeated_event_is_one_row(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            await world.says(world.ann, world.general, "!memory reset rolling")
            await world.env.advance_time(5)
            await notes(world, "rum")
            assert len(of_kind(relay, TOOL)) == 2
            relay.lies.keeps_old = relay.lies.keeps_ties = True
            for event in (*of_kind(relay, TOOL), *of_kind(relay, CLEAR)):
                relay.put(version(event, event["created_at"]))  # another nonce, hence another id
            assert len(of_kind(relay, TOOL)) == 4
            await recovered(world)
            assert summary_on_disk(world) == "They talked."
            assert len(calls_on_disk(world)) == 1  # the other one was cleared
            assert len((world.data / "memory" / "clears.jsonl").read_text().splitlines()) == 1
            await world.env.advance_time(5)
            await world.says(world.ann, world.general, "!memory reset rolling")
            await sent(world)
            await recovered(world)
            assert (summary_on_disk(world), calls_on_disk(world)) == ("", [])
            assert "You prefer tea." in await world.says(world.ann, world.general, "!memory show")
