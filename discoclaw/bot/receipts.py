"""Receipts: a small silent line wherever something was learned from talk, with a button to take it back.
What waits for the person's yes is asked about in the same way, whether receipts are on or not; but what a
model asks in return is shown below the next answer (`session/agent`). Before the login, all wait.

Told of each commit; sends from tasks of its own, so that neither the writer nor a reply waits. What fails is
a line in the log and nothing more. What is private, or was just forgotten, is not quoted outside the
person's DMs; a receipt that is not out yet quotes nothing that they took back.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import cast

import discord

from discoclaw.bot import wire
from discoclaw.bot.layout import send_either
from discoclaw.bot.proposals import beside, proposed, undo_button
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import Source
from discoclaw.core.message import Place
from discoclaw.core.pending import is_proposal, question_of, settled_as
from discoclaw.core.ports import Passive
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import user_of
from discoclaw.core.yours import read_by, yours
from discoclaw.memory.changes import Listener
from discoclaw.show.answer import Answer
from discoclaw.show.markup import NOTE
from discoclaw.show.text import text_of, verb
from discoclaw.show.words import count, line

log = logging.getLogger(__name__)

MOST_LINES = 3
MOST_ASKED = 6
"""Questions in one message; of more, or of what is private here, the menu shows each in full."""
LONGEST = 200
"""Longest text of one item, in UTF-16 units."""
SECRET = "something private"
UNSAID = {"deletion": "a message was deleted", "edit": "a message was edited"}
"""Why something is no longer said, by who made the commit."""
GONE = "one memory"
_DONE = {"learned": "remembered", "remembered": "remembered", "forgot": "forgotten", "removed": "forgotten"}
_DONE |= dict.fromkeys(("corrected", "changed", "restored"), "corrected")
_A_DM = Place("dm", "", None, "", private=True)
"""The place of a channel that discord.py doesn't know: it knows all but DMs and old threads."""


class Receipts(Passive, Derived, Listener):
    """Sends receipts with `client` where `shows` says so (a place, a person), and questions everywhere.

    It is to be a listener of the memory.
    """

    name = "receipts that are not out"

    def __init__(self, client: discord.Client, shows: Callable[[Place, str], bool]) -> None:
        self._client = client
        self._shows = shows
        self._tasks: dict[asyncio.Task[None], tuple[str, Commit]] = {}
        self._connected = asyncio.Event()

    async def connected(self) -> None:
        """Send what waits: Discord can be reached."""
        self._connected.set()

    def committed(self, subject: str, commit: Commit) -> None:
        """A commit was recorded. Never blocks."""
        user_id, by = user_of(subject), str(commit.metadata.get("by"))
        if user_id is None or not (by in ("extraction", *UNSAID) or by.startswith("memory_")):
            return
        # The newest message that the commit rests on.
        sources = [Source.from_text(event.source) for event in commit.events]
        known = [one for one in sources if one.channel_id.isdigit() and one.message_id.isdigit()]
        source = max(known, key=lambda source: int(source.message_id), default=None)
        if source is None:
            return
        # Whether there may be a receipt, as far as that is known before a channel is looked up.
        channel = self._client.get_channel(int(source.channel_id))
        place = wire.place_of(cast("wire.Channel", channel)) if channel is not None else _A_DM
        if not (self._shows(place, user_id) or any(map(_is_asked, commit.events))):
            return
        task = asyncio.create_task(self._send(user_id, commit, source), name="receipt")
        self._tasks[task] = subject, commit
        task.add_done_callback(self._tasks.pop)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Send no receipt with what was taken back, and nothing about somebody who was erased."""
        for task, (subject, commit) in self._tasks.items() if phase == "ram" else ():
            said = "\n".join(
                card.as_text(in_private=True) for card in self._cards("", commit, "", shows=True)
            )
            if subject == purge.subject and (purge.erases or purge.words.hold(said)):
                task.cancel()

    async def settle(self) -> None:
        """Wait until all receipts are out, if Discord was ever reached."""
        while self._tasks and self._connected.is_set():
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Give up what is not sent yet."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, user_id: str, commit: Commit, source: Source) -> None:
        try:
            await self._connected.wait()
            channel = await channel_of(self._client, source.channel_id)
            with discord_errors():
                here = "" if isinstance(channel, discord.DMChannel) else source.channel_id
                shows = self._shows(wire.place_of(channel), user_id)
                with read_by(f"<@{user_id}>"):  # Discord shows the name
                    made = list(self._cards(user_id, commit, here, shows=shows))
                for card in made:
                    await send_either(channel.send, card, silent=True)
        except ChatError as error:
            log.info("a receipt could not be sent: %s", error)
        except Exception:  # a named edge: nobody awaits this task, and memory goes on
            log.exception("a receipt could not be sent")

    def _cards(self, user_id: str, commit: Commit, here: str, *, shows: bool) -> Iterator[Answer]:
        """Cards of what was done and is asked, with buttons. `here`: a channel's id, "" for their DMs."""
        if shows and (done := receipt(commit, here)):
            yield beside(done, undo_button(user_id, commit.id, commit.branch))
        asked = [event for event in commit.events if _is_asked(event)]
        if asked:
            lines = [f"{_question(event)}: {_quoted(event, here)}" for event in asked]
            whole = len(asked) <= MOST_ASKED and all(_is_open(event, here) for event in asked)
            text, several = _small(lines, MOST_ASKED), len(asked) > 1
            yield proposed(text, user_id, commit.id, commit.branch, whole=whole, several=several)


def receipt(commit: Commit, here: str) -> str:
    """Small print about what a commit did, one line for each item; "" when it changed no item.

    What somebody deleted is not quoted.
    """
    if (because := UNSAID.get(str(commit.metadata.get("by")))) is not None:
        number = sum(verb(event) in _DONE for event in commit.events)
        return f"{NOTE}forgotten, because {because}: {count(number, 'memory')}" if number else ""
    lines = []
    for event in commit.events:
        if (done := _DONE.get(verb(event))) is not None:
            gone = done == "forgotten" and here and _is_open(event, here)
            lines.append(f"{done}: {GONE if gone else _quoted(event, here)}")
    return _small(lines, MOST_LINES)


def _small(lines: list[str], most: int) -> str:
    """Lines in small print, at most so many."""
    if (more := len(lines) - most) > 0:
        lines[most:] = [f"+{more} more"]
    return "\n".join(NOTE + line_ for line_ in lines)


def _quoted(event: Event, here: str) -> str:
    return line(yours(text_of(event)), LONGEST) if _is_open(event, here) else SECRET


def _is_open(event: Event, here: str) -> bool:
    """Whether an event's words may be quoted: in a channel only those that were said there."""
    if not here:
        return event.sensitivity in ("normal", "private")
    return event.sensitivity == "normal" and Source.from_text(event.source).channel_id == here


def _is_asked(event: Event) -> bool:
    """Whether an event proposes something, which waits for a yes, and is not asked about elsewhere."""
    return is_proposal(event) and not settled_as(event) and not question_of(event)


def _question(event: Event) -> str:
    if event.ext["item"].get("status") == "deprecated":
        return "may I forget"
    changes = event.parent_id is not None  # what is new continues no other event
    return "may I correct what I remember to" if changes else "may I remember"
