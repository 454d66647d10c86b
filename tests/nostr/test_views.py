"""What is published of the files on disk: in the words of the schemas, and without what stays on the disk."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit, decode_line, encode_line, record_of_json
from discoclaw.core.redact import Redactor
from discoclaw.core.text import clip
from discoclaw.core.times import iso_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations.clears import clear_of
from discoclaw.memory.disk.files import session_name
from discoclaw.memory.disk.port import PROFILES, ROLLING
from discoclaw.memory.people.tool_log import LONGEST, call_of
from discoclaw.nostr.event import MOST_PLAIN
from discoclaw.nostr.names import LEDGER
from discoclaw.nostr.outgoing.ledger_view import split
from discoclaw.nostr.outgoing.views import NOTHING_SEEN
from discoclaw.nostr.schemas import APP, CLEAR, PREFERENCE, SUMMARY, TOOL, TOPICS, Wanted
from discoclaw.nostr.sealed import canonical, sha256
from tests.memory.kit import NOW, lines_of, remember
from tests.nostr.mirror_kit import (
    ANN,
    ANN_ID,
    BOB_ID,
    CHANNEL_ID,
    DM,
    GROUP,
    NAMES,
    PLACE,
    PROFILE,
    SECOND,
    House,
    by_address,
    house,
)

STATED = Origin("stated")
U, G = NAMES.user(ANN_ID)[:32], NAMES.channel(CHANNEL_ID)[:32]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, owners=[ANN_ID]) as opened:
        yield opened


async def say(home: House, text: str, kind: str = "fact", subject: str = ANN, **metadata: Any) -> str:
    """Have something remembered; the id of the item."""
    home.clock.now += 1_000
    return await home.memory.change(subject, "why", remember(text, kind), **metadata)


async def mark(home: House, item_id: str, secret: Any, subject: str = ANN) -> None:
    home.clock.now += 1_000
    await home.memory.change(
        subject, "marked", lambda draft: draft.mark(draft.items[item_id], secret, STATED)
    )


async def link(home: House, one: str, other: str) -> None:
    home.clock.now += 1_000
    await home.memory.change(
        ANN, "linked", lambda draft: draft.link(draft.items[one], draft.items[other], STATED)
    )


def records(home: House, unit: str = ANN) -> list[Wanted]:
    return [one for one in home.views.wanted(unit) if one.d.startswith(LEDGER)]


def one_of(home: House, kind: int, unit: str, prefix: str = "") -> Wanted:
    (found,) = (one for one in home.views.wanted(unit) if one.kind == kind and one.d.startswith(prefix))
    return found


class TestLedgers:
    async def test_every_record_is_one_event_with_its_line(self, home: House) -> None:
        await say(home, "likes tea")
        await say(home, "has a 🐈", branch="coding")
        lines = lines_of(home.memory, ANN).read().splitlines(keepends=True)
        wanted = records(home)
        assert len(wanted) == len(lines) == 3
        for number, (one, line) in enumerate(zip(wanted, lines, strict=True)):
            record = decode_line(line[:-1])
            assert one.d == NAMES.record(ANN, record.id)
            assert list(one.body) == ["subject", "line", "record"]
            assert (one.body["subject"], one.body["line"]) == (ANN, number)
            assert encode_line(record_of_json(one.body["record"])) == line
            assert iso_ms(one.at * 1000)[:19] == record.timestamp[:19]

    async def test_a_large_record_is_several_events(self, home: House) -> None:
        def wish(draft: Draft) -> None:
            for number in range(60):
                remember(f'„{number}“ \\" ' + "日本" * 400)(draft)

        await home.memory.change(ANN, "why", wish)
        wanted = records(home)
        assert [one.body["part"] for one in wanted] == list(range(len(wanted)))
        assert {one.body["parts"] for one in wanted} == {len(wanted)}
        assert len(wanted) > 3
        assert all(len(canonical(one.body).encode()) <= MOST_PLAIN for one in wanted)
        record = record_of_json(json.loads("".join(one.body["text"] for one in wanted)))
        assert encode_line(record) == lines_of(home.memory, ANN).read()
        assert [one.d for one in wanted] == [NAMES.record(ANN, record.id, n) for n in range(len(wanted))]

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(1, 40_000))
    @settings(max_examples=30, deadline=None)
    def test_pieces_are_short_and_whole(self, text: str, times: int) -> None:
        pieces = list(split(text * min(times, 60_000 // (len(text) or 1))))
        assert "".join(pieces) == text * min(times, 60_000 // (len(text) or 1))
        assert all(len(canonical(piece).encode()) <= 120_000 for piece in pieces)
        assert all(0 < len(piece.encode()) <= 18_000 for piece in pieces)

    async def test_lines_that_can_not_be_read_are_left_out(
        self, home: House, caplog: pytest.LogCaptureFixture
    ) -> None:
        for text in ("one", "two", "three"):
            await say(home, text)
        log = lines_of(home.memory, ANN)
        first, _, third = log.read().splitlines(keepends=True)
        log.replace(first + b'{"type": "commit"}\n' + third + b'{"torn')
        assert [one.body["line"] for one in records(home)] == [0, 2]
        assert "1 lines can not be read" in caplog.text
        assert PREFERENCE not in home.views.look(ANN).settled


class TestConfidential:
    async def test_a_record_says_only_that_it_is_there(self, home: House) -> None:
        await say(home, "likes tea")
        item = await say(home, "the code is 4711")
        await mark(home, item, "confidential")
        await say(home, "likes cake")
        loose = [decode_line(line) for line in lines_of(home.memory, ANN).read().splitlines()]
        tea, code, marked, cake = records(home)
        assert "record" in tea.body
        assert "record" in cake.body
        for number, stub, record in ((1, code, loose[1]), (2, marked, loose[2])):
            assert isinstance(record, Commit)
            assert stub.body == {
                "subject": ANN,
                "line": number,
                "withheld": True,
                "id": record.id,
                "parent": record.parent_id,
                "reason": "confidential",
            }
        assert "4711" not in json.dumps([one.body for one in home.views.wanted(ANN)])

    async def test_it_stays_so_when_it_is_shared_again_or_removed(self, home: House) -> None:
        item = await say(home, "the code is 4711")
        await mark(home, item, "confidential")
        await mark(home, item, "normal")
        await home.memory.change(ANN, "why", lambda draft: draft.remove(draft.items[item], STATED))
        assert all("withheld" in one.body for one in records(home))
        assert len(records(home)) == 4

    async def test_nothing_that_touches_it_leaves_the_disk(self, home: House) -> None:
        code = await say(home, "the code is 4711")
        tea, cake = await say(home, "likes tea"), await say(home, "likes cake")
        for one, other in ((tea, code), (tea, cake)):
            await link(home, one, other)
        await mark(home, code, "confidential")
        withheld = ["withheld" in one.body for one in records(home)]
        assert withheld == [True, False, False, True, False, True]

    async def test_no_view_shows_it_though_a_file_still_does(self, home: House) -> None:
        item = await say(home, "User prefers vim.", "preference")
        await say(home, "User likes tea.")
        home.profile()
        home.group(themes=["cakes"])
        home.tool(content="Found: User prefers vim. (fact)")
        before = one_of(home, TOOL, ANN).d
        await mark(home, item, "confidential")
        said = json.dumps([one.body for one in home.views.wanted(ANN)])
        assert "vim" not in said
        assert "User likes tea." in said
        assert one_of(home, TOOL, ANN).body["content"] == "(confidential)"
        assert one_of(home, TOOL, ANN).d != before

    async def test_nor_the_beginning_of_it_where_an_answer_was_cut_off(self, home: House) -> None:
        text = f"The code is {'4711 ' * 150}"
        item = await say(home, text)
        home.tool(content=clip(f"Remembered: {text}", LONGEST))
        assert "4711" in one_of(home, TOOL, ANN).body["content"]
        await mark(home, item, "confidential")
        assert one_of(home, TOOL, ANN).body["content"] == "(confidential)"


class TestSecrets:
    async def test_a_record_with_a_key_in_it_is_withheld(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with house(tmp_path) as home:
            await say(home, f"my key is {'ab' * 32}")
            await say(home, "likes tea")
            key, tea = records(home)
            assert key.body["reason"] == "secret"
            assert "record" in tea.body  # which has hashes of 64 digits
            assert "line 1 holds a secret" in caplog.text
            assert "abab" not in caplog.text

    def test_a_view_goes_without_it(self, tmp_path: Path) -> None:
        with house(tmp_path, redactor=Redactor(own=frozenset({"s3cret" * 6}))) as home:
            home.profile(notes=["my key: " + "s3cret" * 6], display_names=[["s3cret" * 6, 1]])
            home.summary(f"They said {'s3cret' * 6}.", NOW)
            home.group(purpose="s3cret" * 6, themes=["s3cret" * 6])
            home.tool(content="s3cret" * 6)
            for unit in home.views.units():
                said = json.dumps([one.body for one in home.views.wanted(unit)])
                assert "s3cret" not in said
                assert "[REDACTED key]" in said


class TestPeople:
    def test_a_profile_has_snowclaws_shape(self, home: House) -> None:
        home.profile(is_owner=False, favourite="blue")
        wanted = one_of(home, APP, ANN)
        assert wanted.d == f"snowclaw:memory:npub:{U}"
        assert wanted.body == {
            **PROFILE,
            "favourite": "blue",
            "is_owner": True,
            "x_discord": ANN_ID,
        }

    def test_who_the_owner_is_says_the_configuration_alone(self, home: House) -> None:
        home.profile(BOB_ID, is_owner=True)
        assert one_of(home, APP, f"user-{BOB_ID}").body["is_owner"] is False

    def test_a_profile_that_is_too_long_loses_its_oldest_notes(self, home: House) -> None:
        notes = [f"{number} " + "ü" * 990 for number in range(100)]
        home.profile(notes=notes)
        body = one_of(home, APP, ANN).body
        assert len(canonical(body).encode()) <= MOST_PLAIN
        assert 15 < len(body["notes"]) < 25
        assert body["notes"] == notes[-len(body["notes"]) :]
        assert body["preferences"] == PROFILE["preferences"]

    def test_a_profile_that_can_not_be_read_is_left_out(
        self, home: House, caplog: pytest.LogCaptureFixture
    ) -> None:
        home.memory.disk.documents(PROFILES).write(f"{ANN_ID}.json", b"{nonsense")
        home.tool()
        assert [one.kind for one in home.views.wanted(ANN)] == [TOOL]
        assert f"{ANN_ID}.json is not mirrored" in caplog.text

    async def test_preferences_are_a_sentence_a_line_newest_first(self, home: House) -> None:
        await say(home, "User prefers vim.", "preference")
        await say(home, "User lives in Ulm.")
        secret = await say(home, "User prefers blondes.", "preference")
        await say(home, "User prefers tabs.", "preference")
        await mark(home, secret, "confidential")
        wanted = one_of(home, PREFERENCE, ANN)
        assert wanted.d == f"user:{U}:preference"
        assert list(wanted.body.items()) == [
            ("history_key", f"user:{U}"),
            ("preference", "User prefers tabs.\nUser prefers vim."),
            ("updated_at", None),
        ]
        assert wanted.open

    async def test_what_is_private_is_never_open_and_another_version(self, home: House) -> None:
        item = await say(home, "User prefers vim.", "preference")
        before = one_of(home, PREFERENCE, ANN)
        await mark(home, item, "private")
        after = one_of(home, PREFERENCE, ANN)
        assert after.body["preference"] == before.body["preference"]
        assert (before.open, after.open) == (True, False)
        assert before.digest != after.digest

    async def test_without_preferences_there_is_none_and_an_older_one_is_gone(self, home: House) -> None:
        item = await say(home, "User prefers vim.", "preference")
        await home.memory.change(ANN, "why", lambda draft: draft.remove(draft.items[item], STATED))
        look = home.views.look(ANN)
        assert PREFERENCE not in {one.kind for one in look.views}
        assert PREFERENCE in look.settled


class TestTools:
    def test_a_call_has_amans_fields_in_order_and_is_addressed_by_them(self, home: House) -> None:
        call = home.tool()
        wanted = one_of(home, TOOL, ANN)
        assert list(wanted.body.items())[:7] == [
            ("history_key", f"group:{G}"),
            ("tool_name", "weather"),
            ("success", True),
            ("content", "sunny"),
            ("sender_id", U),
            ("group_id", G),
            ("created_at", SECOND),
        ]
        assert wanted.d == f"group:{G}:{sha256(canonical(wanted.body))}"
        assert wanted.at == SECOND
        body = wanted.body
        line = {"id": body["x_id"], "at": body["x_ms"], "tool": body["tool_name"], "ok": body["success"]}
        more = {name: body[f"x_{name}"] for name in ("channel", "session", "private")}
        assert call_of({**line, "content": body["content"], **more}) == call
        assert body["x_discord"] == ANN_ID

    def test_short_answers_can_not_be_guessed_from_the_address(self, home: House) -> None:
        home.tool(content="yes")
        wanted = one_of(home, TOOL, ANN)
        plain = {key: value for key, value in wanted.body.items() if key != "x_salt"}
        assert len(wanted.body["x_salt"]) == 32
        assert sha256(canonical(plain)) not in wanted.d

    def test_in_a_dm_there_is_no_group(self, home: House) -> None:
        home.tool(session=DM, channel="66")
        wanted = one_of(home, TOOL, ANN)
        assert (wanted.body["history_key"], wanted.body["group_id"]) == (f"user:{U}", None)
        assert wanted.body["x_channel"] == "66"

    def test_what_is_no_longer_in_the_log_is_gone_unless_something_is_unreadable(self, home: House) -> None:
        assert TOOL not in home.views.look(ANN).settled  # nothing is there of them at all
        home.profile()
        assert TOOL in home.views.look(ANN).settled
        home.tool()
        log = home.memory.disk.log(f"tools/{ANN}.jsonl")
        log.replace(log.read() + b"{nonsense\n")
        look = home.views.look(ANN)
        assert TOOL not in look.settled
        assert TOOL in {one.kind for one in look.views}


class TestGroups:
    def test_a_group_has_snowclaws_shape(self, home: House) -> None:
        home.group(colour="red")
        wanted = one_of(home, APP, GROUP)
        assert wanted.d == f"snowclaw:memory:group:{G}"
        assert wanted.body == {
            "purpose": "where we plan the fête",
            "members": [[U, "Ann B."], [NAMES.user(BOB_ID)[:32], "Bob"]],
            "themes": ["cakes"],
            "decisions": [["We meet on Monday.", SECOND - 50]],
            "colour": "red",
            "x_members": [[ANN_ID, "Ann B."], [BOB_ID, "Bob"]],
            "x_discord": CHANNEL_ID,
        }
        assert wanted.group == ""

    def test_its_themes_are_topics(self, home: House) -> None:
        home.group()
        wanted = one_of(home, TOPICS, GROUP)
        assert wanted.d == f"group:{G}:subscription_state"
        assert wanted.body == {"history_key": f"group:{G}", "topics": ["cakes"], "updated_at": None}
        home.group(themes=[])
        look = home.views.look(GROUP)
        assert [one.kind for one in look.views] == [APP]
        assert TOPICS in look.settled

    def test_only_a_mapped_channel_has_an_h_tag(self, tmp_path: Path) -> None:
        with house(tmp_path, groups={CHANNEL_ID: "inner-circle"}) as home:
            home.group()
            assert one_of(home, APP, GROUP).group == "inner-circle"


class TestConversations:
    def test_a_summary_has_amans_fields(self, home: House) -> None:
        home.summary("They planned a fête.", NOW + 5, people=[BOB_ID, ANN_ID])
        wanted = one_of(home, SUMMARY, f"{SESSION}{PLACE}")
        assert wanted.d == f"group:{G}:summary"
        assert list(wanted.body.items()) == [
            ("history_key", f"group:{G}"),
            ("summary", "They planned a fête."),
            ("message_count", 7),
            ("updated_at", None),
            ("x_session", PLACE),
            ("x_updated_at", NOW + 5),
            ("x_up_to", "1468000000000000000"),
            ("x_people", [BOB_ID, ANN_ID]),
        ]
        assert wanted.at == SECOND
        assert not wanted.open

    def test_a_clear_has_amans_fields_and_hides_what_is_older(self, home: House) -> None:
        home.summary("They planned a fête.", NOW - 1)
        clear = home.clear(NOW)
        look = home.views.look(f"{SESSION}{PLACE}")
        (wanted,) = look.views
        assert wanted.kind == CLEAR
        assert list(wanted.body.items())[:3] == [
            ("history_key", f"group:{G}"),
            ("sender_id", U),
            ("created_at", SECOND),
        ]
        assert wanted.d == f"group:{G}:{sha256(canonical(wanted.body))}"
        body = wanted.body
        line = {"id": body["x_id"], "at": body["x_ms"], "session": body["x_session"], "by": body["x_by"]}
        assert clear_of(line) == clear
        assert {SUMMARY, CLEAR} <= look.settled

    def test_a_later_summary_is_dated_behind_the_second_of_the_clear(self, home: House) -> None:
        home.clear(NOW)
        home.summary("They began anew.", NOW + 1)
        assert one_of(home, SUMMARY, f"{SESSION}{PLACE}").at == SECOND + 1

    def test_a_summary_that_is_not_there_was_removed_only_if_its_cursor_is(self, home: House) -> None:
        unit = f"{SESSION}{PLACE}"
        assert SUMMARY not in home.views.look(unit).settled
        home.summary("They planned a fête.", NOW)
        folder = home.memory.disk.documents(ROLLING)
        folder.write(session_name(PLACE), b"{nonsense")
        assert SUMMARY not in home.views.look(unit).settled
        folder.remove([session_name(PLACE)])
        assert SUMMARY in home.views.look(unit).settled

    def test_what_is_no_conversation_is_left_out(self, home: House, caplog: pytest.LogCaptureFixture) -> None:
        assert home.views.wanted(f"{SESSION}elsewhere:1") == []
        assert "no conversation" in caplog.text


async def test_every_unit_on_disk_is_found(home: House) -> None:
    assert home.views.units() == []
    await say(home, "likes tea")
    await say(home, "I am a bot", subject="bot")
    home.profile(BOB_ID)
    home.group()
    home.summary("They planned a fête.", NOW)
    home.memory.disk.documents(ROLLING).write(f"{session_name(DM)}.corrupt-1", b"x")
    home.clear(NOW, DM)
    units = [ANN, "bot", f"user-{BOB_ID}", GROUP, f"{SESSION}{PLACE}", f"{SESSION}{DM}"]
    assert sorted(home.views.units()) == sorted(units)


async def test_both_stores_publish_the_same(tmp_path: Path) -> None:
    published = []
    for store in ("files", "sqlite"):
        with house(tmp_path / store, store=store) as home:
            await say(home, "User prefers vim.", "preference")
            home.profile()
            home.group()
            home.summary("They planned a fête.", NOW)
            home.tool()
            home.clear(NOW - 60_000, DM)
            published.append({unit: by_address(home.views.wanted(unit)) for unit in home.views.units()})
            await home.mirror.close()
    files, sqlite = published
    assert files == sqlite
    assert len(files) == 4


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "mark", "change", "link", "branch"]), st.integers(0, 5)), max_size=8
)


@given(STEPS, st.integers(0, 8))
@settings(max_examples=15, deadline=None)
async def test_what_is_seen_in_steps_adds_up_to_what_is_seen_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], cut: int
) -> None:
    """Whenever somebody looks, the last look at each address is what a look at everything says."""
    with house(tmp_path_factory.mktemp("house")) as home:
        items: list[str] = []
        seen, found = NOTHING_SEEN, dict[tuple[int, str], Wanted]()
        for number, (step, which) in enumerate(steps):
            await _do(home, items, step, number, which)
            if number == cut or which == 0:
                look = home.views.look(ANN, seen)
                seen = look.seen
                found |= by_address(look.wanted)
        found |= by_address(home.views.look(ANN, seen).wanted)
        whole = by_address(home.views.wanted(ANN))
        assert {key: one.digest for key, one in found.items() if key[0] == APP} == {
            key: one.digest for key, one in whole.items() if key[0] == APP
        }
        assert whole == by_address(home.views.wanted(ANN))


async def _do(home: House, items: list[str], step: str, number: int, which: int) -> None:
    item = items[which % len(items)] if items else ""
    if step == "add" or not items:
        items.append(await say(home, f"text {number}", "preference" if which % 2 else "fact"))
    elif step == "mark":
        await mark(home, item, ("confidential", "private", "normal")[which % 3])
    elif step == "change":
        wish = remember(f"other {number}")
        await home.memory.change(ANN, "why", lambda draft: wish(draft), by="test")
    elif step == "link":
        other = items[-1]
        if other != item:
            await link(home, item, other)
    else:
        await home.memory.turn(
            ANN, lambda branches, now: branches.create(f"b{number}", "", now_ms=now, start=None)
        )


def test_a_wanted_is_told_apart_by_all_that_matters() -> None:
    one = Wanted(APP, "d", {"a": 1})
    assert one.digest == replace(one, at=5).digest
    assert one.digest != replace(one, body={"a": 2}).digest != replace(one, group="g").digest
