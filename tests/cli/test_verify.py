"""`memory verify`: what is wrong is named by file, line and reason, and mended when asked to."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Shell
from tests.memory.kit import ANN, Clock, fingerprint, start_child


@pytest.fixture
def ledger(shell: Shell) -> Path:
    return shell.memory_folder / "ledger" / f"{ANN}.jsonl"


def damage(path: Path, *changes: tuple[int, bytes, bytes], torn: bytes = b"") -> None:
    """Change words in lines (from 1) of a file, and append an unfinished one."""
    lines = path.read_bytes().splitlines(keepends=True)
    for number, old, new in changes:
        assert old in lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_bytes(b"".join(lines) + torn)


def fails(shell: Shell, *words: str) -> list[str]:
    """The lines of a verify that finds something."""
    result = shell.run("verify", *words)
    assert (result.exit_code, result.stderr) == (1, "")
    return result.stdout.splitlines()


class TestLooking:
    def test_all_is_well(self, shell: Shell) -> None:
        assert shell.says("verify") == "Checked 2 memories with 9 commits: no problems.\n"
        assert shell.says("verify", "123").startswith("Checked 1 memory with 8 commits: no problems")

    def test_of_nobody_there_is_nothing_to_say(self, empty: Shell) -> None:
        assert empty.says("verify") == "Checked 0 memories with 0 commits: no problems.\n"
        assert empty.refuses("verify", "9").startswith("there is no memory of user-9")

    def test_damage_and_what_hangs_on_it_are_named(self, shell: Shell, ledger: Path) -> None:
        damage(ledger, (5, b"writes Rust", b"writes Dust"), torn=b"torn")
        lines = fails(shell)
        assert lines[0].startswith(f"{ANN}: {ANN}.jsonl, line 5: event ")
        assert "does not match its content" in lines[0]
        assert lines[1] == f"{ANN}: {ANN}.jsonl: an unfinished last line of 4 bytes, which is left out"
        assert lines[2].startswith(f"{ANN}: {ANN}.jsonl: commit ") and "which is not here" in lines[2]
        assert lines[3] == "Checked 2 memories with 8 commits: found problems in 1."

    def test_a_commit_whose_parent_was_taken_out(self, shell: Shell, ledger: Path) -> None:
        lines = ledger.read_bytes().splitlines(keepends=True)
        ledger.write_bytes(b"".join([*lines[:4], *lines[5:]]))
        first, _ = fails(shell)
        assert first.startswith(f"{ANN}: {ANN}.jsonl, line 5: commit ")
        assert first.endswith(", which is not here")

    def test_for_programs_by_line_and_reason(self, shell: Shell, ledger: Path) -> None:
        damage(ledger, (5, b"writes Rust", b"writes Dust"), torn=b"torn")
        result = shell.run("verify", "--json")
        ann, bob = json.loads(result.stdout)
        assert result.exit_code == 1
        assert [one["line"] for one in ann["damage"]] == [5]
        assert (ann["torn_bytes"], len(ann["orphans"]), len(ann["faults"])) == (4, 1, 3)
        assert (bob["damage"], bob["faults"], bob["commits"]) == ([], [], 1)

    def test_a_ledger_that_can_not_be_read_does_not_hide_the_others(self, shell: Shell, ledger: Path) -> None:
        ledger.unlink()
        ledger.mkdir()
        assert "can't read the memory of" in fails(shell)[0]
        result = shell.run("list")
        assert (result.exit_code, "user-456" in result.stdout) == (0, True)
        assert result.stderr.startswith(f"note: {ANN}: can't read the memory of {ANN}")
        assert "can't read the memory of" in shell.refuses("show", "123")
        assert fails(shell)[-1].endswith(": found problems in 1.")

    def test_an_erasing_that_was_interrupted(self, shell: Shell) -> None:
        folder = shell.memory_folder / "erasing"
        folder.mkdir()
        (folder / "user-9.json").write_text('{"subject": "user-9", "at": 1, "sessions": [], "todo": []}')
        (folder / "user-8.json").write_text('{"subject": "user-8", "todo": ["transparency"]}')
        assert (
            fails(shell)[0] == "user-9: erasing it was interrupted; the bot finishes that when it next starts"
        )
        assert shell.says("verify", "--repair").endswith(": no problems.\n")
        assert sorted(path.name for path in folder.iterdir()) == ["user-8.json"]


class TestAfterAKilledWrite:
    """The process dies between the ledger's line and the durable file."""

    def die(self, shell: Shell, subject: str, text: str) -> None:
        with start_child("commit_and_die", shell.memory_folder, subject, text) as child:
            child.communicate(timeout=20)
        assert child.returncode == -signal.SIGKILL

    async def text_of(self, shell: Shell, subject: str) -> bytes:
        """The file that the bot writes when it next uses the memory."""
        bot = Memory(shell.memory_folder, clock=Clock())
        return render(await bot.view(subject))

    def test_a_file_that_shows_an_older_state_is_no_problem_and_no_edit(self, shell: Shell) -> None:
        path = shell.memory_folder / "durable" / "123.json"
        before = path.read_bytes()
        self.die(shell, ANN, "User likes tea.")
        assert path.read_bytes() == before
        told = shell.says("verify")
        assert told.startswith(f"{ANN}: 123.json shows an older state; the bot writes it again")
        assert told.endswith("Checked 2 memories with 10 commits: no problems.\n")
        assert "older state" in shell.json("verify", "123")[0]["notes"][0]
        shell.says("export", "--all", "--output", str(shell.folder / "backup"))
        assert path.read_bytes() == before  # looking changes nothing
        assert asyncio.run(self.text_of(shell, ANN)) == path.read_bytes()
        assert shell.says("verify") == "Checked 2 memories with 10 commits: no problems.\n"
        assert "edited by hand" not in shell.says("log", "123")

    def test_nor_is_a_file_that_was_never_written(self, shell: Shell) -> None:
        self.die(shell, "user-789", "User likes tea.")
        told = shell.says("verify")
        assert told.startswith("user-789: 789.json is missing; the bot writes it again")
        assert shell.says("verify", "--repair").endswith("with 10 commits: no problems.\n")
        assert (shell.memory_folder / "durable" / "789.json").exists()

    def test_an_edit_of_the_older_state_is_still_told_as_one(self, shell: Shell) -> None:
        self.die(shell, ANN, "User likes tea.")
        path = shell.memory_folder / "durable" / "123.json"
        path.write_bytes(path.read_bytes().replace(b"Acme", b"Ecma"))
        assert fails(shell)[0].startswith(f"{ANN}: 123.json was edited; the bot adopts the edit")
        shell.says("verify", "--repair")
        shown = shell.says("show", "123")
        assert "User works at Ecma." in shown and "User likes tea." in shown


