"""Everything that hears what is said: the window, the loops' backlogs, the archive, people and groups.

A message of an allowed channel is heard whoever it is from, answered or not; edits and deletions follow it to
every place it went to.
"""

from discoclaw.loops.schedule import Loops
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.profiles import Profiles
from discoclaw.session.archiving import Archiving
from discoclaw.session.arrival import Arrival
from discoclaw.session.hatch import Hatchery
from discoclaw.session.window import Windows


class Listener:
    """Tells each part that keeps talk about messages, edits and deletions."""

    def __init__(
        self,
        windows: Windows,
        loops: Loops,
        archive: Archiving,
        hatchery: Hatchery,
        profiles: Profiles,
        groups: Groups,
    ) -> None:
        self._windows = windows
        self._loops = loops
        self._archive = archive
        self._hatchery = hatchery
        self._profiles = profiles
        self._groups = groups

    def hear(self, arrival: Arrival) -> None:
        """A message was sent. One whose author was erased while it was on its way is not heard."""
        if arrival.permission.erased:
            return
        window, policy, said = arrival.window, arrival.policy, arrival.said()
        if window.capacity != policy.capacity:
            window.resize(policy.capacity)
        window.remember(said, shown=policy.context_history)
        if arrival.permission.holds:
            self._loops.hear(said, arrival.place, arrival.session_key, window=window.capacity)
        self._archive.hear(said, arrival.place, arrival.session_key)
        self._meet(arrival)

    def reopen(self) -> None:
        """The connection was away: what was said meanwhile is read from the chat's history."""
        self._windows.reopen()

    def amend(self, message_id: str, author_id: str, text: str, session_key: str) -> None:
        """A message was edited in the chat."""
        self._windows.amend(message_id, text, session_key)
        self._loops.amend(session_key, author_id, message_id, text)
        self._archive.amend(message_id, author_id, text)
        self._hatchery.amend(message_id, text)

    def forget(self, message_id: str, session_key: str | None) -> None:
        """A message was deleted in the chat: it leaves the window, and no loop sees it.

        Without a session, which the chat does not always tell, it is looked for everywhere.
        """
        self._windows.forget(message_id, session_key)
        self._loops.forget(message_id)
        self._archive.delete(message_id)
        self._hatchery.forget(message_id)

    def _meet(self, arrival: Arrival) -> None:
        """Note who was seen where. Nothing is kept about guests, who cannot ask for it to be erased."""
        author, place, message = arrival.message.author, arrival.place, arrival.message
        kept = author.allowed and arrival.permission.holds
        if kept:
            self._profiles.seen(author.id, author.name, message.sent_at, where=place.guild_id or "")
        user_id = author.id if kept else None
        self._groups.seen(place, message.sent_at, user_id=user_id, name=author.name)
