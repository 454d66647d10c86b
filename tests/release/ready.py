"""May this commit be released? Prints each reason why not, one a line, and ends with 1; prints nothing if so.

python -m tests.release.ready
"""

import re
import subprocess
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tests.release import notes

ROOT = Path(__file__).parents[2]
COMMIT_OF_A_TAG = "%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"


def version_of(folder: Path) -> str:
    """The version of a checkout, as it is written there."""
    text = (folder / "discoclaw" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.*)"$', text, re.M)[0]


def git(folder: Path, *words: str) -> str:
    """What a command of git prints. Raises CalledProcessError if it fails."""
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def faults(folder: Path) -> list[str]:
    """Why the checkout in `folder` can't be released as it is."""
    version = version_of(folder)
    changelog = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    return [
        *_of_the_version(version),
        *(f"CHANGELOG.md: {fault}" for fault in notes.faults(changelog, version)),
        *(f"{line[3:]} is not committed; commit it, or remove it" for line in _changes(folder)),
        *_of_the_tag(folder, f"v{version}"),
        *_of_the_image(folder),
    ]


def _of_the_image(folder: Path) -> list[str]:
    """An image of this version is built on the same base whenever that is done."""
    text = (folder / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    if re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", text, re.M):
        return []
    return ["deploy/Dockerfile: its base has no digest; run `make base`"]


def _of_the_version(version: str) -> list[str]:
    """A version is written as package indexes write it, and isn't that of work in progress."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return [f"discoclaw/__init__.py: {version} isn't a version number; see docs/dev/releasing.md"]
    if str(parsed) != version or len(parsed.release) != 3 or parsed.is_devrelease or parsed.local:
        return [f"discoclaw/__init__.py: {version} can't be released; write it as docs/dev/releasing.md says"]
    return []


def _changes(folder: Path) -> list[str]:
    """What is in the checkout and in no commit, as `git status` lists it."""
    return git(folder, "status", "--porcelain").splitlines()


def _of_the_tag(folder: Path, tag: str) -> list[str]:
    """One version is one commit."""
    tagged = git(folder, "tag", "--list", tag, f"--format={COMMIT_OF_A_TAG}")
    if tagged in ("", git(folder, "rev-parse", "HEAD")):
        return []
    return [f"{tag} is another commit already; choose the next version in discoclaw/__init__.py"]


def main() -> None:
    """The script."""
    found = faults(ROOT)
    for fault in found:
        print(f"release: {fault}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
