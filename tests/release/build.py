"""Builds the wheel and the sdist of a commit, and proves that they are complete and reproducible.

    python -m tests.release.build dist

Times in the files are the commit's. Nothing is uploaded, and a folder `dist` is changed only if all is well.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.release import packages
from tests.release.ready import git, version_of

ROOT = Path(__file__).parents[2]


def faults_of_a_build(root: Path, folder: Path) -> tuple[packages.Built, list[str]]:
    """Both files, built in the empty `folder`, and everything that is wrong with them."""
    epoch = int(git(root, "log", "-1", "--format=%ct"))
    built = packages.build(root, folder / "built", epoch)
    again = packages.rebuilt(built, folder, epoch)
    found = packages.faults(built, git(root, "ls-files").splitlines(), version_of(root))
    for one, other in zip(built.files, again.files, strict=True):
        if one.read_bytes() != other.read_bytes():
            found.append(f"{one.name} is another file when it is built from the sdist")
    return built, found


def main() -> None:
    """The script."""
    into = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        built, found = faults_of_a_build(ROOT, Path(folder))
        for fault in found:
            print(f"release: {fault}")
        if found:
            sys.exit(1)
        into.mkdir(exist_ok=True)
        for file in built.files:
            shutil.copy(file, into)
            print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {into / file.name}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"release: {' '.join(map(str, error.cmd))}: {error.stderr or error}")
