"""Write the data folders and what the program says about them: once, by a program that is released.

    python -m tests.earlier.write

Never write one again: it is there to show whether later programs still open it.
"""

import asyncio
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests.contract.world import World, starting
from tests.earlier import story
from tests.servers.postgres import Postgres
from tests.servers.postgres_programs import find

HERE = Path(__file__).parent
DUMP = "postgres.sql"
LEFT_OUT = ("/cache", ".lock", ".holder", "-shm")
TORN = '{"type": "commit", "branch": "ma'


def pack(data: Path, target: Path) -> None:
    """Pack a data folder so that the same files make the same bytes."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        info.mtime = info.uid = info.gid = 0
        info.uname = info.gname = ""
        return None if info.name.endswith(LEFT_OUT) else info

    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.add(data, ".", filter=plain)  # sorted by name
    target.write_bytes(gzip.compress(made.getvalue(), mtime=0))


def unpack(source: Path, data: Path, url: str) -> None:
    """Put a packed folder in the place of a data folder, and what was a database into that at `url`."""
    shutil.rmtree(data, ignore_errors=True)
    with tarfile.open(source) as tar:
        tar.extractall(data, filter="data")
    if (dump := data / DUMP).exists():
        with psycopg.connect(url, autocommit=True) as there:
            there.execute(re.sub(r"(?m)^\\.*$", "", dump.read_text(encoding="utf-8")))
        dump.unlink()


def dumped(server: Postgres, url: str) -> str:
    """What is in a database, as statements of SQL. Claims have times of the machine, and last for a day."""
    program = find(server.folder).folder / "pg_dump"
    how = [
        "--no-owner",
        "--no-privileges",
        "--exclude-table-data=claims",
        "--inserts",
        "--rows-per-insert=100",
    ]
    return subprocess.run([program, *how, url], check=True, capture_output=True, text=True).stdout


async def opened(world: World, source: Path, store: str, messages: list[list[Any]]) -> dict[str, Any]:
    """Give a new world a packed folder, start a bot on it at noon, and return all that the program says."""
    await story.people_come(world)
    await world.stop()
    unpack(source, world.data, store)
    story.put_back(world, messages)
    await world.env.advance_time(story.DAY_S / 2)
    told = await asyncio.to_thread(story.told_by_commands, world, store)
    await world.restart(**story.settings(world, store, summary_every=1000, durable_every=1000))
    await world.settle()
    return {**told, **await story.told_in_discord(world)}


async def write(kind: str, folder: Path, server: Postgres) -> None:
    """Let the story happen, pack what it leaves, and keep what the program says about that."""
    stores = [server.new_database() if kind == "postgres" else kind for _ in range(2)]
    target = HERE / f"{kind}.tar.gz"
    async with starting(folder / "first")() as world:
        await story.people_come(world)
        await world.stop()
        shutil.rmtree(world.data)
        made = await asyncio.to_thread(world.cli, "nostr", "new-key")
        assert made.exit_code == 0, made.output
        await world.restart(**story.settings(world, stores[0]))
        await story.lives(world, stores[0])
        messages = story.discord_has(world)
        if kind == "files":
            ledger = world.data / "memory" / "ledger" / f"user-{world.bob.id}.jsonl"
            ledger.write_text(ledger.read_text("utf-8") + TORN, "utf-8")
        elif kind == "postgres":
            (world.data / DUMP).write_text(dumped(server, stores[0]), encoding="utf-8")
        pack(world.data, target)
    async with starting(folder / "second")() as world:
        told = {"messages": messages, **await opened(world, target, stores[1], messages)}
    content = json.dumps(told, ensure_ascii=False).encode()
    target.with_name(f"{kind}.json.gz").write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    if [*HERE.glob("*.gz")]:
        sys.exit("They are written. What a later program says may never replace what an earlier one said.")
    with Postgres() as server, tempfile.TemporaryDirectory() as folder:
        for kind in ("files", "sqlite", "postgres"):
            asyncio.run(write(kind, Path(folder, kind), server))
