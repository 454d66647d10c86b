"""Questions of turns to a shared store, all that wait with one statement.

While a statement is under way, whatever else is to be claimed or looked at waits for the next one. A thousand
messages at one instant are then two statements on one connection, and not a thousand that wait for the
connections of everything else. Independent of what the answers are used for.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from discoclaw.memory.disk.members import Claimed
from discoclaw.memory.disk.threads import Threads


@dataclass(eq=False, slots=True)
class _Question:
    """What several turns want to know: messages to claim, and texts of which they need the version."""

    answer: "asyncio.Future[Claimed]"
    messages: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class Asking:
    """Asks with `ask`, which blocks. The store has to answer a statement within `answer_s`."""

    def __init__(
        self, ask: Callable[[Collection[int], Collection[str]], Claimed], *, answer_s: float
    ) -> None:
        self._ask = ask
        self._answer_s = answer_s
        self._threads = Threads(1)
        self._next: _Question | None = None
        self._task: asyncio.Task[None] | None = None

    async def claimed(self, message: int | None, names: Collection[str]) -> Claimed:
        """Claim a message, if one is given, and get the versions of texts; others may be in the answer too.

        Raises OSError, of which TimeoutError.
        """
        if self._next is None:
            self._next = _Question(asyncio.get_running_loop().create_future())
        question = self._next
        question.names.update(names)
        if message is not None:
            question.messages.add(message)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="claims")
        return await asyncio.shield(question.answer)

    async def _run(self) -> None:
        try:
            while (question := self._next) is not None:
                self._next = None
                try:
                    question.answer.set_result(await self._answered(question))
                except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
                    question.answer.set_exception(error)
                    question.answer.exception()  # retrieved, also if nobody waits for it any more
        finally:
            self._task = None

    async def _answered(self, question: _Question) -> Claimed:
        # Ordered, so that two processes that claim the same messages do not wait for each other.
        asked = self._threads.submit(self._ask, sorted(question.messages), question.names)
        waiting = asyncio.wrap_future(asked)
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait([waiting], timeout=self._answer_s)
        if not asked.done():  # whatever the event loop knows by now: it may be busy for longer than that
            raise TimeoutError(f"it did not answer within {self._answer_s:g} s")
        return asked.result()
