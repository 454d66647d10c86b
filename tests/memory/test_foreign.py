"""Histories and memories in the layout of the ledger design, as a program other than ours writes them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, encode_line
from discoclaw.memory.exchange.load import Items, load_bytes, load_file
from tests.cli.shell import Shell
from tests.memory.kit import NOW
from tests.memory.replicas import Replica
from tests.tables import naming

KEY = "sk-ant-abcdefghijklmnopqrstuvwxyz0123456789"
DAY = 86_400_000
AT = "2026-02-03T16:29:35"
MAIN_HEAD, PYTHON = "7e466c726d7e0892", "61e5bc31ef9f91b0"
"""The golden ids of the design for the first commit and the first event below."""


def id_of(**fields: Any) -> str:
    """An id as the design defines it, without the code under test."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def event(object_: str, predicate: str = "prefers backend", **more: Any) -> dict[str, Any]:
    hashed = {
        "event_type": "add",
        "subject": "user",
        "predicate": predicate,
        "object": object_,
        "scope": "work/technical",
        "timestamp": AT,
    }
    hashed |= {name: more.pop(name) for name in ("event_type", "scope") if name in more}
    rest = {"confidence": 0.9, "source": "conversation", "evidence": "said so", "sensitivity": "normal"}
    return {**hashed, **rest, "parent_id": None, **more, "id": id_of(**hashed)}


def commit(branch: str, parent: str | None, *events: Mapping[str, Any]) -> dict[str, Any]:
    ids = sorted(one["id"] for one in events)
    hashed = {"branch": branch, "events": ids, "parent_id": parent, "timestamp": AT}
    return {**hashed, "message": "learned", "metadata": {"session": "s1"}, "id": id_of(**hashed)}


FIRST, SECOND = event("Python"), event("Rust", "learns")
ROOT = commit("main", None, FIRST)
LEAF = commit("coding", ROOT["id"], SECOND)
BRANCHES = {
    "main": {"name": "main", "head": ROOT["id"], "persona": "", "created_at": AT, "metadata": {}},
    "coding": {
        "name": "coding",
        "head": LEAF["id"],
        "persona": "Terse",
        "created_at": AT,
        "metadata": {"topic": "code"},
    },
}


def folder(root: Path, **changed: str | None) -> Path:
    """The sample on disk; files may be replaced, or left out (None)."""
    files: dict[str, str | None] = {
        **{f"events/{one['id']}.json": json.dumps(one) for one in (FIRST, SECOND)},
        **{f"commits/{one['id']}.json": json.dumps(one) for one in (ROOT, LEAF)},
        "branches.json": json.dumps(BRANCHES),
        "HEAD": "coding",
        "MEMORY.md": "# Memory\n",
        **changed,
    }
    for name, content in files.items():
        if content is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
    return root


def grown(root: Path, *events: dict[str, Any]) -> Path:
    """The sample with a further commit on main for each of these events."""
    head, files = ROOT["id"], dict[str, str | None]({"branches.json": None})
    for change in events:
        one = commit("main", head, change)
        files |= {f"events/{change['id']}.json": json.dumps(change)}
        files |= {f"commits/{one['id']}.json": json.dumps(one)}
        head = one["id"]
    return folder(root, **files)


def exported(shell: Shell) -> dict[str, tuple[str, float]]:
    """Scope and confidence by text, on all branches."""
    shell.says("export", "123", "--output", str(shell.folder / "out.json"))
    entries = json.loads((shell.folder / "out.json").read_bytes())["memories"]
    (shell.folder / "out.json").unlink()
    return {one["text"]: (one["scope"], one["confidence"]) for one in entries}


def read(root: Path) -> tuple[Replica, tuple[str, ...]]:
    here = Replica(NOW + DAY)
    return here, here.take_in(load_file(root)).notes


