"""The wheel and the sdist have what belongs into them and nothing else, whenever they are built."""

import re
from pathlib import Path

import pytest

from discoclaw import __version__
from tests.release import packages
from tests.release.packages import Built

ROOT = Path(__file__).parents[2]
EPOCH = 1_767_225_600


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return packages.build(checkout, tmp_path_factory.mktemp("built"), EPOCH)


def test_they_have_everything_and_nothing_that_lies_around_in_a_checkout(
    built: Built, known: list[str]
) -> None:
    assert packages.faults(built, known, __version__) == []


def test_what_the_program_reads_from_its_own_folder_is_in_the_wheel(built: Built) -> None:
    assert {
        "discoclaw/content/discord/base/core.md",
        "discoclaw/embed/minilm/vocab.txt",
        "discoclaw/evals/cases/filler.json",
        "discoclaw/core/languages/english.toml",
        "discoclaw/usage/prices.toml",
        "discoclaw/web/page/static/style.css",
        "discoclaw/web/page/templates/layout.html",
    } <= packages.in_wheel(built.wheel)


def test_built_from_the_sdist_both_are_the_same_to_the_byte(built: Built, tmp_path: Path) -> None:
    again = packages.rebuilt(built, tmp_path, EPOCH)
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.read_bytes() == built.sdist.read_bytes()


def test_a_file_that_is_missing_or_too_much_is_named(built: Built, known: list[str]) -> None:
    changed = [*(name for name in known if name != "docs/members/memory.md"), "discoclaw/new.py"]
    assert packages.faults(built, changed, "9.9") == [
        "the sdist lacks discoclaw/new.py",
        "the sdist has docs/members/memory.md, which doesn't belong there",
        "the wheel lacks discoclaw/new.py",
        f"the wheel has {packages.SHARE}/docs/members/memory.md, which doesn't belong there",
        f"the wheel's version is {__version__}",
    ]


def test_each_extra_is_documented(built: Built) -> None:
    page = (ROOT / "docs/admins/operating.md").read_text(encoding="utf-8")
    extras = set(packages.metadata_of(built.wheel).provides_extra or [])
    assert {"demo", "postgres"} <= extras
    assert extras - set(re.findall(r"`([a-z-]+)`", page)) == {"bench"}  # for maintainers
