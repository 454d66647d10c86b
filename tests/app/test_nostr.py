"""The whole bot with a relay: what goes there, what comes back, and what the owner's key may do."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nacl.secret
import pytest
from pydantic import SecretStr

from discoclaw.app import build
from discoclaw.core.errors import SettingsError
from discoclaw.core.message import Place
from discoclaw.nostr.event import Keys
from discoclaw.nostr.relays.relay import Relay
from tests.app.conftest import Start, World, settings_for
from tests.app.models import Scripted
from tests.servers.nostr_lies import Lies
from tests.servers.nostr_relay import LyingRelay

BOT, OWNER = Keys.generate(), Keys.generate()
FORGED = Keys.generate()


def mirrored(relay: LyingRelay, **more: object) -> dict[str, object]:
    return {"nostr_relays": (relay.url,), "nostr_key": SecretStr(BOT.nsec()), "nostr_flush_s": 0.0, **more}


@asynccontextmanager
async def connected(relay: LyingRelay) -> AsyncIterator[Relay]:
    """Somebody else's connection."""
    out = Relay(relay.url, Keys.generate())
    out.start()
    try:
        await out.ready(5)
        yield out
    finally:
        await out.close()


def files(world: World) -> dict[str, bytes]:
    """What is remembered, by name."""
    root = world.folder / "data" / "memory"
    folders = ("ledger", "durable", "profiles", "groups", "rolling", "tools")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in folders
        for path in sorted((root / folder).glob("*.json*"))
    }


async def lived(world: World) -> None:
    """Ann says a few things, in a channel and in private, and has two personas."""
    await world.ann.send(world.general, "I prefer tabs over spaces")
    await world.ann.send(world.dev, "We decided to ship on Friday, I work on the compiler")
    await world.ann.send_dm("My doctor says I am allergic to nuts")
    await world.ann.send(world.general, "!memory create-branch coding my work on the compiler")
    await world.ann.send(world.general, "!memory checkout coding")
    await world.ann.send(world.general, "!memory remember Zanzibar is the name of my server")
    await world.ann.send(world.general, "What do I prefer?")
    await world.bob.send(world.general, "!memory optout")
    await world.settle()
    await world.mirror.flush(10)


