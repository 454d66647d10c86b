"""Tools that a model calls while it answers somebody in Discord: what it reads, and what is remembered."""

import json
from typing import Any

import pytest

from discoclaw.core.item import Item
from discoclaw.core.subject import user_subject
from discoclaw.session.tools import ALL
from tests.app.conftest import Start, World
from tests.contract.cards import said
from tests.session.scene import ScriptedModel, calls

CAT = "User has a cat called Tom."
VET = "Dr. Paw looks after animals in Elm Street."


async def call(world: World, model: ScriptedModel, *wanted: tuple[str, dict[str, Any]]) -> tuple[bool, str]:
    """Ann writes, and the model makes one call, with the JSON as a model writes it."""
    results = []
    for name, given in wanted:
        model.answers.extend([calls((name, json.loads(json.dumps(given)))), "Done."])
        await world.ann.send(world.general, "please")
        await world.settle()
        assert world.answer(world.general) == "Done."
        results += model.results()
    return results[-1]


async def items(world: World) -> dict[str, Item]:
    """Ann's memories by the first word of their text that tells them apart."""
    view = await world.memory.view(user_subject(str(world.ann.id)))
    return {"cat" if "cat" in item.text else "vet": item for item in view.active()}


async def linked(world: World) -> bool:
    found = await items(world)
    cat, vet = found["cat"], found["vet"]
    assert (vet.id in cat.facets.links) == (cat.id in vet.facets.links)
    return vet.id in cat.facets.links


async def offered(world: World, model: ScriptedModel, text: str) -> list[str]:
    """The tools that the model may call to answer a text of Ann's."""
    await world.ann.send(world.general, text)
    return [tool.name for tool in model.requests[-1].tools]


