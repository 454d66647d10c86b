"""Which data folder a command uses: each names it, and says if there is another one with memories."""

import shutil
from pathlib import Path

import pytest

from discoclaw.cli.main import cli
from tests.cli.shell import PLAIN, Shell, typed

COMMANDS = (
    ("memory", "list"),
    ("memory", "show", "123"),
    ("memory", "log", "123"),
    ("memory", "export", "123", "--output", "-"),
    ("memory", "export", "--all"),
    ("memory", "verify"),
    ("memory", "undo", "123"),
    ("memory", "erase", "456", "--yes"),
    ("recall", "123", "tabs"),
    ("config", "get", "global"),
    ("config", "set", "global", "respond_mode=all"),
    ("usage",),
    ("status",),
    ("audit", "privacy"),
    ("backup",),
    ("nostr", "status"),
    ("memory", "show", "9"),
)


@pytest.fixture
def here(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(shell.folder)
    return shell


def test_is_named_by_every_command_that_uses_it(here: Shell) -> None:
    env = {"DISCOCLAW_DATA_DIR": "data", "COLUMNS": "100"}
    said = {words: PLAIN.invoke(cli, list(words), env=env).stderr.splitlines() for words in COMMANDS}
    note = f"note: data folder: {here.folder / 'data'}"
    assert {words: lines.count(note) for words, lines in said.items()} == dict.fromkeys(COMMANDS, 1)


def test_restoring_names_the_folder_that_it_was_given(here: Shell) -> None:
    assert typed(here, "backup", "a.tar.gz").exit_code == 0
    said = PLAIN.invoke(cli, ["restore", "a.tar.gz", "--into", "other"]).stderr
    assert f"note: data folder: {here.folder / 'other'}\n" in said and "/data\n" not in said


@pytest.mark.parametrize("in_env", [False, True])
def test_a_second_one_with_memories_is_pointed_out(here: Shell, in_env: bool) -> None:
    other = here.folder / ("elsewhere" if in_env else "data")
    shutil.copytree(here.folder / "data", here.folder / "own")
    if in_env:
        shutil.move(here.folder / "data", other)
        (here.folder / ".env").write_text(f"DISCOCLAW_DATA_DIR={other}\n")
    told = f"note: {other} has 2 memories too; let DISCOCLAW_DATA_DIR name the bot's folder"
    commands = (("backup", "a.tar.gz"), ("status",), ("memory", "list"))
    for words in commands:
        assert told in typed(here, *words, DISCOCLAW_DATA_DIR="own").stderr, words
    shutil.rmtree(other / "memory")
    for words in commands:
        assert "too; let" not in typed(here, *words, DISCOCLAW_DATA_DIR="own").stderr, words


def test_a_new_env_file_says_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
    offline = {"DISCOCLAW_MODEL_PROVIDER": "offline", "DISCORD_TOKEN": token, "DISCOCLAW_DATA_DIR": ""}
    first = typed(Shell(tmp_path), "init", "--no-check", "--allow-users", "1", **offline)
    assert f"Memories will be in {tmp_path / 'data'}." in first.stdout, first.output
    assert f"DISCOCLAW_DATA_DIR={tmp_path / 'data'}\n" in (tmp_path / ".env").read_text()
    (tmp_path / ".env").chmod(0o640)  # as the installation has it, for the bot's group
    assert typed(Shell(tmp_path), "init", "--no-check", "--allow-users", "2", **offline).exit_code == 0
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o640


def test_what_can_be_no_token_is_refused_without_asking_discord(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for token in ("hunter2", "abc.def.ghi", "a" * 24 + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"):
        offline = {"DISCOCLAW_MODEL_PROVIDER": "offline", "DISCORD_TOKEN": token}
        result = typed(Shell(tmp_path), "init", "--no-check", "--allow-users", "1", **offline)
        assert result.exit_code == 1 and "DISCORD_TOKEN=…: isn't a token of a bot" in result.stderr
        assert token not in result.output and not (tmp_path / ".env").exists()
