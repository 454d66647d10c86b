"""Settings that change while the bot runs: in its file, and signed by the owner."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from tests.contract.world import World
from tests.servers.nostr_relay import LyingRelay

OWNER_SECRET, OWNER = "22" * 32, "466d7fcae563e5cb09a0d1870bb580344804617879a14949cf22285f1bae3f27"
BOT_SECRET = "11" * 32


def here(world: World) -> str:
    """The scope of #general."""
    return f"group:{world.general.id}"


def edit(world: World, overrides: Mapping[str, Any]) -> None:
    """Somebody edits `config.json` by hand."""
    path = world.data / "memory" / "config.json"
    path.write_text(json.dumps(overrides, indent=2), encoding="utf-8")


def written(world: World) -> dict[str, Any]:
    """What `config.json` holds."""
    path = world.data / "memory" / "config.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def owned(relay: LyingRelay) -> dict[str, Any]:
    """Settings of a bot with a relay, whose owner signs."""
    key = SecretStr(BOT_SECRET)
    return {"nostr_relays": (relay.url,), "nostr_key": key, "nostr_flush_s": 0.0, "owner_pubkey": OWNER}


async def signs(world: World, relay: LyingRelay, scope: str, *fields: str) -> None:
    """The owner signs settings with `discoclaw config set`; returns when the bot has them."""
    ahead = time.time() - world.env.now().timestamp()
    if ahead > -60:  # the terminal signs by the clock of the machine, and the bot refuses what is to come
        await world.env.advance_time(ahead + 120)
    path = world.data / "memory" / "signed.json"
    before = path.read_bytes() if path.exists() else b""
    keys = {"NOSTR_RELAYS": relay.url, "NOSTR_SECRET_KEY": BOT_SECRET}
    keys |= {"NOSTR_OWNER": OWNER, "NOSTR_OWNER_SECRET_KEY": OWNER_SECRET}
    done = await asyncio.to_thread(world.cli, "config", "set", scope, *fields, **keys)
    assert done.exit_code == 0, done.output
    async with asyncio.timeout(20):
        while not path.exists() or path.read_bytes() == before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nobody tells when the bot has it
