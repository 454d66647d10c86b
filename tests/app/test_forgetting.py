"""People say in their own words what is to be forgotten; a list shows what may be meant, and they decide."""

import re
from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.session.scene import ScriptedModel, calls

EX, EX_READ = "User's ex is called Callum.", "Your ex is called Callum."
BROKE, BROKE_READ = "User and Callum broke up in July.", "You and Callum broke up in July."
NUTS = "User is allergic to nuts."


async def texts(world: World) -> set[str]:
    return {item.text for item in (await world.memory.view(f"user-{world.ann.id}")).active()}


async def remember(world: World, *some: str) -> None:
    for text in some:
        await world.ann.send(world.general, f"!memory remember {text}")


def values(message: Any) -> dict[str, str]:
    menus = [one for row in message.components for one in row.children if hasattr(one, "options")]
    return {option.label: option.value for menu in menus for option in menu.options}


class TestPlainWords:
    @pytest.mark.parametrize("said", ["forget my ex", "Please forget my ex!", "can you forget about my ex"])
    async def test_open_the_list_before_any_model_is_asked(self, start: Start, said: str) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, EX, NUTS)
            await world.ann.send(world.general, f"<@{world.env.bot.user.id}> {said}")
            assert world.answer(world.general) == f"Forget “{EX_READ}”?"
            assert model.requests == []
            await world.ann.click(world.general.last_message, label="Forget")
            assert await texts(world) == {NUTS}

    @pytest.mark.parametrize(
        "said",
        ["forget my last question", "forget it", "I forget my keys all the time", "don't forget my birthday"],
    )
    async def test_that_ask_for_something_else_are_talk(self, start: Start, said: str) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, EX)
            model.answers.append("Fine.")
            await world.ann.send_dm(said)
            assert world.answer(world.ann_dm) == "Fine."


class TestTheModel:
    async def test_proposes_a_topic_and_the_person_decides(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, EX, BROKE, NUTS)
            model.answers.extend([calls(("memory_forget", {"about": "Callum"})), "Choose below."])
            await world.ann.send(
                world.general, "olvida por favor todo lo de mi antiguo novio, ya no lo quiero"
            )
            assert len(await texts(world)) == 3
            assert "Nothing is forgotten yet" in str(model.requests[-1])
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            shown = pressed.followups[-1]
            assert shown.ephemeral
            assert f"✅ 1. {BROKE_READ}" in shown.content and f"✅ 2. {EX_READ}" in shown.content
            await world.ann.click(shown, label="Forget: 1, 2")
            assert await texts(world) == {NUTS}

    async def test_proposes_several_topics_and_ids_at_once(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, EX, BROKE, NUTS, "User has a van.")
            model.answers.append(calls(("memory_search", {"query": "van"})))

            def propose(request: Any) -> Any:
                van = re.search(r"User has a van\. [^[]*\[(\w+)\]", str(request))
                assert van is not None
                return calls(("memory_forget", {"about": f"{van[1]};Callum"}))

            model.answers.extend([propose, "Choose below."])
            await world.ann.send(world.general, "weg damit: mein Auto, und der Kerl")
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            await world.ann.click(pressed.followups[-1], label="Forget: 1, 2, 3")
            assert await texts(world) == {NUTS}

    async def test_proposes_a_correction_and_the_person_says_of_which(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, EX, BROKE, NUTS)
            right = "User and Callum broke up in June | after a quarrel."
            model.answers.extend([calls(("memory_update", {"about": "Callum", "text": right})), "Which one?"])
            await world.ann.send(world.general, "no, that with Callum was in June, after a quarrel")
            assert "Nothing is changed yet" in str(model.requests[-1])
            pressed = await world.ann.click(world.general.last_message, label="Choose")
            asked = pressed.followups[-1]
            assert asked.ephemeral and await texts(world) == {EX, BROKE, NUTS}
            (menu,) = asked.components[0]["components"]
            (broke,) = [one["value"] for one in menu["options"] if one["label"] == BROKE_READ]
            await world.ann.select(asked, [broke])
            assert await texts(world) == {EX, right, NUTS}

    async def test_is_told_where_nothing_comes_near(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, NUTS)
            model.answers.extend([calls(("memory_forget", {"about": "zebras"})), "I know nothing of them."])
            await world.ann.send(world.general, "and whatever I ever told you of zebras, away with it")
            assert "nothing comes near 'zebras'" in str(model.requests[-1])


