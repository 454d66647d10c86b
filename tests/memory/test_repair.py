"""`repair` makes a ledger sound again: what is good in it stays, what was there is kept, and it goes on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit, Ref, encode_line
from discoclaw.core.history import History
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import fold
from discoclaw.memory.subjects import inspect
from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.ledger import Repaired, read, repair
from discoclaw.memory.subjects.store import Memory
from discoclaw.memory.subjects.subject import Subject
from discoclaw.store.plain import log_at
from tests.memory import child
from tests.memory.kit import (
    ANN,
    NOW,
    STAMP,
    asides,
    chain,
    commits_of,
    durable_of,
    fingerprint,
    ledger_of,
    remember,
    texts,
    told_by,
)

Restart = Callable[[], Memory]

COMMITS = chain("likes tea", "spielt Geige 🎻", "works at Acme", "has a cat", "rides a bike")
LINES = [encode_line(commit) for commit in COMMITS]
BAD = b'{"type": "commit", "id": "gone"}\n'
NEWER = b'{"type": "tag", "name": "v1"}\n'
LATER = NOW + 60_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "user-1.jsonl"


def repaired(path: Path, content: bytes) -> Repaired:
    """What the repair of a ledger of this content says."""
    path.write_bytes(content)
    said = repair(path, now_ms=LATER, stamp=STAMP)
    assert said is not None
    return said


def mends(path: Path) -> list[Ref]:
    """The refs by which a ledger accepts that commits are lost."""
    return [one for one in read(path).records if isinstance(one, Ref) and one.action == "mend"]


class TestWhatIsWrongGoesAndWhatIsGoodStays:
    def test_the_original_is_kept_beside_byte_for_byte(self, path: Path) -> None:
        content = LINES[0] + BAD + LINES[2] + b"torn"
        said = repaired(path, content)
        assert said.kept_as == path.with_name(f"user-1.jsonl.damaged-{STAMP}")
        assert said.kept_as.read_bytes() == content
        (damage,) = said.damage
        assert str(damage).startswith("line 2: a commit has unknown or missing fields: ")

    @pytest.mark.parametrize(
        ("content", "kept"),
        [
            (BAD + LINES[0] + b"\xff\xfe\n" + LINES[1] + b"\n" + LINES[2] + BAD + b"to", LINES[:3]),
            (LINES[0] + BAD + LINES[2] + LINES[3], [LINES[0], LINES[2], LINES[3]]),
            (LINES[1] + LINES[2], LINES[1:3]),
            (BAD, []),
        ],
        ids=["good lines", "a parent lost to damage", "a lost parent alone", "nothing but damage"],
    )
    def test_good_lines_stay_byte_for_byte_and_a_ref_says_which_parent_is_lost(
        self, path: Path, content: bytes, kept: list[bytes]
    ) -> None:
        repaired(path, content)
        lost = mends(path)
        assert path.read_bytes() == b"".join([*kept, *map(encode_line, lost)])
        known = [COMMITS[LINES.index(line)] for line in kept]
        ids = {None, *(one.id for one in known)}
        assert [one.head for one in lost] == [one.parent_id for one in known if one.parent_id not in ids]
        assert all((one.branch, one.metadata) == ("", {"by": "repair"}) for one in lost)
        assert all(one.timestamp == iso_ms(LATER) for one in lost)
        if known:
            assert read(path).history.view(known[-1].id) == fold(known)

    def test_two_that_follow_the_same_lost_commit_are_one_mend(self, path: Path) -> None:
        twin = encode_line(replace(COMMITS[2], branch="twin"))
        said = repaired(path, LINES[0] + LINES[2] + twin)
        assert [damage.line for damage in said.damage] == [2, 3]
        assert [mend.head for mend in mends(path)] == [COMMITS[1].id]

    def test_lines_lost_in_two_places_are_two_mends_at_two_times(self, path: Path) -> None:
        repaired(path, LINES[0] + LINES[2] + LINES[4])
        assert {mend.head for mend in mends(path)} == {COMMITS[1].id, COMMITS[3].id}
        assert len({mend.timestamp for mend in mends(path)}) == 2

    @pytest.mark.parametrize("tail", [b"x", LINES[2][:-1], b"\0" * 700, b"\0" * 700 + b"\n"])
    def test_a_torn_tail_is_cut_off(self, path: Path, tail: bytes) -> None:
        said = repaired(path, LINES[0] + LINES[1] + tail)
        assert path.read_bytes() == LINES[0] + LINES[1]
        assert said.damage == ()
        assert said.kept_as.read_bytes() == LINES[0] + LINES[1] + tail

    def test_a_mend_is_the_newest_record_though_the_clock_went_back(self, path: Path) -> None:
        path.write_bytes(LINES[0] + LINES[2])
        repair(path, now_ms=5, stamp=STAMP)
        assert ms_of_iso(mends(path)[0].timestamp) == ms_of_iso(COMMITS[2].timestamp) + 1


class TestAfterwardsItIsSound:
    @given(
        order=st.lists(st.sampled_from(range(5)), max_size=7),
        bad=st.lists(st.integers(0, 7), max_size=3),
        torn=st.integers(0, 40),
    )
    def test_whatever_was_lost(
        self, tmp_path_factory: pytest.TempPathFactory, order: list[int], bad: list[int], torn: int
    ) -> None:
        """Lines lost, repeated, out of order, damaged and torn: the rest is whole and says what it said."""
        lines = [LINES[number] for number in order]
        for place in bad:
            lines.insert(place, BAD)
        path = tmp_path_factory.mktemp("repair") / "user-1.jsonl"
        path.write_bytes(b"".join(lines) + LINES[0][:torn])
        before = read(path)
        said = repair(path, now_ms=LATER, stamp=STAMP)
        after = read(path)
        assert (said is None) == (not before.damage and not before.torn)
        assert (after.damage, after.torn) == ((), 0)
        assert after.commits == before.commits
        assert after.history.orphans() == {}
        kept = b"".join(line for line in lines if line != BAD)
        assert path.read_bytes()[: len(kept)] == kept
        assert after.history.shown().items == before.history.shown().items

    def test_a_sound_ledger_a_missing_one_and_a_repaired_one_are_left_alone(self, path: Path) -> None:
        assert repair(path, now_ms=LATER, stamp=STAMP) is None
        assert not path.exists()
        path.write_bytes(LINES[0] + LINES[1] + LINES[0])
        for _ in range(2):
            before = fingerprint(path.parent)
            assert repair(path, now_ms=LATER + 1, stamp="20990101-000000") is None
            assert fingerprint(path.parent) == before
            repaired(path, LINES[0] + BAD + LINES[2] + b"torn")

    def test_damage_after_a_repair_is_damage_again(self, path: Path) -> None:
        repaired(path, LINES[0] + LINES[2])
        first = path.read_bytes()
        again = repaired(path, first + LINES[4])
        assert [damage.line for damage in again.damage] == [4]
        assert again.kept_as != path.with_name(f"user-1.jsonl.damaged-{STAMP}")
        assert again.kept_as.read_bytes() == first + LINES[4]
        assert path.read_bytes().startswith(first + LINES[4])

    def test_the_lost_lines_put_back_by_hand_are_welcome(self, path: Path) -> None:
        repaired(path, LINES[0] + BAD + LINES[2])
        with path.open("ab") as file:
            file.write(LINES[1])
        loaded = read(path)
        assert loaded.damage == ()
        assert loaded.history.shown().items == fold(COMMITS[:3]).items


class TestWhatItWillNotDo:
    @pytest.mark.parametrize("beside", [b"", BAD, b"torn"])
    def test_a_line_of_a_newer_version_is_not_thrown_away(self, path: Path, beside: bytes) -> None:
        path.write_bytes(LINES[0] + NEWER + LINES[2] + beside)
        before = fingerprint(path.parent)
        with pytest.raises(MemoryFault, match=r"^user-1\.jsonl, line 2: .*'tag'.* use that one$"):
            repair(path, now_ms=LATER, stamp=STAMP)
        assert fingerprint(path.parent) == before

    def test_a_full_disk_leaves_the_ledger_as_it_was(self, tmp_path: Path) -> None:
        content = LINES[0] + BAD + LINES[2]
        for room in (10, len(content) + 10):  # too little for the copy; enough for it, not for the mend
            path = tmp_path / f"{room}.jsonl"
            path.write_bytes(content)
            assert told_by(child.repair_full, path, str(room)) == "full"
            assert path.read_bytes() == content
            assert all(aside.read_bytes() == content for aside in asides(path, "damaged"))
            assert not list(tmp_path.glob(".*"))


class TestTheMemoryGoesOn:
    """The damaged memory of somebody, repaired while nobody uses it."""

    @pytest.fixture
    async def mended(self, memory: Memory, restart: Restart) -> Memory:
        for text in ("likes tea", "works at Acme", "has a cat"):
            await memory.change(ANN, "why", remember(text))
        lines = ledger_of(memory).read_bytes().splitlines(keepends=True)
        ledger_of(memory).write_bytes(lines[0] + BAD + lines[2])
        assert repair(ledger_of(memory), now_ms=LATER, stamp=STAMP) is not None
        return restart()

    async def test_the_file_gives_back_what_the_ledger_lost(self, mended: Memory, restart: Restart) -> None:
        assert sorted(await texts(mended)) == ["has a cat", "likes tea", "works at Acme"]
        assert commits_of(mended)[-1].message == "edited by hand"
        assert await restart().view(ANN) == await mended.view(ANN)

    async def test_without_its_file_it_is_what_is_left_and_takes_new_commits(
        self, mended: Memory, restart: Restart, root: Path
    ) -> None:
        durable_of(mended).unlink()
        assert await texts(mended) == ["likes tea", "has a cat"]
        assert durable_of(mended).read_bytes() == render(await mended.view(ANN))
        await mended.change(ANN, "why", remember("likes coffee"))
        assert await texts(mended) == ["likes tea", "has a cat", "likes coffee"]
        assert await restart().view(ANN) == await mended.view(ANN)
        assert inspect.held(root, ANN).faults == ()


class TestARepairedLedgerTakesRecords:
    def test_behind_the_mend(self, path: Path) -> None:
        repaired(path, LINES[0] + BAD + LINES[2])
        history = read(path).history
        head = history.branches.all["main"].head
        when = iso_ms(history.branches.next_ms(LATER))
        commit = Commit(branch="main", events=(), message="on", parent_id=head, timestamp=when)
        Subject("user-1", log_at(path), max_items=30).record([commit], NOW)
        again = read(path)
        assert again.damage == ()
        assert again.history.records == History([*history.records, commit]).records
        assert again.history.branches.all["main"].head == commit.id
