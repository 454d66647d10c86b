"""What a model was asked, and what it cost, as the provider reports it and as it is estimated."""

from typing import Any

import pytest

from discoclaw.core.errors import ModelBadOutput, ModelTimeout
from discoclaw.core.model import Usage
from discoclaw.core.patch import Summary
from discoclaw.core.ports import Shape
from discoclaw.core.usage import used
from discoclaw.evals.talk import Metered
from tests.evals.answers import AnsweringModel

SAID = Summary(summary="They talked.")
ASKED: dict[str, Any] = {"system": "Sum up.", "prompt": "Talk: hi", "shape": Summary}


class Reporting(AnsweringModel):
    """Reports these usages before it answers or fails."""

    def __init__(self, *usages: Usage, error: Exception | None = None) -> None:
        super().__init__(lambda prompt: SAID.model_dump_json())
        self._usages = usages
        self._error = error

    async def structured(self, *, shape: type[Shape], prompt: str, **asked: Any) -> Shape:
        for usage in self._usages:
            used("a model", usage)
        if self._error is not None:
            raise self._error
        return await super().structured(shape=shape, prompt=prompt, **asked)


class TestACall:
    async def test_counts_every_answer_that_the_provider_reports(self) -> None:
        metered = Metered(Reporting(Usage(100, 10, cache_read_tokens=50), Usage(120, 5)))
        assert await metered.structured(**ASKED) == SAID
        (call,) = metered.calls
        assert (call.requests, call.tokens_in, call.tokens_out) == (2, 270, 15)
        assert not call.valid and not call.estimated, "the first answer was of no use"

    async def test_is_estimated_where_nobody_counts(self) -> None:
        metered = Metered(Reporting())
        await metered.structured(**ASKED)
        (call,) = metered.calls
        assert (call.requests, call.tokens_in, call.tokens_out) == (1, 3, 6)
        assert call.valid and call.estimated

    async def test_that_brought_nonsense_was_answered_and_one_that_timed_out_was_not(self) -> None:
        for error, answered in ((ModelBadOutput("prose"), True), (ModelTimeout("late"), False)):
            metered = Metered(Reporting(error=error))
            with pytest.raises(type(error)):
                await metered.structured(**ASKED)
            assert (metered.calls[0].answered, metered.calls[0].valid) == (answered, False)

    async def test_gets_no_report_of_another_one(self) -> None:
        used("a model", Usage(1, 1))
        metered = Metered(Reporting())
        await metered.structured(**ASKED)
        assert metered.calls[0].reported == []
