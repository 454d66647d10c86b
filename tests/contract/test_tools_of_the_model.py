"""The memory tools of the model: what it reads, what is remembered, and whose memory they reach."""

import json
from typing import Any

import pytest

from tests.contract.cards import said
from tests.contract.world import Start, World

CAT = "User has a cat called Tom."
VET = "Dr. Paw looks after animals in Elm Street."
TEAS = ("green", "black", "white", "iced", "mint", "chai", "bubble")
ALL = [
    "memory_search",
    "memory_store",
    "memory_update",
    "memory_forget",
    "remind",
    "memory_recall",
    "memory_add",
    "memory_link",
    "memory_branch",
    "memory_history",
    "memory_consolidate",
]
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}


async def call(
    world: World, name: str, place: Any = None, person: Any = None, /, **given: Any
) -> tuple[bool, str]:
    """Somebody (Ann) writes, and the model makes one call: whether it failed, and what the model read."""
    world.brain.calls(name, given, "Done.", about="please")
    assert await world.says(person or world.ann, place or world.general, "please") == "Done."
    (result,) = world.turns()[-1].body["messages"][-1]["content"]
    return bool(result.get("is_error")), result["content"]


async def stored(world: World, *texts: str, **more: Any) -> None:
    for one in texts:
        failed, _ = await call(world, "memory_store", text=one, **more)
        assert not failed


async def linked(world: World) -> bool:
    """Whether recall shows that the cat and the vet are linked, in both directions."""
    _, text = await call(world, "memory_recall", query="cat Tom Dr. Paw looks after animals")
    _, *lines, _ = text.splitlines()
    both = ["[links: " in line for line in lines]
    assert len(both) == 2 and both[0] == both[1], text
    return both[0]


class TestWhatIsOffered:
    async def test_is_the_same_whatever_is_said_and_nothing_without_a_memory_or_tools(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, CAT, VET)
            await world.says(world.ann, world.general, "!memory create-branch work")
            for words in ("thanks!", "please link these two, and tidy up", "seit wann weißt du das?"):
                await world.says(world.ann, world.general, words)
            await world.says(world.bob, world.dev, "hello")
            await call(world, "memory_forget", item=VET)
            offered = [one.body["tools"] for one in world.turns()]
            assert [tool["name"] for tool in offered[0]] == ALL
            assert all(tools == offered[0] for tools in offered)
            assert [tool["name"] for tool in offered[0] if "cache_control" in tool] == ALL[-1:]
            link = world.turns()[0].tools["memory_link"]
            assert list(link["properties"]) == link["required"] == ["action", "from", "to"]
            assert link["properties"]["action"]["enum"] == ["link", "unlink"]
            for one in offered[0]:
                assert one["input_schema"]["additionalProperties"] is False and len(one["description"]) > 40
                needless = ('"title"', "null", "minLength")
                assert not any(word in json.dumps(one["input_schema"]) for word in needless)
            needs = {name: set(schema.get("required", ())) for name, schema in world.turns()[0].tools.items()}
            assert needs["memory_recall"] == needs["memory_search"] == {"query"}
            assert needs["memory_add"] == {"subject", "predicate", "object"}
            await world.says(world.ann, world.general, "!memory optout")
            await world.says(world.ann, world.general, "what is my cat called?")
            assert world.turns()[-1].tools == {} and "Tom" not in world.prompt
        async with start(**QUIET, tools_enabled=False) as world:
            world.brain.calls("memory_store", {"text": "User naps."}, "Hi.")
            await world.says(world.ann, world.general, "please")
            assert world.turns()[0].tools == {} and world.memories(world.ann) == []


