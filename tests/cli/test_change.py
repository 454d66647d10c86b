"""The verbs that write: what they do and say, what they refuse, and that the running bot is left alone."""

from typing import Any

import pytest

from discoclaw.memory.subjects.inspect import held
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Shell
from tests.memory.kit import ANN, Clock, fingerprint

ID = "3720777d"
CHANGING = (
    ["checkout", "123", "coding"],
    ["create-branch", "123", "work"],
    ["delete-branch", "123", "coding"],
    ["merge", "123", "coding"],
    ["cherry-pick", "123", "coding~1"],
    ["revert", "123", "HEAD"],
    ["undo", "123"],
    ["restore", "123", "HEAD~1"],
    ["edit", "123", ID, "User likes tabs."],
)


def texts(shell: Shell, branch: str = "main") -> list[str]:
    """What holds on a branch, oldest first."""
    items = shell.json("view", "123", "--branch", branch)["items"]
    return [item["text"] for item in items if item["status"] == "active"]


def newest(shell: Shell) -> Any:
    """The newest commit."""
    return shell.json("log", "123", "--limit", "1")[0]


class TestTheFolderIsLocked:
    def test_while_the_bot_runs_each_is_refused_and_nothing_changes(self, shell: Shell) -> None:
        bot = Memory(shell.memory_folder, clock=Clock())
        bot.open()
        try:
            before = fingerprint(shell.folder)
            for words in CHANGING:
                told = shell.refuses(*words)
                assert " is in use by " in told
                assert told.endswith("stop that one, or set another DISCOCLAW_DATA_DIR")
                assert fingerprint(shell.folder) == before, words
        finally:
            bot.close()

    @pytest.mark.long
    def test_also_to_a_process_of_its_own_and_looking_still_works(self, shell: Shell) -> None:
        bot = Memory(shell.memory_folder, clock=Clock())
        bot.open()
        try:
            code, printed, said = shell.process("undo", "123")
            assert (code, printed, said.count(b"\n")) == (1, b"", 1)
            assert said.startswith(b"discoclaw: ")
            assert shell.process("show", "123")[0] == 0
        finally:
            bot.close()
        assert shell.process("undo", "123")[0] == 0

    @pytest.mark.parametrize("words", CHANGING, ids=lambda words: words[0])
    def test_afterwards_ledger_and_file_are_sound(self, shell: Shell, words: list[str]) -> None:
        before = read(shell.memory_folder / "ledger" / f"{ANN}.jsonl").records
        shell.says(*words)
        after = held(shell.memory_folder, ANN)
        assert after.faults == ()
        assert after.history.records[:-1] == before
        assert after.history.records[-1].metadata["by"] == "cli"
        assert shell.says("verify").endswith(": no problems.\n")

    def test_an_empty_folder_stays_empty(self, empty: Shell) -> None:
        for words in CHANGING:
            assert empty.refuses(*words).startswith("there is no memory of user-123")
        assert list(empty.folder.iterdir()) == []


