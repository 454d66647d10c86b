"""Puts prepared files in place of those that are there, as a whole: a crash leaves the old or the new ones.

    data/.restore/             everything that is prepared, on the same disk
    data/.restore/moves.json   {"phase": 1 or 2, "aside": [[from, to]…], "new": [[from, to]…]}

Once that file is there, all moves will be made: by this process, or by the next one that takes the folder
(`finish`). Before that, the next one removes what was prepared. The old files go to a folder with a date.
Blocking; callers have the folder's lock. Knows nothing about what the files are.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from discoclaw.store.files import make_folder, name_for, render_json, sweep_for, sync_folder, write_atomic

log = logging.getLogger(__name__)

PREPARED, MOVES = ".restore", "moves.json"
UNPACKED = "unpacked"
"""How the temporary folder is called, before its ending, in which a backup is read that is imported."""

Move = tuple[Path, Path]
"""From where, and to where."""


def begin(data: Path) -> Path:
    """An empty folder in which to prepare files. Raises OSError."""
    finish(data)
    make_folder(data / PREPARED)
    return data / PREPARED


def put_in_place(
    data: Path, aside: Sequence[Move], new: Sequence[Move], *, first: Callable[[], None] = lambda: None
) -> None:
    """Move the old files aside, and the prepared ones to where they belong: all of that, or nothing.

    `first` is what has to succeed for that, such as a transaction elsewhere. Raises OSError and whatever it
    raises; once the moves were written down, a process that is killed leaves them to the next start.
    """
    if hasattr(os, "sync"):
        os.sync()  # one call, where each of a million files would need its own
    _note(data, 1, aside, new)
    try:
        first()
    except BaseException:
        (data / PREPARED / MOVES).unlink()
        raise
    finish(data)


def finish(data: Path) -> None:
    """Go on with moves that were interrupted, or remove what was prepared for none. Raises OSError.

    What an import that was killed had unpacked is removed too.
    """
    sweep_for(data / UNPACKED)
    path = data / PREPARED / MOVES
    if not (data / PREPARED).exists():
        return
    if path.exists():
        value = json.loads(path.read_bytes())
        aside, new = ([(data / a, data / b) for a, b in value[part]] for part in ("aside", "new"))
        if value["phase"] == 1:
            for old, kept in aside:
                _move(old, kept)
            _note(data, 2, aside, new)
        for made, place in new:
            _move(made, place)
        path.unlink()
        sync_folder(path.parent)
        log.info("the restored files are in place")
    shutil.rmtree(data / PREPARED)


def _note(data: Path, phase: int, aside: Sequence[Move], new: Sequence[Move]) -> None:
    # Relative, since the folder may have another name next time, as in a container.
    moves = {
        name: [[os.path.relpath(one, data) for one in move] for move in part]
        for name, part in (("aside", aside), ("new", new))
    }
    write_atomic(data / PREPARED / MOVES, render_json({"phase": phase, **moves}))


def _move(old: Path, new: Path) -> None:
    """Move a file or folder, unless that was done before; also to another disk. Raises OSError."""
    if not os.path.lexists(old):
        return
    make_folder(new.parent)
    if not os.path.lexists(new):
        try:
            os.rename(old, new)
        except OSError:
            if old.stat().st_dev == new.parent.stat().st_dev:
                raise
            made = new.with_name(name_for(new.name))
            if old.is_dir():
                shutil.copytree(old, made)
            else:
                shutil.copy2(old, made)
            if hasattr(os, "sync"):
                os.sync()
            os.rename(made, new)
    if os.path.lexists(old):  # it was copied, and that is complete
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    sync_folder(new.parent)
    sync_folder(old.parent)
