"""A new setting is written in one place, and a live one in two; everything else follows from these."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def run(folder: Path, *words: str) -> str:
    ours = {"DISCOCLAW_POTS": "7", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **ours, "DISCOCLAW_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-m", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_a_live_setting_is_documented_read_shown_and_changed_after_it_was_written_in_two_files(
    tmp_path: Path,
) -> None:
    added(tmp_path)

    def value() -> Any:
        return json.loads(run(tmp_path, "discoclaw", "config", "get", "--json"))["pots"]

    assert value() == {"value": 7, "from": "settings", "scope": None}
    assert "how many pots I make" in run(tmp_path, "discoclaw", "config", "fields")
    run(tmp_path, "discoclaw", "config", "set", "global", "pots=5")
    assert value() == {"value": 5, "from": "file", "scope": "global"}
    run(tmp_path, "discoclaw.settings_reference", "settings.md", "example")
    assert (
        (tmp_path / "example")
        .read_text(encoding="utf-8")
        .endswith("\n# --- Tea ---\n# How many pots of tea the bot makes.\n#DISCOCLAW_POTS=3\n")
    )
    assert (
        (tmp_path / "settings.md")
        .read_text(encoding="utf-8")
        .endswith(
            "## Tea\n\n### `DISCOCLAW_POTS`\n\nHow many pots of tea the bot makes.\n\n"
            "Default: `3`. Allowed: 1 to 9. Live: `pots`.\n"
        )
    )


def unused(fields: Iterable[str]) -> list[str]:
    """The settings that no part of the program reads; what may change while it runs goes by its variable."""
    files = (ROOT / "discoclaw").rglob("*.py")
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    read = set(re.findall(r"\b(?:settings|self)\.(?=(\w+))", source))
    live = {names().get(one.variable) for one in FIELDS.values()}
    return [name for name in fields if name not in read | live]


def test_every_setting_is_read_by_some_part() -> None:
    assert unused(Settings.model_fields) == []
    assert unused(["token", "pots"]) == ["pots"]
