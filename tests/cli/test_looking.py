"""The verbs that look: what a newcomer sees, what programs get, and that nothing is changed by it."""

import json
import time
from pathlib import Path

import pytest

from discoclaw.commands.table import COMMANDS
from discoclaw.core.history import MAIN
from tests.cli.shell import PLACE, Shell
from tests.memory.kit import fingerprint

ID = "3720777d"
TRANSCRIPT = Path(__file__).parent / "golden" / "looking.txt"


TOUR = (
    *("list", "show 123", "view 123", "view 123 --at 2026-02-03T16:33", "branches 123", "stats 123"),
    *("log 123 --oneline", "log 123 --branch coding --limit 2", "diff 123 coding main", "why 123 3720"),
    *("graph 123", "graph 123 --format timeline", "settle 123", "verify"),
)
VERBS = [one.terminal.name for one in COMMANDS if one.terminal is not None]
LOOKING = (
    ["list"],
    ["show", "123"],
    ["log", "123"],
    ["view", "123"],
    ["diff", "123", "coding"],
    ["graph", "123"],
    ["branches", "123"],
    ["why", "123", ID],
    ["stats", "123"],
    ["verify"],
    ["settle", "123"],
)


class TestWhatANewcomerSees:
    def test_a_tour_of_everything_there_is_to_look_at(self, shell: Shell) -> None:
        """A transcript that is missing is written, and the test fails so that somebody reads it."""
        told = "\n".join(f"$ discoclaw memory {words}\n{shell.says(*words.split())}" for words in TOUR)
        if not TRANSCRIPT.exists():
            TRANSCRIPT.parent.mkdir(exist_ok=True)
            TRANSCRIPT.write_text(told, encoding="utf-8")
            pytest.fail(f"{TRANSCRIPT.name} was missing and is now written: read it, then run again")
        assert told == TRANSCRIPT.read_text(encoding="utf-8")

    def test_each_verb_is_in_the_help_and_its_own_has_an_example(self, empty: Shell) -> None:
        listed = empty.says("--help")
        assert [verb for verb in VERBS if f"│ {verb} " not in listed] == []
        shown = {verb: empty.says(verb, "--help") for verb in VERBS}
        assert [verb for verb in VERBS if f"Example: discoclaw memory {verb}" not in shown[verb]] == []


class TestLookingChangesNothing:
    def test_on_disk(self, shell: Shell) -> None:
        before = fingerprint(shell.folder)
        for words in LOOKING:
            shell.says(*words)
            assert fingerprint(shell.folder) == before, words

    def test_not_even_a_folder_is_made_where_there_is_none(self, empty: Shell) -> None:
        for words in LOOKING:
            empty.run(*words)
            assert list(empty.folder.iterdir()) == [], words


class TestForPrograms:
    def test_json_is_json(self, shell: Shell) -> None:
        assert all(shell.json(*words) for words in LOOKING if words[0] != "graph")

    def test_the_log_holds_whole_commits_newest_first(self, shell: Shell) -> None:
        commits = shell.json("log", "123")
        assert [commit["message"] for commit in commits][:2] == ["removed", "remembered"]
        assert shell.json("log", "123", "--limit", "2") == commits[:2]
        ids = {commit["id"] for commit in commits}
        own = [commit["message"] for commit in shell.json("log", "123", "--branch", "coding")]
        assert own == ["edited", "learned from talk", "learned from talk", "remembered"]
        assert len(ids) == len(commits) == 8

    def test_a_diff_has_the_items_before_and_after(self, shell: Shell) -> None:
        changes = {change["kind"]: change for change in shell.json("diff", "123", "coding", "main")}
        assert changes["removed"]["before"]["text"] == "User writes Rust."
        assert changes["removed"]["after"] is None
        texts = [changes["changed"][side]["text"] for side in ("before", "after")]
        assert texts == ["User prefers spaces over tabs.", "User prefers tabs, 8 wide."]

    @pytest.mark.design(290)
    def test_provenance_has_every_event_with_its_commit(self, shell: Shell) -> None:
        found = shell.json("why", "123", ID)
        assert found["item"]["id"] == f"durable-{ID}"
        assert [(one["branch"], one["event"]["event_type"]) for one in found["events"]] == [
            ("main", "add"),
            ("coding", "modify"),
            ("main", "modify"),
            ("main", "observe"),
        ]
        assert found["events"][-1]["event"]["source"] == "discord:7/83"

    def test_branches_say_which_one_is_current(self, shell: Shell) -> None:
        found = shell.json("branches", "123")
        assert found["current"] == MAIN
        assert [(one["name"], one["active"], one["current"]) for one in found["branches"]] == [
            ("main", 2, True),
            ("coding", 3, False),
        ]

    def test_questions_have_the_id_by_which_they_are_answered(self, shell: Shell) -> None:
        (asked,) = shell.json("settle", "123")
        assert (asked["item_id"], asked["text"], asked["branch"]) == (
            f"durable-{ID}",
            "User prefers 2 columns.",
            "main",
        )

    def test_nobody_is_an_error(self, shell: Shell) -> None:
        for verb in ("show", "log", "view", "stats", "branches", "get"):
            assert shell.refuses(verb, "9", "--json").startswith("there is no memory of user-9; "), verb


