"""The port to the disk: plain files and the database take the same acts, and say the same of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.stores import Disks, disks
from discoclaw.store.files import session_name
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, LEDGERS, NO_LOG, ROLLING, Disk, Log, drop
from discoclaw.store.postgres.disk import PostgresDisk
from discoclaw.store.sqlite import SqliteDisk
from tests.examples import FEW
from tests.memory.kit import ANN, BOB, STAMP

pytestmark = pytest.mark.every_store


@pytest.fixture
def disk(fresh: Callable[[], Disks]) -> Disk:
    return fresh().used


@pytest.fixture
def again(fresh: Callable[[], Disks]) -> Disk:
    """The same as another process has it."""
    return fresh().used


class TestALog:
    @pytest.fixture
    def log(self, disk: Disk) -> Log:
        return disk.ledgers.log(ANN)

    def test_that_is_not_there_is_empty_and_reading_makes_none(self, log: Log, root: Path) -> None:
        assert (log.read(), log.size()) == (b"", 0)
        assert not root.exists()

    def test_is_read_whole_and_by_others(self, log: Log, again: Disk) -> None:
        log.append(b"one\ntwo\n", after=log.head())
        log.append(b"three\n", after=log.head())
        for one in (log, again.ledgers.log(ANN)):
            assert (one.read(), one.size()) == (b"one\ntwo\nthree\n", 14)

    def test_of_another_length_takes_nothing(self, log: Log, again: Disk) -> None:
        log.append(b"one\n", after=log.head())
        again.ledgers.log(ANN).append(b"theirs\n", after=log.head())
        now = log.head()
        for size in (0, 4, 12):
            with pytest.raises(MemoryFault, match=r"user-123\.jsonl was changed by somebody else \(11 bytes"):
                log.append(b"ours\n", after=now._replace(size=size))
        assert log.read() == b"one\ntheirs\n"

    @pytest.mark.parametrize(
        "line", [b"", b"\xff\xfe", b"a\0b", "é🎻\u2028".encode(), b"\0", b"\r", b"x" * 100_000], ids=range(7)
    )
    def test_any_line_comes_back_as_it_was(self, log: Log, again: Disk, line: bytes) -> None:
        content = b"before\n" + line + b"\nbehind\n"
        log.append(content, after=log.head())
        assert again.ledgers.log(ANN).read() == content
        assert log.size() == len(content)
        log.append(b"more\n", after=log.head())

    def test_is_cut_and_written_anew(self, log: Log, again: Disk) -> None:
        log.append(b"one\ntwo\nthree\n", after=log.head())
        log.cut(8)
        assert again.ledgers.log(ANN).read() == b"one\ntwo\n"
        log.replace(b"other\n")
        assert again.ledgers.log(ANN).read() == b"other\n"
        log.append(b"more\n", after=log.head())
        log.replace(b"")
        assert (log.read(), log.size()) == (b"", 0)

    def test_copies_are_kept_beside_it_under_names_of_their_own(self, log: Log, disk: Disk) -> None:
        kept = []
        for content in (b"one\n", b"two\n"):
            log.replace(content)
            kept.append(log.keep_aside("damaged", STAMP).name)
        assert kept == [f"user-123.jsonl.damaged-{STAMP}", f"user-123.jsonl.damaged-{STAMP}-2"]
        assert [disk.documents(LEDGERS).read(name) for name in kept] == [b"one\n", b"two\n"]
        assert disk.documents(LEDGERS).names() == ["user-123.jsonl", *kept]
        assert disk.ledgers.by_age() == [(ANN, 4)]

    def test_a_log_is_removed_by_its_name(self, log: Log, disk: Disk) -> None:
        log.append(b"one\n", after=log.head())
        assert disk.documents(LEDGERS).remove(["user-123.jsonl", "user-9.jsonl"]) == (1, [])
        assert (log.read(), disk.ledgers.by_age()) == (b"", [])
        log.append(b"anew\n", after=log.head())


class TestLedgersByAge:
    def test_what_changed_last_comes_last(self, disk: Disk) -> None:
        for subject in (ANN, BOB, "bot"):
            disk.ledgers.log(subject).append(b"one\n", after=NO_LOG)
        disk.ledgers.log(ANN).append(b"two\n", after=disk.ledgers.log(ANN).head())
        assert disk.ledgers.by_age() == [(BOB, 4), ("bot", 4), (ANN, 8)]

    def test_nothing_but_ledgers_is_among_them(self, disk: Disk) -> None:
        disk.log("tombstones.jsonl").append(b"{}\n", after=NO_LOG)
        disk.documents(CURSORS).write("x.json", b"{}")
        assert disk.ledgers.by_age() == []


class TestDocuments:
    def test_each_folder_has_its_own(self, disk: Disk, again: Disk) -> None:
        for folder in (ROLLING, CURSORS, ""):
            disk.documents(folder).write("x.json", folder.encode())
        for folder in (ROLLING, CURSORS, ""):
            assert again.documents(folder).read("x.json") == folder.encode()
            drop(again.documents(folder), "x.json")
            with pytest.raises(FileNotFoundError):
                disk.documents(folder).read("x.json")

    def test_folders_are_listed_beside_them(self, disk: Disk) -> None:
        for folder in ("novelties", CURSORS, f"{CURSORS}2", ""):
            disk.documents(folder).write("x.json", b"{}")
        assert {"novelties", CURSORS, "x.json"} <= set(disk.documents("").names())
        assert disk.folders() - {ROLLING} == {"novelties", CURSORS, f"{CURSORS}2"}
        assert disk.documents("novelties").names() == ["x.json"]
        assert disk.documents(CURSORS).names() == ["x.json"]

    def test_are_listed_in_order_and_removed_by_name(self, disk: Disk) -> None:
        folder = disk.documents(ROLLING)
        assert folder.names() == []
        keys = ("discoclaw:dm:2", "discord:dm:1", "discord:channel:3", "ü", "z%_*?[a]")
        for key in keys:
            folder.write(session_name(key), b"{}")
        names = sorted(map(session_name, keys))
        assert folder.names() == names
        assert folder.remove([names[0], "nothing", names[2]]) == (2, [])
        assert folder.names() == [names[1], *names[3:]]

    def test_are_read_all_at_once_as_they_are_one_by_one(self, disk: Disk) -> None:
        texts = disk.documents(CURSORS)
        assert texts.read_all() == {}
        for name in ("b.json", "a.json", "aa.json"):
            texts.write(name, f"\0{name}".encode())
        disk.documents("").write("beside.json", b"not there")
        assert list(texts.read_all().items()) == [(name, texts.read(name)) for name in texts.names()]

    def test_one_is_added_only_where_there_is_none(self, disk: Disk, again: Disk) -> None:
        assert disk.documents(CURSORS).replace("x.json", b"first", None)
        assert not again.documents(CURSORS).replace("x.json", b"second", None)
        assert disk.documents(CURSORS).read("x.json") == b"first"

    def test_one_is_replaced_only_where_it_is_as_it_was(self, disk: Disk, again: Disk) -> None:
        folder = disk.documents(CURSORS)
        assert not folder.replace("x.json", b"second", b"first")
        folder.write("x.json", b"first")
        assert again.documents(CURSORS).replace("x.json", b"second", b"first")
        assert not folder.replace("x.json", b"third", b"first")
        assert folder.read("x.json") == b"second"

    def test_are_changed_by_what_is_there(self, disk: Disk, again: Disk) -> None:
        def longer(before: bytes | None) -> bytes | None:
            return None if before == b"xx" else (before or b"") + b"x"

        assert [one.documents(CURSORS).change("x.json", longer) for one in (disk, again, disk)] == [
            b"x",
            b"xx",
            b"xx",
        ]
        assert again.documents(CURSORS).change("y.json", lambda before: before) is None
        assert again.documents(CURSORS).names() == ["x.json"]

    def test_a_copy_is_kept_beside(self, disk: Disk) -> None:
        folder = disk.documents(ROLLING)
        folder.write("x.json", b"\xff")
        assert [folder.keep_aside("x.json", "corrupt", STAMP).name for _ in range(2)] == [
            f"x.json.corrupt-{STAMP}",
            f"x.json.corrupt-{STAMP}-2",
        ]
        assert folder.read(f"x.json.corrupt-{STAMP}") == b"\xff"


_CONTENT = st.binary(max_size=40) | st.text(max_size=20).map(str.encode)
_ACTS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "cut", "replace", "write", "remove", "aside"]),
        st.sampled_from(["user-1", "user-2", "user-12"]),
        st.lists(_CONTENT.map(lambda content: content.replace(b"\n", b" ")), max_size=3),
    ),
    max_size=15,
)


class TestFrozen:
    def test_a_database_is_as_it_was_while_others_write_and_files_go_on(
        self, disk: Disk, again: Disk, tmp_path: Path
    ) -> None:
        texts, log = disk.documents(CURSORS), disk.ledgers.log(ANN)
        texts.write("a.json", b"old")
        log.append(b"one\n", after=NO_LOG)
        with again.frozen(tmp_path / "beside") as frozen:
            texts.write("a.json", b"new")
            texts.write("b.json", b"new")
            log.append(b"two\n", after=log.head())
            found = frozen.documents(CURSORS).read_all(), frozen.ledgers.log(ANN).read()
        if disk.name == "files":
            assert found == ({"a.json": b"new", "b.json": b"new"}, b"one\ntwo\n")
        else:
            assert found == ({"a.json": b"old"}, b"one\n")
        assert not list(tmp_path.rglob("*.tmp*"))
        assert again.documents(CURSORS).read("b.json") == b"new"

    def test_one_that_does_not_exist_is_empty(self, disk: Disk, tmp_path: Path) -> None:
        with disk.frozen(tmp_path / "beside") as frozen:
            assert (frozen.documents(CURSORS).names(), frozen.ledgers.by_age()) == ([], [])


class TestFilling:
    """Of databases; plain files are put in place as a folder."""

    @pytest.fixture
    def whole(self, disk: Disk) -> SqliteDisk | PostgresDisk:
        if not isinstance(disk, SqliteDisk | PostgresDisk):
            pytest.skip("plain files are put in place as a folder")
        return disk

    def test_puts_all_in_place_or_nothing(self, whole: SqliteDisk | PostgresDisk, again: Disk) -> None:
        def texts() -> Iterator[tuple[str, bytes]]:
            yield from (("cursors/a.json", b"{}"), ("ledger/user-123.jsonl", b"one\ntwo\n"))
            if fails:
                raise OSError("unreadable")

        fails = True
        with pytest.raises(OSError, match="unreadable"):
            whole.fill(texts())
        assert (again.documents(CURSORS).names(), again.ledgers.by_age()) == ([], [])
        fails = False
        whole.fill(texts())
        assert again.documents(CURSORS).read_all() == {"a.json": b"{}"}
        assert again.ledgers.log(ANN).read() == b"one\ntwo\n"


class TestWhateverIsDone:
    @FEW
    @given(acts=_ACTS)
    def test_both_stores_hold_the_same_bytes_under_the_same_names(
        self, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str, list[bytes]]]
    ) -> None:
        root = tmp_path_factory.mktemp("disk")
        held = []
        for store in ("files", "sqlite"):
            disk = disks(store, root / store).used  # type: ignore[arg-type]
            for act in acts:
                _do(disk, *act)
            held.append(_held(disk))
            disk.close()
        assert held[0] == held[1]


def test_folders_of_others_in_the_folder_of_memory_are_not_the_stores(tmp_path: Path) -> None:
    for name in ("ledger", "cursors", ".git/objects", "lost+found", "mottos"):
        (tmp_path / name).mkdir(parents=True)
    assert FilesDisk(tmp_path).folders() == {"ledger", "cursors", "mottos", ROLLING}


def _do(disk: Disk, what: str, subject: str, lines: list[bytes]) -> None:
    log, folder = disk.ledgers.log(subject), disk.documents(CURSORS)
    content = b"".join(line + b"\n" for line in lines)
    if what == "append":
        log.append(content, after=log.head())
    elif what == "cut" and log.size():
        log.cut(log.read().find(b"\n") + 1)
    elif what == "replace":
        log.replace(content)
    elif what == "write":
        folder.write(f"{subject}.json", content)
    elif what == "remove":
        folder.remove([f"{subject}.json"])
        disk.documents(LEDGERS).remove([f"{subject}.jsonl"])
    elif what == "aside" and log.size():
        log.keep_aside("torn", STAMP)


def _held(disk: Disk) -> object:
    """All that a disk says of itself, but for the order of what changed at the same time."""
    logs = {subject: disk.ledgers.log(subject).read() for subject, _ in disk.ledgers.by_age()}
    cursors = disk.documents(CURSORS)
    texts = {name: cursors.read(name) for name in cursors.names()}
    return sorted(disk.ledgers.by_age()), logs, texts, disk.documents(LEDGERS).names()
