"""The console script. `status --ready` is answered at once; all other commands are in `main`.

`main` imports Typer, of which this answer needs nothing.
"""

import io
import sys
from typing import Final

QUICK: Final = (["status", "--ready"], ["status", "--ready", "--json"])


def main() -> None:
    """Carry out the command that was typed."""
    if sys.argv[1:] in QUICK:
        from discoclaw.cli.ready import ready
        from discoclaw.core.errors import SettingsError

        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            sys.exit(ready(as_json="--json" in sys.argv))
        except SettingsError as error:
            sys.stderr.writelines(f"discoclaw: {one}\n" for one in str(error).splitlines())
            sys.exit(1)
    from discoclaw.cli.main import main as all_commands

    all_commands()
