"""The owner's signed configuration, and what goes to relays and when: published, and felt in Discord."""

import asyncio
import json
import os
import shutil
import time
from typing import Any

import pytest

from discoclaw.cli.main import cli
from discoclaw.nostr.event import Keys
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_groups import file
from tests.app.test_live_config import lines
from tests.app.test_nostr import BOT, OWNER, mirrored
from tests.app.test_snowclaw_schema import CONFIG, GROUP, NPUB, OWNED, Owner, arrives, held, opened, sent, tag
from tests.cli.shell import Runner
from tests.servers.nostr_relay import LyingRelay


async def configured(world: World, owner: Owner, scope: str, **fields: Any) -> None:
    """The owner publishes a setting, and the bot has it."""
    await owner.signs(f"{CONFIG}{scope}", fields)
    path = world.folder / "data" / "memory" / "signed.json"
    await arrives(lambda: path.exists() and str(owner.at) in path.read_text())


def typed(world: World, relay: LyingRelay, *words: str) -> str:
    """What a command of the terminal prints, on the data of this bot."""
    ours = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")
    environment: dict[str, str | None] = {name: None for name in os.environ if name.startswith(ours)}
    environment |= {
        "DISCOCLAW_DATA_DIR": str(world.folder / "data"),
        "NOSTR_RELAYS": relay.url,
        "NOSTR_SECRET_KEY": BOT.nsec(),
        "NOSTR_OWNER": OWNER.npub,
        "NOSTR_OWNER_SECRET_KEY": OWNER.nsec(),
        "COLUMNS": "300",
    }
    result = Runner().invoke(cli, words, env=environment)
    assert result.exit_code == 0, result.output
    return result.output


class TestScopes:
    @pytest.mark.design(43, 44, 45, 46, 47, 50, 67)
    async def test_a_person_wins_over_a_channel_over_all_over_the_settings_field_by_field(
        self, start: Start
    ) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            await world.ann.send(world.general, "are you there?")
            assert len(model.requests) == 1  # the settings say "all"
            owner = Owner(world, relay)
            await configured(world, owner, "global", respond_mode="none", context_history=4)
            await world.ann.send(world.general, "and now?")
            await world.ann.send_dm("and here?")
            assert len(model.requests) == 1
            await configured(world, owner, f"group:{world.general.id}", respond_mode="all")
            await world.ann.send(world.dev, "and in dev?")
            assert len(model.requests) == 1
            for number in range(6):
                await world.bob.send(world.general, f"message {number}")
            assert len(model.requests) == 7
            assert len(lines(model)) == 3
            await sent(world)
            person = next(one for one in held(relay, NPUB) if opened(one)["display_names"][0][0] == "ann")
            pseudonym = tag(person, "d").removeprefix(NPUB)
            await configured(world, owner, f"npub:{pseudonym}", context_history=2)
            await world.ann.send(world.general, "only me?")
            assert (len(model.requests), len(lines(model))) == (8, 1)
            await configured(world, owner, f"npub:{pseudonym}", respond_mode="none")
            await world.ann.send(world.general, "still?")
            assert len(model.requests) == 8
            await world.bob.send(world.general, "but me?")
            assert len(model.requests) == 9

    @pytest.mark.design(28, 43)
    async def test_the_window_grows_and_shrinks_while_the_bot_runs(self, start: Start) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            owner, here = Owner(world, relay), f"group:{world.general.id}"
            await configured(world, owner, here, respond_mode="none", context_history=30)
            for number in range(28):
                await world.bob.send(world.general, f"message {number}")
            await configured(world, owner, here, respond_mode="all", context_history=30)
            await world.ann.send(world.general, "long?")
            assert lines(model) == [f"message {number}" for number in range(28)]
            await configured(world, owner, here, respond_mode="all", context_history=3)
            await world.ann.send(world.general, "short?")
            assert lines(model) == ["long?", "ok"]

    @pytest.mark.design(49)
    async def test_nobody_elses_has_an_effect_or_is_an_error(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            relay.lies.ignores_filters = True  # so that other authors' events arrive at all
            other = Owner(world, relay)
            for by in (Keys.generate(), BOT):
                await other.signs(f"{CONFIG}global", {"respond_mode": "none"}, by=by)
            await configured(world, other, f"group:{world.dev.id}", respond_mode="none")  # comes after them
            await world.ann.send(world.general, "there?")
            assert len(model.requests) == 1
            assert [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")] == []

    @pytest.mark.design(51, 52)
    async def test_what_was_signed_before_the_start_holds_for_the_first_message(self, start: Start) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            await world.ann.send(world.general, "hello")
            await sent(world)
            await world.end()
            await Owner(world, relay).signs(f"{CONFIG}global", {"respond_mode": "none"})
            shutil.rmtree(world.folder / "data")
            relay.frames.clear()
            await world.restart(nostr_mode="canonical")
            asked = {
                author for _, _, *filters in relay.requests for one in filters for author in one["authors"]
            }
            assert asked == {BOT.public, OWNER.public}
            assert file(world, "profiles", world.ann)["display_names"][0][0] == "ann"
            await world.ann.send(world.general, "anybody?")
            assert len(model.requests) == 1


class TestTheCommandLine:
    @pytest.mark.design(62, 63)
    async def test_sets_and_shows_what_holds_in_a_channel(self, start: Start) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            world._now = lambda: int(time.time() * 1000)  # by which the terminal signs
            await world.restart()
            here = f"group:{world.general.id}"
            told = await asyncio.to_thread(typed, world, relay, "config", "set", here, "respond_mode=mention")
            assert "respond_mode=mention" in told
            (event,) = held(relay, f"{CONFIG}group:")
            assert event["pubkey"] == OWNER.public
            path = world.folder / "data" / "memory" / "signed.json"
            await arrives(lambda: path.exists() and event["id"] in path.read_text())
            await world.ann.send(world.general, "are you there?")
            assert model.requests == []
            shown = await asyncio.to_thread(typed, world, relay, "config", "get", here)
            assert shown.split()[:2] == ["respond_mode", "mention"]

    @pytest.mark.design(12)
    async def test_alone_removes_a_record(self, start: Start) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay)) as world:
            await world.ann.send(world.general, "hello")
            await world.settle()
            year = 365 * 86_400_000
            await world.hygiene.run(int(world.env.now().timestamp() * 1000) + year)
            await world.settle()
            assert file(world, "profiles", world.ann) is not None
            await world.end()
            told = await asyncio.to_thread(typed, world, relay, "memory", "erase", str(world.ann.id), "--yes")
            assert "is erased" in told and "requests their deletion, which a relay may ignore" in told
            assert file(world, "profiles", world.ann) is None
            await world.restart()


