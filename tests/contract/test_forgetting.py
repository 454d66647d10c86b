"""People say in their own words what is to be forgotten, and are told from where it went."""

import re
from typing import Any

import pytest

from tests.contract.brain import sum_up
from tests.contract.cards import options
from tests.contract.world import Start, World
from tests.servers.messages_api import tool_use

EX, EX_READ = "User's ex is called Callum.", "Your ex is called Callum."
BROKE, BROKE_READ = "User and Callum broke up in July.", "You and Callum broke up in July."
NUTS = "User is allergic to nuts."
ZSH = "User uses zsh."
ALSO = "It is also gone from the summary of this conversation (it is written again) and "


async def says(world: World, text: str, place: Any = None) -> str:
    """Ann types a command; returns its answer."""
    return await world.says(world.ann, place or world.general, f"!memory {text}")


def kept(world: World) -> set[str]:
    return set(world.memories(world.ann))


class TestPlainWords:
    async def test_open_the_list_before_any_model_is_asked(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, EX, NUTS)
            for words in ("Please forget my ex!", "can you forget about my ex", "forget my ex"):
                asked = await world.says(world.ann, world.general, f"{world.mention} {words}")
                assert asked == f"Forget “{EX_READ}”?"
            assert world.server.requests == []
            await world.ann.click(world.general.last_message, label="Forget")
            assert kept(world) == {NUTS}

    async def test_that_ask_for_something_else_are_talk(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, EX)
            for words in (
                *("forget my last question", "forget it", "I forget my keys all the time"),
                "don't forget my birthday",
            ):
                assert await world.says(world.ann, world.ann_dm, words) == "ok"
            assert kept(world) == {EX}


class TestTheModel:
    async def test_proposes_what_to_forget_and_the_person_decides(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, EX, BROKE, NUTS, "User has a van.")
            world.brain.calls("memory_forget", {"about": "Callum"}, "Choose below.", about="antiguo novio")
            await world.says(world.ann, world.general, "olvida todo lo de mi antiguo novio")
            assert len(kept(world)) == 4
            assert "Nothing is forgotten yet" in str(world.turns()[-1].talk)
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            shown = pressed.followups[-1]
            assert shown.ephemeral
            assert f"✅ 1. {BROKE_READ}" in shown.content and f"✅ 2. {EX_READ}" in shown.content

            def propose(request: Any) -> Any:
                (van,) = re.findall(r"User has a van\. [^[]*\[(\w+)\]", str(request.talk))
                return tool_use(("t2", "memory_forget", {"about": f"{van};Callum"}))

            world.brain.calls("memory_search", {"query": "van"}, propose, "Choose.", about="mein Auto")
            await world.says(world.ann, world.general, "weg damit: mein Auto, und der Kerl")
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            await world.ann.click(pressed.followups[-1], label="Forget: 1, 2, 3")
            assert kept(world) == {NUTS}

    async def test_proposes_a_correction_and_the_person_says_of_which(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, EX, BROKE, NUTS)
            right = "User and Callum broke up in June | after a quarrel."
            world.brain.calls("memory_update", {"about": "Callum", "text": right}, "Which?", about="in June")
            await world.says(world.ann, world.general, "no, that with Callum was in June, after a quarrel")
            assert "Nothing is changed yet" in str(world.turns()[-1].talk)
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            asked = pressed.followups[-1]
            assert asked.ephemeral and kept(world) == {EX, BROKE, NUTS}
            await world.ann.select(asked, [options(asked)[BROKE_READ]])
            assert kept(world) == {EX, right, NUTS}
            world.brain.calls("memory_forget", {"about": "zebras"}, "I know nothing.", about="zebras")
            await world.says(world.ann, world.general, "and whatever I told you of zebras, away with it")
            assert "nothing comes near 'zebras'" in str(world.turns()[-1].talk)

    async def test_is_not_told_again_what_it_forgets(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, "I play the banjo")
            (item,) = world.items(world.ann)
            world.brain.calls("memory_forget", {"item": item["id"][8:]}, "Gone.", about="drop it")
            await world.says(world.ann, world.general, "drop it")
            (result,) = [one for one in world.turns()[-1].talk if one[0] == "result"]
            assert "Forgotten: [i" in str(result) and "banjo" not in str(result)
            assert kept(world) == set()


