"""A snapshot spares a start the folding of a long ledger; it says exactly the same, or is not used."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit, Record, Ref, encode_line
from discoclaw.core.history import MAIN, Branch, Branches, History
from discoclaw.core.item import KINDS, MANUAL, Facets, Item, Source
from discoclaw.core.pending import Pending
from discoclaw.core.purge import TakenBack
from discoclaw.core.reminder import Reminder
from discoclaw.core.times import iso_ms
from discoclaw.core.view import Conflict, View
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from discoclaw.memory.subjects.subject import SNAPSHOT_EVERY, Snapshot, Subject, load, save
from discoclaw.store.plain import log_at
from tests.memory.busy import busy
from tests.memory.kit import ANN, NOW, Clock, lines_of, remember, texts
from tests.tables import naming

Restart = Callable[[], Memory]


@cache
def records() -> Sequence[Record]:
    """A long history. To make it takes longer than all else that happens while tests are collected."""
    return busy(250)


@cache
def lines() -> Sequence[bytes]:
    return [encode_line(record) for record in records()]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
IDS = st.sampled_from(["durable-1", "durable-2", "durable-é", "", "x"])
SECRET = st.sampled_from(["normal", "private", "confidential"])
TIMES = st.integers(0, 2**50)
FACETS = st.builds(
    Facets,
    author=st.sampled_from(["stated", "inferred"]),
    sensitivity=SECRET,
    scope=st.none() | TEXT,
    confidence=st.floats(0, 1),
    key=st.none() | TEXT,
    category=TEXT,
    links=st.frozensets(IDS, max_size=3),
    triple=st.none() | st.tuples(TEXT, TEXT, TEXT),
)
ITEM = st.builds(
    Item,
    id=TEXT,
    kind=st.sampled_from(KINDS),
    text=TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    status=st.sampled_from(["active", "deprecated"]),
    source=st.just(MANUAL) | st.builds(Source, st.just("discord"), st.just("7"), st.sampled_from(["8", "9"])),
    created_at=TIMES,
    updated_at=TIMES,
    facets=FACETS,
)
VIEW = st.builds(
    View,
    items=st.lists(ITEM, max_size=4).map(lambda items: {item.id: item for item in items}),
    last_event=st.dictionaries(TEXT, TEXT, max_size=3),
    triples=st.dictionaries(TEXT, TEXT, max_size=3),
    conflicts=st.lists(st.builds(Conflict, TEXT, TEXT, TEXT, TEXT, SECRET, TEXT), max_size=3).map(tuple),
    forgotten=st.dictionaries(TEXT, TIMES, max_size=3),
    head=st.none() | TEXT,
    updated_at=TIMES,
    commits=st.integers(0, 10**6),
    pending=st.lists(st.builds(Pending, TEXT, ITEM, TIMES, TEXT), max_size=3).map(tuple),
)
BRANCH = st.builds(
    Branch,
    TEXT,
    st.none() | TEXT,
    TEXT,
    TIMES,
    st.none() | TEXT,
    st.dictionaries(TEXT, st.booleans(), max_size=1),
)
REMINDER = st.builds(Reminder, *[TEXT] * 3, TIMES, *[TEXT] * 3, *[st.booleans()] * 3, TEXT)
BRANCHES = st.builds(
    Branches,
    all=st.dictionaries(TEXT, BRANCH, max_size=3),
    current=TEXT,
    moves=st.lists(st.tuples(TIMES, TEXT), max_size=3).map(tuple),
    last_ms=TIMES,
    turned_ms=TIMES,
    reminders=st.dictionaries(TEXT, REMINDER, max_size=2),
)
SNAPSHOT = st.builds(Snapshot, size=st.integers(0, 2**40), digest=TEXT, branches=BRANCHES, view=VIEW)


class TestItComesBackExactly:
    @given(snapshot=SNAPSHOT)
    def test_whatever_a_view_holds(
        self, tmp_path_factory: pytest.TempPathFactory, snapshot: Snapshot
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "any.json"
        save(path, snapshot)
        back = load(path)
        assert back == snapshot
        assert list(back.view.items.values()) == list(snapshot.view.items.values())  # in their order
        assert [one.event for one in back.branches.reminders.values()] == [
            one.event for one in snapshot.branches.reminders.values()
        ]
        assert types_of(back) == types_of(snapshot)

    def test_no_field_is_left_out_of_the_test_above(self) -> None:
        """A field that is added to a view has to be added there, and to the snapshot."""
        example = Snapshot(1, "d", Branches(), RICH)
        named = {
            field.name
            for value in (
                example,
                RICH,
                RICH.items["durable-1"],
                FULL,
                Branches(),
                Branch(MAIN),
                RICH.conflicts[0],
                RICH.taken_back["durable-3", "likes rum"],
                RICH.pending[0],
            )
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
            if field.compare  # what is computed from the others is not kept
        }
        assert named == KNOWN_FIELDS


FULL = Facets(
    "stated", "private", None, 0.5, "key", "cat", frozenset({"durable-2"}), ("user", "likes", "tea")
)
RICH = View(
    {"durable-1": Item("durable-1", "fact", "likes tea", ("a",), "active", MANUAL, 1, 2, FULL)},
    conflicts=(Conflict("durable-1", "likes mate", "said so", "event", "private", "durable-2"),),
    sources={"durable-1": ("discord:1/2", "discord:1/3")},
    taken_back={
        ("durable-3", "likes rum"): TakenBack(
            "durable-3", "fact", "likes rum", 7, "drink", ("discord:1/4",), open_only=True, alone=True
        )
    },
    pending=(Pending("event", Item("durable-2", "fact", "likes cake", (), "active", MANUAL, 1, 2, FULL), 3),),
)
KNOWN_FIELDS = {
    *("size", "digest", "branches", "view"),
    *("items", "last_event", "triples", "conflicts", "forgotten", "head", "updated_at", "commits"),
    *("id", "kind", "text", "tags", "status", "source", "created_at", "facets"),
    *("author", "sensitivity", "scope", "confidence", "key", "category", "links", "triple"),
    *("all", "current", "moves", "last_ms", "turned_ms", "reminders"),
    *("name", "persona", "base", "metadata"),
    *("item_id", "reason", "event_id", "other_id"),
    *("sources", "taken_back", "at", "messages", "open_only", "alone"),
    *("pending", "item", "question"),
}


def types_of(value: Any) -> Any:
    """The types in a value, all the way down: a tuple that came back as a list is equal to nothing."""
    if dataclasses.is_dataclass(value):
        return [types_of(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [dict, *(types_of(one) for one in value.values())]
    if isinstance(value, tuple | list):
        return [type(value), *(types_of(one) for one in value)]
    return type(value)


class TestWhatCanNotBeUsedIsNone:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "views" / "one.json"
        save(path, Snapshot(7, "digest", Branches(), RICH))
        return path

    def test_one_with_any_byte_changed(self, path: Path) -> None:
        content = path.read_bytes()
        for place in range(0, len(content) - 1, 7):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            assert load(path) is None
        for length in range(0, len(content) - 1, 7):
            path.write_bytes(content[:length])
            assert load(path) is None

    def test_one_that_is_sealed_and_makes_no_sense(self, path: Path) -> None:
        for value in (
            7,
            [],
            {},
            {"version": 3},
            {"version": 4},
            {"version": 1, "size": 1, "digest": "", "branches": []},
        ):
            with naming(value):
                seal(path, value)
                assert load(path) is None

    def test_one_that_lacks_a_part_or_has_it_in_another_shape(self, path: Path) -> None:
        for part in ("size", "digest", "branches", "view"):
            with naming(part):
                whole = json.loads(path.read_bytes().partition(b"\n")[2])
                seal(path, {name: value for name, value in whole.items() if name != part})
                assert load(path) is None
                for other in (None, 7.5, "x", [], {}, [[]], {"all": []}, {"items": [7]}):
                    seal(path, {**whole, part: other})
                    known = load(path)  # no start stumbles over it
                    assert known is None or (part in ("size", "digest") and known.view == RICH)
                    assert known is None or (type(known.size), type(known.digest)) == (int, str)

    def test_a_missing_one_or_a_folder_in_its_place(self, path: Path) -> None:
        path.unlink()
        assert load(path) is None
        path.mkdir()
        assert load(path) is None
        save(path, Snapshot(7, "digest", Branches(), RICH))  # is a warning, no more
        assert path.is_dir()


def seal(path: Path, value: object) -> None:
    """Write any value as a snapshot whose seal is right."""
    text = json.dumps(value)
    path.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n", encoding="utf-8")


class Long:
    """A subject whose ledger is long enough for a snapshot, and starts on it."""

    def __init__(self, folder: Path, held: Sequence[Record] | None = None) -> None:
        self.ledger = folder / "user-123.jsonl"
        self.cached = folder / "views" / "user-123.json"
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        self.append(*(records() if held is None else held))

    def start(self) -> Subject:
        return Subject(ANN, log_at(self.ledger), None, self.cached, max_items=30)

    def append(self, *records: Record) -> None:
        with self.ledger.open("ab") as file:
            file.write(b"".join(map(encode_line, records)))

    def check(self, files: Subject | None = None) -> Subject:
        """A start says what a replay of the whole ledger says."""
        files = files or self.start()
        whole = read(self.ledger).history
        assert files.branches == whole.branches
        assert files.view == whole.shown()
        for name, branch in whole.branches.all.items():
            expected = whole.shown() if name == whole.branches.current else whole.view(branch.head)
            assert files.branch_view(name) == expected
        return files

    def forge(self) -> None:
        """Let the snapshot say something else of the same ledger: who shows that has used it."""
        known = load(self.cached)
        assert known is not None
        lie = dataclasses.replace(known.view, items={})
        save(self.cached, dataclasses.replace(known, view=lie))

    def uses_it(self) -> bool:
        self.forge()
        return not self.start().view.items


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a long ledger and its snapshot; to be copied, not used."""
    folder = tmp_path_factory.mktemp("made")
    Long(folder).start()
    return folder


