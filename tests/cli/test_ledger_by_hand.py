"""A ledger that another program wrote by the documented algorithm: what each command makes of it."""

import hashlib
import json
import shutil
from typing import Any

import pytest

from tests.cli.shell import Shell

BEGIN = "2026-02-03T16:29:35"
GOLDEN_EVENT, GOLDEN_COMMIT = "61e5bc31ef9f91b0", "7e466c726d7e0892"
"""Ids that the design's own program gives to the first event and commit below."""

Record = dict[str, Any]


def sha(value: object) -> str:
    """SHA-256 of the canonical JSON, written down a second time."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def event(kind: str, predicate: str, value: str, at: str = BEGIN, **more: Any) -> Record:
    named = {
        "event_type": kind,
        "subject": "user",
        "predicate": predicate,
        "object": value,
        "scope": "work/technical",
        "timestamp": at,
    } | {name: more.pop(name) for name in ("scope",) if name in more}
    body = {
        **named,
        "confidence": 0.9,
        "source": "manual",
        "evidence": "she said so",
        "sensitivity": "normal",
        "parent_id": None,
        "ext": {},
        "id": sha(named)[:16],
        **more,
    }
    return {**body, "hash": sha(body)}


def commit(*events: Record, parent: Record | None = None, branch: str = "main") -> Record:
    named = {
        "branch": branch,
        "events": sorted(one["id"] for one in events),
        "parent_id": parent and parent["id"],
        "timestamp": events[0]["timestamp"],
    }
    told = {"id": sha(named)[:16], "message": f"{len(events)} events", "metadata": {"by": "a test"}}
    seal = sha({**named, **told, "events": [one["hash"] for one in events]})
    return {**named, **told, "type": "commit", "events": list(events), "hash": seal}


def later(minutes: int) -> str:
    return f"2026-02-03T16:{29 + minutes}:35"


def write(shell: Shell, *records: Record) -> None:
    path = shell.memory_folder / "ledger" / "user-123.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(one, sort_keys=True, ensure_ascii=False) + "\n" for one in records]
    path.write_text("".join(lines), encoding="utf-8")


def story() -> list[Record]:
    """Python is added, tea is added and observed, Python becomes Rust, and tea is forgotten."""
    python = event("add", "prefers backend", "Python")
    first = commit(python)
    tea = event("add", "likes", "tea", later(1), scope="session", sensitivity="private")
    seen = event("observe", "likes", "tea", later(1), scope="temporary", sensitivity="confidential")
    second = commit(tea, seen, parent=first)
    third = commit(
        event("modify", "prefers backend", "Rust", later(2), parent_id=python["id"]), parent=second
    )
    gone = event("forget", "likes", "tea", later(3), scope="permanent", parent_id=tea["id"])
    return [first, second, third, commit(gone, parent=third)]


@pytest.fixture
def told(empty: Shell) -> Shell:
    """A folder in which the story has just arrived."""
    write(empty, *story())
    empty.run("verify", "--repair")  # which writes the durable file
    assert empty.says("verify") == "Checked 1 memory with 4 commits: no problems.\n"
    return empty


def texts(shell: Shell, *words: str) -> list[str]:
    items = shell.json("view", "123", *words)["items"]
    return [item["text"] for item in items if item["status"] == "active"]


def lines(shell: Shell) -> list[bytes]:
    return (shell.memory_folder / "ledger" / "user-123.jsonl").read_bytes().splitlines(keepends=True)


class TestRecords:
    @pytest.mark.design(263, 264, 265, 266, 267, 268, 273, 275, 278)
    def test_are_read_with_every_field_and_the_ids_of_the_design(self, told: Shell) -> None:
        log = told.json("log", "123")
        assert [{**one, "type": "commit"} for one in log[::-1]] == story()
        assert (log[-1]["id"], log[-1]["events"][0]["id"]) == (GOLDEN_COMMIT, GOLDEN_EVENT)
        assert [one["parent_id"] for one in log] == [*(one["id"] for one in log[1:]), None]
        events = [one for commit_ in story() for one in commit_["events"]]
        assert [one["event_type"] for one in events] == ["add", "add", "observe", "modify", "forget"]
        shown = told.says("log", "123")
        assert all(one["id"] in shown for one in log)
        assert "[private] “User likes tea”" in shown and "[confidential] “User likes tea”" in shown

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            (
                {"event_type": "delete"},
                "unknown event type 'delete'; expected one of add, modify, forget, observe",
            ),
            ({"sensitivity": "secret"}, "unknown sensitivity 'secret'"),
            ({"confidence": 1.5}, "confidence must be between 0 and 1, not 1.5"),
            ({"confidence": -0.1}, "confidence must be between 0 and 1, not -0.1"),
            ({"id": "0123456789abcdef"}, "event 0123456789abcdef does not match its content"),
        ],
        ids=["type", "sensitivity", "too sure", "less than unsure", "id"],
    )
    @pytest.mark.design(264, 266, 267, 268)
    def test_that_break_the_schema_are_named_and_left_out(
        self, empty: Shell, wrong: Record, reason: str
    ) -> None:
        kind = wrong.get("event_type", "add")
        first = story()[0]
        bad = event(
            kind, "likes", "coal", later(1), **{key: v for key, v in wrong.items() if key != "event_type"}
        )
        write(empty, first, commit(bad, parent=first))
        result = empty.run("verify")
        assert result.exit_code == 1
        assert "user-123.jsonl, line 2: " in result.stdout and reason in result.stdout
        assert "coal" not in empty.run("view", "123").stdout
        assert "Python" in empty.run("view", "123").stdout

    @pytest.mark.design(269)
    def test_that_lie_there_twice_count_once(self, told: Shell) -> None:
        before = told.says("log", "123")
        write(told, *story(), story()[0])
        assert told.says("log", "123") == before

    @pytest.mark.design(274)
    @pytest.mark.parametrize("cut", [1, 200, 900])
    def test_are_whole_commits_where_the_last_line_is_torn(self, told: Shell, cut: int) -> None:
        first, second = lines(told)[:2]
        path = told.memory_folder / "ledger" / "user-123.jsonl"
        for kept, sizes in ((second[:-cut], [1]), (second, [2, 1])):
            path.write_bytes(first + kept)
            result = told.run("log", "123", "--json")
            assert [len(one["events"]) for one in json.loads(result.stdout)] == sizes
            assert ("an unfinished last line" in result.stderr) is (kept != second)


class TestTheView:
    @pytest.mark.design(271, 272, 279, 309)
    def test_is_what_the_changes_add_up_to_now_and_at_each_commit(self, told: Shell) -> None:
        python, rust, tea = "User prefers backend Python", "User prefers backend Rust", "User likes tea"
        assert [texts(told, "--at", f"HEAD~{back}") for back in (3, 2, 1)] == [
            [python],
            [python, tea],
            [rust, tea],
        ]
        assert texts(told) == [rust]
        assert "+ add     4d0cf5b5 [private] “User likes tea”" in told.says("log", "123")

    @pytest.mark.design(279, 314)
    def test_is_made_again_from_the_ledger_alone(self, told: Shell) -> None:
        view, durable = told.says("view", "123"), told.memory_folder / "durable" / "123.json"
        before = durable.read_bytes()
        shutil.rmtree(durable.parent)
        shutil.rmtree(told.folder / "data" / "cache", ignore_errors=True)
        told.run("verify", "--repair")
        assert durable.read_bytes() == before
        assert told.says("view", "123") == view

    @pytest.mark.design(270, 309)
    def test_goes_back_with_a_new_commit_and_no_line_changes(self, told: Shell) -> None:
        before = lines(told)
        told.says("restore", "123", "HEAD~2")
        assert texts(told) == ["User prefers backend Python", "User likes tea"]
        told.says("edit", "123", "likes tea", "User likes mate.")
        told.says("undo", "123")
        told.says("create-branch", "123", "work")
        told.says("delete-branch", "123", "work")
        assert lines(told)[:4] == before
        assert len(lines(told)) == 9

    @pytest.mark.design(290)
    def test_leads_back_to_events_commits_sources_and_words(self, told: Shell) -> None:
        found = told.json("why", "123", "52afb640")["events"]
        assert [(one["commit"], one["event"]["id"]) for one in found] == [
            (story()[0]["id"], GOLDEN_EVENT),
            (story()[2]["id"], story()[2]["events"][0]["id"]),
        ]
        assert {(one["event"]["source"], one["event"]["evidence"]) for one in found} == {
            ("manual", "she said so")
        }


class TestCommands:
    @pytest.mark.design(286, 302)
    def test_the_graph_has_branches_and_merges(self, told: Shell) -> None:
        for words in ("create-branch 123 work", "checkout 123 work", "undo 123", "checkout 123 main"):
            told.says(*words.split())
        told.says("merge", "123", "work")
        graph = [line.strip() for line in told.says("graph", "123").splitlines()]
        assert graph[:2] == ["gitGraph", f'commit id: "{GOLDEN_COMMIT[:8]} 1 events"']
        assert [line.split(" id:")[0] for line in graph[5:]] == [
            'branch "work"',
            "commit",
            'checkout "main"',
            'merge "work"',
        ]
        assert "undo f6c0bcdb" in graph[6] and "HEAD" in graph[8]
        timeline = told.says("graph", "123", "--format", "timeline").splitlines()
        assert timeline[0].strip() and timeline[1].startswith("*─╮ ") and "merge" in timeline[1]
        assert timeline[-1].startswith("*   16:29 7e466c72 [main]")

    @pytest.mark.design(305)
    def test_stats_count_what_the_ledger_holds(self, told: Shell) -> None:
        found = told.json("stats", "123")
        assert found["commits"] == 4
        assert found["events"] == {"add": 2, "modify": 1, "forget": 1, "observe": 1}
        assert (found["items"]["active"], found["items"]["kinds"]["fact"], found["head"]) == (1, 1, "main")
        assert "events     add 2, forget 1, modify 1, observe 1" in told.says("stats", "123")

    @pytest.mark.design(299, 300, 306, 307)
    def test_log_branches_and_exports_say_the_same(self, told: Shell) -> None:
        ids = [one["id"] for one in story()[::-1]]
        assert [line.split()[0] for line in told.says("log", "123", "--oneline").splitlines()] == ids
        assert told.says("branches", "123") == f"* main    1 item  {ids[0]}\n"
        path = told.folder / "memories.json"
        said = told.says("export", "123", "--output", str(path))
        assert said == f"Exported 1 memory of user-123 to {path}.\n"
        value = json.loads(path.read_bytes())
        assert [(one["name"], one["head"]) for one in value["branches"]] == [("main", ids[0])]
        (memory,) = value["memories"]
        asked = ("subject", "predicate", "object", "scope", "confidence", "timestamp")
        assert [memory[name] for name in asked] == [
            *("user", "prefers backend", "Rust", "work/technical", 0.9),
            "2026-02-03T16:31:35.000Z",
        ]
        page = told.says("export", "123", "--format", "markdown", "--history", "--output", "-")
        assert "- User prefers backend Rust (" in page and "  - add user prefers backend: Python (" in page


class TestWithoutGit:
    @pytest.mark.design(310)
    def test_all_of_it_works(self, told: Shell) -> None:
        for words in (
            "create-branch 123 work",
            "checkout 123 work",
            "undo 123",
            "merge 123 main",
            "graph 123",
        ):
            told.says(*words.split(), PATH="")
        assert not list(told.folder.rglob(".git"))