class TestAFolder:
    @pytest.mark.design(277)
    def test_of_the_design_is_imported_with_its_branches(self, tmp_path: Path) -> None:
        assert (ROOT["id"], FIRST["id"]) == (MAIN_HEAD, PYTHON)
        source = folder(tmp_path / "foreign")
        shell = Shell(tmp_path)
        result = shell.run("import", str(source), "--as", "123")
        assert result.exit_code == 0, result.output
        assert result.stderr == (
            "note: user-123: there is no refs.json, so earlier moves between branches are not known\n"
        )
        assert "2 commits" in result.stdout
        assert shell.says("branches", "123").splitlines() == [
            f"  main      1 item  {MAIN_HEAD}",
            f"* coding   2 items  {LEAF['id']}  “Terse”",
        ]
        (one,) = shell.json("view", "123", "--branch", "main")["items"]
        assert (one["text"], one["kind"]) == ("User prefers backend Python", "fact")
        assert exported(shell)["User prefers backend Python"] == ("work/technical", 0.9)
        listed = shell.json("branches", "123")["branches"]
        assert [one["metadata"] for one in listed] == [{}, {"topic": "code"}]
        assert [found["id"] for found in shell.json("log", "123")] == [LEAF["id"], MAIN_HEAD]
        ledger = (shell.memory_folder / "ledger" / "user-123.jsonl").read_bytes()
        assert shell.run("import", str(source), "--as", "123").exit_code == 0
        assert (shell.memory_folder / "ledger" / "user-123.jsonl").read_bytes() == ledger
        assert shell.says("verify")

    def test_that_does_not_say_how_private_it_is_counts_as_said_in_private(self, tmp_path: Path) -> None:
        shell, files = Shell(tmp_path), {}
        for one in (FIRST, SECOND):
            bare = {name: value for name, value in one.items() if name != "sensitivity"}
            files[f"events/{one['id']}.json"] = json.dumps(bare if one is FIRST else one)
        source = folder(tmp_path / "foreign", **files)
        result = shell.run("import", str(source), "--as", "123")
        assert "1 kept private" in result.stdout
        levels = {one["text"]: one["sensitivity"] for one in shell.json("show", "123")["items"]}
        assert levels == {"User prefers backend Python": "private", "User learns Rust": "normal"}
        again = shell.run("import", str(source), "--as", "123", DISCOCLAW_DM_PRIVACY="open")
        assert "nothing new" in again.stdout
        assert [one["id"] for one in shell.json("log", "123")] == [LEAF["id"], MAIN_HEAD]

    def test_comes_in_beside_what_is_remembered_already(self, tmp_path: Path) -> None:
        shell = Shell(tmp_path)
        known = {"kind": "fact", "text": "Annie has a cat."}
        ours = {"format": "discoclaw-memory", "version": 1, "memories": [known]}
        (tmp_path / "ours.json").write_text(json.dumps(ours))
        shell.says("import", str(tmp_path / "ours.json"), "--as", "123")
        assert shell.run("import", str(folder(tmp_path / "foreign")), "--as", "123").exit_code == 0
        texts = {one["text"] for one in shell.json("view", "123", "--branch", "main")["items"]}
        assert texts == {"Annie has a cat.", "User prefers backend Python"}

    def test_without_its_lists_is_read_and_that_is_said(self, tmp_path: Path) -> None:
        here, notes = read(folder(tmp_path, **{"branches.json": None, "HEAD": None}))
        assert {name: branch.head for name, branch in here.history.branches.all.items()} == {
            "main": ROOT["id"],
            "coding": LEAF["id"],
        }
        assert here.history.branches.current == "main"
        assert notes[1:] == (
            "there is no branches.json, so branches have no descriptions",
            "there is no HEAD, so main is current",
        )

    def test_without_an_event_is_read_without_its_commit(self, tmp_path: Path) -> None:
        here, notes = read(folder(tmp_path, **{f"events/{FIRST['id']}.json": None}))
        view = here.history.view(here.history.branch("coding").head)
        assert [item.text for item in view.items.values()] == ["User learns Rust"]
        assert notes[1:3] == (
            "commits of which an event is missing were left out: 1",
            "commits that others follow are missing: 1",
        )

    def test_may_list_branches_in_another_form_and_a_head_as_git_does(self, tmp_path: Path) -> None:
        changed = {"branches.json": json.dumps([*BRANCHES.values()]), "HEAD": "ref: refs/heads/coding\n"}
        here, notes = read(folder(tmp_path, **changed))
        assert (here.history.branches.current, len(notes)) == ("coding", 1)

    @pytest.mark.design(272)
    @pytest.mark.parametrize("scope", ["work/technical", None])
    def test_changes_what_is_in_the_slot_where_no_event_is_named(
        self, tmp_path: Path, scope: str | None
    ) -> None:
        shell = Shell(tmp_path)
        source = grown(tmp_path / "foreign", event("Go", event_type="modify", scope=scope))
        assert shell.run("import", str(source), "--as", "123").exit_code == 0
        (item,) = shell.json("view", "123", "--branch", "main")["items"]
        assert item["text"] == "User prefers backend Go"
        assert shell.says("verify")

    def test_forgets_what_is_in_the_slot_where_no_event_is_named(self, tmp_path: Path) -> None:
        here, _ = read(grown(tmp_path, event("User requested", event_type="forget", scope="permanent")))
        assert here.history.view(here.history.branch("main").head).items == {}

    @pytest.mark.parametrize(
        ("before", "change"),
        [
            ([], event("Go", "likes", event_type="modify")),
            ([event("Java", scope="home")], event("Go", event_type="modify", scope="away")),
            ([event("Java", scope="home")], event("no reason", event_type="forget", scope="away")),
        ],
    )
    def test_that_changes_what_nothing_names_is_refused(
        self, tmp_path: Path, before: list[dict[str, Any]], change: dict[str, Any]
    ) -> None:
        source = grown(tmp_path / "foreign", *before, change)
        why = Shell(tmp_path).refuses("import", str(source), "--as", "123")
        head = ROOT["id"]
        for one in (*before, change):
            head = commit("main", head, one)["id"]
        assert f"commits/{head}.json has a {change['event_type']} ({change['id']}) without a parent_id" in why

    def test_as_lines_is_refused_with_the_line(self, tmp_path: Path) -> None:
        events = [Event(event_type="add", subject="user", predicate="likes", object="tea", timestamp=AT)]
        events.append(replace(events[0], event_type="modify", predicate="hates", object="jam"))
        first = Commit(branch="main", events=(events[0],), message="", parent_id=None, timestamp=AT)
        second = replace(first, events=(events[1],), parent_id=first.id)
        lines = b"".join(map(encode_line, (first, second)))
        with pytest.raises(Refused, match=r"user-1.jsonl, record 2 has a modify \([0-9a-f]{16}\) without"):
            load_bytes("user-1.jsonl", lines)

    def test_that_is_hostile_or_damaged_is_refused(self, tmp_path: Path) -> None:
        for name, content, why in (
            (f"events/{PYTHON}.json", {**FIRST, "object": "Perl"}, "does not verify"),
            (f"events/{PYTHON}.json", {**FIRST, "id": "0" * 16}, "does not verify"),
            (f"events/{PYTHON}.json", {**FIRST, "event_type": "explode"}, "unknown event type"),
            (f"events/{PYTHON}.json", {**FIRST, "confidence": 2}, "between 0 and 1"),
            (f"events/{PYTHON}.json", {**FIRST, "confidence": "high"}, "'confidence' is not a number"),
            (f"events/{PYTHON}.json", {**FIRST, "timestamp": "soon"}, "is not an event"),
            (f"events/{PYTHON}.json", {**FIRST, "source": 5}, "'source' is not a text"),
            (f"events/{PYTHON}.json", {**FIRST, "ext": {}}, "refs.json is missing; export it again"),
            (f"events/{PYTHON}.json", {"id": PYTHON}, "has no text as 'event_type'"),
            (f"events/{PYTHON}.json", [], "is not a JSON object"),
            (f"commits/{MAIN_HEAD}.json", {**ROOT, "branch": "coding"}, "does not verify"),
            (f"commits/{MAIN_HEAD}.json", {**ROOT, "events": "all"}, "has no list of events' ids"),
            (f"commits/{MAIN_HEAD}.json", {**ROOT, "metadata": 5}, '"metadata" that is not a JSON object'),
            (f"commits/{MAIN_HEAD}.json", {**ROOT, "timestamp": "1969-01-01"}, "is not a commit"),
            ("branches.json", 5, "is not an object of branches by name"),
            ("branches.json", {"../x": {}}, "which cannot be a name here"),
            ("branches.json", {"x": {"persona": "y" * 501}}, "persona that is too long"),
        ):
            with naming(name, content, why), pytest.raises(Refused, match=why):
                load_file(folder(tmp_path, **{name: json.dumps(content)}))

    def test_with_a_large_event_in_many_commits_is_refused(self, tmp_path: Path) -> None:
        large = event("x" * 20_000_000)
        (tmp_path / "events").mkdir()
        (tmp_path / "commits").mkdir()
        (tmp_path / "events" / f"{large['id']}.json").write_text(json.dumps(large))
        for number in range(14):
            one = commit(f"b{number}", None, large)
            (tmp_path / "commits" / f"{one['id']}.json").write_text(json.dumps(one))
        with pytest.raises(Refused, match="holds a history of more than 256 MiB; import less"):
            load_file(tmp_path)


