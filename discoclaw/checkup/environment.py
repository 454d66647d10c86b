"""The file `.env` and the variables: who may read them, which are unknown, which do nothing any more."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

from discoclaw import settings as settings_module
from discoclaw.core.health import Finding

FILE = Path(".env")
_OTHERS = 0o077


async def environment(faults: tuple[str, ...]) -> AsyncIterator[Finding]:
    """What is wrong with the settings themselves. `faults`: the lines of values that can't be read."""
    for fault in faults:
        variable, _, why = fault.partition(": ")
        way_out = "correct it in .env or in the environment"
        yield Finding(variable.partition("=")[0], "bad", fault if why else variable, way_out)
    yield _file()
    if faults and faults[0].startswith(".env"):
        return  # it can't be read at all
    unknown = settings_module.unknown()
    for one in unknown:
        text, _, way_out = one.partition("; ")
        yield Finding(text.partition(" ")[0], "warning", text, way_out)
    if not (unknown or faults):
        yield Finding("variables", "good", "every variable is known, and every value allowed")


def _file() -> Finding:
    try:
        mode = FILE.stat().st_mode
    except FileNotFoundError:
        return Finding(
            ".env", "good", f"there is none in {Path.cwd()}; the settings come from the environment"
        )
    except OSError as error:
        return Finding(".env", "bad", f"can't be read: {error.strerror or error}", "see who owns it")
    if not os.access(FILE, os.R_OK):
        return Finding(".env", "bad", "this user may not read it", "let the bot's user own it (chown)")
    if os.name != "nt" and mode & _OTHERS:
        text = f"other users of this machine can read it (mode {stat.S_IMODE(mode):04o}), and it has secrets"
        return Finding(".env", "warning", text, "run: chmod 600 .env")
    return Finding(".env", "good", "only this user can read it")
