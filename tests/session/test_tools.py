"""The memory tools of the model: whose memory they reach, and what they say when they cannot."""

import hashlib
import json
from pathlib import Path

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.patch import Patch, Upsert
from discoclaw.core.policy import Policy
from tests.core.builders import DAY
from tests.session.scene import (
    ANN,
    BOB,
    DM,
    GENERAL,
    HIDDEN,
    House,
    Place,
    Recorder,
    ScriptedModel,
    calls,
    house,
    inbound,
)

ALWAYS = Policy("all")
SECRET = Origin("stated", private=True)


async def call(
    home: House, name: str, place: Place = GENERAL, /, *, author=ANN, number: int = 1000, **given: object
) -> tuple[bool, str]:
    """One tool call in a turn: whether it failed, and what the model read."""
    home.model.answers.extend([calls((name, given)), "Done."])
    home.hear(message := inbound(number, "please", author, place), ALWAYS)
    home.answer(message, Recorder())
    await home.desk.settle()
    (result,) = home.model.results()
    return result


def hashes(home: House, *but: str) -> dict[str, str]:
    """What lies on disk of everybody, but of those named."""
    files = [*home.memory.ledger_folder.glob("*"), *home.memory.durable_folder.glob("*")]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(one in path.name for one in but)
    }


class TestSearch:
    async def test_it_finds_items_and_shows_their_ids(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.")
        failed, text = await call(home, "memory_search", query="what is my cat called")
        assert not failed
        assert text == "- [fact] User has a cat called Tom. (src: manual, updated 2026-02-02) [i1]"

    async def test_the_newest_comes_first_and_says_that_older_ones_ended(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User lives in Linz.")
        home.clock.forward(40 * DAY)
        await home.remember(ANN, "User lives in Graz.")
        _, text = await call(home, "memory_search", query="where does the user live, Linz or Graz?")
        assert text.splitlines() == [
            "- [fact] User lives in Graz. (src: manual, updated 2026-03-14) [i1]",
            "- [fact] (until 2026-03) User lives in Linz. (src: manual, updated 2026-02-02) [i2]",
        ]

    async def test_an_empty_memory_is_said(self, tmp_path: Path) -> None:
        failed, text = await call(house(tmp_path), "memory_search", query="cats")
        assert (failed, text) == (False, "Nothing is remembered of this person yet.")

    async def test_when_no_item_has_the_words_that_is_said_and_the_newest_are_shown(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path)
        for number in range(3):
            await home.remember(ANN, f"User has cat number {number}.")
        _, text = await call(home, "memory_search", query="boat", limit=2)
        head, *shown = text.splitlines()
        assert head.startswith("No item has these words.")
        assert [line.split("(")[0] for line in shown] == [
            "- [fact] User has cat number 2. ",
            "- [fact] User has cat number 1. ",
        ]

    async def test_it_is_limited(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for number in range(6):
            await home.remember(ANN, f"User has cat number {number}.")
        _, text = await call(home, "memory_search", query="cat", limit=2)
        *shown, more = text.splitlines()
        assert (len(shown), more) == (2, "(2 of 6 shown; narrow it down.)")
        _, text = await call(home, "memory_search", query="cat", limit=6)
        assert len(text.splitlines()) == 6

    @pytest.mark.parametrize(("place", "found"), [(DM, True), (GENERAL, False), (HIDDEN, False)])
    async def test_private_items_are_found_in_direct_messages_only(
        self, tmp_path: Path, place: Place, found: bool
    ) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.", origin=SECRET)
        _, text = await call(home, "memory_search", place, query="cat")
        assert ("Tom" in text) is found

    async def test_confidential_forgotten_and_others_items_are_never_found(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.", marked="confidential")
        await home.remember(BOB, "User has a cat called Max.")
        gone = await home.remember(ANN, "User has a cat called Eve.")
        await home.memory.change("user-1", "a test", lambda draft: draft.deprecate(gone, Origin("stated")))
        for query in ("cat", "boat"):
            _, text = await call(home, "memory_search", DM, query=query)
            assert text == "Nothing is remembered of this person yet."


class TestStore:
    async def test_an_item_is_added_with_the_message_as_its_source(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        failed, text = await call(
            home, "memory_store", text="User prefers tabs.", kind="preference", tags=["Tabs"]
        )
        (item,) = (await home.memory.view("user-1")).active()
        assert (failed, text) == (False, "Remembered: User prefers tabs. [i1].")
        assert (item.kind, item.tags, str(item.source)) == ("preference", ("tabs",), "discord:10/1000")

    async def test_the_commit_names_tool_and_message(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_store", text="User prefers tabs.")
        (line,) = (home.memory.ledger_folder / "user-1.jsonl").read_text(encoding="utf-8").splitlines()
        commit = json.loads(line)
        assert commit["message"] == "memory_store during a talk"
        assert commit["metadata"] == {"by": "memory_store", "message": "discord:10/1000"}

    async def test_only_the_speakers_files_change(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat.")
        theirs = await home.remember(BOB, "User has a dog.")
        before = hashes(home, "1.json")
        await call(home, "memory_store", text="User has a fish.")
        await call(home, "memory_update", id=theirs.id, text="User has no dog.")
        await call(home, "memory_forget", item=theirs.id)
        assert hashes(home, "1.json") == before
        assert await home.texts(ANN) == ["User has a cat.", "User has a fish."]

    @pytest.mark.parametrize("place", [DM, HIDDEN])
    async def test_what_is_told_in_confidence_stays_there_and_this_is_said(
        self, tmp_path: Path, place: Place
    ) -> None:
        home = house(tmp_path)
        _, text = await call(home, "memory_store", place, text="User has a cat.")
        assert text.endswith("It is private: used in DMs with this person only.")
        (item,) = (await home.memory.view("user-1")).active()
        assert item.facets.sensitivity == "private"

    async def test_it_can_be_asked_for(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_store", text="User has a cat.", private=True)
        (item,) = (await home.memory.view("user-1")).active()
        assert item.facets.sensitivity == "private"

    async def test_twice_is_once(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await call(home, "memory_store", text="User has a cat.")
        before = hashes(home)
        _, text = await call(home, "memory_store", text="user has  a CAT.", number=1001)
        assert text.startswith("Already remembered: User has a cat.")
        assert hashes(home) == before


class TestUpdate:
    async def test_the_item_keeps_its_id(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        held = await home.remember(ANN, "User uses vim.", "tool", origin=Origin("inferred"))
        failed, text = await call(home, "memory_update", id=held.id, text="User uses emacs.")
        assert (failed, text) == (False, "Updated: User uses emacs. [i1].")
        assert await home.texts(ANN) == ["User uses emacs."]

    async def test_a_private_item_stays_private(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        held = await home.remember(ANN, "User has a cat.", origin=Origin("inferred", private=True))
        await call(home, "memory_update", DM, id=held.id, text="User has two cats.")
        assert (await home.memory.view("user-1")).items[held.id].facets.sensitivity == "private"


class TestForget:
    @pytest.mark.parametrize("named", ["id", "bare id", "text"])
    async def test_the_item_is_no_longer_used(self, tmp_path: Path, named: str) -> None:
        home = house(tmp_path)
        held = await home.remember(ANN, "User prefers tabs.", "preference")
        names = {"id": held.id, "bare id": held.id.removeprefix("durable-"), "text": "prefers tabs"}
        failed, text = await call(home, "memory_forget", item=names[named])
        assert (failed, text) == (False, "Forgotten: [i1].")
        assert await home.texts(ANN) == []

    @pytest.mark.parametrize("author", ["stated", "inferred"])
    async def test_older_words_do_not_bring_it_back(self, tmp_path: Path, author) -> None:
        """ "I prefer tabs" still waits for extraction when its person says: forget that."""
        home = house(tmp_path, facts_every=1)
        held = await home.remember(ANN, "User prefers tabs.", "preference", origin=Origin(author))
        home.hear(inbound(500, "I prefer tabs"), ALWAYS)
        home.clock.forward(60_000)
        proposal = Upsert(
            kind="preference",
            text="User prefers tabs.",
            source="I prefer tabs",
            quote="",
        )
        home.model.patches.append(Patch(upserts=[proposal]))
        await call(home, "memory_forget", item=held.id)
        await home.settle()
        assert len(home.model.extractions) == 1
        assert await home.texts(ANN) == []


class TestFailuresAreClear:
    @pytest.mark.parametrize(
        ("name", "given", "words"),
        [
            (
                "memory_erase",
                {},
                "there is no tool 'memory_erase'; use memory_search, memory_store, memory_update, ",
            ),
            (
                "memory_store",
                {},
                "memory_store was not called correctly: text: Field required",
            ),
            ("memory_store", {"text": ""}, "text: String should have at least 1 character"),
            ("memory_store", {"text": 7}, "text: Input should be a valid string"),
            ("memory_store", {"text": "x" * 2001}, "text: String should have at most 2000 characters"),
            (
                "memory_store",
                {"text": "x" * 1500},
                "at most 1000 characters, and this one has 1500; please shorten it",
            ),
            ("memory_store", {"text": " \n "}, "there is no text to remember"),
            ("memory_store", {"text": "User naps.", "kind": "secret"}, "kind: Input should be 'preference'"),
            ("memory_store", {"text": "User naps.", "user": "2"}, "user: Extra inputs are not permitted"),
            ("memory_search", {"query": "cat", "limit": 0}, "limit: Input should be greater than or equal"),
            ("memory_search", {"query": ["cat"]}, "query: Input should be a valid string"),
            ("memory_update", {"id": "durable-00000000", "text": "x"}, "no item matches 'durable-00000000'"),
            (
                "memory_forget",
                {"item": "nothing like it"},
                "no item matches 'nothing like it'; memory_search",
            ),
            ("memory_forget", {"item": "cat"}, "no item matches 'cat'"),
        ],
    )
    async def test_and_change_nothing(self, tmp_path: Path, name: str, given: dict, words: str) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.")
        before = hashes(home)
        failed, text = await call(home, name, **given)
        assert failed
        assert words in text
        assert "http" not in text  # no links into pydantic's manual
        assert hashes(home) == before

    async def test_two_items_of_one_description_are_named(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat: Tom")
        await home.remember(ANN, "User has a cat: Max")
        failed, text = await call(home, "memory_forget", item="user has a cat")
        assert failed
        assert "matches 2 items, name one by its id" in text
        assert "Tom [i1]; User has a cat: Max [i2]" in text
        assert len(await home.texts(ANN)) == 2

    @pytest.mark.parametrize("place", [GENERAL, HIDDEN])
    async def test_a_private_item_can_not_be_named_outside_direct_messages(
        self, tmp_path: Path, place: Place
    ) -> None:
        home = house(tmp_path)
        held = await home.remember(ANN, "User has a cat called Tom.", origin=SECRET)
        before = hashes(home)
        for name, given in (
            ("memory_forget", {"item": held.id}),
            ("memory_forget", {"item": "has a cat called Tom"}),
            ("memory_update", {"id": held.id, "text": "User has no cat."}),
        ):
            failed, text = await call(home, name, place, **given)
            assert failed
            assert "no item matches" in text
        assert hashes(home) == before

    async def test_what_was_set_by_command_is_not_overruled(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        held = await home.remember(ANN, "User prefers tabs.", "preference")
        failed, text = await call(
            home, "memory_update", id=held.id, text="User prefers spaces.", number=9_000_000
        )
        assert not failed
        assert "asked to settle it" in text
        assert await home.texts(ANN) == ["User prefers tabs."]

    async def test_a_memory_that_can_not_be_used_is_said(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.memory.ledger_folder.parent.mkdir(parents=True)
        home.memory.ledger_folder.write_text("a file where the folder should be")
        failed, text = await call(home, "memory_store", text="User prefers tabs.")
        assert (failed, text) == (True, "memory cannot be used right now; nothing was changed")

    async def test_several_calls_are_answered_in_their_order(self, tmp_path: Path) -> None:
        wanted = calls(
            ("memory_store", {"text": "User naps."}), ("nonsense", {}), ("memory_search", {"query": "naps"})
        )
        home = house(tmp_path, ScriptedModel([wanted, "Done."]))
        home.answer(inbound(1000, "please"), Recorder())
        await home.desk.settle()
        assert [failed for failed, _ in home.model.results()] == [False, True, False]


class TestSwitchedOff:
    async def test_no_tools_are_offered(self, tmp_path: Path) -> None:
        home = house(tmp_path, tools=False)
        home.answer(inbound(1000, "please"), Recorder())
        await home.desk.settle()
        assert home.model.requests[0].tools == ()

    async def test_a_model_that_calls_one_anyway_still_answers(self, tmp_path: Path) -> None:
        home = house(
            tmp_path, ScriptedModel([calls(("memory_store", {"text": "User naps."})), "Hi."]), tools=False
        )
        reply = Recorder()
        home.answer(inbound(1000, "please"), reply)
        await home.desk.settle()
        assert reply.text.strip() == "Hi."
        assert reply.failed == []
