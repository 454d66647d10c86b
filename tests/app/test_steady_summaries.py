"""A model that rewrites a summary as it likes, for tests of names in summaries."""

import re
from typing import Any

from discoclaw.core import titles
from discoclaw.core.model import Purpose
from discoclaw.core.ports import Shape
from discoclaw.core.rolling_text import DECIDED, OPEN, WANTED, Line, Notes, ordered, read
from tests.app.conftest import World
from tests.app.models import Scripted

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


async def renamed(world: World, person: Any, name: str) -> None:
    """Somebody gets another nickname on the server."""
    guild = world.env.bot.get_guild(world.guild.id)
    assert guild is not None
    await (await guild.fetch_member(person.id)).edit(nick=name)
    await world.env.settle()
