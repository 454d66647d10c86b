"""`discoclaw backup` and `discoclaw restore` as an admin types them; and data of a newer version."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import render_json
from tests.cli.shell import Shell, typed
from tests.memory.backups import backed_up, members
from tests.memory.kit import ANN, BOB, NOW, Clock, fingerprint, remember
from tests.memory.leftovers import ANN as ERASED
from tests.memory.leftovers import CANARY, fill, shelves, traces
from tests.memory.sharing import process

KEY = "nsec1notarealkeyatall"


def says(shell: Shell, *words: str, **settings: str) -> str:
    result = typed(shell, *words, **settings)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def refuses(shell: Shell, *words: str, **settings: str) -> str:
    """Why a command fails: in one line."""
    result = typed(shell, *words, **settings)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.startswith("discoclaw: ") and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def file(shell: Shell) -> str:
    """The name of a backup of the shell's folder."""
    path = str(shell.folder / "a.tar.gz")
    says(shell, "backup", path)
    return path


class TestBackup:
    def test_says_what_is_in_it_and_what_is_not(self, shell: Shell) -> None:
        target = shell.folder / "a.tar.gz"
        printed = says(shell, "backup", str(target)).splitlines()
        assert printed[0].startswith(f"Wrote {target} from {shell.folder / 'data'}: ") and printed[
            0
        ].endswith("read again and verified.")
        assert printed[1:] == [
            "In it: 2 ledgers with 9 commits and 2 other texts.",
            "Not in it: content/, .env, caches and the embedded relay's copies.",
            "Keep the file secret: it has what people said in private.",
        ]

    def test_warns_of_the_key_that_is_in_it_or_says_where_it_is(self, shell: Shell) -> None:
        (shell.folder / "data" / "nostr").mkdir()
        (shell.folder / "data" / "nostr" / "key").write_text(KEY)
        printed = says(shell, "backup", str(shell.folder / "a.tar.gz"))
        assert "2 other texts and the mirror's key.\n" in printed
        assert "and the mirror's key, with which anybody can read the mirror and write as the bot." in printed
        assert KEY not in printed
        assert members(shell.folder / "a.tar.gz")["nostr/key"] == KEY.encode()

    def test_has_a_name_with_the_date(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(shell.folder)
        says(shell, "backup")
        assert len(list(shell.folder.glob("discoclaw-20??????-??????.tar.gz"))) == 1

    def test_works_while_the_folder_is_in_use(self, shell: Shell) -> None:
        memory = Memory(shell.memory_folder, clock=Clock())
        memory.open()
        says(shell, "backup", str(shell.folder / "a.tar.gz"))
        memory.close()

    def test_is_refused_where_it_would_replace_or_pass_for_something(self, shell: Shell, file: str) -> None:
        assert "is there already; name another file, or add --force" in refuses(shell, "backup", file)
        assert says(shell, "backup", file, "--force").startswith(f"Wrote {file} from ")
        inside = str(shell.memory_folder / "a.tar.gz")
        assert "inside the folder of the memory itself" in refuses(shell, "backup", inside)

    def test_that_has_too_little_space_is_refused_before_it_begins(self, shell: Shell) -> None:
        with (shell.memory_folder / "archive.sqlite").open("wb") as file:
            file.truncate(1 << 42)  # of which the disk has nothing
        refusal = refuses(shell, "backup", str(shell.folder / "a.tar.gz"))
        assert "needs about 1099511" in refusal and "MB are free" in refusal
        assert list(shell.folder.glob("*.tar.gz")) == []

    def test_of_nothing_is_refused(self, empty: Shell) -> None:
        assert "there is nothing to back up" in refuses(empty, "backup", str(empty.folder / "a.tar.gz"))

    def test_names_what_it_does_not_know(self, shell: Shell) -> None:
        (shell.memory_folder / "Novelties").mkdir()
        (shell.memory_folder / "Novelties" / "a.json").write_text("{}")
        result = typed(shell, "backup", str(shell.folder / "a.tar.gz"))
        assert result.stderr.startswith("note: memory/Novelties/a.json is not in it")

    def test_leaves_out_links_and_names_them(self, shell: Shell) -> None:
        (shell.memory_folder / "rolling").mkdir()
        (shell.memory_folder / "rolling" / "x.json").symlink_to("/etc/passwd")
        result = typed(shell, "backup", str(shell.folder / "a.tar.gz"))
        assert result.exit_code == 0
        assert "note: memory/rolling/x.json is not in it" in result.stderr


class TestRestore:
    def test_a_dry_run_changes_nothing(self, shell: Shell, file: str) -> None:
        before = fingerprint(shell.folder)
        printed = says(shell, "restore", file, "--dry-run", "--into", str(shell.folder / "new"))
        assert "a.tar.gz is sound. It was made 20" in printed
        assert "In it: 2 ledgers with 9 commits and 2 other texts. Nothing was changed." in printed
        assert "--replace" in refuses(shell, "restore", file, "--dry-run")
        assert fingerprint(shell.folder) == before

    def test_into_a_new_folder(self, shell: Shell, file: str) -> None:
        new = shell.folder / "new"
        printed = says(shell, "restore", file, "--into", str(new))
        assert "Restored: 2 ledgers with 9 commits and 2 other texts." in printed
        for name in ("ledger", "durable"):
            assert content(new / "memory" / name) == content(shell.memory_folder / name)
        assert "no problems" in shell.says("verify", DISCOCLAW_DATA_DIR=str(new))

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
    def test_as_root_leaves_the_folder_of_another_user_alone(self, shell: Shell, file: str) -> None:
        theirs, prey = shell.folder / "theirs", shell.folder / "prey"
        prey.write_text("root's")
        (theirs / ".restore").mkdir(parents=True)
        moves = {"phase": 2, "aside": [], "new": [["../prey", "taken"]]}
        (theirs / ".restore" / "moves.json").write_text(json.dumps(moves))
        os.chown(theirs, 12345, 12345)
        said = refuses(shell, "restore", file, "--into", str(theirs), "--replace")
        assert "belongs to another user (id 12345)" in said and "sudo -u '#12345' discoclaw restore" in said
        assert prey.read_text() == "root's" and not (theirs / "memory").exists()

    def test_never_overwrites_and_with_replace_keeps_what_was_there(self, shell: Shell, file: str) -> None:
        shell.says("undo", BOB)
        before = fingerprint(shell.memory_folder / "ledger")
        assert "is there already; add --replace" in refuses(shell, "restore", file)
        assert fingerprint(shell.memory_folder / "ledger") == before
        assert "is kept in" in says(shell, "restore", file, "--replace")
        assert "User has a cat." in shell.says("show", BOB)
        (kept,) = (shell.folder / "data").glob("old.before-restore-*")
        assert fingerprint(kept / "memory" / "ledger") == before
        since = str(shell.folder / "since")
        shell.says("export", "--all", "--output", since, DISCOCLAW_DATA_DIR=str(kept))
        shell.says("import", since)
        assert "User has a cat." not in shell.says("view", BOB)

    def test_is_refused_while_the_bot_runs(self, shell: Shell, file: str) -> None:
        memory = Memory(shell.memory_folder, clock=Clock())
        memory.open()
        assert "is in use by process" in refuses(shell, "restore", file, "--replace")
        memory.close()

    @pytest.mark.long
    @pytest.mark.parametrize("store", ["files", "sqlite"])
    def test_who_was_erased_or_opted_out_here_since_stays_that_way(self, empty: Shell, store: str) -> None:
        data, path = empty.folder / "data", empty.folder / "a.tar.gz"
        house = shelves(data, store=store)
        house.memory.open()
        asyncio.run(fill(house))
        backed_up(data, store, path)
        asyncio.run(house.memory.erase(ERASED))
        asyncio.run(Choices(house.memory.disk).choose("820000000000000288", opted_out=True))
        house.memory.close()
        printed = says(empty, "restore", str(path), "--replace", DISCOCLAW_STORE=store)
        assert "1 subject erased here since the backup stayed erased." in printed
        for kept in data.glob("old.before-*"):
            shutil.rmtree(kept)
        assert traces(data, CANARY) == []
        again = shelves(data, store=store)
        again.memory.open()
        assert again.memory.erased_at(ERASED) >= NOW
        choices = Choices(again.memory.disk)
        choices.load()
        assert choices.opted_out("820000000000000288")
        assert asyncio.run(again.memory.view("user-820000000000000288")).items
        again.memory.close()

    def test_an_erasing_that_is_unfinished_here_comes_first(self, shell: Shell, file: str) -> None:
        intent = {"subject": ANN, "at": NOW}
        (shell.memory_folder / "erasing").mkdir()
        (shell.memory_folder / "erasing" / f"{ANN}.json").write_bytes(render_json(intent))
        assert "finish it first" in refuses(shell, "restore", file, "--replace")

    def test_folders_that_an_admin_placed_elsewhere(self, shell: Shell, file: str) -> None:
        placed = shell.folder / "placed"
        placed.mkdir()
        (placed / "1.json").write_text("{}")
        elsewhere = {"DISCOCLAW_DURABLE_DATA_DIR": str(placed)}
        says(shell, "restore", file, "--replace", **elsewhere)
        assert sorted(path.name for path in placed.iterdir()) == ["123.json", "456.json"]
        (kept,) = (shell.folder / "data").glob("old.before-restore-*")
        assert (kept / "memory" / "durable" / "1.json").read_text() == "{}"

    def test_into_a_database_that_has_memories_or_processes_is_refused(
        self, shell: Shell, file: str, database: str
    ) -> None:
        says(shell, "restore", file, "--into", str(shell.folder / "b"), DISCOCLAW_STORE=database)
        printed = shell.says("list", DISCOCLAW_STORE=database, DISCOCLAW_DATA_DIR=str(shell.folder / "b"))
        assert ANN in printed
        refusal = refuses(shell, "restore", file, "--into", str(shell.folder / "c"), DISCOCLAW_STORE=database)
        assert "the database has memories already" in refusal

    async def test_into_a_database_that_a_process_uses_is_refused(
        self, shell: Shell, file: str, prepared_database: str
    ) -> None:
        async with process(prepared_database):
            words = ("restore", file, "--into", str(shell.folder / "b"))
            refusal = refuses(shell, *words, DISCOCLAW_STORE=prepared_database)
        assert "processes of the bot use the database; stop all of them first" in refusal

    def test_what_is_no_backup_is_refused_in_one_line(self, shell: Shell) -> None:
        (shell.folder / "x.tar.gz").write_bytes(b"nonsense")
        assert "x.tar.gz can't be used" in refuses(shell, "restore", str(shell.folder / "x.tar.gz"))


class TestDataOfANewerVersion:
    @pytest.mark.parametrize("store", ["files", "sqlite"])
    def test_is_refused_by_what_writes(self, empty: Shell, store: str) -> None:
        memory = Memory(disks(store, empty.memory_folder), clock=Clock())
        memory.open()
        asyncio.run(memory.change(BOB, "why", remember("User has a cat.")))
        memory.close()
        (empty.memory_folder / "version.json").write_bytes(render_json({"version": 7}))
        before = fingerprint(empty.folder)
        for words in (
            ("memory", "undo", BOB),
            ("memory", "erase", BOB, "--yes"),
            ("config", "set", "global", "respond_mode=all"),
            ("backup", "x.tar.gz"),
        ):
            refusal = refuses(empty, *words, DISCOCLAW_STORE=store)
            assert "has data of version 7" in refusal and "up to version 1" in refusal
            assert "upgrade the program, or restore a backup from before" in refusal
        after = fingerprint(empty.folder)
        assert {name: after[name] for name in before} == before

    def test_makes_way_for_a_backup_from_before(self, shell: Shell, file: str) -> None:
        (shell.memory_folder / "version.json").write_bytes(render_json({"version": 7}))
        says(shell, "restore", file, "--replace")
        assert json.loads((shell.memory_folder / "version.json").read_bytes())["version"] == 1
        shell.says("undo", BOB)
