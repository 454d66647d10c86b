"""A word that exists nowhere else is in nothing that is used after its person took it back, however."""

import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from discoclaw.app.finding import Finding
from discoclaw.core.autosave import AutoSave
from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.memory.disk.port import CURSORS, GROUPS, PROFILES, ROLLING, TOOLS
from discoclaw.nostr.encryption import SecretBox
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.names import LEDGER
from discoclaw.nostr.schemas import DELETE, Codec
from discoclaw.session.meaning import Meaning
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.citing import cited, own_of
from tests.memory.leftovers import traces
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.nostr_relay import LyingRelay
from tests.session.scene import until

WORD = "Zwölfkanarie"
FORMS = (WORD, WORD.lower(), "zwolfkanari")
"""How it is written anywhere: as said, and as an index has it."""
ITEM = f"User keeps a {WORD}."
DROP = "please drop that now"
KEY = Keys.generate()
CODEC = Codec(KEY, SecretBox.of(KEY))
HISTORY = ("memory/ledger/", "memory/durable/", "cache/views/", "memory/memory.sqlite")
"""The person's own history, which has it until they erase it, and the histories of channels."""
Act = Callable[["Scene"], Awaitable[None]]


def holds(text: str) -> bool:
    return any(form in text or json.dumps(form)[1:-1] in text for form in FORMS)


class Repeating(Scripted):
    """Learns, sums up and says again whatever it reads of the word, and calls tools when it is asked to.

    `read` is all it was given to read, except in the turn in which it is to forget.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        first = request.turns[0]
        assert isinstance(first, UserTurn)
        said = first.text.rpartition("User message:")[2]
        if DROP not in said:
            self.read.append("\n".join([*(block.text for block in request.system), str(request.turns)]))
        call = {DROP: ("memory_forget", {"item": ITEM}), "search": ("memory_search", {"query": WORD})}
        wanted = [one for asked, one in call.items() if asked in said]
        if wanted and not isinstance(request.turns[-1], ToolTurn):
            yield Finished(AssistantTurn("", (ToolCall("t1", *wanted[0]),)), "tools")
            return
        text = f"A {WORD}, yes." if holds(said) or DROP in said else "Hello there."
        yield TextDelta(text)
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.read.append(prompt)
        answer: dict[str, Any] = {}
        if "summary" in shape.model_fields:
            spoke = {"summary": f"Ann keeps a {WORD}. They like tea.", "themes": [f"{WORD} care"]}
            answer = spoke if holds(prompt) else {"summary": "They like tea."}
        elif "upserts" in shape.model_fields:
            theirs = "\n".join(own_of(prompt).values())
            dog = {"id": ITEM, "kind": "fact", "text": "User keeps a dog."}
            upserts = [{"kind": "fact", "text": ITEM}] if holds(theirs) else []
            answer = {"upserts": [dog] if "it is a dog" in theirs else upserts}
        try:
            return shape.model_validate_json(json.dumps(cited(answer, prompt)))
        except ValueError as error:
            raise ModelBadOutput(str(error)) from error


@dataclass
class Scene:
    """A running bot, a model that repeats what it reads, and where its mirror and its vectors come from."""

    world: World
    model: Repeating
    embeddings: EmbeddingsServer
    relay: LyingRelay

    async def say(self, text: str) -> None:
        await self.world.ann.send(self.world.general, text)

    async def command(self, text: str) -> None:
        await self.say(f"!memory {text}")

    async def live(self) -> None:
        """Have the word said, learned, summed up, searched for and cached, and shown and stored by all."""
        for text in (f"I keep a {WORD}", "search for my pet"):
            await self.say(text)
        await self.world.bob.send(self.world.general, "What does Ann like?")
        await self.settle()
        await self.world.env.advance_time(60)

    async def settle(self) -> None:
        await self.world.settle()
        if isinstance(meaning := self.world.app.feature(Finding).meaning, Meaning):
            await until(lambda: meaning.in_time, seconds=20)
            await meaning.settle()
        await self.world.settle()

    async def go_on(self) -> None:
        """Talk of something else, before and after a restart."""
        await self.world.bob.send(self.world.general, "Which tea is good?")
        await self.settle()
        await self.world.restart(self.model)
        await self.world.env.advance_time(60)
        await self.say("Tell me about my pet")
        await self.settle()

    def on_disk(self) -> list[str]:
        """The files that have the word, and what other than histories has it in the store."""
        disk = self.world.memory.disk
        folders = {name: disk.documents(name) for name in (ROLLING, CURSORS, PROFILES, GROUPS)}
        texts = {
            f"{name}/{one}": folder.read(one) for name, folder in folders.items() for one in folder.names()
        }
        logs = {f"{TOOLS}/{one}": disk.log(f"{TOOLS}/{one}") for one in disk.documents(TOOLS).names()}
        texts |= {name: log.read() for name, log in logs.items()}
        return [
            *traces(self.world.folder / "data", *FORMS),
            *(name for name, content in texts.items() if holds(content.decode())),
        ]

    def derived(self) -> list[str]:
        """The same without the person's own history."""
        return [name for name in self.on_disk() if not name.startswith(HISTORY)]

    async def mirrored(self) -> list[str]:
        """The events on the relay that have the word, without the records of histories."""
        await self.world.mirror.flush(10)
        said = {one.d: json.dumps(CODEC.decode(one), ensure_ascii=False) for one in self.views()}
        return [name for name, text in said.items() if holds(text)]

    def views(self) -> list[Event]:
        """What the relay has beside the records of histories."""
        return [one for one in self.events() if one.kind != DELETE and not one.d.startswith(LEDGER)]

    def events(self) -> list[Event]:
        given = self.relay.events
        return [Event(**{**one, "tags": tuple(tuple(tag) for tag in one["tags"])}) for one in given]


