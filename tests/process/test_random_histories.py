"""Whatever people say and take back, in whatever order and however often the bot is killed meanwhile.

Two people talk, remember, forget, undo, edit, delete, opt out and in again, and have their memory erased, at
random. Some of it is done by a process that is killed with SIGKILL between two writes (`killed_child`). Every
message has a word that nobody else says. An oracle, which knows nothing of the program, notes what became
of each word. After each step it looks through the whole data folder, what the bot logs, and what the model is
sent next, for words that were taken back, and finds every word that was not. Where the memory is mirrored, it
also decrypts what a relay holds, and what waits to go there. A seed names a history.
"""

import base64
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from nacl.secret import SecretBox
from nostr_sdk import PublicKey, SecretKey, nip44_decrypt
from pydantic import SecretStr

from discoclaw.core.policy import AutoSave
from tests.contract.brain import likes, message_of, sum_up
from tests.contract.published import BOT, PERSON, mirrored, sent, tag
from tests.contract.world import Start, World, starting
from tests.memory.kills import Forge
from tests.process.test_killed_anywhere import CHILD, audited, texts_with
from tests.servers.nostr_relay import LyingRelay

FULL: Final[dict[str, Any]] = {
    "summary_every": 1,
    "auto_save": AutoSave(everywhere=True),
    "response_cache": True,
    "receipts": True,
    "store": "files",
}
HISTORY: Final[tuple[str, ...]] = ("ledger/user-", "durable/", "views/user-", "memory.sqlite")
"""A person's own history, which has a word until they erase it; of a database the rows are looked at."""
LEDGER: Final = "discoclaw:ledger:"
PREFERENCES: Final = ":preference"
"""What is in the addresses of a history's records on relays, and of somebody's preferences."""
BOX_KEY: Final = "11" * 32
MOST_STEP: Final = 60
"""The last write before which a process is killed; most acts have fewer, and live."""

State = Literal["used", "paused", "gone", "said", "nowhere"]
"""Remembered; not while its person has opted out; in their own history alone; in the recent talk alone, where
they had opted out; nowhere at all."""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path)


@dataclass
class Word:
    """A word that one person said once, what became of it, and the message if it rests on one alone."""

    text: str
    person: Any
    state: State
    message: Any = None

    @property
    def item(self) -> str:
        return f"User likes {self.text}."