class TestTwoThingsInOneSentence:
    BOTH, DOG, VAN = "User has a dog and drives a van.", "User has a dog.", "User drives a van."

    async def test_can_become_two_memories_after_a_press(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, f"!memory remember {self.BOTH}")
            assert "That says two things." in world.answer(world.general)
            assert await texts(world) == {self.BOTH}
            await world.restart()
            await world.ann.click(world.general.last_message, label="Make two")
            assert await texts(world) == {self.DOG, self.VAN}
            await world.ann.send(world.general, "!memory undo")
            assert await texts(world) == {self.BOTH}

    @pytest.mark.parametrize("whole", ["User likes tea and cake.", "User and Callum broke up in July."])
    async def test_are_not_seen_where_there_is_one(self, start: Start, whole: str) -> None:
        async with start() as world:
            await world.ann.send(world.general, f"!memory remember {whole}")
            read = whole.replace("User likes", "You like").replace("User", "You")
            assert world.answer(world.general) == f"Remembered: {read}"
            await world.ann.send(world.general, f"!memory split {whole}")
            assert world.answer(world.general).startswith("That memory says one thing")

    async def test_of_which_an_edit_leaves_one_out_can_both_be_kept(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, f"!memory remember {self.BOTH}")
            await world.ann.send(world.general, "!memory edit the van => User drives a lorry, and no van")
            await world.ann.click(world.general.last_message, label="Change")
            assert f"It no longer says “{self.DOG}”." in world.answer(world.general)
            await world.restart()
            await world.ann.click(world.general.last_message, label="Remember that too")
            assert await texts(world) == {"User drives a lorry, and no van", self.DOG}

    async def test_stay_private_when_they_become_two(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.BOTH}")
            await world.ann.send_dm(f"!memory private {self.BOTH}")
            await world.ann.send_dm(f"!memory split {self.BOTH}")
            view = await world.memory.view(f"user-{world.ann.id}")
            assert {(one.text, one.facets.sensitivity) for one in view.active()} == {
                (self.DOG, "private"),
                (self.VAN, "private"),
            }


class TestWordsThatAnotherMemoryHasToo:
    KEY, BIKE = "the key lies under pot alpha", "the bike stands by pot beta"

    async def test_leave_the_summary_and_the_archive_as_a_whole_sentence(self, start: Start) -> None:
        shared = ["alpha is a key pot", "pot lies under beta", "a bike stands"]
        async with start(summary_every=1) as world:
            await remember(world, self.KEY, self.BIKE, *shared)
            await world.ann.send(world.general, f"so {self.KEY}, and {self.BIKE}")
            await world.settle()
            rolling = world.folder / "data" / "memory" / "rolling"
            assert any(self.KEY in one.read_text() for one in rolling.glob("*.json"))
            await world.ann.send(world.general, f"!memory forget {self.KEY}")
            await world.settle()
            assert not any(self.KEY in one.read_text() for one in rolling.glob("*.json"))
            kept = ("ledger", "durable")  # a person's own history keeps the words, for undo
            files = [one for one in (world.folder / "data").rglob("*") if one.is_file()]
            holding = {
                one.relative_to(world.folder) for one in files if self.KEY.encode() in one.read_bytes()
            }
            assert {str(one) for one in holding if not set(kept) & set(one.parts)} == set()
            assert {self.BIKE, *shared} <= await texts(world)
