"""Authentication with a relay (NIP-42): its challenge, signed and sent back, once for each challenge.

The signed event names the relay, so that no relay can use it to pose as us at another one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from discoclaw.core.errors import NostrError, RelayRefused, RelayUnreachable
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.relays.pending_oks import PendingOks
from discoclaw.nostr.relays.wire import AUTH_KIND, Ok, auth_frame

_PATIENCE: Final = 0.1
"""The share of the time limit to wait for what may never come.

That is a challenge on connecting, which some relays send only when they refuse something, and the OK for our
answer, which nostr-relay never sends."""


class Authentication:
    """The authentication on the current connection to the relay at `url`.

    `count` is how often we have authenticated, on all connections.
    """

    def __init__(
        self, keys: Keys, url: str, send: Callable[[str], Awaitable[None]], now_ms: Callable[[], int]
    ) -> None:
        self.count = 0
        self._keys = keys
        self._url = url
        self._send = send
        self._now_ms = now_ms
        self._challenge = ""
        self._answered = ""
        self._challenged = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pending = PendingOks()

    @property
    def requested(self) -> bool:
        """Whether the relay has sent a challenge."""
        return bool(self._challenge)

    @property
    def done(self) -> bool:
        """Whether we have answered the relay's last challenge."""
        return bool(self._challenge) and self._answered == self._challenge

    def reset(self, error: RelayUnreachable) -> None:
        """The connection is lost: a challenge counts only on its own connection."""
        self._challenge = self._answered = ""
        self._challenged.clear()
        self._pending.fail(error)

    async def wait_for_challenge(self, connected_at: float, timeout_s: float) -> None:
        """Give the relay time for its challenge.

        Most send it right after connecting (`connected_at`, loop time).
        """
        left_s = connected_at + timeout_s * _PATIENCE - asyncio.get_running_loop().time()
        if left_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._challenged.wait()

    def challenged(self, challenge: str) -> bool:
        """Remember a challenge. Returns whether it is the first one on this connection."""
        first = not self._challenge
        self._challenge = challenge
        self._challenged.set()
        return first

    def resolve(self, ok: Ok) -> bool:
        """Returns whether an OK is about our authentication."""
        return bool(ok.id) and self._pending.resolve(ok)

    async def authenticate(self, timeout_s: float) -> None:
        """Answer the current challenge, unless that was done or tried. Waits for a challenge and for the OK.

        Raises RelayRefused and RelayUnreachable.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._challenged.wait()
        except TimeoutError:
            why = "it requires authentication, but sends no challenge"
            raise RelayRefused(why, prefix="auth-required") from None
        async with self._lock:
            if self._answered != self._challenge:
                # Before the answer is sent, so that a rejected proof is not tried again for the same
                # challenge.
                self._answered = self._challenge
                await self._answer(self._signed(self._challenge), timeout_s * _PATIENCE)

    def _signed(self, challenge: str) -> Event:
        tags = [["relay", self._url], ["challenge", challenge]]
        try:
            return self._keys.sign(AUTH_KIND, "", tags, self._now_ms() // 1000)
        except NostrError as error:
            raise RelayRefused(f"its challenge cannot be signed: {error}", prefix="auth-required") from None

    async def _answer(self, event: Event, timeout_s: float) -> None:
        with self._pending.expect(event.id) as pending:
            await self._send(auth_frame(event))
            self.count += 1
            done, _ = await asyncio.wait({pending}, timeout=timeout_s)
            answer = pending.result() if done else None
        if isinstance(answer, RelayUnreachable):
            raise answer
        if answer is not None and not answer.accepted:
            raise RelayRefused(f"it rejects our authentication: {answer.text}", prefix="restricted")
