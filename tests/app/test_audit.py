"""`discoclaw audit privacy` names each place that still has what should be gone, and nothing else."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from discoclaw.cli.main import cli
from discoclaw.core.autosave import AutoSave
from discoclaw.core.personal import PersonalData
from discoclaw.core.subject import user_subject
from discoclaw.recall.document import of_item
from discoclaw.search.vectors import hash_of
from discoclaw.session.kept_terms import write_terms
from tests.app.conftest import Start, World
from tests.app.test_personal_data import parts_there_are
from tests.cli.shell import Runner
from tests.core.builders import item

NO_TOKEN = "note: what the bot would read in Discord wasn't looked at: DISCORD_TOKEN is not set\n"
OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")
FULL = {"summary_every": 1, "auto_save": AutoSave(everywhere=True), "response_cache": True}
READ_ELSEWHERE = {
    "Answers": "it stores ids of messages, and of people for whom they were",
    "OpenThreads": "what threads are called is in Discord",
    "Withdrawals": "it tells the others, and stores times",
    "Rewriting": "what it makes again are the summaries",
    "Archiving": "what waits for the archive is in RAM",
    "Embedding": "what waits for its vector is in RAM",
    "Transparency": "it stores ids of messages; what they show is in Discord",
    "GroupWithdrawal": "what channels remember is listed with their files",
    "Leftovers": "files of no part are looked at by themselves",
    "FreedSpace": "what was removed has no texts any more",
    "CopiesAside": "files of no part are looked at by themselves",
}
"""Parts that remove what was taken back from something that another part lists, and why."""


def run(folder: Path, *words: str, store: str = "files") -> Result:
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
    given = {"DISCOCLAW_DATA_DIR": str(folder / "data"), "DISCOCLAW_STORE": store}
    return Runner().invoke(cli, ["audit", "privacy", *words], env={**unset, **given})


def found(folder: Path, store: str = "files") -> list[tuple[str, str, str]]:
    """(part, the place's name, why) of each finding."""
    result = run(folder, "--json", store=store)
    rows = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1 if rows else 0, NO_TOKEN), result.output
    return [(one["part"], Path(one["place"]).name, one["why"]) for one in rows]


async def talk(world: World) -> None:
    """Ann and Bob talk in the open; Ann says something private too; all of it is learned and kept."""
    await world.ann.send(world.general, "I use zsh")
    await world.bob.send(world.general, "I prefer tabs over spaces")
    await world.ann.send(world.general, "Which tea is good?")
    await world.ann.send_dm("I use emacs")
    await world.settle()


async def takes_back(world: World) -> None:
    await world.ann.send(world.general, "!memory forget User uses zsh.")
    await world.settle()


class TestAfterNormalUse:
    @pytest.mark.every_store
    async def test_nothing_is_found(self, start: Start, store: str) -> None:
        async with start(store=store, **FULL) as world:
            await talk(world)
            await takes_back(world)
            await world.ann.send(world.general, "!memory undo")
            await world.ann.send(world.general, "!memory private User uses zsh.")
            await world.bob.send(world.general, "!memory optout")
            await world.settle()
            assert found(world.folder, store) == []
            folder = world.folder
        assert found(folder, store) == []
        result = run(folder, store=store)
        assert (result.exit_code, result.stdout) == (0, "Nothing is readable that shouldn't be.\n")

    @pytest.mark.every_store
    async def test_nothing_is_found_of_who_was_erased(self, start: Start, store: str) -> None:
        async with start(store=store, **FULL) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            assert found(world.folder, store) == []
            await world.env.advance_time(60)
            await world.ann.send(world.general, "I use fish")
            await world.settle()
            assert found(world.folder, store) == []


