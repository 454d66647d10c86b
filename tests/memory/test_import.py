"""Imports: an export comes back whole, what is hostile or broken is refused, and nothing is lost."""

import io
import json
import os
import re
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from discoclaw.core import merge
from discoclaw.core.draft import Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref, record_of_json
from discoclaw.core.history import History
from discoclaw.core.merge import MergeContext
from discoclaw.core.times import iso_ms
from discoclaw.memory.exchange import files, histories, load, take
from discoclaw.memory.exchange.export import export_json, export_objects, unpack_objects
from discoclaw.memory.exchange.histories import Records, records_of
from discoclaw.memory.exchange.load import Imported, Items, load_bytes, load_file
from discoclaw.memory.exchange.take import records_for
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import graph, text
from tests.core.test_event import sealed_event, sealed_line
from tests.examples import FEW
from tests.memory.kit import ANN, NOW, durable_of, fingerprint, heard, ledger_of, refusal, remember
from tests.memory.replicas import HISTORIES, STATED, STEPS, Replica, Step, pictures

DAY = 86_400_000
KEY = "sk-ant-abcdefghijklmnopqrstuvwxyz0123456789"


def as_json(history: History, *, history_too: bool = True, subject: str = ANN) -> bytes:
    return export_json(history, subject, history_too=history_too, now_ms=NOW)


def document(**fields: Any) -> bytes:
    value = {"format": "discoclaw-memory", "version": 1, "subject": ANN, **fields}
    return json.dumps(value).encode()


def memories(*entries: Any, **fields: Any) -> bytes:
    return document(memories=list(entries), **fields)


def noted(text: str, kind: str = "fact", **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "text": text, "source": {"type": "manual"}, **fields}


def zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def ids(records: Any) -> list[str]:
    return [record.id for record in records]


def two_branches() -> Replica:
    ann = Replica()
    ann.remember("likes tea", "preference", marked="private")
    ann.remember("has a cat", origin=heard(evidence="my cat"))
    ann.branch("coding", "the programmer")
    ann.remember("uses vim", "tool")
    return ann


def from_folder(history: History) -> Imported:
    with tempfile.TemporaryDirectory() as folder:
        unpack_objects(export_objects(history), Path(folder) / "out")
        return load_file(Path(folder) / "out")


FORMATS: dict[str, Callable[[History], Imported]] = {
    "json": lambda history: load_bytes("memories.json", as_json(history)),
    "zip": lambda history: load_bytes("memory.zip", export_objects(history)),
    "folder": from_folder,
}
"""What an export becomes on its way back in."""


class TestRoundTrips:
    @pytest.mark.parametrize("form", FORMATS)
    @FEW
    @given(history=HISTORIES)
    def test_into_an_empty_memory_comes_the_identical_history(self, form: str, history: History) -> None:
        new = Replica(NOW + DAY)
        report = new.take_in(FORMATS[form](history))
        assert report.records == len(history.records)
        assert [record.to_json() for record in new.history.records] == [
            record.to_json() for record in history.records
        ]
        assert durable_file.render(new.history.shown()) == durable_file.render(history.shown())
        assert pictures(new.history) == pictures(history)

    @pytest.mark.parametrize("form", FORMATS)
    @FEW
    @given(history=HISTORIES, steps=STEPS)
    def test_a_second_time_adds_nothing(self, form: str, history: History, steps: list[Step]) -> None:
        ann = Replica(NOW + DAY).act(steps)
        ann.take_in(FORMATS[form](history))
        before = ann.history.records
        assert ann.take_in(FORMATS[form](history)).nothing
        assert ann.history.records == before

    @given(shared=STEPS, here=STEPS, there=STEPS)
    def test_two_replicas_come_to_say_the_same(
        self, shared: list[Step], here: list[Step], there: list[Step]
    ) -> None:
        origin = Replica().act(shared)
        one = Replica(NOW + DAY, origin.history.records).act(here)
        other = Replica(NOW + DAY + 1, origin.history.records).act(there)
        of_one, of_other = as_json(one.history), as_json(other.history)
        one.take_in(load_bytes("b.json", of_other))
        other.take_in(load_bytes("a.json", of_one))
        assert pictures(one.history) == pictures(other.history)
        assert not {*ids(origin.history.records)} - {*ids(one.history.records)}

    @given(here=STEPS, there=STEPS)
    @FEW
    def test_no_record_of_ours_is_lost_and_one_ref_says_what_was_done(
        self, here: list[Step], there: list[Step]
    ) -> None:
        ann = Replica().act([("add", 0, "ours"), *here])
        before = ann.history
        content = load_bytes("b.json", as_json(Replica(NOW + 7).act([("add", 3, "theirs"), *there]).history))
        records, report = records_for(content, before, now_ms=ann.now, max_items=200, origin=STATED)
        assert {*ids(before.records)} <= {*ids(History([*before.records, *records]).records)}
        union = records[-1]
        assert isinstance(union, Ref)
        assert (union.action, union.branch) == ("union", "")
        assert union.metadata == {"by": "import", "records": report.records}
        assert report.records == len(records) - 1
        whole = History([*before.records, *records])
        assert whole.shown().updated_at == whole.branches.last_ms > before.branches.last_ms

    def test_replicas_that_know_the_same_fall_silent(self) -> None:
        one, other = two_branches(), Replica(NOW + 5)
        other.remember("plays chess")
        one.take_in(load_bytes("b.json", as_json(other.history)))
        other.take_in(load_bytes("a.json", as_json(one.history)))
        one.take_in(load_bytes("b.json", as_json(other.history)))
        before = one.history.records
        assert one.take_in(load_bytes("b.json", as_json(other.history))).nothing
        assert one.history.records == before

    def test_our_own_ledger_and_data_folder_can_be_read_too(self, tmp_path: Path) -> None:
        history = two_branches().history
        lines = b"".join(encode(record) for record in history.records)
        (tmp_path / "memory" / "ledger").mkdir(parents=True)
        (tmp_path / "memory" / "durable").mkdir()
        (tmp_path / "memory" / "ledger" / f"{ANN}.jsonl").write_bytes(lines)
        (tmp_path / "memory" / "durable" / "123.json").write_bytes(durable_file.render(history.shown()))
        for imported in (load_file(tmp_path), load_bytes(f"{ANN}.jsonl", lines)):
            content = imported.content("123")
            assert isinstance(content, Records)
            assert content.records == history.records