class TestBranches:
    @pytest.mark.design(300, 303, 304)
    def test_a_persona_begins_is_used_and_goes(self, shell: Shell) -> None:
        told = shell.says("create-branch", "123", "Work", "--persona", "Formal,  with footnotes.")
        assert told == (
            "Created the branch work. Switch to it with `discoclaw memory checkout user-123 work`.\n"
        )
        assert shell.says("checkout", "123", "work") == "user-123 is now on work.\n"
        assert shell.says("checkout", "123", "WORK") == "user-123 is already on work.\n"
        assert "* work" in shell.says("branches", "123")
        assert "“Formal, with footnotes.”" in shell.says("branches", "123")
        assert "is the current branch" in shell.refuses("delete-branch", "123", "work")
        shell.says("checkout", "123", "main")
        assert shell.says("delete-branch", "123", "work").startswith("Deleted work, which was at ")
        assert "work" not in shell.says("branches", "123")

    def test_one_can_begin_where_another_stands(self, shell: Shell) -> None:
        shell.says("create-branch", "123", "rust", "--from", "coding")
        assert texts(shell, "rust") == texts(shell, "coding") != texts(shell)

    def test_the_durable_file_follows_the_persona(self, shell: Shell) -> None:
        shell.says("checkout", "123", "coding")
        assert b"User writes Rust." in (shell.memory_folder / "durable" / "123.json").read_bytes()

    @pytest.mark.design(303, 304)
    def test_what_can_not_be_is_refused_and_changes_nothing(self, shell: Shell) -> None:
        before = (shell.memory_folder / "ledger" / f"{ANN}.jsonl").read_bytes()
        for words, told in (
            (["checkout", "123", "codin"], "did you mean 'coding'? there are: main, coding"),
            (["checkout", "123", ""], "there are: main, coding"),
            (["create-branch", "123", "coding"], "the branch 'coding' already exists"),
            (["create-branch", "123", "../x"], "can't be the name of a branch"),
            (["create-branch", "123", "x", "--from", "nope"], "there is no branch 'nope'"),
            (["create-branch", "123", "x", "--persona", "x" * 501], "at most 500 characters"),
            (["delete-branch", "123", "main"], "can't be deleted"),
            (["merge", "123", "nope"], "there is no branch 'nope'"),
            (["merge", "123", "main"], "can't be merged into itself"),
            (["merge", "123", "coding", "--into", "nope"], "there is no branch 'nope'"),
            (["cherry-pick", "123", "coding", "--onto", "nope"], "there is no branch 'nope'"),
            (["cherry-pick", "123", "ffff"], "there is no commit or branch 'ffff'"),
            (["revert", "123", "coding"], "is not on the branch 'main'"),
            (["restore", "123", "HEAD~99"], "goes back beyond the first commit"),
            (["edit", "123", ID, "  "], "there is no text to remember"),
            (["edit", "123", ID, "x", "--branch", "nope"], "there is no branch 'nope'"),
            (["settle", "123", "zzzz", "keep"], "no question has the id “zzzz”; open: "),
            (["settle", "123", "", "keep"], "no question has the id “”; open: "),
            (["undo", "123", "--branch", "nope"], "there is no branch 'nope'"),
        ):
            assert told in shell.refuses(*words)
        assert (shell.memory_folder / "ledger" / f"{ANN}.jsonl").read_bytes() == before

    def test_a_key_in_a_persona_does_not_reach_the_disk(self, shell: Shell) -> None:
        key = "sk-ant-api03-0123456789abcdefABCDEF-loopback"
        result = shell.run("create-branch", "123", "work", "--persona", f"Knows {key}.")
        assert result.exit_code == 0
        assert result.stderr == "note: left out what looks like a secret key\n"
        assert key.encode() not in b"".join(
            path.read_bytes() for path in shell.folder.rglob("*") if path.is_file()
        )


