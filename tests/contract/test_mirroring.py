"""A mirror on a Nostr relay: what a relay sees, what comes back from it, and that no answer waits for it."""

import json
from typing import Any

import pytest

from tests.contract.published import BOT, OWNED, PERSON, Owner, arrives, mirrored, recovered, sent, tag
from tests.contract.world import Start, World
from tests.servers.nostr_relay import Lies, LyingRelay


def files(world: World) -> dict[str, bytes]:
    """What is remembered, by name."""
    root = world.data / "memory"
    folders = ("ledger", "durable", "profiles", "groups", "rolling", "tools")
    paths = [path for folder in folders for path in sorted((root / folder).glob("*.json*"))]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


async def lived(world: World) -> None:
    """Ann says a few things, in a channel and in private, and has two personas."""
    world.brain.learns("User prefers tabs.", about="tabs", kind="preference")
    world.brain.learns("User works on the compiler.", about="compiler", kind="project")
    world.brain.learns("User is allergic to nuts.", about="allergic")
    await world.says(world.ann, world.general, "I prefer tabs over spaces")
    await world.says(world.ann, world.dev, "We decided to ship on Friday, I work on the compiler")
    await world.says(world.ann, world.ann_dm, "My doctor says I am allergic to nuts")
    await world.says(world.ann, world.general, "!memory create-branch coding my work on the compiler")
    await world.says(world.ann, world.general, "!memory checkout coding")
    await world.remember(world.ann, "Zanzibar is the name of my server")
    await world.says(world.ann, world.general, "What do I prefer?")
    await world.says(world.bob, world.general, "!memory optout")
    await sent(world)


class TestADiskThatBurnt:
    @pytest.mark.design(66, 91, 315, 318, 322, 332)
    async def test_comes_back_byte_for_byte_from_a_relay_that_saw_no_word_and_no_name(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await lived(world)
            seen = b"\n".join(relay.frames).lower()
            ids = [one.id for one in (world.ann, world.bob, world.general, world.dev, world.guild)]
            assert [one for one in ids if str(one).encode() in seen] == []
            # Four letters are in some ciphertext by chance: in base64, whatever their case, once in 50 runs.
            words = ("spaces", "zanzibar", "compiler", "allergic", "doctor", "friday")
            assert [one for one in words if one.encode() in seen] == []
            clear = json.dumps([{**event, "content": ""} for event in relay.sent]).lower()
            short = ("ann", "general", "tabs")
            assert [one for one in short if f'"{one}' in clear or f":{one}" in clear] == []
            assert {event["pubkey"] for event in relay.sent} == {BOT.public_key().to_hex()}
            before, published = files(world), {event["id"] for event in relay.sent}
            assert len(before) >= 6 < len(published)
            await recovered(world)
            assert files(world) == before
            await sent(world)
            assert {event["id"] for event in relay.sent} == published  # nothing has another id now
            shown = await world.says(world.ann, world.general, "!memory show")
            assert "Zanzibar" in shown and "persona coding" in shown
            refused = await world.says(world.bob, world.general, "!memory remember my cat is Tom")
            assert "opted out" in refused

    @pytest.mark.design(317)
    async def test_does_not_bring_back_what_was_erased(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await lived(world)
            old = [event for event in relay.events if event["kind"] != 5]
            await world.says(world.ann, world.general, "!memory erase --yes")
            await sent(world)
            ledger = {event["id"] for event in old if ":ledger:" in tag(event, "d")}
            assert ledger and not ledger & {event["id"] for event in relay.events}
            relay.lies.keeps_old = relay.lies.revives_deleted = True
            relay.put(*old)  # what was deleted is served again
            await recovered(world)
            assert [name for name in files(world) if str(world.ann.id) in name] == []


class TestWhatAPersonDecidedAboutAnOwnersNotes:
    async def test_holds_after_a_recovery_and_no_later_copy_outranks_it(self, start: Start) -> None:
        def kept(world: World) -> list[tuple[str, str]]:
            return sorted((one["text"], one["status"]) for one in world.items(world.ann))

        async with LyingRelay() as relay, start(**mirrored(relay, **OWNED)) as world:
            await world.says(world.ann, world.general, "hello there")
            owner, about = Owner(world, relay), f"{PERSON}{world.ann.id}"
            notes = ["Ann leads the core team.", "Ann lives in Oslo."]
            await owner.signs(about, {"notes": notes, "preferences": {"tone": "dry"}})
            await arrives(lambda: len(world.memories(world.ann)) == 3)
            await world.env.advance_time(60)
            await world.says(world.ann, world.general, "!memory forget Ann leads the core team.")
            await world.says(world.ann, world.general, "!memory edit Ann lives in Oslo. => I live in Rome")
            decided = kept(world)
            assert ("Ann leads the core team.", "deprecated") in decided
            assert "I live in Rome" in world.memories(world.ann)
            await owner.signs(about, {"notes": [*notes, "Ann likes tea."], "preferences": {"tone": "dry"}})
            await arrives(lambda: "Ann likes tea." in world.memories(world.ann))
            after = sorted([*decided, ("Ann likes tea.", "active")])
            assert kept(world) == after
            await sent(world)
            for _ in range(2):
                await recovered(world)
                assert kept(world) == after
            await world.says(world.ann, world.general, "!memory erase --yes")
            await sent(world)
            await recovered(world)
            await world.says(world.ann, world.general, "hello again")
            await world.restart()
            assert world.memories(world.ann) == []


class TestARelay:
    @pytest.mark.design(321)
    async def test_holds_up_no_answer_whatever_it_does(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay, nostr_timeout_s=0.2)) as world:
            lies: tuple[dict[str, Any], ...] = (
                {"silent": True},
                {"closes": "error: no"},
                {"refuses": "blocked: no"},
            )
            for number, one in enumerate(lies):
                relay.lies = Lies(**one)
                assert await world.says(world.ann, world.general, f"Are you there, {number}?") == "ok"
            await relay.kill()
            assert await world.says(world.ann, world.general, "And now?") == "ok"
            assert len(world.turns()) == 4

    async def test_is_described_to_the_owner_and_needs_a_key(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            told = await world.says(world.ann, world.general, "!nostr")
            assert BOT.public_key().to_bech32() in told and relay.url in told and "waiting: " in told
            assert BOT.secret_key().to_bech32() not in told
            assert "on its way" in await world.says(world.ann, world.general, "!nostr push")
            assert "Only my owners" in await world.says(world.bob, world.general, "!nostr")
            await world.restart(nostr_relays=())
            assert "NOSTR_RELAYS" in await world.says(world.ann, world.general, "!nostr")
            await world.stop()
            with pytest.raises(Exception, match="NOSTR_SECRET_KEY is not"):
                await world.restart(nostr_relays=(relay.url,), nostr_key=None)
            outside = "wss://ann:hunter2@relay.example.org/?token=sesame"
            with pytest.raises(Exception, match=r"PLAINTEXT=1: wss://relay\.example\.org/ is") as refused:
                await world.restart(**{**mirrored(relay, nostr_in_clear=True), "nostr_relays": (outside,)})
            assert "hunter2" not in str(refused.value) and "sesame" not in str(refused.value)
