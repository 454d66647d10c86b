"""A model that tidies by script."""

import asyncio
from collections.abc import Iterable
from typing import Any

from discoclaw.core.model import Purpose
from discoclaw.core.patch import Consolidation

ANN, BOB, CAT = "user-1", "user-2", "user-3"


class Tidier:
    """The port `Model`, as far as tidying asks it. Answers come from a queue; an empty one finds nothing.

    An answer is a value of the shape, an exception to raise, or a function from the prompt to one of these.
    With `gate` set, every call waits until somebody opens it.
    """

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.answers = list(answers)
        self.always: Any = None
        self.gate: asyncio.Event | None = None
        self.prompts: list[str] = []
        self.systems: list[str] = []
        self.at_once = 0
        self.most_at_once = 0

    async def stream(self, request: Any) -> Any:
        raise AssertionError("tidying does not talk")
        yield

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: Any, max_tokens: int = 2048
    ) -> Any:
        self.prompts.append(prompt)
        self.systems.append(system)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.at_once -= 1
        answer = self.always or (self.answers.pop(0) if self.answers else Consolidation())
        if callable(answer):
            answer = answer(prompt)
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, shape)
        return answer

    async def close(self) -> None:
        pass
