"""A data folder of the program of November 2026 opens in this one, which says the same about it and goes on.

`tests/earlier` has one for each kind of store, and what the program that wrote it said about it.
"""

import asyncio
import gzip
import json
import re
import tarfile
from pathlib import PurePath
from typing import Any

import pytest
from nostr_sdk import Keys

from tests.contract.cards import parts
from tests.contract.commands import card, typed
from tests.contract.published import PERSON, arrives, held
from tests.contract.test_erasing import traces
from tests.contract.world import Start
from tests.earlier import story
from tests.earlier.write import HERE, dumped, opened
from tests.servers.nostr_relay import LyingRelay

FORGOTTEN = "What I forgot is still in your history; `!memory remember <text>` brings it back."
REWORDED = (
    (r", persona `(\w+)`\)(?=[\s\S]*\((\d+) forgotten, still)", r", persona \1, \2 forgotten)"),
    (r"\(\d+ forgotten, still in your history;.*\)", FORGOTTEN),
    (r"^\*\*(Summary of this conversation)\*\*: none yet", r"**\1**\nnone yet"),
    (r"^\*\*(Waiting for your yes)\*\* \(1\)", r"**\1** (1 proposal)"),
    (r"^Nothing waits for your yes\.", r"**Waiting for your yes**\n\g<0>"),
    (r"^\(and (\d+ earlier changes?)\)", r"and \1"),
)
"""What this program says in other words, as patterns. What people said never changes."""
FOUND_TOO = "User sails far"
"""What the second half of a question finds today: "Do I like Matcha, and who sails?"."""
TITLES = {"**Your memory in numbers**", "**What changed in your memory** (2 changes)"}
"""Titles that its lists of today have besides."""


def agrees(about: str, told: Any, now: Any) -> bool:
    """Whether an answer says what an earlier program said. Lists are in another order today: newest first.

    A program of today may know more settings.
    """
    if isinstance(told, dict) and isinstance(now, dict):
        return all(name in now and agrees(about, told[name], now[name]) for name in told)
    if not isinstance(told, str) or not isinstance(now, str):
        return bool(told == now)
    for old, new in REWORDED:
        told = re.sub(old, new, told, flags=re.M)
    then, today = told.splitlines(), [line for line in now.splitlines() if line not in TITLES]
    if "prompt in" in about:
        then, today = ([re.sub(r" \[i\d+\]$", "", line) for line in one] for one in (then, today))
        today = [line for line in today if FOUND_TOO not in line]
    # The log of Ann is so long that its last message begins elsewhere today.
    return set(then) <= set(today) if about == "ann: log" else sorted(then) == sorted(today)


@pytest.mark.parametrize("kind", ["files", "sqlite", pytest.param("postgres", marks=pytest.mark.long)])
async def test_of_each_store_says_what_it_said_and_goes_on(
    start: Start, kind: str, request: pytest.FixtureRequest
) -> None:
    store = request.getfixturevalue("database") if kind == "postgres" else kind
    told = json.loads(gzip.decompress((HERE / f"{kind}.json.gz").read_bytes()))
    async with LyingRelay() as relay, start() as world:
        now = await opened(world, HERE / f"{kind}.tar.gz", store, told.pop("messages"))
        wrong = {about for about, said in told.items() if not agrees(about, said, now[about])}
        assert {about: now[about] for about in wrong} == {about: told[about] for about in wrong}
        assert "You are Mög" in world.turns()[-1].system
        assert "I like Matcha" in world.turns("Matcha")[0].prompt
        assert any(story.LATE in one for one in world.shown(world.bob_dm))

        await world.restart(**story.settings(world, store, nostr_relays=(relay.url,)))
        key = story.KEY if kind == "postgres" else (world.data / "nostr" / "key").read_text().strip()
        await arrives(lambda: len(held(relay, PERSON)) == 2)
        assert {one["pubkey"] for one in relay.events} == {Keys.parse(key).public_key().to_hex()}
        for words in ("remember I have a goat 🐐", "forget I have a goat 🐐", "undo"):
            await typed(world, words)
        assert "changed on both sides" in await typed(world, "merge work")
        assert "I like Matcha" in await typed(world, "view --at HEAD~3")
        await typed(world, "settle")
        for question in world.general.history()[-2:]:
            await world.ann.click(question, label="Use the new")
            await world.settle()
        shown = await typed(world, "show", privately=True)
        assert "goat" in shown and "You use spaces 空格." in shown and "I like Sencha" in shown
        assert story.TABS not in shown and "Matcha" not in shown and "To settle" not in shown
        question = await card(world, "memory pending", world.bob)
        menu = next(part for part in parts(question) if part.get("placeholder") == "Yes to …")
        await world.bob.select(question, [menu["options"][0]["value"]], custom_id=menu["custom_id"])
        assert "cocoa" in await typed(world, "show", world.bob)
        assert "intact" in await typed(world, "verify", world.bob)

        assert "erased" in await typed(world, "erase --yes")
        await world.env.advance_time(1)
        await world.settle()
        assert traces(world.data, story.CANARY, str(world.ann.id)) == []
        if kind == "postgres":
            left = dumped(request.getfixturevalue("postgres"), store)
            mine = (story.CANARY, str(world.ann.id))
            assert not any(form in left for one in mine for form in (one, one.encode().hex()))
        await world.stop()
        out = world.folder / "everything.tar.gz"
        for words in ("memory verify", "audit privacy", f"memory export --all --output {out}"):
            done = await asyncio.to_thread(world.cli, *words.split(), DISCOCLAW_STORE=store)
            assert done.exit_code == 0, done.output
        with tarfile.open(out) as packed:
            kept = {PurePath(one.name).name: one for one in packed}
            files = [packed.extractfile(kept[name]) for name in ("clears.jsonl", "tombstones.jsonl")]
            lines = [len(file.readlines()) for file in files if file is not None]
        assert lines == [3 if kind == "files" else 2, 3]  # all clears and one tombstone are old