class TestNanobotsOwnStore:
    """What nanobot itself writes: `memory/` in its workspace, with words of its own for some things."""

    OLD = event("vim", "edits with", scope=None, source="agent_inferred", evidence=None, sensitivity="public")
    GONE = event(
        "vim", "edits with", event_type="deprecate", scope=None, sensitivity="public", parent_id=OLD["id"]
    )
    NEW = event("emacs", "edits with", scope=None, sensitivity="normal")
    SHORT = event("tired", "is", scope=None, sensitivity="ephemeral")

    def store(self, root: Path) -> Path:
        learned = commit("main", None, self.OLD, FIRST)
        changed = commit("main", learned["id"], self.GONE, self.NEW)
        own = commit("coding", learned["id"], self.SHORT)
        picked = {"metadata": {"merge_source": "coding", "merge_source_head": own["id"]}}
        merged = {**commit("main", changed["id"], self.SHORT), **picked}
        memory = root / "memory"
        files = {f"ledger/commits/{one['id']}": one for one in (learned, changed, own, merged)}
        files |= {f"ledger/events/{one['id']}": one for one in (self.OLD, self.GONE, self.NEW, self.SHORT)}
        files[f"ledger/events/{FIRST['id']}"] = FIRST
        for name, head in (("main", merged), ("coding", own)):
            files[f"branches/{name}"] = {**BRANCHES["coding"], "name": name, "head": head["id"]}
        for name, value in files.items():
            (memory / name).parent.mkdir(parents=True, exist_ok=True)
            (memory / f"{name}.json").write_text(json.dumps(value))
        (memory / "view").mkdir()
        (memory / "HEAD").write_text("coding")
        (memory / "MEMORY.md").write_text("# Long-term Memory\n")
        return root

    @pytest.mark.design(266, 277)
    @pytest.mark.parametrize("below", ["memory", "", ".."])
    def test_is_imported_with_its_branches_and_levels(self, tmp_path: Path, below: str) -> None:
        shell, source = Shell(tmp_path), self.store(tmp_path / ".nanobot" / "workspace")
        result = shell.run("import", str((source / below).resolve()), "--as", "123")
        assert result.exit_code == 0, result.output
        assert "note: user-123: what is 'public' there is 'normal' here: 2\n" in result.stderr
        assert "note: user-123: what is 'ephemeral' there is 'private' here: 1\n" in result.stderr
        named = {
            one["name"]: (one["persona"], one["current"]) for one in shell.json("branches", "123")["branches"]
        }
        assert named == {"main": ("", False), "coding": ("Terse", True)}
        found = {one["text"]: one for one in shell.json("view", "123", "--branch", "main")["items"]}
        assert set(found) == {"User prefers backend Python", "User edits with emacs", "User is tired"}
        assert found["User is tired"]["sensitivity"] == "private"
        shell.says("export", "123", "--format", "objects", "--output", str(tmp_path / "out"))
        for kind in ("events", "commits"):
            theirs = {path.name for path in (source / "memory" / "ledger" / kind).iterdir()}
            assert {path.name for path in (tmp_path / "out" / kind).iterdir()} == theirs
        for words in (("log", "--oneline"), ("stats",), ("graph",), ("view",)):
            assert shell.says(words[0], "123", *words[1:])
        assert "nothing new" in shell.run("import", str(source), "--as", "123").stdout


