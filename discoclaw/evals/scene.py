"""A place to run a case in: a data folder of its own, the store and the loops as the bot has them.

`app/learning` builds the loops, so only the model differs. The settings are the defaults, whatever `.env`
says, so that figures can be compared. The folder is a temporary one and is removed afterwards.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discoclaw.app.learning import facts_loop, summary_loop
from discoclaw.core.message import Me, Place, Said
from discoclaw.core.ports import Model
from discoclaw.core.redact import PLAIN
from discoclaw.core.times import snowflake_at
from discoclaw.evals.case import BOT, NAMES, PlaceName
from discoclaw.loops.facts import NoFacts
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import NoSummary
from discoclaw.models.redacting import RedactingModel
from discoclaw.settings import Settings
from discoclaw.storage import Storage, build
from discoclaw.store.files import in_thread

ME = Me("1000000000000000900", "DiscoClaw")
_FIRST_ID = 1_000_000_000_000_000_001
_CHANNEL = "1000000000000000500"

PLACES: Mapping[PlaceName, Place] = {
    "channel": Place("channel", _CHANNEL, _CHANNEL, "general", private=False, group_name="general"),
    "private": Place("channel", _CHANNEL, _CHANNEL, "staff", private=True, group_name="staff"),
    "dm": Place("dm", _CHANNEL, None, "direct message", private=True),
}
WINDOW = 20
"""The most messages in the prompt's window, as the bot has it by default."""


class HandClock:
    """The present of a case, set by whoever runs it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def at(self, ms: int) -> None:
        """Go to a time, but never back."""
        self.now = max(self.now, ms)


@dataclass(frozen=True, slots=True)
class Scene:
    """One case's world: `who` is the speaker whom it is about."""

    storage: Storage
    loops: Loops
    clock: HandClock
    place: Place
    who: str
    names: Mapping[str, str]

    @property
    def user_id(self) -> str:
        return self.id_of(self.who)

    @property
    def session_key(self) -> str:
        return self.place.session_key(self.user_id)

    def id_of(self, speaker: str) -> str:
        """A speaker's user id."""
        if speaker == BOT:
            return ME.id
        return str(_FIRST_ID + int.from_bytes(speaker.encode()[:4], "big"))

    def said(self, by: str, text: str, at: int, number: int) -> Said:
        """A message, without secrets, as the bot would have taken it in; `number` tells it from others."""
        name = ME.name if by == BOT else self.names.get(by, NAMES.get(by, by))
        return Said(
            id=str(snowflake_at(at - 1) + 1 + number),
            author_id=self.id_of(by),
            name=name,
            text=PLAIN(text).text,
            sent_at=at,
            by_us=by == BOT,
            to_id=self.user_id if by == BOT else "",
        )

    def hear(self, said: Said) -> None:
        """Let a message be heard, and wait for the loops."""
        self.clock.at(said.sent_at)
        self.loops.hear(said, self.place, self.session_key, window=WINDOW)


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="discoclaw-eval-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@asynccontextmanager
async def extracting(
    model: Model, *, place: PlaceName, who: str, names: Mapping[str, str], zone: str, reads: int
) -> AsyncIterator[Scene]:
    """A scene in which a person is learned from, and nothing is summarised."""
    async with _scene(place, who, names, timezone=zone) as (settings, storage, clock):
        redacting = RedactingModel(model, PLAIN)
        facts = facts_loop(settings, storage, lambda: ME, clock, redacting, lambda name: reads)
        loops = Loops(
            clock=clock, summary=NoSummary(), facts=facts, cadence=Cadence(), consent=storage.consent
        )
        yield Scene(storage, loops, clock, PLACES[place], who, names)
        await loops.close()


@asynccontextmanager
async def summarising(
    model: Model, *, place: PlaceName, names: Mapping[str, str], zone: str, max_chars: int, reads: int
) -> AsyncIterator[Scene]:
    """A scene in which a conversation is summarised at every turn, and nothing is learned of anybody."""
    given = {"timezone": zone, "summary_max_chars": max_chars}
    async with _scene(place, "A", names, **given) as (settings, storage, clock):
        redacting = RedactingModel(model, PLAIN)
        summary = summary_loop(settings, storage, lambda: ME, clock, redacting, lambda name: reads)
        loops = Loops(
            clock=clock,
            summary=summary,
            facts=NoFacts(),
            cadence=Cadence(summary_every=1),
            consent=storage.consent,
        )
        yield Scene(storage, loops, clock, PLACES[place], "A", names)
        await loops.close()


@asynccontextmanager
async def _scene(
    place: PlaceName, who: str, names: Mapping[str, str], **given: Any
) -> AsyncIterator[tuple[Settings, Storage, HandClock]]:
    with _folder() as folder:
        # Built without the environment and without `.env`.
        settings = Settings.model_construct(data_dir=folder, **given)
        clock = HandClock()
        storage = build(settings, clock=clock)
        await in_thread(storage.open)
        try:
            await in_thread(storage.load)
            yield settings, storage, clock
            await storage.purger.close()
        finally:
            await in_thread(storage.close)