def _indexed(cache: Path, owner: str) -> None:
    """Indexes that still have an item."""
    zsh = item("User uses zsh.")
    (cache / "views").mkdir(parents=True, exist_ok=True)
    write_terms(cache / "views" / f"{owner}.terms", [of_item(zsh)], {zsh.id: zsh})
    with closing(sqlite3.connect(cache / "vectors.sqlite")) as vectors, vectors:
        vectors.execute("CREATE TABLE IF NOT EXISTS vectors (owner, model, hash, dims, vector)")
        row = (owner, "a model", hash_of("User uses zsh."), 1, b"1234")
        vectors.execute("INSERT INTO vectors VALUES (?, ?, ?, ?, ?)", row)

    @pytest.mark.parametrize("first", ["optout", "erase --yes"])
    async def test_nothing_names_who_was_erased_and_opted_out(self, start: Start, first: str) -> None:
        async with start(**FULL) as world:
            await talk(world)
            for command in (first, "erase --yes" if first == "optout" else "optout"):
                await world.ann.send_dm(f"!memory {command}")
                await world.settle()
            await world.restart()
            await world.settle()
            await world.restart()
            await world.settle()
        assert found(world.folder) == []


class TestALeak:
    """What the program wrote is put back behind its back, as an older copy or a fault would leave it."""

    async def test_is_named_in_every_part(self, start: Start) -> None:
        async with start(**FULL) as world:
            await talk(world)
            memory, cache = world.folder / "data" / "memory", world.folder / "data" / "cache"
            general, ann = f"discord:channel:{world.general.id}", user_subject(str(world.ann.id))
            before = {
                path: path.read_bytes()
                for path in world.folder.rglob("*")
                if path.is_file() and path.parent.name in ("rolling", "profiles", "groups", "responses")
            }
            with closing(sqlite3.connect(memory / "archive.sqlite")) as there:
                archived = there.execute("SELECT * FROM entries").fetchall()
            cursor = memory / "cursors" / f"summary-{general}.json"
            old = json.loads(cursor.read_text())
            assert archived and any(path.parent.name == "rolling" for path in before)
            await takes_back(world)
            call = {"id": "0" * 16, "at": 1, "tool": "memory_search", "ok": True, "content": "uses zsh"}
            where = {"channel": str(world.general.id), "session": general, "private": False}
            folder = world.folder
        for path, content in before.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        cursor.write_text(json.dumps({**old, "again": 1, "base": "Ann likes zsh."}))
        (memory / "tools").mkdir(exist_ok=True)
        (memory / "tools" / f"{ann}.jsonl").write_text(json.dumps({**call, **where}) + "\n")
        (cache / "responses").mkdir(parents=True, exist_ok=True)
        cached = {"key": "k", "sha256": "0" * 64, "model": "m", "response": "You use zsh."}
        answers = [{**cached, "created": 1, "last_access": 1}]
        (cache / "responses" / f"{ann}.json").write_text(json.dumps(answers))
        with closing(sqlite3.connect(memory / "archive.sqlite")) as archive, archive:
            archive.execute("DELETE FROM entries")
            marks = ", ".join("?" * len(archived[0]))
            archive.executemany(f"INSERT INTO entries VALUES ({marks})", archived)
        _indexed(cache, ann)
        profile, group = memory / "profiles" / f"{world.ann.id}.json", memory / "groups"
        profile.write_text(json.dumps({**json.loads(profile.read_text()), "notes": ["User uses zsh."]}))
        (group / f"{world.general.id}.json").write_text(json.dumps({"themes": ["why Ann uses zsh"]}))
        (memory / "rolling" / f"{general}.json.corrupt-1").write_text('{"summary": "Ann uses zsh')
        (folder / "data" / "mine.json").write_text('["I use zsh"]')
        named = set(found(folder))
        assert {(part, name) for part, name, _ in named} == {
            ("summaries in use", f"{general}.json"),
            ("summaries in use", f"summary-{general}.json"),
            ("archive", "archive.sqlite"),
            ("answers", f"{ann}.json"),
            ("tool calls", f"{ann}.jsonl"),
            ("terms", f"{ann}.terms"),
            ("vectors", "vectors.sqlite"),
            ("profiles", f"{world.ann.id}.json"),
            ("groups", f"{world.general.id}.json"),
            ("other files", f"{general}.json.corrupt-1"),
            ("other files", "mine.json"),
        }
        told = run(folder)
        assert told.exit_code == 1 and "zsh" not in told.stdout.replace("emacs", "")
        assert "that they took back" in told.stdout

    async def test_is_named_that_only_an_index_still_has(self, start: Start) -> None:
        async with start(**FULL) as world:
            await talk(world)
            archive = world.folder / "data" / "memory" / "archive.sqlite"
            with closing(sqlite3.connect(archive)) as there:
                archived = there.execute("SELECT * FROM entries WHERE text LIKE '%zsh%'").fetchall()
            await takes_back(world)
            folder = world.folder
        marks = ", ".join("?" * len(archived[0]))
        with closing(sqlite3.connect(archive)) as old, old:  # as earlier versions edited and deleted
            old.executemany(f"INSERT INTO entries VALUES ({marks})", archived)
            old.execute("DELETE FROM entries WHERE text LIKE '%zsh%'")
        assert found(folder) == [("archive", "archive.sqlite", "taken back")]


