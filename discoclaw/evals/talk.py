"""Runs one extraction case: what was remembered, the talk, what was forgotten, and then one extraction.

First here are what it needs, as do chains of summaries: a model that counts, and a place to run in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discoclaw.app.models import facts_loop, summary_loop
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import (
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
)
from discoclaw.core.item import Facets, Source
from discoclaw.core.message import Me, Place, Said
from discoclaw.core.model import USUAL_READS, Usage
from discoclaw.core.ports import Model, Shape, WrappedModel
from discoclaw.core.redact import PLAIN
from discoclaw.core.subject import user_subject
from discoclaw.core.times import snowflake_at
from discoclaw.core.usage import CHARS_A_TOKEN, Tally, counted_in
from discoclaw.core.view import View
from discoclaw.evals.casefile import BOT, NAMES, Before, Case, PlaceName, moment
from discoclaw.loops.facts import NoFacts
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import NoSummary
from discoclaw.models.config import RedactingModel
from discoclaw.settings import Settings
from discoclaw.storage import Storage, build
from discoclaw.store.files import in_thread

# ----------------------------------------------------------------------
# Counts a model's calls in one case: whether its answers had the right form, and how many tokens they took.
#
# Tokens are the provider's count (`core/usage`). For a server that reports none they are estimated, and the
# report says so.


UNANSWERED = (
    ModelBadRequest,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
)
"""Failures after which nobody knows what the model would have answered."""


@dataclass(slots=True)
class Call:
    """One structured call. `tally` has what the provider counted for each answer."""

    tally: Tally = field(default_factory=Tally)
    asked_chars: int = 0
    answer_chars: int = 0
    error: ModelError | None = None

    @property
    def reported(self) -> list[Usage]:
        """The provider's counts for each answer."""
        return [usage for _, usage in self.tally.used]

    @property
    def answered(self) -> bool:
        """Whether the model answered at all."""
        return not isinstance(self.error, UNANSWERED)

    @property
    def valid(self) -> bool:
        """Whether the first answer had the form that was asked for. A refusal has none."""
        return self.error is None and len(self.reported) <= 1

    @property
    def requests(self) -> int:
        """How often the model was asked."""
        return max(1, len(self.reported))

    @property
    def estimated(self) -> bool:
        """Whether the provider did not count the tokens."""
        return not self.tokens_reported

    @property
    def tokens_reported(self) -> bool:
        return any(one.output_tokens for one in self.reported)

    @property
    def tokens_in(self) -> int:
        if not self.tokens_reported:
            return self.asked_chars // CHARS_A_TOKEN
        return self.tally.total.prompt_tokens

    @property
    def tokens_out(self) -> int:
        if not self.tokens_reported:
            return self.answer_chars // CHARS_A_TOKEN
        return self.tally.total.output_tokens


class Metered(WrappedModel):
    """The port `Model` around another one; `calls` has what it was asked."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.calls: list[Call] = []

    async def structured(self, *, shape: type[Shape], **asked: Any) -> Shape:
        """The other model's answer, counted. Raises ModelError."""
        call = Call(asked_chars=sum(len(one) for one in asked.values() if isinstance(one, str)))
        self.calls.append(call)
        try:
            with counted_in(call.tally):
                answer = await self._model.structured(shape=shape, **asked)
        except ModelError as error:
            call.error = error
            raise
        call.answer_chars = len(answer.model_dump_json(exclude_defaults=True))
        return answer

    async def close(self) -> None:
        """Does nothing: the other model is shared by all cases."""


# ----------------------------------------------------------------------
# A place to run a case in: a data folder of its own, the store and the loops as the bot has them.
#
# `app/models` builds the loops, so only the model differs. The settings are the defaults, whatever `.env`
# says, so that figures can be compared. The folder is a temporary one and is removed afterwards.


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


@asynccontextmanager
async def running(
    model: Model,
    *,
    learns: bool,
    place: PlaceName,
    who: str,
    names: Mapping[str, str],
    zone: str,
    reads: int,
    max_chars: int = 2000,
) -> AsyncIterator[Scene]:
    """A scene in which a person is learned from (`learns`), or else a talk is summarised at every turn."""
    with TemporaryDirectory(prefix="discoclaw-eval-", ignore_cleanup_errors=True) as folder:
        # Built without the environment and without `.env`.
        settings = Settings.model_construct(data_dir=Path(folder), timezone=zone, summary_max_chars=max_chars)
        clock = HandClock()
        storage = build(settings, clock=clock)
        own = (settings, storage, lambda: ME, clock, RedactingModel(model, PLAIN), lambda name: reads)
        await in_thread(storage.open)
        try:
            await in_thread(storage.load)
            loops = Loops(
                clock=clock,
                summary=NoSummary() if learns else summary_loop(*own),
                facts=facts_loop(*own) if learns else NoFacts(),
                cadence=Cadence() if learns else Cadence(summary_every=1),
                consent=storage.consent,
            )
            yield Scene(storage, loops, clock, PLACES[place], who, names)
            await loops.close()
            await storage.purger.close()
        finally:
            await in_thread(storage.close)


