"""A folder of files that appears completely or not at all, such as an export. Blocking."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discoclaw.store import private, temporary
from discoclaw.store.files import sync_folder


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, which the block fills; then it is renamed to `target`.

    If the block raises, it is removed. An empty folder is replaced. Raises OSError.
    """
    with passing_folder(target) as made:
        yield made
        if target.exists():
            target.rmdir()  # empty, or somebody was quicker and this fails
        os.rename(made, target)
    sync_folder(target.parent)


@contextmanager
def passing_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, which is removed in the end, unless it has been renamed.

    If the process is killed, the next one for this target removes it. Raises OSError.
    """
    private.make_folder(target.parent)
    temporary.sweep_for(target)
    with _claimed(target) as made:
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """A new folder for a target, locked as long as its writer lives."""
    while True:
        made = target.with_name(temporary.name_for(target.name))
        private.make_folder(made)
        if os.name == "nt":  # pragma: no cover - no directory handles there
            yield made
            return
        handle = os.open(made, os.O_RDONLY)
        try:
            if temporary.claim(handle):
                yield made
                return
        finally:
            os.close(handle)
