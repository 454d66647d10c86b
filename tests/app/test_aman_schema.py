"""The events in Aman's schema, as another program with the same secretbox key reads them from a relay."""

import base64
import hashlib
import json
import logging
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from pydantic import SecretStr

from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, ToolCall, ToolTurn
from tests.app.conftest import Start, World
from tests.app.test_groups import Agreeing
from tests.app.test_nostr import BOT, mirrored
from tests.servers.nostr_relay import LyingRelay

BOX_KEY = "11" * 32
PREFERENCE, SUMMARY, TOOL, CLEAR, TOPICS = range(30093, 30098)
Event = dict[str, Any]


class Storing(Agreeing):
    """Stores a preference when it is asked to "note" something, and sums up what was said."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        asked = request.turns[0].text.rpartition("User message:")[2]  # type: ignore[union-attr]
        if "note" in asked and request.tools and not isinstance(request.turns[-1], ToolTurn):
            wish = {"text": f"User prefers {asked.split()[-1]}.", "kind": "preference"}
            yield Finished(AssistantTurn("", (ToolCall("1", "memory_store", wish),)), "tools")
            return
        async for event in super().stream(request):
            yield event


@asynccontextmanager
async def talked(start: Start, relay: LyingRelay, **settings: Any) -> AsyncIterator[World]:
    """Ann has a preference stored in a channel and talks in private; all of it is on the relay."""
    given = {**mirrored(relay), "nostr_box_key": SecretStr(f"hex:{BOX_KEY}"), "summary_every": 1}
    async with start(Storing(themes=["tea"]), **{**given, **settings}) as world:
        await world.ann.send(world.general, "please note that I like tea")
        await world.ann.send_dm("hello there")
        await sent(world)
        yield world


async def sent(world: World) -> None:
    await world.settle()
    await world.mirror.flush(10)


def of_kind(relay: LyingRelay, kind: int) -> list[Event]:
    """What the relay holds of a kind, newest first."""
    found = [event for event in relay.events if event["kind"] == kind]
    return sorted(found, key=lambda event: -event["created_at"])


def tag(event: Event, name: str) -> str:
    return str(dict(event["tags"])[name])


def decrypted(event: Event, key: str = BOX_KEY) -> bytes:
    """What any program with the key reads."""
    return bytes(SecretBox(bytes.fromhex(key)).decrypt(base64.b64decode(event["content"])))


def opened(event: Event, key: str = BOX_KEY) -> str:
    """The plaintext, without the spaces that hide its length."""
    return decrypted(event, key).decode().rstrip(" ")


def seen(event: Event) -> dict[str, Any]:
    """The fields of the schema, in their order; ours begin with "x_"."""
    return {name: value for name, value in json.loads(opened(event)).items() if not name.startswith("x_")}


def signed(event: Event, at: int, tags: list[list[str]] | None = None, **fields: Any) -> Event:
    """Another version of an event, signed by the bot: at this time, with these tags and payload fields."""
    body = json.dumps({**json.loads(opened(event)), **fields}).encode()
    content = base64.b64encode(SecretBox(bytes.fromhex(BOX_KEY)).encrypt(body)).decode()
    dated = [["ts", str(at)] if one[0] == "ts" else one for one in event["tags"]]
    return dict(BOT.sign(event["kind"], content, dated if tags is None else tags, at).to_json())


def summary_on_disk(world: World, channel: Any) -> str:
    path = world.folder / "data" / "memory" / "rolling" / f"discord:channel:{channel.id}.json"
    return str(json.loads(path.read_bytes())["summary"]) if path.exists() else ""


def calls_on_disk(world: World) -> list[str]:
    path = world.folder / "data" / "memory" / "tools" / f"user-{world.ann.id}.jsonl"
    return path.read_text().splitlines() if path.exists() else []


async def recovered(world: World, **settings: Any) -> None:
    """The disk is lost, and the bot starts again in canonical mode."""
    await world.end()
    shutil.rmtree(world.folder / "data")
    await world.restart(nostr_mode="canonical", **settings)


class TestWhatAnotherProgramReads:
    @pytest.mark.design(70, 71, 72, 73, 74, 75, 77, 84, 85, 334)
    async def test_every_event_has_its_kind_tags_and_address(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            await world.ann.send(world.general, "!memory reset rolling")
            await sent(world)
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
                    ending = ending and f":{ending}"
                    hk, content = tag(event, "hk"), decrypted(event)
                    end = ending or f":{hashlib.sha256(content).hexdigest()}"
                    at = str(event["created_at"])
                    tags = [["d", hk + end], ["k", name], ["hk", hk], ["v", "1"], ["ts", at]]
                    assert event["tags"] == [*tags, ["enc", "secretbox-v1"]]

    @pytest.mark.design(79, 80, 81, 82, 83)
    async def test_every_payload_has_its_fields_in_order(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            preference, call = of_kind(relay, PREFERENCE)[0], of_kind(relay, TOOL)[0]
            summary = next(one for one in of_kind(relay, SUMMARY) if tag(one, "hk").startswith("group:"))
            topics, group = of_kind(relay, TOPICS)[0], tag(summary, "hk")
            person = tag(preference, "hk")
            sender, place = person.removeprefix("user:"), group.removeprefix("group:")
            at = {one["id"]: one["created_at"] for one in relay.events}
            assert list(seen(preference).items()) == [
                ("history_key", person),
                ("preference", "User prefers tea."),
                ("updated_at", at[preference["id"]]),
            ]
            found = seen(summary)
            assert list(found) == ["history_key", "summary", "message_count", "updated_at"]
            assert found["summary"] == "They talked." and type(found["message_count"]) is int
            assert (found["history_key"], found["updated_at"]) == (group, at[summary["id"]])
            assert list(seen(topics).items()) == [
                ("history_key", group),
                ("topics", ["tea"]),
                ("updated_at", at[topics["id"]]),
            ]
            found = seen(call)
            said = found.pop("content")
            assert "User prefers tea." in said
            assert list(found.items()) == [
                ("history_key", group),
                ("tool_name", "memory_store"),
                ("success", True),
                ("sender_id", sender),
                ("group_id", place),
                ("created_at", at[call["id"]]),
            ]
            await world.ann.send(world.general, "!memory reset rolling")
            await sent(world)
            clear = of_kind(relay, CLEAR)[0]
            assert list(seen(clear).items()) == [
                ("history_key", group),
                ("sender_id", sender),
                ("created_at", clear["created_at"]),
            ]

    @pytest.mark.design(93)
    async def test_a_history_key_is_that_of_a_person_or_a_channel_also_after_a_restart(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            keys = {tag(event, "hk") for event in of_kind(relay, SUMMARY)}
            assert sorted(key.partition(":")[0] for key in keys) == ["group", "user"]
            await world.restart()
            await world.ann.send(world.general, "and again")
            await world.ann.send_dm("here too")
            await sent(world)
            assert {tag(event, "hk") for event in of_kind(relay, SUMMARY)} == keys
            await world.bob.send_dm("I am somebody else")
            await world.bob.send(world.dev, "and this is another channel")
            await sent(world)
            assert len({tag(event, "hk") for event in of_kind(relay, SUMMARY)}) == 4


class TestSecretbox:
    @pytest.mark.design(78, 89)
    async def test_all_is_encrypted_and_opens_with_no_other_key_nor_a_flipped_bit(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            events = [event for event in relay.events if event["kind"] in range(PREFERENCE, TOPICS + 1)]
            assert all(tag(event, "enc") == "secretbox-v1" for event in events)
            assert len({base64.b64decode(event["content"])[:24] for event in events}) == len(events)
            call = of_kind(relay, TOOL)[0]
            with pytest.raises(CryptoError):
                opened(call, "22" * 32)
            flipped = bytearray(base64.b64decode(call["content"]))
            flipped[-1] ^= 1
            broken = BOT.sign(TOOL, base64.b64encode(flipped).decode(), call["tags"], call["created_at"] + 1)
            relay.lose_all()
            relay.put(broken.to_json(), *(one for one in events if one["kind"] != TOOL))
            await recovered(world)
            assert calls_on_disk(world) == []
            assert summary_on_disk(world, world.general) == "They talked."
            await recovered(world, nostr_box_key=SecretStr("hex:" + "22" * 32))
            assert summary_on_disk(world, world.general) == ""

    @pytest.mark.design(78, 90, 318, 332)
    async def test_nothing_is_in_clear_unless_an_admin_allows_it(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay, nostr_box_key=None) as world:
            assert all(tag(event, "enc") == "secretbox-v1" for event in of_kind(relay, PREFERENCE))
            with pytest.raises(CryptoError):
                opened(of_kind(relay, PREFERENCE)[0])
            await world.restart(nostr_in_clear=True)
            await world.ann.send(world.general, "please note that I like rum")
            await sent(world)
            (preference,) = of_kind(relay, PREFERENCE)
            assert "enc" not in dict(preference["tags"])
            lines = json.loads(preference["content"])["preference"].splitlines()
            assert sorted(lines) == ["User prefers rum.", "User prefers tea."]
            others = [one for kind in (SUMMARY, TOOL, TOPICS) for one in of_kind(relay, kind)]
            assert all(tag(one, "enc") == "secretbox-v1" for one in others)


class TestWhatIsReadBack:
    @pytest.mark.design(75, 76, 77, 78)
    async def test_an_event_that_breaks_the_schema_is_skipped_with_a_log(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            call = of_kind(relay, TOOL)[0]
            tags, at = dict(call["tags"]), call["created_at"]

            def version(**changes: str) -> Event:
                return signed(call, at, [[*one] for one in {**tags, **changes}.items() if one[1]])

            wrong = {
                "the tag k is missing": version(k=""),
                "the tag hk is missing": version(hk=""),
                "the tag v is missing": version(v=""),
                "the tag ts is missing": version(ts=""),
                "unknown schema version '2'": version(v="2"),
                "the tag ts differs from created_at": version(ts=str(at + 1)),
                "unknown encryption 'secretbox-v2'": version(enc="secretbox-v2"),
                "the content is not JSON": version(enc=""),
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
            relay.put(version())
            await recovered(world)
            assert len(calls_on_disk(world)) == 1

    @pytest.mark.design(86, 87, 325)
    async def test_the_newest_version_counts_and_of_a_tie_the_lowest_id(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            summary = next(one for one in of_kind(relay, SUMMARY) if tag(one, "hk").startswith("group:"))
            at = summary["created_at"]
            relay.lies.keeps_old = relay.lies.keeps_ties = True
            new = [signed(summary, at + 10, summary=f"tie {number}") for number in range(4)]
            relay.put(*new, signed(summary, at + 5, summary="older, and sent later"))
            await recovered(world)
            lowest = min(new, key=lambda event: event["id"])
            assert summary_on_disk(world, world.general) == seen(lowest)["summary"]

    @pytest.mark.design(86)
    async def test_each_version_is_newer_than_the_one_before(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            for drink in ("rum", "milk"):
                await world.ann.send(world.general, f"please note that I like {drink}")
                await sent(world)
            times = [event["created_at"] for event in relay.sent if event["kind"] == PREFERENCE]
            assert len(times) >= 3 and times == sorted(set(times))
            (left,) = of_kind(relay, PREFERENCE)
            assert len(seen(left)["preference"].splitlines()) == 3

    @pytest.mark.design(72, 73, 88, 324)
    async def test_the_same_call_and_the_same_clear_are_one_row(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            await world.ann.send(world.general, "!memory reset rolling")
            await world.env.advance_time(5)
            await world.ann.send(world.general, "please note that I like rum")
            await sent(world)
            assert len(of_kind(relay, TOOL)) == 2
            relay.lies.keeps_old = relay.lies.keeps_ties = True
            for event in (*of_kind(relay, TOOL), *of_kind(relay, CLEAR)):
                relay.put(signed(event, event["created_at"]))  # another nonce, hence another id
            assert len(of_kind(relay, TOOL)) == 4
            await recovered(world)
            assert len(calls_on_disk(world)) == 1  # the other one was cleared
            path = world.folder / "data" / "memory" / "clears.jsonl"
            assert len(path.read_text().splitlines()) == 1

    @pytest.mark.design(92)
    async def test_a_clear_hides_what_was_before_it_and_no_preference(self, start: Start) -> None:
        async with LyingRelay() as relay, talked(start, relay) as world:
            await world.ann.send(world.general, "!memory reset rolling")
            await sent(world)
            await recovered(world)
            assert (summary_on_disk(world, world.general), calls_on_disk(world)) == ("", [])
            await world.ann.send(world.general, "!memory show")
            assert "You prefer tea." in world.answer(world.general)
            await world.env.advance_time(5)
            await world.ann.send(world.general, "please note that I like rum")
            await sent(world)
            await recovered(world)
            assert summary_on_disk(world, world.general) == "They talked."
            assert len(calls_on_disk(world)) == 1
