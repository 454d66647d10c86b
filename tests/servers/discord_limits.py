"""What the loopback Discord counts: starts of gateway sessions, REST calls of the bot, and nonces.

All of it goes by one `Clock`, which a test can stop and move on, so that no test has to wait for a limit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.servers.discord_things import Channel, Json, Message, User

DAY_S = 86_400.0
NONCE_S = 300.0  # Discord says "the past few minutes"


class Clock:
    """Seconds that pass by themselves until they are stopped, and as far as a test says."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._stopped: float | None = None

    def now(self) -> float:
        return (time.monotonic() if self._stopped is None else self._stopped) + self._ahead

    def stop(self) -> None:
        """From now on only `advance` moves it."""
        self._stopped = time.monotonic()

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@dataclass(frozen=True)
class Violation:
    """An IDENTIFY that came too early: its shard, and the seconds since the last one of its bucket."""

    shard: tuple[int, int]
    after_s: float


class IdentifyLimits:
    """The session start limits: so many IDENTIFYs a day, and one every few seconds for each bucket.

    A bucket is `shard_id % max_concurrency`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._last: dict[int, float] = {}  # bucket -> when it last started a session
        self.interval_s = 5.0
        self.max_concurrency = 1
        self.total = self.remaining = 1000
        self.violations: list[Violation] = []

    def spend(self) -> bool:
        """Counts one IDENTIFY; False when none are left for today."""
        self._renew()
        if self.remaining == 0:
            return False
        self.remaining -= 1
        return True

    def admit(self, shard: tuple[int, int]) -> bool:
        """Whether this shard's bucket may start a session now; a refusal is kept in `violations`."""
        bucket, now = shard[0] % self.max_concurrency, self._clock.now()
        passed = now - self._last.get(bucket, float("-inf"))
        if passed < self.interval_s:
            self.violations.append(Violation(shard, passed))
            return False
        self._last[bucket] = now
        return True

    def payload(self) -> Json:
        """The `session_start_limit` of `GET /gateway/bot`."""
        self._renew()
        return {
            "total": self.total,
            "remaining": self.remaining,
            "reset_after": int((self._began + DAY_S - self._clock.now()) * 1000),
            "max_concurrency": self.max_concurrency,
        }

    def _renew(self) -> None:
        if self._clock.now() >= self._began + DAY_S:
            self._began, self.remaining = self._clock.now(), self.total


class RestLimit:
    """The global limit of a bot, counted over all its connections; off until `per_window` is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = float("-inf")
        self._used = 0
        self.per_window: int | None = None
        self.window_s = 1.0

    def retry_after(self) -> float:
        """Counts one call; the seconds to wait if it is one too many, else 0."""
        if self.per_window is None:
            return 0.0
        now = self._clock.now()
        if now >= self._began + self.window_s:
            self._began, self._used = now, 0
        self._used += 1
        return self._began + self.window_s - now if self._used > self.per_window else 0.0


class Nonces:
    """The messages of the last few minutes by channel, author and nonce."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[tuple[int, int, str], tuple[Message, float]] = {}

    def find(self, channel: Channel, author: User, nonce: str) -> Message | None:
        """The author's message with this nonce, unless it is deleted or minutes old."""
        message, at = self._sent.get((channel.id, author.id, nonce), (None, 0.0))
        fresh = self._clock.now() - at < NONCE_S
        return message if message is not None and fresh and not message.deleted else None

    def keep(self, message: Message, nonce: str) -> None:
        self._sent[message.channel.id, message.author.id, nonce] = (message, self._clock.now())