def encode(record: Record) -> bytes:
    return (json.dumps(record.to_json(), ensure_ascii=False) + "\n").encode()


class TestIntoTheStore:
    async def test_a_union_is_shown_at_once_and_after_a_start_and_one_of_the_future_is_refused(
        self, memory: Memory, restart: Callable[[], Memory], root: Path
    ) -> None:
        def taken(replica: Replica, at: int) -> Callable[..., Any]:
            imported = load_bytes("b.json", as_json(replica.history))
            return lambda history, now, most: records_for(
                imported, history, now_ms=at, max_items=most, origin=STATED
            )

        await memory.change(ANN, "why", remember("likes tea"))
        before, ahead = fingerprint(root), Replica(NOW + 400 * DAY)
        ahead.remember("from the future")
        with pytest.raises(Refused, match="which is in the future; set the clock right"):
            await memory.act(ANN, taken(ahead, NOW))
        assert fingerprint(root) == before
        other = two_branches()
        await memory.act(ANN, taken(other, other.now))
        for later in (memory, restart()):
            assert set((await later.branches(ANN)).all) == {"main", "coding"}
            assert len((await later.view(ANN, "main")).items) == 3
        loaded = read(ledger_of(memory))
        assert not loaded.damage
        assert durable_of(memory).read_bytes() == durable_file.render(loaded.history.shown())


class TestWhatWasErased:
    def test_records_up_to_then_are_left_out_and_counted_and_what_followed_is_no_damage(
        self, tmp_path: Path
    ) -> None:
        ann = two_branches()
        old = len(ann.history.records)
        erased_at = ann.history.branches.last_ms
        ann.now = erased_at + 1
        ann.remember("plays chess")
        new = Replica(ann.now)
        report = new.take_in(load_bytes("a.json", as_json(ann.history)), erased_at=erased_at)
        assert (report.erased, report.commits) == (old, 1)
        assert [item.text for item in new.history.view(new.history.branch("coding").head).active()] == [
            "plays chess"
        ]
        path = tmp_path / "ledger.jsonl"
        path.write_bytes(b"".join(encode(record) for record in new.history.records))
        assert read(path).damage == ()
        assert new.take_in(load_bytes("a.json", as_json(ann.history)), erased_at=erased_at).nothing

    @pytest.mark.parametrize("again", ["merged", "changed", "taken back"])
    def test_what_repeats_it_later_is_left_out_too(self, again: str) -> None:
        ann = two_branches()
        ann.switch("main")
        erased_at = ann.now = ann.history.branches.last_ms
        act = MergeContext("main", STATED, ann.now + 60_000)
        if again == "merged":
            ann.append(*filter(None, [merge.merge(ann.history, "coding", act).commit]))
        elif again == "changed":
            draft = ann.draft()
            draft.deprecate(next(iter(draft.items.values())), STATED)
            ann.keep(draft)
        else:
            ann.append(*filter(None, [merge.revert(ann.history, "main", act).commit]))
            ann.append(
                *filter(None, [merge.revert(ann.history, "main", replace(act, now_ms=ann.now)).commit])
            )
        ann.remember("plays chess")
        new = Replica(ann.now)
        report = new.take_in(load_bytes("a.json", as_json(ann.history)), erased_at=erased_at)
        assert (report.commits, [item.text for item in new.history.shown().active()]) == (1, ["plays chess"])
        kept = str([record.to_json() for record in new.history.records])
        assert not any(old in kept for old in ("likes tea", "has a cat", "uses vim"))

    def test_when_all_of_it_was_erased_nothing_comes_in(self) -> None:
        new = Replica(NOW + DAY)
        for history_too in (True, False):
            content = as_json(two_branches().history, history_too=history_too)
            report = new.take_in(load_bytes("a.json", content), erased_at=NOW + DAY)
            assert report.nothing
            assert report.erased > 0
        assert new.history.records == ()


