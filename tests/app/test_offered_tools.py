"""Which tools a model is offered in a turn, and the short ids by which it names what it was shown."""

import pytest

from tests.app.conftest import Start
from tests.app.test_model_tools import CAT, VET, call, items, linked, offered
from tests.session.scene import ScriptedModel, calls

FOUR = ["memory_search", "memory_store", "memory_update", "memory_forget"]


class TestWhatIsOffered:
    async def test_is_search_store_update_and_forget_first_in_every_turn(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            assert await offered(world, model, "thanks!") == FOUR
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            assert await offered(world, model, "which tea is good?") == FOUR
            tools = await offered(world, model, "please link these two, remember it, and tidy up")
            assert tools[:4] == FOUR
            assert {"memory_link", "memory_add", "memory_consolidate"} <= set(tools[4:])
            assert [tool.name for tool in model.requests[-1].tools if tool.cache] == ["memory_forget"]

    @pytest.mark.parametrize(
        ("text", "tool"),
        [
            ("How do you know that?", "memory_history"),
            ("Seit wann weißt du das?", "memory_history"),
            ("¿Desde cuándo lo sabes?", "memory_history"),
            ("Depuis quand le sais-tu ?", "memory_history"),
            ("Räum bitte dein Gedächtnis auf", "memory_consolidate"),
            ("Clean up your memory", "memory_consolidate"),
            ("整理一下记忆", "memory_consolidate"),
            ("Das gehört zusammen", "memory_link"),
            ("関連付けて", "memory_link"),
            ("Let's use another persona for work", "memory_branch"),
            ("Welche Rollen habe ich?", "memory_branch"),
            ("Was weißt du noch über mich?", "memory_recall"),
            ("Recuerda que Lena trabaja en Acme", "memory_add"),
        ],
    )
    async def test_goes_by_what_the_message_asks_for(self, start: Start, text: str, tool: str) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            for item in (CAT, VET):
                await world.ann.send(world.general, f"!memory remember {item}")
            assert tool in await offered(world, model, text)
            assert tool not in await offered(world, model, "which tea is good?") or text in model.user_turn()

    async def test_goes_by_the_talk_before_a_short_answer_too(self, start: Start) -> None:
        model = ScriptedModel(["Shall I tidy up what I remember?"])
        async with start(model, extraction_enabled=False) as world:
            for item in (CAT, VET):
                await world.ann.send(world.general, f"!memory remember {item}")
            await world.ann.send(world.general, "hello")
            assert "memory_consolidate" in await offered(world, model, "yes")

    async def test_is_nothing_that_has_nothing_to_work_on(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            assert await offered(world, model, "link these, tidy up, and tell me the history") == FOUR

    async def test_has_personas_for_who_has_several(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            assert "memory_branch" not in await offered(world, model, "which tea is good?")
            await world.ann.send(world.general, "!memory create-branch work")
            assert "memory_branch" in await offered(world, model, "which tea is good?")

    async def test_stays_the_same_to_the_end_of_the_turn(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            for item in (CAT, VET):
                await world.ann.send(world.general, f"!memory remember {item}")
            model.answers.extend([calls(("memory_forget", {"item": VET})), "Done."])
            await world.ann.send(world.general, "forget the vet, and link the rest")
            assert list(await items(world)) == ["cat"]
            first, second = (request.tools for request in model.requests[-2:])
            assert first == second and "memory_link" in {tool.name for tool in second}


class TestShortIds:
    """A prompt's line shows the id by which tools name its item, in this turn."""

    async def test_name_what_the_prompt_showed_whatever_changes_meanwhile(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            for item in (CAT, VET):
                await world.ann.send(world.general, f"!memory remember {item}")
            model.answers.extend(
                [
                    calls(
                        ("memory_forget", {"item": "i1"}),
                        ("memory_store", {"text": "User has a red cup."}),
                        ("memory_update", {"id": "[I2]", "text": "User has two cats."}),
                    ),
                    "Done.",
                ]
            )
            await world.ann.send(world.general, "what do you remember about me?")
            lines = [line for line in model.user_turn().splitlines() if line.startswith("- [fact]")]
            assert [line.rpartition(" ")[2] for line in lines] == ["[i1]", "[i2]"]
            assert VET in lines[0] and CAT in lines[1]
            forgotten, stored, updated = (text for _, text in model.results())
            assert forgotten.startswith("Forgotten: [i1].")
            assert stored == "Remembered: User has a red cup. [i3]."
            # A command said so after the message, and the item is still the one that the prompt showed.
            assert updated.startswith("Not changed") and updated.endswith(f"{CAT} [i2].")
            assert VET not in {item.text for item in (await items(world)).values()}

    async def test_go_on_in_what_tools_find_and_name_it_there_too(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            for item in (CAT, VET):
                await world.ann.send(world.general, f"!memory remember {item}")
            model.answers.extend(
                [
                    calls(("memory_search", {"query": "Dr. Paw"}), ("memory_recall", {"query": "animals"})),
                    calls(("memory_link", {"action": "link", "from": "i1", "to": "i2"})),
                    calls(("memory_history", {"item": "i2"})),
                    "Done.",
                ]
            )
            await world.ann.send(world.general, "what is my cat called?")
            assert f"{CAT} (src: manual, updated" in model.user_turn()
            assert VET not in model.user_turn()
            search, recall = (text for _, text in model.results(-3))
            assert search.splitlines()[0].startswith(f"- [fact] {VET}") and search.endswith("[i2]")
            assert recall.splitlines()[1] == f"- i2: {VET}"
            assert model.results(-2) == [(False, "i1 and i2: linked.")]
            assert model.results(-1)[0][1].startswith("[i2] ")
            assert await linked(world)

    async def test_that_were_never_shown_are_refused(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await world.ann.send(world.general, f"!memory remember {CAT}")
            for tool, given in (
                ("memory_forget", {"item": "i7"}),
                ("memory_update", {"id": "i7", "text": "User has no cat."}),
                ("memory_link", {"action": "link", "from": CAT, "to": "[i7]"}),
                ("memory_history", {"item": "i7"}),
            ):
                failed, text = await call(world, model, (tool, given))
                assert failed
                assert text.startswith("no item was shown as") and "memory_search" in text
            assert [item.text for item in (await items(world)).values()] == [CAT]

    async def test_do_not_hide_a_key_of_that_form(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            failed, text = await call(
                world,
                model,
                ("memory_store", {"text": CAT, "key": "i7"}),
                ("memory_forget", {"item": "i7"}),
            )
            assert (failed, text.splitlines()[0]) == (False, "Forgotten: [i1].")

    async def test_are_for_models_and_not_for_people(self, start: Start) -> None:
        async with start(extraction_enabled=False) as world:
            await world.ann.send(world.general, f"!memory remember {CAT}")
            await world.ann.send(world.general, "what do you remember about me?")
            assert f"- {CAT} *(fact, {world.env.now():%Y-%m-%d})*" in world.answer(world.general)
