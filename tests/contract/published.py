"""A bot with a relay: what others read there with its keys, and what its owner signs with any Nostr client.

    async with LyingRelay() as relay, start(**mirrored(relay)) as world:
        await world.says(world.ann, world.general, "hello")
        await sent(world)
        (record,) = held(relay, PERSON)
        assert opened(record)["display_names"]

Keys, signatures and encryption are those of `nostr-sdk`, as other programs have them.
"""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import aiohttp
from nostr_sdk import EventBuilder, Keys, Kind, PublicKey, SecretKey, Tag, Timestamp, nip44_decrypt

from tests.contract.world import World
from tests.servers.nostr_relay import LyingRelay

BOT, OWNER = Keys.generate(), Keys.generate()
PERSON, GROUP, CONFIG = "snowclaw:memory:npub:", "snowclaw:memory:group:", "snowclaw:config:"
"""How the addresses of records and of the owner's settings begin."""
OWNED = {"owner_pubkey": OWNER.public_key().to_hex()}
Event = dict[str, Any]


def mirrored(relay: LyingRelay, **more: Any) -> dict[str, Any]:
    """The settings with which all that is remembered goes to a relay at once."""
    key = BOT.secret_key().to_bech32()
    return {"nostr_relays": (relay.url,), "nostr_key": key, "nostr_flush_s": 0.0, **more}


def signed(kind: int, content: str, tags: list[list[str]], at: int, by: Keys = BOT) -> Event:
    """An event as JSON; `at` is in seconds."""
    builder = EventBuilder(Kind(kind), content).tags([Tag.parse(one) for one in tags])
    done = builder.custom_created_at(Timestamp.from_secs(at)).finalize(by)
    made: Event = json.loads(done.as_json())
    return made


def tag(event: Event, name: str) -> str:
    """The value of a tag, or ""."""
    return str({one[0]: one[1] for one in event["tags"]}.get(name, ""))


def held(relay: LyingRelay, prefix: str = "", kind: int = 0) -> list[Event]:
    """The events that a relay holds at addresses with this beginning, or of this kind."""
    found = [one for one in relay.events if not kind or one["kind"] == kind]
    return [one for one in found if tag(one, "d").startswith(prefix)]


def opened(event: Event) -> dict[str, Any]:
    """The record in an event, decrypted with the bot's key alone; our own fields begin with "x_"."""
    key, own = SecretKey.parse(BOT.secret_key().to_hex()), PublicKey.parse(BOT.public_key().to_hex())
    record = json.loads(nip44_decrypt(key, own, event["content"]))
    return {name: value for name, value in record.items() if not name.startswith("x_")}


async def sent(world: World) -> None:
    """Wait until the relay has all that is to go there."""
    await world.settle()
    path = world.data / "memory" / "outbox" / "outbox.sqlite"

    def waiting() -> int:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM deliveries WHERE state = 0").fetchone()[0])

    await arrives(lambda: not waiting())


async def arrives(condition: Callable[[], object]) -> None:
    """Wait until something that was published has come round."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


async def recovered(world: World, *, signing: Callable[[], None] = lambda: None, **settings: Any) -> None:
    """The disk is lost, and the bot starts again from the relay. `signing` happens in between."""

    def lose() -> None:
        shutil.rmtree(world.data)
        signing()

    await world.restart(meanwhile=lose, nostr_mode="canonical", **settings)


class Owner:
    """What somebody publishes with a client of their own; each event is a second newer."""

    def __init__(self, world: World, relay: LyingRelay) -> None:
        self.relay = relay
        self.at = int(world.env.now().timestamp())

    def event(self, d: str, content: object, by: Keys = OWNER) -> Event:
        """The next event at an address."""
        self.at += 1
        return signed(30078, json.dumps(content), [["d", d]], self.at, by)

    async def signs(self, d: str, content: object, *, by: Keys = OWNER) -> Event:
        """Publish an event, so that who listens gets it."""
        event = self.event(d, content, by)
        async with aiohttp.ClientSession() as session, session.ws_connect(self.relay.url) as out:
            await out.send_json(["EVENT", event])
            while (await out.receive_json())[:2] != ["OK", event["id"]]:
                pass
        return event


def record_on_disk(world: World, folder: str, who: Any) -> Any:
    """The file about a person ("profiles") or a channel ("groups"); None where there is none."""
    path = world.data / "memory" / folder / f"{who.id}.json"
    return json.loads(path.read_bytes()) if path.exists() else None


async def renamed(world: World, person: Any, name: str) -> None:
    """Somebody gets another nickname on the server."""
    guild = world.env.bot.get_guild(world.guild.id)
    await (await guild.fetch_member(person.id)).edit(nick=name)
    await world.env.settle()
