"""A data folder with a real history, and a shell to type commands into."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.testing

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Shell
from tests.memory.kit import ANN, BOB, NOW, Clock, remember

STATED = Origin("stated")

typer.testing._get_command = cache(typer.testing._get_command)
"""Typer builds all commands anew for each one that is typed, half of the time of these tests."""


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The system's zone is UTC, wherever the tests run; `zone` in a test sets another one."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    """A folder in which nothing is remembered yet, and nobody's settings count."""
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that `shell` has a copy of."""
    shell = Shell(tmp_path_factory.mktemp("lived"))
    asyncio.run(_live(shell))
    return shell.memory_folder.parent


@pytest.fixture
def shell(empty: Shell, lived: Path) -> Shell:
    """A folder in which Ann has two personas and a question to settle, and Bob has one item."""
    shutil.copytree(lived, empty.folder / "data")
    return empty


def _heard(message: str) -> Origin:
    source = Source("discord", "7", message)
    return Origin("inferred", source=source, said_at=NOW + 10**9, evidence="she said so")


async def _live(shell: Shell) -> None:
    clock = Clock()
    memory = Memory(shell.memory_folder, clock=clock)
    memory.open()

    async def change(why: str, wish: Callable[[Draft], object], who: str = ANN) -> None:
        clock.forward(minutes=1)
        await memory.change(who, why, wish, by="command")

    def tabs(text: str, origin: Origin = STATED) -> Callable[[Draft], object]:
        return lambda draft: draft.upsert("preference", text, origin, given_id="durable-3720777d")

    try:
        await change("remembered", remember("User prefers tabs over spaces.", "preference"))
        await change("learned from talk", remember("User works at Acme.", "fact", _heard("81")))
        clock.forward(minutes=1)
        await verbs.create_branch(memory, ANN, "coding", "Terse; talks about code.", by="command")
        await verbs.switch(memory, ANN, "coding", by="command")
        await change("learned from talk", remember("User writes Rust.", "tool", _heard("82")))
        await change("edited", tabs("User prefers spaces over tabs."))
        await verbs.switch(memory, ANN, "main", by="command")
        await change("edited", tabs("User prefers tabs, 8 wide."))
        await change("learned from talk", tabs("User prefers 2 columns.", _heard("83")))
        await change("remembered", remember("User hates Mondays."))
        await change(
            "removed", lambda draft: draft.remove(draft.items[remember("User hates Mondays.")(draft)], STATED)
        )
        await change("remembered", remember("User has a cat."), BOB)
    finally:
        memory.close()