class TestRepairing:
    def test_what_verifies_stays_and_the_original_is_kept(self, shell: Shell, ledger: Path) -> None:
        damage(ledger, (5, b"writes Rust", b"writes Dust"), torn=b"torn")
        before = ledger.read_bytes()
        lines = shell.says("verify", "--repair").splitlines()
        kept = Path(lines[3].rpartition(" ")[2])
        assert lines[0].startswith(f"{ANN}: left out line 5: ")
        assert lines[1] == f"{ANN}: left out an unfinished last line of 4 bytes"
        assert lines[2].endswith("is lost; what follows it stays")
        assert lines[3].startswith(f"{ANN}: rewrote the ledger; the original is ")
        assert kept.read_bytes() == before
        assert lines[4] == "Checked 2 memories with 8 commits: no problems."
        assert ledger.read_bytes().splitlines()[:4] == before.splitlines()[:4]
        assert shell.says("verify").endswith(": no problems.\n")
        assert "writes Dust" not in shell.says("log", "123")
        shell.says("undo", "123")

    def test_what_only_the_durable_file_still_knows_comes_back(self, shell: Shell, ledger: Path) -> None:
        damage(ledger, (2, b"Acme", b"Ecma"))
        assert "Acme" not in shell.run("show", "123").stdout
        shell.says("verify", "--repair")
        assert "User works at Acme." in shell.says("show", "123")

    def test_what_came_back_from_the_file_is_as_private_as_it_may_have_been(
        self, shell: Shell, ledger: Path
    ) -> None:
        damage(ledger, (2, b"Acme", b"Ecma"))
        shell.says("verify", "--repair")
        found = {item["text"]: item["sensitivity"] for item in shell.json("show", "123")["items"]}
        assert found["User works at Acme."] == "private"

    def test_a_missing_file_is_written_and_an_edit_is_adopted(self, shell: Shell) -> None:
        durable = shell.memory_folder / "durable"
        before = (durable / "456.json").read_bytes()
        (durable / "456.json").unlink()
        (durable / "123.json").write_bytes((durable / "123.json").read_bytes().replace(b"Acme", b"Ecma"))
        assert len(fails(shell)) == 3
        assert shell.says("verify", "--repair").endswith(": no problems.\n")
        assert (durable / "456.json").read_bytes() == before
        assert "User works at Ecma." in shell.says("show", "123")

    def test_one_person_alone(self, shell: Shell, ledger: Path) -> None:
        bob = shell.memory_folder / "ledger" / "user-456.jsonl"
        damage(bob, torn=b"torn")
        damage(ledger, torn=b"torn")
        shell.says("verify", "123", "--repair")
        assert bob.read_bytes().endswith(b"torn")
        assert not ledger.read_bytes().endswith(b"torn")

    def test_where_nothing_is_wrong_nothing_is_touched_and_no_lock_is_needed(self, shell: Shell) -> None:
        bot = Memory(shell.memory_folder, clock=Clock())
        bot.open()
        try:
            before = fingerprint(shell.folder)
            shell.says("verify", "--repair")
            assert fingerprint(shell.folder) == before
        finally:
            bot.close()

    def test_while_the_bot_runs_nothing_is_repaired(self, shell: Shell, ledger: Path) -> None:
        damage(ledger, torn=b"torn")
        bot = Memory(shell.memory_folder, clock=Clock())
        bot.open()
        try:
            assert " is in use by " in shell.refuses("verify", "--repair")
        finally:
            bot.close()
        assert ledger.read_bytes().endswith(b"torn")

    def test_a_line_of_a_newer_version_is_left_alone_and_others_are_repaired(
        self, shell: Shell, ledger: Path
    ) -> None:
        bob = shell.memory_folder / "ledger" / "user-456.jsonl"
        ledger.write_bytes(ledger.read_bytes() + b'{"type": "hologram"}\n')
        damage(bob, torn=b"torn")
        before = ledger.read_bytes()
        result = shell.run("verify", "--repair")
        assert result.exit_code == 1
        assert "use that one" in result.stderr
        assert f"{ANN}: {ANN}.jsonl, line 12: a line of type 'hologram'" in result.stdout
        assert "found problems in 1." in result.stdout
        assert ledger.read_bytes() == before
        assert not bob.read_bytes().endswith(b"torn")
