"""Tidying: what says the same becomes one, what is over leaves, and contradictions are asked about."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.cards import said
from tests.contract.meanwhile import tidied, until
from tests.contract.tools import call, commits
from tests.contract.world import Start, World
from tests.servers.messages_api import Received, failure

DAY_S = 86_400
QUIET = {"summary_enabled": False}
ITEM = re.compile(r"^- (durable-\w+) .*?\) (.*)$", re.M)
TEA, TEAS = "User likes tea.", "User likes drinking tea."
NAMES = ("keep", "older", "newer", "id")
Answer = Callable[[Received], dict[str, Any]]


async def says(world: World, text: str, person: Any = None, place: Any = None) -> str:
    """What a text command of somebody (Ann) is answered."""
    return await world.says(person or world.ann, place or world.general, f"!memory {text}")


async def learned(world: World, *texts: str, person: Any = None, place: Any = None, **more: str) -> None:
    """These are learned from what somebody (Ann) says."""
    words = f"about me, {len(world.turns())}."
    world.brain.learns(*({"kind": "fact", "text": text, **more} for text in texts), about=words)
    await world.says(person or world.ann, place or world.general, words)


def shown(world: World) -> list[set[str]]:
    """The memories in each prompt of a tidying, oldest first."""
    return [{text for _, text in ITEM.findall(one.prompt)} for one in world.background("duplicates")]


async def tidied_until(world: World, true: Callable[[], object]) -> None:
    """Half an hour later the bot is started again, and tidies until something is so."""
    await world.env.advance_time(2_000)
    await world.restart()
    await until(true)
    await world.settle()


def finding(**lists: list[dict[str, Any]]) -> Answer:
    """Answers with these entries as far as it is shown all that they name: ids are written as texts."""

    def answer(request: Received) -> dict[str, Any]:
        ids = {text: short for short, text in ITEM.findall(request.prompt)}

        def named(value: Any, field: str) -> Any:
            if isinstance(value, list):
                return [ids[one] for one in value]
            return ids[value] if field in NAMES else value

        def entries(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
            def names(one: dict[str, Any]) -> list[str]:
                return [*one.get("drop", []), *(one[field] for field in NAMES if field in one)]

            return [
                {field: named(value, field) for field, value in one.items()}
                for one in given
                if all(name in ids for name in names(one))
            ]

        return {name: entries(given) for name, given in lists.items()}

    return answer


class TestTidying:
    @pytest.mark.design(297)
    async def test_merges_sets_aside_and_asks_in_one_change_that_can_be_taken_back(
        self, start: Start
    ) -> None:
        office, tabs, spaces = "User is at the office until Friday.", "I use tabs.", "User uses spaces."
        async with start(**QUIET) as world:
            assert await call(world, ("memory_consolidate", {})) == (False, "Nothing to tidy.")
            await learned(world, TEA, TEAS, office, spaces)
            await world.remember(world.ann, tabs)
            world.brain.writes(
                "duplicates",
                finding(
                    duplicates=[{"keep": TEA, "drop": [TEAS], "text": "User likes all teas."}],
                    outdated=[{"id": office, "reason": "past"}],
                    contradictions=[{"older": tabs, "newer": spaces, "reason": "not both"}],
                ),
            )
            before = world.memories(world.ann)
            failed, told = await call(world, ("memory_consolidate", {}))
            assert not failed and told.startswith("Tidied: 1 duplicate merged, 1 outdated")
            commit = commits(world)[-1]
            assert commit["message"].startswith("consolidated: 1 duplicate merged, 1 outdated")
            assert commit["metadata"]["by"] == "memory_consolidate"
            assert "User likes all teas." in world.memories(world.ann) and tabs in world.memories(world.ann)
            assert not {TEA, TEAS, office} & {*world.memories(world.ann)}
            assert len(world.items(world.ann)) == len(before)  # they are set aside, and none is lost
            await says(world, "undo")
            assert sorted(world.memories(world.ann)) == sorted(before)
            told = await says(world, "consolidate")
            assert TEAS in world.memories(world.ann) and office in world.memories(world.ann), told

    @pytest.mark.design(298, 312)
    async def test_is_done_every_half_an_hour_for_whom_something_changed_and_once(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await tidied(world)
            await learned(world, TEA, TEAS)
            await learned(world, "User has debts.", "User owes money.", sensitivity="private")
            await learned(world, "Bob sings.", "Bob sings a lot.", person=world.bob)
            await says(world, "create-branch work")
            await says(world, "checkout work")
            await learned(world, "User writes Go.")
            world.brain.writes("duplicates", finding(duplicates=[{"keep": TEA, "drop": [TEAS]}]))
            await world.env.advance_time(1_700)
            await world.restart()
            assert shown(world) == []
            await says(world, "optout", world.bob)
            await tidied_until(world, lambda: TEAS not in world.memories(world.ann))
            secret = {"User has debts.", "User owes money."}
            await until(lambda: len(shown(world)) == 4)  # main and work, what is private apart
            seen = shown(world)
            assert {TEA, TEAS} in seen and seen.count(secret) == 2
            assert any({TEA, TEAS, "User writes Go."} <= one for one in seen)
            assert all(one <= secret or not one & secret for one in seen)  # open and private never meet
            assert commits(world)[-1]["metadata"]["by"] == "heartbeat"
            await says(world, "optin", world.bob)
            singing = {"Bob sings.", "Bob sings a lot."}  # what changed longest ago comes first
            assert not any(one & singing for one in seen)
            await tidied_until(world, lambda: singing in shown(world))
            await learned(world, "Bob dances.", person=world.bob)
            await tidied_until(world, lambda: {*singing, "Bob dances."} in shown(world))
            assert len(shown(world)) == len(seen) + 2  # its own change isn't a reason for another look

    async def test_leaves_what_people_change_and_what_fails_and_goes_on_with_the_others(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**QUIET) as world:
            await learned(world, TEA, TEAS)
            await learned(world, "Bob sings.", "Bob sings a lot.", person=world.bob)
            merges = finding(duplicates=[{"keep": TEA, "drop": [TEAS]}])
            before = world.memories(world.ann)
            world.brain.writes("duplicates", failure(401, "authentication_error"))
            assert "Tidied" not in await says(world, "consolidate")
            assert world.memories(world.ann) == before
            wall = world.data / "memory" / "ledger" / f"user-{world.bob.id}.jsonl"
            wall.write_bytes(b"nonsense\n" + wall.read_bytes())
            world.brain.writes("duplicates", merges)  # after one more failure
            await tidied_until(world, lambda: "tidying ends until the next round" in caplog.text)
            await tidied_until(world, lambda: world.memories(world.ann) == [TEA])
            assert wall.read_bytes().startswith(b"nonsense\n")

    async def test_asks_about_one_contradiction_a_day_and_settle_has_them_all(self, start: Start) -> None:
        async with start(**QUIET) as world:
            pairs = [(f"plan {number} holds", f"plan {number} is off") for number in range(3)]
            for pair in pairs:
                await world.env.advance_time(60)
                await world.remember(world.ann, pair[0])
                await world.env.advance_time(60)
                await world.remember(world.ann, pair[1])
            found = [{"older": one, "newer": other, "reason": "both"} for one, other in pairs]
            world.brain.writes("duplicates", finding(contradictions=found))
            assert (await says(world, "consolidate")).startswith("Tidied: 3 questions.")
            await world.settle()
            assert len(world.ann_dm.history()) == 1
            await world.says(world.ann, world.general, "hello")
            assert len(world.ann_dm.history()) == 1
            await world.restart()
            await world.env.advance_time(DAY_S)
            await world.says(world.ann, world.general, "hello")
            assert len(world.ann_dm.history()) == 2
            before = len(world.general.history())
            await says(world, "settle")
            asked = [said(one) for one in world.general.history()[before:]]
            assert sum(text.count("Which is right?") for text in asked) == 3


class TestWhatIsOver:
    @pytest.mark.design(95, 96, 97, 104, 179, 312, 335)
    async def test_leaves_by_its_category_says_so_and_comes_back_with_an_undo(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        decay = {"knowledge_decay": True, "knowledge_survival_chance": 0.0}
        async with start(extraction_enabled=False) as world:
            for category in ("core", "knowledge", "conversation"):
                given = {"text": f"A {category} cat.", "key": category, "category": category}
                await call(world, ("memory_store", given))
            everything = world.memories(world.ann)
            for days, changes, left in (
                (6.9, {}, everything),
                (1.2, {}, everything[:2]),
                (4_000, {}, everything[:2]),  # without decay nothing else ever leaves
                (1, decay, everything[:1]),
            ):
                await world.env.advance_time(days * DAY_S)
                with caplog.at_level("INFO"):
                    await tidied(world, **changes)
                assert world.memories(world.ann) == left, days
            assert [one for one in caplog.messages if one.startswith("hygiene: ") and "1 idle item" in one]
            assert commits(world)[-1]["message"] == "hygiene: 1 idle for over 30 days left"
            await says(world, "undo")
            await world.env.advance_time(6 * DAY_S)
            await tidied(world)
            assert world.memories(world.ann) == everything[:2]

    @pytest.mark.design(97, 103, 178)
    async def test_is_as_old_as_an_imported_file_says_and_young_where_the_person_brought_it(
        self, start: Start
    ) -> None:
        async with start(knowledge_decay=True, knowledge_survival_chance=0.0, **QUIET) as world:
            second = world._now() // 1000
            entries = [
                {"key": key, "content": text, "category": kind, "timestamp": second - 40 * DAY_S, **more}
                for key, text, kind, more in (
                    ("trip", "User flies on Friday.", "conversation", {}),
                    ("tea", TEA, "knowledge", {"last_accessed": second - DAY_S}),
                    ("cat", "User has a cat.", "knowledge", {"last_accessed": second - 35 * DAY_S}),
                )
            ]
            path = world.folder / "snapshot.json"
            path.write_text(json.dumps(entries))
            await world.stop()
            words = ("memory", "import", str(path), "--as", str(world.ann.id))
            ran = await asyncio.to_thread(world.cli, *words)
            assert ran.exit_code == 0, ran.output
            await world.env.advance_time(2_000)
            await tidied(world)
            assert world.memories(world.ann) == [TEA]
            await says(world, "export snapshot", place=world.ann_dm)
            (file,) = world.ann_dm.last_message.attachments
            (entry,) = json.loads(await file.read())
            assert entry["last_accessed"] == second - DAY_S

            trip = [{"key": "trip", "content": "Bob flies on Friday.", "category": "conversation"}]
            given = ("snapshot.json", json.dumps(trip).encode())
            await world.bob.send(world.general, "!memory import", attachments=[given])
            for days, left in ((6, ["Bob flies on Friday."]), (2, [])):
                await world.env.advance_time(days * DAY_S)
                await tidied(world)
                assert world.memories(world.bob) == left
