"""Runs all cases of an eval, a few at once, and gives up early where going on makes no sense."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from discoclaw.core.errors import ModelKeyRejected, ModelNotFound
from discoclaw.core.model import USUAL_READS
from discoclaw.core.ports import Model
from discoclaw.evals import casefile, judge, talk
from discoclaw.evals.casefile import Case, Chain
from discoclaw.evals.judge import Verdict
from discoclaw.evals.talk import Call

HOPELESS = (ModelKeyRejected, ModelNotFound)
"""Failures that every further request would have, too."""
Done = Callable[[int], None]
"""Called with the number of cases that are done, over all runs."""


async def extraction(
    cases: Sequence[Case], model_for: Callable[[Case], Model], *, reads: int = USUAL_READS, **how: Any
) -> list[Verdict]:
    """A verdict about each case in each run, of models that read so many tokens at once.

    `how`: `runs`, how many cases `at_once`, and who is told of each that is `done`. Raises ModelError if the
    model can't be reached at all.
    """
    filler = casefile.filler()

    async def one(case: Case, run: int) -> tuple[Verdict, Sequence[Call]]:
        outcome = await talk.run(case, model_for(case), filler, reads)
        return judge.of_case(case, outcome, run), outcome.calls

    return await _all(cases, one, **how)


async def summaries(
    chains: Sequence[Chain], model_for: Callable[[Chain], Model], *, reads: int = USUAL_READS, **how: Any
) -> list[Verdict]:
    """The same for chains of summaries."""
    filler = casefile.filler()

    async def one(chain: Chain, run: int) -> tuple[Verdict, Sequence[Call]]:
        outcome = await judge.run(chain, model_for(chain), filler, reads)
        return judge.of_chain(chain, outcome, run), outcome.calls

    return await _all(chains, one, **how)


async def _all(
    cases: Sequence[casefile.One],
    one: Callable[[casefile.One, int], Awaitable[tuple[Verdict, Sequence[Call]]]],
    *,
    runs: int = 1,
    at_once: int = 1,
    done: Done = lambda cases: None,
) -> list[Verdict]:
    work = [(case, run) for run in range(runs) for case in cases]
    waiting, reached = iter(enumerate(work)), False
    verdicts: dict[int, Verdict] = {}

    async def lane() -> None:
        nonlocal reached
        for number, (case, run) in waiting:
            verdict, calls = await one(case, run)
            reached = reached or any(call.answered for call in calls)
            for error in (call.error for call in calls if call.error is not None):
                # Further requests would have it, too, or it was the very first answer.
                if isinstance(error, HOPELESS) or not reached:
                    raise error
            verdicts[number] = verdict
            done(len(verdicts))

    with _quiet():
        lanes = [asyncio.create_task(lane()) for _ in range(min(at_once, len(work)))]
        try:
            await asyncio.gather(*lanes)
        finally:
            for task in lanes:
                task.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
    return [verdicts[number] for number in sorted(verdicts)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out the loops' warnings about answers: the report has them."""
    log = logging.getLogger("discoclaw")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
