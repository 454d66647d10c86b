"""Which buttons stand below an answer, as custom ids: all that a press needs to know stands in them.

Pure. Knows neither discord.py nor what a press does.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from discoclaw.core.ports import Ending
from discoclaw.core.values import dataclass

Row: TypeAlias = tuple[str, ...]
"""The custom ids of the buttons below a message."""
NO_BUTTONS: Final[Row] = ()
LABELS: Final = {"stop": "Stop", "again": "Again", "more": "Go on"}
"""What each button says, by the beginning of its custom id."""
LONGEST: Final = 100
"""Discord's limit for a custom id."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Below:
    """The buttons that may stand below an answer to a person's message.

    `turn_id` is what is being answered: that message, or a press that asked for the rest of an answer. The
    rest can't be given again by itself, so there is no button for that below it; but if it is missing, it can
    be asked for once more.
    """

    user_id: str
    asked_id: str
    turn_id: str

    def live(self) -> Row:
        """While the answer is written."""
        return (f"stop:{self.user_id}:{self.turn_id}",)

    def after(self, ending: Ending, above: Sequence[int]) -> Row:
        """Below the last message of an answer; `above` are its other messages, oldest first."""
        more = f"more:{self.user_id}:{self.asked_id}"
        if ending == "other":
            return NO_BUTTONS
        if self.turn_id != self.asked_id:
            return NO_BUTTONS if ending == "whole" else (more,)
        again = self._again(above)
        return (again, more) if ending == "cut" else (again,)

    def _again(self, above: Sequence[int]) -> str:
        """The button that knows all messages of its answer, as distances: ids would not fit."""
        custom_id, before = f"again:{self.user_id}:{self.asked_id}:", int(self.asked_id)
        for message_id in above:
            longer = f"{custom_id}{_base36(message_id - before)}."
            if len(longer) > LONGEST:
                break  # a message that stays is better than no button
            custom_id, before = longer, message_id
        return custom_id


def above(asked_id: str, distances: str) -> list[int]:
    """The other messages of an answer, as its button knows them."""
    found, before = [], int(asked_id)
    for distance in filter(None, distances.split(".")):
        before += int(distance, 36)
        found.append(before)
    return found


def _base36(number: int) -> str:
    digits = ""
    while number > 0:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
