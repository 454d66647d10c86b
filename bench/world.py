"""What the figures share: made-up people, what they say, and models that answer at once."""

import random
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discoclaw.core import titles
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import KINDS, MANUAL, Facets, Item, new_item
from discoclaw.core.message import Author, Inbound, Place
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.settings import Settings

GUILD, CHANNEL, BOT, OWNER = 10**17 + 1, 10**17 + 2, 10**17 + 3, 10**17 + 4
FIRST_MESSAGE = 10**18
STATED = Origin("stated")

_WORDS = """
    tabs spaces python rust deploy release branch review coffee tea garden bicycle train chess guitar winter
    summer server cluster database backup editor keyboard terminal theme dark light recipe soup bread cheese
    hiking river mountain cat dog sister brother office home monday friday meeting lunch report budget travel
    lisbon oslo kyoto camera film novel poem radio podcast vinyl piano drums yoga running marathon swimming
    docker kubernetes linux windows laptop phone tablet router firewall python3 typescript golang haskell
""".split()  # noqa: SIM905 - a list of words is not easier to read


def sentence(dice: random.Random, length: int = 9) -> str:
    """Some words; the same for the same dice."""
    return " ".join(dice.choice(_WORDS) for _ in range(length))


class EchoModel:
    """The port `Model` with no latency: says the message again, and learns one thing of each person.

    `asked` is called when a request arrives.
    """

    def __init__(self, asked: Callable[[], None] = lambda: None) -> None:
        self._asked = asked
        self._count = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self._asked()
        last = request.turns[-1]
        assert isinstance(last, UserTurn)
        text = last.text.rpartition(titles.MESSAGE)[2].strip()
        yield TextDelta(text)
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self._count += 1
        said = re.findall(r"^(m\d+) [^\n»]*»\[.*?\]: (.*)$", prompt, re.M)
        source, quote = said[-1] if said else ("", "")
        learned = {"kind": "fact", "text": f"User said thing number {self._count}"}
        learned |= {"source": source, "quote": quote}
        answers: dict[str, object] = {"upserts": [learned], "summary": f"Summary number {self._count}."}
        return shape.model_validate({k: v for k, v in answers.items() if k in shape.model_fields})

    async def close(self) -> None:
        pass


def things(count: int, dice: random.Random) -> list[tuple[str, str, list[str]]]:
    """Kind, text and tags of `count` different things to remember."""
    return [
        (KINDS[number % len(KINDS)], f"{sentence(dice)} number {number}", [sentence(dice, 1)])
        for number in range(count)
    ]


def fill(draft: Draft, count: int, dice: random.Random) -> None:
    """Remember `count` different things."""
    for kind, text, tags in things(count, dice):
        draft.upsert(kind, text, STATED, tags=tags)


def items_of(count: int, dice: random.Random, *, now_ms: int) -> list[Item]:
    """The items that `fill` would make, without the rules by which memory changes."""
    return [
        new_item(kind, text, source=MANUAL, now_ms=now_ms, tags=tags, facets=Facets())
        for kind, text, tags in things(count, dice)
    ]


def settings_in(folder: Path, **changes: Any) -> Settings:
    """The settings by default, on a folder of their own, whatever a `.env` here says."""
    values: dict[str, Any] = {
        "_env_file": None,
        "data_dir": folder / "data",
        "content_dir": folder / "content",
        "respond_mode": "all",
    }
    return Settings(**{**values, **changes})


def message(session: int, number: int, text: str, *, sent_at: int) -> Inbound:
    """What the one person of a conversation says there; every conversation has its own."""
    channel = str(CHANNEL + 1000 + session)
    place = Place("channel", channel, channel, f"room-{session}", private=False, group_name=f"room-{session}")
    author = Author(str(2 * 10**17 + session), f"person {session}")
    identity = str(FIRST_MESSAGE + number * 1_000_000 + session)
    return Inbound(identity, author, place, place.session_key(author.id), text, sent_at, mentions_us=True)


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder on the disk of the system's temporary files, gone afterwards."""
    with TemporaryDirectory(prefix="discoclaw-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)
