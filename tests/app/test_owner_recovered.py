"""What a person decided about an owner's note still holds after the disk was lost and recovered."""

import asyncio
import json
import os
import shutil
import sys

from pydantic import SecretStr

from discoclaw.core.draft import Draft, Origin
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.relays.relay import Relay
from tests.app.conftest import Start, World
from tests.memory.kit import REPOSITORY
from tests.servers.nostr_relay import LyingRelay

BOT, OWNER = Keys.generate(), Keys.generate()
APP = 30078
PATIENCE_S = 20.0


def mirrored(relay: LyingRelay, **more: object) -> dict[str, object]:
    key = SecretStr(BOT.nsec())
    return {
        "nostr_relays": (relay.url,),
        "nostr_key": key,
        "nostr_flush_s": 0.0,
        "owner_pubkey": OWNER.public,
        **more,
    }


async def note(world: World, relay: LyingRelay, *notes: str, ago_s: int = 0, **preferences: str) -> Event:
    """The owner publishes a note about Ann with a client of their own, and the bot takes it."""
    content = {"notes": list(notes), "preferences": preferences}
    at = int(world.env.now().timestamp()) - ago_s
    event = OWNER.sign(APP, json.dumps(content), [["d", f"snowclaw:memory:npub:{world.ann.id}"]], at)
    client = Relay(relay.url, OWNER)
    client.start()
    try:
        await client.ready(PATIENCE_S)
        await client.publish(event)
    finally:
        await client.close()
    return event


async def taken(world: World, event: Event) -> None:
    """Wait until the bot is done with an event of the owner."""
    async with asyncio.timeout(PATIENCE_S):
        while world.app.storage.live.fresh(event.d, event.created_at, event.id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nobody tells when it is


async def recovered(world: World, relay: LyingRelay) -> tuple[int, str]:
    """Lose the data folder and run `discoclaw nostr recover` as a process: exit code and output."""
    await world.mirror.flush(PATIENCE_S)
    await world.end()
    shutil.rmtree(world.folder / "data")
    ours = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | {
        "DISCOCLAW_DATA_DIR": str(world.folder / "data"),
        "NOSTR_RELAYS": relay.url,
        "NOSTR_SECRET_KEY": BOT.nsec(),
        "NOSTR_OWNER": OWNER.npub,
        "PYTHONPATH": str(REPOSITORY),
        "COLUMNS": "300",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "discoclaw", "nostr", "recover"),
        cwd=world.folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def items(world: World) -> list[tuple[str, str, str]]:
    """Text, status and sensitivity of all of Ann's items."""
    view = await world.memory.view(f"user-{world.ann.id}")
    return [(one.text, one.status, one.facets.sensitivity) for one in view.items.values()]


async def say(world: World, *texts: str) -> None:
    for text in texts:
        await world.env.advance_time(60)
        await world.ann.send(world.general, text)
    await world.settle()


async def confidential(world: World, text: str) -> None:
    """Mark an item of Ann's as confidential, as an import does; no command can."""

    def write(draft: Draft) -> None:
        item = next(one for one in draft.items.values() if one.text == text)
        draft.mark(item, "confidential", Origin("stated"))

    await world.env.advance_time(60)
    await world.memory.change(f"user-{world.ann.id}", "marked", write)
    await world.settle()


class TestARecovery:
    async def test_keeps_what_the_person_forgot_and_edited(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await say(world, "hello there")
            first = await note(world, relay, "Ann leads the core team.", "Ann lives in Oslo.", tone="dry")
            await taken(world, first)
            await say(world, "!memory forget Ann leads the core team.")
            await say(world, "!memory edit Ann lives in Oslo. => I live in Rome")
            decided = await items(world)
            assert ("Ann leads the core team.", "deprecated", "normal") in decided
            assert "Ann lives in Oslo." not in [text for text, _, _ in decided]

            code, said = await recovered(world, relay)
            assert (code, "never left" in said) == (0, False), said
            await world.restart()
            assert await items(world) == decided
            await world.mirror.flush(PATIENCE_S)
            await world.restart(nostr_mode="canonical")
            assert await items(world) == decided
            assert first.id in {one["id"] for one in relay.events}  # it was there to be taken again

    async def test_lets_no_later_copy_of_a_note_outrank_what_the_person_decided_since(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await say(world, "hello there")
            await taken(world, await note(world, relay, "Ann leads the core team.", "Ann lives in Oslo."))
            await say(world, "!memory forget Ann leads the core team.")
            await say(world, "!memory edit Ann lives in Oslo. => I live in Rome")
            decided = await items(world)
            again = "Ann leads the core team.", "Ann lives in Oslo.", "Ann likes tea."
            await taken(world, await note(world, relay, *again, ago_s=90))
            after = [*decided, ("Ann likes tea.", "active", "normal")]
            assert await items(world) == after

            code, said = await recovered(world, relay)
            assert code == 0, said
            await world.restart()
            assert await items(world) == after

    async def test_does_not_bring_back_a_note_that_became_confidential_and_says_what_is_missing(
        self, start: Start
    ) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await say(world, "!memory remember I like tea")
            event = await note(world, relay, "Ann is ill.")
            await taken(world, event)
            await confidential(world, "Ann is ill.")
            assert ("Ann is ill.", "active", "confidential") in await items(world)

            code, said = await recovered(world, relay)
            assert code == 1
            assert "2 records never left the disk that wrote them" in said
            for mode in ("mirror", "canonical"):
                await world.restart(nostr_mode=mode)
                assert [text for text, _, _ in await items(world)] == ["I like tea"]
            later = await note(world, relay, "Ann is well again.", ago_s=-1)
            await taken(world, later)
            assert [text for text, _, _ in await items(world)] == ["I like tea", "Ann is well again."]

    async def test_does_not_bring_back_a_note_about_somebody_who_was_erased(self, start: Start) -> None:
        async with LyingRelay() as relay, start(**mirrored(relay)) as world:
            await say(world, "hello there")
            event = await note(world, relay, "Ann leads the core team.")
            await taken(world, event)
            await world.mirror.flush(PATIENCE_S)
            await say(world, "!memory erase --yes")
            assert await items(world) == []

            code, said = await recovered(world, relay)
            assert code == 0, said
            await world.restart()
            await say(world, "hello again")  # so that she is known
            await world.restart()
            assert await items(world) == []
