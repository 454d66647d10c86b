"""Summaries over many updates by a model that rewrites what it should keep, on the whole bot."""

import json
import re
from pathlib import Path
from typing import Any

from discoclaw.core import titles
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from discoclaw.core.rolling_text import DECIDED, OPEN, WANTED, Line, Notes, ordered, read
from discoclaw.core.subject import user_subject
from discoclaw.core.zones import KEY
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_erase import erase
from tests.memory.leftovers import traces

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_every": 1, "heartbeat_minutes": 0}
THINGS = """
    kayak lantern violin pepper glacier saddle walnut thunder meadow copper harbour pillow tractor orchid
    compass blanket dolphin magnet parsley chimney trumpet hammock cactus pyramid lobster velvet anchor
    pigeon mustard canoe
    """
SAID = re.compile(r"^m\d+ \w{3} ([\d-]{10}) [\d:]{5} \[([^\]]+)\]: (.*)$", re.M)
OTHER_WORDS = {"costs": "is priced at", "euros": "dollars", "the": "some"}


class Drifting(Scripted):
    """Writes down each message of a person, and changes on purpose what was there before."""

    def __init__(self) -> None:
        super().__init__(then="noted")
        self.updates = 0

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.structured_prompts.append(prompt)
        self.updates += 1
        return shape.model_validate({"summary": self.summary(titles.sections(prompt))})

    def summary(self, parts: dict[str, str]) -> str:
        if self.updates % 10 == 7:
            return "none"
        before = [self.drifted(line) for line in read(parts[titles.PREVIOUS_SUMMARY]).lines]
        new = [
            Line((OPEN, DECIDED, WANTED)[self.updates % 3], day, f"{name}: {text}")
            for day, name, text in SAID.findall(parts[titles.NEW_MESSAGES])
            if name != "TestBot"
        ]
        lie = Line(DECIDED, "2020-01-01", f"ann: owns {900 + self.updates} boats")
        kept = before[1:] if self.updates % 2 else before[:-1]
        return str(Notes(lines=ordered([*new, lie, *kept])))

    def drifted(self, line: Line) -> Line:
        text, kind = line.text, (self.updates + len(line.text)) % 5
        if kind == 0:
            text = re.sub(r"\d+", lambda number: str(int(number[0]) + 100), text)
        elif kind == 1:
            text = " ".join(OTHER_WORDS.get(word, word) for word in text.split())
        elif kind == 2:
            text = re.sub(r"\b(ann|bob)\b", lambda name: "bob" if name[0] == "ann" else "ann", text)
        elif kind == 3:
            return Line(line.section, "2026-01-01", text, done=True)
        return Line(line.section, line.date, text, line.done)


def rolling(world: World, channel: Any) -> str:
    path = world.folder / "data" / "memory" / "rolling" / f"discord:channel:{channel.id}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert list(content) == ["summary", "updatedAt"]
    return str(content["summary"])


def people(world: World, channel: Any) -> Path:
    return world.folder / "data" / "memory" / "cursors" / f"people-discord:channel:{channel.id}.json"


async def tell_things(world: World) -> list[str]:
    """Thirty messages, each with a fact; returns the lines that a summary has of them."""
    facts = []
    for number, thing in enumerate(THINGS.split()):
        who, name = (world.ann, "ann") if number % 2 else (world.bob, "bob")
        text = f"the {thing} costs {1000 + 7 * number} euros"
        await who.send(world.general, text)
        await world.settle()
        facts.append(f"- {world.env.now().date().isoformat()} {name}: {text}")
        if number % 4 == 3:
            await world.env.advance_time(20 * 3600)
    return facts


class TestThirtyUpdates:
    async def test_leave_each_fact_word_for_word_and_no_lie(self, start: Start) -> None:
        model = Drifting()
        async with start(model, summary_max_chars=6000, **QUIET) as world:
            facts = await tell_things(world)
            assert model.updates >= 30
            lines = [line for line in rolling(world, world.general).splitlines() if line.startswith("- ")]
            assert sorted(lines) == sorted(facts)

    async def test_over_the_maximum_the_newest_are_there_in_full(self, start: Start) -> None:
        async with start(Drifting(), summary_max_chars=600, **QUIET) as world:
            facts = await tell_things(world)
            summary = rolling(world, world.general)
            lines = [line for line in summary.splitlines() if line.startswith("- ")]
            assert 450 <= len(summary) <= 600
            assert set(lines) <= set(facts) and set(facts[-6:]) <= set(lines)

    async def test_an_empty_one_leaves_its_messages_for_the_next(self, start: Start) -> None:
        model = Drifting()
        async with start(model, summary_max_chars=6000, **QUIET) as world:
            model.updates = 6
            await world.ann.send(world.general, "the kayak costs 4711 euros")
            await world.settle()
            assert model.updates == 7
            assert not people(world, world.general).exists()
            await world.bob.send(world.general, "fine")
            await world.settle()
            assert "the kayak costs 4711 euros" in model.structured_prompts[-1]
            assert "ann: the kayak costs 4711 euros" in rolling(world, world.general)


