"""Killed between any two writes of a clear, a withdrawal or an erasing: the next start finishes it.

The bot fills its data folder in a simulated Discord. Another process then does one of these on a copy of it,
and is killed with SIGKILL (`killed_child`). The bot starts again, and nothing that was taken back is left.
"""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.policy import AutoSave
from discoclaw.core.subject import user_subject
from discoclaw.memory.conversations import clears
from discoclaw.models.offline.model import OfflineModel
from discoclaw.search.archive import Archive, Put
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.store.port import (
    ANSWERS,
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    Disk,
    is_log,
)
from tests.contract.world import Start, World, starting
from tests.memory.archives import texts
from tests.memory.kills import Forge, chosen
from tests.memory.kit import NOW, Clock
from tests.memory.test_archive import ANN, files_with, said, write
from tests.memory.test_archive import found as found_in

T = TypeVar("T")

pytestmark = pytest.mark.long

FULL: dict[str, Any] = {
    "summary_every": 1,
    "auto_save": AutoSave(everywhere=True),
    "response_cache": True,
    "model": OfflineModel(),
}
FOLDERS = ("", ANSWERS, CURSORS, GROUPS, INTENTS, LEDGERS, PROFILES, ROLLING, TOOLS)


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path)


def audited(world: World, store: str) -> list[tuple[str, str, str]]:
    """What `discoclaw audit privacy` finds: (part, the place's name, why)."""
    result = world.cli("audit", "privacy", "--json", DISCOCLAW_STORE=store)
    return [(one["part"], Path(one["place"]).name, one["why"]) for one in json.loads(result.stdout)]


async def talk(world: World) -> None:
    """Ann and Bob talk in the open; Ann says something private too; all of it is learned and kept."""
    await world.ann.send(world.general, "I use zsh")
    await world.bob.send(world.general, "I prefer tabs over spaces")
    await world.ann.send(world.general, "Which tea is good?")
    await world.ann.send_dm("I use emacs")
    await world.settle()


CHILD = "tests.process.killed_child"


def texts_with(disk: Disk, word: str) -> list[str]:
    """The texts of a store that have a word."""
    there = []
    for folder in FOLDERS:
        documents = disk.documents(folder)
        for name in documents.names():
            full = f"{folder}/{name}" if folder else name
            try:
                content = disk.log(full).read() if is_log(name) else documents.read(name)
            except OSError:
                continue
            if word.encode() in content:
                there.append(full)
    return there


def left(world: World, what: str) -> list[str]:
    """Where Ann's word still is, in the store and in other files, besides what may have it after that."""
    ann = str(world.ann.id)
    own = [f"ledger/user-{ann}", f"durable/{ann}", f"views/user-{ann}"]  # it is their own history
    names = texts_with(world.app.storage.memory.disk, "zsh")
    for path in sorted((world.folder / "data").rglob("*")):
        # The rows of a store's own file were looked at.
        if path.is_file() and not path.name.startswith("memory.sqlite") and b"zsh" in path.read_bytes():
            names.append(str(path.relative_to(world.folder / "data")))
    if what == "clear":
        return [name for name in names if "rolling" in name]
    if what == "opt out":
        own.append(f"profiles/{ann}")  # they opted out of what is said from now on
    return [name for name in names if what == "erase" or not any(one in name for one in own)]


async def took_effect(world: World, what: str) -> bool:
    """Whether the killed process had come to what counts, so that all the rest has to follow."""
    storage, ann = world.app.storage, str(world.ann.id)
    if what == "clear":
        return bool(storage.memory.disk.log(clears.FILE).read())
    if what == "opt out":
        return storage.consent.opted_out(ann)
    if what == "erase":
        return storage.memory.erased_at(user_subject(ann)) >= 0
    return not any("zsh" in one.text for one in (await storage.memory.view(user_subject(ann))).active())


class TestKilledBetweenTwoWrites:
    @pytest.mark.own_store
    @pytest.mark.parametrize("what", ["clear", "forget", "opt out", "erase"])
    async def test_what_was_taken_back_is_nowhere_after_the_next_start(
        self, start: Start, store: str, what: str
    ) -> None:
        async with start(store=store, **FULL) as world:
            await talk(world)
            await world.env.advance_time(60)
            data, whole = world.folder / "data", world.folder / "whole"
            assert left(world, what)
            about = {"data_dir": data, "store": store}, world._now(), what, str(world.ann.id)
            with Forge(CHILD) as forge:

                def anew(act: Callable[..., T], *step: int) -> T:
                    shutil.rmtree(data)
                    shutil.copytree(whole, data)
                    return act(*step, *about, f"discord:channel:{world.general.id}")

                await world.restart(meanwhile=lambda: shutil.copytree(data, whole) and None)
                kinds: list[str] = []
                await world.restart(meanwhile=lambda: kinds.extend(anew(forge.kinds)))
                outcomes = []
                for step in chosen(kinds):
                    await world.restart(meanwhile=partial(anew, forge.lived, step))
                    await world.settle()
                    outcomes.append(await took_effect(world, what))
                    at = (step, kinds[step - 1 : step])
                    assert (at, audited(world, store)) == (at, [])
                    assert (at, left(world, what) if outcomes[-1] else []) == (at, [])
            assert outcomes == sorted(outcomes)  # once it stands, it stands
            assert outcomes.count(False) >= 1
            assert outcomes.count(True) >= 3

    def test_an_edited_messages_old_word_is_not_in_the_archive(self, tmp_path: Path) -> None:
        data, whole = tmp_path / "data", tmp_path / "whole"
        archive = Archive(ArchiveFile(whole / "memory" / "archive.sqlite", clock=Clock()))
        write(archive, Put(said(1, "I saw a quokkaedit")), Put(said(2, "I saw a quokka")))
        archive.close()
        assert files_with(whole, "quokkaedit") != []

        about = {"data_dir": str(data)}, NOW, "edit", ANN, ""
        with Forge(CHILD) as forge:
            shutil.copytree(whole, data)
            for step in range(1, len(forge.kinds(*about)) + 2):
                shutil.rmtree(data)
                shutil.copytree(whole, data)
                forge.lived(step, *about)
                again = Archive(ArchiveFile(data / "memory" / "archive.sqlite", clock=Clock()))
                again.sweep(UNLIMITED)  # as each start does
                last = texts(again)
                if "a cat" in last:
                    assert (step, files_with(data, "quokkaedit")) == (step, [])
                    assert found_in(again, "cat")[0] == "a cat"
                again.close()
            assert step >= 3 and "a cat" in last  # a closed archive that is asked is opened again
