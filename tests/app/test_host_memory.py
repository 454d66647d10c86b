"""The host's memory: its files, what extraction and commands do to them, and when the loops run."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import discord
import pytest

from discoclaw import settings
from discoclaw.core.errors import ModelTimeout
from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_host_prompt import MAY, durable, stored
from tests.session.scene import until

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "durable.json").read_text(encoding="utf-8"))
FIELDS = ["id", "kind", "text", "tags", "status", "source", "createdAt", "updatedAt"]
KINDS = ["preference", "fact", "project", "constraint", "person", "tool", "workflow"]
QUIET = {"summary_enabled": False, "extraction_enabled": False}
LEARNING = {"summary_enabled": False}


class Summing(Scripted):
    """Also notes each loop's system prompt, and what the channel showed when a loop asked."""

    def __init__(self, summary: str | Exception = "They talked.") -> None:
        super().__init__()
        self.summary = summary
        self.systems: list[str] = []
        self.summed: list[str] = []
        self.learned: list[str] = []
        self.shown: list[str] = []
        self.look: Any = lambda: ""
        self.wait: asyncio.Event | None = None

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.systems.append(system)
        self.shown.append(self.look())
        if "summary" in shape.model_fields:
            self.summed.append(prompt)
            if isinstance(self.summary, Exception):
                raise self.summary
            return shape.model_validate({"summary": self.summary})
        self.learned.append(prompt)
        if self.wait is not None:
            await self.wait.wait()
        return await super().structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )


def file(world: World) -> Any:
    return json.loads(world.durable(world.ann).read_text())


def items(world: World) -> dict[str, Any]:
    """The items of Ann's durable file, by id."""
    return {item["id"]: item for item in file(world)["items"]}


def rolling(world: World) -> dict[str, Any]:
    """The files with summaries, by name."""
    folder = world.folder / "data" / "memory" / "rolling"
    return {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}


def proposal(*upserts: dict[str, Any], deprecations: tuple[dict[str, Any], ...] = ()) -> str:
    return json.dumps({"upserts": upserts, "deprecations": deprecations})


async def told(world: World, model: Scripted, answer: str) -> None:
    """Ann says something, from which the extraction makes `answer`. A minute passes first."""
    await world.env.advance_time(60)
    model.facts = [answer]
    await world.ann.send(world.general, "so it is")
    await world.settle()


def now(world: World) -> int:
    return int(world.env.now().timestamp() * 1000)


