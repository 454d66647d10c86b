"""One memory behind every way to it: Discord, the model's tools, the durable file, the terminal, a relay."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.contract.published import BOT, OWNED, PERSON, Owner, arrives, held, mirrored, opened, sent, tag
from tests.contract.test_events_for_aman import BOX_KEY, PREFERENCE, of_kind, seen
from tests.contract.tools import call, commits
from tests.contract.world import Start
from tests.servers.nostr_relay import LyingRelay

TEA, TABS, VIM, MUSIC, TRAINS = FACTS = tuple(
    f"User prefers {thing}." for thing in ("tea", "tabs", "vim", "music", "trains")
)
QUIET = {"extraction_enabled": False, "heartbeat_minutes": 0}


class TestAFact:
    @pytest.mark.design(313)
    async def test_that_comes_by_one_way_is_seen_by_all_others(self, start: Start) -> None:
        box = SecretStr(f"hex:{BOX_KEY}")
        async with (
            LyingRelay() as relay,
            start(**mirrored(relay, **OWNED, nostr_box_key=box, **QUIET)) as world,
        ):
            await world.remember(world.ann, TEA)
            triple = {"subject": "user", "predicate": "prefers", "object": "tabs.", "kind": "preference"}
            await call(world, ("memory_add", triple))
            path = world.durable(world.ann)
            stored = json.loads(path.read_bytes())
            stored["items"].append({**stored["items"][0], "id": "durable-00000001", "text": VIM})
            path.write_text(json.dumps(stored, indent=2), encoding="utf-8")
            await world.says(world.ann, world.general, "hello")
            await sent(world)
            await Owner(world, relay).signs(tag(held(relay, PERSON)[0], "d"), {"notes": [MUSIC]})
            await arrives(lambda: MUSIC in world.memories(world.ann))
            await world.stop()
            ann = str(world.ann.id)
            told = await asyncio.to_thread(world.cli, "memory", "set", ann, "--note", TRAINS)
            assert told.exit_code == 0, told.output
            await world.restart()
            await world.says(world.ann, world.general, "hello")
            await sent(world)

            discord = await world.says(world.ann, world.general, "!memory show")
            _, found = await call(world, ("memory_search", {"query": "what user prefers", "limit": 20}))
            public = BOT.public_key().to_hex()
            (record,) = [opened(event) for event in held(relay, PERSON) if event["pubkey"] == public]
            relayed = [*record["notes"], *record["preferences"].values()]
            shown = world.cli("memory", "show", ann).stdout
            for text in FACTS:
                assert text.replace("User prefers", "You prefer") in discord
                assert all(text in seen_here for seen_here in (found, shown, relayed))
            assert sorted(world.memories(world.ann)) == sorted(FACTS)
            preferences = seen(of_kind(relay, PREFERENCE)[0])["preference"]
            assert preferences == TABS  # which is the only one of the kind "preference"


class TestWhatTwoWaysTellOfTheSameThing:
    async def test_how_much_there_is_agrees_in_every_command_here_and_in_the_terminal(
        self, start: Start
    ) -> None:
        async with start() as world:
            for words in (
                "remember I like tea",
                "remember I have a cat",
                "remember I live on a boat",
                "forget I live on a boat",
                "persona create coding",
                "persona switch coding",
                "remember I write Rust",
            ):
                stats = await world.says(world.ann, world.general, f"!memory {words}")
            stats = await world.says(world.ann, world.general, "!memory stats")
            assert "**Memories**: 3, of these 0 private; 1 forgotten" in stats
            changes = re.search(r"\*\*Changes\*\*: (\d+)", stats)
            assert changes is not None
            assert "2; the current one is **coding**, with 3 memories" in stats
            sent_off = "I sent it to you in a DM (3 memories and 1 forgotten)."
            assert await world.says(world.ann, world.general, "!memory export") == sent_off
            question = await world.says(world.ann, world.general, "!memory erase")
            assert f"That is 3 memories and 1 forgotten, {changes[1]} changes, 2 personas" in question
            assert "relay" not in question

            await world.stop()
            ann, out = str(world.ann.id), world.folder / "out.json"
            stats = world.cli("memory", "stats", ann).stdout
            assert "memories   3, of these 0 private; 1 forgotten\n" in stats
            commits = re.search(r"^commits +(\d+)", stats, re.MULTILINE)
            assert commits is not None
            told = world.cli("memory", "export", ann, "--output", str(out)).stdout
            assert told.startswith(f"Exported 3 memories and 1 forgotten of user-{ann} to ")
            size = f"3 memories and 1 forgotten, {commits[1]} commits on 2 branches"
            refused = world.cli("memory", "erase", ann).output
            assert size in refused and "relay" not in refused
            erased = await asyncio.to_thread(world.cli, "memory", "erase", ann, "--yes")
            assert f"user-{ann} is erased: {size}; " in erased.stdout

    async def test_a_day_in_the_past_shows_what_held_then_as_the_documents_say(self, start: Start) -> None:
        def examples(page: str) -> set[str]:
            text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
            return set(re.findall(r"memory view [^|`]*--at ([^ `]+)", text))

        async with start(heartbeat_minutes=0) as world:
            await world.remember(world.ann, "I like tea")
            await world.env.advance_time(100 * 86_400)
            for words in ("persona create coding", "persona switch coding", "remember I write Rust"):
                await world.says(world.ann, world.general, f"!memory {words}")
            assert examples("members/memory.md") and examples("admins/command-line.md")
            for at in examples("members/memory.md"):
                told = await world.says(world.ann, world.general, f"!memory view --at {at}")
                assert ("I like tea" in told, "Rust" in told) == (True, False)
                told = await world.says(world.ann, world.general, f"!memory diff {at}")
                assert ("I write Rust" in told, "tea" in told) == (True, False)
            nothing = await world.says(world.ann, world.general, "!memory view --at 2025-12-31")
            assert nothing == "I remembered nothing then."
            for at in examples("admins/command-line.md"):
                told = world.cli("memory", "view", str(world.ann.id), "--at", at).stdout
                assert told.endswith("[fact] I like tea\n")


class TestTheStory:
    @pytest.mark.design(258, 285, 308, 316, 323)
    async def test_a_preference_is_used_corrected_forgotten_and_told_and_a_file_edited_by_hand_counts(
        self, start: Start
    ) -> None:
        tabs, spaces = "User prefers tabs over spaces.", "User prefers spaces over tabs."
        async with start(summary_enabled=False) as world:
            ann = world.ann
            changed = {"kind": "preference", "text": spaces, "id": tabs}
            world.brain.learns(changed, about="Actually")
            world.brain.learns({"kind": "preference", "text": tabs}, about="I prefer tabs")
            await world.says(ann, world.general, "I prefer tabs over spaces")
            assert world.memories(ann) == [tabs]
            await world.says(ann, world.dev, "what do I prefer?")
            assert tabs in world.prompt
            await world.restart()
            await world.says(ann, world.dev, "and what do I prefer now?")
            assert tabs in world.prompt
            await world.says(ann, world.general, "Actually, I prefer spaces over tabs")
            assert world.memories(ann) == [spaces]
            await world.says(ann, world.dev, "what do I prefer?")
            assert spaces in world.prompt and tabs not in world.prompt
            told = await world.says(ann, world.dev, f"!memory forget {spaces}")
            assert told.startswith("Forgotten: You prefer spaces over tabs.\nIt is also gone from ")
            assert [(one["text"], one["status"]) for one in world.items(ann)] == [(spaces, "deprecated")]
            await world.says(ann, world.dev, "and what do I prefer?")
            assert "spaces over tabs" not in world.prompt
            assert [
                (one["message"], [event["object"] for event in one["events"]]) for one in commits(world)
            ] == [
                ("learned from talk", [tabs]),
                ("learned from talk", [spaces]),
                ("forgotten by command", [spaces]),
            ]
            await world.remember(ann, "I use vim")
            path = world.durable(ann)
            path.write_text(path.read_text().replace("I use vim", "I use emacs"))
            await world.says(ann, world.general, "do I use emacs or vim?")
            assert "I use emacs" in world.prompt and "I use vim" not in world.prompt.partition("Recent")[0]
            last = commits(world)[-1]
            assert (last["message"], last["events"][0]["source"]) == ("edited by hand", "manual")

    @pytest.mark.design(108, 191, 192, 233, 331)
    async def test_follows_its_person_and_nobody_else_and_loses_no_update_of_many(self, start: Start) -> None:
        async with start() as world:
            for number in range(10):
                for person in (world.ann, world.bob):
                    for channel in (world.general, world.dev):
                        words = f"!memory remember fact {number} of {person.user.name} in {channel.name}"
                        await person.send(channel, words)
            await world.settle()
            for person in (world.ann, world.bob):
                assert len(world.memories(person)) == 20
            path = world.durable(world.ann)
            with path.open() as before:
                await world.remember(world.ann, "I own a coat")
                assert len(json.load(before)["items"]) == 20  # a file is replaced as a whole
            assert len(world.memories(world.ann)) == 21
            assert {one.name for one in path.parent.iterdir()} == {path.name, f"{world.bob.id}.json"}
            await world.says(world.bob, world.general, "which fact of ann in general is number 3?")
            assert "fact 3 of ann in general" not in world.prompt
            await world.says(world.ann, world.dev, "which fact in general is number 3?")
            assert "fact 3 of ann in general" in world.prompt
