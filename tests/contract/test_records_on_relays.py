"""What a relay has of people and channels, as Snowclaw's records: published, read by others, recovered."""

import json
import shutil

import pytest
from nostr_sdk import Keys

from tests.contract.published import (
    BOT,
    CONFIG,
    GROUP,
    OWNED,
    PERSON,
    Owner,
    arrives,
    held,
    mirrored,
    opened,
    record_on_disk,
    recovered,
    renamed,
    sent,
    signed,
    tag,
)
from tests.contract.world import Start
from tests.servers.nostr_relay import LyingRelay

AGREED = {"summary": "They talked.", "themes": ["tea"], "decisions": ["We drink tea."]}


class TestTheRecordOfAPerson:
    @pytest.mark.design(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 18, 340)
    async def test_begins_with_their_first_message_and_keeps_every_name(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            world.brain.learns(
                {"kind": "preference", "text": "User prefers tabs."},
                {"kind": "project", "text": "User works on the compiler."},
                about="compiler",
            )
            assert record_on_disk(world, "profiles", world.ann) is None
            at = int(world.env.now().timestamp())
            await world.says(world.ann, world.general, "I prefer tabs, and I work on the compiler")
            await sent(world)
            await world.env.advance_time(60)
            await renamed(world, world.ann, "Annie")
            again = int(world.env.now().timestamp())
            await world.says(world.ann, world.general, "hello again")
            await world.says(world.bob, world.general, "me too")
            await sent(world)
            records = {opened(event)["display_names"][0][0]: event for event in held(relay, PERSON)}
            assert sorted(records) == ["ann", "bob"] and len(held(relay, PERSON)) == 2
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
                pseudonym = tag(event, "d").removeprefix(PERSON)
                assert len(pseudonym) == 32 and int(pseudonym, 16)
                assert (event["pubkey"], event["kind"]) == (BOT.public_key().to_hex(), 30078)
                assert tag(event, "encrypted") == "nip44"
            assert len([one for one in relay.sent if tag(one, "d") == tag(records["ann"], "d")]) > 1
            members = record_on_disk(world, "groups", world.general)["members"]
            assert [str(world.ann.id), "Annie"] in members

    async def test_is_made_of_nobody_who_opted_out_is_a_guest_or_where_nothing_is_remembered(
        self, start: Start
    ) -> None:
        async with start(allow_roles=frozenset()) as world:
            await world.restart(allow_users=frozenset({str(world.bob.id)}))
            await world.says(world.ann, world.general, "hello")  # a guest
            await world.says(world.bob, world.general, "hello")
            assert record_on_disk(world, "profiles", world.ann) is None
            assert record_on_disk(world, "groups", world.general)["members"] == [[str(world.bob.id), "bob"]]
            await world.restart(allow_users=frozenset({str(world.ann.id), str(world.bob.id)}))
            await world.says(world.ann, world.ann_dm, "!memory optout")
            await world.says(world.ann, world.general, "hello")
            assert record_on_disk(world, "profiles", world.ann) is None
            assert record_on_disk(world, "groups", world.general)["members"] == [[str(world.bob.id), "bob"]]
            await world.restart(store="none")
            await world.says(world.bob, world.dev, "hello")
            assert record_on_disk(world, "groups", world.dev) is None

    @pytest.mark.design(14, 15, 49, 66, 337)
    async def test_takes_notes_from_its_owner_and_from_nobody_else(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, **OWNED)) as world:
            await world.says(world.ann, world.general, "hello")
            await sent(world)
            pseudonym = tag(held(relay, PERSON)[0], "d")
            note = {"notes": ["Leads the core team."], "preferences": {"language": "German"}}
            owner = Owner(world, relay)
            await owner.signs(pseudonym, note)
            await arrives(lambda: (record_on_disk(world, "profiles", world.ann) or {}).get("notes"))
            await sent(world)
            kept = record_on_disk(world, "profiles", world.ann)
            assert (kept["notes"], kept["preferences"]) == (note["notes"], note["preferences"])
            (ours,) = [one for one in held(relay, PERSON) if one["pubkey"] == BOT.public_key().to_hex()]
            assert opened(ours)["preferences"] == {"language": "German"}
            await recovered(world)
            assert record_on_disk(world, "profiles", world.ann) == kept
            assert "Leads the core team." in await world.says(world.ann, world.general, "!memory show")

            spy = {"notes": ["Is a spy."]}
            for forged in (spy, {**opened(ours), **spy}):
                await owner.signs(pseudonym, forged, by=Keys.generate())
            relay.lies.ignores_filters = True  # or nobody else's events would even be served
            await recovered(world)
            assert record_on_disk(world, "profiles", world.ann) == kept


