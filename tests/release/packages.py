"""What the wheel and the sdist are: built twice alike, with all that belongs into them, and nothing else."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.metadata import Metadata

DOCUMENTS = ".env.example", "CHANGELOG.md", "README.md"
SHARE = "data/data/share/doc/discoclaw"
"""What pip puts into share/doc/discoclaw of the environment: what a person reads and copies."""
LICENCES = "LICENSE", "discoclaw/embed/minilm/LICENSE"


@dataclass(frozen=True, slots=True)
class Built:
    """The two files of one build."""

    sdist: Path
    wheel: Path

    @property
    def files(self) -> tuple[Path, Path]:
        return self.sdist, self.wheel


def build(source: Path, into: Path, epoch: int) -> Built:
    """Build both from the sources in a folder. Times in them are `epoch`, in seconds since 1970."""
    told = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(into)],
        cwd=source,
        env=told,
        check=True,
        capture_output=True,
    )
    (sdist,), (wheel,) = into.glob("*.tar.gz"), into.glob("*.whl")
    return Built(sdist, wheel)


def rebuilt(built: Built, folder: Path, epoch: int) -> Built:
    """The same, built from what the sdist alone has. `folder` is empty, or doesn't exist yet."""
    with tarfile.open(built.sdist) as archive:
        archive.extractall(folder / "sources", filter="data")
    (source,) = (folder / "sources").iterdir()
    return build(source, folder / "again", epoch)


# --- what is in them ---


def in_sdist(path: Path) -> set[str]:
    """The files of an sdist, as they lie in a checkout."""
    with tarfile.open(path) as archive:
        names = [PurePosixPath(one.name) for one in archive.getmembers() if not one.isdir()]
    assert {name.parts[0] for name in names} == {path.name.removesuffix(".tar.gz")}
    return {str(PurePosixPath(*name.parts[1:])) for name in names}


def in_wheel(path: Path) -> set[str]:
    """The files of a wheel; the two folders that carry its version begin with `info` and `data`."""
    stem = _stem(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names)), "a file is in the wheel twice"
    return {
        name.replace(f"{stem}.dist-info/", "info/", 1).replace(f"{stem}.data/", "data/", 1) for name in names
    }


def expected_in_sdist(tracked: Iterable[str]) -> set[str]:
    """What an sdist should have: all files that git knows, but for those of CI."""
    return {name for name in tracked if not name.startswith(".ci/")} | {"PKG-INFO"}


def expected_in_wheel(tracked: Iterable[str]) -> set[str]:
    """What a wheel should have, of the files that git knows."""
    expected = {"info/METADATA", "info/RECORD", "info/WHEEL", "info/entry_points.txt"}
    expected |= {f"info/licenses/{name}" for name in LICENCES}
    for name in tracked:
        top = name.partition("/")[0]
        if top == "discoclaw":
            expected.add(name)
        elif top == "content":
            expected.add(f"discoclaw/{name}")
        elif name in DOCUMENTS or (top in ("docs", "deploy") and not name.endswith(".dockerignore")):
            expected.add(f"{SHARE}/{name}")
    return expected


def metadata_of(wheel: Path) -> Metadata:
    """A wheel's metadata. Raises an ExceptionGroup that names each field which is wrong."""
    with zipfile.ZipFile(wheel) as archive:
        return Metadata.from_email(archive.read(f"{_stem(wheel)}.dist-info/METADATA"), validate=True)


def _stem(wheel: Path) -> str:
    """Name and version, with which the names of its folders begin."""
    return "-".join(wheel.name.split("-")[:2])


def faults(built: Built, tracked: Iterable[str], version: str) -> list[str]:
    """Everything that is wrong with the two files; empty if nothing is."""
    tracked = list(tracked)
    metadata = metadata_of(built.wheel)
    return [
        *_differences("the sdist", in_sdist(built.sdist), expected_in_sdist(tracked)),
        *_differences("the wheel", in_wheel(built.wheel), expected_in_wheel(tracked)),
        *([] if str(metadata.version) == version else [f"the wheel's version is {metadata.version}"]),
        *([] if metadata.description_content_type == "text/markdown" else ["the README has no type"]),
    ]


def _differences(which: str, found: set[str], expected: set[str]) -> list[str]:
    return [f"{which} lacks {name}" for name in sorted(expected - found)] + [
        f"{which} has {name}, which doesn't belong there" for name in sorted(found - expected)
    ]