class TestLinks:
    @pytest.mark.design(105, 106, 122)
    async def test_go_by_id_key_text_or_most_of_it(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(
                world,
                model,
                ("memory_store", {"text": CAT, "key": "pet"}),
                ("memory_store", {"text": VET, "key": "vet:name"}),
            )
            cat, vet = (await items(world)).values()
            for one, other in (
                (cat.id, vet.id),
                ("pet", "vet:name"),
                (VET, CAT),
                ("looks after animals in elm street", "pet"),
                (vet.id, "has a cat called Tom"),
            ):
                for action, done in (("link", "linked"), ("unlink", "unlinked")):
                    given = {"action": action, "from": one, "to": other}
                    failed, text = await call(world, model, ("memory_link", given))
                    assert not failed
                    assert text.endswith(f": {done}.")
                    assert await linked(world) is (action == "link")

    @pytest.mark.design(105, 106)
    async def test_again_they_change_nothing_and_say_so(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            link = {"action": "link", "from": CAT, "to": VET}
            unlink = {**link, "action": "unlink"}
            assert await call(world, model, ("memory_link", unlink)) == (False, "They aren't linked.")
            assert await call(world, model, ("memory_link", link), ("memory_link", link)) == (
                False,
                "They are linked already.",
            )
            assert await linked(world)

    @pytest.mark.design(105, 122, 123)
    async def test_what_is_wrong_with_a_call_is_said(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            for given, words in (
                ({"action": "join", "from": CAT, "to": VET}, "action: Input should be 'link' or 'unlink'"),
                ({"action": "link", "to": VET}, "from: Field required"),
                ({"action": "link", "from": CAT}, "to: Field required"),
                ({"action": "link", "from": CAT, "to": "dog"}, "no item matches 'dog'"),
                ({"action": "link", "from": CAT, "to": CAT}, "an item can't be linked with itself"),
            ):
                failed, text = await call(world, model, ("memory_link", given))
                assert failed
                assert words in text
            assert not await linked(world)

    async def test_the_model_is_told_their_names(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model) as world:
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            assert "memory_link" in await offered(world, model, "link my cat and the vet")
            (spec,) = [tool for tool in ALL.specs if tool.name == "memory_link"]
            assert list(spec.schema["properties"]) == ["action", "from", "to"]
            assert spec.schema["required"] == ["action", "from", "to"]
            assert spec.schema["properties"]["action"]["enum"] == ["link", "unlink"]

    async def test_are_told_to_people_by_the_words_of_the_other_memory(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False, durable_inject_max_chars=60) as world:
            store = ("memory_store", {"text": CAT}), ("memory_store", {"text": VET})
            await call(world, model, *store, ("memory_link", {"action": "link", "from": CAT, "to": VET}))
            why = said((await world.ann.slash(world.general, "memory why", memory="cat")).response)
            assert f"linked with “{VET}”" in why
            await world.ann.slash(world.general, "memory forget", memory=VET)
            await world.ann.send(world.general, "!memory why cat")
            (line,) = [one for one in world.answer(world.general).splitlines() if "linked with" in one]
            assert "looks after" not in line

    async def test_are_the_reason_why_an_answer_had_a_memory(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            store = ("memory_store", {"text": CAT}), ("memory_store", {"text": VET})
            others = [
                ("memory_store", {"text": f"User owns tool number {n} of the shed."}) for n in range(60)
            ]
            await call(
                world, model, *store, *others, ("memory_link", {"action": "link", "from": CAT, "to": VET})
            )
            model.answers.append("Ill?")
            await world.ann.send(world.general, "my cat Tom is ill")
            await world.settle()
            why = said((await world.ann.slash(world.general, "memory why")).response)
            assert "linked with “You have a cat called Tom.”" in why


class TestLinksOfWhatIsStored:
    @pytest.mark.design(119)
    async def test_go_by_the_same_names_and_an_unknown_one_does_not_cost_the_memory(
        self, start: Start
    ) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(world, model, ("memory_store", {"text": CAT, "key": "pet"}))
            failed, text = await call(
                world, model, ("memory_store", {"text": VET, "key": "vet", "links": ["dog", "pet", "vet"]})
            )
            assert not failed
            first, second, third = text.splitlines()
            assert first == f"Remembered: {VET} [i1]."
            assert second.startswith("Not linked: no item matches 'dog'")
            assert third.startswith("Not linked: no item matches 'vet'")
            assert await linked(world)

    async def test_what_is_stored_again_is_linked_too(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(world, model, ("memory_store", {"text": CAT}), ("memory_store", {"text": VET}))
            failed, text = await call(
                world, model, ("memory_store", {"text": VET, "links": ["has a cat called Tom"]})
            )
            assert (failed, text.split(":")[0]) == (False, "Already remembered")
            assert await linked(world)

    async def test_one_to_itself_is_named(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            failed, text = await call(
                world,
                model,
                ("memory_store", {"text": CAT, "key": "pet"}),
                ("memory_store", {"text": "User has a cat called Max.", "key": "pet", "links": ["pet"]}),
            )
            assert not failed
            assert text.splitlines()[1] == "Not linked: an item can't be linked with itself."
            assert (await items(world))["cat"].text == "User has a cat called Max."


class TestKeys:
    async def test_name_a_memory_to_every_tool_and_command(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            failed, _ = await call(
                world,
                model,
                ("memory_store", {"text": CAT, "key": "pet"}),
                ("memory_update", {"id": "pet", "text": "User has a cat called Max."}),
            )
            assert not failed
            assert (await items(world))["cat"].text == "User has a cat called Max."
            failed, text = await call(world, model, ("memory_history", {"item": "pet"}))
            assert not failed
            assert "Max" in text
            await world.ann.send(world.general, "!memory forget pet")
            assert await items(world) == {}


TEAS = ("green", "black", "white", "iced", "mint", "chai", "bubble")


class TestRecall:
    @pytest.mark.design(119, 120, 128)
    async def test_is_offered_and_answers_with_a_block(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await call(
                world,
                model,
                ("memory_store", {"text": VET, "key": "vet"}),
                ("memory_store", {"text": CAT, "key": "pet", "links": ["vet"]}),
            )
            assert "memory_recall" in await offered(world, model, "what do you remember about my cat?")
            for given, lines in (
                ({"query": "cat"}, [f"- pet: {CAT} [links: vet]"]),
                ({"query": "cat", "depth": 1}, [f"- pet: {CAT} [links: vet]", f"- vet: {VET} [links: pet]"]),
                ({"query": "cat", "category": "knowledge"}, [f"- pet: {CAT} [links: vet]"]),
            ):
                _, text = await call(world, model, ("memory_recall", given))
                assert text.splitlines() == ["[Memory context]", *lines, "[/Memory context]"]
            for given in ({"query": "cat", "category": "core"}, {"query": "quantum chess"}):
                assert await call(world, model, ("memory_recall", given)) == (
                    False,
                    "Nothing is remembered that fits.",
                )

    @pytest.mark.design(157)
    @pytest.mark.parametrize("tool", ["memory_recall", "memory_search"])
    @pytest.mark.parametrize(
        ("settings", "given", "shown"), [({}, {}, 5), ({"recall_limit": 2}, {}, 2), ({}, {"limit": 6}, 6)]
    )
    @pytest.mark.design(99, 120)
    async def test_the_limit_means_what_it_says(
        self, start: Start, tool: str, settings: dict[str, Any], given: dict[str, Any], shown: int
    ) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False, **settings) as world:
            for tea in TEAS:
                await world.ann.send(world.general, f"!memory remember Drinks {tea} tea.")
            _, text = await call(world, model, (tool, {"query": "tea", **given}))
            assert text.count("Drinks") == shown


class TestAdd:
    async def test_is_offered_and_remembers_a_relation(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            relation = {"subject": "Lena", "predicate": "works at", "object": "Acme"}
            failed, text = await call(
                world, model, ("memory_add", {**relation, "scope": "work", "confidence": 0.75})
            )
            assert (failed, text.split(" [")[0]) == (False, "Remembered: Lena works at Acme")
            assert "memory_add" in await offered(world, model, "remember that Lena works at Acme")
            (path,) = (world.folder / "data" / "memory" / "ledger").glob("user-*.jsonl")
            (event,) = [
                event
                for line in path.read_text().splitlines()
                for event in json.loads(line).get("events", ())
            ]
            fields = ("event_type", "subject", "predicate", "object", "scope", "confidence")
            assert [event[name] for name in fields] == ["add", "Lena", "works at", "Acme", "work", 0.75]
            await call(
                world, model, ("memory_add", {"subject": "user", "predicate": "likes", "object": "Acme"})
            )
            _, text = await call(world, model, ("memory_search", {"query": "Acme", "subject": "lena"}))
            assert "Lena works at Acme" in text
            assert "likes" not in text
            await world.ann.send(world.general, "!memory log")
            assert "by me, while we talked" in world.answer(world.general)

    async def test_half_of_one_is_refused(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            failed, text = await call(world, model, ("memory_add", {"subject": "Lena"}))
            assert failed
            assert "predicate: Field required; object: Field required" in text