@asynccontextmanager
async def scene(start: Start, *features: str, **changes: Any) -> AsyncIterator[Scene]:
    """Some features are on: "archive", "vectors", "mirror", besides those that cost no time."""
    async with EmbeddingsServer() as embeddings, LyingRelay() as relay, start(Repeating()) as world:
        model = Repeating()
        on: dict[str, Any] = {
            "archive": {"auto_save": AutoSave(everywhere=True)},
            "vectors": {
                "embedding_provider": "openai",
                "embedding_url": embeddings.openai_url,
                "embedding_key": SecretStr("sk-secret"),
            },
            "mirror": {
                "nostr_relays": (relay.url,),
                "nostr_key": SecretStr(KEY.nsec()),
                "nostr_flush_s": 0.0,
            },
        }
        chosen = {name: value for feature in features for name, value in on[feature].items()}
        usual = {"response_cache": True, "receipts": True, "summary_every": 1}
        await world.restart(model, memory_channel=str(world.dev.id), **{**usual, **chosen, **changes})
        yield Scene(world, model, embeddings, relay)


# ---------------------------------------------------------------------- the ways to take something back


async def forget(it: Scene) -> None:
    await it.command(f"forget {ITEM}")


async def undo(it: Scene) -> None:
    await it.command("history undo")


async def edit(it: Scene) -> None:
    await it.command(f"edit {ITEM} => User keeps a dog.")


async def ask_the_model(it: Scene) -> None:
    await it.say(DROP)


async def edit_the_file(it: Scene) -> None:
    path = it.world.durable(it.world.ann)
    path.write_text(path.read_text().replace(WORD, "dog"))
    await it.command("show")


async def settle(it: Scene) -> None:
    await it.command(f"remember {ITEM}")
    await it.world.env.advance_time(60)
    await it.say("it is a dog")
    await it.settle()
    (question,) = it.world.ann_dm.history()
    await it.world.ann.user.click(question, label="Use the new")


async def opt_out(it: Scene) -> None:
    await it.command("optout")


async def erase(it: Scene) -> None:
    await it.command("erase --yes")


WAYS = (forget, undo, edit, ask_the_model, edit_the_file, settle, opt_out, erase)


async def check(it: Scene, act: Act) -> None:
    """Have the word lived with and taken back, and look for it in everything that is used afterwards."""
    world = it.world
    await it.live()
    assert any(name.startswith("rolling/") for name in it.derived())
    assert holds(str(world.shown(world.dev)))
    read = len(it.model.read)
    await act(it)
    if act is settle:
        read = len(it.model.read)  # the question was asked before
    await it.settle()
    assert [text for text in world.shown(world.dev) if holds(text)] == []
    embedded, sent = len(it.embeddings.texts), len(world.env.http_requests)
    await it.go_on()
    assert [text for text in it.model.read[read:] if holds(text)] == []
    assert [text for text in it.embeddings.texts[embedded:] if holds(text)] == []
    assert [one for one in world.env.http_requests[sent:] if holds(str(one.json))] == []
    assert [text for text in world.shown(world.dev) if holds(text)] == []
    left = it.on_disk() if act is erase else it.derived()
    if act is opt_out:  # what is remembered stays, for the case that they come back: so does its view
        left = [name for name in left if "profiles/" not in name]
    assert left == []


@pytest.mark.parametrize("act", WAYS, ids=lambda act: act.__name__)
class TestTakenBack:
    async def test_it_is_in_nothing_that_is_used_afterwards(self, start: Start, act: Act) -> None:
        async with scene(start, store="files" if act is edit_the_file else "sqlite") as it:
            await check(it, act)


class TestEverythingOn:
    @pytest.mark.parametrize("act", [forget, opt_out], ids=lambda act: act.__name__)
    async def test_nor_in_the_archive_nor_among_vectors(self, start: Start, act: Act) -> None:
        async with scene(start, "archive", "vectors") as it:
            await check(it, act)

    async def test_nor_on_relays(self, start: Start) -> None:
        async with scene(start, "mirror") as it:
            await it.live()
            assert await it.mirrored()
            before = it.views()
            await it.command(f"forget {ITEM}")
            await it.settle()
            assert await it.mirrored() == []
            await self.come_back(it, before)

    async def come_back(self, it: Scene, before: list[Event]) -> None:
        """Recover from a relay that has the views of before, and the histories of now."""
        now = [one for one in it.events() if one.d.startswith(LEDGER)]
        async with LyingRelay() as other:
            other.put(*(one.to_json() for one in (*before, *now)))
            await it.world.end()
            shutil.rmtree(it.world.folder / "data")
            await it.world.restart(it.model, nostr_relays=(other.url,), nostr_mode="canonical")
            await it.settle()
            assert it.derived() == []
            assert any(name.startswith("memory/ledger/") for name in it.on_disk())


class TestMadePrivate:
    async def test_it_is_in_nothing_that_the_channel_sees(self, start: Start) -> None:
        async with scene(start) as it:
            await it.live()
            read = len(it.model.read)
            await it.command(f"private {ITEM}")
            await it.settle()
            await it.go_on()
            assert [text for text in it.model.read[read:] if holds(text)] == []
            assert [text for text in it.world.shown(it.world.dev) if holds(text)] == []
            private = ("profiles/", "memory/profiles/")
            assert [name for name in it.derived() if not name.startswith(private)] == []