class TestPoints:
    """--at, FROM and TO: commits, branches and times."""

    @pytest.mark.design(301, 309)
    def test_a_branch_and_a_commit_and_one_before_it(self, shell: Shell) -> None:
        assert "Rust" in shell.says("view", "123", "--at", "coding")
        head = shell.json("branches", "123")["branches"][1]["head"]
        assert shell.says("view", "123", "--at", head[:6]) == shell.says("view", "123", "--branch", "coding")
        assert "prefers tabs over spaces" in shell.says("view", "123", "--at", "coding~1")
        assert "Mondays" in shell.says("view", "123", "--at", "HEAD~1")

    def test_a_time_shows_the_branch_that_was_head_then(self, shell: Shell) -> None:
        assert "Rust" in shell.says("view", "123", "--at", "2026-02-03T16:33")
        assert "Rust" not in shell.says("view", "123", "--at", "2026-02-03T16:33", "--branch", "main")
        assert "8 wide" in shell.says("view", "123", "--at", "2026-02-03")

    def test_before_the_beginning_there_was_nothing(self, shell: Shell) -> None:
        assert (
            shell.says("view", "123", "--at", "2026-02-02") == "Nothing was remembered about user-123 then.\n"
        )
        assert shell.json("view", "123", "--at", "2026-02-02")["commit"] is None

    def test_a_diff_since_a_date(self, shell: Shell) -> None:
        lines = shell.says("diff", "123", "2026-02-02").splitlines()
        assert sorted(line[:10] for line in lines) == ["+ 3720777d", "+ 5793b1ae"]
        assert shell.says("diff", "123", "HEAD") == "no difference\n"

    def test_without_a_point_a_diff_shows_what_the_last_commit_did(self, shell: Shell) -> None:
        assert shell.says("diff", "123").startswith("- ") and "Mondays" in shell.says("diff", "123")
        shell.says("edit", "123", "works at acme", "User works at Initech.")
        assert shell.says("diff", "123").endswith("“User works at Acme.” → “User works at Initech.”\n")

    def test_what_is_no_point_is_refused(self, shell: Shell) -> None:
        for at, told in (
            ("2026-02-30", "is not a time"),
            ("yesterday", "there is no commit or branch 'yesterday'"),
            ("codin", "did you mean 'coding'?"),
            ("HEAD~99", "goes back beyond the first commit"),
            ("HEAD~x", "~ must be followed by a number"),
        ):
            for words in (["view", "123", "--at", at], ["diff", "123", at], ["diff", "123", "HEAD", at]):
                assert told in shell.refuses(*words)

    def test_a_branch_that_was_not_there_yet(self, shell: Shell) -> None:
        told = shell.refuses("view", "123", "--at", "2026-02-02", "--branch", "coding")
        assert told == "the branch 'coding' was not there on 2026-02-02"


