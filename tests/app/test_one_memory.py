"""One memory behind five ways: Discord, the model's tools, the durable file, the terminal, and a relay."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from discoclaw.core.yours import yours
from tests.app.conftest import Start, World
from tests.app.of_model_tools import call
from tests.app.test_aman_schema import BOX_KEY, PREFERENCE, of_kind, seen
from tests.app.test_ledger_design import says
from tests.app.test_nostr import BOT, OWNER, mirrored
from tests.app.test_snowclaw_schema import NPUB, Owner, arrives, held, opened, sent, tag
from tests.cli.shell import Shell
from tests.servers.nostr_relay import LyingRelay
from tests.session.scene import ScriptedModel

TEA, TABS, VIM, MUSIC, TRAINS = FACTS = (
    "User prefers tea.",
    "User prefers tabs.",
    "User prefers vim.",
    "User prefers music.",
    "User prefers trains.",
)


def add_by_hand(path: Path, text: str) -> None:
    """Copy the first item of a durable file under another id, with another text."""
    stored = json.loads(path.read_bytes())
    stored["items"].append({**stored["items"][0], "id": "durable-00000001", "text": text})
    path.write_text(json.dumps(stored, indent=2), encoding="utf-8")


async def terminal(world: World, *words: str) -> str:
    code, printed, said = await asyncio.to_thread(Shell(world.folder).process, *words)
    assert (code, said) == (0, b"")
    return printed.decode()


class TestAFact:
    @pytest.mark.design(313)
    async def test_that_comes_by_one_way_is_seen_by_all_others(self, start: Start) -> None:
        model: Any = ScriptedModel()
        async with LyingRelay() as relay:
            settings = mirrored(relay, owner_pubkey=OWNER.public, nostr_box_key=SecretStr(f"hex:{BOX_KEY}"))
            async with start(model, extraction_enabled=False, heartbeat_minutes=0, **settings) as world:
                ann = str(world.ann.id)
                await says(world, f"remember {TEA}")
                triple = {"subject": "user", "predicate": "prefers", "object": "tabs.", "kind": "preference"}
                await call(world, model, ("memory_add", triple))
                add_by_hand(world.durable(world.ann), VIM)
                await world.ann.send(world.general, "hello")
                await sent(world)
                address = tag(held(relay, NPUB)[0], "d")
                await Owner(world, relay).signs(address, {"notes": [MUSIC]})
                await arrives(lambda: MUSIC in world.durable(world.ann).read_text())
                await world.end()
                await terminal(world, "set", ann, "--note", TRAINS)
                await world.restart()
                await world.ann.send(world.general, "hello")
                await sent(world)

                await says(world, "show")
                discord = world.answer(world.general)
                _, found = await call(
                    world, model, ("memory_search", {"query": "what user prefers", "limit": 20})
                )
                (record,) = [opened(event) for event in held(relay, NPUB) if event["pubkey"] == BOT.public]
                relayed = [*record["notes"], *record["preferences"].values()]
                preferences = seen(of_kind(relay, PREFERENCE)[0])["preference"]
                shown = await terminal(world, "show", ann)
                for text in FACTS:
                    assert yours(text) in discord
                    assert text in found
                    assert text in world.durable(world.ann).read_text()
                    assert text in shown
                    assert text in relayed
                assert preferences == TABS  # which is the only one of the kind "preference"
