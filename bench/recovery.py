"""A lost disk comes back: 2,000 people with 10 commits each, from the embedded relay.

Ours is everything that recovery does: asking the relay, checking and decrypting each event, verifying hashes,
writing ledgers. The baseline is the least that anybody must do with the same events: nostr-sdk's own parse,
verify and decrypt, in one loop, with the JSON at hand.
"""

import random
import time
from pathlib import Path

import nostr_sdk
from pydantic import SecretStr

from bench.dead_relay import KEY
from bench.figure import Figure, without_garbage
from bench.world import STATED, fresh_folder, sentence, settings_in
from discoclaw.app import now_ms
from discoclaw.core.draft import Draft
from discoclaw.core.event import encode_line
from discoclaw.core.view import EMPTY
from discoclaw.memory.subjects.store import Memory
from discoclaw.mirroring import find_or_make_keys, nostr_config
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.config import NostrConfig
from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.relays.protocol import Filter

PEOPLE, COMMITS = 2_000, 10
LEAST = 0.6
_DAY_MS = 86_400_000


async def measure() -> list[Figure]:
    """Events a second; both over all events that the relay has."""
    with fresh_folder() as folder:
        _populate(folder / "data" / "memory" / "ledger")
        settings = settings_in(folder, nostr_relays=("embedded",), nostr_key=SecretStr(KEY))
        wish = nostr_config(settings, find_or_make_keys(settings))
        before = _ledgers(folder)
        async with _Opened(folder, wish) as door:
            await door.start()
            await door.flush()
            events = (await door.relays[0].fetch([Filter(authors=(wish.keys.public,))])).events
        (folder / "data" / "memory").rename(folder / "lost")
        async with _Opened(folder, wish) as door:
            with without_garbage():
                await door.relays[0].ready()
                began = time.perf_counter()
                found = await door.recover()
                ours = len(events) / (time.perf_counter() - began)
        assert (found.records, _ledgers(folder)) == (PEOPLE * COMMITS, before)
    bare = _bare(events)
    name = f"recovery of {PEOPLE:,} people with {COMMITS} commits each"
    beside = "nostr-sdk: parse, verify, decrypt"
    return [Figure(name, ours, bare, "events/s", beside, f">= {LEAST:g}x", ours >= LEAST * bare)]


class _Opened:
    """A memory and the door to its mirror."""

    def __init__(self, folder: Path, wish: NostrConfig) -> None:
        self._memory = Memory(folder / "data" / "memory", clock=now_ms)
        self._door = NostrAdapter(wish, self._memory, clock=now_ms)

    async def __aenter__(self) -> NostrAdapter:
        self._memory.open()
        await self._door.open()
        return self._door

    async def __aexit__(self, *_: object) -> None:
        await self._door.close()
        self._memory.close()


def _populate(ledgers: Path) -> None:
    """Everybody's ledger: the same words for all, an own one each."""
    ledgers.mkdir(parents=True)
    dice = random.Random(7)
    now = now_ms() - 30 * _DAY_MS
    for number in range(PEOPLE):
        view, lines = EMPTY, []
        for _ in range(COMMITS):
            now += 1_000
            draft = Draft(view, now_ms=now)
            draft.upsert("fact", sentence(dice), STATED)
            commit = draft.commit("learned from talk", by="facts")
            assert commit is not None
            view = view.after(commit)
            lines.append(encode_line(commit))
        (ledgers / f"user-{10**17 + number}.jsonl").write_bytes(b"".join(lines))


def _ledgers(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "data" / "memory" / "ledger").iterdir()}


def _bare(events: list[Event]) -> float:
    """Events a second of nostr-sdk alone."""
    keys, texts = nostr_sdk.Keys.parse(KEY), [event.encode() for event in events]
    box = SecretBox.of(Keys.parse(KEY))
    with without_garbage():
        began = time.perf_counter()
        for text in texts:
            event = nostr_sdk.Event.from_json(text)
            assert event.verify()
            if event.kind().as_u16() == 30_078:
                keys.nip44_decrypt(event.author(), event.content())
            else:
                box.open(event.content())
        return len(texts) / (time.perf_counter() - began)
