"""What is published beside ledgers: what is written into events is what is read from them again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.profile import Group, Profile
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.people.tool_log import Call
from discoclaw.nostr.documents import DocumentCodec, FoundDocuments, Summary
from discoclaw.nostr.event import SecretBox
from discoclaw.nostr.ledgers import NOTHING_CONFIDENTIAL
from discoclaw.nostr.schemas import CLEAR, TOOL, Codec, DecryptedEvent, EventTemplate, Names
from tests.nostr.test_event import KEYS, VECTORS

EVENTS = Codec(KEYS, SecretBox.of(KEYS))
NAMES = Names(KEYS)
DOCUMENTS = DocumentCodec(NAMES)
PERSON, CHANNEL, ID = "123456789012345678", "223456789012345678", "ab" * 8
SESSION = f"discord:channel:{CHANNEL}"

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=60)
TIMES = st.integers(1_600_000_000_000, 1_900_000_000_000)


def published(*templates: EventTemplate) -> FoundDocuments:
    """What is read of these documents after they were signed, encrypted and decrypted."""
    events = [EVENTS.encode(one, max(one.at, 1_700_000_000)) for one in templates]
    found, unreadable = DOCUMENTS.read([DecryptedEvent(one, EVENTS.decode(one)) for one in events])
    assert unreadable == []
    return found


class TestRoundTrip:
    @given(
        TEXTS, TIMES, st.integers(0, 500), st.none() | st.just("42"), st.lists(st.just(PERSON), max_size=1)
    )
    def test_a_summary_comes_back(
        self, text: str, at: int, count: int, up_to: str | None, people: list[str]
    ) -> None:
        summary = Summary(text, at, count, up_to, tuple(people))
        assert published(DOCUMENTS.summary(SESSION, summary, -1)).summaries == {SESSION: summary}

    @given(TEXTS, TIMES, st.booleans(), st.booleans())
    def test_a_tool_call_comes_back(self, content: str, at: int, ok: bool, private: bool) -> None:
        call = Call(ID, at, "weather", ok, content, CHANNEL, SESSION, private)
        made = DOCUMENTS.tool(PERSON, call, NOTHING_CONFIDENTIAL)
        assert published(made).calls == {f"user-{PERSON}": [call]}

    @given(TIMES, st.none() | st.just(PERSON))
    def test_a_clear_comes_back(self, at: int, by: str | None) -> None:
        assert published(DOCUMENTS.clear(Clear(ID, at, SESSION, by))).clears == [Clear(ID, at, SESSION, by)]

    @given(TEXTS, TEXTS, st.integers(1_600_000_000, 1_900_000_000))
    def test_a_profile_comes_back(self, name: str, note: str, since: int) -> None:
        profile = Profile(display_names=((name, since),), first_seen=since, notes=(note,))
        made = DOCUMENTS.profile(PERSON, profile, NOTHING_CONFIDENTIAL, is_owner=False)
        read = published(made).profiles[PERSON]
        assert (read.display_names, read.first_seen, read.notes) == (((name, since),), since, (note,))

    @given(TEXTS, TEXTS)
    def test_a_group_comes_back_with_the_ids_of_its_members(self, name: str, theme: str) -> None:
        group = Group(members=((PERSON, name),), themes=(theme,))
        made = DOCUMENTS.group(CHANNEL, group, NOTHING_CONFIDENTIAL)
        assert PERSON not in str(made[0].body["members"])
        read, _ = published(*made).groups[CHANNEL]
        assert (read.members, read.themes) == (group.members, group.themes)

    def test_choices_of_many_people_come_back_from_several_events(self) -> None:
        chosen = {str(10**17 + n): {"opted_out": n % 2 == 0} for n in range(700)}
        made = DOCUMENTS.choices(chosen)
        assert len(made) == 3 and published(*made).choices == chosen


class TestFields:
    @pytest.mark.parametrize("kind", [TOOL, CLEAR])
    def test_other_readers_find_their_fields_in_order(self, kind: int) -> None:
        call = Call(ID, 1_700_000_000_000, "weather", True, "sunny", CHANNEL, SESSION, False)
        made = (
            DOCUMENTS.tool(PERSON, call, NOTHING_CONFIDENTIAL)
            if kind == TOOL
            else DOCUMENTS.clear(Clear(ID, 1_700_000_000_000, SESSION, PERSON))
        )
        golden = next(one for one in VECTORS["payloads"] if one["kind"] == kind)
        assert [name for name in made.body if not name.startswith("x_")] == list(golden["payload"])
