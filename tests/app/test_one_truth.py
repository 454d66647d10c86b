"""What different commands tell about the same thing agrees."""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from discoclaw.nostr.event import Keys
from discoclaw.show.words import short
from tests.app.conftest import Start, World
from tests.cli.shell import Shell
from tests.servers.nostr_relay import LyingRelay

DOCS = Path(__file__).parents[2] / "docs"
DAY_S = 86_400


async def says(world: World, words: str) -> str:
    await world.ann.send(world.general, f"!memory {words}")
    return world.answer(world.general)


async def filled(world: World) -> None:
    """Two memories, a forgotten one, and a persona with one of its own."""
    for words in (
        "remember I like tea",
        "remember I have a cat",
        "remember I live on a boat",
        "forget I live on a boat",
        "persona create coding",
        "persona switch coding",
        "remember I write Rust",
    ):
        await says(world, words)


class TestHowMuchThereIs:
    async def test_is_the_same_in_statistics_an_export_and_an_erasing(self, start: Start) -> None:
        async with start() as world:
            await filled(world)
            stats = await says(world, "stats")
            assert "**Memories**: 3, of these 0 private; 1 forgotten" in stats
            changes = re.search(r"\*\*Changes\*\*: (\d+)", stats)
            assert changes is not None
            assert "2; the current one is **coding**, with 3 memories" in stats
            assert await says(world, "export") == "I sent it to you in a DM (3 memories and 1 forgotten)."
            question = await says(world, "erase")
            assert f"That is 3 memories and 1 forgotten, {changes[1]} changes, 2 personas" in question

    async def test_is_the_same_in_a_terminal_too(self, start: Start) -> None:
        async with start() as world:
            await filled(world)
            await world.restart(meanwhile=lambda: self.check(Shell(world.folder), str(world.ann.id)))

    def check(self, shell: Shell, user: str) -> None:
        stats = shell.says("stats", user)
        assert "memories   3, of these 0 private; 1 forgotten\n" in stats
        commits = re.search(r"^commits +(\d+)", stats, re.MULTILINE)
        assert commits is not None
        out = shell.folder / "out.json"
        told = shell.says("export", user, "--output", str(out))
        assert told == f"Exported 3 memories and 1 forgotten of user-{user} to {out}.\n"
        size = f"3 memories and 1 forgotten, {commits[1]} commits on 2 branches"
        assert size in shell.refuses("erase", user)
        code, erased, _ = shell.process("erase", user, "--yes")
        assert (code, f"user-{user} is erased: {size}; " in erased.decode()) == (0, True)


class TestAPrivateMemory:
    @pytest.mark.parametrize("verb", ["why", "forget", "edit"])
    async def test_is_not_denied_to_somebody_who_names_it_by_its_id(self, start: Start, verb: str) -> None:
        async with start() as world:
            await world.ann.send_dm("!memory remember I live in Oslo")
            (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
            number = short(item.id)
            new = " I live in Bergen" if verb == "edit" else ""
            told = await says(world, f"{verb} {number}{new}")
            assert told == f"Only a private memory matches that. Use `/memory {verb}`, or ask me in a DM."
            assert f"(id {number})" in await says(world, f"share {number}")
            assert "Oslo" in await says(world, f"why {number}")


class TestErasing:
    async def test_says_before_and_after_that_a_relay_may_ignore_it(self, start: Start) -> None:
        key = SecretStr(Keys.generate().nsec())
        async with LyingRelay() as relay, start(nostr_relays=(relay.url,), nostr_key=key) as world:
            await says(world, "remember I like tea")
            await world.settle()
            await world.mirror.flush(10)
            told = "request their deletion, which a relay may ignore"
            assert told in await says(world, "erase")
            await world.restart(meanwhile=lambda: self.check(Shell(world.folder), str(world.ann.id)))
            assert told in await says(world, "erase --yes")

    def check(self, shell: Shell, user: str) -> None:
        assert "deletion of the copies on relays, which a relay may ignore" in shell.refuses("erase", user)

    async def test_says_nothing_of_relays_where_there_are_none(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            assert "relay" not in await says(world, "erase")
            await world.restart(meanwhile=lambda: self.none(Shell(world.folder), str(world.ann.id)))
            assert "relay" not in await says(world, "erase --yes")

    def none(self, shell: Shell, user: str) -> None:
        assert "relay" not in shell.refuses("erase", user)


class TestADayInThePast:
    def examples(self, page: str) -> set[str]:
        """The points in time that a page shows `view` with."""
        return set(re.findall(r"memory view [^|`]*--at ([^ `]+)", (DOCS / page).read_text(encoding="utf-8")))

    async def test_shows_what_held_then_whatever_persona_was_made_since(self, start: Start) -> None:
        async with start(heartbeat_minutes=0) as world:
            await says(world, "remember I like tea")
            await world.env.advance_time(100 * DAY_S)
            for words in ("persona create coding", "persona switch coding", "remember I write Rust"):
                await says(world, words)
            examples = self.examples("members/memory.md")
            assert examples
            for at in examples:
                told = await says(world, f"view --at {at}")
                assert ("I like tea" in told, "Rust" in told) == (True, False)
                told = await says(world, f"diff {at}")
                assert ("I write Rust" in told, "tea" in told) == (True, False)
            assert await says(world, "view --at 2025-12-31") == "I remembered nothing then."
            await world.restart(meanwhile=lambda: self.check(Shell(world.folder), str(world.ann.id)))

    def check(self, shell: Shell, user: str) -> None:
        examples = self.examples("admins/command-line.md")
        assert examples
        for at in examples:
            assert shell.says("view", user, "--at", at).endswith("[fact] I like tea\n")
