"""What the command line takes back: it is removed from everywhere too, and the shell says from where."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell

ALSO = "It is also gone from the summary of discord:dm:123 (it is written again)."


@pytest.fixture
def summary(shell: Shell) -> Path:
    """The summary of Ann's DM, which has what she said about her work and her desk."""
    (shell.memory_folder / "rolling").mkdir()
    path = shell.memory_folder / "rolling" / "discord:dm:123.json"
    told = "Ann works at Acme. She likes tea. She wants tabs, 8 wide."
    path.write_text(json.dumps({"summary": told, "updatedAt": 1}))
    return path


class TestForget:
    def test_forgets_and_says_from_where_it_was_removed(self, shell: Shell, summary: Path) -> None:
        assert shell.says("forget", "123", "works at Acme").splitlines()[1] == ALSO
        assert not summary.exists()
        said = shell.says("forget", "456", "has a cat")
        assert said.startswith("Forgotten: ") and "is also gone from" not in said

    def test_refuses_what_is_forgotten_already(self, shell: Shell) -> None:
        shell.says("forget", "123", "works at Acme")
        assert "no item matches" in shell.refuses("forget", "123", "works at Acme")

    def test_names_another_branch_that_still_has_it(self, shell: Shell) -> None:
        _, elsewhere = shell.says("forget", "123", "works at Acme").splitlines()
        command = elsewhere.split("`")[3]
        assert command.startswith("discoclaw memory forget user-123 ") and command.endswith("--branch coding")
        said = shell.says(*command.split()[2:])
        assert said.startswith("Forgotten: ") and "still remembers" not in said


class TestOtherChanges:
    @pytest.mark.parametrize("verb", ["edit", "undo", "settle"])
    def test_take_back_what_was_said_before(self, shell: Shell, summary: Path, verb: str) -> None:
        told = "Ann wants tabs, 8 wide." if verb != "undo" else "Bob has a cat."
        who, path = "123", summary
        if verb == "undo":
            who, path = "456", summary.with_name("discord:dm:456.json")
        path.write_text(json.dumps({"summary": told, "updatedAt": 1}))
        words = {
            "edit": ["3720777d", "Prefers two columns."],
            "undo": [],
            "settle": [shell.json("settle", "123")[0]["event_id"], "new"],
        }
        said = shell.says(verb, who, *words[verb])
        assert f"It is also gone from the summary of discord:dm:{who} (it is written again)." in said
        assert not path.exists()