class TestMemoriesWithoutHistory:
    def test_everything_the_export_says_of_an_item_comes_back(self) -> None:
        ann = Replica()
        ann.remember("likes tea", "preference", tags=["drinks"], marked="private")
        ann.remember("has a cat", origin=heard(evidence="my cat"))
        draft = ann.draft()
        one, other = draft.items.values()
        draft.link(one, other, STATED)
        draft.deprecate(other, STATED)
        ann.keep(draft)
        new = Replica(NOW + DAY)
        new.take_in(load_bytes("m.json", as_json(ann.history, history_too=False)))
        assert list(new.history.shown().items.values()) == list(ann.history.shown().items.values())

    @given(history=HISTORIES)
    def test_a_second_time_adds_nothing(self, history: History) -> None:
        ann = Replica(NOW + DAY)
        content = as_json(history, history_too=False)
        ann.take_in(load_bytes("m.json", content))
        before = ann.history.records
        assert ann.take_in(load_bytes("m.json", content)).nothing
        assert ann.history.records == before

    def test_of_an_item_on_several_branches_the_current_one_s_words_count(self) -> None:
        ann = two_branches()
        draft = ann.draft()
        tea = next(iter(draft.items.values()))
        draft.upsert("preference", "likes coffee", STATED, given_id=tea.id)
        ann.keep(draft)
        new = Replica(NOW + DAY)
        new.take_in(load_bytes("m.json", as_json(ann.history, history_too=False)))
        assert new.history.shown().items[tea.id].text == "likes coffee"
        assert len(new.history.shown().items) == 3

    def test_what_is_held_stays_and_other_words_become_a_conflict(self) -> None:
        ann = Replica()
        ann.remember("likes tea")
        (held,) = ann.history.shown().items.values()
        content = memories(noted("likes coffee", id=held.id, sensitivity="private"))
        report = ann.take_in(load_bytes("m.json", content))
        view = ann.history.shown()
        assert (report.items, report.conflicts) == (0, 1)
        assert [item.text for item in view.items.values()] == ["likes tea"]
        assert [(one.item_id, one.text, one.sensitivity) for one in view.conflicts] == [
            (held.id, "likes coffee", "private")
        ]

    @pytest.mark.parametrize(
        ("here", "there", "then"),
        [
            ("private", {"sensitivity": "normal"}, "private"),
            ("normal", {"sensitivity": "private"}, "private"),
            (None, {"source": {"type": "discord", "channelId": "1", "messageId": "2"}}, "private"),
        ],
        ids=["here", "there", "said who knows where"],
    )
    def test_privacy_is_only_raised(self, here: Any, there: dict[str, Any], then: str) -> None:
        ann = Replica()
        if here:
            ann.remember("likes tea", marked=here)
        ann.take_in(load_bytes("m.json", memories(noted("likes tea", **there))))
        assert [item.facets.sensitivity for item in ann.history.shown().items.values()] == [then]

    def test_stated_is_what_the_file_calls_so_and_who_brings_it_may_state(self) -> None:
        def becomes(brings: Any, **fields: str) -> str:
            ann = Replica(NOW + DAY)
            ann.take_in(load_bytes("m.json", memories(noted("has a cat", **fields))), origin=Origin(brings))
            (item,) = ann.history.shown().items.values()
            return item.facets.author

        assert becomes("stated") == becomes("stated", author="stated") == "stated"
        assert becomes("stated", author="inferred") == becomes("inferred", author="stated") == "inferred"

    def test_secrets_are_taken_out(self) -> None:
        ann = Replica(NOW + DAY)
        entry = noted(f"the key is {KEY}", tags=[KEY[:40]], subject=KEY, predicate="is", object=KEY)
        named = noted(f"a key is {KEY}", key=KEY)
        report = ann.take_in(load_bytes("m.json", memories(entry, named)))
        assert (report.redacted, len(report.rejected)) == (1, 1)
        assert "its scope, key or category looks like a secret key" in report.rejected[0]
        assert KEY[:40] not in report.rejected[0]
        assert KEY[:40] not in json.dumps([record.to_json() for record in ann.history.records])
        assert "[REDACTED Anthropic key]" in next(iter(ann.history.shown().items.values())).text

    def test_what_can_not_be_a_memory_is_rejected_by_name_and_the_rest_comes_in(self) -> None:
        entries = [
            noted("x" * 1001),
            {"text": "without kind"},
            noted("of no kind", "hunch"),
            noted(" \u2028"),
            noted("odd", sensitivity="secret"),
            noted("odder", author="me"),
            noted("oddest", confidence=7),
            noted("old", status="gone"),
            noted("fine", id="x"),
            noted("fine too", id="x"),
            noted("fine three", id="x" * 300),
        ]
        ann = Replica(NOW + DAY)
        report = ann.take_in(load_bytes("m.json", memories(*entries)))
        assert report.items == 1
        assert len(report.rejected) == 10
        assert report.rejected[0].startswith("m.json, memory 1 (“xxx")
        assert (
            "a memory can have at most 1000 characters, and this one has 1001; please shorten it"
            in report.rejected[0]
        )
        assert report.rejected[1] == (
            'm.json, memory 2 (“without kind”): an item needs a "kind" and a "text"'
        )
        assert report.rejected[-2] == "m.json, memory 10 (“fine too”): its id x is there twice"

    def test_what_is_held_is_never_traded_for_what_comes(self) -> None:
        ann = Replica(NOW + DAY)
        ann.remember("held one")
        ann.remember("held two")
        entries = [
            noted("deprecated", status="deprecated", updatedAt=NOW),
            noted("older", updatedAt=NOW - 2),
            noted("newer", updatedAt=NOW - 1),
        ]
        report = ann.take_in(load_bytes("m.json", memories(*entries)), max_items=3)
        assert [item.text for item in ann.history.shown().items.values()] == ["held one", "held two", "newer"]
        assert [why.partition("): ")[2] for why in report.rejected] == [
            "there is no room for more than 3 memories; forget some first"
        ] * 2

    def test_one_memory_is_asked_about_once(self) -> None:
        ann = Replica()
        ann.take_in(load_bytes("m.json", memories(noted("likes tea", key="drink"))))
        many = [noted(f"likes drink {number}", id=f"a{number}", key="drink") for number in range(300)]
        content = memories(*many)
        report = ann.take_in(load_bytes("m.json", content))
        assert (report.items, report.conflicts, report.known, len(report.rejected)) == (0, 1, 0, 299)
        assert "another memory of the file takes its place" in report.rejected[0]
        assert [one.text for one in ann.history.shown().conflicts] == ["likes drink 0"]
        assert ann.take_in(load_bytes("m.json", content)).nothing

    def test_what_was_forgotten_comes_back_at_the_person_s_word_only(self) -> None:
        ann = Replica(NOW + DAY)
        ann.remember("likes tea")
        (held,) = ann.history.shown().items.values()
        draft = ann.draft()
        draft.remove(held, STATED)
        ann.keep(draft)
        content = load_bytes("m.json", memories(noted("likes tea", updatedAt=NOW)))
        assert ann.take_in(content, origin=Origin("inferred")).nothing
        assert ann.take_in(content, origin=STATED).items == 1

    def test_times_are_no_lies_about_the_future(self) -> None:
        ann = Replica(NOW)
        entry = noted("likes tea", createdAt=NOW + 9 * DAY, updatedAt=NOW + 9 * DAY)
        ann.take_in(load_bytes("m.json", memories(entry, noted("undated"))))
        for item in ann.history.shown().items.values():
            assert item.created_at == item.updated_at == ann.now


