"""Proving to a relay who we are (NIP-42): its challenge, signed, sent back; once for each challenge.

The proof names the relay, so that none can use ours with another one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from discoclaw.core.errors import NostrError, RelayRefused, RelayUnreachable
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.relays.answers import Answers
from discoclaw.nostr.relays.wire import AUTH_KIND, Ok, auth_frame

_PATIENCE: Final = 0.1
"""The share of the time limit for which it is waited for what may never come: a challenge after connecting,
which some send only when they refuse something, and the OK for a proof, which nostr-relay never gives."""


class Proof:
    """What we have proved on the present connection to the relay at `url`.

    `given` counts how often it was done, on all connections.
    """

    def __init__(
        self, keys: Keys, url: str, send: Callable[[str], Awaitable[None]], now_ms: Callable[[], int]
    ) -> None:
        self.given = 0
        self._keys = keys
        self._url = url
        self._send = send
        self._now_ms = now_ms
        self._challenge = ""
        self._answered = ""
        self._challenged = asyncio.Event()
        self._giving = asyncio.Lock()
        self._answers = Answers()

    @property
    def wanted(self) -> bool:
        """The relay has asked who we are."""
        return bool(self._challenge)

    @property
    def done(self) -> bool:
        return bool(self._challenge) and self._answered == self._challenge

    def reset(self, why: RelayUnreachable) -> None:
        """The connection is gone."""
        self._challenge = self._answered = ""
        self._challenged.clear()
        self._answers.lose(why)

    async def asked(self, since: float, timeout_s: float) -> None:
        """Give the relay time to ask, as most do as soon as we are connected (`since`, the loop's time)."""
        left_s = since + timeout_s * _PATIENCE - asyncio.get_running_loop().time()
        if left_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._challenged.wait()

    def challenge(self, text: str) -> bool:
        """Note a challenge; whether it is the first of this connection."""
        first = not self._challenge
        self._challenge = text
        self._challenged.set()
        return first

    def hear(self, ok: Ok) -> bool:
        """Whether an OK is about a proof of ours."""
        return bool(ok.id) and self._answers.hear(ok)

    async def give(self, timeout_s: float) -> None:
        """Prove it, unless that was done, or tried, for this challenge. Waits for a challenge and the OK.

        Raises RelayRefused, RelayUnreachable.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._challenged.wait()
        except TimeoutError:
            why = "it wants to know who we are, and does not ask"
            raise RelayRefused(why, prefix="auth-required") from None
        async with self._giving:
            if self._answered != self._challenge:
                self._answered = self._challenge
                await self._prove(self._signed(self._challenge), timeout_s * _PATIENCE)

    def _signed(self, challenge: str) -> Event:
        tags = [["relay", self._url], ["challenge", challenge]]
        try:
            return self._keys.sign(AUTH_KIND, "", tags, self._now_ms() // 1000)
        except NostrError as error:
            raise RelayRefused(f"its challenge can not be signed: {error}", prefix="auth-required") from None

    async def _prove(self, event: Event, timeout_s: float) -> None:
        with self._answers.expect(event.id) as answer:
            await self._send(auth_frame(event))
            self.given += 1
            done, _ = await asyncio.wait({answer}, timeout=timeout_s)
            said = answer.result() if done else None
        if isinstance(said, RelayUnreachable):
            raise said
        if said is not None and not said.accepted:
            raise RelayRefused(f"it does not accept who we are: {said.text}", prefix="restricted")