@pytest.fixture
def long(tmp_path: Path, made: Path) -> Long:
    """A long ledger, with the snapshot that a start has left."""
    shutil.copytree(made, tmp_path / "long")
    return Long(tmp_path / "long", [])


class TestALongLedgerHasOne:
    def test_it_names_the_bytes_it_was_made_from_and_a_start_uses_it(self, long: Long) -> None:
        known, content = load(long.cached), long.ledger.read_bytes()
        assert known is not None
        assert (known.size, known.digest) == (len(content), hashlib.sha256(content).hexdigest())
        long.check()
        assert long.uses_it()

    @pytest.mark.parametrize("cut", [205, 220, 233, 245])
    def test_with_whatever_stands_behind_it(self, tmp_path: Path, cut: int) -> None:
        """Made in the middle of a history; the rest is folded onto it."""
        long = Long(tmp_path, records()[:cut])
        long.start()
        long.append(*records()[cut:])
        long.check()
        known = load(long.cached)
        assert known is not None
        assert known.size < long.ledger.stat().st_size

    def test_a_short_ledger_has_none(self, tmp_path: Path) -> None:
        short = Long(tmp_path, records()[: SNAPSHOT_EVERY - 1])
        short.check()
        assert not short.cached.exists()

    def test_it_is_renewed_when_enough_stands_behind_it(self, long: Long) -> None:
        first = load(long.cached)
        assert first is not None
        files = long.start()
        for count in (SNAPSHOT_EVERY - 1, 1):
            assert load(long.cached) == first
            last = files.branches.last_ms
            files.record([switch(last + number) for number in range(1, count + 1)], last)
        second = load(long.cached)
        assert second is not None
        assert second.size == long.ledger.stat().st_size > first.size
        long.check()

    def test_so_it_is_by_a_start_after_one_that_could_not_write_it_wherever_head_went_since(
        self, long: Long
    ) -> None:
        """A process that is killed before it writes the snapshot leaves more behind it than it should."""
        known = load(long.cached)
        assert known is not None
        last = known.branches.last_ms
        moves = [switch(last + number) for number in range(1, SNAPSHOT_EVERY + 2)]
        if moves[-1].branch == known.branches.current:
            moves.pop()
        assert moves[-1].branch != known.branches.current
        long.append(*moves)
        assert long.check().view.items
        second = load(long.cached)
        assert second is not None
        assert second.size == long.ledger.stat().st_size


