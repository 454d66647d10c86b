"""What a process imports: a command what it needs, and a bot nothing for what is switched off."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from discoclaw.cli.main import ABOUT, whole

LIBRARIES = {"nostr_sdk", "pypdf", "jinja2", "prometheus_client", "PIL", "charset_normalizer", "psycopg"}
LIBRARIES |= {"python_calamine", "numpy", "onnxruntime", "rich", "anthropic", "httpx2", "simcord"}
OURS = {"discoclaw.nostr.event", "discoclaw.nostr.adapter", "discoclaw.app.measures"}
HEAVY = OURS | LIBRARIES | {"aiohttp.web"}

RUN = """
import asyncio, json, sys
from discoclaw.cli import main as _, running as _
from discoclaw.app import build
from discoclaw.settings import load
async def main():
    async with build(load()) as app:
        await app.settle()
asyncio.run(main())
print(json.dumps([*sys.modules]))
"""
HELP = """
import json, sys
from discoclaw.cli.start import main
sys.argv = ["discoclaw", *sys.argv[1:]]
try:
    main()
except SystemExit:
    sys.stderr.write(json.dumps([*sys.modules]))
"""


def loaded(folder: Path, code: str, *words: str, **settings: str) -> set[str]:
    """The modules that a process has in the end."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads((done.stderr if code is HELP else done.stdout).splitlines()[-1]))


def bot(folder: Path, **settings: str) -> set[str]:
    """The modules of a bot that has started and waits for Discord."""
    return loaded(folder, RUN, **{"DISCOCLAW_MODEL_PROVIDER": "offline", **settings}) & HEAVY


def test_help_needs_no_command_and_no_settings(tmp_path: Path) -> None:
    ours = {name for name in loaded(tmp_path, HELP, "--help") if name.startswith("discoclaw")}
    package = {"discoclaw", "discoclaw.cli", "discoclaw.core"}
    assert ours == {*package, "discoclaw.cli.start", "discoclaw.cli.main", "discoclaw.core.errors"}


def test_a_command_imports_no_other(tmp_path: Path) -> None:
    modules = loaded(tmp_path, HELP, "status", "--help")
    assert "discoclaw.cli.status" in modules
    assert not modules & {"discoclaw.cli.running", "discoclaw.cli.memory", "discoclaw.cli.doctor"}


def test_looking_at_a_memory_is_light(tmp_path: Path) -> None:
    modules = loaded(tmp_path, HELP, "memory", "log", "123")
    assert "discoclaw.memory.subjects.inspect" in modules
    assert not modules & {"discord", "anthropic", "aiohttp", "PIL"}


def test_the_list_says_of_each_command_what_its_help_says_first() -> None:
    assert {name: " ".join(whole(name).help.split("\n\n")[0].split()) for name in ABOUT} == dict(ABOUT)


def test_a_bot_with_everything_off_loads_no_library_for_it(tmp_path: Path) -> None:
    assert bot(tmp_path) == set()


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"DISCOCLAW_MODEL_PROVIDER": "anthropic", "ANTHROPIC_API_KEY": "x"}, {"anthropic", "httpx2"}),
        (
            {"DISCOCLAW_METRICS": "127.0.0.1:0"},
            {"prometheus_client", "discoclaw.app.measures", "aiohttp.web"},
        ),
        ({"DISCOCLAW_PAGE": "127.0.0.1:0"}, {"jinja2", "aiohttp.web"}),
        (
            {"NOSTR_RELAYS": "embedded"},
            {"nostr_sdk", "discoclaw.nostr.event", "discoclaw.nostr.adapter"},
        ),
        ({"NOSTR_OWNER": "1" * 64}, {"nostr_sdk", "discoclaw.nostr.event"}),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, dict) else "",
)
def test_what_is_on_loads_its_own(tmp_path: Path, settings: dict[str, str], needed: set[str]) -> None:
    assert bot(tmp_path, **settings) == needed
