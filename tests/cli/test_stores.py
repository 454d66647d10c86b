"""The commands on every store, and the way from one store to another."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, Hold, Payer
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.folder import VERSION_FILE
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import CURSORS, ROLLING, line_of
from discoclaw.store.postgres.disk import PostgresDisk
from tests.cli.shell import Shell, typed
from tests.cli.test_killed_exports import left_in
from tests.memory.backups import entry, listing, members, packed
from tests.memory.kit import ANN, BOB, Clock, remember

TALK = "discord:channel:55"


@pytest.fixture
def house(shell: Shell) -> Shell:
    """Ann with two personas, Bob, and beside them all else that a store holds."""
    asyncio.run(_furnish(shell.memory_folder))
    return shell


@pytest.fixture(params=["sqlite", "postgres"])
def other(request: pytest.FixtureRequest) -> dict[str, str]:
    """The setting of a store that is not plain files."""
    store = request.getfixturevalue("prepared_database") if request.param == "postgres" else request.param
    return {"DISCOCLAW_STORE": store}


async def _furnish(root: Path) -> None:
    clock = Clock()
    kept = disks("files", root)
    cursors = Cursors(kept.used.documents(CURSORS))
    rolling = RollingMemory(kept.used.documents(ROLLING), cursors=cursors, clock=clock)
    memory = Memory(kept, clock=clock, cursors=cursors)
    memory.join(rolling)
    memory.open()
    choices = Choices(kept.used)
    choices.load()
    await memory.change("bot", "why", remember("I am a heron"))
    await memory.change("user-9", "why", remember("goes away"))
    await memory.erase("user-9")
    await choices.choose("77", opted_out=True)
    await cursors.put(f"people-{TALK}", {"session": TALK, "people": ["123"]})
    await cursors.put("transparency", {"123": "70", "456": "80"})
    await cursors.put("facts-456", {TALK: "77"})
    for session in (TALK, "discord:dm:456"):
        assert await rolling.put(session, f"talk of {session}", generation=await rolling.generation(session))
    memory.close()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a memory folder but locks, notes and the folder's version, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path.name != VERSION_FILE
    }


def held(database: Shell, store: dict[str, str], word: bytes) -> bool:
    """Whether a store has a word anywhere."""
    disk = disks(store["DISCOCLAW_STORE"], database.memory_folder).used
    if not isinstance(disk, PostgresDisk):
        return word in (database.memory_folder / "memory.sqlite").read_bytes()
    texts = "SELECT content FROM documents UNION ALL SELECT line FROM lines"
    rows = disk.database.read(lambda db: db.execute(texts, binary=True).fetchall())
    disk.close()
    return any(word in text for (text,) in rows)


GOLDEN = Path(__file__).parent / "golden"
"""A backup and a folder of everybody that earlier versions wrote of a house like this one."""
WAYS = ("a backup", "an earlier backup", "an earlier folder")


@pytest.fixture(params=WAYS)
def out(request: pytest.FixtureRequest, house: Shell, tmp_path: Path) -> Path:
    """The house as it leaves a store, in each of the ways that can be imported."""
    path = tmp_path / "out"
    if request.param == "a backup":
        house.says("export", "--all", "-o", str(path))
    elif request.param == "an earlier backup":
        shutil.copy(GOLDEN / "backup.tar.gz", path)
    else:
        shutil.unpack_archive(GOLDEN / "everybody.tar.gz", tmp_path, filter="data")
        (tmp_path / "everybody").rename(path)
    return path


def changed(out: Path, name: str, content: bytes | None) -> Path:
    """A copy of a whole store in which a file has another content, or is missing."""
    bad = out.with_name("bad")
    if out.is_dir():
        shutil.copytree(out, bad)
        (bad / name).unlink() if content is None else (bad / name).write_bytes(content)
        return bad
    files = {f"memory/{name}": content}
    files = {one: text for one, text in {**members(out), **files}.items() if text is not None}
    first = entry("backup.json", files.pop("backup.json"))
    files.pop("members.json")
    rest = [entry(*one) for one in files.items()]
    bad.write_bytes(packed([first, *rest, listing(*rest)]))
    return bad


class TestFromFilesToTheDatabaseAndBack:
    def test_every_file_has_the_bytes_it_had(
        self, house: Shell, tmp_path: Path, other: dict[str, str]
    ) -> None:
        database, back = Shell(tmp_path / "database"), Shell(tmp_path / "back")
        out, again = str(tmp_path / "out"), str(tmp_path / "again")
        assert house.says("export", "--all", "-o", out) == (
            f"Exported 5 memories of 3 subjects to {out}.\n"
            "Keep the file secret: it has what people said in private.\n"
        )
        database.says("import", out, **other)
        assert set(tree(database.memory_folder)) <= {"memory.sqlite"}
        database.says("export", "--all", "-o", again, **other)
        told = back.says("import", again).splitlines()
        assert told[0] == "bot: 1 record imported (1 commit)."
        assert told[-1] == "2 summaries of conversations and 3 cursors imported."
        before = tree(house.memory_folder)
        assert len(before) == 13
        after = tree(back.memory_folder)
        assert {name: after[name] for name in before} == before
        assert {name.rpartition("-")[0] for name in after.keys() - before} == {
            "cursors/withdrawn-user",
        }

    def test_twice_is_once(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        assert "user-123: 11 records imported (8 commits, branches coding)." in other.says("import", str(out))
        before = tree(other.memory_folder)
        assert "nothing new" in other.says("import", str(out))
        assert tree(other.memory_folder) == before
        assert left_in(other.folder / "data") == []

    def test_an_import_into_an_empty_store_brings_what_a_restore_brings(
        self, out: Path, tmp_path: Path
    ) -> None:
        imported, restored = Shell(tmp_path / "imported"), Shell(tmp_path / "restored")
        imported.says("import", str(out))
        file = GOLDEN / "backup.tar.gz" if out.is_dir() else out
        assert typed(restored, "restore", str(file)).exit_code == 0
        assert "no problems" in restored.says("verify")
        before, after = tree(restored.memory_folder), tree(imported.memory_folder)
        assert {name: after[name] for name in before} == before

    def test_in_the_same_folder_what_was_decided_has_moved_and_memories_are_noted(
        self, house: Shell, tmp_path: Path
    ) -> None:
        out = str(tmp_path / "out")
        house.says("export", "--all", "-o", out)
        result = house.run("import", out, DISCOCLAW_STORE="sqlite")
        assert result.exit_code == 0
        assert "3 people have memories in the store 'files', which is not used" in result.stderr
        assert not (house.memory_folder / "choices.json").exists()
        both = [house.says("show", ANN, DISCOCLAW_STORE=store) for store in ("files", "sqlite")]
        assert both[0] == both[1]


class TestACopy:
    """One command from one store to another."""

    def test_brings_all_and_says_what_it_did(self, house: Shell, other: dict[str, str]) -> None:
        before = [house.says("show", who) for who in (ANN, BOB)]
        result = house.run("copy", "files", **other)
        target = "sqlite" if other["DISCOCLAW_STORE"] == "sqlite" else "postgresql"
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[-2:] == [
            f"Copied from files to {target}: 3 histories, 2 summaries of conversations and 3 cursors.",
            f"Each history was read again in {target}, and none lacks a record. files keeps what it has.",
        ]
        assert f"{ANN}: 11 records imported (8 commits, branches coding)." in result.stdout
        assert [house.says("show", who, **other) for who in (ANN, BOB)] == before
        assert not (house.memory_folder / "choices.json").exists()  # it moved to where it counts
        assert left_in(house.folder / "data") == []
        again = house.says("copy", "files", **other).splitlines()
        assert (
            again[0]
            == f"Copied from files to {target}: 3 histories, 0 summaries of conversations and 0 cursors."
        )

    def test_an_address_need_not_be_on_the_command_line(self, house: Shell) -> None:
        told = house.run("copy", "-", typed="files\n", DISCOCLAW_STORE="sqlite").stdout
        assert "Copied from files to sqlite: 3 histories, " in told

    def test_back_again_the_bytes_are_the_same(self, house: Shell, other: dict[str, str]) -> None:
        before = tree(house.memory_folder)
        assert house.run("copy", "files", **other).exit_code == 0
        shutil.rmtree(house.memory_folder / "ledger")
        shutil.rmtree(house.memory_folder / "durable")
        shutil.rmtree(house.memory_folder / "rolling")
        assert house.run("copy", other["DISCOCLAW_STORE"]).exit_code == 0
        after = tree(house.memory_folder)
        assert {name: after.get(name) for name in before} == before

    def test_brings_nobody_back_who_was_erased_since(self, house: Shell, other: dict[str, str]) -> None:
        assert house.run("copy", "files", **other).exit_code == 0
        house.says("erase", ANN, "--yes", **other)
        told = house.run("copy", "files", **other).stdout
        assert ANN not in house.says("list", **other)
        assert not held(house, other, b"Acme")
        assert ": 2 histories, " in told  # erasing reaches the stores beside, too

    def test_that_is_not_complete_there_is_no_success(self, house: Shell) -> None:
        database = disks("sqlite", house.memory_folder).used
        database.open()
        database.close()
        with closing(sqlite3.connect(house.memory_folder / "memory.sqlite")) as rows:
            loses = "CREATE TRIGGER loses AFTER INSERT ON lines WHEN NEW.line LIKE '%a cat%'"
            rows.execute(f"{loses} BEGIN DELETE FROM lines WHERE id = NEW.id; END")
        result = house.run("copy", "files", DISCOCLAW_STORE="sqlite")
        assert f"{BOB} is not complete in sqlite" in result.stderr
        assert (result.exit_code, result.stdout) == (1, "")

    def test_of_a_memory_that_is_not_as_it_should_be_is_none(self, house: Shell) -> None:
        path = house.memory_folder / "durable" / "456.json"
        path.write_text(path.read_text().replace("a cat", "a dog"))
        assert "456.json was edited" in house.refuses("copy", "files", DISCOCLAW_STORE="sqlite")
        assert not (house.memory_folder / "memory.sqlite").exists()

    @pytest.mark.parametrize(
        ("store", "used", "why"),
        [
            ("files", "files", "name another store"),
            ("none", "files", "name another store"),
            ("sqlite", "files", "no memories in the store"),
            (
                "postgres",
                "files",
                "the store to copy from must be 'files', 'sqlite', 'none' or postgresql://",
            ),
        ],
    )
    def test_from_nowhere_or_to_nowhere_is_refused(
        self, house: Shell, store: str, used: str, why: str
    ) -> None:
        assert why in house.refuses("copy", store, DISCOCLAW_STORE=used)


class TestAnAdminOnAnotherMachine:
    """Somebody whose data folder is empty, because the memories are in a database."""

    def test_erases_people_and_an_old_export_does_not_bring_them_back(
        self, house: Shell, tmp_path: Path, prepared_database: str
    ) -> None:
        out, store = str(tmp_path / "out"), {"DISCOCLAW_STORE": prepared_database}
        house.says("export", "--all", "-o", out)
        Shell(tmp_path / "bot").says("import", out, **store)
        admin, later = Shell(tmp_path / "admin"), Shell(tmp_path / "later")
        admin.says("erase", ANN, "--yes", **store)
        assert ANN not in later.says("list", **store)
        told = later.says("import", out, **store)
        assert f"{ANN}: nothing new; 11 left out, because they were erased here" in told
        known = later.says("list", **store)
        assert BOB in known
        assert ANN not in known


class TestWhatIsLeftOutAndRefused:
    def test_one_person_of_it_can_be_brought_in_alone(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        other.says("import", str(out), "--as", "456")
        assert [one["subject"] for one in other.json("list")] == [BOB]
        assert not (other.memory_folder / "choices.json").exists()
        assert "has nothing about user-5" in other.refuses("import", str(out), "--as", "5")

    def test_who_was_erased_since_does_not_come_back(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        other.says("import", str(out))
        other.says("erase", "123", "--yes")
        other.says("import", str(changed(out, "cursors/facts-123.json", b'{"x": "5"}')))
        held = tree(other.memory_folder)
        assert [name for name in held if "123" in name] == [f"erasing/{ANN}.json"]  # its message in the chat
        assert f"rolling/{TALK}.json" not in held  # their words were in it
        assert "rolling/discord:dm:456.json" in held
        assert json.loads(held["cursors/transparency.json"]).keys() >= {"456"}

    def test_a_summary_of_unknown_people_stays_out_where_anybody_was_erased(
        self, house: Shell, tmp_path: Path
    ) -> None:
        out, other = tmp_path / "out", Shell(tmp_path / "other")
        house.says("export", "--all", "-o", str(out))  # somebody was erased in the house
        other.says("import", str(changed(out, f"cursors/people-{TALK}.json", None)))
        held = tree(other.memory_folder)
        assert f"rolling/{TALK}.json" not in held
        assert "rolling/discord:dm:456.json" in held

    def test_what_was_spent_counts_once_and_names_nobody_who_was_erased(
        self, house: Shell, tmp_path: Path
    ) -> None:
        out, log = str(tmp_path / "out"), house.memory_folder / "usage" / "2026-02.jsonl"
        call = Call("c1", 1770136175000, "answer", "m", Usage(5), 7, Payer("123", "55"))
        bobs = replace(call, id="c2", payer=Payer("456"))
        log.parent.mkdir()
        lines = [Hold("c1", call.at, 9, call.payer), call, bobs]
        log.write_bytes(b"no line of ours\n" + b"".join(line_of(one.to_json()) for one in lines))
        house.says("export", "--all", "-o", out)
        other = Shell(tmp_path / "other")
        for _ in range(2):
            other.says("import", out)
        there = other.memory_folder / "usage" / log.name
        assert there.read_bytes() == log.read_bytes().partition(b"\n")[2]
        other.says("erase", "123", "--yes")
        for _ in range(2):
            other.says("import", out)
        unnamed = [replace(one, payer=one.payer.without("123")) for one in lines]
        assert there.read_bytes() == b"".join(line_of(one.to_json()) for one in unnamed)

    def test_what_is_here_already_stays(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        (other.memory_folder / "rolling").mkdir(parents=True)
        (other.memory_folder / "rolling" / f"{TALK}.json").write_text('{"summary": "mine", "updatedAt": 5}')
        assert "1 summary of conversations" in other.says("import", str(out))
        assert "mine" in (other.memory_folder / "rolling" / f"{TALK}.json").read_text()

    def test_what_can_not_be_trusted_brings_nothing_in(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        in_folders = (
            ("everybody.json", b"{}", "is not of the format"),
            ("everybody.json", b'{"format": "discoclaw-everybody", "version": 2}', "newer discoclaw"),
            ("everybody.json", b'{"format": "discoclaw-everybody", "version": 1}', "no list of subjects"),
            ("people/user-123.json", b"{", "is not JSON"),
            ("people/user-123.json", None, "user-123.json"),
        )
        in_backups = (("ledger/user-123.jsonl", b"{}\n", "user-123.jsonl, line 1: "),)
        for name, content, said in (
            *(in_folders if out.is_dir() else in_backups),
            ("rolling/x.json", b'{"summary": 7}', "rolling/x.json is not a rolling summary"),
            ("rolling/a b.json", b"{}", "has no name of ours"),
            ("cursors/x.json", b"[]", "cursors/x.json is not a cursor"),
            ("profiles/5.json", b"[]", "profiles/5.json is not what it should be"),
            ("groups/5.json", b"[]", "groups/5.json is not what it should be"),
            # Nobody comes in while it can't be told who wanted no memory.
            ("choices.json", b"{", "says who opted out"),
            ("choices.json", b'{"version": 1, "people": {"7": {"opted_out": "yes"}}}', "says who opted out"),
            ("tombstone.key", b"x", "isn't a key: it has 1 bytes"),
            ("tombstone.key", None, "tombstone.key is missing"),
        ):
            bad = changed(out, name, content)
            for store in ("files", "sqlite"):
                assert said in other.refuses("import", str(bad), DISCOCLAW_STORE=store), name
            assert not other.memory_folder.exists()
            shutil.rmtree(bad) if bad.is_dir() else bad.unlink()

    def test_copies_that_were_set_aside_stay_out(self, out: Path, tmp_path: Path) -> None:
        other = Shell(tmp_path / "other")
        for name in ("rolling/x.json.corrupt-2026", "tools/x.txt", "cursors/follow-x.json"):
            other.says("import", str(changed(out, name, b"{}")))
            shutil.rmtree(tmp_path / "bad", ignore_errors=True)
            assert name not in tree(other.memory_folder)

    def test_a_link_in_a_folder_is_not_followed(self, out: Path, tmp_path: Path) -> None:
        if out.is_dir():
            (out / "rolling" / "x.json").symlink_to("/etc/passwd")
            assert "is a symbolic link" in Shell(tmp_path / "other").refuses("import", str(out))

    def test_a_memory_that_is_not_as_it_should_be_is_not_left_behind_silently(
        self, house: Shell, tmp_path: Path
    ) -> None:
        path = house.memory_folder / "durable" / "456.json"
        path.write_text(path.read_text().replace("a cat", "a dog"))
        out = tmp_path / "out"
        assert "456.json was edited" in house.refuses("export", "--all", "-o", str(out))
        assert not out.exists()
        assert house.run("verify", "--repair").exit_code in (0, 1)
        house.says("export", "--all", "-o", str(out))

    def test_a_file_that_is_there_is_replaced_only_if_that_is_asked(
        self, house: Shell, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.write_text("mine")
        assert "is there already" in house.refuses("export", "--all", "-o", str(out))
        assert out.read_text() == "mine"
        house.says("export", "--all", "-o", str(out), "--force")
        assert "memory/ledger/bot.jsonl" in members(out)

    def test_one_or_all_has_to_be_said(self, house: Shell) -> None:
        for words in (["export"], ["export", "123", "--all"]):
            assert house.run(*words).exit_code == 2
        for form in ("markdown", "objects", "snapshot", "usage"):
            assert f"{form} is about one person" in house.refuses("export", "--all", "--format", form)

    def test_a_backup_can_not_go_to_stdout(self, house: Shell) -> None:
        assert "name the file with --output" in house.refuses("export", "--all", "-o", "-")
        assert not Path("-").exists()


class TestTheCommandsOnTheDatabase:
    @pytest.fixture
    def database(self, house: Shell, tmp_path: Path, other: dict[str, str]) -> Shell:
        house.says("export", "--all", "-o", str(tmp_path / "out"))
        there = Shell(tmp_path / "database")
        there.says("import", str(tmp_path / "out"), **other)
        return there

    def test_say_what_they_say_on_files_and_change_it(
        self, house: Shell, database: Shell, other: dict[str, str]
    ) -> None:
        for words in (
            ["list"],
            ["show", "123"],
            ["log", "123", "--oneline"],
            ["branches", "123"],
            ["stats", "123"],
            ["diff", "123", "HEAD~1"],
            ["export", "123", "--format", "markdown", "-o", "-"],
        ):
            said = database.run(*words, **other)
            assert (said.exit_code, said.stderr) == (0, "")
            assert said.stdout_bytes == house.run(*words).stdout_bytes
        assert held(database, other, b"Acme")
        database.says("edit", "123", "5793b1ae", "User works at Ajax.", **other)
        assert "User works at Ajax." in database.says("show", "123", **other)
        database.says("erase", "123", "--yes", **other)
        assert not held(database, other, b"Acme")
        assert not held(database, other, b"Ajax")
        assert "Checked 2 memories with 2 commits: no problems" in database.says("verify", **other)


class TestADamagedDatabase:
    @pytest.fixture
    def database(self, house: Shell, tmp_path: Path) -> Shell:
        house.says("export", "--all", "-o", str(tmp_path / "out"))
        there = Shell(tmp_path / "database")
        there.says("import", str(tmp_path / "out"), DISCOCLAW_STORE="sqlite")
        return there

    def test_a_damaged_one_is_said_by_all_and_mended_by_verify(self, database: Shell) -> None:
        sqlite = {"DISCOCLAW_STORE": "sqlite"}
        file = database.memory_folder / "memory.sqlite"
        content = bytearray(file.read_bytes())
        content[4096 * 4 : 4096 * 6] = b"\xff" * 8192
        file.write_bytes(content)
        assert "memory.sqlite is damaged" in database.refuses("verify", **sqlite)
        assert "memory.sqlite is damaged" in database.refuses("erase", "123", "--yes", **sqlite)
        assert file.read_bytes() == content
        mended = database.run("verify", "--repair", **sqlite)
        assert "is written anew; what was there is kept as" in mended.stderr
        (aside,) = database.memory_folder.glob("memory.sqlite.corrupt-*")
        assert aside.read_bytes() == content
        database.says("erase", "5", "--yes", **sqlite)
        assert not aside.exists()


class TestAnotherStoreIsUsed:
    @pytest.mark.parametrize("store", ["files", "none"])
    def test_a_database_beside_that_is_damaged_can_be_mended_too(self, house: Shell, store: str) -> None:
        """The bot does not start with it, since it may say who opted out."""
        used = {"DISCOCLAW_STORE": store}
        file = house.memory_folder / "memory.sqlite"
        file.write_bytes(b"no database" * 1000)
        assert "let `discoclaw memory verify --repair`" in house.refuses("verify", **used)
        assert "memory.sqlite is damaged" in house.refuses("erase", "5", "--yes", **used)
        mended = house.run("verify", "--repair", **used)
        assert "is written anew; what was there is kept as" in mended.stderr
        house.says("erase", "5", "--yes", **used)

    def test_whoever_looks_is_told_that_memories_lie_in_the_other_one(
        self, house: Shell, tmp_path: Path
    ) -> None:
        told = "3 people have memories in the store 'files', which is not used"
        export = ["export", "--all", "-o", str(tmp_path / "a")]
        for words in (["list"], ["list", "--json"], ["verify"], export):
            result = house.run(*words, DISCOCLAW_STORE="sqlite")
            assert (result.exit_code, result.stderr.count(told)) == (0, 1), words
        assert house.run("list").stderr == ""

    def test_also_where_one_of_them_is_here_already_and_no_more_when_all_are(
        self, house: Shell, tmp_path: Path
    ) -> None:
        sqlite, out = {"DISCOCLAW_STORE": "sqlite"}, str(tmp_path / "out")
        house.says("export", "--all", "-o", out)
        house.run("import", out, "--as", "456", **sqlite)
        assert "2 people have memories in the store 'files'" in house.run("list", **sqlite).stderr
        assert "2 people have memories in the store 'files'" in house.run("import", out, **sqlite).stderr
        assert house.run("list", **sqlite).stderr == ""


class TestNone:
    @pytest.mark.design(116)
    def test_nobody_is_there_and_nothing_is_written(self, house: Shell, tmp_path: Path) -> None:
        none, before = {"DISCOCLAW_STORE": "none"}, tree(house.memory_folder)
        assert json.loads(house.says("list", "--json", **none)) == []
        assert "there is no memory of user-123" in house.refuses("export", "123", **none)
        house.says("export", "--all", "-o", str(tmp_path / "all"))
        assert "memory is off" in house.refuses("import", str(tmp_path / "all"), "--as", "456", **none)
        house.says("export", "--all", "-o", str(tmp_path / "out"), **none)
        assert not [name for name in members(tmp_path / "out") if "ledger" in name]
        assert tree(house.memory_folder) == before


def test_an_empty_database_is_named_without_its_password(tmp_path: Path, prepared_database: str) -> None:
    shell = Shell(tmp_path)
    secret = prepared_database.replace("discoclaw@", "discoclaw:Geheim@")
    said = shell.says("list", DISCOCLAW_STORE=secret)
    assert said.replace("\n", "").startswith("Nothing is remembered in postgresql:/127.0.0.1:")
    assert "Geheim" not in said
    assert not shell.memory_folder.exists()
    assert "there was nothing to remove" in shell.says("erase", "123", "--yes", DISCOCLAW_STORE=secret)


@pytest.mark.design(117)
def test_an_unknown_store_is_named_with_what_is_allowed(shell: Shell) -> None:
    said = shell.refuses("list", DISCOCLAW_STORE="postgres")
    assert said == (
        "DISCOCLAW_STORE=postgres: must be 'files', 'sqlite', 'none' or postgresql://user:password@host/database"
    )
