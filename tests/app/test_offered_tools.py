"""Which tools a model is offered in a turn, and the short ids by which it names what it was shown."""

from tests.app.conftest import Start
from tests.app.test_model_tools import CAT, VET, call, items, linked, offered
from tests.session.scene import ScriptedModel, calls

ALL = [
    "memory_search",
    "memory_store",
    "memory_update",
    "memory_forget",
    "memory_recall",
    "memory_add",
    "memory_link",
    "memory_branch",
    "memory_history",
    "memory_consolidate",
]


class TestWhatIsOffered:
    async def test_is_the_same_whatever_is_said_and_remembered(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            assert await offered(world, model, "thanks!") == ALL
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            await world.ann.send(world.general, "!memory create-branch work")
            for text in (
                "which tea is good?",
                "please link these two, and tidy up",
                "seit wann weißt du das?",
            ):
                assert await offered(world, model, text) == ALL
            await world.bob.send(world.dev, "hello")
            assert all(request.tools == model.requests[0].tools for request in model.requests)
            assert [tool.name for tool in model.requests[-1].tools if tool.cache] == ["memory_consolidate"]

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
                        ("memory_forget", {"item": "i2"}),
                        ("memory_store", {"text": "User has a red cup."}),
                        ("memory_update", {"id": "[I1]", "text": "User has two cats."}),
                    ),
                    "Done.",
                ]
            )
            await world.ann.send(world.general, "what else do you remember about me?")
            lines = [line for line in model.user_turn().splitlines() if line.startswith("- [fact]")]
            assert [line.rpartition(" ")[2] for line in lines] == ["[i1]", "[i2]"]
            assert CAT in lines[0] and VET in lines[1]
            forgotten, stored, updated = (text for _, text in model.results())
            assert forgotten.startswith("Forgotten: [i2].")
            assert stored == "Remembered: User has a red cup. [i3]."
            # A command said so after the message, and the item is still the one that the prompt showed.
            assert updated.startswith("Not changed") and updated.endswith(f"{CAT} [i1].")
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
            await world.ann.send(world.general, "what else do you remember about me?")
            assert world.answer(world.general).endswith("\n- You have a cat called Tom.")