class TestNames:
    async def two_sams(self, world: World) -> None:
        """Ann and Bob are both called Sam here; Bob comes second."""
        for person in (world.ann, world.bob):
            await renamed(world, person, "Sam")

    async def test_are_the_same_people_in_every_batch_and_after_a_restart(self, start: Start) -> None:
        model = Drifting()
        async with start(model, **QUIET) as world:
            await self.two_sams(world)
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            await world.bob.send(world.general, "and the violin")  # alone in his batch
            await world.settle()
            await world.restart()
            await world.bob.send(world.general, "the pepper too")
            await world.settle()
            lines = rolling(world, world.general).splitlines()
            texts = {line.split(" ", 2)[2] for line in lines if line.startswith("- ")}
            assert texts == {
                "Sam: the kayak is mine",
                "Sam #2: the lantern is mine",
                "Sam #2: and the violin",
                "Sam #2: the pepper too",
            }

    async def test_are_the_new_ones_when_somebody_takes_another_one(self, start: Start) -> None:
        model = Drifting()
        async with start(model, **QUIET) as world:
            await self.two_sams(world)
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            await renamed(world, world.bob, "Samira")
            await world.bob.send(world.general, "the violin is mine")
            await world.settle()
            prompt = model.structured_prompts[-1]
            assert "[Samira (was Sam #2)]: the violin is mine" in prompt
            assert "- 2026-01-01 Samira: the lantern is mine" in prompt
            await world.bob.send(world.general, "and the pepper")
            await world.settle()
            assert "[Samira]: and the pepper" in model.structured_prompts[-1]
            lines = rolling(world, world.general).splitlines()
            assert {"- 2026-01-01 Sam: the kayak is mine", "- 2026-01-01 Samira: the lantern is mine"} <= {
                *lines
            }

    async def test_leave_with_their_person(self, start: Start) -> None:
        async with start(Drifting(), **QUIET) as world:
            await renamed(world, world.ann, "Kanarie")
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            await world.settle()
            names = json.loads(people(world, world.general).read_text())["names"]
            assert names == {str(world.ann.id): "Kanarie", str(world.bob.id): "bob"}
            await erase(world, world.ann)
            assert traces(world.folder / "data", "Kanarie") == []

    async def test_leave_with_who_wants_no_memory(self, start: Start) -> None:
        async with start(Drifting(), **QUIET) as world:
            await world.ann.send(world.general, "the kayak is mine")
            await world.bob.send(world.general, "the lantern is mine")
            await world.settle()
            await world.ann.send(world.general, "!memory optout")
            await world.settle()
            names = json.loads(people(world, world.general).read_text())["names"]
            assert names == {str(world.bob.id): "bob"}


class TestTheTalk:
    async def test_is_read_in_the_zone_of_its_server_or_person(self, start: Start) -> None:
        model = Drifting()
        async with start(model, timezone="Asia/Tokyo", **QUIET) as world:
            await world.ann.send(world.general, "the kayak is mine")
            await world.ann.send_dm("the lantern is mine")
            await world.settle()
            assert all("(UTC+09:00)" in prompt for prompt in model.structured_prompts)
            await world.memory.change(user_subject(str(world.ann.id)), "a test", in_new_york)
            await world.ann.send_dm("the violin is mine")
            await world.ann.send(world.general, "the pepper is mine")
            await world.settle()
            times = {
                "lantern" in prompt: re.findall(r"\(UTC(.{6})\)", prompt)
                for prompt in model.structured_prompts[-2:]
            }
            assert times[True][0] in ("-05:00", "-04:00") and times[False] == ["+09:00"]


def in_new_york(draft: Draft) -> None:
    facets = Facets(key=KEY)
    draft.upsert("fact", "User is in America/New_York.", Origin("stated"), facets=facets)


async def renamed(world: World, person: Any, name: str) -> None:
    """Somebody gets another nickname on the server."""
    guild = world.env.bot.get_guild(world.guild.id)
    assert guild is not None
    await (await guild.fetch_member(person.id)).edit(nick=name)
    await world.env.settle()
