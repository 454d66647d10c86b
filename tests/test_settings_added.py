"""A new setting is written in one place, and a live one in two; everything else follows from these."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from discoclaw.core.model import PROVIDERS
from discoclaw.core.policy import FIELDS
from discoclaw.settings import Settings, names

ROOT = Path(__file__).parent.parent
LIVE = """
    pots: int = _live(3, "Pots of tea", "how many pots I make", "DISCOCLAW_POTS", Number(1, 9))
    minimum_window: int = 0
"""
SETTING = '''
    pots: int = _env("DISCOCLAW_POTS", 3, subject="Tea", ge=1, le=9)
    """How many pots of tea the bot makes."""

    @field_validator("model")
'''


def added(folder: Path) -> None:
    """A copy of the program, with one more setting."""
    shutil.copytree(ROOT / "discoclaw", folder / "discoclaw", ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, after in (
        ("core/policy.py", "\n    minimum_window: int = 0\n", LIVE),
        ("settings.py", '\n    @field_validator("model")\n', SETTING),
    ):
        path = folder / "discoclaw" / name
        source = path.read_text(encoding="utf-8")
        assert source.count(before) == 1
        path.write_text(source.replace(before, after), encoding="utf-8")


USED = """
import json
from pathlib import Path
from typer.testing import CliRunner
from discoclaw.cli.main import cli
from discoclaw.settings_reference import main
words = ["get --json", "fields", "set global pots=5", "get --json"]
told = [CliRunner().invoke(cli, ["config", *one.split()]).stdout for one in words]
documents = Path("settings.md"), Path("example")
main(*documents)
print(json.dumps([*told, *(one.read_text("utf-8") for one in documents)]))
"""


def used(folder: Path) -> list[str]:
    """What the commands of the copy print, in a process of its own, and the two documents it writes."""
    ours = {"DISCOCLAW_POTS": "7", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **ours, "DISCOCLAW_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-c", USED]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return list(json.loads(done.stdout))


def test_a_live_setting_is_documented_read_shown_and_changed_after_it_was_written_in_two_files(
    tmp_path: Path,
) -> None:
    added(tmp_path)
    before, fields, _, after, page, example = used(tmp_path)
    assert json.loads(before)["pots"] == {"value": 7, "from": "settings", "scope": None}
    assert "how many pots I make" in fields
    assert json.loads(after)["pots"] == {"value": 5, "from": "file", "scope": "global"}
    assert example.endswith("\n# --- Tea ---\n# How many pots of tea the bot makes.\n#DISCOCLAW_POTS=3\n")
    assert page.endswith(
        "## Tea\n\n### `DISCOCLAW_POTS`\n\nHow many pots of tea the bot makes.\n\n"
        "Default: `3`. Allowed: 1 to 9. Live: `pots`.\n"
    )


def unused(fields: Iterable[str]) -> list[str]:
    """The settings that no part of the program reads.

    What may change while it runs, and a provider's key and address, go by their variables.
    """
    files = (ROOT / "discoclaw").rglob("*.py")
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    read = set(re.findall(r"\b(?:settings|self)\.(?=(\w+))", source))
    variables = {one.variable for one in FIELDS.values()}
    variables |= {variable for one in PROVIDERS.values() for variable in (one.key, one.moved)}
    by_variable = {names().get(variable) for variable in variables}
    return [name for name in fields if name not in read | by_variable]


def test_every_setting_is_read_by_some_part() -> None:
    assert unused(Settings.model_fields) == []
    assert unused(["token", "pots"]) == ["pots"]
