"""Both public schemas, to the letter; and which of several versions holds."""

import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import NostrError, UnreadableContent
from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.recovery import EventCollector
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    DELETE,
    KIND_NAMES,
    PREFERENCE,
    SUMMARY,
    TOOL,
    Codec,
    Deletion,
    EventTemplate,
    Names,
    deleted_until,
    fits,
    tombstone,
    unique,
)
from tests.nostr.test_event import KEYS, VECTORS
from tests.tables import naming

CODEC = Codec(KEYS, SecretBox.of(KEYS))
PLAIN_CODEC = Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)
PAYLOADS = {vector["kind"]: vector for vector in VECTORS["payloads"]}
LIKES = EventTemplate(
    PREFERENCE,
    "hk:preference",
    {"history_key": "hk", "preference": "opt-in", "updated_at": None},
    hk="hk",
    plaintext_ok=True,
)


class TestAman:
    @pytest.mark.design(85)
    @pytest.mark.parametrize("kind", [TOOL, CLEAR])
    def test_an_entry_is_addressed_by_the_sha256_of_its_payload(self, kind: int) -> None:
        vector = PAYLOADS[kind]
        template = unique(kind, "hk", vector["payload"], salt="", at=0, plaintext_ok=True)
        assert (
            template.d == f"hk:{vector['sha256']}"
            if "sha256" in vector
            else template.d == vector["tags"][0][1]
        )
        when = vector["payload"]["created_at"]
        event = PLAIN_CODEC.encode(template, when)
        assert event.tags == tuple(tuple(tag) for tag in vector["tags"])
        assert event.id == vector["plain_event_id"]

    def test_a_preference_in_clear_is_the_golden_event(self) -> None:
        assert PLAIN_CODEC.encode(LIKES, 1_700_000_000).id == PAYLOADS[PREFERENCE]["plain_event_id"]

    def test_nothing_is_in_clear_unless_it_may_be_and_an_admin_allows_it(self) -> None:
        closed = EventTemplate(LIKES.kind, LIKES.d, LIKES.body, hk="hk")
        for codec, template in ((CODEC, LIKES), (PLAIN_CODEC, closed)):
            event = codec.encode(template, 1_700_000_000)
            assert event.tags[-1] == ("enc", "secretbox-v1")
            assert "opt-in" not in event.content
            assert codec.decode(event) == {
                "history_key": "hk",
                "preference": "opt-in",
                "updated_at": 1_700_000_000,
            }

    def test_tags_are_in_order_and_ts_is_the_time(self) -> None:
        for kind in sorted(KIND_NAMES):
            with naming(kind):
                event = CODEC.encode(tombstone(kind, "hk:x"), 1_700_000_001)
                assert [tag[0] for tag in event.tags] == ["d", "k", "hk", "v", "ts", "enc"]
                assert [tag[1] for tag in event.tags] == [
                    "hk:x",
                    KIND_NAMES[kind],
                    "hk",
                    "1",
                    "1700000001",
                    "secretbox-v1",
                ]
                assert event.created_at == 1_700_000_001
                assert CODEC.decode(event)["x_erased"] is True

    def test_an_event_without_one_of_its_tags_is_refused(self) -> None:
        for missing in ("d", "k", "hk", "v", "ts"):
            with naming(missing):
                good = PLAIN_CODEC.encode(LIKES, 1_700_000_000)
                event = KEYS.sign(
                    good.kind, good.content, [tag for tag in good.tags if tag[0] != missing], good.created_at
                )
                with pytest.raises(UnreadableContent, match=f"the tag {missing} is missing"):
                    CODEC.decode(event)

    def test_an_event_whose_tags_say_something_else_is_refused(self) -> None:
        for tag, value, why in (
            ("v", "2", "unknown schema version '2'"),
            ("v", "one", "unknown schema version 'one'"),
            ("ts", "1", "differs from created_at"),
            ("k", "aman_summary", "does not match kind 30093"),
            ("enc", "rot13", "unknown encryption 'rot13'"),
            ("enc", "secretbox-v1", "cannot be decrypted"),
        ):
            with naming(tag, value, why):
                good = PLAIN_CODEC.encode(LIKES, 1_700_000_000)
                tags = [one for one in good.tags if one[0] != tag] + [(tag, value)]
                with pytest.raises(UnreadableContent, match=why):
                    CODEC.decode(KEYS.sign(good.kind, good.content, tags, good.created_at))

    def test_what_can_not_be_encrypted_is_not_signed(self) -> None:
        for text in ("x" * 40_001, "\ud800"):
            with pytest.raises(NostrError):
                CODEC.encode(EventTemplate(SUMMARY, "hk:summary", {"summary": text}, hk="hk"), 1)
            with pytest.raises(NostrError):
                CODEC.encode(EventTemplate(APP, "d", {"text": text}), 1)


