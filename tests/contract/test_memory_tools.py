"""Memory as a model's tools have it: entries with keys, links and categories, triples, and history."""

import json
from typing import Any

import pytest

from tests.contract.shown import DURABLE
from tests.contract.tools import call, commits
from tests.contract.world import Start, World

CAT = "User has a cat called Tom."
VET = "Dr. Paw looks after animals in Elm Street."
BLOCK = ["[Memory context]", "[/Memory context]"]
BACKEND = {
    "subject": "user",
    "predicate": "prefers backend",
    "object": "Python",
    "scope": "work/technical",
    "confidence": 0.8,
}
QUIET = {"extraction_enabled": False, "summary_enabled": False, "heartbeat_minutes": 0}
DAY_S = 86_400


def snapshot(world: World) -> list[dict[str, Any]]:
    """All of Ann's entries, as an export has them."""
    words = ("memory", "export", str(world.ann.id), "--format", "snapshot", "--output", "-")
    entries: list[dict[str, Any]] = json.loads(world.cli(*words).stdout)
    return entries


def keys(text: str) -> list[str]:
    """The keys of the lines of a memory context."""
    return [line[2:].split(":")[0] for line in text.splitlines()[1:-1]]


class TestEntries:
    @pytest.mark.design(94, 98, 99, 100)
    async def test_are_stored_by_key_and_found_with_a_score(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for more in ({"category": "core"}, {}):  # and it stays in its category
                await call(world, ("memory_store", {"text": VET, "key": "vet", **more}))
            _, told = await call(world, ("memory_store", {"text": CAT, "key": "pet", "links": ["vet"]}))
            newer = "User has a cat called Max."
            short = told.split("[")[1].split("]")[0]
            _, told = await call(world, ("memory_store", {"text": newer, "key": "pet"}))
            assert told.startswith(f"Updated: {newer} [{short}].\nIt is also gone from ")
            await call(world, ("memory_recall", {"query": "cat"}))
            await world.restart()  # what was used is written when the bot stops
            vet, pet = sorted(snapshot(world), key=lambda one: one["key"], reverse=True)
            assert pet == {
                "id": pet["id"],
                "key": "pet",
                "content": newer,
                "category": "knowledge",
                "timestamp": pet["timestamp"],
                "last_accessed": pet["last_accessed"],
                "session_id": pet["session_id"],
                "links": ["vet"],
                "sensitivity": "normal",
            }
            assert pet["session_id"].startswith(f"discord:{world.general.id}/")
            assert (vet["category"], vet["links"]) == ("core", ["pet"])
            found = json.loads(
                world.cli("recall", str(world.ann.id), "what is my cat called?", "--json").stdout
            )
            always, best = [one for one in found if one["outcome"].startswith("shown")]
            assert always["key"] == "vet"  # core comes first
            assert (best["id"], best["key"], best["content"]) == (pet["id"], "pet", newer)
            assert best["score"] > always["score"] > 0
            _, why = await call(world, ("memory_history", {"item": "vet"}))
            assert VET in why and newer not in why
            for category, text in (("core", VET), ("knowledge", newer)):
                given = {"query": "cat", "category": category, "limit": 1}
                _, listed = await call(world, ("memory_search", given))
                assert text in listed and listed.count("- [") == 1

    @pytest.mark.design(101, 121, 328)
    async def test_are_forgotten_with_the_links_to_them(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await call(
                world,
                ("memory_store", {"text": VET, "key": "vet"}),
                ("memory_store", {"text": CAT, "key": "pet", "links": ["vet"]}),
            )
            failed, text = await call(world, ("memory_forget", {"key": "vet"}))
            assert (failed, text.split(" [")[0]) == (False, "Forgotten:")
            _, text = await call(world, ("memory_recall", {"query": "cat", "depth": 1}))
            assert text.splitlines() == [BLOCK[0], f"- pet: {CAT}", BLOCK[1]]
            assert [(one["key"], one["links"]) for one in snapshot(world)] == [("pet", [])]
            failed, text = await call(world, ("memory_forget", {"key": "vet"}))
            assert failed and text.startswith("nothing matches the key 'vet'")
            for employer, scope in (("Acme", "work"), ("Initech", "permanent")):
                relation = {"subject": "Lena", "predicate": "works at", "object": employer}
                await call(world, ("memory_add", {**relation, "scope": scope}))
            _, text = await call(world, ("memory_forget", {"subject": "Lena", "predicate": "works at"}))
            assert text.count("Forgotten: [i") == 2
            assert [one["key"] for one in snapshot(world)] == ["pet"]

    @pytest.mark.design(107, 109, 111, 112, 113, 114, 115, 118, 123, 330)
    async def test_are_found_by_words_of_any_script_with_neighbours_and_a_wrong_call_is_answered(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            for key, text, links in (
                ("far", "The clinic closes at noon.", []),
                ("vet", VET, ["far"]),
                ("food", "Sardines are in the cellar.", ["vet"]),
                ("pet", CAT, ["vet", "food"]),
                ("car", "Repaired last week in the small garage.", []),
                ("trip", "Rented some car last week for the holidays.", []),
                ("rug", "Owns one blue carpet.", []),
                ("zoo", "Saw the zebra and the giraffe.", []),
                ("neko", "私は猫が好きです", []),
            ):
                await call(world, ("memory_store", {"text": text, "key": key, "links": links}))

            async def found(query: str, **more: int) -> list[str]:
                _, text = await call(world, ("memory_recall", {"query": query, "depth": 0, **more}))
                return keys(text)

            assert await found("cat") == ["pet"]
            assert sorted(await found("cat", depth=1)) == ["food", "pet", "vet"]
            assert sorted(await found("cat", depth=2)) == ["far", "food", "pet", "vet"]
            assert len(await found("cat", depth=1, limit=1)) == 2  # no more neighbours than the limit
            assert await found("car") == ["car", "trip"]  # whole words, of the key too
            assert await found("猫") == await found("好き") == ["neko"]
            assert (await found("iraff"), await found("girafe")) == ([], ["zoo"])
            nothing = (False, "Nothing is remembered that fits.")
            assert await call(world, ("memory_recall", {"query": " ?! "})) == nothing
            for name, given, words in (
                ("memory_recall", {"query": ""}, "query: String should have at least 1 character"),
                ("memory_forget", {}, "name it by item, by key, or by subject and predicate"),
                ("memory_link", {}, "action: Field required; from: Field required; to: Field required"),
            ):
                failed, text = await call(world, (name, given))
                assert failed and words in text


class TestEntriesInThePrompt:
    @pytest.mark.design(125, 126, 127)
    async def test_are_more_than_a_limit_core_once_and_linked_ones(self, start: Start) -> None:
        teas = [f"Drinks {tea} tea." for tea in ("green", "black", "white", "iced", "mint")]
        async with start(recall_limit=2, **QUIET) as world:
            for text in teas:
                await call(world, ("memory_store", {"text": text}))
            await call(
                world,
                ("memory_store", {"text": "The pot is cracked.", "key": "pot"}),
                ("memory_store", {"text": "Drinks oolong tea.", "links": ["pot"]}),
                ("memory_store", {"text": "Never wants milk in tea.", "category": "core"}),
            )
            await world.says(world.ann, world.dev, "which tea do I drink?")
            assert all(text in world.prompt for text in teas)
            assert world.prompt.count("Never wants milk in tea.") == 1
            assert "The pot is cracked." in world.prompt
            await world.says(world.ann, world.general, "hello")
            assert "Never wants milk in tea." in world.prompt and teas[0] not in world.prompt
            await world.restart(enrich_depth=0)
            await world.says(world.ann, world.dev, "which oolong tea do I drink?")
            assert "Drinks oolong tea." in world.prompt and "The pot is cracked." not in world.prompt

    @pytest.mark.design(128, 129, 131)
    async def test_are_a_section_or_nothing(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await call(world, ("memory_store", {"text": CAT, "key": "pet"}))
            await world.says(world.ann, world.dev, "what does my cat eat?")
            section, _, rest = world.prompt.partition(DURABLE)[2].partition("\n\n")
            assert f"- [fact] {CAT} (src: discord:{world.general.id}/" in section
            assert rest.endswith("what does my cat eat?") and BLOCK[0] not in world.prompt
            assert "Don't look up what you were given." in world.turns()[-1].system
            for person, place in ((world.ann, world.general), (world.bob, world.dev)):
                await world.says(person, place, "hello")
                assert CAT not in world.prompt and DURABLE not in world.prompt
            for off in ({"inject_max_chars": 0}, {"inject_max_chars": 2000, "store": "none"}):
                await world.restart(**off)
                await world.says(world.ann, world.dev, "what does my cat eat?")
                assert CAT not in world.prompt and DURABLE not in world.prompt


class TestTriples:
    @pytest.mark.design(263, 267, 269, 272, 285, 291, 292, 293, 296)
    async def test_are_added_once_found_by_scope_and_subject_updated_and_told(self, start: Start) -> None:
        async with start(**QUIET) as world:
            for answer in ("Remembered", "Already remembered"):
                _, text = await call(world, ("memory_add", BACKEND))
                assert text.startswith(f"{answer}: User prefers backend Python [i")
            for unsure in (1.5, -0.1):
                failed, text = await call(world, ("memory_add", {**BACKEND, "confidence": unsure}))
                assert failed and "confidence: Input should be" in text
            ((added,),) = [one["events"] for one in commits(world)]
            assert {name: added[name] for name in BACKEND} == BACKEND
            assert (added["event_type"], added["parent_id"], added["sensitivity"]) == ("add", None, "normal")
            assert added["source"].startswith(f"discord:{world.general.id}/") and added["evidence"]
            assert added["timestamp"].startswith("2026-01-01T00:00:00") and len(added["id"]) == 16
            for more in ({"scope": "work/technical"}, {"subject": "user"}, {}):
                _, text = await call(world, ("memory_search", {"query": "backend", **more}))
                assert "User prefers backend Python" in text
            for more in ({"scope": "session"}, {"subject": "cat"}):
                found = await call(world, ("memory_search", {"query": "backend", **more}))
                assert found == (False, "No item fits.")

            new = {"id": "User prefers backend Python", "text": "User prefers backend Rust."}
            await call(world, ("memory_update", new))
            (modified,) = commits(world)[-1]["events"]
            assert (modified["event_type"], modified["parent_id"]) == ("modify", added["id"])
            assert {name: modified[name] for name in BACKEND} == {**BACKEND, "object": "Rust"}
            shown = await world.says(world.ann, world.general, "!memory show")
            assert "You prefer backend Rust." in shown and "Python" not in shown
            for given in ({}, {"item": "User prefers backend Rust."}):
                _, text = await call(world, ("memory_history", given))
                assert "(taken back)" in text and "Rust" in text and "Python" not in text
                assert all(one["id"] in text for one in commits(world))
                assert text.count(f"discord:{world.general.id}/") >= 2
            named = {"subject": "user", "predicate": "prefers backend"}  # which an update may end
            for text, kept in (("user  prefers BACKEND Go.", True), ("User prefers backends in Go.", False)):
                await call(world, ("memory_forget", named))
                await call(world, ("memory_add", {**BACKEND, "object": "Java"}))
                await call(world, ("memory_update", {"id": "User prefers backend Java", "text": text}))
                failed, _ = await call(world, ("memory_forget", named))
                assert (text, failed) == (text, not kept)

    @pytest.mark.design(264, 265, 271, 294, 328)
    async def test_are_forgotten_in_any_scope_and_their_history_is_kept(self, start: Start) -> None:
        named = {"subject": "user", "predicate": "prefers backend"}
        async with start(**QUIET) as world:
            for number, scope in enumerate(("session", "work/technical")):
                await call(world, ("memory_add", {**BACKEND, "object": f"Lang{number}", "scope": scope}))
                failed, _ = await call(world, ("memory_forget", {**named, "scope": "elsewhere"}))
                assert failed and len(commits(world)) == 2 * number + 1
                failed, text = await call(world, ("memory_forget", named))
                assert not failed and text.startswith("Forgotten: [i")
                assert "(0 memories)" in await world.says(world.ann, world.general, "!memory show")
                ((added,), (gone,)) = [one["events"] for one in commits(world)[-2:]]
                assert (added["object"], added["scope"]) == (f"Lang{number}", scope)
                assert (gone["event_type"], gone["parent_id"]) == ("forget", added["id"])
                assert [gone[name] for name in named] == [added[name] for name in named]
            _, text = await call(world, ("memory_history", {}))
            assert text.count("(taken back)") == 4 and "Lang" not in text
            failed, text = await call(world, ("memory_forget", named))
            assert failed and "nothing matches" in text


class TestPersonasOfTheModel:
    @pytest.mark.design(282, 283, 284, 295)
    async def test_are_created_listed_and_proposed_or_switched(self, start: Start) -> None:
        async with start(**QUIET) as world:

            async def says(words: str) -> str:
                return await world.says(world.ann, world.general, f"!memory {words}")

            await says("remember I like tea")
            create = {"action": "create", "name": "coding", "description": "my code"}
            await call(world, ("memory_branch", create))
            failed, _ = await call(world, ("memory_branch", create))
            assert failed
            _, text = await call(world, ("memory_branch", {"action": "list"}))
            main, coding = text.splitlines()
            assert main.startswith("* main") and "1 item" in main
            assert coding.startswith("  coding") and "1 item" in coding and "“my code”" in coding
            switch = {"action": "switch", "name": "coding"}
            failed, text = await call(world, ("memory_branch", {**switch, "name": "codin"}))
            assert failed and "there are: main, coding" in text
            world.brain.calls("memory_branch", switch, "Here is your code.", about="fix my code")
            told = await world.says(world.ann, world.general, "please fix my code")
            assert told == "-# Switch to your persona **coding**?"
            offer = world.general.last_message
            assert "**main** (current)" in await says("branches")
            refused = await world.bob.click(offer, label="Switch to coding")
            assert refused.response.content == "These buttons are for somebody else."
            await world.restart()
            await world.ann.click(offer, label="Switch to coding")
            assert "-# Your persona is now **coding**." in world.shown(world.general)
            assert "**coding** (current)" in await says("branches")
            await says("checkout main")
            await says("autoswitch on")
            await call(world, ("memory_branch", switch))
            assert "**coding** (current)" in await says("branches")
            await says("remember I use vim")
            await says("checkout main")
            assert "vim" not in await says("show")

    @pytest.mark.design(286, 287)
    async def test_two_objects_of_one_triple_on_two_of_them_are_a_question(self, start: Start) -> None:
        async with start(**QUIET) as world:

            async def says(words: str) -> str:
                return await world.says(world.ann, world.general, f"!memory {words}")

            world.brain.writes("how", {"how": "keep_old", "reason": "You said so."})
            await says("create-branch work")
            await call(world, ("memory_add", BACKEND))
            await says("checkout work")
            await call(world, ("memory_add", {**BACKEND, "object": "Rust"}))
            await says("checkout main")
            answer = await says("merge work")
            assert "no memory changed" in answer
            assert "ours stays: “You prefer backend Python”; theirs: “You prefer backend Rust”" in answer
            shown, _, questions = (await says("show")).partition("**To settle**")
            assert "You prefer backend Python" in shown and "Rust" not in shown
            assert "another persona says “You prefer backend Rust”" in questions
            assert (await says("merge work")).startswith("Nothing to do")