class History:
    """One history, as far as it was played: what people did to a bot, and what the oracle knows."""

    def __init__(
        self,
        world: World,
        seed: int,
        forge: Forge,
        log: pytest.LogCaptureFixture,
        relay: LyingRelay | None,
    ) -> None:
        self.world = world
        self.relay = relay
        self._read: dict[str, str] = {}
        """The text of each event, decrypted, by its id."""
        self.random = random.Random(seed)
        self.words: list[Word] = []
        self.out: set[int] = set()
        self.undoable: dict[int, Word] = {}
        """What the newest change of each person was a forgetting of."""
        self.told: list[str] = []
        self._forge = forge
        self._log = log
        world.brain.writes("upserts", likes)
        world.brain.writes("summary", sum_up)
        world.brain.usual = lambda request: f"You said: {message_of(request)}"

    def new(self) -> str:
        """A word that begins like no other one, and that no stemmer shortens."""
        letters = self.random.sample("bdfgklmnprtvz", 7)
        return "q" + "".join(letters) + "ik"

    def of(self, person: Any, *states: State) -> list[Word]:
        return [one for one in self.words if one.person == person and one.state in states]

    async def step(self) -> None:
        """One of the acts that are possible now, and the look at everything after it."""
        person = self.random.choice([self.world.ann, self.world.bob])
        used, said = self.of(person, "used"), [one for one in self.of(person, "used") if one.message]
        may: list[tuple[int, Callable[..., Any]]] = [(5, self.talk), (1, self.restart)]
        if person.id in self.out:
            may.append((4, self.opt_in))
        else:
            may += [(2, self.remember), (1, self.opt_out), (1, self.erase), (2, self.killed)]
            may += [(3, self.forget), (2, self.edit)] if used else []
            may += [(3, self.delete), (3, self.edit_message)] if said else []
            may += [(4, self.undo)] if person.id in self.undoable else []
        act = self.random.choices([one for _, one in may], [weight for weight, _ in may])[0]
        self.told.append(f"{person.name}: {act.__name__}")
        await self.world.env.advance_time(60)
        await act(person)
        await self.world.settle()
        await self.look()

    # ------------------------------------------------------------------ what people do

    async def say(self, person: Any, text: str, place: Any = None) -> Any:
        place = place or self.random.choice([self.world.general, self.world.dev, person.user.dm_channel])
        direct = place.id == person.user.dm_channel.id
        sent = await (person.send_dm(text) if direct else person.send(place, text))
        await self.world.settle()
        self.told.append(f"{text} -> {self.world.answer(place)}")
        return sent

    async def command(self, person: Any, text: str) -> None:
        """In their direct messages: in the open, a private memory can't be named."""
        await self.say(person, f"!memory {text}", person.user.dm_channel)

    async def talk(self, person: Any) -> None:
        word = Word(self.new(), person, "said" if person.id in self.out else "used")
        word.message = await self.say(person, f"I like {word.text}")
        self.words.append(word)
        self.undoable.pop(person.id, None)

    async def remember(self, person: Any) -> None:
        word = Word(self.new(), person, "used")
        await self.say(person, f"!memory remember {word.item}")
        self.words.append(word)
        self.undoable.pop(person.id, None)

    async def forget(self, person: Any) -> None:
        word = self.random.choice(self.of(person, "used"))
        await self.command(person, f"forget {word.item}")
        word.state = "gone"
        self.undoable[person.id] = word

    async def undo(self, person: Any) -> None:
        await self.command(person, "history undo")
        word = self.undoable.pop(person.id)
        word.state, word.message = "used", None

    async def edit(self, person: Any) -> None:
        word, new = self.random.choice(self.of(person, "used")), Word(self.new(), person, "used")
        await self.command(person, f"edit {word.item} => {new.item}")
        word.state = "gone"
        self.words.append(new)
        self.undoable.pop(person.id, None)

    async def delete(self, person: Any) -> None:
        word = self.random.choice([one for one in self.of(person, "used") if one.message])
        await self.by(word).delete(word.message)
        word.state, word.message = "gone", None
        self.undoable.pop(person.id, None)

    async def edit_message(self, person: Any) -> None:
        word = self.random.choice([one for one in self.of(person, "used") if one.message])
        new = Word(self.new(), person, "used", word.message)
        await self.by(word).edit(word.message, f"I like {new.text}")
        word.state, word.message = "gone", None
        self.words.append(new)
        self.undoable.pop(person.id, None)

    @staticmethod
    def by(word: Word) -> Any:
        """Who acts on a word's message: a person, and where it is in a channel, as a member of its server."""
        return word.person.user if word.message.guild is None else word.person

    async def opt_out(self, person: Any) -> None:
        await self.say(person, "!memory optout")
        self._opted_out(person)

    def _opted_out(self, person: Any) -> None:
        self.out.add(person.id)
        for word in self.of(person, "used"):
            word.state, word.message = "paused", None

    async def opt_in(self, person: Any) -> None:
        await self.say(person, "!memory optin")
        self.out.discard(person.id)
        for word in self.of(person, "paused"):
            word.state = "used"

    async def erase(self, person: Any) -> None:
        await self.say(person, "!memory erase --yes")
        self._erased(person)

    def _erased(self, person: Any) -> None:
        self.undoable.pop(person.id, None)
        for word in self.of(person, "used", "paused", "gone", "said"):
            word.state, word.message = "nowhere", None

    async def restart(self, person: Any) -> None:
        await self.world.restart()

    async def killed(self, person: Any) -> None:
        """Another process begins to take something back, and is killed between two writes."""
        used = self.of(person, "used")
        what = self.random.choice(["opt out", "erase", *(["forget"] * 2 if used else [])])
        word = self.random.choice(used) if used else Word("nothing", person, "gone")
        at = self.random.randint(1, MOST_STEP)
        self.told.append(f"killed at write {at} of {what} {word.text}")
        world = self.world
        given = {"data_dir": world.data, "store": world._changes["store"]}
        session = f"discord:channel:{world.general.id}"
        await world.restart(
            meanwhile=partial(
                self._forge.lived, at, given, world._now(), what, str(person.id), session, word.text
            )
        )
        await world.settle()
        # Once it counts, all the rest has to follow; until then, nothing has happened.
        storage, user = world.app.storage, str(person.id)
        if what == "opt out" and storage.consent.opted_out(user):
            self._opted_out(person)
        elif what == "erase" and (at := storage.memory.erased_at(f"user-{user}")) >= world._now() - 1000:
            self._erased(person)
        elif what == "forget" and word.item not in await self.remembered(person):
            word.state, word.message = "gone", None
            self.undoable.pop(person.id, None)

    # ------------------------------------------------------------------ the oracle

    async def look(self) -> None:
        """Everything that was taken back is gone; everything else is there."""
        where = "\n".join(self.told)
        if self.relay is not None:
            await sent(self.world)
        found = {word.text: self.places_of(word) for word in self.words if word.state != "used"}
        assert {text: places for text, places in found.items() if places} == {}, where
        before = len(self.world.server.requests)
        await self.world.env.advance_time(5)
        speaker = self.random.choice([self.world.ann, self.world.bob])
        await self.say(speaker, f"How are you at step {len(self.told)}?")  # no answer that is cached
        asked = [json.dumps(one.body) for one in self.world.server.requests[before:]]
        assert asked, f"{where}\n{self.told[-1]}"
        absent = [word.text for word in self.words if word.state not in ("used", "said")]
        assert [text for text in absent if any(text in one for one in asked)] == [], where
        for person in (self.world.ann, self.world.bob):
            there = {one for one in await self.remembered(person) if one.startswith("User likes ")}
            expected = {word.item for word in self.of(person, "used", "paused")}
            assert there == expected, where

    async def remembered(self, person: Any) -> list[str]:
        """What the bot remembers about a person, in whichever store."""
        view = await self.world.app.storage.memory.view(f"user-{person.id}")
        return [item.text for item in view.active()]

    def places_of(self, word: Word) -> list[str]:
        """Where a word still is, besides its person's own history while they have one."""
        names = texts_with(self.world.app.storage.memory.disk, word.text)
        for path in sorted(self.world.data.rglob("*")):
            name = str(path.relative_to(self.world.data))
            if path.is_file() and not name.endswith(("memory.sqlite", "-wal")):
                names += [name] if word.text.encode() in path.read_bytes() else []
        if word.text in self._log.text:
            names.append("the log")
        names += [name for name, text in self.mirrored() if word.text in text]
        history = (*HISTORY, LEDGER)
        unused = (*history, "profiles/", PERSON, PREFERENCES)  # as they were when their person opted out
        own = {"gone": history, "paused": unused}.get(word.state, ())
        return [name for name in names if not any(one in name for one in own)]

    def mirrored(self) -> Iterator[tuple[str, str]]:
        """The address and the text of everything that a relay holds, or that is in the outbox."""
        if self.relay is None:
            return
        with closing(sqlite3.connect(self.world.data / "memory" / "outbox" / "outbox.sqlite")) as outbox:
            rows = outbox.execute("SELECT event FROM events UNION ALL SELECT event FROM quarantine")
            waiting = [json.loads(event) for (event,) in rows]
        for place, events in (("relay", self.relay.events), ("outbox", waiting)):
            for event in events:
                if event["id"] not in self._read:
                    self._read[event["id"]] = _text_of(event)
                yield f"{place}: {event['kind']} {tag(event, 'd')}", self._read[event["id"]]


