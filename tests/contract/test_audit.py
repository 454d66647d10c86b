"""`discoclaw audit privacy` names each place that still has what should be gone, and nothing else."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.brain import sum_up
from tests.contract.world import Start, World

FULL: dict[str, Any] = {"summary_every": 1, "auto_save": "all", "response_cache": True}
ZSH = "User uses zsh."


def found(world: World, **environment: str) -> list[tuple[str, str, str]]:
    """(part, the place's name, why) of each finding."""
    result = world.cli("audit", "privacy", "--json", **environment)
    rows = json.loads(result.stdout)
    assert result.exit_code == (1 if rows else 0), result.output
    assert "what the bot would read in Discord wasn't looked at: DISCORD_TOKEN is not set" in result.stderr
    return [(one["part"], Path(one["place"]).name, one["why"]) for one in rows]


async def talk(world: World) -> None:
    """Ann and Bob talk in the open; Ann says something private too; all of it is learned and kept."""
    world.brain.writes("summary", sum_up)
    for words, learned in (
        ("I use zsh", ZSH),
        ("I use fish", "User uses fish."),
        ("emacs", "User uses emacs."),
    ):
        world.brain.learns(learned, about=words)
    await world.says(world.ann, world.general, "I use zsh")
    await world.says(world.bob, world.general, "I prefer tabs over spaces")
    await world.says(world.ann, world.general, "Which tea is good?")
    await world.says(world.ann, world.ann_dm, "I use emacs")


async def says(world: World, command: str, person: Any = None) -> None:
    await world.says(person or world.ann, world.general, f"!memory {command}")


def rows_of(archive: Path, where: str = "") -> list[Any]:
    with closing(sqlite3.connect(archive)) as there:
        return there.execute(f"SELECT * FROM entries {where}").fetchall()


def put_back(archive: Path, rows: list[Any]) -> None:
    with closing(sqlite3.connect(archive)) as there, there:
        there.execute("DELETE FROM entries")
        there.executemany(f"INSERT INTO entries VALUES ({', '.join('?' * len(rows[0]))})", rows)


@pytest.mark.parametrize("store", ["files", pytest.param("sqlite", marks=pytest.mark.long)], indirect=True)
async def test_finds_nothing_after_normal_use(start: Start, store: str) -> None:
    async with start(store=store, **FULL) as world:
        where = {"DISCOCLAW_STORE": store}
        await talk(world)
        for command in (f"forget {ZSH}", "undo", f"private {ZSH}"):
            await says(world, command)
        await says(world, "optout", world.bob)
        assert found(world, **where) == []
        await world.env.advance_time(60)
        await says(world, "erase --yes")
        assert found(world, **where) == []
        await world.env.advance_time(60)
        await world.says(world.ann, world.general, "I use fish")
        assert found(world, **where) == []
        await world.stop()
        result = world.cli("audit", "privacy", **where)
        assert (result.exit_code, result.stdout) == (0, "Nothing is readable that shouldn't be.\n")


class TestALeak:
    """What the program wrote is put back behind its back, as an older copy or a fault would leave it."""

    async def test_is_named_in_every_part_without_its_words(self, start: Start) -> None:
        async with start(**FULL) as world:
            await talk(world)
            memory, cache = world.data / "memory", world.data / "cache"
            general, ann = f"discord:channel:{world.general.id}", f"user-{world.ann.id}"
            parts = ("rolling", "profiles", "groups", "responses")
            before = {
                path: path.read_bytes()
                for path in world.data.rglob("*")
                if path.is_file() and path.parent.name in parts
            }
            archived = rows_of(memory / "archive.sqlite")
            cursor = memory / "cursors" / f"summary-{general}.json"
            old = json.loads(cursor.read_text())
            await says(world, f"forget {ZSH}")
            await world.stop()
            for path, content in before.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            cursor.write_text(json.dumps({**old, "again": 1, "base": "Ann likes zsh."}))
            call = {"id": "0" * 16, "at": 1, "tool": "memory_search", "ok": True, "content": "uses zsh"}
            call |= {"channel": str(world.general.id), "session": general, "private": False}
            cached = {"key": "k", "sha256": "0" * 64, "model": "m", "response": "You use zsh."}
            for path, content in (
                (memory / "tools" / f"{ann}.jsonl", json.dumps(call) + "\n"),
                (cache / "responses" / f"{ann}.json", [{**cached, "created": 1, "last_access": 1}]),
                (memory / "groups" / f"{world.general.id}.json", {"themes": ["why Ann uses zsh"]}),
                (memory / "rolling" / f"{general}.json.corrupt-1", '{"summary": "Ann uses zsh'),
                (world.data / "mine.json", ["I use zsh"]),
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content))
            put_back(memory / "archive.sqlite", archived)
            profile = memory / "profiles" / f"{world.ann.id}.json"
            profile.write_text(json.dumps({**json.loads(profile.read_text()), "notes": [ZSH]}))
            assert {(part, name) for part, name, _ in found(world)} == {
                ("summaries in use", f"{general}.json"),
                ("summaries in use", f"summary-{general}.json"),
                ("archive", "archive.sqlite"),
                ("answers", f"{ann}.json"),
                ("tool calls", f"{ann}.jsonl"),
                ("profiles", f"{world.ann.id}.json"),
                ("groups", f"{world.general.id}.json"),
                ("other files", f"{general}.json.corrupt-1"),
                ("other files", "mine.json"),
            }
            told = world.cli("audit", "privacy")
            assert told.exit_code == 1 and "zsh" not in told.stdout and "that they took back" in told.stdout

    async def test_is_named_that_an_index_only_has_in_its_free_pages(self, start: Start) -> None:
        async with start(**FULL) as world:
            await talk(world)
            archive = world.data / "memory" / "archive.sqlite"
            archived = rows_of(archive, "WHERE text LIKE '%zsh%'")
            await says(world, f"forget {ZSH}")
            await world.stop()
            with closing(sqlite3.connect(archive)) as old, old:  # as earlier versions edited and deleted
                marks = ", ".join("?" * len(archived[0]))
                old.executemany(f"INSERT INTO entries VALUES ({marks})", archived)
                old.execute("DELETE FROM entries WHERE text LIKE '%zsh%'")
            assert found(world) == [("archive", "archive.sqlite", "taken back")]

    @pytest.mark.parametrize("why", ["private", "opted out", "erased"])
    async def test_is_named_with_the_reason(self, start: Start, why: str) -> None:
        async with start(**FULL) as world:
            await talk(world)
            memory, ann = world.data / "memory", str(world.ann.id)
            archived = rows_of(memory / "archive.sqlite")
            people = [one for one in (memory / "cursors").glob("people-*") if ann in one.read_text()]
            kept = {one: one.read_bytes() for one in people}
            await world.env.advance_time(60)
            commands = {"private": f"private {ZSH}", "opted out": "optout", "erased": "erase --yes"}
            await says(world, commands[why])
            assert found(world) == []
            await world.stop()
            if why == "private":
                for key in (f"discord:channel:{world.general.id}", f"discord:dm:{ann}"):
                    place = memory / "rolling" / f"{key}.json"
                    place.write_text(json.dumps({"summary": "Ann uses zsh.", "updatedAt": 1}))
                expected = {("summaries in use", f"discord:channel:{world.general.id}.json")}
            elif why == "opted out":
                put_back(memory / "archive.sqlite", archived)
                expected = {("archive", "archive.sqlite")}
            else:
                kept[memory / "tools" / f"user-{ann}.jsonl"] = b""
                kept[memory / "rolling" / f".discord:dm:{ann}.json.x1.tmp"] = b"{}"
                assert len(kept) > 2
                for path, content in kept.items():
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                expected = {(part, name) for part, name, _ in found(world)}
                assert {name for _, name in expected} == {path.name for path in kept}
            assert {(part, name) for part, name, _ in found(world)} == expected
            assert {reason for _, _, reason in found(world)} == {why}
