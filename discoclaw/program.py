"""The command that people type to run this program again. Knows nothing about what it does."""

import os
import shutil
import sys
from pathlib import Path


def program() -> str:
    """How to run this program again, as one types it: by its name where the shell finds it."""
    here = Path(sys.argv[0])
    if here.stem == "__main__":
        return f"{Path(sys.executable).name} -m discoclaw"
    found = shutil.which(here.stem)
    if found is not None and Path(found).resolve() == here.resolve():
        return here.stem
    return os.path.relpath(here) if here.resolve().is_relative_to(Path.cwd()) else str(here)
