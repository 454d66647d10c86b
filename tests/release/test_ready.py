"""`make release` refuses what isn't a commit of its own with a version and a section in the changelog."""

import subprocess
from pathlib import Path

import pytest

from tests.release import notes, ready

ROOT = Path(__file__).parents[2]
PROJECT = """
[project]
name = "discoclaw"
dynamic = ["version"]
[tool.hatch.version]
path = "discoclaw/__init__.py"
"""
GOOD = """# Changelog

## Unreleased

## 0.2.0 - 2026-11-25

### Added

- A thing.

## 0.1.0 - 2026-01-01

- All.
"""


class Checkout:
    """A small one, with one commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")
        (folder / "discoclaw").mkdir()
        self.write("pyproject.toml", PROJECT)
        self.write("discoclaw/__init__.py", '__version__ = "0.2.0"\n')
        self.write("CHANGELOG.md", GOOD)
        (folder / "deploy").mkdir()
        self.write("deploy/Dockerfile", f"ARG BASE=python:3.12-slim@sha256:{'0' * 64}\nFROM ${{BASE}}\n")
        self.commit()

    def git(self, *words: str) -> None:
        told = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *told, *words], cwd=self.folder, check=True)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def commit(self) -> None:
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "Change something")


@pytest.fixture
def ann(tmp_path: Path) -> Checkout:
    """Ann's checkout."""
    return Checkout(tmp_path)


def test_a_commit_with_a_section_in_the_changelog_is_ready_also_with_its_tag(
    ann: Checkout,
) -> None:
    assert ready.faults(ann.folder) == []
    ann.git("tag", "--annotate", "v0.2.0", "--message", "0.2.0")
    assert ready.faults(ann.folder) == []


def test_one_version_is_one_commit(ann: Checkout) -> None:
    ann.git("tag", "v0.2.0")
    ann.write("more", "")
    ann.commit()
    (fault,) = ready.faults(ann.folder)
    assert fault.startswith("v0.2.0 is another commit already")


def test_what_is_not_committed_is_named(ann: Checkout) -> None:
    ann.write("notes.txt", "")
    ann.write("CHANGELOG.md", GOOD + "\n")
    assert ready.faults(ann.folder) == [
        "CHANGELOG.md is not committed; commit it, or remove it",
        "notes.txt is not committed; commit it, or remove it",
    ]


def test_a_version_is_a_whole_number_of_a_release(ann: Checkout) -> None:
    for version in ("0.2", "0.2.0.dev1", "0.2.0+local", "v0.2.0", "next"):
        ann.write("discoclaw/__init__.py", f'__version__ = "{version}"\n')
        ann.commit()
        found = ready.faults(ann.folder)
        assert found[0].startswith(f"discoclaw/__init__.py: {version} ")


def test_the_changelog_says_what_this_version_brings() -> None:
    for changelog, says in (
        ("# Changelog\n", 'no section "## 0.2.0 - <date>"'),
        (GOOD.replace("0.2.0", "0.3.0"), 'no section "## 0.2.0 - <date>" at the top'),
        (GOOD.replace("Unreleased\n", "Unreleased\n\n- A newer thing.\n"), "still has entries"),
        (GOOD.replace(" - 2026-11-25", ""), "has no date"),
        (GOOD.replace("2026-11-25", "2026-11-31"), "has no date"),
        (GOOD.replace("- A thing.", ""), "has no entries"),
        (GOOD.replace("### Added", "### Improved"), '"### Improved" is none of Added, Changed, '),
    ):
        (fault,) = notes.faults(changelog, "0.2.0")
        assert says in fault


def test_the_sections_of_our_changelog_are_grouped() -> None:
    found = notes.sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert found
    assert [name for _, body in found for name in notes.odd_groups(body)] == []
    assert all(body.startswith("### ") for _, body in found if body)


def test_an_image_whose_base_may_change_is_not_released(ann: Checkout) -> None:
    ann.write("deploy/Dockerfile", "ARG BASE=python:3.12-slim\nFROM ${BASE}\n")
    ann.commit()
    assert ready.faults(ann.folder) == ["deploy/Dockerfile: its base has no digest; run `make base`"]
