"""Installing, backing up and upgrading as a person pastes it from the documents: all in one data folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory.backups import members
from tests.test_docs import ROOT

STAND_INS = {
    **dict.fromkeys(("useradd", "chown", "docker", "git", "make", "systemctl"), "exit 0"),
    "sudo": '[ "$1" != -u ] || shift 2; exec "$@"',
    "discoclaw": "echo 'not on the path in a checkout' >&2; exit 127",
}
"""What would change this machine. `sudo` only runs what it is given."""
ANN = "123456789012345678"
TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


def block(page: str, having: str) -> str:
    """The one block of a page that has this."""
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    (found,) = [one for one in blocks if having in one]
    return found


class Machine:
    """A folder that stands for `/`, with a checkout in /opt/discoclaw."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "opt" / "discoclaw"
        for folder in ("etc/systemd/system", "mnt/backups", "bin", "opt/discoclaw/.venv/bin"):
            (root / folder).mkdir(parents=True)
        (self.home / "deploy").symlink_to(ROOT / "deploy")
        for name, does in STAND_INS.items():
            self._program(root / "bin" / name, does)
        program = f'PYTHONPATH={ROOT} exec {sys.executable} -m discoclaw "$@"'
        self._program(self.home / ".venv" / "bin" / "discoclaw", program)

    @staticmethod
    def _program(path: Path, does: str) -> None:
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    def here(self, text: str) -> str:
        """The text, with paths below the folder that stands for `/`."""
        return re.sub(r"(?<![\w.])/(opt/discoclaw|etc/systemd|mnt|var/lib)", rf"{self.root}/\1", text)

    def paste(self, text: str, **more: str) -> str:
        """What a person sees who pastes this, in the project's folder."""
        env = {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "HOME": str(self.root), **more}
        command = ["bash", "-e", "-o", "pipefail", "-c", self.here(text)]
        done = subprocess.run(command, cwd=self.home, env=env, capture_output=True, text=True)
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def as_the_unit(self, words: str) -> str:
        """Run the program as systemd would: with the installed unit's folder and environment."""
        unit = self.here((self.root / "etc/systemd/system/discoclaw.service").read_text(encoding="utf-8"))
        values = re.findall(r"^(\w+)=(.*)$", unit, re.M)
        env = dict(one.split("=", 1) for key, one in values if key == "Environment")
        env = {name: value.replace("%S", str(self.root / "var/lib")) for name, value in env.items()}
        told = dict(values)
        assert told["ReadWritePaths"] == str(self.home / "data")
        program = told["ExecStart"].removesuffix(" run")
        return self.paste(f"cd {told['WorkingDirectory']} && {program} {words}", **env)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A bot that was set up with `init`, installed as README.md says, and remembers Ann."""
    made = Machine(tmp_path)
    offline = {"DISCORD_TOKEN": TOKEN, "DISCOCLAW_MODEL_PROVIDER": "offline"}
    made.paste(".venv/bin/discoclaw init --no-check --allow-users 1", **offline)
    made.paste(block("README.md", "useradd"))
    item = {"kind": "fact", "text": "User is called Annie.", "id": "durable-1", "status": "active"}
    (made.root / "ann.json").write_text(json.dumps({"version": 1, "items": [item]}))
    made.as_the_unit(f"memory import {made.root / 'ann.json'} --as {ANN}")
    return made


def test_the_unit_the_cron_line_the_upgrade_and_make_run_use_one_folder(machine: Machine) -> None:
    data = machine.home / "data"
    own = f"note: data folder: {data}"
    assert "Annie" in machine.paste(f".venv/bin/discoclaw memory show {ANN}")  # as `make run` would find it
    (line,) = [one for one in block("docs/admins/operating.md", "15 4 * * *").splitlines() if one]
    told = machine.paste(line.split(None, 5)[5].replace(r"\%", "%"))  # in a crontab, % is a line break
    (nightly,) = (machine.root / "mnt" / "backups").iterdir()
    assert f"memory/ledger/user-{ANN}.jsonl" in members(nightly)
    assert f"from {data}: " in told and own in told and "too; let" not in told
    machine.paste(block("docs/admins/operating.md", "# the way back"))
    (before,) = machine.home.glob("discoclaw-*.tar.gz")
    assert f"memory/ledger/user-{ANN}.jsonl" in members(before)
    assert f"Data folder: {data}" in machine.paste(block("docs/admins/operating.md", "discoclaw status\n"))
    assert not (machine.root / "var").exists()


def test_the_other_page_installs_the_same(machine: Machine) -> None:
    unit = machine.root / "etc/systemd/system/discoclaw.service"
    unit.unlink()
    machine.paste(block("docs/admins/operating.md", "useradd"))
    assert "Annie" in machine.as_the_unit(f"memory show {ANN}")


def test_the_data_of_an_earlier_unit_is_brought_over(machine: Machine) -> None:
    state = machine.root / "var" / "lib"
    state.mkdir(parents=True)
    (machine.home / "data").rename(state / "discoclaw")
    (machine.home / "data").mkdir()
    machine.paste(block("docs/admins/operating.md", "/var/lib/discoclaw.old"))
    assert "Annie" in machine.as_the_unit(f"memory show {ANN}")
