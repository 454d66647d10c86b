"""A bot's whole memory for the tests of recovery: lived on real files, published by the real mirror, lost."""

import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.core.profile import Group, Profile, key_of
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.clears import Clears
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.load import Imported
from discoclaw.memory.exchange.take import records_for
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.mirror import Mirror, Pace
from discoclaw.nostr.outbox import Outbox
from discoclaw.nostr.recovery import OnProgress, recover
from discoclaw.nostr.relays.paging import FetchResult, OnEvents
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.report import RecoveryReport
from discoclaw.nostr.schemas import Codec, Names
from discoclaw.nostr.units import Views
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING, TOOLS
from tests.memory.kit import NOW, Clock
from tests.memory.replicas import Replica

KEYS = Keys.parse("1".rjust(64, "0"))
CODEC, NAMES = Codec(KEYS, SecretBox.of(KEYS)), Names(KEYS)
ANN, BOB, CLEO, GROUP = "user-123", "user-456", "user-789", "group-77"
CHANNEL, DM = "discord:channel:77", "discord:dm:123"
STATED = Origin("stated")


class BotMemory:
    """A bot's memory below `folder`, which can be lost; the outbox is part of it, the relays are not."""

    def __init__(self, folder: Path, clock: Clock | None = None, *, store: Store = "files") -> None:
        self.root = folder / "memory"
        self.clock = clock or Clock()
        self._store = store
        self.begin()

    def begin(self) -> None:
        """As a process that has just started, which nothing has opened yet."""
        self.memory = Memory(disks(self._store, self.root), clock=self.clock)
        self.outbox = Outbox(self.root / "outbox" / "outbox.sqlite", clock=self.clock)

    def __enter__(self) -> "BotMemory":
        self.memory.open()
        self.outbox.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.outbox.close()
        self.memory.close()

    def lose(self) -> None:
        """The program ends, and all of the disk is gone."""
        self.__exit__()
        shutil.rmtree(self.root.parent)
        self.begin()

    def files(self) -> dict[str, bytes]:
        """Everything that is to come back, byte for byte, by its name below `data/memory`."""
        disk, found = self.memory.disk, {}
        for folder in (LEDGERS, PROFILES, GROUPS, ROLLING, TOOLS, CURSORS):
            documents = disk.documents(folder)
            for name in documents.names():
                if name.startswith("."):
                    continue  # what a killed writer left
                if folder != CURSORS or name.startswith(("people-", "summary-")):
                    is_log = name.endswith(".jsonl")
                    where = f"{folder}/{name}"
                    found[where] = disk.log(where).read() if is_log else documents.read(name)
        if cleared := disk.log(clears.FILE).read():
            found[clears.FILE] = cleared
        if disk.durable is not None:
            found |= {f"durable/{path.name}": path.read_bytes() for path in disk.durable.glob("*.json")}
        return found

    # ------------------------------------------------------------------ living

    async def change(self, subject: str, *texts: str, kind: str = "fact", **given: Any) -> None:
        """One commit that adds these texts; `given` is what else is said of them."""

        def write(draft: Draft) -> None:
            for text in texts:
                draft.upsert(kind, text, STATED, **given)

        self.clock.forward(minutes=1)
        await self.memory.change(subject, "remembered", write, by="command")

    async def live(self) -> None:
        """Everything that a memory can have, but for what is confidential."""
        await self._people()
        await self._places()

    async def _people(self) -> None:
        memory = self.memory
        since = self.clock() // 1000
        await self.change(ANN, "User prefers tabs over spaces.", kind="preference")
        await self.change(ANN, "User has the flu.", marked="private")
        await self.change(ANN, "Ænn lives in Łódź; “quotes” & \u2028 line breaks 🐍")
        await verbs.create_branch(memory, ANN, "coding", "Terse; talks about code.", by="command")
        await verbs.switch(memory, ANN, "coding", by="command")
        await self.change(ANN, "User writes Rust.", kind="tool")
        await verbs.switch(memory, ANN, "main", by="command")
        await self.change(ANN, "User has a cat.")
        await verbs.merge(memory, ANN, "coding", STATED, by="command")
        await verbs.undo(memory, ANN, STATED, by="command")
        # A commit of 50 kB, which fits into no event.
        await self.change(BOB, *(f"Fact number {number}: {'long ' * 60}" for number in range(45)))
        await self._import(CLEO)
        await self.change("bot", "I like puns.")
        for subject, name in ((ANN, "Ann"), (BOB, "Bøb 🐍"), (CLEO, "# Cleo")):
            profile = Profile(((name, since),), since).with_name(f"{name} at work", since + 5)
            shown = profile.with_view(await memory.view(subject))
            name = f"{subject.removeprefix('user-')}.json"
            memory.disk.documents(PROFILES).write(name, render_json(shown.to_json()))

    async def _import(self, subject: str) -> None:
        """Records of another replica, which stand in the ledger in another order than that of their times."""
        await self.change(subject, "likes tea")
        other = Replica(NOW - 86_400_000)
        other.remember("came from elsewhere")
        other.branch("terse", switch=False)

        def take(history, now_ms, max_items):  # type: ignore[no-untyped-def]
            imported = Imported("a replica", {None: Records(other.history.records)})
            return records_for(imported, history, now_ms=now_ms, max_items=max_items, origin=STATED)

        await self.memory.act(subject, take)
        await self.change(subject, "likes coffee")

    async def _places(self) -> None:
        memory, clock = self.memory, self.clock
        disk = memory.disk
        for part, text in (("theme", "cats"), ("decision", "We meet on Mondays.")):
            facets = Facets(key=key_of(part, text), category="core")  # type: ignore[arg-type]
            await self.change(GROUP, text, facets=facets)
        members = (("123", "Ann"), ("456", "Bøb 🐍"))
        group = Group("All about cats", members, other={"mood": "good"}).with_view(await memory.view(GROUP))
        disk.documents(GROUPS).write("77.json", render_json(group.to_json()))
        rolling = RollingMemory(
            disk.documents(ROLLING),
            cursors=Cursors(disk.documents(CURSORS)),
            clock=clock,
            clears=Clears(disk, clock=clock),
        )
        cursors = Cursors(disk.documents(CURSORS))
        await rolling.clear(CHANNEL, by="123")
        clock.forward(minutes=1)
        for session in (CHANNEL, DM):
            if session != DM:
                await cursors.put(f"people-{session}", {"session": session, "people": ["123", "456"]})
            generation = await rolling.generation(session)
            await rolling.put(session, f"They talked. Ünd so weiter, in {session}.", generation=generation)
            await cursors.put(f"summary-{session}", {"upTo": "1357000000000000000"})
        tools = ToolLog(disk, clock=clock)
        for number in range(3):
            clock.forward(minutes=1)
            tools.note(
                ANN,
                tool="memory_search",
                ok=number > 0,
                content=f"found {number} 🐍",
                channel="77" if number else None,
                session=CHANNEL if number else DM,
                private=number == 0,
                said_at=clock(),
            )
            await tools.settle()
        await tools.close()

    async def show(self, user_id: str, name: str) -> None:
        """Somebody's profile has what their memory says now, and the name they have now."""
        documents = self.memory.disk.documents(PROFILES)
        profile = Profile.from_json(json.loads(documents.read(f"{user_id}.json")))
        view = await self.memory.view(f"user-{user_id}")
        after = profile.with_name(name, self.clock() // 1000).with_view(view)
        documents.write(f"{user_id}.json", render_json(after.to_json()))

    async def summarise(self, session: str, text: str) -> None:
        """A conversation has a new summary."""
        rolling = RollingMemory(
            self.memory.disk.documents(ROLLING),
            cursors=Cursors(self.memory.disk.documents(CURSORS)),
            clock=self.clock,
        )
        await rolling.put(session, text, generation=await rolling.generation(session))

    async def clear(self, session: str) -> None:
        """A conversation's summary is cleared, and so is how far it had come, which no relay knows then."""
        disk = self.memory.disk
        rolling = RollingMemory(
            disk.documents(ROLLING),
            cursors=Cursors(disk.documents(CURSORS)),
            clock=self.clock,
            clears=Clears(disk, clock=self.clock),
        )
        await rolling.clear(session, by="123")
        names = [session_name(f"{prefix}-{session}") for prefix in ("summary", "people")]
        disk.documents(CURSORS).remove(names)

    # ------------------------------------------------------------------ publishing and coming back

    @contextlib.asynccontextmanager
    async def mirrored(self) -> AsyncIterator[Mirror]:
        """The real mirror; everything is in the outbox."""
        views = Views(self.memory.disk, NAMES)
        mirror = Mirror(
            self.memory, views, CODEC, self.outbox, clock=self.clock, pace=Pace(flush_s=0, gap_s=0)
        )
        self.memory.join(mirror)
        try:
            await mirror.push()
            yield mirror
        finally:
            await mirror.close()

    async def published(self) -> list[Event]:
        """The newest version of everything, as it goes to a relay that has nothing yet."""
        async with self.mirrored():
            return self.outbox.due("ws://nowhere", self.clock() + 10**9, 10**6)

    async def recover(self, *relays: Any, progress: OnProgress | None = None) -> RecoveryReport:
        return await recover(
            relays, CODEC, NAMES, self.memory, self.outbox, clock=self.clock, progress=progress
        )


class StoredRelay:
    """A relay without a network: serves these events as they stand, and as often as they stand there."""

    def __init__(self, *events: Event, url: str = "ws://stored", complete: bool = True) -> None:
        self.url = url
        self.events = list(events)
        self.complete = complete

    async def fetch(self, filters: Iterable[Filter], take: OnEvents | None = None) -> FetchResult:
        assert take is not None
        for start in range(0, len(self.events), 50):
            await take(self.events[start : start + 50])
        reason = "" if self.complete else "no end of its answer came within 2 s"
        return FetchResult(self.complete, reason, len(self.events))


DEAD = StoredRelay(url="ws://dead", complete=False)


def of_kind(events: Iterable[Event], kind: int) -> list[Event]:
    return [one for one in events if one.kind == kind]


def records_of(events: Iterable[Event], subject: str) -> list[Event]:
    """The events of a subject's ledger."""
    return [one for one in events if one.d.startswith(NAMES.ledger_prefix(subject))]
