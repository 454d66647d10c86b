"""Runs one chain: update after update of a conversation's summary."""

from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core.model import USUAL_READS
from discoclaw.core.ports import Model
from discoclaw.evals.case import moment
from discoclaw.evals.chain import Chain
from discoclaw.evals.meter import Call, Metered
from discoclaw.evals.scene import summarising
from discoclaw.evals.talk import FILLER_MS, SmallTalk, fitting

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summary after each update; the one before if an update failed."""

    texts: Sequence[str]
    calls: Sequence[Call]


async def run(chain: Chain, model: Model, filler: SmallTalk, reads: int = USUAL_READS) -> Summaries:
    """The summaries that a model makes of a chain; `reads` is how many tokens it reads at once."""
    metered, texts, number = Metered(model), list[str](), 0
    start = moment(chain.start, chain.tz)
    async with summarising(
        metered, place=chain.place, names=chain.names, zone=chain.tz, max_chars=chain.max_chars, reads=reads
    ) as scene:
        for update in range(1, chain.updates + 1):
            at = start + int((update - 1) * chain.hours * HOUR_MS)
            for by, text in _lines(chain, update, filler):
                at, number = at + FILLER_MS, number + 1
                scene.hear(scene.said(by, text, at, number % 1000))
            scene.clock.at(at + FILLER_MS)
            scene.loops.nudge(scene.session_key, scene.user_id)
            await scene.loops.settle()
            texts.append((await scene.storage.summaries.get(scene.session_key)).summary)
    return Summaries(texts, metered.calls)


def _lines(chain: Chain, update: int, filler: SmallTalk) -> list[tuple[str, str]]:
    """The lines of one update: the planted lines, with small talk before and after them."""
    filler = fitting(filler, chain.place)
    begin = sum(map(ord, chain.id)) + (update - 1) * chain.small_talk
    talk = [filler[(begin + n) % len(filler)] for n in range(chain.small_talk)]
    planted = [(line.by, line.text) for line in chain.planted if line.update == update]
    half = len(talk) // 2
    before = [line for exchange in talk[:half] for line in exchange]
    after = [line for exchange in talk[half:] for line in exchange]
    return [*before, *planted, *after]
