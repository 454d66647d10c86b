"""`discoclaw status`: who uses the store, and what is wrong with that."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from discoclaw import __version__
from discoclaw.cli.main import cli
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.postgres.disk import PostgresDisk
from tests.cli.shell import OURS, Runner, Shell
from tests.memory.kit import ANN, Clock, remember
from tests.memory.sharing import process

GOLDEN = Path(__file__).parent / "golden" / "status.txt"


def run(shell: Shell, *words: str, **settings: str) -> Result:
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
    environment = {**unset, **shell.settings, "COLUMNS": "120", **settings}
    return Runner().invoke(cli, ["status", *words], env=environment)


def settled(text: str) -> str:
    """What is printed, without what differs from run to run."""
    for found, put in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-02-03 16:29"),
        (r"\d+\.\d (kB|MB)", "1.0 MB"),
        (rf"\b{os.getpid()}\b", "4242"),
        (r"┃ pid +┃", "┃ pid  ┃"),  # as wide as this process's number
        (re.escape(os.uname().nodename), "host"),
        (r"│ \d+ s ", "│ 0 s "),
        (re.escape(f" {__version__} "), " 1.0 "),
        (r"Data folder: /.*/data\n", "Data folder: /data\n"),
    ):
        text = re.sub(found, put, text)
    return re.sub(r"[ ━─]{2,}", "  ", text)


@pytest.fixture
def disk(prepared_database: str) -> Iterator[PostgresDisk]:
    with ExitStack() as stack:
        found = PostgresDisk(prepared_database)
        stack.callback(found.close)
        found.open()
        yield found


def member(disk: PostgresDisk, *leases: str) -> int:
    """A process that counts as alive for ever."""
    rows = disk.rows(3600.0)
    disk.presence.process, *_ = rows.enter("bot")
    assert all(rows.take(name) for name in leases)
    rows.beating.close()
    return disk.presence.process


def test_a_folder_that_nobody_uses(shell: Shell) -> None:
    result = run(shell)
    assert (result.exit_code, result.stderr) == (0, "")
    folder, answers, memory, used = result.stdout.splitlines()
    assert folder == f"Data folder: {shell.folder / 'data'}"
    assert answers == "Model: sonnet (anthropic). Archive: off. A channel may have others."
    assert re.fullmatch(r"Memory: in files, [0-9.]+ [kM]B", memory)
    assert used == "Nothing uses it now: the bot isn't running."


def test_names_what_really_answers_and_what_is_set_while_the_bot_runs(shell: Shell) -> None:
    told = run(shell, DISCOCLAW_MODEL_PROVIDER="offline", DISCOCLAW_AUTO_SAVE="dm").stdout
    assert "Model: the offline model. Archive: on for direct messages." in told
    (shell.memory_folder / "config.json").write_text('{"global": {"model": "ollama:qwen3", "archive": true}}')
    found = json.loads(run(shell, "--json", DISCOCLAW_MODEL_PROVIDER="offline").stdout)
    assert (found["model"], found["archive"]) == ("ollama:qwen3 (ollama)", "on")


@pytest.mark.parametrize("store", ["files", "sqlite"])
def test_a_folder_in_use_names_its_process(tmp_path: Path, store: str) -> None:
    from discoclaw.memory.folder import note_holder

    shell = Shell(tmp_path)
    shell.memory_folder.mkdir(parents=True)
    note_holder(shell.memory_folder, 1_770_136_175_000)
    result = run(shell, DISCOCLAW_STORE=store)
    assert result.exit_code == 0
    assert f"In use by process {os.getpid()} since 2026-02-03" in result.stdout
    found = json.loads(run(shell, "--json", DISCOCLAW_STORE=store).stdout)
    assert found["holder"]["pid"] == os.getpid()
    assert found["holder"]["since"] == "2026-02-03T16:29:35.000Z"


def test_the_processes_of_a_shared_store(shell: Shell, prepared_database: str, disk: PostgresDisk) -> None:
    """A transcript that is missing is written, and the test fails so that somebody reads it."""
    member(disk, "shard/0/2", "mirror")
    member(disk, "shard/1/2")
    rows = disk.rows(3600.0)
    with disk.database.connection() as db:
        now = db.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert now is not None
    assert rows.beat(0, now[0], ["mirror"])
    rows.beating.close()
    result = run(shell, DISCOCLAW_STORE=prepared_database)
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)  # of the fixture's files beside it
    told = settled(result.stdout)
    if not GOLDEN.exists():
        GOLDEN.write_text(told, encoding="utf-8")
        pytest.fail(f"{GOLDEN.name} was missing and is now written: read it, then run again")
    assert told == GOLDEN.read_text(encoding="utf-8")


def test_programs_get_the_same(shell: Shell, prepared_database: str, disk: PostgresDisk) -> None:
    epoch = member(disk, "shard/0/1")
    result = run(shell, "--json", DISCOCLAW_STORE=prepared_database)
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == 0
    (one,) = found["processes"]
    assert (one["id"], one["pid"], one["shards"], one["alive"]) == (epoch, os.getpid(), ["0/1"], True)
    assert [lease["name"] for lease in found["leases"]] == ["shard/0/1"]
    assert found["wrong"] == []


def test_what_is_wrong_is_said_and_makes_the_exit_code_1(
    shell: Shell, prepared_database: str, disk: PostgresDisk
) -> None:
    dead, slow = member(disk, "shard/1/3"), member(disk, "shard/0/3")
    with disk.database.connection() as db:
        ago = "clock_timestamp() - interval '75 seconds'"
        db.execute(f"UPDATE beats SET until = {ago}, heard = {ago} WHERE process = %s", (dead,))
        db.execute(f"UPDATE beats SET fed = {ago} WHERE process = %s", (slow,))
    result = run(shell, DISCOCLAW_STORE=prepared_database)
    assert result.exit_code == 1
    wrong = [one for one in result.stdout.splitlines() if one.startswith("Problem: ")]
    assert re.search(rf"process {dead} .* was last heard from 7[56] s ago", wrong[0])
    assert re.search(rf"process {slow} .* what the others changed in the last 7[56] s", wrong[1])
    assert wrong[2:] == ["Problem: shard 1 of 3 has no process.", "Problem: shard 2 of 3 has no process."]


async def test_a_running_process_is_shown_and_one_that_ended_is_not(
    shell: Shell, prepared_database: str
) -> None:
    async with process(prepared_database, lease_s=60.0) as one:
        found = json.loads(run(shell, "--json", DISCOCLAW_STORE=prepared_database).stdout)
        assert [each["id"] for each in found["processes"]] == [one.number]
        assert found["processes"][0]["behindSeconds"] < 60
    found = json.loads(run(shell, "--json", DISCOCLAW_STORE=prepared_database).stdout)
    assert found["processes"] == []


def test_an_unreachable_database_is_one_line(shell: Shell) -> None:
    result = run(shell, DISCOCLAW_STORE="postgresql://nobody@127.0.0.1:1/none")
    assert (result.exit_code, result.stdout) == (1, "")
    reason = "the store cannot be read: PostgreSQL 127.0.0.1:1/none: nothing listens there"
    assert result.stderr.startswith(f"discoclaw: {reason}")


async def test_unfinished_erasings_and_what_followers_have_to_do_are_counted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    memory = Memory(shell.memory_folder, clock=Clock())
    memory.open()
    await memory.change(ANN, "said", remember("likes tea"))
    memory.close()
    (shell.memory_folder / "cursors").mkdir(exist_ok=True)
    (shell.memory_folder / "cursors" / "follow-questions.json").write_text("{}")
    (shell.memory_folder / "erasing").mkdir()
    (shell.memory_folder / "erasing" / "user-9.json").write_text('{"at": 1}')
    result = run(shell)
    assert "user-9 is being erased; the bot finishes that" in result.stdout
    assert "The bot still has to pass on what changed (questions): 1 memory." in result.stdout
