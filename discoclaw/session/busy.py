"""Refuses messages for which a queue has no room: everybody is told, without flooding the channel.

The first person is told at once. Those who write within the next seconds are told together, in one message
that names them all: thirty people who ask at once would otherwise need thirty messages, and Discord takes
about one a second. A person is told once, until the queue has room again. Independent of Discord.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from discoclaw.core.errors import ChatError, ChatUnavailable
from discoclaw.core.message import Author
from discoclaw.core.ports import Reply

log = logging.getLogger(__name__)

PAUSE_S = 3.0
"""Between two refusals in one conversation."""


@dataclass(frozen=True, slots=True)
class _Refused:
    name: str
    reply: Reply
    ended: Callable[[bool], None]


class Refusals:
    """Tells people that their messages are not answered. `why` is what they are told."""

    def __init__(self, why: Callable[[], str], *, pause_s: float = PAUSE_S) -> None:
        self._why = why
        self._pause_s = pause_s
        self._told: dict[str, set[str]] = {}
        self._waiting: dict[str, list[_Refused]] = {}
        self._next: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def room(self, session_key: str) -> None:
        """The queue has room again, so whoever is refused from now on is told again."""
        self._told.pop(session_key, None)

    def refuse(self, session_key: str, author: Author, reply: Reply, ended: Callable[[bool], None]) -> None:
        """Tell somebody that their message will not be answered. Does not wait for the chat.

        `ended` is called at the end, with False if the chat was out of reach.
        """
        told = self._told.setdefault(session_key, set())
        if author.id in told:
            self._run(reply.drop())
            ended(True)
            return
        told.add(author.id)
        refused = _Refused(author.name, reply, ended)
        if (waiting := self._waiting.get(session_key)) is not None:
            waiting.append(refused)
            return
        self._waiting[session_key] = [refused]
        now = asyncio.get_running_loop().time()
        self._next = {key: at for key, at in self._next.items() if at > now}
        self._run(self._tell(session_key, self._next.get(session_key, now) - now))

    async def close(self) -> None:
        """Tell those who wait for it, without a further pause."""
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _tell(self, session_key: str, wait_s: float) -> None:
        if wait_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._closing.wait()
        refused = self._waiting.pop(session_key)
        *others, last = refused
        self._next[session_key] = asyncio.get_running_loop().time() + self._pause_s
        done = True
        try:
            for one in others:
                await one.reply.drop()
            await last.reply.fail(self._why(), also=[one.name for one in others])
        except ChatError as error:
            log.warning("a refusal could not be said: %s", error)
            done = not isinstance(error, ChatUnavailable)
        finally:
            for one in refused:
                one.ended(done)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="refusal")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
