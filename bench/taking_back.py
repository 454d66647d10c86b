"""Taking back: one memory of somebody with 10,000 messages in 50 summaries, until nothing uses it any more.

From the change to the moment at which every part has let go of it, on disk too: the archive, the summaries,
the channel's notes, cached answers, tool calls, vectors. The baseline is the change alone, as it would be
if nothing were derived from memory. The three messages it rests on are in one summary.
"""

import random
import time
from pathlib import Path

from bench.figure import Figure, median, without_garbage
from bench.world import FIRST_MESSAGE, STATED, fresh_folder, sentence, settings_in
from discoclaw.app import now_ms
from discoclaw.core.draft import Draft
from discoclaw.core.message import Entry
from discoclaw.search.archive import Put
from discoclaw.session.archiving import words_of
from discoclaw.storage import Storage, build

MESSAGES, SUMMARIES, ROUNDS = 10_000, 50, 10
MOST_MS = 50.0
PERSON = "200000000000000001"
SUBJECT = f"user-{PERSON}"


async def measure() -> list[Figure]:
    """One figure."""
    with fresh_folder() as folder:
        house = await _lived_in(folder)
        ours, bare = list[float](), list[float]()
        with without_garbage():
            for number in range(ROUNDS):
                bare.append(await _forgotten(house, f"nowhere{number}", said=False))
                ours.append(await _forgotten(house, f"canary{number}", said=True))
        await house.purger.close()
        house.close()
    met = median(ours) <= MOST_MS
    name = f"taking back one memory, {MESSAGES:,} messages, median"
    return [Figure(name, median(ours), median(bare), "ms", "the change alone", f"<= {MOST_MS:g} ms", met)]


async def _lived_in(folder: Path) -> Storage:
    house, dice = build(settings_in(folder), clock=now_ms), random.Random(7)
    house.open()
    house.load()
    archive = house.conversations.archive
    for start in range(0, MESSAGES, 500):
        rows = [_row(start + number, sentence(dice, 15)) for number in range(500)]
        archive.write([Put(row) for row in rows], words=words_of, consent=house.consent)
    for number in range(SUMMARIES):
        await _sum_up(house, number, " ".join(sentence(dice, 15) for _ in range(10)))
    return house


def _row(number: int, text: str) -> Entry:
    channel = str(number % SUMMARIES)
    key, at = f"discord:channel:{channel}", now_ms() - 1_000
    return Entry(str(FIRST_MESSAGE + number), key, channel, channel, "9", PERSON, "Ann", text, at)


async def _sum_up(house: Storage, number: int, text: str) -> None:
    key = f"discord:channel:{number}"
    generation = await house.conversations.rolling.generation(key)
    await house.conversations.rolling.put(key, text, generation=generation)
    await house.cursors.put(f"people-{key}", {"session": key, "people": [PERSON]})


async def _forgotten(house: Storage, word: str, *, said: bool) -> float:
    """Have something remembered, and said in three messages; the time (ms) that taking it back takes."""
    text = f"User keeps a {word}."

    def remember(draft: Draft) -> None:
        draft.upsert("fact", text, STATED)

    def forget(draft: Draft) -> None:
        for item in [item for item in draft.items.values() if item.text == text]:
            draft.deprecate(item, STATED)

    await house.memory.change(SUBJECT, "remember", remember)
    if said:
        dice = random.Random(word)
        rows = [_row(MESSAGES + dice.randrange(10**9), f"{sentence(dice)} {word}") for _ in range(3)]
        archive = house.conversations.archive
        archive.write([Put(row) for row in rows], words=words_of, consent=house.consent)
        await _sum_up(house, 7, f"{sentence(dice)}. They keep a {word}.")
    began = time.perf_counter()
    await house.memory.change(SUBJECT, "forget", forget)
    if said:
        await house.purger.settle()
    took = (time.perf_counter() - began) * 1e3
    await house.purger.settle()
    return took
