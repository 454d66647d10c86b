"""One turn of the real bot with the configured model, on a memory of its own that is removed afterwards.

`app/build` makes the bot, so prompt, tools and rules are those of the settings. It connects to nothing but
the model.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import SecretStr

from discoclaw.app.build import build, now_ms
from discoclaw.checkup.asked import Exchange, Listening
from discoclaw.core.message import Author, Inbound, Me, Place, Said
from discoclaw.core.ports import AskOffer, Ending, HatchOffer, Offer
from discoclaw.core.subject import user_subject
from discoclaw.core.times import snowflake_at
from discoclaw.settings import Settings

ME = Me("1000000000000000900", "DiscoClaw")
PERSON = Author("1000000000000000001", "Anna")
PLACE = Place("dm", "1000000000000000500", None, "direct message", private=True)
WORDS = "Please remember this with your tool for that: my teapot is turquoise."
WANTED = "turquoise"
NEVER = 1000
"""Loops begin after so many turns: this is one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What became of a turn: the requests it took, what the person was told, and what is remembered now."""

    exchanges: Sequence[Exchange]
    told: str
    remembered: bool


async def take_turn(settings: Settings, model: Listening) -> Turn:
    """Let the bot answer somebody who wants something remembered. Failures are in the exchanges."""
    before = len(model.exchanges)
    with TemporaryDirectory(prefix="discoclaw-doctor-", ignore_cleanup_errors=True) as folder:
        own = settings.model_copy(update=_apart(Path(folder)))
        reply = _Reply()
        app = build(own, model=model, history=_NoHistory(), me=lambda: ME)
        async with app:
            message = _message()
            await app.talk.receive(message, reply.begun)
            await app.settle()
            view = await app.storage.memory.view(user_subject(PERSON.id))
            remembered = any(WANTED in item.text.lower() for item in view.active())
    return Turn(model.exchanges[before:], reply.text, remembered)


def _apart(folder: Path) -> dict[str, Any]:
    """The settings by which the bot touches nothing of its own, and whose loops don't begin."""
    return {
        "data_dir": folder,
        "store": SecretStr("files"),
        "durable_dir": None,
        "summary_dir": None,
        "durable_enabled": True,
        "asks_first": False,
        "respond_mode": "mention",
        "threads": False,
        "discord_api": None,
        "discord_gateway": None,
        "shards": None,
        "memory_channel": None,
        "response_cache": False,
        "nostr_mode": "off",
        "nostr_relays": (),
        "nostr_key": None,
        "nostr_box_key": None,
        "owner_pubkey": None,
        "embedding_provider": "",
        "embedding_auto": False,
        "transcribe_url": None,
        "heartbeat_minutes": 0.0,
        "summary_every": NEVER,
        "durable_every": NEVER,
    }


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
    shown: Callable[[str], None] = field(default=lambda message_id: None)

    def begun(self, shown: Callable[[str], None]) -> "_Reply":
        self.shown = shown
        return self

    async def push(self, text: str) -> None:
        self.text += text

    async def doing(self, line: str) -> None:
        """Nobody waits for a sign of life."""

    async def note(self, sentences: Sequence[str]) -> None:
        """Nobody reads small print."""

    async def finish(self, ending: Ending = "other") -> str | None:
        message_id = str(snowflake_at(now_ms()))
        self.shown(message_id)
        return message_id

    async def branch_off(self, name: str) -> Place | None:
        return None

    async def drop(self) -> None:
        """There is nothing to drop."""

    async def offer(self, offer: Offer | HatchOffer | AskOffer) -> None:
        """Nobody presses a button."""

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        self.text = text
