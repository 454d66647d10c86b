"""What `discoclaw doctor` finds about the program, its packages and its folder, each fault made for real."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from discoclaw import __version__
from discoclaw.memory.subjects.store import Memory
from tests.checkup.conftest import Desk, Found, disk_of
from tests.cli.shell import REPOSITORY
from tests.memory.kit import ANN, Clock, remember

Mount = Callable[[Path, str], None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Makes a folder a small disk of its own. Skips the test where that needs more rights."""
    mounted: list[Path] = []

    def made(folder: Path, options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no mount here")
        if done.returncode:
            pytest.skip(f"a disk of its own can't be mounted: {done.stderr.strip()}")
        mounted.append(folder)

    yield made
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


async def asked(desk: Desk, **changes: str | None) -> Found:
    return await desk.found("--only", "folder", **changes)


async def test_a_full_disk(desk: Desk, mount: Mount) -> None:
    mount(desk.data, "size=1m,mode=700")
    found = await asked(desk)
    assert found.only("folder", "bad").startswith("space: the disk is full: 1 MB are free; free some space")
    assert "is in RAM (tmpfs): everything is gone after a restart" in found.only("folder", "warning")


async def test_a_folder_that_can_only_be_read(desk: Desk, mount: Mount) -> None:
    mount(desk.data, "size=900m,ro")
    bad = (await asked(desk)).only("folder", "bad")
    assert bad == (
        f"folder: {desk.data} can't be written; let this user own it: chown -R {os.getuid()} {desk.data}"
    )
    bad = (await asked(desk, DISCOCLAW_DATA_DIR=str(desk.data / "inner"))).only("folder", "bad")
    assert f"{desk.data / 'inner'} doesn't exist and can't be made: {desk.data} can't be written" in bad


async def test_a_file_where_the_folder_should_be(desk: Desk) -> None:
    desk.data.write_text("")
    assert (await asked(desk)).only("folder", "bad") == (
        f"folder: {desk.data} is a file; move it away, or set DISCOCLAW_DATA_DIR"
    )


async def test_a_memory_that_others_can_read(desk: Desk) -> None:
    (desk.data / "memory").mkdir(parents=True)
    for one in (desk.data, desk.data / "memory"):
        one.chmod(0o755)
    found = await asked(desk)
    assert any("other users of this machine can read" in one for one in found.lines("folder", "warning"))


async def test_what_killed_writes_and_erasings_left(desk: Desk) -> None:
    (desk.data / "memory" / "erasing").mkdir(parents=True)
    (desk.data / "memory" / "erasing" / "user-9.json").write_text('{"at": 1}')
    (desk.data / "memory" / ".choices.json.0123abcd.tmp").write_text("half")
    lines = [one for one in (await asked(desk)).lines("folder", "warning") if one.startswith("leftovers")]
    assert lines == [
        "leftovers: 1 temporary file of killed writes; start the bot, which removes them",
        "leftovers: the erasing of 1 memory is unfinished; start the bot, which finishes it",
    ]


async def test_data_of_a_newer_program_and_a_version_that_makes_no_sense(desk: Desk) -> None:
    root = desk.data / "memory"
    root.mkdir(parents=True)
    (root / "version.json").write_text('{"version": 99}')
    bad = (await asked(desk)).only("folder", "bad")
    assert bad.startswith(
        f"data: {desk.data} has data of version 99, and DiscoClaw {__version__} knows only up"
    )
    assert "; upgrade the program, or restore a backup from before" in bad
    (root / "version.json").write_text("half a fi")
    assert "version.json makes no sense" in (await asked(desk)).only("folder", "bad")


def held_by(desk: Desk, **record: object) -> None:
    root = desk.data / "memory"
    root.mkdir(parents=True)
    known = {"pid": os.getpid(), "host": socket.gethostname(), "since": 1_770_136_175_000}
    (root / ".holder").write_text(json.dumps(known | record))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who has a lock")
async def test_a_lock_that_its_process_does_not_hold_any_more(desk: Desk) -> None:
    held_by(desk)  # by this process, which is none of the bot's
    (stale,) = [one for one in (await asked(desk)).lines("folder", "warning") if one.startswith("lock")]
    who = f"process {os.getpid()} since 2026-02-03T16:29Z"
    assert stale == (
        f"lock: the record names {who}, which doesn't hold it any more; "
        "nothing: the lock is free, and a start of the bot replaces the record"
    )


async def test_a_lock_of_another_machine(desk: Desk) -> None:
    held_by(desk, host="otherhost", pid=7)
    (line,) = [one for one in (await asked(desk)).lines("folder", "warning") if one.startswith("lock")]
    assert line.startswith("lock: it was taken by process 7 on otherhost since 2026-02-03T16:29Z, on another")


@pytest.mark.long
async def test_packages_that_are_missing_or_too_old(desk: Desk) -> None:
    """As the installed package's own description says what it needs."""
    described = desk.folder / "site" / f"discoclaw-{__version__}.dist-info"
    described.mkdir(parents=True)
    needs = ["rich<2", "no-such-package>=1", "numpy>99; extra == 'vectors'", "odd; extra == 'x'"]
    lines = ["Metadata-Version: 2.1", "Name: discoclaw", f"Version: {__version__}", "Requires-Python: >=3.99"]
    lines += [f"Requires-Dist: {one}" for one in needs]
    described.joinpath("METADATA").write_text("\n".join(lines))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    told = {"PYTHONPATH": f"{desk.folder / 'site'}:{REPOSITORY}", "EMBEDDING_PROVIDER": "openai"}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "discoclaw", "doctor", "--only", "program"],
        cwd=desk.folder,
        env=kept | told,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    python, rich, missing, numpy, *_ = done.stdout.splitlines()
    assert "Program: Python: this is Python 3." in python and ">=3.99 is needed; install a newer" in python
    assert "packages: rich is " in rich and "and <2 is needed; run: pip install 'rich<2'" in rich
    assert "no-such-package is not installed; run: pip install 'no-such-package>=1'" in missing
    assert "packages: numpy is " in numpy and "and >99 is needed" in numpy
    assert "odd" not in done.stdout


async def test_a_second_folder_with_memories_is_a_warning(desk: Desk) -> None:
    memory = Memory(disk_of(desk.folder / "data", "files"), clock=Clock())
    memory.open()
    await memory.change(ANN, "said", remember("likes tea"))
    memory.close()
    elsewhere = desk.folder / "elsewhere"
    elsewhere.mkdir()
    found = (await asked(desk, DISCOCLAW_DATA_DIR=str(elsewhere))).lines("folder", "warning")
    told = f"second folder: {desk.folder / 'data'} has 1 memory too"
    assert len([one for one in found if one.startswith(told)]) == 1
    assert "second folder" not in str(
        (await asked(desk, DISCOCLAW_DATA_DIR="data")).lines("folder", "warning")
    )