def _text_of(event: dict[str, Any]) -> str:
    """What an event says to whoever has the bot's keys."""
    if not event["content"] or event["kind"] == 5:
        return str(event["content"])
    if event["kind"] == 30078:
        key, own = SecretKey.parse(BOT.secret_key().to_hex()), PublicKey.parse(BOT.public_key().to_hex())
        return nip44_decrypt(key, own, event["content"])
    return SecretBox(bytes.fromhex(BOX_KEY)).decrypt(base64.b64decode(event["content"])).decode()


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge(CHILD) as forged:
        yield forged


@pytest.mark.parametrize(
    ("seed", "steps", "store", "mirrors"),
    [
        (1, 12, "files", False),
        (2, 12, "files", True),
        *(pytest.param(seed, 40, "files", seed % 2 == 0, marks=pytest.mark.long) for seed in range(3, 11)),
        *(pytest.param(seed, 40, "sqlite", seed % 2 == 0, marks=pytest.mark.long) for seed in range(11, 15)),
    ],
)
async def test_no_word_that_was_taken_back_is_anywhere_and_every_other_one_is_remembered(
    start: Start,
    forge: Forge,
    caplog: pytest.LogCaptureFixture,
    seed: int,
    steps: int,
    store: str,
    mirrors: bool,
) -> None:
    async with LyingRelay() if mirrors else nullcontext() as relay:
        published = {**mirrored(relay), "nostr_box_key": SecretStr(f"hex:{BOX_KEY}")} if relay else {}
        async with start(**{**FULL, "store": store, **published}) as world:
            history = History(world, seed, forge, caplog, relay)
            for _ in range(steps):
                await history.step()
            assert audited(world, store) == []
    shutil.rmtree(world.data)