class TestTwoThingsInOneSentence:
    BOTH, DOG, VAN = "User has a dog and drives a van.", "User has a dog.", "User drives a van."

    async def test_can_become_two_memories_after_a_press(self, start: Start) -> None:
        async with start() as world:
            assert "That says two things." in await says(world, f"remember {self.BOTH}")
            assert kept(world) == {self.BOTH}
            await world.restart()
            await world.ann.click(world.general.last_message, label="Make two")
            assert kept(world) == {self.DOG, self.VAN}
            await says(world, "undo")
            assert kept(world) == {self.BOTH}
            await says(world, "edit the van => User drives a lorry, and no van")
            await world.ann.click(world.general.last_message, label="Change")
            assert f"It no longer says “{self.DOG}”." in world.answer(world.general)
            await world.restart()
            await world.ann.click(world.general.last_message, label="Remember that too")
            assert kept(world) == {"User drives a lorry, and no van", self.DOG}

    async def test_stay_private_and_are_not_seen_where_there_is_one(self, start: Start) -> None:
        async with start() as world:
            for whole in ("User likes tea and cake.", "User and Callum broke up in July."):
                read = whole.replace("User likes", "You like").replace("User", "You")
                assert await says(world, f"remember {whole}") == f"Remembered: {read}"
                assert (await says(world, f"split {whole}")).startswith("That memory says one thing")
            await says(world, f"remember {self.BOTH}", world.ann_dm)
            await says(world, f"private {self.BOTH}", world.ann_dm)
            await says(world, f"split {self.BOTH}", world.ann_dm)
            assert {self.DOG, self.VAN} < kept(world)
            shown = await says(world, "show")
            assert "dog" not in shown and "van" not in shown and "2 private memories" in shown


class TestTheAnswer:
    async def learned(self, world: World) -> None:
        """What Ann says in the open is learned and summed up."""
        world.brain.writes("summary", sum_up)
        world.brain.learns(ZSH, about="I use zsh")
        await world.says(world.ann, world.general, "I use zsh")
        await world.says(world.ann, world.general, "Which tea is good?")

    async def test_says_from_where_it_was_removed(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await world.remember(world.ann, "I drive a van")
            assert await says(world, "forget I drive a van") == "Forgotten: I drive a van"  # in nothing else
            await self.learned(world)
            first, second = (await says(world, f"forget {ZSH}")).split("\n")
            assert first == "Forgotten: You use zsh."
            assert second.startswith(ALSO) and second.endswith(" recent messages.")
            assert "Summaries and recent messages stay without it." in await says(world, "undo")
            shown, _, summary = (await says(world, "show")).partition("**Summary of")
            assert "You use zsh" in shown and "zsh" not in summary and "tea" in summary

    @pytest.mark.parametrize(
        ("command", "told"),
        [
            (f"edit {ZSH} => I use fish", f"\n{ALSO}"),
            (f"private {ZSH}", f"\n{ALSO}"),
            ("optout", "What you said is also gone from the summary of this conv"),
        ],
    )
    async def test_says_so_for_other_ways_to_take_it_back(
        self, start: Start, command: str, told: str
    ) -> None:
        async with start(summary_every=1) as world:
            await self.learned(world)
            assert told in await says(world, command)

    async def test_names_a_channel_only_where_its_person_alone_reads_it(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await self.learned(world)
            result = await world.ann.slash(world.dev, "memory forget", memory=ZSH)
            named = f"It is also gone from the summary of <#{world.general.id}> (it is written again)"
            assert named in result.response.content
            await world.env.advance_time(60)
            await self.learned(world)
            told = await says(world, f"forget {ZSH}", world.dev)
            assert "It is also gone from the summary of a conversation (it is" in told

    async def test_names_another_persona_that_still_knows_it(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, "I use zsh")
            await says(world, "persona create work")
            forgotten, elsewhere = (await says(world, "forget I use zsh")).split("\n")
            assert forgotten == "Forgotten: I use zsh"
            assert elsewhere.startswith(
                "The persona `work` still remembers what you took back. To forget it there: `!memory"
            )
            for typed in re.findall(r"`(![^`]+)`", elsewhere):
                await world.says(world.ann, world.general, typed)
            assert world.answer(world.general) == "Forgotten: I use zsh"

    async def test_says_what_the_disk_refused_and_that_is_removed_later(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await self.learned(world)
            folder = world.data / "memory" / "rolling"
            aside = folder.rename(folder.with_name("aside"))
            folder.write_text("not a folder")
            told = await says(world, f"forget {ZSH}")
            assert "Some of it couldn't be removed yet. I keep trying." in told
            assert "zsh" not in await says(world, "show")
            folder.unlink()
            aside.rename(folder)
            await world.restart()
            assert not any("rolling" in path for path in world.files_with("zsh"))