class TestSnowclaw:
    def test_a_record_is_encrypted_and_says_so(self) -> None:
        template = EventTemplate(APP, "snowclaw:memory:npub:abc", {"notes": ["likes tea"]}, group="hq")
        event = CODEC.encode(template, 1_700_000_000)
        assert event.tags == (("d", "snowclaw:memory:npub:abc"), ("h", "hq"), ("encrypted", "nip44"))
        assert CODEC.decode(event) == {"notes": ["likes tea"]}
        with pytest.raises(UnreadableContent):
            Codec(Keys.generate(), SecretBox.of(KEYS)).decode(event)

    def test_one_in_clear_counts_for_nothing(self) -> None:
        with pytest.raises(UnreadableContent, match="not encrypted"):
            CODEC.decode(KEYS.sign(APP, '{"notes":["forged"]}', [["d", "x"]], 1))


class TestWhichHolds:
    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 3)), max_size=12),
        st.randoms(),
    )
    def test_is_the_same_in_any_order_and_however_often(
        self, versions: list[tuple[int, int, int]], dice: random.Random
    ) -> None:
        events = [fake(f"d{d}", ts, f"{d}{ts}{n}") for d, ts, n in versions]
        shuffled = [*events, *dice.sample(events, len(events) // 2)]
        dice.shuffle(shuffled)
        held = newest(shuffled)
        assert held == newest(events)
        for (_, d), event in held.items():
            rivals = [one for one in events if one.d == d]
            latest = max(one.created_at for one in rivals)
            assert event.id == min(one.id for one in rivals if one.created_at == latest)

    def test_of_a_tie_is_the_lowest_id(self) -> None:
        for one, other in permutations([fake("d", 5, "aa"), fake("d", 5, "bb")]):
            assert newest([one, other])[30078, "d"].id == "aa"

    def test_is_nothing_that_we_deleted(self) -> None:
        gone = [
            Deletion(30093, "user:abc:preference", ("11" * 32,)),
            Deletion(APP, "snowclaw:memory:npub:abc"),
        ]
        until, ids = deleted_until([CODEC.deletion(gone, 50)])
        assert until == {(30093, "user:abc:preference"): 50, (APP, "snowclaw:memory:npub:abc"): 50}
        assert ids == {"11" * 32}

    def test_nobody_deletes_what_is_not_theirs(self) -> None:
        other = Keys.generate()
        tags = [["a", f"30078:{KEYS.public}:d"], ["a", "30078"], ["a"], ["a", f"x:{other.public}:d"]]
        assert deleted_until([other.sign(DELETE, "", tags, 50)]) == ({}, set())


class TestDigests:
    def test_change_with_what_is_said_and_not_with_the_time(self) -> None:
        def made(body: dict[str, Any], at: int = 0, group: str = "") -> str:
            return EventTemplate(APP, "d", body, at, group=group).digest

        assert made({"a": 1}) == made({"a": 1}, at=9)
        assert len({made({"a": 1}), made({"a": 2}), made({"a": 1}, group="h")}) == 3

    def test_a_salt_keeps_a_short_payload_from_being_guessed(self) -> None:
        body = {"history_key": "hk", "sender_id": None, "created_at": 1}
        assert unique(CLEAR, "hk", body, salt="s", at=1).d != unique(CLEAR, "hk", body, salt="", at=1).d


class TestNames:
    names = Names(KEYS)

    def test_name_the_same_person_in_both_schemas_and_never_by_id(self) -> None:
        whole = self.names.user("123456789")
        assert self.names.profile("123456789") == f"snowclaw:memory:npub:{whole[:32]}"
        assert (
            self.names.user_key("123456789")
            == self.names.history_key("discord:dm:123456789")
            == f"user:{whole[:32]}"
        )
        assert "123456789" not in self.names.record("user-123456789", "abc")

    def test_tell_a_channel_a_thread_and_a_person_of_one_id_apart(self) -> None:
        assert len({self.names.user("1"), self.names.channel("1"), self.names.thread("1")}) == 3

    @pytest.mark.parametrize("length", [16, 32, 64])
    def test_are_read_in_three_lengths(self, length: int) -> None:
        assert fits(self.names.user("1")[:length].upper(), self.names.user("1"))
        assert not fits(self.names.user("2")[:length], self.names.user("1"))
        assert not fits(self.names.user("1")[: length - 1], self.names.user("1"))

    def test_differ_from_bot_to_bot(self) -> None:
        assert Names(Keys.generate()).user("1") != self.names.user("1")

    def test_are_given_to_conversations_alone(self) -> None:
        with pytest.raises(NostrError):
            self.names.history_key("telegram:1")


def newest(events: list[Event]) -> dict[tuple[int, str], Event]:
    collector = EventCollector(KEYS.public)
    collector.add("ws://relay", events)
    return {(one.kind, one.d): one for one in collector.select().current}


def fake(d: str, ts: int, event_id: str) -> Event:
    return Event(event_id, KEYS.public, ts, APP, (("d", d),), "", "")
