"""Files are whole or not there, appends count or leave no trace, and no name leaves its folder."""

import contextlib
import errno
import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.store.files import (
    append_synced,
    render_json,
    safe_id,
    session_name,
    write_atomic,
)
from discoclaw.store.plain import FileDocuments, FileLog
from discoclaw.store.port import rewrite
from tests.memory import child
from tests.memory.kit import REPOSITORY, STAMP, Doomed, told_by
from tests.tables import naming


class TestAWriteIsWholeOrNotAtAll:
    @pytest.mark.design(204)
    def test_a_killed_process_leaves_one_of_the_whole_versions(self, tmp_path: Path) -> None:
        target = tmp_path / "file"
        dice = random.Random(1)
        with Doomed("overwrite", target) as doomed:
            for _ in range(12):
                doomed.live_for(dice.uniform(0, 0.03))
                lines = target.read_bytes().splitlines()
                assert len(lines) == 20_000
                assert len(set(lines)) == 1
        assert len(list(tmp_path.iterdir())) <= 1 + 12  # one unfinished copy a kill at most

    def test_a_full_disk_keeps_the_old_version_and_no_litter(self, tmp_path: Path) -> None:
        target = tmp_path / "file"
        target.write_bytes(b"old")
        assert told_by(child.overwrite_full, target) == errno.EFBIG
        assert target.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [target]

    def test_a_target_that_can_not_be_replaced_leaves_no_litter(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(OSError):
            write_atomic(tmp_path / "folder", b"new")
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]

    def test_json_has_two_spaces_its_own_letters_and_a_last_newline(self) -> None:
        assert render_json({"b": ["é"], "a": 1}) == '{\n  "b": [\n    "é"\n  ],\n  "a": 1\n}\n'.encode()


class TestAnAppendCountsOrLeavesNoTrace:
    def test_it_follows_what_was_there_unless_somebody_else_wrote_it(self, tmp_path: Path) -> None:
        target = tmp_path / "new" / "log"
        append_synced(target, b"one\n", expected_size=0)
        for expected in (0, 3, 5, 100):
            with naming(expected), pytest.raises(MemoryFault, match="changed by somebody else"):
                append_synced(target, b"two\n", expected_size=expected)
            assert target.read_bytes() == b"one\n"
        append_synced(target, b"two\n", expected_size=4)
        assert target.read_bytes() == b"one\ntwo\n"

    def test_a_disk_that_takes_a_part_of_it_has_taken_nothing(self, tmp_path: Path) -> None:
        cases = ["0/300", "1/300", "100/150", "100/300", "5000/20000", "15000/20000"]
        outcomes = dict(zip(cases, told_by(child.append_full, tmp_path, *cases), strict=True))
        assert outcomes == dict.fromkeys(cases, "cut back")


class TestWhatIsKeptAsideIsNeverOverwritten:
    def test_copies_of_one_second_get_names_of_their_own(self, tmp_path: Path) -> None:
        target = tmp_path / "file.json"
        kept = []
        for content in (b"one", b"two", b"three"):
            target.write_bytes(content)
            kept.append(FileDocuments(tmp_path).keep_aside(target.name, "corrupt", STAMP))
        assert [path.read_bytes() for path in kept] == [b"one", b"two", b"three"]
        assert [path.name for path in kept] == [
            f"file.json.corrupt-{STAMP}{number}" for number in ("", "-2", "-3")
        ]
        assert target.read_bytes() == b"three"


class TestNoNameLeavesItsFolder:
    @pytest.mark.design(205)
    def test_an_id_that_is_no_plain_word_is_refused(self) -> None:
        for name in (
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a\0b",
            "a\n",
            "a.b",
            "é",
            "a" * 65,
            "discord:dm:1",
        ):
            with naming(name), pytest.raises(MemoryFault):
                safe_id(name)

    @given(name=st.text(st.characters(), max_size=80))
    def test_an_id_that_is_accepted_is_the_file_name(self, name: str) -> None:
        with contextlib.suppress(MemoryFault):
            assert Path("/folder", safe_id(name)).relative_to("/folder").parts == (name,)

    @pytest.mark.design(205)
    @given(key=st.text(st.one_of(st.characters(), st.sampled_from("./\\:-\0")), max_size=80))
    def test_any_session_key_names_a_file_in_the_folder(self, key: str) -> None:
        path = Path("/folder") / session_name(key)
        assert path.parent == Path("/folder")
        assert path.name.isascii()
        assert path.name.removesuffix(".json") not in ("", ".", "..") or key == ""

    def test_the_published_file_names_keep_their_colons(self) -> None:
        vectors: dict[str, Any] = json.loads((REPOSITORY / "tests/vectors/durable.json").read_bytes())
        assert vectors["session_files"]
        for vector in vectors["session_files"]:
            assert session_name(vector["key"]) == vector["file"]


def test_a_line_that_is_added_while_a_log_is_written_anew_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, added = tmp_path / "clears.jsonl", threading.Event(), threading.Event()
    path.write_bytes(b"ann\nbob\n")

    def slow(path: Path, content: bytes) -> None:
        begun.set()
        added.wait(0.3)
        write_atomic(path, content)

    monkeypatch.setattr("discoclaw.store.plain.write_atomic", slow)
    erasing = threading.Thread(target=rewrite, args=(FileLog(path), lambda before: b"bob\n"))
    erasing.start()
    begun.wait()
    rewrite(FileLog(path), lambda before: before + b"eve\n")
    added.set()
    erasing.join()
    assert path.read_bytes() == b"bob\neve\n"
