"""Receipts: a small silent line wherever something was learned from talk, with a button to take it back.

Told of each commit; sends from tasks of its own, so that neither the writer nor a reply waits. What fails is
a line in the log and nothing more. What is private is not quoted outside the person's DMs.
"""

import asyncio
import logging
from collections.abc import Iterator

import discord

from discoclaw.bot.buttons import undo_view
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.links import source_of_event
from discoclaw.bot.pages import SILENT
from discoclaw.bot.texts.markup import NOTE
from discoclaw.core.errors import ChatError, ChatGone
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import Source
from discoclaw.core.subject import user_of
from discoclaw.memory.changes import Listener
from discoclaw.show.words import line

log = logging.getLogger(__name__)

MOST_LINES = 3
LONGEST = 200
"""Of one item, in UTF-16 units."""
SECRET = "something private"


class Receipts(Listener):
    """Sends receipts with `client`. It is to be a listener of the memory."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    def committed(self, subject: str, commit: Commit) -> None:
        """A commit was recorded. Never blocks."""
        user_id, by = user_of(subject), commit.metadata.get("by")
        if user_id is None or not (by == "extraction" or str(by).startswith("memory_")):
            return
        source = _newest(commit)
        if source is None:
            return
        task = asyncio.create_task(self._send(user_id, commit, source), name="receipt")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def start(self) -> None:
        """Nothing to start: the first commit starts the sending."""

    async def settle(self) -> None:
        """Wait until all receipts are out."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Give up what is not sent yet."""
        for task in self._tasks:
            task.cancel()
        await self.settle()

    async def _send(self, user_id: str, commit: Commit, source: Source) -> None:
        try:
            with discord_errors():
                known = self._client.get_channel(int(source.channel_id))
                channel = known or await self._client.fetch_channel(int(source.channel_id))
                if not isinstance(channel, discord.abc.Messageable):
                    raise ChatGone(f"{source.channel_id} takes no messages")
                text = receipt(commit, in_dm=isinstance(channel, discord.DMChannel))
                if text:
                    await channel.send(
                        text,
                        view=undo_view(user_id, commit.id, commit.branch),
                        silent=True,
                        allowed_mentions=SILENT,
                    )
        except ChatError as error:
            log.info("a receipt could not be sent: %s", error)
        except Exception:  # a named edge: nobody awaits this task, and memory goes on
            log.exception("a receipt could not be sent")


def receipt(commit: Commit, *, in_dm: bool) -> str:
    """What a commit did, in small print, one line for each item; "" when it changed no item."""
    lines = list(_lines(commit, in_dm=in_dm))
    if (more := len(lines) - MOST_LINES) > 0:
        lines[MOST_LINES:] = [f"+{more} more"]
    return "\n".join(NOTE + line_ for line_ in lines)


def _lines(commit: Commit, *, in_dm: bool) -> Iterator[str]:
    for event in commit.events:
        verb = _verb(event)
        if verb is not None:
            open_ = event.sensitivity == "normal" or (in_dm and event.sensitivity == "private")
            yield f"{verb}: {line(_text(event), LONGEST) if open_ else SECRET}"


def _verb(event: Event) -> str | None:
    if event.event_type == "observe" or "link" in event.ext:
        return None
    if event.event_type == "forget" or event.ext.get("item", {}).get("status") == "deprecated":
        return "forgotten"
    return "remembered" if event.event_type == "add" else "corrected"


def _text(event: Event) -> str:
    text = event.ext.get("item", {}).get("text")
    return text if isinstance(text, str) else event.object


def _newest(commit: Commit) -> Source | None:
    """The newest message that a commit rests on."""
    sources = [source_of_event(event.source) for event in commit.events]
    known = [one for one in sources if one.channel_id.isdigit() and one.message_id.isdigit()]
    return max(known, key=lambda source: int(source.message_id), default=None)
