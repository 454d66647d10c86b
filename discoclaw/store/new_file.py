"""A file that appears completely or not at all, and replaces another one only if that is asked. Blocking."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from discoclaw.core.errors import Refused
from discoclaw.store import private, temporary
from discoclaw.store.files import sync_folder


@contextmanager
def new_file(target: Path, *, ending: str | None = None, replace: bool = False) -> Iterator[BinaryIO]:
    """A temporary file beside `target`, which the block fills and may read; then it is renamed to `target`.

    Only the bot's user reads it. If the block raises, it is removed; if the process is killed, the next one
    for this file, or one with this ending, removes it. Raises Refused as `check_place` does, and OSError.
    """
    check_place(target, replace=replace)
    private.make_folder(target.parent)
    temporary.sweep_for(target, alike=ending)
    made = target.with_name(temporary.name_for(target.name))
    try:
        with open(made, "x+b", opener=private.opener) as file:
            temporary.claim(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":  # pragma: no cover - an open file cannot be renamed there
                file.close()
            _put(made, target, replace)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
    sync_folder(target.parent)


def check_place(target: Path, *, replace: bool = False) -> None:
    """Raise Refused unless a file may be put there: nothing is there, or a regular file to `replace`.

    A pipe, a device or a folder is never replaced, and a symbolic link never followed.
    """
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
        raise Refused(f"{target} is there already and is {what}, which is never replaced; name another file")
    if not replace:
        raise Refused(f"{target} is there already; name another file, or add --force to replace it")


def _put(made: Path, target: Path, replace: bool) -> None:
    """Rename a file. Raises Refused and OSError."""
    if not replace:
        try:
            os.link(made, target)  # unlike a rename, it replaces nothing
        except OSError:  # somebody was quicker, or a mount without hard links
            pass
        else:
            made.unlink()
            return
    check_place(target, replace=replace)
    os.replace(made, target)