class TestWhyItIsNone:
    async def test_another_persona_still_remembers_it(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember User uses zsh.")
            await world.ann.send(world.general, "!memory persona create work")
            await takes_back(world)
            _indexed(world.folder / "data" / "cache", user_subject(str(world.ann.id)))
            assert found(world.folder) == []
            await world.ann.send(world.general, "!memory persona switch work")
            await takes_back(world)
            _indexed(world.folder / "data" / "cache", user_subject(str(world.ann.id)))
            assert {part for part, _, _ in found(world.folder)} == {"terms", "vectors"}


class TestWhyItIsOne:
    async def test_a_summary_of_the_open_has_what_was_made_private(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory private User uses zsh.")
            await world.settle()
            assert found(world.folder) == []
            rolling = world.folder / "data" / "memory" / "rolling"
            place = rolling / f"discord:channel:{world.general.id}.json"
            place.write_text(json.dumps({"summary": "Ann uses zsh.", "updatedAt": 1}))
            in_dm = rolling / f"discord:dm:{world.ann.id}.json"
            in_dm.write_text(json.dumps({"summary": "Ann uses zsh.", "updatedAt": 1}))
            assert found(world.folder) == [("summaries in use", place.name, "private")]
            told = run(world.folder).stdout
            assert "1 text of user-" in told and "that they made private" in told and "zsh" not in told

    async def test_the_archive_has_what_somebody_said_who_opted_out(self, start: Start) -> None:
        async with start(auto_save=AutoSave(everywhere=True)) as world:
            await talk(world)
            archive = world.folder / "data" / "memory" / "archive.sqlite"
            with closing(sqlite3.connect(archive)) as before:
                rows = before.execute("SELECT * FROM entries").fetchall()
            await world.ann.send(world.general, "!memory optout")
            await world.settle()
            assert found(world.folder) == []
            folder = world.folder
        with closing(sqlite3.connect(archive)) as leak, leak:
            leak.execute("DELETE FROM entries")
            leak.executemany(f"INSERT INTO entries VALUES ({', '.join('?' * len(rows[0]))})", rows)
        assert found(folder) == [("archive", "archive.sqlite", "opted out")]

    async def test_a_file_names_somebody_who_was_erased(self, start: Start) -> None:
        async with start(**FULL) as world:
            await talk(world)
            memory, ann = world.folder / "data" / "memory", str(world.ann.id)
            people = [one for one in (memory / "cursors").glob("people-*") if ann in one.read_text()]
            assert people
            kept = {one: one.read_bytes() for one in people}
            kept[memory / "tools" / f"user-{ann}.jsonl"] = b""
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            assert found(world.folder) == []
            for path, content in kept.items():
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            left = memory / "rolling" / f".discord:dm:{ann}.json.x1.tmp"
            left.write_text("{}")
            names = {path.name for path in (*kept, left)}
            assert {(name, why) for _, name, why in found(world.folder)} == {(one, "erased") for one in names}


class TestTheContract:
    def test_every_part_that_removes_what_was_taken_back_lists_what_it_stores(self) -> None:
        removing = {one for one in parts_there_are() if one.withdraw is not PersonalData.withdraw}
        silent = {one.__name__ for one in removing if one.readable is PersonalData.readable}
        assert silent <= READ_ELSEWHERE.keys()