def switch(ms: int) -> Ref:
    """HEAD moves to one branch or the other."""
    return Ref(action="switch", branch="coding" if ms % 2 else MAIN, timestamp=iso_ms(ms))


class TestItIsNotUsedWhereItDoesNotFit:
    """The ledger is then read whole; nothing but time is lost."""

    def test_deleted(self, long: Long) -> None:
        shutil.rmtree(long.cached.parent)
        long.check()
        assert long.uses_it()

    @pytest.mark.parametrize("place", [3, 5000])
    def test_tampered_with(self, long: Long, place: int) -> None:
        content = bytearray(long.cached.read_bytes())
        content[place] ^= 1
        long.cached.write_bytes(content)
        long.check()
        assert long.uses_it()  # it was made anew

    @pytest.mark.parametrize("line", [0, 249])
    def test_a_ledger_that_was_tampered_with(self, long: Long, line: int) -> None:
        changed = [*lines()]
        changed[line] = lines()[line].replace(b'"timestamp": "2026', b'"timestamp": "2025')
        assert len(changed[line]) == len(lines()[line])
        long.ledger.write_bytes(b"".join(changed))
        files = long.check()
        assert files.view.items  # the other lines are used
        with pytest.raises(MemoryFault, match=f"line {line + 1}: .*until it is repaired"):
            files.record([switch(files.branches.next_ms(0))], 0)

    @pytest.mark.parametrize("count", [0, 249])
    def test_a_ledger_that_was_cut(self, long: Long, count: int) -> None:
        long.ledger.write_bytes(b"".join(lines()[:count]))
        long.check()

    def test_a_ledger_that_went(self, long: Long) -> None:
        long.ledger.unlink()
        assert long.start().view == View()

    def test_a_ledger_cut_and_grown_again_to_its_length(self, long: Long) -> None:
        content = b"".join(lines()[:240])
        long.ledger.write_bytes(content)
        missing = sum(map(len, lines()[240:]))
        long.append(padded(missing))
        assert long.ledger.stat().st_size == sum(map(len, lines()))
        long.check()

    def test_somebody_elses(self, long: Long, tmp_path: Path) -> None:
        their = Long(tmp_path / "other", plain(210))
        their.start()
        shutil.copy(their.cached, long.cached)
        long.check()
        assert long.uses_it()

    def test_a_damaged_line_behind_it_is_named_by_its_number(
        self, long: Long, caplog: pytest.LogCaptureFixture
    ) -> None:
        with long.ledger.open("ab") as file:
            file.write(b"{}\n")
        before = long.cached.read_bytes()
        files = long.check()
        with pytest.raises(MemoryFault, match=f"line {len(lines()) + 1}: "):
            files.record([switch(files.branches.next_ms(0))], 0)
        assert long.cached.read_bytes() == before

    def test_a_torn_line_behind_it_is_kept_aside_by_the_next_record(self, long: Long) -> None:
        content = long.ledger.read_bytes()
        with long.ledger.open("ab") as file:
            file.write(b"torn")
        files = long.check()
        ref = switch(files.branches.next_ms(0))
        files.record([ref], 0)
        assert long.ledger.read_bytes() == content + encode_line(ref)
        (aside,) = long.ledger.parent.glob("*.torn-*")
        assert aside.read_bytes() == content + b"torn"
        long.check()

    @pytest.mark.parametrize("action", ["union", "mend"])
    def test_records_of_another_replica_behind_it(self, long: Long, action: Any) -> None:
        late = busy(30, seed=11)
        last = History(records()).branches.last_ms
        long.append(*late, Ref(action=action, branch="", timestamp=iso_ms(last + 1)))
        long.check()

    def test_a_commit_behind_it_whose_parent_is_lost_is_damage(self, long: Long) -> None:
        long.append(padded(2000, parent="0" * 16))
        files = long.check()
        with pytest.raises(MemoryFault, match=f"line {len(lines()) + 1}: commit .* follows 0000000000000000"):
            files.record([switch(files.branches.next_ms(0))], 0)