def test_the_file_or_else_whoever_brings_it_says_of_whom_it_speaks(tmp_path: Path) -> None:
    imported = load_bytes("m.json", memories(noted("x")))
    assert list(imported.subjects) == ["123"]
    assert imported.content() is imported.content("123")
    with pytest.raises(Refused, match="holds memories of 123, and none of 456"):
        imported.content("456")
    nobodys = load_bytes("m.zip", export_objects(two_branches().history))
    assert list(nobodys.subjects) == [None]
    assert nobodys.content("456") is nobodys.content()
    (tmp_path / "durable").mkdir()
    for user in ("1", "2"):
        (tmp_path / "durable" / f"{user}.json").write_text('{"version": 1, "items": []}')
    with pytest.raises(Refused, match="of several people; name one of them: 1, 2"):
        load_file(tmp_path).content()


SERVER = {"type": "discord", "channelId": "70", "messageId": "80", "guildId": "90"}


class TestFilesOfTheTypeScriptBot:
    def folder(self, root: Path, version: int) -> Path:
        (root / "durable").mkdir(parents=True)
        (root / "rolling").mkdir()
        (root / "other").mkdir()
        items = [
            {**noted("likes tea"), "id": "durable-00000001", "hitCount": 4, "createdAt": 5, "updatedAt": 6},
            {**noted("has a cat"), "id": "durable-00000002", "source": SERVER},
            {"kind": "fact"},
        ]
        value = {"version": version, "updatedAt": 9, "items": items}
        (root / "durable" / "123.json").write_text(json.dumps(value))
        (root / "durable" / "123.json.v1-20260203").write_text("an old copy")
        (root / "durable" / ".123.json.tmp").write_text("{")
        (root / "rolling" / "discord:dm:123.json").write_text(
            json.dumps({"summary": f"they talked of {KEY}", "updatedAt": 1, "turns": 3})
        )
        (root / "other" / "link.json").symlink_to("/etc/passwd")
        return root

    @pytest.mark.parametrize(("version", "below"), [(1, "."), (2, "memory"), (2, "data/memory")])
    def test_a_data_folder_gives_everybody_s_items_and_the_summaries(
        self, tmp_path: Path, version: int, below: str
    ) -> None:
        self.folder(tmp_path / below, version)
        imported = load_file(tmp_path)
        assert imported.summaries == {"discord:dm:123": "they talked of [REDACTED Anthropic key]"}
        content = imported.content("123")
        assert isinstance(content, Items)
        assert [item.text for item in content.items] == ["likes tea", "has a cat"]
        assert len(content.rejected) == 1
        assert 'an item needs a "kind" and a "text"' in content.rejected[0]
        ann = Replica(NOW)
        ann.take_in(imported)
        held = list(ann.history.shown().items.values())
        assert [(item.id, item.facets.author) for item in held] == [
            ("durable-00000001", "stated"),
            ("durable-00000002", "inferred"),
        ]
        assert (held[0].created_at, held[0].updated_at) == (5, 6)

    def test_a_zip_of_it_is_the_same(self, tmp_path: Path) -> None:
        root = self.folder(tmp_path / "data", 2)
        files = {
            f"discoclaw/{path.relative_to(root).as_posix()}": path.read_bytes()
            for path in root.rglob("*.json")
            if not path.is_symlink()
        }
        assert load_bytes("data.zip", zipped(files)).content("123") == replace_names(
            load_file(root).content("123"), "data: ", "data.zip: discoclaw/"
        )

    def test_a_single_durable_file_is_named_after_its_person(self, tmp_path: Path) -> None:
        root = self.folder(tmp_path, 2)
        assert list(load_file(root / "durable" / "123.json").subjects) == ["123"]
        content = (root / "durable" / "123.json").read_bytes()
        assert list(load_bytes("upload.json", content).subjects) == [None]

    UNREADABLE = (
        ("durable/123.json", b"{", "durable/123.json is not JSON"),
        ("durable/123.json", b'{"version": 9, "items": []}', "is of a newer version"),
        ("durable/123.json", b'{"items": []}', 'is not a durable file: it has no numeric "version"'),
        ("durable/a b.json", b'{"version": 1, "items": []}', "is not named after a person; rename it"),
        ("rolling/x.json", b'{"summary": 5}', "rolling/x.json is not a rolling summary; correct it"),
        (f"rolling/{'x' * 201}.json", b'{"summary": ""}', "is not named after a conversation; move it"),
        ("rolling/a b.json", b'{"summary": ""}', "is not named after a conversation; move it"),
        ("ledger/user-1.jsonl", b"{}\n", "ledger/user-1.jsonl, line 1: .*; repair it where"),
    )

    def test_a_file_that_can_not_be_read_is_named(self, tmp_path: Path) -> None:
        for number, (name, content, why) in enumerate(self.UNREADABLE):
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True)
            path.write_bytes(content)
            with pytest.raises(Refused, match=why):
                load_file(tmp_path / str(number))