class TestTheRecordOfAChannel:
    @pytest.mark.design(16, 17, 18, 19, 20, 21, 64)
    async def test_has_its_purpose_members_themes_and_decisions(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            world.brain.writes("summary", AGREED)
            boats = world.guild.create_text_channel("boats", topic="All about boats")
            await world.restart(nostr_groups={str(boats.id): "inner-circle"})
            assert record_on_disk(world, "groups", boats) is None
            for text in ("shall we drink tea?", "tea it is"):
                await world.says(world.ann, boats, text)
                await world.says(world.bob, world.general, text)
            await sent(world)
            events = {opened(event)["purpose"]: event for event in held(relay, GROUP)}
            assert set(events) == {"All about boats", None} and len(held(relay, GROUP)) == 2
            event = events["All about boats"]
            record = opened(event)
            ann = next(one for one in held(relay, PERSON) if opened(one)["display_names"][0][0] == "ann")
            ((decision, when),) = record.pop("decisions")
            assert decision == "We drink tea." and type(when) is int
            assert record == {
                "purpose": "All about boats",
                "members": [[tag(ann, "d").removeprefix(PERSON), "ann"]],
                "themes": ["tea"],
            }
            assert event["tags"][1:] == [["h", "inner-circle"], ["encrypted", "nip44"]]
            assert len(tag(event, "d").removeprefix(GROUP)) == 32
            assert tag(events[None], "h") == ""


class TestWhatGoesToRelays:
    @pytest.mark.design(54, 55)
    async def test_waits_unless_somebody_asked_and_is_no_message_and_no_setting(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, nostr_flush_s=300.0)) as world:
            await world.says(world.ann, world.general, "the canary is called Tweety")
            assert record_on_disk(world, "profiles", world.ann)
            assert held(relay, PERSON) == held(relay, GROUP) == []
            await world.says(world.ann, world.general, "!memory remember I like tea")
            await arrives(lambda: [one for one in held(relay, PERSON) if opened(one)["notes"]])
            assert [one for one in relay.sent if tag(one, "d").startswith(CONFIG)] == []
            assert "Tweety" not in json.dumps([opened(one) for one in held(relay, "snowclaw:")])

    @pytest.mark.design(53, 56, 58)
    async def test_is_not_asked_for_in_talk_and_listed_by_author_and_address(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.remember(world.ann, "I like tea.")
            await sent(world)
            before = len(relay.requests)
            await world.says(world.ann, world.general, "which tea do I like?")
            assert "I like tea." in world.prompt.split("Durable memory")[1]
            assert "I like tea." in world.cli("recall", str(world.ann.id), "which tea?").stdout
            assert len(relay.requests) == before and b'"search"' not in b"".join(relay.frames)

            stray = signed(30078, "hello", [["d", "snowclaw:core:mood"]], 1_800_000_000)
            relay.put(stray)
            relay.frames.clear()
            await recovered(world)
            filters = [one for _, _, *asked in relay.requests for one in asked]
            assert filters and all(one["authors"] == [BOT.public_key().to_hex()] for one in filters)
            assert world.memories(world.ann) == ["I like tea."]

    @pytest.mark.design(12, 57)
    async def test_is_asked_to_be_deleted_when_somebody_is_erased_and_the_bot_says_it_is_a_request(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.says(world.ann, world.general, "hello")
            await world.env.advance_time(365 * 86_400)
            await world.restart()
            await sent(world)
            assert record_on_disk(world, "profiles", world.ann) is not None  # no time removes a record
            (record,) = held(relay, PERSON)
            relay.lies.ignores_deletions = True
            told = await world.says(world.ann, world.general, "!memory erase --yes")
            assert "request their deletion, which a relay may ignore" in told
            assert record_on_disk(world, "profiles", world.ann) is None
            await sent(world)
            named = [one[1] for event in relay.sent if event["kind"] == 5 for one in event["tags"]]
            assert f"30078:{BOT.public_key().to_hex()}:{tag(record, 'd')}" in named
            assert record["id"] in named
            (left,) = held(relay, PERSON)
            assert opened(left) == {}

    @pytest.mark.design(65, 66, 69)
    async def test_comes_back_where_some_or_all_local_files_are_lost(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.remember(world.ann, "I like tea.")
            await world.says(world.ann, world.general, "hello")
            await sent(world)
            known = [
                record_on_disk(world, "profiles", world.ann),
                record_on_disk(world, "groups", world.general),
            ]
            assert known[0]["notes"] == ["I like tea."] and known[1]["members"]

            def lose() -> None:
                for folder in ("memory/profiles", "memory/groups", "memory/durable", "cache"):
                    shutil.rmtree(world.data / folder, ignore_errors=True)

            await world.restart(meanwhile=lose, nostr_mode="canonical")
            for _ in range(2):
                assert [
                    record_on_disk(world, "profiles", world.ann),
                    record_on_disk(world, "groups", world.general),
                ] == known
                await recovered(world)
