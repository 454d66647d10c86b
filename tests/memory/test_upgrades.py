"""The version of the data folder: adopted, brought forward step by step with copies, never lowered."""

import json
import logging
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.memory.folder import STEPS, Step, upgrade
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, NOW, Clock, fingerprint, remember, texts
from tests.tables import naming


def version(root: Path) -> int:
    return int(json.loads((root / "version.json").read_bytes())["version"])


def config_of(data: Path) -> list[Path]:
    return [data / "memory" / "config.json", data / "memory" / "absent.json"]


def rename_field(data: Path) -> None:
    path = data / "memory" / "config.json"
    path.write_text(path.read_text().replace("old", "new"))


def fail(data: Path) -> None:
    raise OSError("the disk is full")


TWO = (*STEPS, Step("a field has another name", config_of, rename_field))


@pytest.mark.own_store
class TestTheFirstVersion:
    async def test_takes_over_a_folder_that_has_none_and_changes_nothing_else(
        self, root: Path, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.memory.folder")
        for _ in range(2):
            memory = Memory(disks(store, root), clock=Clock())
            memory.open()
            await memory.change(ANN, "why", remember("User likes tea"))
            memory.close()
            assert version(root) == 1
        assert caplog.messages == []  # a new folder has it at once
        (root / "version.json").unlink()
        before = {name: text for name, text in fingerprint(root).items() if "sqlite" not in name}
        memory = Memory(disks(store, root), clock=Clock())
        memory.open()
        assert caplog.messages == ["the data has version 1 now: the folder says which version it has"]
        assert await texts(memory) == ["User likes tea"]
        memory.close()
        after = fingerprint(root)
        assert {name: after.get(name) for name in before} == before
        assert version(root) == 1

    def test_a_newer_one_is_left_alone(self, root: Path, store: Store) -> None:
        root.mkdir()
        (root / "version.json").write_text('{"version": 2}')
        before = fingerprint(root)
        with pytest.raises(NewerSchema, match=r"has data of version 2, .* up to version 1; upgrade"):
            Memory(disks(store, root), clock=Clock()).open()
        assert fingerprint(root).keys() - before.keys() <= {".lock"}

    def test_a_file_that_makes_no_sense_stops_the_start(self, root: Path, store: Store) -> None:
        for content in ("", "{", "[]", '{"version": "1"}', '{"version": 0}', "[" * 100_000):
            with naming(content):
                root.mkdir(exist_ok=True)
                (root / "version.json").write_text(content)
                with pytest.raises(MemoryFault, match=r"version\.json makes no sense"):
                    Memory(disks(store, root), clock=Clock()).open()
                assert (root / "version.json").read_text() == content


class TestALaterVersion:
    def test_keeps_a_copy_of_what_it_changes_and_names_it(
        self, root: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.memory.folder")
        root.mkdir()
        (root / "config.json").write_text("old")
        upgrade(root, NOW, TWO)
        assert ((root / "config.json").read_text(), version(root)) == ("new", 2)
        (kept,) = root.parent.glob("old.before-version-2-*")
        assert (kept / "memory" / "config.json").read_text() == "old"
        assert str(kept) in caplog.text
        upgrade(root, NOW, TWO)
        assert len(list(root.parent.glob("old.before-*"))) == 1
        with pytest.raises(NewerSchema):
            upgrade(root, NOW)

    def test_a_step_that_fails_is_repeated_and_the_copies_stay(self, root: Path) -> None:
        root.mkdir()
        (root / "config.json").write_text("old")
        with pytest.raises(OSError, match="full"):
            upgrade(root, NOW, (*STEPS, TWO[1]._replace(work=fail)))
        assert version(root) == 1
        upgrade(root, NOW, TWO)
        kept = sorted(root.parent.glob("old.before-version-2-*"))
        assert [(one / "memory" / "config.json").read_text() for one in kept] == ["old", "old"]
        assert version(root) == 2