class TestSearching:
    @pytest.mark.design(99, 119, 120, 128, 157)
    async def test_finds_memories_by_words_within_its_limit_and_as_a_block_with_links(
        self, start: Start
    ) -> None:
        async with start(**QUIET, recall_limit=2) as world:
            assert await call(world, "memory_search", query="cats") == (
                False,
                "Nothing is remembered of this person yet.",
            )
            await world.remember(world.ann, *(f"Drinks {tea} tea." for tea in TEAS))
            for given, shown in (({}, 2), ({"limit": 6}, 6)):
                for tool in ("memory_recall", "memory_search"):
                    _, text = await call(world, tool, query="tea", **given)
                    assert text.count("Drinks") == shown, (tool, given)
            assert text.splitlines()[-1] == "(6 of 7 shown; narrow it down.)"
            _, text = await call(world, "memory_search", query="boat", limit=2)
            head, *newest = text.splitlines()
            assert head.startswith("No item has these words.")
            assert [line.split(" (")[0] for line in newest] == [
                "- [fact] Drinks bubble tea.",
                "- [fact] Drinks chai tea.",
            ]
            await stored(world, VET, key="vet")
            await stored(world, CAT, key="pet", links=["vet"])
            for given, lines in (
                ({"query": "cat"}, [f"- pet: {CAT} [links: vet]"]),
                ({"query": "cat", "depth": 1}, [f"- pet: {CAT} [links: vet]", f"- vet: {VET} [links: pet]"]),
                ({"query": "cat", "category": "knowledge"}, [f"- pet: {CAT} [links: vet]"]),
            ):
                _, text = await call(world, "memory_recall", **given)
                assert text.splitlines() == ["[Memory context]", *lines, "[/Memory context]"]
            for given in ({"query": "cat", "category": "core"}, {"query": "quantum chess"}):
                assert (await call(world, "memory_recall", **given))[1] == "Nothing is remembered that fits."

    async def test_shows_when_something_was_true_and_private_memories_in_dms_only(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, "User lives in Linz.")
            await world.env.advance_time(40 * 86_400)
            await world.remember(world.ann, "User lives in Graz.")
            _, text = await call(world, "memory_search", query="where does the user live, Linz or Graz?")
            assert text.splitlines() == [
                "- [fact] User lives in Graz. (src: manual, updated 2026-02-10) [i1]",
                "- [fact] (until 2026-02) User lives in Linz. (src: manual, updated 2026-01-01) [i2]",
            ]
            await stored(world, CAT, private=True)
            await world.remember(world.bob, "User has a cat called Max.")
            await world.remember(world.ann, "User has a cat called Eve.")
            await world.says(world.ann, world.general, "!memory forget User has a cat called Eve.")
            for place, found in ((world.general, False), (world.hidden, False), (world.ann_dm, True)):
                world.env.backend.get_channel(world.hidden.id).overwrites.clear()
                _, text = await call(world, "memory_search", place, query="cat")
                assert ("Tom" in text) is found and "Max" not in text and "Eve" not in text


