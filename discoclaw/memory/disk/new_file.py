"""A file that appears completely or not at all, and never in place of another one. Blocking."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from discoclaw.memory.disk import private, temporary
from discoclaw.memory.disk.files import sync_folder


@contextmanager
def new_file(target: Path, *, ending: str) -> Iterator[BinaryIO]:
    """A temporary file beside `target`, which the block fills and may read; then it is renamed to `target`.

    Only the bot's user reads it. If the block raises, it is removed; if the process is killed, the next one
    for a file with this ending there removes it. Raises OSError, of which FileExistsError.
    """
    private.make_folder(target.parent)
    temporary.sweep_for(target, alike=ending)
    made = target.with_name(temporary.name_for(target.name))
    try:
        with open(made, "x+b", opener=private.opener) as file:
            temporary.claim(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        _put(made, target)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
    sync_folder(target.parent)


def _put(made: Path, target: Path) -> None:
    """Rename a file to a name that nobody has. Raises FileExistsError and other OSErrors."""
    try:
        os.link(made, target)  # unlike a rename, it replaces nothing
    except FileExistsError:
        raise
    except OSError:  # a mount without hard links
        if os.path.lexists(target):
            raise FileExistsError(f"{target} is there already") from None
        os.rename(made, target)
        return
    made.unlink()
