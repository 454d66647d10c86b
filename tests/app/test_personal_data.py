"""Nothing that stores anything about people is left out of an erasing: no class, and no file on disk."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import discoclaw
from discoclaw.app import App, build
from discoclaw.app.finding import Finding
from discoclaw.core.autosave import AutoSave
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.model import ModelRequest, StreamEvent, UserTurn
from discoclaw.core.personal import PersonalData
from discoclaw.core.subject import user_subject
from discoclaw.models.offline.model import OfflineModel
from discoclaw.nostr.event import Keys
from discoclaw.search.archive import Archive
from discoclaw.session.meaning import Meaning
from discoclaw.settings_types import Listen
from tests.app.conftest import Start, World, settings_for
from tests.app.models import Scripted
from tests.app.test_tool_log import Storing
from tests.memory.leftovers import traces
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.nostr_relay import LyingRelay
from tests.session.scene import until

WORD = "Kanarie-4711"
KEY = Keys.generate()


class Answering(Storing):
    """Calls a tool for each message, unless it is asked for a plain answer."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        first = request.turns[0]
        plain = isinstance(first, UserTurn) and "plainly" in first.text
        async for event in Scripted.stream(self, request) if plain else super().stream(request):
            yield event


KINDS = {
    r"memory/ledger/.*": "ledgers",
    r"memory/durable/.*": "durable files",
    r"memory/rolling/.*": "summaries",
    r"memory/cursors/.*": "cursors",
    r"memory/profiles/.*": "profiles",
    r"memory/groups/.*": "group files",
    r"memory/tools/.*": "tool calls",
    r"memory/usage/.*": "usage",
    r"memory/clears\.jsonl": "clears and answers",
    r"memory/answers/.*": "clears and answers",
    r"memory/archive\.sqlite(-wal|-shm)?": "archive",
    r"memory/outbox/outbox\.sqlite(-wal|-shm)?": "mirror",
    r"cache/views/[^.]*\.json": "snapshots",
    r"cache/views/.*\.terms": "terms",
    r"cache/responses/.*": "answers",
    r"cache/vectors\.sqlite(-wal|-shm)?": "vectors",
}
"""The part that removes what there is about a person in each kind of file."""
KEPT = {
    r"memory/choices\.json": "what somebody chose outlives what is remembered of them",
    r"memory/tombstone(s\.jsonl|\.key)": "who was erased, and when, without saying who",
    r"memory/\.(lock|holder)": "which process uses the folder",
    r"memory/version\.json": "which version of the program's data it is",
    r"nostr/state\.json": "how the relays are doing",
}


def everything(folder: Path, **changes: Any) -> dict[str, Any]:
    """Settings that switch every part on."""
    return {
        "auto_save": AutoSave(everywhere=True),
        "response_cache": True,
        "receipts": True,
        "max_items": 10_000,
        "memory_channel": "1",
        "embedding_provider": "openai",
        "embedding_url": "http://127.0.0.1:1/v1",
        "embedding_key": SecretStr("sk-secret"),
        "nostr_relays": ("ws://127.0.0.1:1",),
        "nostr_key": SecretStr(KEY.nsec()),
        "nostr_flush_s": 0.0,
        "page": Listen("127.0.0.1", 0),
        **changes,
    }


def modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(discoclaw.__path__, "discoclaw."):
        if not module.name.endswith("__main__"):
            yield module.name


def parts_there_are() -> set[type[PersonalData]]:
    """Every class of ours that stores something about people."""
    for name in modules():
        importlib.import_module(name)
    found, waiting = set(), [PersonalData]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        ours = one.__module__.startswith("discoclaw.") and one.__module__ != "discoclaw.memory.off"
        ours &= not one.__module__.startswith("discoclaw.demo.")  # `demo/show` has it join by itself
        if ours and one is not PersonalData:
            found.add(one)
    return {_port(one) for one in found if not inspect.isabstract(one)}


def registered(app: App) -> set[type[PersonalData]]:
    return {_port(type(part)) for part in app.storage.memory.personal}


def _port(part: type[PersonalData]) -> type[PersonalData]:
    """What a part stands for: there are several archives, of which a bot has one."""
    return Archive if issubclass(part, Archive) else part