# ----------------------------------------------------------------------
# Runs a case.


FILLER_MS = 20_000
"""The longest between two lines of small talk."""
LATER_MS = 600_000
"""How long after the last line the extraction begins."""

SmallTalk = Sequence[Sequence[tuple[str, str]]]


def fitting(filler: SmallTalk, place: PlaceName) -> SmallTalk:
    """The small talk that can be heard in a place: in a DM there are only two who speak."""
    two = {"A", BOT}
    return [one for one in filler if place != "dm" or all(by in two for by, _ in one)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The memory before and after. `items` are the ids of the case's items, `lines` its lines by message id.

    `done`: the extraction has seen all of the person's lines.
    """

    before: View
    after: View
    items: Sequence[str]
    lines: Mapping[str, int]
    calls: Sequence[Call]
    done: bool


async def run(case: Case, model: Model, filler: SmallTalk, reads: int = USUAL_READS) -> Outcome:
    """Run a case. Returns what became of the memory; `reads` is how many tokens the model reads at once."""
    metered = Metered(model)
    async with running(
        metered, learns=True, place=case.place, who=case.who, names=case.names, zone=case.tz, reads=reads
    ) as scene:
        memory, subject = scene.storage.memory, user_subject(scene.user_id)
        items = await _remember(scene, case)
        talk = _lines(scene, case, filler)
        forgotten = sorted(
            (moment(one.forgotten, case.tz), item)
            for one, item in zip(case.items, items, strict=True)
            if one.forgotten is not None
        )
        for said, _ in talk:
            while forgotten and forgotten[0][0] <= said.sent_at:
                await _forget(scene, *forgotten.pop(0))
            scene.hear(said)
        for at, item in forgotten:
            await _forget(scene, at, item)
        before = await memory.view(subject)
        scene.clock.at(talk[-1][0].sent_at + LATER_MS)
        scene.loops.force(scene.user_id)
        await scene.loops.settle()
        own = [said for said, _ in talk if said.author_id == scene.user_id]
        seen = await scene.storage.cursors.get(f"facts-{scene.user_id}")
        return Outcome(
            before,
            await memory.view(subject),
            items,
            {said.id: number for said, number in talk if number is not None},
            metered.calls,
            done=not metered.calls or seen.get(scene.session_key) == own[-1].id,
        )


def _lines(scene: Scene, case: Case, filler: SmallTalk) -> list[tuple[Said, int | None]]:
    """The messages in order, each with the number of the case's line; None for small talk."""
    times, said = case.times(), list[tuple[str, str, int, int | None]]()
    for number, line in enumerate(case.talk):
        said.append((line.by, line.text, times[number], number))
        last = number == len(case.talk) - 1
        share = case.filler * (number + 1) // len(case.talk) - case.filler * number // len(case.talk)
        room = FILLER_MS * (share + 1) if last else times[number + 1] - times[number]
        step = min(FILLER_MS, room // (share + 1))
        talk = [one for exchange in fitting(filler, case.place) for one in exchange]
        for place in range(share):
            by, text = talk[(number * 37 + place) % len(talk)]
            said.append((by, text, times[number] + step * (place + 1), None))
    return [(scene.said(by, text, at, place), number) for place, (by, text, at, number) in enumerate(said)]


async def _remember(scene: Scene, case: Case) -> list[str]:
    """Remember what the case says was known before. Returns the items' ids, in the case's order."""
    ids = [""] * len(case.items)
    for number, one in sorted(enumerate(case.items), key=lambda pair: moment(pair[1].at, case.tz)):
        at = moment(one.at, case.tz)
        scene.clock.at(at)
        ids[number] = await _known(scene, one, at, number)
    return ids


async def _known(scene: Scene, one: Before, at: int, number: int) -> str:
    source = Source("discord", scene.place.channel_id, str(snowflake_at(at - 1) + 1 + number))
    origin = Origin(one.author, source, said_at=at, evidence=one.text)

    def learn(draft: Draft) -> str:
        facets = Facets(key=one.key)
        item, _ = draft.upsert(one.kind, one.text, origin, marked=one.sensitivity, facets=facets)
        return item.id

    by = "command" if one.author == "stated" else "extraction"
    return await scene.storage.memory.change(user_subject(scene.user_id), "a case's item", learn, by=by)


async def _forget(scene: Scene, at: int, item_id: str) -> None:
    """Forget an item as its person would: it leaves what waits for the loops, too."""
    scene.clock.at(at)
    subject, memory = user_subject(scene.user_id), scene.storage.memory
    stated = Origin("stated", said_at=at)
    await memory.change(
        subject, "forgotten", lambda draft: draft.deprecate(draft.items[item_id], stated), by="command"
    )
    for taken in (await memory.view(subject)).purges(subject):
        scene.loops.tracks.purge(taken)
