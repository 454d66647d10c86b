"""Memory goes along as a file, comes in again, and goes for good; each whole or not at all."""

import json
import pty
import sys
import zipfile
from itertools import product
from pathlib import Path

import pytest

from discoclaw.cli.main import cli
from discoclaw.memory.subjects.inspect import held
from tests.cli.shell import Shell
from tests.memory.kit import ANN, fingerprint

FORMATS = ("json", "markdown", "objects")
ITEM = {"id": "durable-11111111", "kind": "fact", "text": "User plays chess."}


def ledger(shell: Shell, user: str) -> bytes:
    return (shell.memory_folder / "ledger" / f"user-{user}.jsonl").read_bytes()


def exported(shell: Shell, *more: str, name: str = "ann.json") -> Path:
    path = shell.folder / name
    shell.says("export", "123", *more, "--output", str(path))
    return path


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


class TestExport:
    @pytest.mark.design(306)
    def test_without_options_it_is_memories_json_here_with_the_count(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(shell.folder)
        assert shell.says("export", "123") == "Exported 3 memories of user-123 to memories.json.\n"
        value = json.loads((shell.folder / "memories.json").read_bytes())
        assert (value["subject"], len(value["memories"]), "history" in value) == (ANN, 5, False)

    def test_with_the_history(self, shell: Shell) -> None:
        value = json.loads(exported(shell, "--history").read_bytes())
        assert [one["id"] for one in value["history"]] == [
            one.id for one in held(shell.memory_folder, ANN).history.records
        ]

    def test_a_document_for_reading(self, shell: Shell) -> None:
        text = exported(shell, "--format", "markdown", name="ann.md").read_text(encoding="utf-8")
        assert text.startswith(f"# Memory of {ANN}\n")

    def test_objects_are_a_folder_or_a_zip_file_of_the_same(self, shell: Shell) -> None:
        folder = exported(shell, "--format", "objects", name="objects")
        packed = exported(shell, "--format", "objects", name="objects.zip")
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
        with zipfile.ZipFile(packed) as archive:
            zipped = {name: archive.read(name) for name in archive.namelist() if "." in name}
        assert files == zipped
        assert "is not empty" in shell.refuses("export", "123", "--format", "objects", "-o", str(folder))

    @pytest.mark.design(276)
    def test_branches_have_their_name_head_persona_time_and_metadata(self, shell: Shell) -> None:
        folder = exported(shell, "--format", "objects", name="objects")
        found = json.loads((folder / "branches.json").read_bytes())
        for branch in found.values():
            assert (folder / "commits" / f"{branch.pop('head')}.json").exists()
        assert found == {
            "main": {
                "name": "main",
                "persona": "",
                "created_at": "2026-02-03T16:30:35.000Z",
                "metadata": {},
                "current": True,
            },
            "coding": {
                "name": "coding",
                "persona": "Terse; talks about code.",
                "created_at": "2026-02-03T16:32:35.000Z",
                "metadata": {"by": "command"},
                "current": False,
            },
        }
        listed = shell.json("branches", "123")["branches"]
        assert [(one["created_at"], one["metadata"]) for one in listed] == [
            (1770136235000, {}),
            (1770136355000, {"by": "command"}),
        ]

    def test_to_stdout_there_is_nothing_but_the_export(self, shell: Shell) -> None:
        starts = {"json": b"{\n", "markdown": b"# Memory", "objects": b"PK"}
        for format_, start in starts.items():
            result = shell.run("export", "123", "--format", format_, "--output", "-")
            assert (result.exit_code, result.stderr) == (0, "")
            assert result.stdout_bytes.startswith(start)
            assert b"Exported " not in result.stdout_bytes[-100:]

    def test_a_path_that_can_not_be_written_leaves_nothing(self, shell: Shell) -> None:
        (shell.folder / "file").write_text("in the way")
        (shell.folder / "folder" / "x").mkdir(parents=True)
        before = fingerprint(shell.folder)
        path = str(shell.folder / "file" / "x")
        for format_ in FORMATS:
            assert path in shell.refuses("export", "123", "--format", format_, "-o", path)
        for format_ in ("json", "markdown"):
            shell.refuses("export", "123", "--format", format_, "-o", str(shell.folder / "folder"))
        assert fingerprint(shell.folder) == before

    def test_no_file_of_the_memory_is_written_over(self, shell: Shell) -> None:
        before = fingerprint(shell.folder)
        for name, format_ in product(("ledger/user-456.jsonl", "durable/../ledger/x", "new"), FORMATS):
            path = str(shell.memory_folder / name)
            told = shell.refuses("export", "123", "--format", format_, "-o", path)
            assert "inside the folder of the memory itself" in told
        assert fingerprint(shell.folder) == before

    def test_of_nobody_no_file_is_made(self, shell: Shell) -> None:
        path = shell.folder / "x.json"
        assert shell.refuses("export", "9", "-o", str(path)).startswith("there is no memory of user-9")
        assert not path.exists()

    def test_it_needs_no_lock_and_changes_nothing(self, shell: Shell) -> None:
        before = fingerprint(shell.memory_folder)
        for format_ in FORMATS:
            exported(shell, "--format", format_, name=f"ann.{format_}")
        assert fingerprint(shell.memory_folder) == before


class TestImport:
    @pytest.mark.parametrize(
        "words",
        [["--history"], ["--format", "objects"], ["--format", "objects"]],
        ids=["json", "folder", "zip"],
    )
    def test_a_history_makes_the_identical_memory_elsewhere(
        self,
        shell: Shell,
        tmp_path_factory: pytest.TempPathFactory,
        words: list[str],
        request: pytest.FixtureRequest,
    ) -> None:
        name = f"ann.{request.node.callspec.id}"
        path = exported(shell, *words, name=name)
        there = Shell(tmp_path_factory.mktemp("there"))
        told = there.says("import", str(path), "--as", "123")
        assert told == "user-123: 11 records imported (8 commits, branches coding).\n"
        assert ledger(there, "123") == ledger(shell, "123")
        assert there.says("show", "123") == shell.says("show", "123")
        assert there.says("import", str(path), "--as", "123") == "user-123: nothing new; 11 already known.\n"
        assert there.says("verify").startswith("Checked 1 memory with 8 commits: no problems")

    def test_what_came_shows_in_the_profile_at_once(
        self, shell: Shell, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = exported(shell, "--history", name="ann.json")
        there = Shell(tmp_path_factory.mktemp("there"))
        profile = there.memory_folder / "profiles" / "123.json"
        profile.parent.mkdir(parents=True)
        profile.write_text(json.dumps({"display_names": [["Ann", 1]], "first_seen": 1}))
        there.says("import", str(path), "--as", "123")
        shown = json.loads(profile.read_text())
        assert shown["display_names"] == [["Ann", 1]] and "User works at Acme." in shown["notes"]

    def test_memories_alone_come_in_as_one_commit_beside_what_is_held(self, shell: Shell) -> None:
        path = exported(shell)
        shell.says("edit", "123", "works at acme", "User works at Initech.")
        told = shell.says("import", str(path))
        assert told == (
            "user-123: 1 memory imported; 1 to settle (`discoclaw memory settle user-123`); "
            "1 already known.\n"
        )
        assert "User writes Rust." in shell.says("show", "123")
        commit = shell.json("log", "123", "--limit", "1")[0]
        assert (commit["message"], commit["metadata"]) == ("imported", {"by": "import"})
        assert len(shell.json("settle", "123")) == 2

    def test_a_file_that_does_not_say_whose_it_is_has_to_be_told(self, shell: Shell) -> None:
        path = shell.folder / "durable.json"
        path.write_text(json.dumps({"version": 1, "items": [ITEM]}))
        assert shell.refuses("import", str(path)).endswith(
            "doesn't say whose memory it is; name the person with --as"
        )
        told = shell.says("import", str(path), "--as", "<@77>")
        assert told.startswith("user-77: 1 memory imported; 1 kept private and out of channels, ")
        assert "`!memory share imported`" in told
        assert shell.json("import", str(path), "--as", "77")["people"]["user-77"]["known"] == 1

    def test_a_whole_data_folder_comes_in_person_by_person(
        self, shell: Shell, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        rolling = shell.memory_folder / "rolling"
        rolling.mkdir()
        for name in ("discord:channel:7", "discord:channel:8"):
            (rolling / f"{name}.json").write_text(json.dumps({"summary": f"of {name}", "updatedAt": 1}))
        there = Shell(tmp_path_factory.mktemp("there"))
        (there.memory_folder / "rolling").mkdir(parents=True)
        own = there.memory_folder / "rolling" / "discord:channel:8.json"
        own.write_text(json.dumps({"summary": "our own", "updatedAt": 1}))
        assert there.says("import", str(shell.folder / "data")).splitlines() == [
            "user-123: 11 records imported (8 commits, branches coding).",
            "user-456: 1 record imported (1 commit).",
            "1 summary of conversations imported, 1 left out.",
        ]
        assert b"of discord:channel:7" in everything(there.memory_folder / "rolling")
        assert json.loads(own.read_bytes())["summary"] == "our own"
        assert [one["subject"] for one in there.json("list")] == ["user-123", "user-456"]

    def test_a_channel_s_summary_may_have_anybody_s_words(
        self, shell: Shell, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        old = tmp_path_factory.mktemp("old")
        (old / "rolling").mkdir()
        for name in ("discord:channel:7", "discord:dm:456"):
            told = json.dumps({"summary": "Ann has a canary.", "updatedAt": 1})
            (old / "rolling" / f"{name}.json").write_text(told)
        assert shell.says("import", str(old)) == "2 summaries of conversations imported, 0 left out.\n"
        shell.says("erase", "123", "--yes")
        assert [path.name for path in (shell.memory_folder / "rolling").iterdir()] == ["discord:dm:456.json"]
        assert shell.says("import", str(old)) == "0 summaries of conversations imported, 2 left out.\n"

    def test_one_of_several_people(self, shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
        there = Shell(tmp_path_factory.mktemp("there"))
        there.says("import", str(shell.folder / "data"), "--as", "456")
        assert [one["subject"] for one in there.json("list")] == ["user-456"]
        told = there.refuses("import", str(shell.folder / "data"), "--as", "9")
        assert "none of 9" in told

    def test_when_one_person_is_refused_nobody_comes_in(
        self, shell: Shell, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        there = Shell(tmp_path_factory.mktemp("there"))
        there.says("import", str(shell.folder / "data"), "--as", "456")
        path = there.memory_folder / "ledger" / "user-456.jsonl"
        path.write_bytes(path.read_bytes() + b"{}\n")
        before = fingerprint(there.memory_folder)
        assert "user-456.jsonl, line 2: " in there.refuses("import", str(shell.folder / "data"))
        assert fingerprint(there.memory_folder) == before

    def test_what_can_not_be_trusted_changes_nothing(self, shell: Shell) -> None:
        path = shell.folder / "x.json"
        for content, told in (
            (b"", "is not JSON"),
            (b"{ oops", "is not JSON"),
            (b"[]", "cannot be imported"),
            (b'{"format": "discoclaw-memory", "version": 99, "memories": []}', "version"),
            (b"PK\x03\x04 no zip", "zip"),
            (b"[" * 100_000, "nested too deep"),
        ):
            path.write_bytes(content)
            before = fingerprint(shell.folder)
            assert told in shell.refuses("import", str(path), "--as", "123")
            assert fingerprint(shell.folder) == before

    def test_a_tampered_history_changes_nothing(self, shell: Shell) -> None:
        path = exported(shell, "--history")
        path.write_bytes(path.read_bytes().replace(b"User writes Rust.", b"User writes Dust."))
        before = ledger(shell, "123")
        assert "event" in shell.refuses("import", str(path))
        assert ledger(shell, "123") == before

    def test_what_a_file_is_called_does_not_steer_the_terminal(self, shell: Shell) -> None:
        with zipfile.ZipFile(shell.folder / "m.zip", "w") as archive:
            archive.writestr("durable/\x1b[2J\u202e\x07.json", b'{"version": 1, "items": []}')
        reason = shell.refuses("import", str(shell.folder / "m.zip"))
        assert reason.startswith("m.zip: durable/ [2J .json is not named after a person")

    def test_a_missing_file_is_named(self, shell: Shell) -> None:
        assert "there is no file or folder nope.json" in shell.refuses("import", "nope.json")

    @pytest.mark.parametrize(
        ("rule", "secret"), [("strict", {"one", "two"}), ("balanced", {"one"}), ("open", set())]
    )
    def test_what_does_not_say_where_it_was_said_is_as_private_as_the_rule_says(
        self, shell: Shell, rule: str, secret: set[str]
    ) -> None:
        items = [
            {"kind": "fact", "text": "one", "source": {"type": "summary"}},
            {"kind": "preference", "text": "two", "source": {"type": "discord", "channelId": "5"}},
            {"kind": "fact", "text": "three", "source": {"type": "summary", "guildId": "5"}},
        ]
        path = shell.folder / "durable.json"
        path.write_text(json.dumps({"version": 2, "items": items}))
        told = shell.says("import", str(path), "--as", "77", DISCOCLAW_DM_PRIVACY=rule)
        assert (f"; {len(secret)} kept private" in told) == bool(secret)
        found = {
            item["text"] for item in shell.json("show", "77")["items"] if item["sensitivity"] != "normal"
        }
        assert found == secret

    def test_a_durable_file_that_a_command_takes_over_says_how_much_of_it_is_private(
        self, shell: Shell
    ) -> None:
        items = [{"id": f"durable-{one:08}", "kind": "fact", "text": f"text {one}"} for one in range(3)]
        path = shell.memory_folder / "durable" / "77.json"
        path.write_text(json.dumps({"version": 1, "updatedAt": 5, "items": items}))
        assert "3 of them as learned in private" in shell.run("verify").output
        empty = shell.folder / "empty.json"
        empty.write_text('{"version": 1, "items": [{"kind": "tool", "text": "uses vim"}]}')
        result = shell.run("import", str(empty), "--as", "77")
        assert "3 changes were taken over from a file, 3 kept private and out of channels, " in result.stderr
        assert "`!memory share imported`" in result.stderr

    def test_single_memories_that_are_no_good_are_named(self, shell: Shell) -> None:
        path = shell.folder / "durable.json"
        path.write_text(json.dumps({"version": 1, "items": [ITEM, {"kind": "nonsense", "text": "x"}]}))
        result = shell.run("import", str(path), "--as", "77")
        assert result.exit_code == 0
        assert result.stdout.startswith("user-77: 1 memory imported; 1 kept private")
        assert result.stdout.endswith("; 1 rejected.\n")
        assert "durable.json, item 2: unknown kind of memory 'nonsense'" in result.stderr


class TestErase:
    def test_without_yes_it_says_what_would_go_and_nothing_goes(self, shell: Shell) -> None:
        before = fingerprint(shell.folder)
        assert shell.refuses("erase", "123") == (
            "this would erase user-123 for good: 3 memories, 8 commits on 2 branches, "
            "and the summaries they are part of; confirm it with --yes"
        )
        assert fingerprint(shell.folder) == before

    def test_with_yes_nothing_of_them_is_left_and_others_stay(self, shell: Shell) -> None:
        others = ledger(shell, "456")
        assert (
            shell.says("erase", "123", "--yes")
            == "user-123 is erased: 3 memories, 8 commits on 2 branches; 2 files removed.\n"
        )
        kept = everything(shell.folder)
        for word in (b"tabs", b"Acme", b"Rust", b"Mondays", b"user-123"):
            assert word not in kept
        assert ledger(shell, "456") == others
        assert [one["subject"] for one in shell.json("list")] == ["user-456"]
        assert shell.says("erase", "123", "--yes") == "user-123 is erased: there was nothing to remove.\n"

    def test_what_was_erased_is_not_imported_again(self, shell: Shell) -> None:
        history = exported(shell, "--history")
        memories = exported(shell, name="memories.json")
        shell.says("erase", "123", "--yes")
        for path in (history, memories):
            assert shell.says("import", str(path)).startswith("user-123: nothing new; ")
        assert shell.refuses("show", "123").startswith("there is no memory of user-123")

    def test_what_an_interrupted_erasing_left_is_not_shown(self, shell: Shell) -> None:
        intent = shell.memory_folder / "erasing" / f"{ANN}.json"
        intent.parent.mkdir()
        intent.write_text(json.dumps({"subject": ANN, "at": 9**14, "sessions": [], "todo": []}))
        for words in (["show", "123"], ["log", "123"], ["export", "123", "-o", "-"], ["erase", "123"]):
            assert shell.refuses(*words).startswith("user-123 was being erased when that was interrupted")
        shell.says("show", "456")
        shell.says("erase", "123", "--yes")
        assert not list((shell.memory_folder / "ledger").glob("user-123*"))

    def test_summaries_go_from_where_the_settings_have_them(self, shell: Shell) -> None:
        folder = shell.folder / "elsewhere"
        folder.mkdir()
        summary = folder / "discord:dm:123.json"
        summary.write_text(json.dumps({"summary": "Ann is ill.", "updatedAt": 1}))
        told = shell.says("erase", "123", "--yes", DISCOCLAW_SUMMARY_DATA_DIR=str(folder))
        assert told == "user-123 is erased: 3 memories, 8 commits on 2 branches; 3 files removed.\n"
        assert not summary.exists()

    def test_somebody_without_a_ledger_can_be_erased_too(self, shell: Shell) -> None:
        (shell.memory_folder / "rolling").mkdir()
        (shell.memory_folder / "rolling" / "discord:dm:9.json").write_text('{"summary": "x", "updatedAt": 1}')
        assert "no ledger, and the summaries" in shell.refuses("erase", "9")
        assert shell.says("erase", "9", "--yes") == "user-9 is erased: 1 file removed.\n"

    def test_where_there_is_no_memory_at_all_none_is_made(self, empty: Shell) -> None:
        empty.refuses("erase", "123", "--yes")
        assert list(empty.folder.iterdir()) == []

    def test_on_a_terminal_it_asks(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("DISCOCLAW_DATA_DIR", shell.settings["DISCOCLAW_DATA_DIR"])
        ours, theirs = pty.openpty()
        ledger = shell.memory_folder / "ledger" / "user-123.jsonl"
        with open(theirs, encoding="utf-8") as terminal, open(ours, "wb", buffering=0) as keys:
            monkeypatch.setattr(sys, "stdin", terminal)
            for answer, code in ((b"n\n", 1), (b"\n", 1), (b"\x04", 1), (b"y\n", 0)):
                keys.write(answer)
                with pytest.raises(SystemExit) as ended:
                    cli(["memory", "erase", "123"])
                assert ended.value.code == code
                assert capsys.readouterr().out.startswith("This erases user-123 for good: 3 memories, ")
                assert ledger.exists() == (code == 1)
