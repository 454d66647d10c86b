"""What `counting` counts, on the program's own files, threads and tasks."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from discoclaw.core.text import safe_key
from discoclaw.memory.cursors import Cursors
from discoclaw.store.database import transaction
from tests import counting
from tests.counting import counted, grown, least


async def test_operations_are_counted_also_in_threads(tmp_path: Path) -> None:
    cursors = Cursors(tmp_path)
    await cursors.put("one", {"a": 1})
    with counted() as counts:
        await cursors.update("one", lambda known: {**known, "b": 2})
        assert len(await asyncio.to_thread(os.listdir, tmp_path)) == 1
    written = (tmp_path / "one.json").stat().st_size
    assert counts.done[counting.BYTES] == written
    assert counts.done[counting.SYNCS] == 2  # the file, and the folder
    assert counts.done[counting.ENTRIES] == 1
    assert counts.done[counting.HOPS] == 2
    assert counts.done[counting.DOCUMENTS] == 1
    assert counts.steps["memory/cursors.py Cursors.update"] > 0
    assert counts.steps["store/files.py write_atomic"] > 0


def test_statements_are_counted() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        with counted() as counts, transaction(db):
            db.execute("SELECT 1")
        assert counts.done[counting.STATEMENTS] == 3  # with BEGIN and COMMIT
        db.execute("SELECT 1")
        assert counts.done[counting.STATEMENTS] == 3


def test_what_grows_is_told_by_its_function() -> None:
    def named(count: int) -> counting.Counts:
        with counted() as counts:
            for number in range(count):
                safe_key(f"discord:dm:{number}")
        return counts

    few, many = named(10), named(1_000)
    assert grown(few, many, most_steps=100) == {"core/text.py safe_key": (10, 1_000)}
    assert not grown(many, least(few, many), most_steps=0)
