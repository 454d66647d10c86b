"""One turn of the real bot with the configured model, on a memory of its own that is removed afterwards.

`app/build` makes the bot, so prompt, tools and rules are those of the settings. It connects to nothing but
the model.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discoclaw.app.build import build, now_ms
from discoclaw.checkup.asked import Exchange, Listening
from discoclaw.core.message import Author, Inbound, Me, Place, Said
from discoclaw.core.ports import AnyOffer, Ending, Held
from discoclaw.core.subject import user_subject
from discoclaw.core.times import snowflake_at
from discoclaw.settings import Settings

ME = Me("1000000000000000900", "DiscoClaw")
PERSON = Author("1000000000000000001", "Anna")
PLACE = Place("dm", "1000000000000000500", None, "direct message", private=True)
WORDS = "Please remember this with your tool for that: my teapot is turquoise."
WANTED = "turquoise"
KEPT = (
    "model_provider",
    "api_key",
    "base_url",
    "model",
    "max_tokens",
    "model_timeout_s",
    "connect_timeout_s",
    "loop_timeout_s",
    "context_history",
    "history_budget",
    "prompt_budget",
    "timezone",
    "context_tokens",
    "tools_enabled",
    "summary_model",
    "durable_model",
    "inject_max_chars",
    "recall_limit",
    "enrich_depth",
    "content_dir",
    "dm_privacy",
    "commands_enabled",
)
"""Settings that decide about the prompt, the tools and the model."""
NEVER = 1000
"""Loops begin after so many turns: this is one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of a turn: the requests it took, what the person was told, and what is remembered now."""

    exchanges: Sequence[Exchange]
    told: str
    remembered: bool


async def take_turn(settings: Settings, model: Listening) -> Turn:
    """Let the bot answer somebody who wants something remembered. Failures are in the exchanges."""
    before = len(model.exchanges)
    with TemporaryDirectory(prefix="discoclaw-doctor-", ignore_cleanup_errors=True) as folder:
        reply = _Reply()
        app = build(_apart(settings, Path(folder)), model=model, history=_NoHistory(), me=lambda: ME)
        async with app:
            message = _message()
            await app.talk.receive(message, reply.begun)
            await app.settle()
            view = await app.storage.memory.view(user_subject(PERSON.id))
            remembered = any(WANTED in item.text.lower() for item in view.active())
    return Turn(model.exchanges[before:], reply.text, remembered)


def _apart(settings: Settings, folder: Path) -> Settings:
    """The settings that decide what a turn is; all others are as they are by default, in a folder of its own.

    So it neither listens nor connects anywhere, whatever is set beside these.
    """
    kept: dict[str, Any] = {name: getattr(settings, name) for name in KEPT}
    return Settings.model_construct(**kept, data_dir=folder, summary_every=NEVER, durable_every=NEVER)


def _message() -> Inbound:
    at = now_ms()
    identity = str(snowflake_at(at))
    return Inbound(identity, PERSON, PLACE, PLACE.session_key(PERSON.id), WORDS, at, mentions_us=True)


class _NoHistory:
    """The port `History` of a chat in which nothing was said."""

    async def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        for page in list[list[Said]]():
            yield page


@dataclass(slots=True)
class _Reply:
    """The port `Reply` of a chat that nobody reads."""

    text: str = ""
    unsaid: str = ""
    shown: Callable[[str, str], None] = field(default=lambda message_id, channel_id: None)

    def begun(self, shown: Callable[[str, str], None]) -> "_Reply":
        self.shown = shown
        return self

    async def push(self, text: str) -> None:
        self.text += text

    async def retract(self, left: str) -> None:
        self.text = left

    async def doing(self, line: str) -> None:
        """Nobody waits for a sign of life."""

    async def note(self, sentences: Sequence[str]) -> None:
        """Nobody reads small print."""

    async def finish(self, ending: Ending = "other") -> str | None:
        message_id = str(snowflake_at(now_ms()))
        self.shown(message_id, "0")
        return message_id

    async def branch_off(self, name: str) -> Place | None:
        return None

    @property
    def held(self) -> Held:
        return Held(self.text, PLACE.channel_id, "")

    def hold(self) -> None:
        """Do nothing: this reply shows nothing to anybody."""

    async def drop(self) -> None:
        """There is nothing to drop."""

    async def unsend(self) -> None:
        """Nobody deletes a message."""

    async def offer(self, offer: AnyOffer) -> None:
        """Nobody presses a button."""

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        self.text = text
