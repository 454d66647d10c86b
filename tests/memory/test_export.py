"""Exports: complete, readable, the same each time, and a folder that appears whole or not at all."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Ref
from discoclaw.core.history import History
from discoclaw.core.item import Facets, item_id
from discoclaw.memory.exchange.export import export_json, export_markdown, export_objects, unpack_objects
from tests.examples import FEW
from tests.memory.child import full_at
from tests.memory.kit import ANN, NOW, fingerprint, heard
from tests.memory.replicas import HISTORIES, STATED, Replica

LATER = NOW + 86_400_000


def story() -> Replica:
    """Two personas; something private, something deprecated, something heard, and a triple."""
    ann = Replica()
    ann.remember("likes tea", "preference", tags=["drinks"])
    ann.remember("has a cat", "fact", heard(evidence="my cat"), marked="private")
    ann.branch("coding", "the programmer")
    triple = ("user", "prefers backend", "Python")
    ann.remember("User prefers backend Python", "tool", facets=Facets(triple=triple, confidence=0.5))
    draft = ann.draft()
    draft.deprecate(next(iter(draft.items.values())), STATED)
    ann.keep(draft, "forgotten by command")
    return ann


def document(history: History, *, history_too: bool = False) -> dict[str, Any]:
    content = export_json(history, ANN, history_too=history_too, now_ms=LATER)
    value: dict[str, Any] = json.loads(content)
    return value


class TestJson:
    def test_every_memory_of_every_branch_is_in_it_private_ones_too(self) -> None:
        content = export_json(story().history, ANN, history_too=False, now_ms=LATER)
        assert content.startswith(b'{\n  "format": "discoclaw-memory",\n'), "people can read it"
        assert content.endswith(b"}\n")
        value = json.loads(content)
        assert (value["version"], value["subject"]) == (1, ANN)
        assert value["exported_at"] == "2026-02-04T16:29:35.000Z"
        assert "history" not in value
        memories = value["memories"]  # two of them are on both branches
        assert [(one["branch"], one["text"], one["status"], one["sensitivity"]) for one in memories] == [
            ("main", "likes tea", "active", "normal"),
            ("main", "has a cat", "active", "private"),
            ("coding", "likes tea", "deprecated", "normal"),
            ("coding", "has a cat", "active", "private"),
            ("coding", "User prefers backend Python", "active", "normal"),
        ]
        triple = [memories[-1][name] for name in ("subject", "predicate", "object", "confidence")]
        assert triple == ["user", "prefers backend", "Python", 0.5]

    def test_an_entry_has_these_fields(self) -> None:
        entry = document(story().history)["memories"][1]
        assert entry == {
            "id": item_id("fact", "has a cat"),
            "branch": "main",
            "subject": "user",
            "predicate": "fact",
            "object": "has a cat",
            "scope": "permanent",
            "confidence": 1.0,
            "timestamp": "2026-02-03T16:31:35.000Z",
            "kind": "fact",
            "text": "has a cat",
            "tags": [],
            "status": "active",
            "source": {"type": "discord", "channelId": "7", "messageId": "8"},
            "createdAt": NOW + 120_000,
            "updatedAt": NOW + 120_000,
            "sensitivity": "private",
            "author": "inferred",
            "key": None,
            "category": "knowledge",
            "links": [],
        }


class TestMarkdown:
    def test_each_branch_has_its_items_by_kind(self) -> None:
        content = export_markdown(story().history, ANN, history_too=False, now_ms=LATER)
        lines = content.decode().splitlines()
        assert [line for line in lines if line.startswith("#")] == [
            "# Memory of user-123",
            "## main",
            *("### preference", "### fact"),
            "## coding (current)",
            *("### preference", "### fact", "### tool"),
        ]
        assert "the programmer" in lines

    def test_an_item_says_what_is_known_of_it(self) -> None:
        content = export_markdown(story().history, ANN, history_too=False, now_ms=LATER)
        (line,) = {one for one in content.decode().splitlines() if "has a cat" in one}
        assert line.startswith(
            "- has a cat (private; inferred; updated 2026-02-03; source discord:7/8; id durable-"
        )

    def test_words_are_no_markup(self) -> None:
        ann = Replica()
        ann.remember("# a heading")
        ann.remember("<script> [link](x) `code` **bold**")
        text = export_markdown(ann.history, ANN, history_too=True, now_ms=LATER).decode()
        assert "\n- \\# a heading (" in text
        assert "\\<script\\> \\[link\\](x) \\`code\\` \\*\\*bold\\*\\* (" in text

    def test_with_history_every_commit_and_ref_is_told_newest_first(self) -> None:
        history = story().history
        text = export_markdown(history, ANN, history_too=True, now_ms=LATER).decode()
        told = text.partition("## History\n\n")[2].splitlines()
        heads = [line.split()[1] for line in told if line.startswith("- ")]
        assert heads == [record.timestamp for record in reversed(history.records)]
        assert any("create coding" in line for line in told)
        assert any("because my cat" in line for line in told)

    @given(HISTORIES)
    @FEW
    def test_nobody_s_words_begin_a_line(self, history: History) -> None:
        text = export_markdown(history, ANN, history_too=True, now_ms=LATER).decode()
        known = (
            "# Memory of user-123",
            "Exported on ",
            "## ",
            "### ",
            "- ",
            "  - ",
            "Nothing",
            "There are no",
        )
        personas = {branch.persona for branch in history.branches.all.values()}
        for line in text.split("\n"):
            assert (
                not line
                or line.startswith(known)
                or line.replace("\\", "") in {persona.replace("\\", "") for persona in personas}
            )


class TestObjects:
    @pytest.mark.design(277, 342)
    def test_a_folder_has_events_commits_branches_head_summary_and_refs(self, tmp_path: Path) -> None:
        history = story().history
        unpack_objects(export_objects(history), tmp_path / "out")
        out = tmp_path / "out"
        events = {event.id for commit in history.commits.values() for event in commit.events}
        assert {path.stem for path in (out / "events").iterdir()} == events
        assert {path.stem for path in (out / "commits").iterdir()} == history.commits.keys()
        assert (out / "HEAD").read_text() == "coding\n"
        assert list(json.loads((out / "branches.json").read_bytes())) == ["main", "coding"]
        refs = [record.id for record in history.records if isinstance(record, Ref)]
        assert [ref["id"] for ref in json.loads((out / "refs.json").read_bytes())["refs"]] == refs

    def test_of_two_events_with_one_id_none_is_lost(self, tmp_path: Path) -> None:
        ann = Replica().act([("add", 1, "likes tea"), ("mark", 0, "")])
        (event, again) = list(ann.history.commits.values())[-1].events
        assert event.id == again.id and event.hash != again.hash
        unpack_objects(export_objects(ann.history), tmp_path / "out")
        assert (tmp_path / "out" / "events" / f"{event.id}.json").exists()
        assert (tmp_path / "out" / "events" / f"{event.id}-{again.hash[:16]}.json").exists()

    def test_the_summary_is_what_holds_on_the_current_branch(self, tmp_path: Path) -> None:
        unpack_objects(export_objects(story().history), tmp_path / "out")
        summary = (tmp_path / "out" / "MEMORY.md").read_text().splitlines()
        assert summary == [
            "# Memory",
            "",
            "- [fact] has a cat (src: discord:7/8, updated 2026-02-03)",
            "- [tool] User prefers backend Python (src: manual, updated 2026-02-03)",
        ]

    def test_the_zip_holds_the_folder_s_files_and_is_the_same_each_time(self, tmp_path: Path) -> None:
        history = story().history
        content = export_objects(history)
        unpack_objects(export_objects(history), tmp_path / "out")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            packed = {name: archive.read(name) for name in archive.namelist()}
        files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
        assert packed == {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in files}
        assert content == export_objects(History(reversed(history.records)))


def test_an_empty_memory_says_so_in_words(tmp_path: Path) -> None:
    content = export_markdown(History(), ANN, history_too=True, now_ms=LATER)
    assert b"Nothing is remembered." in content
    assert b"There are no commits yet." in content
    unpack_objects(export_objects(History()), tmp_path / "out")
    assert (tmp_path / "out" / "MEMORY.md").read_text() == "# Memory\n\nNothing is remembered.\n"


class TestWritingAFolder:
    def test_an_empty_folder_is_taken_and_missing_ones_above_are_made(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        unpack_objects(export_objects(story().history), tmp_path / "out")
        unpack_objects(export_objects(story().history), tmp_path / "a" / "b")
        assert fingerprint(tmp_path / "out").keys() == fingerprint(tmp_path / "a" / "b").keys()

    def test_a_folder_with_something_in_it_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")
        before = fingerprint(tmp_path)
        with pytest.raises(Refused, match="is not empty; name a new folder"):
            unpack_objects(export_objects(story().history), tmp_path / "out")
        assert fingerprint(tmp_path) == before

    @pytest.mark.parametrize("link", [False, True])
    def test_a_file_or_a_link_is_left_alone(self, tmp_path: Path, link: bool) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        if link:
            (tmp_path / "out").symlink_to(elsewhere)
        else:
            (tmp_path / "out").write_text("mine")
        with pytest.raises(Refused, match="is there already and no folder"):
            unpack_objects(export_objects(story().history), tmp_path / "out")
        assert list(elsewhere.iterdir()) == []

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written_is_a_fault(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(MemoryFault, match="could not be written"):
            unpack_objects(export_objects(story().history), tmp_path / "out")

    def test_a_full_disk_leaves_nothing_behind(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        with full_at(300), pytest.raises(MemoryFault, match="could not be written"):
            unpack_objects(export_objects(story().history), tmp_path / "out")
        assert [path.name for path in tmp_path.rglob("*")] == ["out"]

    def test_who_may_look_into_it_is_its_owner(self, tmp_path: Path) -> None:
        unpack_objects(export_objects(story().history), tmp_path / "out")
        assert (tmp_path / "out").stat().st_mode & 0o077 == 0
