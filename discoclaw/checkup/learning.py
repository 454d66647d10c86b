"""Whether the small model learns what it should from a few built-in talks; `discoclaw eval` has more."""

from collections.abc import AsyncIterator, Callable

from discoclaw.checkup.answers import Examined
from discoclaw.checkup.model import plainly
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import ModelError
from discoclaw.core.health import Finding
from discoclaw.evals import reading, run
from discoclaw.evals.judge import Verdict
from discoclaw.models.providers import open_models
from discoclaw.show.words import line

CASES = ("plain-02", "third-02", "sensitive-01", "update-02", "empty-02")
"""One each: a fact, somebody else's, a private one, one that changed, and nothing at all."""
ENOUGH = 3
"""With fewer right ones, people will be wrong about what the bot knows."""
NOT_NEEDED = "not needed: "
MORE = "see `discoclaw eval extraction`, and try a larger DISCOCLAW_DURABLE_MODEL"


async def learning(seen: Examined, progress: Callable[[str], None]) -> AsyncIterator[Finding]:
    """One finding for all talks, and one for each that went wrong. Waits for the other questions."""
    settings = seen.settings
    async with seen.lane:
        if seen.answers is False:
            yield Finding("learning", "unknown", "not tried, because the model doesn't answer")
            return
        models, cases = open_models(seen.config), reading.chosen(reading.cases(), ids=CASES)
        facts = seen.counted(models.facts)

        def done(number: int) -> None:
            progress(f"learning from built-in talks: {number} of {len(cases)}")

        done(0)
        try:
            verdicts = await run.extraction(cases, lambda _: facts, done=done)
        except ModelError as error:
            yield finding("learning", plainly(error, seen.config, settings.durable_model))
            return
        finally:
            await models.close()
    wrong = [one for one in verdicts if _faults(one)]
    right = len(verdicts) - len(wrong)
    text = f"{right} of {len(verdicts)} built-in talks were learned from as they should be"
    if not wrong:
        yield Finding("learning", "good", text)
        return
    yield Finding("learning", "warning" if right >= ENOUGH else "bad", text, MORE)
    for one in wrong:
        yield Finding(one.id, "warning", line(_faults(one)[0], 200))


def _faults(verdict: Verdict) -> list[str]:
    """What went wrong. What was learned beside that costs nobody anything."""
    return [one for one in verdict.faults if not one.startswith(NOT_NEEDED)]