class TestWhatGoesToRelays:
    @pytest.mark.design(54, 55)
    async def test_waits_unless_somebody_asked_and_has_no_message_and_no_config(self, start: Start) -> None:
        options = {**mirrored(LyingRelay()), "nostr_flush_s": 300.0, "respond_mode": "mention"}
        async with (
            LyingRelay() as relay,
            start(Scripted(), **{**options, "nostr_relays": (relay.url,)}) as world,
        ):
            await world.ann.send(world.general, "the canary is called Tweety")
            await world.env.settle()
            await arrives(lambda: file(world, "profiles", world.ann))
            assert held(relay, NPUB) == held(relay, GROUP) == []
            await world.ann.send(world.general, "!memory remember I like tea")
            await arrives(lambda: [one for one in held(relay, NPUB) if opened(one)["notes"]])
            await sent(world)
            assert len(held(relay, GROUP)) == 1
            assert [event for event in relay.sent if tag(event, "d").startswith(CONFIG)] == []
            assert "Tweety" not in json.dumps([opened(one) for one in relay.sent if one["kind"] == 30078])

    @pytest.mark.design(53, 58)
    async def test_is_not_asked_for_while_the_bot_talks_or_searches(self, start: Start) -> None:
        model = Scripted()
        async with LyingRelay() as relay, start(model, **mirrored(relay), **OWNED) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await sent(world)
            before = len(relay.requests)
            await world.ann.send(world.general, "which tea do I like?")
            assert "I like tea" in model.prompt.split("Durable memory")[1]
            found = await asyncio.to_thread(typed, world, relay, "recall", str(world.ann.id), "which tea?")
            assert "I like tea" in found
            assert len(relay.requests) == before
            assert b'"search"' not in b"".join(relay.frames)

    @pytest.mark.design(56)
    async def test_is_listed_by_author_and_address(self, start: Start) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay)) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await sent(world)
            stray = BOT.sign(30078, "hello", [["d", "snowclaw:core:mood"]], 1_800_000_000)
            relay.put(stray.to_json())
            await world.end()
            shutil.rmtree(world.folder / "data")
            relay.frames.clear()
            told = await asyncio.to_thread(typed, world, relay, "nostr", "recover", "--dry-run")
            filters = [one for _, _, *asked in relay.requests for one in asked]
            assert filters and all(one["authors"] == [BOT.public] for one in filters)
            assert "cannot be used" not in told and "1 record" in told, told
            await world.restart()

    @pytest.mark.design(57)
    async def test_is_requested_to_be_deleted_and_said_to_be_requested(self, start: Start) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay)) as world:
            await world.ann.send(world.general, "hello")
            await sent(world)
            (record,) = held(relay, NPUB)
            relay.lies.ignores_deletions = True
            await world.ann.send(world.general, "!memory erase --yes")
            assert "request their deletion, which a relay may ignore" in world.answer(world.general)
            await sent(world)
            named = [one[1] for event in relay.sent if event["kind"] == 5 for one in event["tags"]]
            assert f"30078:{BOT.public}:{tag(record, 'd')}" in named and record["id"] in named
            (left,) = held(relay, NPUB)
            assert opened(left) == {}

    @pytest.mark.design(65, 66, 69)
    async def test_comes_back_where_the_local_files_are_lost(self, start: Start) -> None:
        async with LyingRelay() as relay, start(Scripted(), **mirrored(relay)) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send(world.general, "hello")
            await sent(world)
            assert all(tag(one, "encrypted") == "nip44" for one in relay.events if one["kind"] == 30078)
            known = file(world, "profiles", world.ann), file(world, "groups", world.general)
            assert known[0]["notes"] == ["I like tea"] and known[1]["members"]
            await world.end()
            for folder in ("memory/profiles", "memory/groups", "memory/durable", "cache"):
                shutil.rmtree(world.folder / "data" / folder, ignore_errors=True)
            await world.restart(nostr_mode="canonical")
            assert (file(world, "profiles", world.ann), file(world, "groups", world.general)) == known
            await world.end()
            shutil.rmtree(world.folder / "data")
            await world.restart()
            assert (file(world, "profiles", world.ann), file(world, "groups", world.general)) == known