class TestBringingTogether:
    @pytest.mark.design(286, 287)
    def test_a_merge_says_what_came_and_leaves_what_clashes_to_be_settled(self, shell: Shell) -> None:
        lines = shell.says("merge", "123", "coding").splitlines()
        assert lines[0].startswith("“merge coding into main”: 1 change, commit ")
        assert lines[1].startswith("+ ") and lines[1].endswith("[tool] “User writes Rust.”")
        assert lines[2].startswith(f"! {ID} changed on both sides")
        assert "“User prefers tabs, 8 wide.”" in lines[2] and "“User prefers spaces over tabs.”" in lines[2]
        assert lines[3] == "List the open questions with `discoclaw memory settle user-123`."
        assert texts(shell) == ["User prefers tabs, 8 wide.", "User works at Acme.", "User writes Rust."]
        assert len(shell.json("settle", "123")) == 2
        assert shell.says("merge", "123", "coding") == "nothing to do: all of it is here already\n"

    def test_into_a_branch_that_is_not_current(self, shell: Shell) -> None:
        shell.says("merge", "123", "main", "--into", "coding")
        assert newest(shell)["branch"] == "coding"
        assert shell.json("branches", "123")["current"] == "main"

    @pytest.mark.design(288)
    def test_one_commit_is_picked(self, shell: Shell) -> None:
        assert "+ " in shell.says("cherry-pick", "123", "coding~1")
        assert texts(shell)[-1] == "User writes Rust."
        assert shell.json("settle", "123") == shell.json("settle", "123", "--branch", "main")

    def test_undo_goes_back_step_by_step(self, shell: Shell) -> None:
        assert shell.says("undo", "123").startswith("“undo: removed”: 1 change, commit ")
        assert texts(shell)[-1] == "User hates Mondays."
        shell.says("undo", "123")
        assert "User hates Mondays." not in texts(shell)
        for _ in range(4):
            shell.says("undo", "123")
        assert texts(shell) == []
        assert shell.refuses("undo", "123") == "there is nothing left to undo"

    def test_an_undo_that_closes_a_question_does_not_point_to_it(self, shell: Shell) -> None:
        shell.says("undo", "123")
        shell.says("undo", "123")
        assert "settle" not in shell.says("undo", "123")
        assert shell.says("settle", "123") == "There are no open questions.\n"

    def test_undo_on_another_branch(self, shell: Shell) -> None:
        shell.says("undo", "123", "--branch", "coding")
        assert "User prefers tabs over spaces." in texts(shell, "coding")

    def test_a_commit_is_taken_back(self, shell: Shell) -> None:
        first = shell.json("log", "123", "--branch", "main")[-2]["id"]
        told = shell.says("revert", "123", first[:8])
        assert told.splitlines()[1].endswith("“User works at Acme.”")
        assert newest(shell)["metadata"]["reverts"] == first

    @pytest.mark.design(309)
    def test_restore_says_again_what_was_said(self, shell: Shell) -> None:
        first = shell.json("log", "123")[-1]["id"]
        shell.says("restore", "123", first)
        assert texts(shell) == ["User prefers tabs over spaces."]
        assert shell.says("restore", "123", first).startswith("nothing to do")

    @pytest.mark.design(286, 287)
    def test_for_programs_with_changes_and_clashes(self, shell: Shell) -> None:
        done = shell.json("merge", "123", "coding")
        assert (done["branch"], done["message"]) == ("main", "merge coding into main")
        assert done["commit"] == newest(shell)["id"]
        assert [(one["kind"], one["after"]["text"]) for one in done["changes"]] == [
            ("added", "User writes Rust.")
        ]
        assert [(one["ours"]["text"], one["theirs"]["text"]) for one in done["clashes"]] == [
            ("User prefers tabs, 8 wide.", "User prefers spaces over tabs.")
        ]
        again = shell.json("merge", "123", "coding")
        assert again == {"commit": None, "branch": None, "message": None, "changes": [], "clashes": []}


class TestEditing:
    def test_an_item_gets_other_words_and_keeps_its_id(self, shell: Shell) -> None:
        told = shell.says("edit", "123", "works at acme", "User works at Initech.")
        change, elsewhere = told.splitlines()
        assert change == "5793b1ae “User works at Acme.” → “User works at Initech.”"
        assert elsewhere.startswith("The branch `coding` still remembers what you took back.")
        commit = newest(shell)
        assert (commit["message"], commit["metadata"]) == ("edited", {"by": "cli"})
        (event,) = commit["events"]
        assert (event["source"], event["evidence"]) == ("manual", "command line")
        assert event["ext"]["facets"]["author"] == "stated"

    def test_the_same_words_are_no_change(self, shell: Shell) -> None:
        shell.says("edit", "123", ID, "User likes tabs.")
        before = newest(shell)
        assert shell.says("edit", "123", ID, "User  likes tabs. ").startswith("nothing changed: ")
        assert newest(shell) == before

    def test_on_another_branch(self, shell: Shell) -> None:
        shell.says("edit", "123", "writes rust", "User writes Zig.", "--branch", "Coding")
        assert "User writes Zig." in texts(shell, "coding")
        assert newest(shell)["branch"] == "coding"

    def test_a_key_is_left_out(self, shell: Shell) -> None:
        result = shell.run("edit", "123", ID, "Key AKIAIOSFODNN7EXAMPLE")
        assert (result.exit_code, result.stderr) == (0, "note: left out what looks like a secret key\n")
        assert "AKIA" not in result.stdout

    def test_an_edit_by_hand_is_adopted_first(self, shell: Shell) -> None:
        path = shell.memory_folder / "durable" / "123.json"
        path.write_bytes(path.read_bytes().replace(b"Acme", b"Ecma"))
        shell.run("edit", "123", ID, "Tabs.")
        assert texts(shell) == ["Tabs.", "User works at Ecma."]


