"""Files that are put in place as a whole, also on another disk, and after a crash."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from discoclaw.memory.folder import finish_moves, prepare, put_in_place


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with an old file and an old folder, and new ones that are prepared."""
    made = prepare(tmp_path / "data")
    for folder, text in ((tmp_path / "data", "old"), (made, "new")):
        (folder / "tree").mkdir()
        (folder / "tree" / "a").write_text(text)
        (folder / "b").write_text(text)
    return tmp_path / "data"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another disk."""
    with tempfile.TemporaryDirectory(dir="/var/tmp" if os.path.isdir("/var/tmp") else None) as folder:
        if os.stat(folder).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is only one disk here")
        yield Path(folder)


def read(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


NAMES = ("tree", "b")


def test_the_old_ones_are_kept_and_nothing_is_left(data: Path) -> None:
    aside = [(data / name, data / "old" / name) for name in NAMES]
    put_in_place(data, aside, [(data / ".restore" / name, data / name) for name in NAMES])
    assert read(data) == {"tree/a": "new", "b": "new", "old/tree/a": "old", "old/b": "old"}
    assert not (data / ".restore").exists()


def test_from_and_to_another_disk(data: Path, elsewhere: Path) -> None:
    aside = [(data / name, elsewhere / "old" / name) for name in NAMES]
    put_in_place(data, aside, [(data / ".restore" / name, elsewhere / "new" / name) for name in NAMES])
    assert read(data) == {}
    assert read(elsewhere) == {"new/tree/a": "new", "new/b": "new", "old/tree/a": "old", "old/b": "old"}


def test_nothing_happens_where_what_comes_first_fails(data: Path) -> None:
    def fail() -> None:
        raise OSError("no database")

    with pytest.raises(OSError, match="no database"):
        put_in_place(data, [(data / "b", data / "old" / "b")], [], first=fail)
    finish_moves(data)
    assert read(data) == {"tree/a": "old", "b": "old"}


def test_what_was_prepared_for_nothing_is_removed(data: Path) -> None:
    finish_moves(data)
    finish_moves(data)
    assert read(data) == {"tree/a": "old", "b": "old"}
    assert not (data / ".restore").exists()
