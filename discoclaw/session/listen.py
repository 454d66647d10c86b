"""Passes what is said to every part that stores it: the window, the loops, the archive, people and groups.

They receive every message of an allowed channel, whoever wrote it and whether or not it is answered. Edits
and deletions reach every part that got the message.
"""

from collections.abc import Collection
from dataclasses import dataclass

from discoclaw.core.message import Place, Said, sessions_with
from discoclaw.loops.schedule import Loops
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.profiles import Profiles
from discoclaw.session.archiving import Archiving
from discoclaw.session.files.shelf import Shelf
from discoclaw.session.hatch import Hatchery
from discoclaw.session.turn import Stops, Turn
from discoclaw.session.window import Windows


@dataclass(frozen=True, slots=True)
class Listener:
    """Tells each part that keeps talk about messages, edits and deletions."""

    windows: Windows
    loops: Loops
    archive: Archiving
    hatchery: Hatchery
    profiles: Profiles
    groups: Groups
    shelf: Shelf
    stops: Stops

    def hear(self, turn: Turn) -> None:
        """Pass a message on, unless it was deleted or its author erased while it was on its way."""
        if turn.permission.erased or self.stops.deleted(turn.message.asks):
            return
        said = turn.said()
        self._take_in(turn, said)
        self.archive.hear(said, turn.place, turn.session_key)
        # Record who was seen where. Nothing is stored about guests, who cannot ask for it to be erased.
        author, place, message = turn.message.author, turn.place, turn.message
        kept = author.allowed and turn.permission.holds
        if kept:
            self.profiles.seen(author.id, author.name, message.sent_at, where=place.guild_id or "")
        user_id = author.id if kept else None
        self.groups.seen(place, message.sent_at, user_id=user_id, name=author.name)

    def hear_aside(self, turn: Turn) -> None:
        """Take in what somebody asked with a command. It goes to no part where others could find it."""
        if not turn.permission.erased:
            self._take_in(turn, turn.said())

    def _take_in(self, turn: Turn, said: Said) -> None:
        turn.enter(said)
        if turn.permission.holds:
            window, late = turn.window.capacity, turn.message.late
            self.loops.hear(said, turn.place, turn.session_key, window=window, late=late)

    def reopen(self) -> None:
        """After a lost connection: have the missed messages read from the chat's history."""
        self.windows.reopen()

    def amend(self, now: Said, session_key: str) -> None:
        """Take over an edit in the chat. `now` is the message with its new text."""
        for key in sessions_with(now.id, session_key):
            self.windows.amend(now, key)
            self.loops.tracks.amend(key, now.author_id, now.id, now.text, now.edited_at)
        self.shelf.keep_only(now.id, {file.id for file in now.files})
        self.archive.amend(now.id, now.author_id, now.text)
        self.hatchery.amend(now.id, now.text)

    def recent(self, session_key: str) -> tuple[Said, ...]:
        """The messages in the window of a conversation."""
        return self.windows.recent(session_key)

    def hear_again(self, said: Said, place: Place, session_key: str, *, soon: bool) -> None:
        """Have an edited message learned from once more; see `Loops.hear_again`."""
        self.loops.hear_again(said, place, session_key, soon=soon)

    def forget(self, message_ids: Collection[str], session_key: str | None) -> dict[str, Said]:
        """Take over a deletion: the messages and answers to them leave the window, and no loop sees them.

        What is being answered no longer is. The chat does not always name the session; without one all of
        them are searched. Returns the messages that were still known.
        """
        self.stops.delete(message_ids)
        found = self.windows.forget(message_ids, session_key)
        message_ids = {*message_ids, *found}
        found |= self.loops.tracks.forget(*message_ids)
        self.shelf.drop(message_ids)
        for message_id in message_ids:
            self.archive.delete(message_id)
            self.hatchery.forget(message_id)
        return found