def padded(size: int, parent: str | None = None) -> Commit:
    """The next commit of main, its line exactly `size` bytes long."""
    branches = History(records()).branches
    commit = Commit(
        branch=MAIN,
        events=(),
        message="",
        parent_id=parent or branches.all[MAIN].head,
        timestamp=iso_ms(branches.last_ms + 1),
    )
    return dataclasses.replace(commit, message="x" * (size - len(encode_line(commit))))


def plain(count: int) -> list[Commit]:
    """Commits that say nothing, at some length."""
    commits: list[Commit] = []
    for number in range(count):
        parent = commits[-1].id if commits else None
        when = iso_ms(NOW + number)
        commits.append(Commit(branch=MAIN, events=(), message="so " * 80, parent_id=parent, timestamp=when))
    return commits


class TestInTheStore:
    """The whole way: a memory on a folder, its cache beside it."""

    @pytest.fixture
    def cached(self, root: Path, memory: Memory) -> Path:
        lines_of(memory).replace(b"".join(lines()[:210]))
        return root.parent / "cache" / "views" / f"{ANN}.json"

    @pytest.mark.every_store
    async def test_it_lies_in_the_cache_and_is_used_by_the_next_start(
        self, memory: Memory, cached: Path, restart: Restart
    ) -> None:
        view, branches = await memory.view(ANN), await memory.branches(ANN)
        assert load(cached) is not None
        later = restart()
        assert await later.view(ANN) == view
        assert await later.branches(ANN) == branches
        for name in branches.all:
            assert await later.view(ANN, name) == await memory.view(ANN, name)

    @pytest.mark.every_store
    async def test_what_is_done_behind_it_is_there_after_a_start(
        self, memory: Memory, cached: Path, restart: Restart
    ) -> None:
        await memory.view(ANN)
        later = restart()
        await later.change(ANN, "why", remember("reads old books"), branch="old")
        await later.change(ANN, "why", remember("likes tea"))
        await later.change(ANN, "why", remember("plays go"), branch="fresh")
        await verbs.switch(later, ANN, "fresh")
        await verbs.merge(later, ANN, "old", Origin("stated"))
        await verbs.undo(later, ANN, Origin("stated"))
        await verbs.delete_branch(later, ANN, "old")
        last = restart()
        assert "plays go" in await texts(last)
        for name in (await later.branches(ANN)).all:
            assert await last.view(ANN, name) == await later.view(ANN, name)
        assert await last.branches(ANN) == await later.branches(ANN) == (await last.history(ANN)).branches
        assert await last.view(ANN) == (await last.history(ANN)).shown()

    async def test_a_cache_that_can_not_be_written_is_no_fault(
        self, memory: Memory, cached: Path, root: Path
    ) -> None:
        (root.parent / "cache").write_text("a file where the folder should be")
        assert (await memory.view(ANN)).items
        await memory.change(ANN, "why", remember("likes tea"))
        assert "likes tea" in await texts(memory)

    async def test_deleting_it_while_we_run_is_no_fault(
        self, memory: Memory, cached: Path, clock: Clock
    ) -> None:
        view = await memory.view(ANN)
        shutil.rmtree(cached.parent.parent)
        clock.forward(minutes=90)
        await memory.view("user-7")
        assert not memory.has_in_ram(ANN)
        assert await memory.view(ANN) == view
        assert cached.exists()