class TestStoring:
    async def test_adds_a_memory_or_a_relation_once_with_its_message_and_in_a_dm_a_private_one(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            given = {"text": "User prefers tabs.", "kind": "preference", "tags": ["Tabs"]}
            assert await call(world, "memory_store", **given) == (
                False,
                "Remembered: User prefers tabs. [i1].",
            )
            (item,) = world.items(world.ann)
            asked = next(one for one in world.general.history() if one.content == "please")
            assert (item["kind"], item["tags"]) == ("preference", ["tabs"])
            assert item["source"] == {
                "type": "discord",
                "channelId": str(world.general.id),
                "messageId": str(asked.id),
            }
            (path,) = (world.data / "memory" / "ledger").glob("user-*.jsonl")
            (commit,) = map(json.loads, path.read_text().splitlines())
            assert commit["message"] == "memory_store during a talk"
            before = path.read_bytes()
            _, text = await call(world, "memory_store", text="user  prefers TABS.", kind="preference")
            assert text.startswith("Already remembered: User prefers tabs.") and path.read_bytes() == before
        async with start(**QUIET, dm_privacy="strict") as world:
            _, text = await call(world, "memory_store", world.ann_dm, text=CAT)
            assert text.endswith("It is private: used in DMs with this person only.")
            await call(world, "memory_store", text="User has a fish.", private=True)
            await world.says(world.ann, world.general, "do I have a cat and a fish?")
            assert "Tom" not in world.prompt and "fish." not in world.prompt
            await world.says(world.ann, world.ann_dm, "do I have a cat and a fish?")
            assert "Tom" in world.prompt and "User has a fish." in world.prompt
        async with start(**QUIET) as world:
            relation = {"subject": "Lena", "predicate": "works at", "object": "Acme"}
            failed, text = await call(world, "memory_add", **relation, scope="work", confidence=0.75)
            assert (failed, text.split(" [")[0]) == (False, "Remembered: Lena works at Acme")
            (path,) = (world.data / "memory" / "ledger").glob("user-*.jsonl")
            (event,) = [one for line in path.read_text().splitlines() for one in json.loads(line)["events"]]
            fields = ("event_type", "subject", "predicate", "object", "scope", "confidence")
            assert [event[name] for name in fields] == ["add", "Lena", "works at", "Acme", "work", 0.75]
            await call(world, "memory_add", subject="user", predicate="likes", object="Acme")
            _, text = await call(world, "memory_search", query="Acme", subject="lena")
            assert "Lena works at Acme" in text and "likes" not in text
            failed, text = await call(world, "memory_add", subject="Lena")
            assert failed and "predicate: Field required; object: Field required" in text
            log = await world.says(world.ann, world.general, "!memory log")
            assert "by me, while we talked" in log


class TestChanging:
    async def test_keeps_the_id_overrules_nobody_and_forgets_by_id_or_text_for_good(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await stored(world, "User uses vim.")
            (before,) = world.items(world.ann)
            failed, text = await call(world, "memory_update", id=before["id"], text="User uses emacs.")
            assert not failed and text.startswith("Updated: User uses emacs. [i1].")
            (after,) = world.items(world.ann)
            assert (after["id"], after["text"]) == (before["id"], "User uses emacs.")
            await world.remember(world.ann, "User prefers tabs.")
            await world.env.advance_time(60)
            failed, text = await call(
                world, "memory_update", id="User prefers tabs.", text="User prefers spaces."
            )
            assert not failed and "asked to settle it" in text
            assert "User prefers tabs." in world.memories(world.ann)
        async with start(summary_enabled=False, durable_every=2) as world:
            world.brain.learns("User prefers tabs.", about="I prefer tabs")
            for named in ("bare id", "text"):
                await world.remember(world.ann, "User prefers tabs.")
                (item,) = [one for one in world.items(world.ann) if one["status"] == "active"]
                names = {"bare id": item["id"].removeprefix("durable-")}
                await world.says(world.ann, world.general, "I prefer tabs")
                await world.env.advance_time(60)
                failed, text = await call(world, "memory_forget", item=names.get(named, "prefers tabs"))
                assert not failed and text.startswith("Forgotten: [i1].")
                await world.says(world.ann, world.general, "hm")
                assert world.memories(world.ann) == []
            assert world.background("upserts")

    async def test_names_a_memory_by_its_key_and_reaches_the_speakers_alone(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await stored(world, CAT, key="pet")
            max_ = "User has a cat called Max."
            assert not (await call(world, "memory_update", id="pet", text=max_))[0]
            assert "Max" in (await call(world, "memory_history", item="pet"))[1]
            assert world.memories(world.ann) == [max_]
            await world.says(world.ann, world.general, "!memory forget pet")
            assert world.memories(world.ann) == []
            await world.remember(world.bob, "User has a dog.")
            (theirs,) = world.items(world.bob)
            for name, given in (
                ("memory_update", {"id": theirs["id"], "text": "User has no dog."}),
                ("memory_forget", {"item": theirs["id"]}),
            ):
                failed, text = await call(world, name, **given)
                assert failed and "no item matches" in text
            assert world.memories(world.bob) == ["User has a dog."]


class TestLinking:
    @pytest.mark.design(105, 106, 122, 123)
    async def test_goes_by_id_key_or_text_in_both_directions_and_says_what_is_wrong(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await stored(world, CAT, key="pet")
            await stored(world, VET, key="vet:name")
            cat = world.items(world.ann)[0]["id"]
            for one, other in (
                (cat, "vet:name"),
                ("looks after animals in elm street", "pet"),
            ):
                for action, done in (("link", "linked"), ("unlink", "unlinked")):
                    given = {"action": action, "from": one, "to": other}
                    failed, text = await call(world, "memory_link", **given)
                    assert not failed and text.endswith(f": {done}.")
                    assert await linked(world) is (action == "link")
            assert (await call(world, "memory_link", **given))[1] == "They aren't linked."
            link = {**given, "action": "link"}
            await call(world, "memory_link", **link)
            assert (await call(world, "memory_link", **link))[1] == "They are linked already."
        async with start(**QUIET) as world:
            await stored(world, CAT, VET)
            for given, words in (
                ({"action": "join", "from": CAT, "to": VET}, "action: Input should be 'link' or 'unlink'"),
                ({"action": "link", "to": VET}, "from: Field required"),
                ({"action": "link", "from": CAT}, "to: Field required"),
                ({"action": "link", "from": CAT, "to": "dog"}, "no item matches 'dog'"),
                ({"action": "link", "from": CAT, "to": CAT}, "an item can't be linked with itself"),
            ):
                failed, text = await call(world, "memory_link", **given)
                assert failed and words in text
            assert not await linked(world)

    @pytest.mark.design(119)
    async def test_while_storing_loses_no_memory_and_is_the_reason_why_an_answer_had_one(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await stored(world, CAT, key="pet")
            failed, text = await call(world, "memory_store", text=VET, key="vet", links=["dog", "pet", "vet"])
            first, second, third = text.splitlines()
            assert not failed and first == f"Remembered: {VET} [i1]."
            assert second.startswith("Not linked: no item matches 'dog'")
            assert third.startswith("Not linked: no item matches 'vet'")
            assert await linked(world)
        async with start(**QUIET) as world:
            await stored(world, CAT, VET)
            await world.remember(world.ann, *(f"User owns tool number {n} of the shed." for n in range(30)))
            await call(world, "memory_link", **{"action": "link", "from": CAT, "to": VET})
            await world.says(world.ann, world.general, "my cat Tom is ill")
            why = said((await world.ann.slash(world.general, "memory why")).response)
            assert "linked with “You have a cat called Tom.”" in why
            why = said((await world.ann.slash(world.general, "memory why", memory="cat")).response)
            assert f"linked with “{VET}”" in why


class TestShortIds:
    """A prompt's line shows the id by which tools name its item, in this turn."""

    async def test_name_what_was_shown_whatever_changes_meanwhile_and_nothing_else(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, CAT, VET)
            world.brain.calls("memory_forget", {"item": "i2"}, about="what else")
            world.brain.calls("memory_store", {"text": "User has a red cup."}, about="what else")
            world.brain.calls(
                "memory_update", {"id": "[I1]", "text": "User has two cats."}, "Done.", about="what else"
            )
            shown = await world.says(world.ann, world.general, "what else do you remember about me?")
            assert shown == "Done."
            lines = [line for line in world.prompt.splitlines() if line.startswith("- [fact]")]
            assert [line.rpartition(" ")[2] for line in lines] == ["[i1]", "[i2]"]
            assert CAT in lines[0] and VET in lines[1]
            forgotten, added, updated = (one[2] for one in world.turns()[-1].talk if one[0] == "result")
            assert forgotten.startswith("Forgotten: [i2].")
            assert added == "Remembered: User has a red cup. [i3]."
            # A command said so after the message, and the item is still the one that the prompt showed.
            assert updated.startswith("Not changed") and updated.endswith(f"{CAT} [i1].")
            assert world.memories(world.ann) == [CAT, "User has a red cup."]
        async with start(**QUIET) as world:
            await world.remember(world.ann, CAT)
            for tool, given in (
                ("memory_forget", {"item": "i7"}),
                ("memory_update", {"id": "i7", "text": "User has no cat."}),
                ("memory_link", {"action": "link", "from": CAT, "to": "[i7]"}),
                ("memory_history", {"item": "i7"}),
            ):
                failed, text = await call(world, tool, **given)
                assert failed and text.startswith("no item was shown as") and "memory_search" in text
            await stored(world, VET, key="i7")
            _, text = await call(world, "memory_forget", item="i7")
            assert text.startswith("Forgotten: [i") and world.memories(world.ann) == [CAT]


class TestAFlawedCall:
    async def test_is_told_in_words_and_changes_nothing_as_with_a_memory_that_cannot_be_used(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, "User has a cat: Tom", "User has a cat: Max")
            await stored(world, "User has diabetes.", private=True)
            secret = world.items(world.ann)[-1]["id"]
            before = world.durable(world.ann).read_bytes()
            for name, given, words in (
                ("memory_erase", {}, "there is no tool 'memory_erase'; use memory_search, memory_store, "),
                ("memory_store", {}, "memory_store was not called correctly: text: Field required"),
                ("memory_store", {"text": ""}, "text: String should have at least 1 character"),
                ("memory_store", {"text": "x" * 1500}, "at most 1000 characters, and this one has 1500"),
                ("memory_store", {"text": " \n "}, "there is no text to remember"),
                ("memory_store", {"text": "User naps.", "kind": "secret"}, "kind: Input should be 'pref"),
                ("memory_store", {"text": "User naps.", "user": "2"}, "user: Extra inputs are not permit"),
                ("memory_search", {"query": "cat", "limit": 0}, "limit: Input should be greater than or"),
                ("memory_update", {"id": "durable-0", "text": "x"}, "no item matches 'durable-0'"),
                ("memory_forget", {"item": "cat"}, "no item matches 'cat'"),
                ("memory_forget", {"item": "user has a cat"}, "matches 2 items, name one by its id"),
                ("memory_forget", {"item": secret}, "no item matches"),
                ("memory_update", {"id": secret, "text": "User is well."}, "no item matches"),
            ):
                failed, text = await call(world, name, **given)
                assert failed and words in text and "http" not in text, (name, given, text)
            assert world.durable(world.ann).read_bytes() == before
        async with start(**QUIET) as world:
            (world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl").mkdir(parents=True)
            told = await call(world, "memory_store", text="User prefers tabs.")
            assert told == (True, "memory cannot be used right now; nothing was changed")
