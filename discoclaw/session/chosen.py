"""Messages that somebody chose to ask about, while they write the question.

Discord shows a message only while it is chosen, and the bot may not be where it is. Kept in RAM only, a few
at a time; after a restart the message is read again, where that is possible.
"""

from collections import OrderedDict

from discoclaw.core.message import Said
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Withdrawn
from discoclaw.core.subject import user_of
from discoclaw.core.taken_back import Withdrawal

MOST = 200
"""The most messages; beyond that the oldest is forgotten, since its question was most likely abandoned."""


class Chosen(PersonalData):
    """The chosen messages, by the person who chose and the message's id."""

    name = "messages chosen to ask about"

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Said] = OrderedDict()

    def keep(self, user_id: str, message_id: str, quoted: Said) -> None:
        """Remember the message that somebody begins to ask about."""
        self._kept[user_id, message_id] = quoted
        self._kept.move_to_end((user_id, message_id))
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def take(self, user_id: str, message_id: str) -> Said | None:
        """The message that somebody asks about now; None if it is not known any more."""
        return self._kept.pop((user_id, message_id), None)

    def forget(self, erasure: Erasure) -> None:
        """Drop what an erased person wrote, and what they chose."""
        user_id = user_of(erasure.subject)
        for (chooser, message_id), quoted in list(self._kept.items()):
            if user_id in (chooser, quoted.author_id):
                del self._kept[chooser, message_id]

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Drop the messages that somebody took back, or edited: they are read again as they are now."""
        for key, said in list(self._kept.items()):
            if withdrawal.covers(said) or said.id in withdrawal.changed:
                del self._kept[key]
        return NOTHING_WITHDRAWN
