"""The tools for triples, keys, links, personas, history and tidying: what they do, and whose word decides."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.consolidation_report import ConsolidationReport
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ChatForbidden, ModelOverloaded
from discoclaw.core.event import Commit
from discoclaw.core.item import Item
from discoclaw.core.message import Place
from discoclaw.core.policy import Personas
from discoclaw.core.ports import Offer
from discoclaw.memory.subjects import verbs
from discoclaw.session.tools import ALL
from discoclaw.session.tools.consolidation import Consolidation
from tests.prompt.builders import GOLDEN, assert_golden
from tests.session.of_tools import ALWAYS, SECRET, call
from tests.session.scene import ANN, BOB, DM, GENERAL, NOW, House, Recorder, calls, house, inbound, until

CREATE = {"action": "create", "name": "spy", "description": "my secret life"}
ANNS, BOBS = "user-1", "user-2"


async def commits(home: House, subject: str = ANNS) -> list[Commit]:
    return list((await home.memory.history(subject)).commits.values())


async def answered(home: House, name: str, place: Place = GENERAL, /, **given: Any) -> Recorder:
    """One tool call in a turn; what the person got."""
    home.model.answers.extend([calls((name, given)), "Done."])
    home.hear(message := inbound(5000, "please", ANN, place), ALWAYS)
    home.answer(message, reply := Recorder())
    await home.desk.settle()
    return reply


class TestWhatIsOffered:
    def test_there_are_ten_with_strict_schemas(self) -> None:
        assert [spec.name for spec in ALL.specs] == [
            f"memory_{verb}"
            for verb in (
                "search",
                "store",
                "update",
                "forget",
                "recall",
                "add",
                "link",
                "branch",
                "history",
                "consolidate",
            )
        ]
        assert all(spec.schema["additionalProperties"] is False for spec in ALL.specs)
        assert all(len(spec.description) > 40 for spec in ALL.specs)

    @pytest.mark.parametrize(
        ("name", "takes", "needs"),
        [
            ("recall", {"query", "limit", "category", "depth"}, {"query"}),
            ("search", {"query", "scope", "subject"}, {"query"}),
            ("store", {"text", "key", "category", "links"}, {"text"}),
            (
                "add",
                {"subject", "predicate", "object", "scope", "confidence"},
                {"subject", "predicate", "object"},
            ),
        ],
    )
    def test_what_those_take_that_look_up_and_remember(
        self, name: str, takes: set[str], needs: set[str]
    ) -> None:
        (spec,) = [spec for spec in ALL.specs if spec.name == f"memory_{name}"]
        assert takes <= spec.schema["properties"].keys()
        assert set(spec.schema["required"]) == needs

    def test_is_described_in_few_words(self) -> None:
        """The golden text is what every model reads of the tools; the first four are in every request."""
        shown = [
            f"{spec.name}: {spec.description}\n"
            + "\n".join(f"  {name}: {json.dumps(field)}" for name, field in spec.schema["properties"].items())
            + f"\n  required: {', '.join(spec.schema.get('required', ()))}\n"
            for spec in ALL.specs
        ]
        assert_golden(GOLDEN / "tools.txt", "\n".join(shown))
        for needless in ('"title"', '"null"', "null", "minLength", "maxLength"):
            assert needless not in json.dumps([spec.schema for spec in ALL.specs])

    async def test_a_write_is_one_commit_that_names_tool_and_message(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_store", text="User has a cat called Tom.", number=77)
        (commit,) = await commits(home)
        assert commit.message == "memory_store during a talk"
        assert commit.metadata == {"by": "memory_store", "message": "discord:10/77"}


class TestTriplesAndKeys:
    async def test_a_triple_becomes_a_sentence_and_stays_a_triple(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        _, text = await call(
            home, "memory_add", subject="user", predicate="prefers backend", object="Python", scope="work"
        )
        assert text.startswith("Remembered: User prefers backend Python [i1]")
        (commit,) = await commits(home)
        (event,) = commit.events
        assert (event.subject, event.predicate, event.object) == ("user", "prefers backend", "Python")
        assert event.scope == "work"
        (item,) = (await home.memory.view(ANNS)).active()
        assert item.facets.triple == ("user", "prefers backend", "Python")

    async def test_two_objects_of_one_predicate_stand_side_by_side(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for language in ("Python", "Go"):
            await call(home, "memory_add", subject="user", predicate="likes", object=language)
        assert await home.texts(ANN) == ["User likes Python", "User likes Go"]

    async def test_a_key_names_one_item_that_is_replaced(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for city in ("Rome", "Oslo"):
            await call(home, "memory_store", text=f"User is in {city}.", key="city", confidence=0.5)
        (item,) = (await home.memory.view(ANNS)).active()
        assert (item.text, item.facets.key, item.facets.confidence) == ("User is in Oslo.", "city", 0.5)
        assert len(await commits(home)) == 2

    @pytest.mark.parametrize(
        "given",
        [
            {"key": "city"},
            {"subject": "User", "predicate": "lives  in"},
            {"subject": "user", "predicate": "lives in", "object": "oslo"},
            {"subject": "user", "predicate": "lives in", "scope": "permanent"},
            {"item": "User lives in Oslo"},
        ],
    )
    async def test_forgetting_goes_by_key_triple_or_text(self, tmp_path: Path, given: dict[str, Any]) -> None:
        home = house(tmp_path)
        await call(
            home, "memory_add", subject="user", predicate="lives in", object="Oslo", key="city", kind="fact"
        )
        await call(home, "memory_add", subject="user", predicate="works in", object="Oslo")
        failed, text = await call(home, "memory_forget", **given)
        assert (failed, text.split(" [")[0]) == (False, "Forgotten:")
        assert await home.texts(ANN) == ["User works in Oslo"]

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"key": "town"}, "nothing matches the key 'town'"),
            (
                {"subject": "user", "predicate": "lives in", "object": "Rome"},
                "nothing matches 'user lives in",
            ),
            ({"subject": "user", "predicate": "lives in", "scope": "work"}, "nothing matches"),
            ({"subject": "user"}, "subject and predicate go together"),
            ({}, "name it by item, by key, or by subject and predicate"),
            ({"item": "x", "key": "city"}, "name it by item, by key, or"),
        ],
    )
    async def test_what_names_nothing_changes_nothing(
        self, tmp_path: Path, given: dict[str, Any], words: str
    ) -> None:
        home = house(tmp_path)
        await call(home, "memory_add", subject="user", predicate="lives in", object="Oslo", key="city")
        failed, text = await call(home, "memory_forget", **given)
        assert failed
        assert words in text
        assert len(await commits(home)) == 1


class TestSearching:
    async def test_scope_subject_and_category_narrow_it(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_add", subject="user", predicate="uses", object="vim", scope="work")
        await call(home, "memory_add", subject="Bob", predicate="uses", object="vim", category="core")
        for given, found in (
            ({"scope": "work"}, ["User"]),
            ({"subject": "bob"}, ["Bob"]),
            ({"category": "core"}, ["Bob"]),
            ({}, ["User", "Bob"]),
        ):
            _, text = await call(home, "memory_search", query="vim", **given)
            assert sorted(line.split()[2] for line in text.splitlines()) == sorted(found)
        _, text = await call(home, "memory_search", query="vim", scope="home")
        assert text == "No item fits."

    async def test_depth_follows_links_and_never_into_private_items(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        cat = await home.remember(ANN, "User has a cat called Tom.")
        vet = await home.remember(ANN, "Dr. Paw looks after animals.")
        street = await home.remember(ANN, "The practice is in Elm Street.")
        secret = await home.remember(ANN, "Dr. Paw is in debt.", origin=SECRET)
        for pair in ((cat, vet), (vet, street), (vet, secret)):
            await home.memory.change(ANNS, "link", lambda d, pair=pair: d.link(*pair, Origin("stated")))
        counts = []
        for depth in range(3):
            _, text = await call(home, "memory_search", query="cat", depth=depth)
            counts.append(len(text.splitlines()))
            assert "debt" not in text
        assert counts == [1, 2, 3]
        _, text = await call(home, "memory_search", DM, query="cat", depth=2)
        assert "debt" in text


class TestLinks:
    async def test_two_items_are_linked_both_ways_and_parted(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        one = await home.remember(ANN, "User has a cat called Tom.")
        other = await home.remember(ANN, "Tom is 3 years old.")
        assert await call(home, "memory_link", action="link", **{"from": one.id, "to": other.id}) == (
            False,
            "i1 and i2: linked.",
        )
        items = (await home.memory.view(ANNS)).items
        assert items[one.id].facets.links == {other.id}
        assert items[other.id].facets.links == {one.id}
        await call(home, "memory_link", action="unlink", **{"from": other.id, "to": one.id})
        items = (await home.memory.view(ANNS)).items
        assert not items[one.id].facets.links | items[other.id].facets.links

    async def test_an_item_is_not_linked_with_itself_or_with_nothing(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        one = await home.remember(ANN, "User has a cat called Tom.")
        for to in (one.id, "durable-00000000"):
            failed, _ = await call(home, "memory_link", action="link", **{"from": one.id, "to": to})
            assert failed

    async def test_a_new_item_can_be_linked_at_once(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        one = await home.remember(ANN, "User has a cat called Tom.")
        await call(home, "memory_store", text="Tom is 3 years old.", links=[one.id])
        assert len((await home.memory.view(ANNS)).items[one.id].facets.links) == 1


class TestPersonas:
    async def test_they_are_listed_and_created_and_nothing_switches(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat.")
        failed, text = await call(home, "memory_branch", action="create", name="Coding", description="code")
        assert not failed
        assert text == "Created coding. The current persona is still main."
        _, text = await call(home, "memory_branch", action="list")
        assert [line.lstrip("* ").split()[:3] for line in text.splitlines()] == [
            ["main", "1", "item"],
            ["coding", "1", "item"],
        ]
        assert text.startswith("* main")
        branches = await home.memory.branches(ANNS)
        assert (branches.current, branches.all["coding"].persona) == ("main", "code")

    async def test_a_description_given_in_a_dm_is_listed_there_only(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        made = {"action": "create", "name": "work", "description": "leaving the company"}
        await answered(home, "memory_branch", DM, **made)
        await answered(home, "memory_branch", action="list")
        ((_, text),) = home.model.results()
        assert "work" in text
        assert "leaving" not in text
        await answered(home, "memory_branch", DM, action="list")
        ((_, text),) = home.model.results()
        assert "leaving the company" in text

    async def test_a_place_whose_persona_has_not_begun_forks_what_it_shows(self, tmp_path: Path) -> None:
        """Not what the person's current persona knows: that is another one."""
        home = house(tmp_path, personas=Personas({"general": "work"}))
        await home.remember(ANN, "User has a cat.")
        await verbs.create_branch(home.memory, ANNS, "private")
        await verbs.switch(home.memory, ANNS, "private")
        await home.remember(ANN, "User has a secret.")
        await call(home, "memory_branch", action="create", name="side")
        assert [item.text for item in (await home.memory.view(ANNS, "side")).active()] == ["User has a cat."]

    async def test_a_switch_is_proposed_below_the_answer(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await verbs.create_branch(home.memory, ANNS, "coding")
        reply = await answered(home, "memory_branch", action="switch", name="coding")
        assert reply.offers == [Offer("1", "coding")]
        assert (await home.memory.branches(ANNS)).current == "main"

    async def test_it_happens_at_once_where_the_person_allowed_that(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await verbs.create_branch(home.memory, ANNS, "coding")
        await home.choose("1", auto_switch=True)
        reply = await answered(home, "memory_branch", action="switch", name="coding")
        assert reply.offers == []
        assert (await home.memory.branches(ANNS)).current == "coding"

    async def test_a_proposal_that_can_not_be_shown_costs_no_answer(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await verbs.create_branch(home.memory, ANNS, "coding")
        home.model.answers.extend([calls(("memory_branch", {"action": "switch", "name": "coding"})), "Hi."])
        home.answer(inbound(5000, "x"), reply := Recorder(refuses={"offer": ChatForbidden("no")}))
        await home.desk.settle()
        assert (reply.text, reply.finished, reply.failed) == ("Hi.", True, [])

    async def test_unknown_ones_are_answered_with_those_there_are(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await verbs.create_branch(home.memory, ANNS, "coding")
        failed, text = await call(home, "memory_branch", action="switch", name="codng")
        assert failed
        assert "did you mean 'coding'? there are: main, coding" in text

    @pytest.mark.parametrize("name", ["../../etc", "a b", "HEAD", "", "x" * 33, "deadbeef"])
    async def test_bad_names_are_refused(self, tmp_path: Path, name: str) -> None:
        home = house(tmp_path)
        failed, _ = await call(home, "memory_branch", action="create", name=name)
        assert failed
        assert list((await home.memory.branches(ANNS)).all) == ["main"]

    async def test_a_place_with_a_persona_of_its_own_uses_it(self, tmp_path: Path) -> None:
        home = house(tmp_path, personas=Personas({"general": "coding"}))
        await call(home, "memory_store", text="User codes in Go.")
        branches = await home.memory.branches(ANNS)
        assert (branches.current, list(branches.all)) == ("main", ["main", "coding"])
        assert [item.text for item in (await home.memory.view(ANNS, "coding")).active()] == [
            "User codes in Go."
        ]
        assert await home.texts(ANN) == []
        failed, text = await call(home, "memory_branch", action="switch", name="main")
        assert failed
        assert "this place always uses the persona 'coding'" in text

    async def test_the_tools_see_the_persona_of_the_place_alone(self, tmp_path: Path) -> None:
        home = house(tmp_path, personas=Personas({"general": "coding"}))
        await call(home, "memory_store", text="User codes in Go.")
        await home.remember(ANN, "User has a cat called Tom.")
        _, here = await call(home, "memory_search", query="go cat")
        _, there = await call(home, "memory_search", DM, query="go cat")
        assert ("Go" in here, "Tom" in here) == (True, False)
        assert ("Go" in there, "Tom" in there) == (False, True)


class TestHistory:
    async def test_one_item_is_told_from_its_first_words_on(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_store", text="User has a cat called Tom.", number=1)
        (item,) = (await home.memory.view(ANNS)).active()
        await call(home, "memory_update", id=item.id, text="User has a cat called Max.", number=2)
        _, text = await call(home, "memory_history", item=item.id)
        assert "add [fact] (taken back)" in text and "Tom" not in text
        assert "User has a cat called Max." in text
        assert "discord:10/1" in text

    async def test_private_things_stay_out_of_it_in_public(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.", origin=SECRET)
        _, here = await call(home, "memory_history")
        _, dm = await call(home, "memory_history", DM)
        assert "Tom" not in here
        assert "Tom" in dm

    async def test_what_waits_for_the_persons_yes_stays_out_of_it(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.", origin=Origin("inferred"))
        (item,) = (await home.memory.view(ANNS)).active()
        await home.choose("1", asks_first=True)
        failed, told = await call(home, "memory_update", DM, id=item.id, text="User has a cat called Max.")
        assert (failed, told[:19]) == (False, "Not remembered yet:")
        _, told = await call(home, "memory_store", DM, text="User has a dog.", links=[item.id])
        assert "dog" not in told
        assert len((await home.memory.view(ANNS)).pending) == 2
        for wanted in ({}, {"item": item.id}):
            _, told = await call(home, "memory_history", DM, **wanted)
            assert "Tom" in told
            assert "Max" not in told
            assert "dog" not in told

    async def test_nothing_is_told_of_others(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(BOB, "User has a cat called Max.")
        assert await call(home, "memory_history") == (False, "there are no commits yet")


class TestAHeadThatMovesDuringTheAnswer:
    """By a command in another conversation, while the model still thinks."""

    async def begun(self, home: House, *wanted: Any) -> Recorder:
        await verbs.create_branch(home.memory, ANNS, "coding")
        home.model.gate = asyncio.Event()
        home.model.answers.extend([calls(*wanted), "Done."])
        home.hear(message := inbound(1, "I have a cat"), ALWAYS)
        home.answer(message, reply := Recorder())
        await until(lambda: bool(home.model.requests))
        await verbs.switch(home.memory, ANNS, "coding")
        return reply

    async def texts(self, home: House, branch: str) -> list[str]:
        return [item.text for item in (await home.memory.view(ANNS, branch)).active()]

    async def test_changes_nothing_about_whom_it_is_for(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a dog.")
        store = ("memory_store", {"text": "User has a cat."})
        await self.begun(home, store, ("memory_search", {"query": "cat"}))
        await home.memory.change(ANNS, "a test", lambda draft: draft.remove(*dog(draft)), branch="coding")
        assert home.model.gate is not None
        home.model.gate.set()
        await home.settle()
        assert await self.texts(home, "main") == ["User has a dog.", "User has a cat."]
        assert await self.texts(home, "coding") == []
        assert "User has a cat." in home.model.results()[1][1]

    async def test_and_a_persona_that_is_deleted_meanwhile_does_not_come_back(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await verbs.create_branch(home.memory, ANNS, "private")
        await verbs.switch(home.memory, ANNS, "private")
        await self.begun(home, ("memory_store", {"text": "User has a cat."}))
        await verbs.delete_branch(home.memory, ANNS, "private")
        assert home.model.gate is not None
        home.model.gate.set()
        await home.settle()
        ((failed, text),) = home.model.results()
        assert (failed, text.split(";")[0]) == (True, "there is no branch 'private'")
        assert "private" not in (await home.memory.branches(ANNS)).all

    async def test_a_switch_the_model_made_itself_counts_from_there_on(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.choose("1", auto_switch=True)
        await verbs.create_branch(home.memory, ANNS, "coding")
        home.model.answers.extend(
            [
                calls(
                    ("memory_branch", {"action": "switch", "name": "coding"}),
                    ("memory_store", {"text": "User writes Go."}),
                ),
                "Done.",
            ]
        )
        home.hear(message := inbound(1, "to coding, and I write Go"), ALWAYS)
        home.answer(message, Recorder())
        await home.settle()
        assert await self.texts(home, "coding") == ["User writes Go."]
        assert await self.texts(home, "main") == []


def dog(draft: Draft) -> tuple[Item, Origin]:
    """The one item, and the person's own hand."""
    (item,) = draft.items.values()
    return item, Origin("stated")


class TestTidying:
    async def test_it_returns_the_report_of_the_speakers_memory(self, tmp_path: Path) -> None:
        asked = []

        async def tidy(subject: str, branch: str | None, why: object) -> ConsolidationReport:
            asked.append((subject, branch, why))
            return ConsolidationReport(merged=1)

        home = house(tmp_path, tidy=tidy)
        assert await call(home, "memory_consolidate") == (False, "Tidied: 1 duplicate merged.")
        assert asked == [(ANNS, "main", {"by": "memory_consolidate", "message": "discord:10/1000"})]

    async def test_a_model_that_fails_is_said(self, tmp_path: Path) -> None:
        async def tidy(subject: str, branch: str | None, why: object) -> ConsolidationReport:
            raise ModelOverloaded("529")

        failed, text = await call(house(tmp_path, tidy=tidy), "memory_consolidate")
        assert failed
        assert "nothing was changed" in text

    async def test_one_that_hangs_does_not_hold_the_answer(self, tmp_path: Path) -> None:
        gate = asyncio.Event()

        async def tidy(subject: str, branch: str | None, why: object) -> ConsolidationReport:
            await gate.wait()
            return ConsolidationReport()

        home = house(tmp_path, consolidation=Consolidation(tidy, wait_s=0.01))
        failed, text = await call(home, "memory_consolidate")
        gate.set()
        assert (failed, text.split(";")[0]) == (False, "It takes a while")

    async def test_without_a_heartbeat_it_is_refused(self, tmp_path: Path) -> None:
        assert await call(house(tmp_path), "memory_consolidate") == (
            True,
            "consolidation is switched off here",
        )


class TestSomebodyWhoOptedOut:
    async def test_gets_no_tools_no_items_and_is_not_learned_from(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1, summary_every=1)
        await home.remember(ANN, "User has a cat called Tom.")
        await home.choose("1", opted_out=True)
        home.hear(message := inbound(1, "What is my cat called?"), ALWAYS)
        home.answer(message, Recorder())
        await home.settle()
        assert home.model.requests[-1].tools == ()
        assert "Tom" not in home.model.user_turn()
        assert home.model.extractions == []
        assert all("cat" not in prompt for prompt in home.model.summarised)

    @pytest.mark.parametrize("how", ["opting out", "an erasure"])
    async def test_while_they_are_answered_the_tools_change_nothing_more(
        self, tmp_path: Path, how: str
    ) -> None:
        home = house(tmp_path)
        home.model.gate = asyncio.Event()
        home.model.answers.extend(
            [calls(("memory_store", {"text": "User has a cat."}), ("memory_branch", CREATE)), "Done."]
        )
        home.hear(message := inbound(1, "I have a cat, and a secret life"), ALWAYS)
        home.answer(message, Recorder())
        await until(lambda: bool(home.model.requests))
        if how == "opting out":
            await home.choose("1", opted_out=True)
        else:
            await home.memory.erase(ANNS, asked_at=NOW + 10)
        home.model.gate.set()
        await home.settle()
        assert [failed for failed, _ in home.model.results()] == [True, True]
        assert (await home.memory.history(ANNS)).records == ()

    async def test_what_they_are_answered_is_summarised_nowhere(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await home.choose("1", opted_out=True)
        home.model.answers.append("Your cat is called Tom.")
        home.hear(message := inbound(1, "Hello"), ALWAYS)
        home.answer(message, Recorder())
        home.hear(other := inbound(3, "Hi there", BOB), ALWAYS)
        home.answer(other, Recorder(id="6000"))
        await home.settle()
        assert home.model.summarised
        assert all("Tom" not in prompt and "Hello" not in prompt for prompt in home.model.summarised)