class TestEveryPart:
    def test_is_visited_by_an_erasing_of_the_whole_bot(self, tmp_path: Path) -> None:
        settings = settings_for(tmp_path, **everything(tmp_path))
        settings.outbox_path.parent.mkdir(parents=True)
        settings.outbox_path.touch()  # something was mirrored before
        app = build(settings, model=OfflineModel())
        assert parts_there_are() - registered(app) == set()

    def test_has_a_name_of_its_own(self, tmp_path: Path) -> None:
        app = build(settings_for(tmp_path, **everything(tmp_path)), model=OfflineModel())
        names: dict[str, set[type[PersonalData]]] = {}
        for part in app.storage.memory.personal:
            names.setdefault(part.name, set()).add(type(part))
        assert [name for name, kinds in names.items() if len(kinds) > 1 or not name] == []


@pytest.fixture
async def embeddings() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={}) as server:
        yield server


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def kinds_of(found: list[str]) -> tuple[dict[str, str], list[str]]:
    """The part of each kind of file that there is, and the files of which nobody says what they are."""
    known, unknown = {}, []
    for name in found:
        fits = [pattern for pattern in (*KINDS, *KEPT) if re.fullmatch(pattern, name)]
        if not fits:
            unknown.append(name)
        known.update({pattern: KINDS[pattern] for pattern in fits if pattern in KINDS})
    return known, unknown


async def story(world: World) -> None:
    """Whatever leaves something on disk: talk, tools, commands, personas, a clear, an index, a mirror."""
    for _ in range(2):
        await world.ann.send(world.general, f"I like {WORD}")
        await world.bob.send(world.general, "I like coffee")
        await world.ann.send_dm(f"I prefer {WORD}")
    await world.ann.send(world.general, f"!memory remember my cat is {WORD}")
    await world.ann.send(world.general, f"!memory create-branch coding my work on {WORD}")
    await world.settle()
    await world.ann.send(world.dev, f"We talk about {WORD}")
    await world.ann.send(world.dev, "!memory reset rolling")
    await world.ann.send(world.dev, f"Tell me plainly about {WORD}")
    await world.bob.send(world.general, "!memory optout")
    meaning, memory = world.app.feature(Finding).meaning, world.memory
    assert isinstance(meaning, Meaning)
    await until(lambda: meaning.in_time, seconds=20)
    await meaning.settle()
    subject = user_subject(str(world.ann.id))
    for number in range(210):  # so many records have a snapshot
        await memory.change(subject, "why", lambda draft, n=number: _add(draft, n))
    await memory.change(subject, "why", lambda draft: [_add(draft, n) for n in range(210, 800)])
    await world.ann.send_dm("Tell me plainly once more")  # the terms of so many memories are kept
    world.memory.evict_idle()
    await world.settle()


def _add(draft: Draft, number: int) -> None:
    draft.upsert("fact", f"{WORD} {number} " + "long " * 60, Origin("stated"))


class TestEveryFile:
    async def test_has_a_part_that_removes_what_there_is_of_a_person(
        self, start: Start, embeddings: EmbeddingsServer
    ) -> None:
        async with LyingRelay() as relay, start(Answering()) as world:
            on = everything(
                world.folder,
                memory_channel=str(world.dev.id),
                embedding_url=embeddings.openai_url,
                nostr_relays=(relay.url,),
            )
            await world.restart(Answering(), **on)
            await story(world)
            await world.restart(Answering(), **on)  # which reads long ledgers, and leaves snapshots of them
            data = world.folder / "data"
            await world.memory.view(user_subject(str(world.ann.id)))
            await world.settle()
            known, unknown = kinds_of(files(data))
            assert unknown == []
            assert set(KINDS) - set(known) == set()  # the story leaves all there can be
            assert set(known.values()) <= {part.name for part in world.memory.personal}
            asked_at = int(world.env.now().timestamp() * 1000)
            for person in (world.ann, world.bob):  # the model stored the word with both
                subject = user_subject(str(person.id))
                erased = await world.memory.erase(subject, asked_at=asked_at)
                assert erased.left == ()
            await world.env.advance_time(1)
            await world.settle()
            await world.mirror.flush(10)
            assert world.memory.pending_erasures() == []
            assert traces(data, WORD, str(world.ann.id)) == []