class TestADiskThatBurnt:
    @pytest.mark.design(66, 91, 315, 322)
    async def test_comes_back_byte_for_byte_before_anybody_is_answered(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await lived(world)
            before = files(world)
            assert len(before) >= 6
            ids = {event["id"] for event in relay.sent}
            await world.end()
            shutil.rmtree(world.folder / "data")
            await world.restart(nostr_mode="canonical")
            assert files(world) == before
            await world.mirror.flush(10)
            assert {event["id"] for event in relay.sent} == ids  # nothing is published under another id
            await world.ann.send(world.general, "!memory show")
            assert "Zanzibar" in world.answer(world.general)
            assert "persona `coding`" in world.answer(world.general)
            await world.bob.send(world.general, "!memory remember my cat is Tom")
            assert "opted out" in world.answer(world.general)

    @pytest.mark.design(317)
    async def test_does_not_bring_back_what_was_erased(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await lived(world)
            old = [event for event in relay.events if event["kind"] != 5]
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            await world.mirror.flush(10)
            ledger = {event["id"] for event in old if ":ledger:" in event["tags"][0][1]}
            assert ledger
            assert not ledger & {event["id"] for event in relay.events}
            relay.lies.keeps_old = relay.lies.revives_deleted = True
            relay.put(*old)  # what was deleted is served again
            await world.end()
            shutil.rmtree(world.folder / "data")
            await world.restart(nostr_mode="canonical")
            assert not [name for name in files(world) if str(world.ann.id) in name]


class TestWhatARelaySees:
    @pytest.mark.design(318, 332)
    async def test_is_no_id_no_name_and_no_word_of_anybody(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await lived(world)
            assert len(relay.sent) > 6
            seen = b"\n".join(relay.frames).lower()
            people = (world.ann, world.bob, world.general, world.dev, world.guild)
            ids = [str(one.id) for one in people]
            words = [
                "ann",
                "general",
                "tabs",
                "spaces",
                "zanzibar",
                "compiler",
                "allergic",
                "doctor",
                "friday",
            ]
            clear = json.dumps([{**event, "content": ""} for event in relay.sent]).lower()
            assert [one for one in ids if one.encode() in seen] == []
            # Four letters are in some ciphertext by chance: in base64, whatever their case, once in 50 runs.
            assert [
                word for word in words if len(word) >= 6 and word != "general" and word.encode() in seen
            ] == []
            assert [word for word in words if f'"{word}' in clear or f":{word}" in clear] == []
            assert {event["pubkey"] for event in relay.sent} == {BOT.public}


class TestAReply:
    @pytest.mark.parametrize("lies", [{"silent": True}, {"closes": "error: no"}, {"refuses": "blocked: no"}])
    @pytest.mark.design(321)
    async def test_comes_whatever_the_relay_does(self, start: Start, lies: dict[str, object]) -> None:
        model = Scripted("Here I am.", "Here I am.")
        async with LyingRelay() as relay, start(model, **mirrored(relay, nostr_timeout_s=0.2)) as world:
            relay.lies = Lies(**lies)
            await world.ann.send(world.general, "Are you there?")
            await relay.kill()
            await world.ann.send(world.general, "And now?")
            assert world.shown(world.general).count("Here I am.") == 2


class TestTheOwner:
    async def test_configures_with_a_key_from_anywhere_and_nobody_else_does(self, start: Start) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay, owner_pubkey=OWNER.public)) as world:
            here = Place("channel", str(world.general.id), str(world.general.id), "general", private=False)
            at = int(world.env.now().timestamp())
            scope = [["d", f"snowclaw:config:group:{world.general.id}"]]
            async with asyncio.timeout(10), connected(relay) as out:
                for keys, mode in ((FORGED, "owner"), (OWNER, "none"), (FORGED, "all")):
                    await out.publish(keys.sign(30078, json.dumps({"respond_mode": mode}), scope, at))
                for _ in range(500):  # until it has come round; the next lines fail if it does not
                    await asyncio.sleep(0.01)
                    if world.app.storage.live.policy(here, "1").respond_mode != "mention":
                        break
            await world.ann.send(world.general, "Are you there?")
            assert len(model.requests) == 0
            await world.ann.send(world.dev, "And here?")
            assert len(model.requests) == 1

    async def test_sees_how_the_mirror_is_doing_and_others_do_not(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.send(world.general, "!nostr")
            told = world.answer(world.general)
            assert BOT.npub in told
            assert relay.url in told
            assert "waiting: " in told
            assert BOT.nsec() not in told
            await world.ann.send(world.general, "!nostr push")
            assert "on its way" in world.answer(world.general)
            await world.bob.send(world.general, "!nostr")
            assert "Only my owners" in world.answer(world.general)

    async def test_is_told_when_nothing_is_mirrored(self, start: Start) -> None:
        async with start() as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.send(world.general, "!nostr")
            assert "NOSTR_RELAYS" in world.answer(world.general)


class TestSettings:
    def test_relays_without_a_key_stop_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="NOSTR_SECRET_KEY is not"):
            build(settings_for(tmp_path, nostr_relays=("ws://127.0.0.1:1",)), model=Scripted())

    def test_plain_text_goes_to_no_relay_outside(self, tmp_path: Path) -> None:
        relays = ("ws://127.0.0.1:1", "wss://ann:hunter2@relay.example.org/?token=sesame")
        key = SecretStr(BOT.nsec())
        settings = settings_for(tmp_path, nostr_relays=relays, nostr_key=key, nostr_in_clear=True)
        with pytest.raises(SettingsError, match=r"PLAINTEXT=1: wss://relay\.example\.org/ is") as error:
            build(settings, model=Scripted())
        assert "hunter2" not in str(error.value) and "sesame" not in str(error.value)


class TestASummaryOnRelays:
    SECRET = bytes(range(32))

    def payload(self, relay: LyingRelay) -> dict[str, object]:
        """The one summary that the relay serves, decrypted with the key of the settings alone."""
        (event,) = [event for event in relay.events if event["kind"] == 30094]
        content = nacl.secret.SecretBox(self.SECRET).decrypt(base64.b64decode(event["content"]))
        payload = json.loads(content)
        assert isinstance(payload, dict)
        return payload

    async def talk(self, world: World, *texts: str) -> None:
        """Send messages, each of which is answered by one message; then let the mirror catch up."""
        for text in texts:
            await world.ann.send(world.general, text)
        await world.settle()
        await world.mirror.flush(10)

    async def test_says_how_many_messages_are_in_it(self, start: Start) -> None:
        more = {"nostr_box_key": SecretStr(self.SECRET.hex()), "summary_every": 2}
        async with LyingRelay() as relay, start(**mirrored(relay, **more)) as world:
            await self.talk(world, "Let us plan the garden", "With tomatoes")
            assert self.payload(relay)["message_count"] == 4
            await self.talk(world, "And a pond", "With fish", "They are orange")
            assert self.payload(relay)["message_count"] == 8  # the fifth message waits for its turn
            await world.restart()
            await self.talk(world, "A bench too", "In the shade")
            assert self.payload(relay)["message_count"] == 12  # it was the second turn since the summary
            (file,) = (world.folder / "data" / "memory" / "rolling").iterdir()
            assert list(json.loads(file.read_bytes())) == ["summary", "updatedAt"]
            await world.ann.send(world.general, "!memory reset rolling")
            # Versions are a second apart: the tombstone is ahead of this clock, and what is older stays gone.
            await world.env.advance_time(10)
            await self.talk(world, "Something else", "Entirely")
            assert self.payload(relay)["message_count"] == 4
