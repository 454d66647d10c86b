"""A checkout as a maintainer has it: all that git knows, and what lies around beside that."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LEFTOVERS = (
    ".env",
    "content/soul/identity.md",
    "data/memory/durable/1.json",
    "deploy/.env",
    "discoclaw/__pycache__/http.cpython-311.pyc",
    "discoclaw/cli/.env",
    "dist/discoclaw-0.0.9.tar.gz",
    "docs/__pycache__/odd.pyc",
    "tests/.hypothesis/examples/1",
    "tests/show/mermaid/node_modules/mermaid/index.js",
    ".venv/lib/site.py",
    ".venv-3.13/lib/site.py",
    ".pytest_disk/1/ledger.jsonl",
    "notes.txt",
)


@pytest.fixture(scope="session")
def known() -> list[str]:
    """The files of this checkout that git knows, or would know after `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


@pytest.fixture(scope="session")
def checkout(known: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout with leftovers of all kinds."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in known:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    for name in LEFTOVERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret", encoding="utf-8")
    return folder
