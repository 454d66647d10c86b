"""Shared by the tests of the mirror: a real memory with its mirror and outbox, and a relay that stores."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people import tool_log
from discoclaw.memory.people.tool_log import Call
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.mirror import Mirror, Pace
from discoclaw.nostr.outbox import Outbox
from discoclaw.nostr.recovery import EventCollector
from discoclaw.nostr.schemas import DELETE, Codec, EventTemplate, Names
from discoclaw.nostr.units import Views
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING
from tests.memory.kit import NOW, Clock

KEYS = Keys.parse("2".rjust(64, "0"))
CODEC = Codec(KEYS, SecretBox.of(KEYS))
NAMES = Names(KEYS)
ANN_ID, BOB_ID = "910000000000000177", "820000000000000288"
ANN, BOB = f"user-{ANN_ID}", f"user-{BOB_ID}"
CHANNEL_ID = "730000000000000399"
GROUP = f"group-{CHANNEL_ID}"
PLACE = f"discord:channel:{CHANNEL_ID}"
DM = f"discord:dm:{ANN_ID}"
RELAY = "ws://relay.test"
SECOND = NOW // 1000
PROFILE = {
    "display_names": [["Änne", SECOND - 900], ["Ann B.", SECOND - 100]],
    "first_seen": SECOND - 900,
    "notes": ["User likes tea."],
    "preferences": {"editor": "User prefers vim."},
}


@dataclass
class MirrorSetup:
    """A memory and its mirror over one data folder; another one over the same folder is a restart."""

    root: Path
    clock: Clock
    memory: Memory
    rolling: RollingMemory
    outbox: Outbox
    views: Views
    mirror: Mirror

    # ------------------------------------------------------------------ files that others write

    def profile(self, user_id: str = ANN_ID, **fields: Any) -> None:
        self.memory.disk.documents(PROFILES).write(f"{user_id}.json", render_json({**PROFILE, **fields}))

    def group(self, **fields: Any) -> None:
        value = {
            "purpose": "where we plan the fête",
            "members": [[ANN_ID, "Ann B."], [BOB_ID, "Bob"]],
            "themes": ["cakes"],
            "decisions": [["We meet on Monday.", SECOND - 50]],
        }
        folder = self.memory.disk.documents(GROUPS)
        folder.write(f"{CHANNEL_ID}.json", render_json({**value, **fields}))

    def summary(self, text: str, at: int, key: str = PLACE, people: Iterable[str] = (ANN_ID,)) -> None:
        disk = self.memory.disk
        content = render_json({"summary": text, "updatedAt": at})
        disk.documents(ROLLING).write(session_name(key), content)
        seen = render_json({"upTo": "1468000000000000000", "count": 7})
        disk.documents(CURSORS).write(session_name(f"summary-{key}"), seen)
        if key == PLACE:
            said = render_json({"session": key, "people": list(people)})
            disk.documents(CURSORS).write(session_name(f"people-{key}"), said)

    def tool(self, number: int = 1, at: int = NOW, content: str = "sunny", **fields: Any) -> Call:
        given = {"tool": "weather", "ok": True, "channel": CHANNEL_ID, "session": PLACE, "private": False}
        call = Call(id=f"{number:016x}", at=at, content=content, **{**given, **fields})
        tool_log.CALLS.add(tool_log.log_of(self.memory.disk, ANN), [call])
        return call

    def clear(self, at: int, key: str = PLACE, by: str | None = ANN_ID) -> Clear:
        clear = Clear(f"{at:016x}", at, key, by)
        clears.CLEARS.add(self.memory.disk.log(clears.FILE), [clear])
        return clear

    # ------------------------------------------------------------------ what comes of it

    def known(self, unit: str) -> dict[tuple[int, str], Any]:
        return self.outbox.known(NAMES.keyed_hash(unit))

    def sent(self) -> list[Event]:
        """Everything a relay has not got yet, in the order in which it is sent; it has it then."""
        self.outbox.set_relays([RELAY])
        events: list[Event] = []
        while due := self.outbox.due(RELAY, self.clock.now, 1_000):
            self.outbox.mark_acked(RELAY, [event.id for event in due])
            events += due
        return events


@contextmanager
def mirror_setup(data: Path, clock: Clock | None = None, **options: Any) -> Iterator[MirrorSetup]:
    """A running mirror. Use it inside an event loop."""
    clock = clock or Clock()
    root = data / "memory"
    kept = disks(options.pop("store", "files"), root)
    cursors = Cursors(kept.used.documents(CURSORS))
    rolling = RollingMemory(kept.used.documents(ROLLING), cursors=cursors, clock=clock)
    memory = Memory(kept, clock=clock, cursors=cursors)
    outbox = options.pop("outbox", Outbox)(root / "outbox" / "outbox.sqlite", clock=clock)
    codec = options.pop("codec", CODEC)
    redactor: Redactor = options.pop("redactor", PLAIN)
    views = Views(
        memory.disk,
        NAMES,
        owners=options.pop("owners", ()),
        redactor=redactor,
        groups=options.pop("groups", None),
    )
    pace = {name: options.pop(name) for name in ("flush_s", "gap_s", "retry_s") if name in options}
    mirror = Mirror(memory, views, codec, outbox, clock=clock, pace=Pace(**{"gap_s": 0.0, **pace}), **options)
    memory.join(rolling, mirror)
    memory.open()
    outbox.open()
    try:
        yield MirrorSetup(root, clock, memory, rolling, outbox, views, mirror)
    finally:
        outbox.close()
        memory.close()


@dataclass
class Relay:
    """What a relay holds of what it was sent. One that `obeys` deletes what it is asked to."""

    obeys: bool = True

    def __post_init__(self) -> None:
        self._collector = EventCollector(KEYS.public)

    def take(self, events: Iterable[Event]) -> "Relay":
        self._collector.add(RELAY, events)
        return self

    def holds(self) -> dict[tuple[int, str], dict[str, Any]]:
        """What it serves, decrypted, by kind and `d`."""
        selection = self._collector.select()
        events = selection.current if self.obeys else (*selection.current, *selection.deleted)
        return {(event.kind, event.d): CODEC.decode(event) for event in events}

    def says(self) -> str:
        """Every word in what it serves."""
        return json.dumps(list(self.holds().values()), ensure_ascii=False)


def by_address(wanted: Iterable[EventTemplate]) -> dict[tuple[int, str], EventTemplate]:
    return {(one.kind, one.d): one for one in wanted}


def visible(event: Event) -> str:
    """All of an event that is not encrypted, as a relay sees it."""
    return json.dumps({**event.to_json(), "content": "", "sig": "", "id": "", "pubkey": ""})


def is_deletion(event: Event) -> bool:
    return event.kind == DELETE
