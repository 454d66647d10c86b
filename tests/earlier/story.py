"""A story that leaves something in every place where the program stores anything, and what it says about it.

The simulated Discord has the same ids and times in each run: the people come a day after it began, and the
program is asked at noon. Another program that opens the data is asked the same, and has to answer the same.
"""

import asyncio
import json
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

from pydantic import SecretStr

from tests.contract.cards import said
from tests.contract.commands import card, typed
from tests.contract.meanwhile import put, until
from tests.contract.world import World

HOUR_S, DAY_S = 3_600, 86_400
CANARY = "Kanarie-Ü🐦-金丝雀"
"""What Ann alone says: no byte of it is left when she is erased."""
TABS, SPACES = "I use tabs 😀", "User uses spaces 空格."
SUMMARY = {"summary": "They talked: Grüße.", "themes": ["抹茶"], "decisions": ["We drink Grüntee."]}
SOUL = {"identity": "You are Mög, a dry old cat 🐈.", "user": "Ann builds boats.", "philosophy": "No lies."}
LATE = "This answer came too late 🕰."
KEY = "11" * 32
"""The bot's, where processes share a store. Else the key is a file."""
AT_WORK = (
    "remember I like tea; edit I like tea => I like Grüntee; remember I live in Oslo; private I live in Oslo"
    f"; remember I see a doctor about {CANARY}; remember I hate rain; forget I hate rain"
    f"; remember I have a boat; undo; remember {TABS}; timezone tokyo; "
    "create-branch work what I do at the Büro; checkout work; remember I use vim; remember I write Rust 🦀"
)
AT_HOME = (
    "edit I like Grüntee => I like Sencha; checkout main; cherry-pick {}; create-branch home; checkout home; "
    "remember I cook 🍲; checkout main; merge home; edit I like Grüntee => I like Matcha"
)


def settings(world: World, store: str, **more: Any) -> dict[str, Any]:
    """How the bot of the story is set up."""
    prices = world.folder / "prices.toml"
    prices.write_text('["claude-sonnet-5-5"]\ninput = 100\noutput = 1\n')
    own = {"owners": frozenset({str(world.ann.id)}), "auto_save": "all", "timezone": "Europe/Vienna"}
    own |= {"prices": prices, "budget": "100/day, person 50/day", "heartbeat_minutes": 0}
    own |= {"nostr_flush_s": 0.0, "nostr_key": SecretStr(KEY) if "://" in store else None}
    return {"store": store, **own, **more}


async def people_come(world: World) -> None:
    """Give a new world the people and the channels of the story, with the same ids each time."""
    await world.env.advance_time(DAY_S - world._now() / 1000 % DAY_S)
    world.general = world.guild.create_text_channel("grüße", topic="Everything about 抹茶")
    world.dev = world.guild.create_text_channel("dev")
    for name in ("ann", "bob", "cem", "dan"):
        user = world.env.create_user(name, global_name=f"{name.title()} Ü")
        setattr(world, name, world.guild.add_member(user))
    world.ann_dm, world.bob_dm = world.ann.user.dm_channel, world.bob.user.dm_channel
    await world.settle()


