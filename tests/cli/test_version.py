"""`discoclaw --version`: what runs, on which Python, and from where if that isn't a release."""

import platform
from pathlib import Path

from discoclaw import __version__
from discoclaw.cli.main import cli
from tests.cli.shell import Runner

ROOT = Path(__file__).parents[2]


def test_a_checkout_is_named_because_it_changes_without_its_version() -> None:
    said = Runner().invoke(cli, ["--version"]).stdout
    assert said == f"discoclaw {__version__} (Python {platform.python_version()}, checkout in {ROOT})\n"