MEMORIES = {
    "exported_at": AT,
    "branches": [{"name": "main", "head": MAIN_HEAD}],
    "memories": [
        {
            "subject": "user",
            "predicate": "prefers backend",
            "object": "Python",
            "scope": "work/technical",
            "confidence": 0.9,
            "timestamp": AT,
        },
        {"subject": "Acme", "predicate": "is in", "object": "Oslo", "source": "conversation"},
        {"subject": "user", "predicate": "likes"},
    ],
}


class TestMemoriesJson:
    @pytest.mark.design(307)
    def test_of_the_design_is_imported_as_far_as_it_goes(self, tmp_path: Path) -> None:
        (tmp_path / "memories.json").write_text(json.dumps(MEMORIES))
        shell = Shell(tmp_path)
        result = shell.run("import", str(tmp_path / "memories.json"), "--as", "123")
        assert result.exit_code == 0, result.output
        assert "the file has no kinds and no sources" in result.stderr
        assert 'memory 3: an item needs a "kind" and a "text"' in result.stderr
        found = {one["text"]: one for one in shell.json("show", "123")["items"]}
        assert set(found) == {"User prefers backend Python", "Acme is in Oslo"}
        one = found["User prefers backend Python"]
        assert one["kind"] == "fact"
        assert exported(shell)["User prefers backend Python"] == ("work/technical", 0.9)
        assert one["updatedAt"] == 1770136175000

    @pytest.mark.parametrize(
        ("entry", "why"),
        [
            ({"confidence": "high"}, "wrong type of 'confidence'"),
            ({"timestamp": 5}, "wrong type of 'timestamp'"),
            ({"tags": [5]}, "'tags' that are not texts"),
        ],
    )
    def test_with_a_wrong_type_is_refused(self, entry: dict[str, Any], why: str) -> None:
        value = {"memories": [{**MEMORIES["memories"][0], **entry}]}  # type: ignore[dict-item]
        with pytest.raises(Refused, match=why):
            load_bytes("memories.json", json.dumps(value).encode())

    def test_a_secret_is_taken_out(self) -> None:
        triple = {
            "subject": "user",
            "predicate": "uses",
            "object": KEY,
        }
        found = load_bytes("memories.json", json.dumps({"memories": [triple]}).encode()).content()
        assert isinstance(found, Items)
        assert [item.text for item in found.items] == ["User uses [REDACTED Anthropic key]"]
        assert (found.redacted, found.items[0].facets.triple) == (1, None)