async def lives(world: World, store: str) -> None:
    """The story. Ends with a bot that is stopped."""
    ann, bob, brain, general = world.ann, world.bob, world.brain, world.general
    brain.writes("summary", SUMMARY)
    brain.learns("User sails ⛵.", about="sail")
    brain.learns("User plays chess.", about="chess")
    brain.learns(f"Has a {CANARY}.", about=CANARY)
    shared = "://" in store  # then nothing is mirrored before a relay could be read; and nobody listens here
    await world.restart(nostr_relays=() if shared else ("ws://127.0.0.1:9",))
    await world.says(ann, general, "I sail")
    await world.says(bob, general, "I play chess too, 你好")
    await until(lambda: shared or world.files_with("snowclaw:memory:npub:"))
    await world.restart(nostr_relays=())  # what waits in the outbox stays small
    for words in ("I play chess", f"My {CANARY} sings", "Good morning"):
        await world.says(ann, general, words)
    for words in ("remember I owe money 💶", "remember I sing opera", "share I sing opera"):
        await typed(world, words, privately=True)
    for words in AT_WORK.split("; "):
        await typed(world, words)
    first = re.findall(r"`([0-9a-f]{8})`", await typed(world, "log --oneline work"))[1]
    for words in AT_HOME.format(first).split("; "):
        await typed(world, words)
    await world.env.advance_time(HOUR_S)
    brain.learns({"id": TABS, "kind": "fact", "text": SPACES, "tags": []}, about="spaces")
    await world.says(ann, general, "I use spaces")
    assert "Which is right?" in said(world.ann_dm.last_message)

    await bob.slash(general, "memory approve", state="on")
    brain.learns("User likes cocoa 🍫.", about="cocoa")
    await world.says(bob, general, "I like cocoa")
    brain.calls("memory_store", {"text": "User's cat is called Tom 🐈."}, "Done.", about="my cat")
    await world.says(ann, general, "please remember my cat")
    await world.says(world.cem, general, "!memory optout")
    await typed(world, "remember I am gone soon", world.dan)
    await typed(world, "erase --yes", world.dan)
    gone, changed = [await ann.send(world.dev, f"the zebra is {how}") for how in ("deleted", "old")]
    await ann.send(world.dev, "the zebra is 斑马 and stays")
    await world.settle()
    await ann.delete(gone)
    await ann.edit(changed, "the zebra is new")
    await world.says(bob, world.dev, "!memory reset rolling")
    await ann.user.slash("model", name="opus")
    brain.says("And who are you?", f"I know who I am now.\n<soul>{json.dumps(SOUL)}</soul>")
    await ann.user.slash("hatch start")
    for words in ("A dry old cat", "I am dry"):
        await world.says(ann, world.ann_dm, words)
    path = world.durable(ann)
    if path.exists():  # the store has files: one is edited by hand
        path.write_text(path.read_text("utf-8").replace("User sails", "User sails far"), "utf-8")
    await world.says(ann, general, "What do I do?")

    await world.env.advance_time(3 * HOUR_S)
    brain.says(LATE, about="late")
    world.env.inject_error("POST", f"/channels/{world.dev.id}/messages", status=503, times=None)
    put(world, bob, world.dev, "is it late?")
    await until(lambda: world.turns("is it late?"))
    await asyncio.sleep(1)
    await world.stop()


def discord_has(world: World) -> list[list[Any]]:
    """The messages in the channels of the story: ids of message, channel and author, time, and the words."""
    places = (world.general, world.dev, world.ann_dm, world.bob_dm)
    found = [one for place in places for one in place.history() if said(one)]
    return [[one.id, one.channel.id, one.author.id, one.created_at.isoformat(), said(one)] for one in found]


def put_back(world: World, messages: list[list[Any]]) -> None:
    """Let another Discord have the same messages, as plain text."""
    backend = world.env.backend
    for id_, channel_id, author_id, time, words in messages:
        made = backend.prepare_message(channel_id, author_id, words[:2000])
        backend.commit_message(replace(made, id=id_, timestamp=time), broadcast=False)


def told_by_commands(world: World, store: str) -> dict[str, Any]:
    """What the command line says about a bot that is stopped, by command."""
    ann, bob, general = (str(one.id) for one in (world.ann, world.bob, world.general))
    commands = [
        *(f"memory {verb} {who} --json" for verb in ("show", "branches", "get") for who in (ann, bob)),
        *(f"memory view {ann} {point} --json" for point in ("--branch work", "--at HEAD~9")),
        *(f"memory log {subject} --limit 5 --json" for subject in (ann, bob, f"group-{general}", "bot")),
        *(f"memory {words} --json" for words in ("list", "verify", f"get group:{general}")),
        *(f"memory {words} --json" for words in (f"diff {ann} HEAD~7", f"why {ann} d7b80ee8")),
        f"config get user:{ann} --json",
        "audit privacy --json",
    ]
    given = {"DISCOCLAW_STORE": store, "DISCOCLAW_TIMEZONE": "Europe/Vienna"}
    found = {}
    for command in commands:
        done = world.cli(*command.split(), **given)
        found[command] = json.loads(done.stdout or json.dumps(done.output))
    for who in (ann, bob):
        out = world.folder / f"exported-{who}"
        done = world.cli("memory", "export", who, "--format", "objects", "--output", str(out), **given)
        assert done.exit_code == 0, done.output
        files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.json")}
        found[f"export {who}"] = {name: sha256(content).hexdigest()[:8] for name, content in files.items()}
    return found


async def told_in_discord(world: World) -> dict[str, Any]:
    """What a bot that runs says to people and to its model."""
    found: dict[str, Any] = {"cem: show": await typed(world, "show", world.cem)}
    for person in (world.ann, world.bob):
        for words in ("show", "log", "stats", "pending", "settle", "persona list", "verify", "timezone"):
            found[f"{person.name}: {words}"] = await typed(world, words, person, privately=True)
        found[f"{person.name}: show in a channel"] = await typed(world, "show", person)
        for command, options in (("usage", {}), ("search", {"query": "zebra"}), ("hatch show", {})):
            found[f"{person.name}: /{command}"] = said(await card(world, command, person, **options))
        for place in (world.general, person.user.dm_channel):
            await world.says(person, place, "Do I like Matcha, and who sails?")
            found[f"{person.name}: prompt in {place.id}"] = world.prompt
    return found
