"""The ledger: what was committed comes back, a torn end is set aside, nothing is written behind damage."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit, Ref, canonical, encode_line
from discoclaw.core.view import fold
from discoclaw.memory.subjects.ledger import Damage, Loaded, read
from discoclaw.memory.subjects.subject import Subject
from discoclaw.store.plain import log_at
from tests.memory.kit import NOW, asides, chain
from tests.tables import naming

COMMITS = chain("likes tea", "spielt Geige 🎻", "works at Acme")
LINES = [encode_line(commit) for commit in COMMITS]
WHOLE = b"".join(LINES)
SWITCH = Ref(action="switch", branch="coding", timestamp="2026-02-03T17:00:00.000Z")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "user-1.jsonl"


def opened(path: Path) -> Subject:
    return Subject("user-1", log_at(path), max_items=30)


def loaded_from(path: Path, content: bytes) -> Loaded:
    path.write_bytes(content)
    return read(path)


class TestWhatWasCommittedComesBack:
    def test_appended_commits_are_read_in_their_order_and_a_missing_file_is_empty(self, path: Path) -> None:
        assert read(path) == Loaded((), 0)
        assert not path.exists()
        ledger = opened(path)
        for commit in COMMITS[:2]:
            ledger.record([commit], NOW)
        opened(path).record([COMMITS[2]], NOW)  # as a later start
        assert path.read_bytes() == WHOLE
        assert read(path) == Loaded(tuple(COMMITS), len(WHOLE))

    def test_a_line_of_five_megabytes_is_a_line(self, path: Path) -> None:
        huge = replace(COMMITS[0], metadata={"note": "é" * 2_500_000})
        ledger = opened(path)
        ledger.record([huge], NOW)
        assert read(path).commits == (huge,)


class TestATornLastLineIsLeftOut:
    def test_wherever_it_was_cut_all_before_it_loads(self, path: Path) -> None:
        kept = len(WHOLE) - len(LINES[2])
        for length in range(1, len(LINES[2])):
            assert loaded_from(path, WHOLE[: kept + length]) == Loaded(tuple(COMMITS[:2]), kept, torn=length)

    def test_the_next_commit_keeps_it_aside_once_and_goes_on(self, tmp_path: Path) -> None:
        kept = len(WHOLE) - len(LINES[2])
        for length in {*range(1, len(LINES[2]), 40), len(LINES[2]) - 1}:
            path = tmp_path / f"{length}.jsonl"
            path.write_bytes(WHOLE[: kept + length])
            ledger = opened(path)
            assert path.read_bytes() == WHOLE[: kept + length], "reading alone changes nothing"
            assert asides(path, "torn") == []
            ledger.record([COMMITS[2]], NOW)
            ledger.record([replace(COMMITS[2], parent_id=COMMITS[2].id)], NOW)
            assert path.read_bytes().startswith(WHOLE)
            assert [aside.read_bytes() for aside in asides(path, "torn")] == [WHOLE[: kept + length]]

    @pytest.mark.parametrize("tail", [b"\0" * 700, b"\0" * 700 + b"\n", LINES[2][:90] + b"\0" * 9 + b"\n"])
    def test_zeros_a_power_cut_left_are_torn_too(self, path: Path, tail: bytes) -> None:
        whole_lines = LINES[0] + LINES[1]
        assert loaded_from(path, whole_lines + tail) == Loaded(
            tuple(COMMITS[:2]), len(whole_lines), torn=len(tail)
        )


class TestNoByteChangesUnnoticed:
    def test_a_flipped_bit_of_any_byte_is_found_or_without_effect(self, path: Path) -> None:
        path.write_bytes(LINES[0])
        with path.open("r+b", buffering=0) as file:
            for position, byte in enumerate(LINES[0]):
                os.pwrite(file.fileno(), bytes([byte ^ 1]), position)
                loaded = read(path)
                assert loaded.damage or loaded.torn or loaded.commits == (COMMITS[0],)
                os.pwrite(file.fileno(), bytes([byte]), position)

    @given(position=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
    def test_any_other_byte_in_its_place_is_too(self, path: Path, position: int, byte: int) -> None:
        changed = bytearray(WHOLE)
        changed[position] = byte
        loaded = loaded_from(path, bytes(changed))
        assert list(loaded.commits) == [commit for commit in COMMITS if commit in loaded.commits]
        assert loaded.damage or loaded.torn or len(loaded.commits) == len(COMMITS)


def changed_line(**fields: object) -> bytes:
    """The second line with fields of its record exchanged, hashes as they were."""
    return (canonical({**COMMITS[1].to_json(), **fields}) + "\n").encode()


DAMAGED = {
    "no JSON": (b"{ oops }\n", "not JSON"),
    "no UTF-8": (LINES[1].replace(b"Geige", b"\xff\xfe\xfd\xfc\xfb"), "not JSON"),
    "an empty line": (b"\n", "not JSON"),
    "a number": (b"7\n", "not a JSON object"),
    "far too deep": (b"[" * 100_000 + b"\n", "not JSON"),
    "another message": (changed_line(message="because"), "was changed"),
    "other metadata": (changed_line(metadata={"by": "me"}), "was changed"),
    "another time": (changed_line(timestamp="2026-02-03T16:29:36.000Z"), "does not match"),
    "another text": (LINES[1].replace(b"Geige", b"Harfe"), "does not match"),
    "no events": (changed_line(events=[]), "does not match"),
    "events that are none": (changed_line(events=7), "malformed"),
    "a kind of line to come": (b'{"type": "head", "branch": "main"}\n', "'head'"),
    "a ref to another branch": (encode_line(SWITCH).replace(b"coding", b"spying"), "does not match"),
    "a ref that says more": (
        encode_line(SWITCH).replace(b"coding", b'coding", "x": "'),
        "unknown or missing",
    ),
    "an action of no branch": (encode_line(SWITCH).replace(b'"switch"', b'"push"'), "unknown action"),
}
LOST = chain("x", "y")[1]
"""A commit of another chain: the one before it is not here."""


class TestDamageIsSaidAndNothingIsRewritten:
    def test_all_other_lines_load_and_line_reason_and_a_newer_version_are_named(self, path: Path) -> None:
        for name, (line, reason) in DAMAGED.items():
            with naming(line, reason):
                loaded = loaded_from(path, LINES[0] + line + LINES[1] + LINES[2])
                assert loaded.commits == tuple(COMMITS)
                (damage,) = loaded.damage
                assert damage.line == 2
                assert reason in damage.reason
                assert str(damage) == f"line 2: {damage.reason}"
                assert damage.newer == (name == "a kind of line to come")

    def test_every_damaged_line_is_named_and_none_that_follows_a_lost_one(self, path: Path) -> None:
        bad = [line for line, _ in DAMAGED.values()]
        loaded = loaded_from(path, LINES[0] + b"".join(bad) + LINES[2])
        assert loaded.commits == (COMMITS[0], COMMITS[2])
        assert [damage.line for damage in loaded.damage] == list(range(2, 2 + len(bad)))

    def test_nothing_is_appended_and_the_file_stays_as_it_is(self, path: Path) -> None:
        for line, reason in DAMAGED.values():
            for at_the_end in (True, False):
                with naming(at_the_end, line, reason):
                    content = LINES[0] + line + (b"" if at_the_end else LINES[2])
                    path.write_bytes(content)
                    self.check_refused(path, line=2)

    def check_refused(self, path: Path, *, line: int) -> None:
        """An append is refused, the line is named with the way out, and nothing was written."""
        content = path.read_bytes()
        said = (
            rf"^user-1\.jsonl, line {line}: .*nothing is recorded until it is repaired: .*verify --repair`$"
        )
        with pytest.raises(MemoryFault, match=said):
            opened(path).record([COMMITS[1]], NOW)
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]

    @pytest.mark.parametrize(
        ("lines", "line", "orphan"),
        [
            ([LINES[0], LINES[2]], 2, COMMITS[2]),
            ([LINES[1], LINES[2]], 1, COMMITS[1]),
            ([LINES[0], encode_line(LOST), LINES[1]], 2, LOST),
        ],
        ids=["in the middle", "the beginning", "of another chain"],
    )
    def test_a_missing_line_is_named_by_the_commit_that_follows_it(
        self, path: Path, lines: list[bytes], line: int, orphan: Commit
    ) -> None:
        loaded = loaded_from(path, b"".join(lines))
        assert len(loaded.commits) == len(lines)
        assert orphan in loaded.commits
        gone = f"commit {orphan.id} follows {orphan.parent_id}, which is not here"
        assert loaded.damage == (Damage(line, gone),)
        self.check_refused(path, line=line)

    def test_a_parent_further_down_is_not_missing(self, path: Path) -> None:
        loaded = loaded_from(path, LINES[2] + LINES[0] + LINES[1])
        assert loaded.damage == ()
        assert list(loaded.history.commits.values()) == COMMITS

    def test_an_event_that_claims_another_ones_hash_is_found(self, path: Path) -> None:
        record = json.loads(LINES[1])
        record["events"][0]["confidence"] = 0.5
        loaded = loaded_from(path, LINES[0] + (canonical(record) + "\n").encode())
        assert loaded.commits == (COMMITS[0],)
        (damage,) = loaded.damage
        assert "was changed after it was written" in damage.reason


class TestALineThatIsThereTwice:
    """What a copy of a file, or two replicas brought together by hand, may leave behind."""

    def test_counts_once_and_is_no_damage_and_the_next_commit_goes_behind_it(self, path: Path) -> None:
        content = LINES[0] + LINES[0] + LINES[1] + LINES[0]
        loaded = loaded_from(path, content)
        assert (loaded.damage, loaded.torn) == ((), 0)
        assert loaded.history.commits == {commit.id: commit for commit in COMMITS[:2]}
        assert loaded.history.shown() == fold(COMMITS[:2])
        opened(path).record([COMMITS[2]], NOW)
        assert path.read_bytes() == content + LINES[2]


class TestSomebodyElseWrote:
    @pytest.mark.parametrize("found", [WHOLE, WHOLE[:-1] + b"x", LINES[0] + LINES[1] + b"\n", LINES[0], b""])
    def test_a_commit_onto_a_ledger_that_grew_or_shrank_is_refused(self, path: Path, found: bytes) -> None:
        path.write_bytes(LINES[0] + LINES[1])
        ledger = opened(path)
        path.write_bytes(found)
        with pytest.raises(MemoryFault, match="changed by somebody else"):
            ledger.record([COMMITS[2]], NOW)
        assert path.read_bytes() == found
