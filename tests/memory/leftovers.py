"""A data folder with one person's words in every place where there can be any, and a search for them."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.event import encode_line
from discoclaw.core.message import Me, Place, Said
from discoclaw.core.patch import Patch, Summary, Upsert
from discoclaw.core.subject import dm_of, user_of
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.memory.conversations.responses import Responses
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects import ledger, verbs
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.memory.subjects.subject import SNAPSHOT_EVERY
from discoclaw.store.files import session_name
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import CURSORS, LEDGERS, ROLLING, Disk
from discoclaw.store.postgres.disk import PostgresDisk
from tests.memory.kit import NOW, STAMP, Clock, chain, edit, erased_from, remember
from tests.session.scene import ScriptedModel

CANARY = "Kanarie-Ü🐦-4711"
"""Said by the person, and by nobody else."""
ANN, BOB = "user-910000000000000177", "user-820000000000000288"
GENERAL = Place("channel", "55", "55", "general", private=False, group_name="general")
GENERAL_KEY = GENERAL.session_key("")
DM = Place("dm", "66", None, "direct message", private=True)
ME = Me("900", "DiscoClaw")


@dataclass(frozen=True, slots=True)
class Shelves:
    """One running memory over a data folder; another one over the same folder is a restart."""

    data: Path
    clock: Clock
    store: Store
    memory: Memory
    rolling: RollingMemory
    cursors: Cursors

    def traces(self, *words: str) -> list[str]:
        """The files and the rows that have one of the words; see `traces`."""
        return [*traces(self.data, *words), *rows_with(self.memory.disk, *words)]

    def summary_loop(self, model: ScriptedModel) -> SummaryLoop:
        consent = erased_from(self.memory)
        rules = SummaryRules(self.clock)
        return SummaryLoop(model, self.rolling, self.cursors, me=lambda: ME, rules=rules, consent=consent)

    def facts_loop(self, model: ScriptedModel) -> FactsLoop:
        about: Any = {"rules": FactsRules(), "me": lambda: Me("9", "Claw"), "clock": self.clock}
        return FactsLoop(model, self.memory, self.cursors, **about)


def shelves(data: Path, clock: Clock | None = None, *, store: Store = "files") -> Shelves:
    clock = clock or Clock()
    root = data / "memory"
    kept = disks(store, root)
    cursors = Cursors(kept.used.documents(CURSORS))
    rolling = RollingMemory(kept.used.documents(ROLLING), cursors=cursors, clock=clock)
    memory = Memory(kept, clock=clock, cursors=cursors)
    memory.join(rolling, Responses(data / "cache" / "responses", clock=clock))
    return Shelves(data, clock, store, memory, rolling, cursors)


def templates_of(
    fill: Callable[[Shelves], Coroutine[Any, Any, object]], folders: pytest.TempPathFactory
) -> Callable[[Store], Path]:
    """A data folder of each store, filled once; to be copied."""

    @cache
    def make(store: Store) -> Path:
        made = shelves(folders.mktemp("template") / "data", store=store)
        made.memory.open()
        asyncio.run(fill(made))
        made.memory.close()
        return made.data

    return make


def said(number: int, subject: str, text: str, *, sent_at: int = NOW - 1000) -> Said:
    """A message; its id is one of that time."""
    user_id = user_of(subject)
    assert user_id is not None
    return Said(str((sent_at - 1_420_070_400_000 << 22) + number), user_id, subject, text, sent_at)


def backlog(place: Place, *messages: Said) -> Backlog:
    waiting = Backlog()
    for one in messages:
        waiting.hear(Heard(one, place, place.session_key(one.author_id)))
    return waiting


def upsert(text: str, place: Place, message: Said) -> Patch:
    return Patch(upserts=[Upsert(kind="fact", text=text, source="m1", quote=message.text)])


async def fill(house: Shelves) -> None:
    """Let a person and somebody else use everything that keeps something of them."""
    for subject, word in ((ANN, CANARY), (BOB, "coffee")):
        await _remember(house, subject, word)
        await _talk(house, subject, word)
        (_strew if house.store == "files" else _strew_rows)(house, subject, word)
    await house.cursors.put("transparency", {"910000000000000177": "70", "820000000000000288": "80"})


async def _remember(house: Shelves, subject: str, word: str) -> None:
    """A ledger long enough for a snapshot, branches, an unfinished line kept aside, and a damaged copy."""
    lines = house.memory.ledgers.log(subject)
    lines.replace(
        b"".join(map(encode_line, chain(*(f"{word} number {n}" for n in range(SNAPSHOT_EVERY + 1)))))
    )
    if house.store == "files":
        with lines.path.open("ab") as file:
            file.write(f'{{"torn {word}'.encode())
    await house.memory.change(subject, f"why {word}", remember(f"I like {word}"))
    await verbs.create_branch(house.memory, subject, "coding", f"a persona of {word}")
    await house.memory.change(subject, "why", remember(f"more {word}"), branch="coding")
    lines.keep_aside("damaged", STAMP)
    assert ledger.read(lines).torn == 0


async def _talk(house: Shelves, subject: str, word: str) -> None:
    """What the loops learn and sum up, in a DM and in the channel, with the cursors of it all."""
    model = ScriptedModel()
    for place in (DM, GENERAL):
        message = said(1 + 2 * (place is DM) + (subject == BOB), subject, f"{word} is good")
        model.patches.append(upsert(f"User said {word} in {place.kind}", place, message))
        await house.facts_loop(model).run(message.author_id, backlog(place, message), {})
        waiting = backlog(place, message)
        model.summaries.append(lambda prompt: Summary(summary=f"They said: {prompt[-400:]}"))
        await house.summary_loop(model).run(place.session_key(message.author_id), waiting)
    follower = Follower("board", _seen, ledgers=house.memory.ledgers, cursors=house.cursors)
    await follower.start()
    await follower.catch_up()
    await follower.settle()
    await house.cursors.put(f"tidied-{subject}", {"heads": {word: "abc"}})


async def _seen(subject: str) -> None:
    """A mirror that shows nothing."""


def _strew(house: Shelves, subject: str, word: str) -> None:
    """What lies beside the files: copies kept aside, what a killed writer or an editor leaves."""
    user_id = user_of(subject)
    assert user_id is not None
    path = house.memory.durable_folder / f"{user_id}.json"
    edit(path, lambda file: file["items"].append({"kind": "nonsense", "text": f"rejected {word}"}))
    for label in ("rejected", "corrupt", "v1", "v2"):
        FileDocuments(path.parent).keep_aside(path.name, label, STAMP)
    answers = house.data / "cache" / "responses" / f"{subject}.json"
    answers.parent.mkdir(parents=True, exist_ok=True)
    answers.write_text(json.dumps([{"key": "0", "response": word}]), encoding="utf-8")
    dm = house.rolling.folder / session_name(dm_of(user_id))
    FileDocuments(dm.parent).keep_aside(dm.name, "corrupt", STAMP)
    left = [
        path.with_name(f".{path.name}.0a1b2c3d.tmp"),
        path.with_name(f"{path.name}~"),
        path.with_name(f".{path.name}.swp"),
        path.with_name(f"#{path.name}#"),
        answers.with_name(f".{answers.name}.0a1b2c3d.tmp"),
        house.memory.ledger_folder / f".{subject}.jsonl.torn-{STAMP}.0a1b2c3d.tmp",
        dm.with_name(f".{dm.name}.0a1b2c3d.tmp"),
        house.cursors.folder / f".facts-{user_id}.json.0a1b2c3d.tmp",
    ]
    for one in left:
        one.write_text(json.dumps({"left": word}), encoding="utf-8")


def _strew_rows(house: Shelves, subject: str, word: str) -> None:
    """What a database keeps beside: copies kept aside, and long texts that were replaced by short ones."""
    user_id = user_of(subject)
    assert user_id is not None
    house.rolling.documents.keep_aside(session_name(dm_of(user_id)), "corrupt", STAMP)
    for size in (3000, 1):
        house.cursors.documents.write(f"facts-{user_id}.json.old", json.dumps([word] * size).encode())


def traces(data: Path, *words: str) -> list[str]:
    """The files below a folder that have one of the words, in their name or as any encoding writes it."""
    forms = [form for word in words for form in _forms(word)]
    return [
        str(path.relative_to(data))
        for path in sorted(data.rglob("*"))
        if any(form in str(path.relative_to(data)).encode() for form in forms)
        or (path.is_file() and any(form in path.read_bytes() for form in forms))
    ]


def rows_with(disk: Disk, *words: str) -> list[str]:
    """What has one of the words in PostgreSQL, if that is the store: names of texts, rows of other tables."""
    if not isinstance(disk, PostgresDisk):
        return []
    forms = {form for word in words for form in _forms(word)}
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    others = {name for (name,) in disk.database.read(lambda db: db.execute(tables).fetchall())}
    others = {name for name in others if name not in ("documents", "logs") and not name.startswith("lines")}
    found = set()
    for table in others:
        query = f'SELECT "{table}"::text FROM "{table}"'.encode()
        rows = disk.database.read(lambda db, query=query: db.execute(query).fetchall())  # type: ignore[misc]
        found |= {f"{table}: {row}" for (row,) in rows if any(one in row.encode() for one in forms)}
    texts = (
        "SELECT name, content FROM documents UNION ALL SELECT name, line FROM logs, lines WHERE log = logs.id"
    )
    rows = disk.database.read(lambda db: db.execute(texts, binary=True).fetchall())
    found |= {name for name, text in rows if any(one in name.encode() + text for one in forms)}
    return sorted(found)


def _forms(word: str) -> set[bytes]:
    escaped = json.dumps(word)[1:-1]
    return {word.encode(), escaped.encode(), escaped.upper().encode(), word.encode("utf-16-le")}


def about(house: Shelves, subject: str) -> dict[str, bytes]:
    """The bytes of everything that is one person's alone, by name."""
    user_id = user_of(subject)
    assert user_id is not None
    disk = house.memory.disk
    rows = {
        f"memory/{folder}/{name}": _content(house, folder, name)
        for folder in (LEDGERS, ROLLING, CURSORS)
        for name in disk.documents(folder).names()
        if disk.durable is None and user_id in name
    }
    return rows | {
        str(path.relative_to(house.data)): path.read_bytes()
        for path in house.data.rglob("*")
        if path.is_file() and user_id in path.name and not path.name.endswith(".tmp")
    }


def _content(house: Shelves, folder: str, name: str) -> bytes:
    is_log = folder == LEDGERS and name.endswith(".jsonl")
    if is_log:
        return house.memory.ledgers.log(name.removesuffix(".jsonl")).read()
    return house.memory.disk.documents(folder).read(name)
