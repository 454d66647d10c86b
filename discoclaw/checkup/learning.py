"""Whether the small model learns what it should from a few built-in talks; `discoclaw eval` has more."""

from collections.abc import AsyncIterator, Callable
from typing import Final

from discoclaw.checkup.answers import DURABLE, Examined
from discoclaw.checkup.model import plainly
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import ModelError
from discoclaw.core.health import Finding, State
from discoclaw.evals import reading, run
from discoclaw.evals.judge import Verdict
from discoclaw.models.providers import open_models
from discoclaw.show.words import line

CASES: Final = {
    "plain-02": "a fact",
    "third-02": "a fact about somebody else",
    "sensitive-01": "something private",
    "update-02": "something that changed",
    "empty-02": "talk with nothing in it",
}
"""The built-in talks, and what each is about."""
FAULTS: Final = (
    ("missing: ", "it was not learned"),
    ("not private: ", "it was not kept private"),
    ("beside the old item", "the old memory stays in use beside the new one"),
    ("forbidden by ", "something was learned that is not so, or not worth it"),
    ("too much: ", "too much was learned"),
    ("the model failed: ModelBadOutput", "the answer was not in the form that was asked for"),
)
"""How the evals begin to say what went wrong, and what that means to people."""
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
        models, cases = open_models(seen.config), reading.chosen(reading.cases(), ids=tuple(CASES))
        facts = seen.counted(models.facts, settings.durable_model)

        def done(number: int) -> None:
            progress(f"learning from built-in talks: {number} of {len(cases)}")

        done(0)
        try:
            verdicts = await run.extraction(cases, lambda _: facts, done=done)
        except ModelError as error:
            yield finding("learning", plainly(error, seen.config, settings.durable_model, DURABLE))
            return
        finally:
            await models.close()
    wrong = [one for one in verdicts if _faults(one)]
    right = len(verdicts) - len(wrong)
    text = f"{right} of {len(verdicts)} built-in talks were learned from as they should be"
    state: State = "good" if not wrong else "warning" if right >= ENOUGH else "bad"
    yield Finding("learning", state, text, MORE if wrong else "")
    by = f" with {line(settings.durable_model)}" if settings.durable_model != settings.model else ""
    seen.can.append(f"learning{by}: {right} of {len(verdicts)} examples")
    yield seen.good_for()
    for one in wrong:
        more = f"see `discoclaw eval extraction --case {one.id}`"
        yield Finding(CASES[one.id], "warning", _in_words(_faults(one)[0]), more)


def _faults(verdict: Verdict) -> list[str]:
    """What went wrong. What was learned beside that costs nobody anything."""
    return [one for one in verdict.faults if not one.startswith(NOT_NEEDED)]


def _in_words(fault: str) -> str:
    return next((said for start, said in FAULTS if fault.startswith(start)), line(fault, 200))