class TestNamingAnItem:
    def test_by_id_its_beginning_or_most_of_its_text(self, shell: Shell) -> None:
        for wanted in (ID, f"durable-{ID}", "3720", "user prefers tabs, 8"):
            assert shell.says("why", "123", wanted).startswith(f"{ID} [preference] "), wanted

    def test_what_was_removed_is_still_explained(self, shell: Shell) -> None:
        told = shell.says("why", "123", "hates mondays")
        assert "“remembered”" not in told.splitlines()[0]
        assert [line.split()[0] for line in told.splitlines() if line.startswith(("  + ", "  - "))] == [
            "+",
            "-",
        ]

    def test_what_is_on_another_branch_too_but_not_when_one_is_named(self, shell: Shell) -> None:
        assert "Rust" in shell.says("why", "123", "writes rust")
        assert "no item matches “writes rust”" in shell.refuses(
            "why", "123", "writes rust", "--branch", "main"
        )

    def test_several_are_listed_with_their_ids(self, shell: Shell) -> None:
        shell.says("edit", "123", "works at acme", "User prefers tabs, 9 wide.")
        told = shell.refuses("edit", "123", "user prefers tabs,", "x")
        assert told.startswith("“user prefers tabs,” matches 2 items; type ")
        assert f"`discoclaw memory edit 123 {ID} x` for “User prefers tabs, 8 wide.”" in told
        assert "`discoclaw memory edit 123 5793b1ae x` for “User prefers tabs, 9 wide.”" in told

    def test_none_names_what_comes_near(self, shell: Shell) -> None:
        for wanted, near in (("tabs", ID), ("37207770", ID), ("user wurks at acme", "5793b1ae")):
            told = shell.refuses("why", "123", wanted)
            assert told.startswith(
                f"no item matches “{wanted}”, by its id or 60 % of its text; did you mean "
            )
            assert f"`discoclaw memory why 123 {near}` for “User " in told

    def test_the_command_to_type_keeps_the_other_words(self, shell: Shell) -> None:
        told = shell.refuses("edit", "123", "acme", "User's job is over.", "--branch", "main")
        assert told.endswith(
            """`discoclaw memory edit 123 5793b1ae 'User'"'"'s job is over.' --branch main` """
            "for “User works at Acme.”"
        )

    def test_nothing_near_says_where_they_are_listed(self, shell: Shell) -> None:
        for wanted in ("", " ", "zzzzzzzz", "durable-"):
            told = shell.refuses("why", "123", wanted)
            assert told.endswith("`discoclaw memory show` lists them with their ids")