class TestSettling:
    def question(self, shell: Shell) -> str:
        return str(shell.json("settle", "123")[0]["event_id"])

    def test_the_list_says_what_to_type(self, shell: Shell) -> None:
        key = self.question(shell)
        assert shell.says("settle", "123").splitlines() == [
            f"{key} [main] You told me “User prefers tabs, 8 wide.”; "
            "later talk suggests “User prefers 2 columns.”",
            "",
            f"Answer one with `discoclaw memory settle user-123 {key[:8]} keep|new|both`.",
        ]

    @pytest.mark.parametrize(
        ("answer", "told", "left"),
        [
            ("keep", "“User prefers tabs, 8 wide.”", ["User prefers tabs, 8 wide.", "User works at Acme."]),
            ("new", "“User prefers 2 columns.”", ["User prefers 2 columns.", "User works at Acme."]),
            (
                "both",
                "“User prefers tabs, 8 wide.”",
                ["User prefers tabs, 8 wide.", "User works at Acme.", "User prefers 2 columns."],
            ),
        ],
    )
    def test_an_answer_settles_it(self, shell: Shell, answer: str, told: str, left: list[str]) -> None:
        key = self.question(shell)
        assert shell.says("settle", "123", key[:6], answer) == f"Settled on main, {answer}: {ID} {told}\n"
        assert texts(shell) == left
        assert shell.says("settle", "123") == "There are no open questions.\n"
        assert shell.refuses("settle", "123", key, answer) == f"no question has the id “{key}”; none is open"

    def test_a_question_without_an_answer_is_wrong_usage(self, shell: Shell) -> None:
        for words in ([self.question(shell)], [self.question(shell), "maybe"]):
            result = shell.run("settle", "123", *words)
            assert (result.exit_code, result.stdout) == (2, "")

    def test_a_question_of_another_branch_is_listed_with_its_branch(self, shell: Shell) -> None:
        shell.says("checkout", "123", "coding")
        assert "[main] You told me" in shell.says("settle", "123")
        assert shell.says("settle", "123", "--branch", "coding") == "There are no open questions.\n"
        shell.says("settle", "123", self.question(shell), "new")
        assert "User prefers 2 columns." in texts(shell)
        assert "User prefers 2 columns." not in texts(shell, "coding")


class TestADamagedLedger:
    def test_is_shown_with_a_note_and_changed_by_nobody(self, shell: Shell) -> None:
        path = shell.memory_folder / "ledger" / f"{ANN}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"Mondays", b"Sundays")]))
        before = fingerprint(shell.folder)
        result = shell.run("show", "123")
        assert result.exit_code == 0
        assert "User hates Mondays." in result.stdout
        assert result.stderr.startswith(f"note: {ANN}.jsonl, line {len(lines)}: ")
        told = shell.refuses("undo", "123")
        assert told.startswith(f"{ANN}.jsonl, line {len(lines)}: ")
        assert told.endswith("run `discoclaw memory verify --repair`")
        assert fingerprint(shell.folder) == before