def replace_names(content: Any, before: str, after: str) -> Any:
    return replace(content, rejected=tuple(why.replace(before, after) for why in content.rejected))


class TestAFolderOfObjectsThatWasTouched:
    @pytest.fixture
    def files(self) -> dict[str, bytes]:
        return unzipped(export_objects(two_branches().history))

    def refused(self, files: Mapping[str, bytes], why: str) -> None:
        with pytest.raises(Refused, match=why):
            load_bytes("memory.zip", zipped(files))

    def test_every_single_file_counts(self, files: dict[str, bytes]) -> None:
        for name in files:
            if name != "MEMORY.md":  # that one is for people
                self.refused({key: value for key, value in files.items() if key != name}, "export it again")

    def test_every_changed_field_is_found(self, files: dict[str, bytes]) -> None:
        for name in [name for name in files if name.startswith(("events/", "commits/"))]:
            value = json.loads(files[name])
            for field in value:
                changed = json.dumps({**value, field: 5}).encode()
                self.refused({**files, name: changed}, "(does not verify|has no list|names the event)")

    def test_one_large_event_in_many_commits_is_not_a_small_history(self) -> None:
        texts = {str(number): "x" * 20_000 for number in range(100)}
        event = Event(
            event_type="add", subject="a", predicate="b", object="c", timestamp=iso_ms(NOW), ext={"x": texts}
        )
        commit = Commit(
            branch="main", events=(event,), message="", parent_id=None, timestamp=iso_ms(NOW)
        ).to_json()
        files = {
            f"events/{event.id}.json": json.dumps(event.to_json()).encode(),
            f"commits/{commit['id']}.json": json.dumps({**commit, "events": [event.id] * 200}).encode(),
            "refs.json": b"{}",
            "branches.json": b"{}",
            "HEAD": b"main",
        }
        self.refused(files, "holds a history of more than 256 MiB; import less")

    def test_events_in_no_commit_are_left_out_and_that_is_said(self, files: dict[str, bytes]) -> None:
        stray = Event(event_type="add", subject="a", predicate="b", object="c", timestamp=iso_ms(NOW))
        files[f"events/{stray.id}.json"] = json.dumps(stray.to_json()).encode()
        report = Replica(NOW + DAY).take_in(load_bytes("memory.zip", zipped(files)))
        assert report.notes == ("events that are in no commit were left out: 1",)

    REFS = (
        ({}, "is not of the format"),
        ({"format": "discoclaw-objects", "version": 2}, "is of version 2.*import it with a newer"),
        ({"format": "discoclaw-objects", "version": True}, 'has no numeric "version"'),
        ({"format": "discoclaw-objects", "version": 1, "refs": 5}, 'has no list of "refs"'),
        ({"format": "discoclaw-objects", "version": 1, "refs": [5]}, "ref 1 does not verify"),
        (
            {"format": "discoclaw-objects", "version": 1, "refs": [{"type": "tag"}]},
            "is of a newer version",
        ),
        ({"format": "discoclaw-objects", "version": 1, "refs": []}, "disagree about the"),
    )

    def test_refs_that_are_none_are_refused(self, files: dict[str, bytes]) -> None:
        for refs, why in self.REFS:
            self.refused({**files, "refs.json": json.dumps(refs).encode()}, why)


