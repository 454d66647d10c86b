"""The wheel, installed as the one block of the documents says that has it: with pip, and with uv.

Nothing is fetched: the libraries are those of these tests. pipx needs them all, and is tried by `smoke`.
"""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from discoclaw import __version__
from tests.release import packages
from tests.release.packages import Built

ROOT = Path(__file__).parents[2]
EPOCH = 1_735_689_600
WAYS = {"pip": "bin/pip install ./discoclaw-", "uv": "uv tool install ./"}


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return packages.build(checkout, tmp_path_factory.mktemp("built"), EPOCH)


def block(having: str) -> str:
    """The one block of all documents that has this."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [
        found
        for page in pages
        for found in re.findall(r"^```(?:sh)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        if having in found
    ]
    (one,) = blocks
    return str(one)


def without_libraries(wheel: Path, file: Path) -> Path:
    """What tells uv that a wheel needs no other: a file with a condition for each that never holds."""
    with zipfile.ZipFile(wheel) as content:
        (name,) = (one for one in content.namelist() if one.endswith(".dist-info/METADATA"))
        needed = re.findall(r"^Requires-Dist: ([\w.-]+)", content.read(name).decode(), re.M)
    file.write_text("".join(f"{one} ; python_version < '0'\n" for one in needed))
    return file


@pytest.mark.parametrize("way", WAYS)
def test_the_block_of_the_documents_installs_a_bot_that_can_be_set_up(
    built: Built, tmp_path: Path, way: str
) -> None:
    (tmp_path / built.wheel.name).write_bytes(built.wheel.read_bytes())
    own = {name: value for name, value in os.environ.items() if not name.startswith(("DISCO", "PIP", "UV_"))}
    env = own | {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / '.local' / 'bin'}:{Path(sys.executable).parent}:{own['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,
        "UV_OVERRIDE": str(without_libraries(built.wheel, tmp_path / "none.txt")),
        "DISCORD_TOKEN": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
        "DISCOCLAW_MODEL_PROVIDER": "offline",
    }
    pasted = block(WAYS[way]).replace("-0.1.0-", f"-{__version__}-")
    # What asks at a terminal is given its answers, and nothing connects.
    lent = f"export PYTHONPATH={sysconfig.get_path('purelib')}\n"
    pasted = re.sub(
        r"^(\S*discoclaw) init\b", rf"{lent}\1 init --no-check --allow-users 1", pasted, flags=re.M
    )
    pasted = re.sub(r"(\S*discoclaw) run\b.*", r"\1 --version; command -v \1", pasted)
    done = subprocess.run(["bash", "-e", "-c", pasted], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, (pasted, done.stdout, done.stderr)
    assert f"discoclaw {__version__} (Python" in done.stdout and "checkout" not in done.stdout
    assert str(tmp_path) in done.stdout.splitlines()[-1] or "bin/discoclaw" in done.stdout.splitlines()[-1]
    (written,) = tmp_path.rglob(".env")
    assert "DISCORD_ALLOW_USER_IDS=1\n" in written.read_text(encoding="utf-8")
