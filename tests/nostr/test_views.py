"""What is published of the files on disk: in the words of the schemas, and without what stays on the disk."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit, decode_line, encode_line, record_of_json
from discoclaw.core.redact import Redactor
from discoclaw.core.text import clip
from discoclaw.core.times import iso_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.people.tool_log import LONGEST
from discoclaw.nostr.event import MAX_PLAINTEXT, canonical, sha256
from discoclaw.nostr.ledgers import split
from discoclaw.nostr.schemas import APP, LEDGER, PREFERENCE, SUMMARY, TOOL, EventTemplate
from discoclaw.nostr.units import NOTHING_PUBLISHED
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import CURSORS, PROFILES, ROLLING
from tests.examples import FEW
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
    MirrorSetup,
    by_address,
    mirror_setup,
)

STATED = Origin("stated")
U, G = NAMES.user(ANN_ID)[:32], NAMES.channel(CHANNEL_ID)[:32]


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[MirrorSetup]:
    with mirror_setup(tmp_path, owners=[ANN_ID]) as opened:
        yield opened


async def say(setup: MirrorSetup, text: str, kind: str = "fact", subject: str = ANN, **metadata: Any) -> str:
    """Have something remembered; the id of the item."""
    setup.clock.now += 1_000
    return await setup.memory.change(subject, "why", remember(text, kind), **metadata)


async def mark(setup: MirrorSetup, item_id: str, secret: Any, subject: str = ANN) -> None:
    setup.clock.now += 1_000
    await setup.memory.change(
        subject, "marked", lambda draft: draft.mark(draft.items[item_id], secret, STATED)
    )


async def link(setup: MirrorSetup, one: str, other: str) -> None:
    setup.clock.now += 1_000
    await setup.memory.change(
        ANN, "linked", lambda draft: draft.link(draft.items[one], draft.items[other], STATED)
    )


def records(setup: MirrorSetup, unit: str = ANN) -> list[EventTemplate]:
    return [one for one in setup.views.desired(unit).templates if one.d.startswith(LEDGER)]


def one_of(setup: MirrorSetup, kind: int, unit: str, prefix: str = "") -> EventTemplate:
    (found,) = (
        one for one in setup.views.desired(unit).templates if one.kind == kind and one.d.startswith(prefix)
    )
    return found


class TestLedgers:
    async def test_every_record_is_one_event_with_its_line(self, setup: MirrorSetup) -> None:
        await say(setup, "likes tea")
        await say(setup, "has a 🐈", branch="coding")
        lines = lines_of(setup.memory, ANN).read().splitlines(keepends=True)
        template = records(setup)
        assert len(template) == len(lines) == 3
        for number, (one, line) in enumerate(zip(template, lines, strict=True)):
            record = decode_line(line[:-1])
            assert one.d == NAMES.record(ANN, record.id)
            assert list(one.body) == ["subject", "line", "record"]
            assert (one.body["subject"], one.body["line"]) == (ANN, number)
            assert encode_line(record_of_json(one.body["record"])) == line
            assert iso_ms(one.at * 1000)[:19] == record.timestamp[:19]

    async def test_a_large_record_is_several_events(self, setup: MirrorSetup) -> None:
        def write(draft: Draft) -> None:
            for number in range(60):
                remember(f'„{number}“ \\" ' + "日本" * 400)(draft)

        await setup.memory.change(ANN, "why", write)
        template = records(setup)
        assert [one.body["part"] for one in template] == list(range(len(template)))
        assert {one.body["parts"] for one in template} == {len(template)}
        assert len(template) > 3
        assert all(len(canonical(one.body).encode()) <= MAX_PLAINTEXT for one in template)
        record = record_of_json(json.loads("".join(one.body["text"] for one in template)))
        assert encode_line(record) == lines_of(setup.memory, ANN).read()
        assert [one.d for one in template] == [NAMES.record(ANN, record.id, n) for n in range(len(template))]

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(1, 40_000))
    def test_pieces_are_short_and_whole(self, text: str, times: int) -> None:
        pieces = list(split(text * min(times, 60_000 // (len(text) or 1))))
        assert "".join(pieces) == text * min(times, 60_000 // (len(text) or 1))
        assert all(len(canonical(piece).encode()) <= 120_000 for piece in pieces)
        assert all(0 < len(piece.encode()) <= 18_000 for piece in pieces)

    async def test_lines_that_can_not_be_read_are_left_out(
        self, setup: MirrorSetup, caplog: pytest.LogCaptureFixture
    ) -> None:
        for text in ("one", "two", "three"):
            await say(setup, text)
        log = lines_of(setup.memory, ANN)
        first, _, third = log.read().splitlines(keepends=True)
        log.replace(first + b'{"type": "commit"}\n' + third + b'{"torn')
        assert [one.body["line"] for one in records(setup)] == [0, 2]
        assert "1 lines cannot be read" in caplog.text
        assert PREFERENCE not in setup.views.desired(ANN).complete


class TestConfidential:
    async def test_a_record_says_only_that_it_is_there(self, setup: MirrorSetup) -> None:
        await say(setup, "likes tea")
        item = await say(setup, "the code is 471147114711")
        await mark(setup, item, "confidential")
        await say(setup, "likes cake")
        loose = [decode_line(line) for line in lines_of(setup.memory, ANN).read().splitlines()]
        tea, code, marked, cake = records(setup)
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
        assert "471147114711" not in json.dumps([one.body for one in setup.views.desired(ANN).templates])

    async def test_it_stays_so_when_it_is_shared_again_or_removed(self, setup: MirrorSetup) -> None:
        item = await say(setup, "the code is 471147114711")
        await mark(setup, item, "confidential")
        await mark(setup, item, "normal")
        await setup.memory.change(ANN, "why", lambda draft: draft.remove(draft.items[item], STATED))
        assert all("withheld" in one.body for one in records(setup))
        assert len(records(setup)) == 4

    async def test_nothing_that_touches_it_leaves_the_disk(self, setup: MirrorSetup) -> None:
        code = await say(setup, "the code is 471147114711")
        tea, cake = await say(setup, "likes tea"), await say(setup, "likes cake")
        for one, other in ((tea, code), (tea, cake)):
            await link(setup, one, other)
        await mark(setup, code, "confidential")
        withheld = ["withheld" in one.body for one in records(setup)]
        assert withheld == [True, False, False, True, False, True]

    async def test_no_view_shows_it_though_a_file_still_does(self, setup: MirrorSetup) -> None:
        item = await say(setup, "User prefers vim.", "preference")
        await say(setup, "User likes tea.")
        setup.profile()
        setup.group(themes=["cakes"])
        setup.tool(content="Found: User prefers vim. (fact)")
        before = one_of(setup, TOOL, ANN).d
        await mark(setup, item, "confidential")
        said = json.dumps([one.body for one in setup.views.desired(ANN).templates])
        assert "vim" not in said
        assert "User likes tea." in said
        assert one_of(setup, TOOL, ANN).body["content"] == "(confidential)"
        assert one_of(setup, TOOL, ANN).d != before

    async def test_nor_the_beginning_of_it_where_an_answer_was_cut_off(self, setup: MirrorSetup) -> None:
        text = f"The code is {'471147114711 ' * 60}"
        item = await say(setup, text)
        setup.tool(content=clip(f"Remembered: {text}", LONGEST))
        assert "471147114711" in one_of(setup, TOOL, ANN).body["content"]
        await mark(setup, item, "confidential")
        assert one_of(setup, TOOL, ANN).body["content"] == "(confidential)"


class TestSecrets:
    async def test_a_record_with_a_key_in_it_is_withheld(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            await say(setup, f"my key is {'ab' * 32}")
            await say(setup, "likes tea")
            key, tea = records(setup)
            assert key.body["reason"] == "secret"
            assert "record" in tea.body  # which has hashes of 64 digits
            assert "line 1 contains a secret" in caplog.text
            assert "ab" * 8 not in caplog.text

    def test_a_view_goes_without_it(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, redactor=Redactor(own=frozenset({"s3cret" * 6}))) as setup:
            setup.profile(notes=["my key: " + "s3cret" * 6], display_names=[["s3cret" * 6, 1]])
            setup.summary(f"They said {'s3cret' * 6}.", NOW)
            setup.group(purpose="s3cret" * 6, themes=["s3cret" * 6])
            setup.tool(content="s3cret" * 6)
            for unit in setup.views.units():
                said = json.dumps([one.body for one in setup.views.desired(unit).templates])
                assert "s3cret" not in said
                assert "[REDACTED key]" in said


class TestPeople:
    def test_a_profile_has_snowclaws_shape(self, setup: MirrorSetup) -> None:
        setup.profile(is_owner=False, favourite="blue")
        template = one_of(setup, APP, ANN)
        assert template.d == f"snowclaw:memory:npub:{U}"
        assert template.body == {
            **PROFILE,
            "favourite": "blue",
            "is_owner": True,
            "x_discord": ANN_ID,
        }

    def test_who_the_owner_is_says_the_configuration_alone(self, setup: MirrorSetup) -> None:
        setup.profile(BOB_ID, is_owner=True)
        assert one_of(setup, APP, f"user-{BOB_ID}").body["is_owner"] is False

    def test_a_profile_that_is_too_long_loses_its_oldest_notes(self, setup: MirrorSetup) -> None:
        notes = [f"{number} " + "ü" * 990 for number in range(100)]
        setup.profile(notes=notes)
        body = one_of(setup, APP, ANN).body
        assert len(canonical(body).encode()) <= MAX_PLAINTEXT
        assert 15 < len(body["notes"]) < 25
        assert body["notes"] == notes[-len(body["notes"]) :]
        assert body["preferences"] == PROFILE["preferences"]

    def test_a_profile_that_can_not_be_read_is_left_out(
        self, setup: MirrorSetup, caplog: pytest.LogCaptureFixture
    ) -> None:
        setup.memory.disk.documents(PROFILES).write(f"{ANN_ID}.json", b"{nonsense")
        setup.tool()
        assert [one.kind for one in setup.views.desired(ANN).templates] == [TOOL]
        assert f"{ANN_ID}.json: " in caplog.text

    async def test_preferences_are_a_sentence_a_line_newest_first(self, setup: MirrorSetup) -> None:
        await say(setup, "User prefers vim.", "preference")
        await say(setup, "User lives in Ulm.")
        secret = await say(setup, "User prefers blondes.", "preference")
        await say(setup, "User prefers tabs.", "preference")
        await mark(setup, secret, "confidential")
        template = one_of(setup, PREFERENCE, ANN)
        assert template.d == f"user:{U}:preference"
        assert list(template.body.items()) == [
            ("history_key", f"user:{U}"),
            ("preference", "User prefers tabs.\nUser prefers vim."),
            ("updated_at", None),
        ]
        assert template.plaintext_ok

    async def test_what_is_private_is_never_open_and_another_version(self, setup: MirrorSetup) -> None:
        item = await say(setup, "User prefers vim.", "preference")
        before = one_of(setup, PREFERENCE, ANN)
        await mark(setup, item, "private")
        after = one_of(setup, PREFERENCE, ANN)
        assert after.body["preference"] == before.body["preference"]
        assert (before.plaintext_ok, after.plaintext_ok) == (True, False)
        assert before.digest != after.digest

    async def test_without_preferences_there_is_none_and_an_older_one_is_gone(
        self, setup: MirrorSetup
    ) -> None:
        item = await say(setup, "User prefers vim.", "preference")
        await setup.memory.change(ANN, "why", lambda draft: draft.remove(draft.items[item], STATED))
        desired = setup.views.desired(ANN)
        assert PREFERENCE not in {one.kind for one in desired.views}
        assert PREFERENCE in desired.complete


class TestTools:
    def test_short_answers_can_not_be_guessed_from_the_address(self, setup: MirrorSetup) -> None:
        setup.tool(content="yes")
        template = one_of(setup, TOOL, ANN)
        plain = {key: value for key, value in template.body.items() if key != "x_salt"}
        assert len(template.body["x_salt"]) == 32
        assert sha256(canonical(plain)) not in template.d

    def test_in_a_dm_there_is_no_group(self, setup: MirrorSetup) -> None:
        setup.tool(session=DM, channel="66")
        template = one_of(setup, TOOL, ANN)
        assert (template.body["history_key"], template.body["group_id"]) == (f"user:{U}", None)
        assert template.body["x_channel"] == "66"

    def test_what_is_no_longer_in_the_log_is_gone_unless_something_is_unreadable(
        self, setup: MirrorSetup
    ) -> None:
        assert TOOL not in setup.views.desired(ANN).complete  # nothing is there of them at all
        setup.profile()
        assert TOOL in setup.views.desired(ANN).complete
        setup.tool()
        log = setup.memory.disk.log(f"tools/{ANN}.jsonl")
        log.replace(log.read() + b"{nonsense\n")
        desired = setup.views.desired(ANN)
        assert TOOL not in desired.complete
        assert TOOL in {one.kind for one in desired.views}


class TestGroups:
    def test_a_group_has_snowclaws_shape(self, setup: MirrorSetup) -> None:
        setup.group(colour="red")
        template = one_of(setup, APP, GROUP)
        assert template.d == f"snowclaw:memory:group:{G}"
        assert template.body == {
            "purpose": "where we plan the fête",
            "members": [[U, "Ann B."], [NAMES.user(BOB_ID)[:32], "Bob"]],
            "themes": ["cakes"],
            "decisions": [["We meet on Monday.", SECOND - 50]],
            "colour": "red",
            "x_members": [[ANN_ID, "Ann B."], [BOB_ID, "Bob"]],
            "x_discord": CHANNEL_ID,
        }
        assert template.group == ""

    def test_only_a_mapped_channel_has_an_h_tag(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, groups={CHANNEL_ID: "inner-circle"}) as setup:
            setup.group()
            assert one_of(setup, APP, GROUP).group == "inner-circle"


class TestConversations:
    def test_a_later_summary_is_dated_behind_the_second_of_the_clear(self, setup: MirrorSetup) -> None:
        setup.clear(NOW)
        setup.summary("They began anew.", NOW + 1)
        assert one_of(setup, SUMMARY, f"{SESSION}{PLACE}").at == SECOND + 1

    def test_a_summary_that_is_not_there_was_removed_only_if_its_cursor_is(self, setup: MirrorSetup) -> None:
        unit = f"{SESSION}{PLACE}"
        assert SUMMARY not in setup.views.desired(unit).complete
        setup.summary("They planned a fête.", NOW)
        folder = setup.memory.disk.documents(ROLLING)
        folder.write(session_name(PLACE), b"{nonsense")
        assert SUMMARY not in setup.views.desired(unit).complete
        folder.remove([session_name(PLACE)])
        assert SUMMARY in setup.views.desired(unit).complete

    def test_a_lost_summary_stays_on_relays_and_a_cleared_one_does_not(self, setup: MirrorSetup) -> None:
        cursor = render_json({"upTo": "1468000000000000000", "from": "0", "at": NOW})
        setup.memory.disk.documents(CURSORS).write(session_name(f"summary-{PLACE}"), cursor)
        assert SUMMARY not in setup.views.desired(f"{SESSION}{PLACE}").complete
        setup.clear(NOW)
        assert SUMMARY in setup.views.desired(f"{SESSION}{PLACE}").complete

    def test_what_is_no_conversation_is_left_out(
        self, setup: MirrorSetup, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert setup.views.desired(f"{SESSION}elsewhere:1").templates == ()
        assert "not the session key" in caplog.text


async def test_every_unit_on_disk_is_found(setup: MirrorSetup) -> None:
    assert setup.views.units() == []
    await say(setup, "likes tea")
    await say(setup, "I am a bot", subject="bot")
    setup.profile(BOB_ID)
    setup.group()
    setup.summary("They planned a fête.", NOW)
    setup.memory.disk.documents(ROLLING).write(f"{session_name(DM)}.corrupt-1", b"x")
    setup.clear(NOW, DM)
    units = [ANN, "bot", f"user-{BOB_ID}", GROUP, f"{SESSION}{PLACE}", f"{SESSION}{DM}"]
    assert sorted(setup.views.units()) == sorted(units)


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "mark", "change", "link", "branch"]), st.integers(0, 5)), max_size=8
)


@given(STEPS, st.integers(0, 8))
@FEW
async def test_what_is_seen_in_steps_adds_up_to_what_is_seen_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], cut: int
) -> None:
    """Whenever somebody looks, the last desired at each address is what a desired at everything says."""
    with mirror_setup(tmp_path_factory.mktemp("mirror")) as setup:
        items: list[str] = []
        seen, found = NOTHING_PUBLISHED, dict[tuple[int, str], EventTemplate]()
        for number, (step, which) in enumerate(steps):
            await _do(setup, items, step, number, which)
            if number == cut or which == 0:
                desired = setup.views.desired(ANN, seen)
                seen = desired.ledger
                found |= by_address(desired.templates)
        found |= by_address(setup.views.desired(ANN, seen).templates)
        whole = by_address(setup.views.desired(ANN).templates)
        assert {key: one.digest for key, one in found.items() if key[0] == APP} == {
            key: one.digest for key, one in whole.items() if key[0] == APP
        }
        assert whole == by_address(setup.views.desired(ANN).templates)


async def _do(setup: MirrorSetup, items: list[str], step: str, number: int, which: int) -> None:
    item = items[which % len(items)] if items else ""
    if step == "add" or not items:
        items.append(await say(setup, f"text {number}", "preference" if which % 2 else "fact"))
    elif step == "mark":
        await mark(setup, item, ("confidential", "private", "normal")[which % 3])
    elif step == "change":
        write = remember(f"other {number}")
        await setup.memory.change(ANN, "why", lambda draft: write(draft), by="test")
    elif step == "link":
        other = items[-1]
        if other != item:
            await link(setup, item, other)
    else:
        await setup.memory.turn(
            ANN, lambda branches, now: branches.create(f"b{number}", "", now_ms=now, start=None)
        )