class TestFiles:
    @pytest.mark.design(192, 197, 334)
    async def test_a_person_has_one_memory_and_each_conversation_its_summary(self, start: Start) -> None:
        async with start(Scripted(), summary_every=1) as world:
            parent = world.env.bot.get_channel(world.general.id)
            assert isinstance(parent, discord.TextChannel)
            made = await parent.create_thread(name="boats", type=discord.ChannelType.public_thread)
            await world.settle()
            thread = next(one for one in world.general.threads if one.id == made.id)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send_dm("!memory remember I like cake")
            begun = now(world)
            await world.ann.send(world.general, "hello")
            await world.ann.send(thread, "hello")
            await world.ann.send_dm("hello")
            await world.settle()
            assert [path.name for path in world.durable(world.ann).parent.glob("*.json")] == [
                f"{world.ann.id}.json"
            ]
            assert {item["text"] for item in items(world).values()} == {"I like tea", "I like cake"}
            found = rolling(world)
            assert found.keys() == {
                f"discord:channel:{world.general.id}.json",
                f"discord:thread:{thread.id}.json",
                f"discord:dm:{world.ann.id}.json",
            }
            for one in found.values():
                assert one["summary"] == "They talked." and begun <= one["updatedAt"] <= now(world)

    @pytest.mark.design(198, 199, 201, 202, 203, 230, 231, 323, 327)
    async def test_the_durable_file_has_this_shape_and_keeps_what_was_forgotten(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            begun = now(world)
            for case in GOLDEN["ids"]:
                if case["kind"] == "fact" and case["text"] == case["text"].strip():
                    await world.ann.send(world.general, f"!memory remember {case['text']}")
                    assert case["id"] in items(world)
            assert list(file(world)) == ["version", "updatedAt", "items"]
            newest = max(item["updatedAt"] for item in items(world).values())
            assert (file(world)["version"], file(world)["updatedAt"]) == (1, newest)
            assert all(list(item) == FIELDS for item in items(world).values())
            first = items(world)["durable-2ed36192"]
            assert first == {
                "id": "durable-2ed36192",
                "kind": "fact",
                "text": "I prefer TypeScript",
                "tags": [],
                "status": "active",
                "source": {"type": "manual"},
                "createdAt": begun,
                "updatedAt": begun,
            }
            await world.env.advance_time(60)
            await world.ann.send(world.general, "!memory edit 2ed36192 => I prefer Rust and nothing else")
            changed = {**first, "text": "I prefer Rust and nothing else", "updatedAt": now(world)}
            assert items(world)["durable-2ed36192"] == changed

            await world.ann.send(world.general, "which Rust?")
            assert "I prefer Rust and nothing else" in durable(model.prompt)
            await world.env.advance_time(60)
            await world.ann.send(world.general, "!memory forget Rust and")  # 8 of 30 characters
            assert items(world)["durable-2ed36192"]["status"] == "active"
            await world.ann.send(world.general, "!memory forget prefer Rust and nothing")
            gone = {**changed, "status": "deprecated", "updatedAt": now(world)}
            assert items(world)["durable-2ed36192"] == gone
            await world.ann.send(world.dev, "which Rust?")
            assert "Rust" not in model.prompt.partition("User message:")[0]

    @pytest.mark.design(339)
    async def test_what_was_forgotten_and_is_said_again_is_the_same_item(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            (before,) = items(world).values()
            for command in ("forget I like tea", "remember I like tea"):
                await world.env.advance_time(60)
                await world.ann.send(world.general, f"!memory {command}")
            assert [*items(world).values()] == [{**before, "updatedAt": now(world)}]

    @pytest.mark.design(228)
    async def test_over_the_limit_the_oldest_forgotten_go_first_and_then_the_oldest(
        self, start: Start
    ) -> None:
        async with start(Scripted(), max_items=3, **QUIET) as world:

            async def texts(command: str) -> list[str]:
                await world.env.advance_time(60)
                await world.ann.send(world.general, f"!memory {command}")
                return sorted(item["text"] for item in items(world).values())

            for name in ("one boat", "two boats", "three boats"):
                await texts(f"remember {name}")
            await texts("forget three boats")
            assert await texts("remember four boats") == ["four boats", "one boat", "two boats"]
            assert await texts("remember five boats") == ["five boats", "four boats", "two boats"]

    @pytest.mark.design(228)
    async def test_what_is_added_stays_though_the_others_are_dated_in_the_future(self, start: Start) -> None:
        async with start(Scripted(), max_items=2, **QUIET) as world:
            stored(world, *(("fact", f"boat {number}", {"updatedAt": 2 * MAY}) for number in range(2)))
            await world.ann.send(world.general, "!memory show")
            await world.ann.send(world.general, "!memory remember I like tea")
            texts = {item["text"] for item in items(world).values()}
            assert len(texts) == 2 and "I like tea" in texts

    @pytest.mark.design(228, 248)
    async def test_the_limit_is_two_hundred(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            boats = (("fact", f"boat {number}", {"updatedAt": MAY + number}) for number in range(200))
            first, *others = stored(world, *boats)
            await world.ann.send(world.general, "!memory show")
            assert len(items(world)) == 200
            await world.ann.send(world.general, "!memory remember I like tea")
            assert len(items(world)) == 200
            assert {*others} - items(world).keys() == set() and first not in items(world)


class TestExtraction:
    @pytest.mark.design(200, 219, 221, 222, 223, 224, 226, 227, 338)
    async def test_adds_changes_and_sets_aside_in_the_promised_shape(self, start: Start) -> None:
        model = Summing()
        async with start(model, **LEARNING) as world:
            for some in (KINDS[:5], KINDS[5:]):  # no more than five count at once
                await told(
                    world, model, proposal(*({"kind": kind, "text": f"Boat and {kind}"} for kind in some))
                )
            assert [item["kind"] for item in items(world).values()] == KINDS
            before = world.durable(world.ann).read_bytes()
            await told(world, model, proposal({"kind": "secret", "text": "Boat and secret"}))
            assert world.durable(world.ann).read_bytes() == before
            for part in ('{"upserts": [', '"source": "m1", "quote": "', '"deprecations": [', '"reason": "'):
                assert part in model.systems[-1]
            await told(world, model, proposal({"id": "i99", "kind": "tool", "text": "uses TypeScript"}))
            assert world.durable(world.ann).read_bytes() == before

            said = now(world)
            await told(
                world,
                model,
                proposal({"id": None, "kind": " TOOL ", "text": "  uses   TypeScript "}),
            )
            new = items(world)["durable-79d63977"]
            assert (new["kind"], new["text"], new["createdAt"]) == ("tool", "uses TypeScript", said + 60_000)
            message = world.general.history()[-2]
            source = {"type": "discord", "channelId": str(world.general.id), "messageId": str(message.id)}
            assert new["source"] == source

            again = {"kind": "tool", "text": "Uses TYPESCRIPT", "tags": ["TS", "Node"]}
            await told(world, model, proposal(again))
            assert "[tool] uses TypeScript" in model.learned[-1]
            assert items(world)["durable-79d63977"]["tags"] == ["ts", "node"]
            await told(
                world,
                model,
                proposal({"id": "uses TypeScript", "kind": "tool", "text": "uses Rust", "tags": ["rs"]}),
            )
            message = world.general.history()[-2]
            assert items(world)["durable-79d63977"] == {
                **new,
                "text": "uses Rust",
                "tags": ["rs"],
                "source": {**source, "messageId": str(message.id)},
                "updatedAt": file(world)["updatedAt"],
            }

            known = items(world)
            gone = {"id": "uses Rust", "reason": "over"}
            await told(world, model, proposal(deprecations=(gone,)))
            after = items(world)
            assert after.pop("durable-79d63977") == {
                **known.pop("durable-79d63977"),
                "status": "deprecated",
                "updatedAt": file(world)["updatedAt"],
            }
            assert after == known

    @pytest.mark.design(225)
    @pytest.mark.parametrize(("length", "status"), [(59, "active"), (60, "deprecated")])
    async def test_a_text_names_an_item_from_sixty_percent_on(
        self, start: Start, length: int, status: str
    ) -> None:
        model = Scripted()
        text = "0123456789abcdefghij" * 5
        async with start(model, **LEARNING) as world:
            await told(world, model, proposal({"kind": "fact", "text": text}))
            gone = {"matchText": text[:length], "reason": "over"}
            await told(world, model, proposal(deprecations=(gone,)))
            assert [item["status"] for item in items(world).values()] == [status]

    @pytest.mark.design(217, 218, 255)
    async def test_runs_every_ten_turns_of_a_person_wherever_they_talk(self, start: Start) -> None:
        model = Summing()
        async with start(model, durable_every=10, summary_every=5, context_history=100) as world:
            for number in range(9):
                await world.ann.send((world.general, world.dev)[number % 2], f"turn {number}")
            for number in range(9):
                await world.bob.send(world.general, f"other {number}")
            await world.settle()
            assert model.learned == []
            model.facts = [ModelTimeout("late")]
            await world.ann.send(world.dev, "turn 9")
            await world.settle()
            assert len(model.learned) == 1
            assert all(f"turn {number}" in model.learned[0] for number in range(10))
            assert not world.durable(world.ann).exists()
            await world.ann.send(world.dev, "turn 10")  # the failed run began a new count
            await world.settle()
            assert len(model.learned) == 1

            model.facts = [proposal({"kind": "fact", "text": "User counts"})]
            await world.restart()  # eleven turns of Ann's are in no extraction, and nine of Bob's
            await world.settle()
            assert len(model.learned) == 2
            assert all(f"turn {number}" in model.learned[1] for number in range(11))
            await world.bob.send(world.general, "other 9")
            await world.settle()
            assert len(model.learned) == 3
            assert all(f"other {number}" in model.learned[2] for number in range(10))
            assert [item["text"] for item in items(world).values()] == ["User counts"]

    @pytest.mark.design(233)
    async def test_a_command_elsewhere_during_a_run_is_not_lost(self, start: Start) -> None:
        model = Summing()
        model.facts = [proposal({"kind": "fact", "text": "User likes boats"})]
        model.wait = asyncio.Event()
        async with start(model, **LEARNING) as world:
            world.env.settle_timeout = 0.2
            with pytest.raises(Exception, match="did not settle"):
                await world.ann.send(world.general, "I like boats")
            await until(lambda: len(model.learned) == 1)
            with pytest.raises(Exception, match="did not settle"):
                await world.ann.send(world.dev, "!memory remember I like tea")
            await until(lambda: world.answer(world.dev) == "Remembered: I like tea")
            assert [item["text"] for item in items(world).values()] == ["I like tea"]
            model.wait.set()
            world.env.settle_timeout = 20
            await world.settle()
            assert {item["text"] for item in items(world).values()} == {"I like tea", "User likes boats"}


class TestTheSummary:
    @pytest.mark.design(215, 216, 218, 240)
    async def test_is_made_every_five_turns_after_the_answer_and_is_cut(self, start: Start) -> None:
        model = Summing("s" * 5000)
        async with start(model, summary_every=5, extraction_enabled=False) as world:
            model.look = lambda: world.answer(world.general)
            for number in range(4):
                await world.ann.send(world.general, f"turn {number}")
                await world.bob.send(world.dev, f"elsewhere {number}")
            await world.settle()
            assert model.summed == []
            model.then = "the fifth answer"
            await world.bob.send(world.general, "turn 4")
            await world.settle()
            assert len(model.summed) == 1
            assert model.shown == ["the fifth answer"]
            assert all(f"turn {number}" in model.summed[0] for number in range(5))
            assert "elsewhere" not in model.summed[0]
            assert "1200" in model.summed[0].partition("Maximum length:")[2]  # of 2,000: room for old lines
            for rule in ("Now:", "Open:", "Decided:", "Who wants what:", "Leave out greetings and filler"):
                assert rule in model.systems[0]
            (stored_summary,) = rolling(world).values()
            assert 1990 <= len(stored_summary["summary"]) <= 2000

            for number in range(4):
                await world.ann.send(world.general, f"later {number}")
            await world.restart()
            await world.settle()
            assert len(model.summed) == 1
            await world.ann.send(world.general, "later 4")  # four turns before the restart, and one after it
            await world.settle()
            assert len(model.summed) == 2
            assert all(f"later {number}" in model.summed[1] for number in range(5))

    @pytest.mark.design(214, 254)
    async def test_a_failure_is_logged_and_keeps_the_old_one(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Summing("They like boats.")
        async with start(model, summary_every=1, extraction_enabled=False) as world:
            await world.ann.send(world.general, "hello")
            await world.settle()
            before = rolling(world)
            model.summary = ModelTimeout("too late")
            await world.ann.send(world.general, "and again")
            await world.settle()
            assert rolling(world) == before
            assert [one["summary"] for one in before.values()] == ["They like boats."]
            assert world.answer(world.general) == "ok"
            assert "changed nothing: ModelTimeout" in caplog.text

    @pytest.mark.design(229, 232)
    async def test_is_shown_with_the_memory_and_cleared_for_its_conversation_only(self, start: Start) -> None:
        async with start(Summing("They like boats."), summary_every=1) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            for channel in (world.general, world.dev):
                await world.ann.send(channel, "hello")
            await world.settle()
            await world.ann.send(world.general, "!memory show")
            shown = world.answer(world.general)
            assert "- [fact] I like tea (id " in shown and "They like boats." in shown
            await world.ann.send(world.general, "!memory reset rolling")
            assert list(rolling(world)) == [f"discord:channel:{world.dev.id}.json"]
            await world.ann.send(world.general, "!memory show")
            shown = world.answer(world.general)
            assert "- [fact] I like tea (id " in shown and "They like boats." not in shown

    @pytest.mark.design(259)
    async def test_a_preference_outlives_many_of_them(self, start: Start) -> None:
        model = Summing("They talked about the weather.")
        async with start(model, summary_every=1, extraction_enabled=False) as world:
            stored(world, ("preference", "User prefers green tea", {}))
            for number in range(30):
                await world.ann.send(world.general, f"rain {number}")
            await world.settle()
            assert len(model.summed) >= 30
            await world.ann.send(world.general, "which tea do I prefer?")
            assert durable(model.prompt) == ["User prefers green tea"]
            assert [item["createdAt"] for item in items(world).values()] == [MAY]


class TestThePinnedMessage:
    @pytest.mark.design(235, 236, 237, 249)
    async def test_has_memory_and_summary_with_their_times_and_counts_the_rest(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with start(Summing("They like boats."), summary_every=1, extraction_enabled=False) as world:
            await world.ann.send(world.general, "!memory remember I like the oldest tea")
            await world.settle()
            assert world.shown(world.dev) == []
            monkeypatch.setenv("DISCOCLAW_MEMORY_CHANNEL_ID", str(world.dev.id))
            await world.restart(memory_channel=settings.Settings(_env_file=None).memory_channel)
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.ann.send(world.general, "!memory forget I like cake")
            await world.settle()
            (first,) = world.dev.pinned_messages()
            assert "I like the oldest tea" in first.content and "cake" not in first.content
            await world.env.advance_time(60)
            await world.ann.send(world.general, "hello")
            await world.settle()
            for number in range(30):
                await world.ann.send(world.general, f"!memory remember boat {number} {'w' * 90}")
            await world.settle()
            (message,) = world.dev.pinned_messages()
            text, stamp = message.content, f"updated <t:{now(world) // 1000}:R>"
            assert message.id == first.id
            assert len(text) <= 2000
            lines = text.splitlines()
            shown = [line for line in lines if line.startswith("- [fact] ")]
            assert shown == [
                f"- [fact] boat {n} {'w' * 90} ({stamp})" for n in range(29, 29 - len(shown), -1)
            ]
            assert lines[1] == stamp
            assert lines[-1] == f"(and {31 - len(shown)} more memories)"
            summary = lines.index("They like boats.")
            assert lines[summary - 1].endswith(f", {stamp})")


class TestThePhases:
    @pytest.mark.design(260)
    @pytest.mark.parametrize(
        ("summary", "durable_memory", "extraction", "mirror"),
        [
            (True, False, False, False),
            (False, True, False, False),
            (False, True, True, False),
            (False, True, False, True),
            (True, True, True, False),
            (True, True, True, True),
        ],
    )
    async def test_each_works_without_the_others(
        self, start: Start, summary: bool, durable_memory: bool, extraction: bool, mirror: bool
    ) -> None:
        model = Summing()
        model.facts = [proposal({"kind": "fact", "text": "User likes boats"})]
        async with start(
            model,
            summary_enabled=summary,
            summary_every=1,
            durable_enabled=durable_memory,
            extraction_enabled=extraction,
        ) as world:
            await world.restart(memory_channel=str(world.dev.id) if mirror else None)
            await world.ann.send(world.general, "I like boats")
            await world.settle()
            assert world.answer(world.general) == "ok"
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            assert [one["summary"] for one in rolling(world).values()] == ["They talked."] * summary
            kept = ["User likes boats"] * extraction + ["I like tea"] if durable_memory else []
            found = items(world).values() if world.durable(world.ann).exists() else []
            assert [item["text"] for item in found] == kept
            assert len(world.dev.pinned_messages()) == (mirror and durable_memory)


class TestTheDisk:
    @pytest.mark.design(253)
    async def test_that_cannot_be_written_costs_a_warning_and_no_answer(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = Summing()
        model.facts = [proposal({"kind": "fact", "text": "User likes boats"})]
        async with start(model, summary_every=1) as world:
            memory = world.folder / "data" / "memory"
            (memory / "rolling").write_text("in the way")
            (memory / "ledger" / f"user-{world.ann.id}.jsonl").mkdir(parents=True)
            await world.ann.send(world.general, "I like boats")
            await world.settle()
            assert world.answer(world.general) == "ok"
            warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
            for loop in ("summary discord:", "extraction "):
                assert any(text.startswith(loop) and "changed nothing" in text for text in warnings)

    @pytest.mark.design(262)
    async def test_has_no_file_that_is_not_documented(self, start: Start) -> None:
        page = (Path(__file__).parents[2] / "docs/admins/files-on-disk.md").read_text(encoding="utf-8")
        named = set(re.findall(r"`([\w.]+)[^`]*`", page))
        model = Summing()
        model.facts = [proposal({"kind": "fact", "text": "User likes boats"})]
        async with start(model, summary_every=1, auto_save="all", response_cache=True) as world:
            await world.restart(memory_channel=str(world.dev.id))
            await world.ann.send(world.general, "I like boats")
            await world.ann.send(world.general, "!memory reset rolling")
            await world.ann.send(world.general, "!memory autoswitch on")
            await world.settle()
            data = world.folder / "data"
            found = {one.name for one in [*data.iterdir(), *(data / "memory").iterdir()]} - {"memory"}
            assert {"ledger", "durable", "profiles", "groups", "cursors"} <= found
            assert {name.partition("-")[0] for name in found} - named == set()
