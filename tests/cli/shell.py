"""Commands as a person types them: in this process, or as a process of their own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from discoclaw.cli.main import cli

OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_")
REPOSITORY = Path(__file__).parent.parent.parent


PLACE = re.compile(rb"^note: data folder: .+\n", re.MULTILINE)
"""What every command that uses memory says last, on stderr: which folder that was."""


class Runner(CliRunner):
    """Types a command. What it prints comes without the line about its data folder."""

    def invoke(self, *args: Any, **options: Any) -> Result:
        result = super().invoke(*args, **options)
        result.stderr_bytes = PLACE.sub(b"", result.stderr_bytes or b"")
        result.output_bytes = PLACE.sub(b"", result.output_bytes)
        return result


PLAIN = CliRunner()
"""Types a command, and leaves that line in."""


class Shell:
    """Runs `discoclaw memory …` on the data folder below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory_folder = folder / "data" / "memory"

    @property
    def settings(self) -> dict[str, str]:
        """The environment's part that is ours."""
        return {"DISCOCLAW_DATA_DIR": str(self.folder / "data")}

    def run(self, *words: str, typed: str | None = None, **settings: str) -> Result:
        """Run a command in this process, whatever comes of it."""
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
        environment = {**unset, **self.settings, "COLUMNS": "100", **settings}
        return Runner().invoke(cli, ["memory", *words], input=typed, env=environment)

    def says(self, *words: str, **settings: str) -> str:
        """What a command prints that does what it was asked."""
        result = self.run(*words, **settings)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def json(self, *words: str) -> Any:
        """The value that a command prints for programs."""
        return json.loads(self.says(*words, "--json"))

    def refuses(self, *words: str, **settings: str) -> str:
        """Why a command fails: exit code 1, nothing printed, one line of ours on stderr."""
        result = self.run(*words, **settings)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        start, colon, reason = result.stderr.removesuffix("\n").partition("discoclaw: ")
        assert (start, colon, "\n" in reason) == ("", "discoclaw: ", False), result.stderr
        return reason

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Begin a command as a process of its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        environment = {**kept, **self.settings, "PYTHONPATH": str(REPOSITORY), **options.pop("env", {})}
        return subprocess.Popen(
            [sys.executable, "-m", "discoclaw", "memory", *words], cwd=self.folder, env=environment, **options
        )

    def process(self, *words: str, **options: Any) -> tuple[int, bytes, bytes]:
        """Run a command as a process of its own: exit code, stdout, stderr."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.start(*words, **{**pipes, **options}) as process:
            printed, said = process.communicate(timeout=60)
        return process.returncode, printed, PLACE.sub(b"", said or b"")


def typed(shell: Shell, *words: str, **settings: str) -> Result:
    """Type a command into a shell whose folder is the data folder's parent."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
    environment = {**unset, **shell.settings, "COLUMNS": "120", **settings}
    return Runner().invoke(cli, [*words], env=environment)