class TestTimesOfTheSystemsZone:
    """Ann's last change is at 16:38 in UTC, which is 17:38 in Berlin in winter."""

    @pytest.fixture
    def berlin(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
        monkeypatch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        return shell

    def test_are_shown_on_the_terminal(self, berlin: Shell) -> None:
        for words in (
            ["list"],
            ["log", "123", "--oneline"],
            ["log", "123"],
            ["stats", "123"],
            ["get", "123"],
            ["graph", "123", "--format", "timeline"],
            ["why", "123", ID],
        ):
            told = berlin.says(*words)
            assert "17:3" in told
            assert "16:3" not in told and "Z" not in told.replace(ID, "")

    def test_are_not_used_for_programs(self, berlin: Shell) -> None:
        assert berlin.json("list")[0]["last_change"] == "2026-02-03T16:38Z"
        assert berlin.json("get", "123")["last_change"].startswith("2026-02-03T16:38:")
        assert berlin.json("log", "123")[0]["timestamp"].startswith("2026-02-03T16:38:")

    def test_are_understood_as_they_are_shown(self, berlin: Shell) -> None:
        before = berlin.says("view", "123", "--at", "2026-02-03T16:33Z")
        assert berlin.says("view", "123", "--at", "2026-02-03 17:33") == before
        assert berlin.says("view", "123", "--at", "2026-02-03T17:33") == before
        assert "tabs over spaces" in before
        assert (
            berlin.says("view", "123", "--at", "2026-02-03T16:33")
            == "Nothing was remembered about user-123 then.\n"
        )

    def test_a_day_ends_at_its_midnight(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead: there it is the 4th of February
        time.tzset()
        assert (
            shell.says("view", "123", "--at", "2026-02-03") == "Nothing was remembered about user-123 then.\n"
        )
        assert "tabs, 8 wide" in shell.says("view", "123", "--at", "2026-02-04")
        assert "2026-02-04" in shell.says("show", "123")

    def test_the_first_and_the_last_day_are_no_error(self, berlin: Shell) -> None:
        days = ("0001-01-01", "9999-12-31")
        assert [berlin.run("view", "123", "--at", day).exit_code for day in days] == [0, 0]


class TestNamingAPerson:
    def test_somebody_unknown_is_told_with_who_comes_near(self, shell: Shell) -> None:
        everybody = "`discoclaw memory list` shows everybody"
        assert shell.refuses("show", "9") == f"there is no memory of user-9; {everybody}"
        assert shell.refuses("log", "124") == "there is no memory of user-124; did you mean user-123?"

    @pytest.mark.design(191, 205)
    def test_what_can_be_no_person_is_refused(self, shell: Shell) -> None:
        for verb in ("show", "log", "view", "stats", "branches", "undo", "verify", "graph"):
            assert "cannot name a memory" in shell.refuses(verb, "../secrets")

    def test_a_slip_of_the_keys_begins_no_memory(self, shell: Shell) -> None:
        before = fingerprint(shell.folder)
        for words in (["undo", "9"], ["create-branch", "9", "coding"], ["checkout", "9", "main"]):
            assert shell.refuses(*words).startswith("there is no memory of user-9")
        assert shell.refuses("verify", "9").startswith("there is no memory of user-9")
        assert fingerprint(shell.folder) == before


class TestTables:
    def test_no_line_is_broken_where_the_output_goes_elsewhere(self, shell: Shell) -> None:
        long = "User " + "likes long sentences " * 40
        shell.says("edit", "123", ID, long)
        assert long.strip() in shell.says("show", "123")

    def test_markup_in_a_text_stays_text(self, shell: Shell) -> None:
        shell.says("edit", "123", ID, "[red]no[/red] markup [link=x]")
        assert "[red]no[/red] markup [link=x]" in shell.says("show", "123")

    def test_nothing_in_a_text_reaches_the_terminal_as_a_command(self, shell: Shell) -> None:
        shell.says("edit", "123", ID, "a\x1b[31mred\x07 \u202eback")
        for words in (["show", "123"], ["view", "123"], ["log", "123"], ["why", "123", ID]):
            assert not {"\x1b", "\x07", "\u202e"} & set(shell.says(*words))


class TestGraphs:
    @pytest.mark.design(302)
    def test_each_format_is_what_it_says(self, shell: Shell) -> None:
        assert shell.says("graph", "123").startswith("gitGraph")
        assert "2026-02-03" in shell.says("graph", "123", "--format", "timeline")
        assert shell.says("graph", "123", "--output", "-") == shell.says("graph", "123")

    def test_a_file_is_written_and_named(self, shell: Shell) -> None:
        for format_, start in (("mermaid", b"gitGraph"), ("png", b"\x89PNG\r\n")):
            path = shell.folder / f"graph.{format_}"
            told = shell.says("graph", "123", "--format", format_, "--output", str(path))
            assert told == f"Wrote the history of user-123 to {path}.\n"
            assert path.read_bytes().startswith(start)

    def test_a_picture_goes_where_the_output_is_sent(self, shell: Shell) -> None:
        result = shell.run("graph", "123", "--format", "png")
        assert (result.exit_code, result.stdout_bytes[:6], result.stderr) == (0, b"\x89PNG\r\n", "")

    def test_an_unknown_format_is_wrong_usage(self, shell: Shell) -> None:
        result = shell.run("graph", "123", "--format", "svg")
        assert result.exit_code == 2
        assert "'mermaid', 'timeline', 'png'" in result.stderr

    def test_a_path_that_can_not_be_written_is_named(self, shell: Shell) -> None:
        (shell.folder / "file").write_text("in the way")
        path = shell.folder / "file" / "graph.txt"
        assert shell.refuses("graph", "123", "-o", str(path)).startswith(f"can't write {path}: ")


class TestAsAProcess:
    def test_a_reader_who_leaves_ends_it_quietly(self, shell: Shell) -> None:
        with shell.start("log", "123", "--json", stdout=-1, stderr=-1, bufsize=0) as process:
            assert process.stdout is not None
            process.stdout.close()
            _, said = process.communicate(timeout=60)
        assert PLACE.sub(b"", said) == b""

    @pytest.mark.long
    def test_a_terminal_without_utf8_is_no_reason_to_fail(self, shell: Shell) -> None:
        shell.says("edit", "123", ID, "User likes 猫 😀")
        plain = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        code, printed, said = shell.process("show", "123", "--json", env=plain)
        assert (code, said) == (0, b"")
        assert "User likes 猫 😀" in {item["text"] for item in json.loads(printed)["items"]}
        for words in (["show", "123"], ["list"], ["log", "123"]):
            code, _, said = shell.process(*words, env=plain)
            assert (code, said) == (0, b"")