class TestHostileZips:
    def entry(self, name: str, content: bytes = b"{}", **fields: Any) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for field, value in fields.items():
                setattr(info, field, value)
            archive.writestr(info, content)
        return packed.getvalue()

    def hostile(self) -> Iterator[tuple[bytes, str]]:
        """Zip files, and why each is refused."""
        for name in ("../a.json", "/a.json", "events/../../a", "C:/a.json", "events\\a.json", "events//a"):
            yield self.entry(name), "points out of the zip file; make it again with relative names"
        yield self.entry("events/a#.json").replace(b"a#.json", b"a\0.json"), "has a NUL in its name"
        for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR):
            link = self.entry("events/a.json", b"/etc/passwd", external_attr=(kind | 0o777) << 16)
            yield link, "is a link or device; put a copy"
        packed = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(packed, "w") as archive:
            warnings.simplefilter("ignore")
            for content in ("1", "2"):
                archive.writestr("events/a.json", content)
        yield packed.getvalue(), r"a\.json' is there twice"
        bomb = self.entry("events/a.json", b"0" * (files.MOST_BYTES + 1))
        assert len(bomb) < 100_000
        yield bomb, "is larger than 64 MiB"
        many = b"PK\x03\x04" + b"PK\x01\x02" * (files.MOST_FILES + 1)
        yield many, "holds more than 201,000 files"
        encrypted = bytearray(self.entry("events/a.json"))
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            encrypted[encrypted.index(mark) + offset] |= 1
        yield bytes(encrypted), "is encrypted"

    def test_each_is_refused_with_its_reason(self) -> None:
        for content, why in self.hostile():
            assert re.search(why, refusal(load_bytes, "evil.zip", content)), why

    def test_many_that_are_a_bomb_together_are_not_unpacked(self) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(5):
                archive.writestr(f"events/{number}.json", b"0" * (60 * files.MIB))
        with pytest.raises(Refused, match="unpacks to more than 256 MiB"):
            load_bytes("evil.zip", packed.getvalue())

    def test_a_bomb_that_lies_about_its_size_is_cut_short(self) -> None:
        content = self.entry("durable/1.json", b"0" * 3_000_000)
        told = (3_000_000).to_bytes(4, "little")
        assert content.count(told) == 2
        with pytest.raises(Refused, match="cannot be unpacked"):
            load_bytes("evil.zip", content.replace(told, (100).to_bytes(4, "little")))

    def test_one_cut_short_is_refused(self) -> None:
        content = self.entry("events/a.json")
        told = {end: refusal(load_bytes, "memory.zip", content[:end]) for end in range(2, 122)}
        assert [end for end, said in told.items() if "memory.zip" not in said] == []

    def test_bits_that_flip_never_do_anything_but_refuse(self) -> None:
        history = two_branches().history
        content = export_objects(history)
        for position in range(0, len(content), 11):
            flipped = bytearray(content)
            flipped[position] ^= 0x55
            try:
                told = load_bytes("memory.zip", bytes(flipped)).content()
            except Refused:
                continue
            assert isinstance(told, Records)
            assert told.records == history.records


class TestHostileFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        unpack_objects(export_objects(two_branches().history), tmp_path / "out")
        return tmp_path / "out"

    def test_a_link_in_place_of_a_part_is_refused(self, folder: Path, tmp_path: Path) -> None:
        event = next((folder / "events").iterdir()).name
        for name in ("events", "HEAD", "refs.json", f"events/{event}"):
            (folder / name).rename(tmp_path / "elsewhere")
            (folder / name).symlink_to(tmp_path / "elsewhere")
            with pytest.raises(Refused, match=f"out/{name} is a symbolic link; put a copy"):
                load_file(folder)
            (folder / name).unlink()
            (tmp_path / "elsewhere").rename(folder / name)

    def test_a_pipe_does_not_hang(self, folder: Path, tmp_path: Path) -> None:
        (folder / "HEAD").unlink()
        os.mkfifo(folder / "HEAD")
        with pytest.raises(Refused, match="out/HEAD is not a regular file"):
            load_file(folder)
        os.mkfifo(tmp_path / "memories.json")
        with pytest.raises(Refused, match=r"memories\.json is not a regular file"):
            load_file(tmp_path / "memories.json")

    def test_folders_without_end_are_not_followed_and_nothing_known_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(Refused, match="there is no file or folder"):
            load_file(tmp_path / "nothing.json")
        (tmp_path / "notes.txt").write_text("hello")
        deep = tmp_path.joinpath(*["memory"] * 60)
        deep.mkdir(parents=True)
        with pytest.raises(Refused, match=r"holds nothing to import; import a memories\.json"):
            load_file(tmp_path)

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path: Path, folder: Path) -> None:
        for path in (tmp_path / "large.json", folder / "refs.json"):
            with path.open("wb") as file:
                file.truncate(files.MOST_BYTES + 1)
        for path in (tmp_path / "large.json", folder):
            with pytest.raises(Refused, match="is larger than 64 MiB, which is the most"):
                load_file(path)


HOSTILE_JSON = [
    (b"", "is not JSON"),
    (b"\xff\xfe", "is not JSON"),
    (b"hello", "is not JSON"),
    (b"5", "cannot be imported"),
    (b"[]", "cannot be imported"),
    (b"{}", "cannot be imported"),
    (b'{"memories": []}', 'has another "format"'),
    (b'{"format": ["discoclaw-memory"]}', 'has another "format"'),
    (b'{"format": "discoclaw-memory", "version": 1, "version": 1}', "has the key 'version' twice"),
    (b'{"x": NaN}', "holds NaN, which is not JSON"),
    (b'{"x": -Infinity}', "holds -Infinity, which is not JSON"),
    (b'{"x": 1e999}', "holds the number 1e999, which is too large"),
    (b"[" * 100_000, "is nested too deep"),
    (b'{"x":' * 100_000, "is nested too deep"),
    (b"1" * 5_000, "is not JSON"),
    (
        document(version=2),
        "is of version 2, and this discoclaw knows up to 1; import it with a newer",
    ),
    (document(version="1"), 'has no numeric "version"'),
    (document(version=0), 'has no numeric "version"'),
    (document(subject=5), '"subject" that is not a text'),
    (document(subject="user-../x"), "is not named after a person"),
    (document(), 'has no list of "memories"'),
    (document(memories={}), 'has no list of "memories"'),
    (document(history={}), '"history" that is not a list'),
    (document(memories=[], branches=5), '"branches" that are not a list'),
    (document(memories=[], branches=["main"]), '"branches" that are not a list'),
    (memories(5), "memory 1 is not a JSON object; correct it or leave it out"),
    (memories(noted("x"), noted("x", tags="y")), "memory 2 has a wrong type of 'tags'"),
    (memories(noted("x", tags=[5])), "memory 1 has 'tags' that are not texts"),
    (memories(noted("x", links=[{}])), "memory 1 has 'links' that are not texts"),
    (memories(noted("x", confidence="high")), "wrong type of 'confidence'"),
    (memories(noted("x", confidence=True)), "wrong type of 'confidence'"),
    (memories(noted("x", createdAt=1.5)), "wrong type of 'createdAt'"),
    (memories(noted("x", branch=None)), "wrong type of 'branch'"),
    (memories(noted("x", source="manual")), "wrong type of 'source'"),
    (memories(noted("x", sensitivity=5)), "wrong type of 'sensitivity'"),
    (document(history=[5]), "history record 1 does not verify: a commit is not"),
    (document(history=[{"type": "tag"}]), "history record 1 is of a newer version"),
]


