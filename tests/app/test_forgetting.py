"""People say in their own words what is to be forgotten; a list shows what may be meant, and they decide."""

from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.session.scene import ScriptedModel, calls

EX = "User's ex is called Callum."
BROKE = "User and Callum broke up in July."
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
            assert world.answer(world.general) == f"Forget “{EX}”?"
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
            assert shown.ephemeral and f"✅ 1. {BROKE}" in shown.content and f"✅ 2. {EX}" in shown.content
            await world.ann.click(shown, label="Forget: 1, 2")
            assert await texts(world) == {NUTS}

    async def test_is_told_where_nothing_comes_near(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await remember(world, NUTS)
            model.answers.extend([calls(("memory_forget", {"about": "zebras"})), "I know nothing of them."])
            await world.ann.send(world.general, "and whatever I ever told you of zebras, away with it")
            assert "nothing comes near 'zebras'" in str(model.requests[-1])