class TestHostileJson:
    def test_it_is_refused_with_a_name_and_a_reason(self) -> None:
        told = {(content, why): refusal(load_bytes, "m.json", content) for content, why in HOSTILE_JSON}
        assert {
            why: said for (_, why), said in told.items() if not re.search(f"^m\\.json.*{why}", said)
        } == {}

    def test_more_memories_than_anybody_has_are_refused(self) -> None:
        for content in (
            memories(*[0] * (load.MOST_ITEMS + 1)),
            json.dumps({"version": 1, "items": [0] * (load.MOST_ITEMS + 1)}).encode(),
        ):
            with pytest.raises(Refused, match="holds 100,001 memories, and 100,000 are the most"):
                load_bytes("m.json", content)

    def test_more_records_than_anybody_has_are_refused(self) -> None:
        record = Ref(action="union", branch="", timestamp=iso_ms(NOW))
        with pytest.raises(Refused, match="there are 200,001 records, and 200,000 are the most"):
            records_of([("one", record)] * (histories.MOST_RECORDS + 1))

    def test_a_file_that_is_too_large_is_refused(self) -> None:
        with pytest.raises(Refused, match="is larger than 64 MiB"):
            load_bytes("m.json", b" " * (files.MOST_BYTES + 1))


def sealed(fields: dict[str, Any], *events: dict[str, Any]) -> Any:
    """A commit that verifies, whatever its fields are."""
    return json.loads(sealed_line(fields, [sealed_event(one) for one in events]))


def asks(text: str, **more: str) -> dict[str, Any]:
    """The `ext` of an event that leaves a question, or settles it."""
    return {"item": {"id": "a"}, "conflict": {"text": text, **more}}


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


HARMFUL = [
    (sealed({"branch": "../x"}), "on a branch named '../x'"),
    (sealed({"branch": ""}), "on a branch named ''"),
    (sealed({"branch": "head"}), "on a branch named 'head'"),
    (sealed({"branch": "Main"}), "on a branch named 'Main'"),  # nobody could name it
    (sealed({"branch": "a:b\n"}), "on a branch named 'a:b"),
    (sealed({"branch": "x" * 500}), "on a branch named 'x{60}',"),
    (sealed({"timestamp": "1969-12-31T00:00:00Z"}), "which is before 1970"),
    (sealed({"metadata": {"x": nested(100)}}), "is nested more than 40 deep"),
    (sealed({}, {"ext": {"item": {"id": "a\nb"}}}), "names its item 'a\\\\nb', which is not an id"),
    (sealed({}, {"ext": {"x": nested(100)}}), "is nested more than 40 deep"),
    (
        sealed({}, {"timestamp": "0001-01-01"}),
        "an event is malformed: 0001-01-01 is not a valid time",
    ),
    (
        Ref(action="create", branch="x", persona="a\nb", timestamp=iso_ms(NOW)).to_json(),
        "has a persona that is too long or not one line",
    ),
    (
        Ref(action="switch", branch="", timestamp=iso_ms(NOW)).to_json(),
        "on a branch named ''",
    ),
]


class TestHostileHistories:
    def test_what_verifies_and_would_do_harm_is_refused(self) -> None:
        told = [(why, refusal(load_bytes, "m.json", document(history=[record]))) for record, why in HARMFUL]
        assert [
            (why, said) for why, said in told if not re.search(rf"m\.json, history record 1.*{why}", said)
        ] == []

    def test_every_changed_field_is_found(self) -> None:
        records = [record.to_json() for record in two_branches().history.records]
        for number, record in enumerate(records):
            for field in record:
                changed = [*records[:number], {**record, field: "x"}, *records[number + 1 :]]
                with pytest.raises(
                    Refused, match=f"history record {number + 1} (does not verify|is of a newer)"
                ):
                    load_bytes("m.json", document(history=changed))

    def test_one_id_with_two_contents_is_refused(self) -> None:
        one, other = sealed({"message": "one"}), sealed({"message": "other"})
        assert one["id"] == other["id"]
        with pytest.raises(Refused, match=r"history record 2 and m\.json, history record 1 claim the id"):
            load_bytes("m.json", document(history=[one, other]))
        assert load_bytes("m.json", document(history=[one, one])).content()

    def test_a_commit_that_is_here_with_different_content_is_refused(self) -> None:
        ann = Replica()
        ann.take_in(load_bytes("m.json", document(history=[sealed({"message": "one"})])))
        with pytest.raises(Refused, match="is here already with different content"):
            ann.take_in(load_bytes("m.json", document(history=[sealed({"message": "other"})])))

    def test_what_metadata_may_not_say_counts_as_not_said(self) -> None:
        wrong: list[Any] = [["a"], {"a": 1}, 5, True]
        assert [one for one in wrong if not self.is_ignored(one)] == []

    def is_ignored(self, wrong: Any) -> bool:
        names = ("merged", "picked", "reverts", "restores", "from", "by", "message")
        first = sealed({}, {"object": "tea"})
        forged = sealed(
            {
                "parent_id": first["id"],
                "timestamp": "2026-02-04T00:00:00.000Z",
                "metadata": dict.fromkeys(names, wrong),
            },
            {"object": "chess"},
        )
        ann = Replica(NOW + 9 * DAY)
        return (
            ann.take_in(load_bytes("m.json", document(history=[first, forged]))).commits == 2
            and forged["id"] in text.log(ann.history)
            and graph.mermaid(ann.history).count("commit id") == 2
            and merge.last_change(ann.history, "main").id == forged["id"]
        )

    def test_merged_parents_in_a_circle_do_not_count(self) -> None:
        first = sealed({}, {"object": "tea"})
        second = sealed({"parent_id": first["id"], "timestamp": "2026-02-04T00:00:00.000Z"})
        forged = sealed({"metadata": {"merged": second["id"]}}, {"object": "tea"})
        assert forged["id"] == first["id"]
        ann = Replica(NOW + 9 * DAY)
        assert ann.take_in(load_bytes("m.json", document(history=[forged, second]))).commits == 2
        assert ids(ann.history.chain(second["id"])) == [first["id"], second["id"]]

    def test_a_history_that_was_cut_is_refused(self) -> None:
        records = [record.to_json() for record in two_branches().history.records]
        imported = load_bytes("m.json", document(history=records[1:]))
        with pytest.raises(Refused, match=r"follows \w+, which is neither in the file nor here"):
            Replica(NOW + DAY).take_in(imported)

    def test_the_newer_part_alone_is_enough_where_the_older_is_known(self) -> None:
        history = two_branches().history
        ann = Replica(NOW + DAY, history.records[:2])
        report = ann.take_in(
            load_bytes("m.json", document(history=[record.to_json() for record in history.records[2:]]))
        )
        assert report.records == len(history.records) - 2
        assert pictures(ann.history) == pictures(history)

    def test_more_branches_than_anybody_has_are_refused(self) -> None:
        refs = [
            Ref(action="create", branch=f"p{number}", timestamp=iso_ms(NOW + number)).to_json()
            for number in range(50)
        ]
        imported = load_bytes("m.json", document(history=refs))
        with pytest.raises(Refused, match="that would be 51 branches, and 50 are the most; delete some"):
            Replica(NOW + DAY).take_in(imported)

    def test_branches_turned_without_end_are_refused(self) -> None:
        refs = [
            Ref(action="switch", branch="main", timestamp=iso_ms(NOW + number)) for number in range(10_001)
        ]
        with pytest.raises(Refused, match="too often to be imported; import less of it"):
            records_of([("one", ref) for ref in refs])

    @pytest.fixture
    def hundredth(self, monkeypatch: pytest.MonkeyPatch) -> range:
        """So many as are too many where a hundredth of the steps is allowed, which grow with their square."""
        monkeypatch.setattr(histories, "MOST_STEPS", histories.MOST_STEPS // 100)
        return range(750)

    @pytest.mark.parametrize(
        "event_type", ["observe", "modify", "forget"], ids=["disputed", "changed", "forgotten"]
    )
    def test_memories_disputed_or_forgotten_without_end_are_refused(
        self, event_type: Any, hundredth: range
    ) -> None:
        many = hundredth
        asked = [{"event_type": "observe", "ext": asks(str(number))} for number in many]
        added = [{"object": str(number)} for number in many]
        again = [{"event_type": event_type, "object": str(number)} for number in many]
        first = {"observe": [], "modify": asked, "forget": added}[event_type]
        then = [*asked, *asked] if event_type == "observe" else again
        # They count in the order of time, however they lie in the file.
        records = [
            record_of_json(sealed({"timestamp": iso_ms(NOW + number)}, *events))
            for number, events in ((1, then), (0, first))
        ]
        with pytest.raises(Refused, match="too often to be imported; import less of it"):
            records_of([("one", record) for record in records])

    def test_questions_that_were_settled_cost_nothing(self, hundredth: range) -> None:
        asked = [
            {"event_type": "observe", "ext": asks(str(number), **how)}
            for number in hundredth
            for how in ({}, {"settled": "keep_old"})
        ]
        assert records_of([("one", record_of_json(sealed({}, *asked)))]).records

    def test_a_branch_with_far_too_many_memories_is_refused(self) -> None:
        events = [{"object": str(number)} for number in range(take.MOST_LIVE + 1)]
        imported = load_bytes("m.json", document(history=[sealed({}, *events)]))
        with pytest.raises(Refused, match="the branch 'main' would have 2,001 memories, and a branch has at"):
            Replica(NOW + DAY).take_in(imported)
        assert Replica(NOW + DAY).take_in(imported, max_items=1_001).commits == 1

    def test_a_secret_in_a_history_is_told(self) -> None:
        record = sealed({}, {"object": KEY})
        report = Replica(NOW + DAY).take_in(load_bytes("m.json", document(history=[record])))
        assert report.notes == (
            "1 of the imported commits hold what looks like a key or token; "
            "a history cannot be changed, so forget those memories, or import without history",
        )


def test_no_limit_is_above_what_python_s_json_can_take() -> None:
    assert histories.DEEPEST < 100
    assert files.MOST_FILES > histories.MOST_RECORDS
