"""The buttons below an answer, as discord.py knows them: Stop while it is written, then Again and Go on."""

import logging
from abc import abstractmethod
from typing import ClassVar

from discoclaw.bot.answer_buttons.acts import Anew
from discoclaw.bot.answer_buttons.rows import LABELS, above
from discoclaw.bot.answers import sentence
from discoclaw.bot.buttons import USER, Control, PersonalButton
from discoclaw.bot.pressed import whisper
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.core.errors import ChatError, NotNow

log = logging.getLogger(__name__)

NO_ANSWER = "Discord doesn't answer me right now. Please try again in a moment."
ASKED = r"(?P<asked>\d{1,20})"


class AnswerButton(PersonalButton, template=r"(?!)"):
    """A button below an answer. The answer shows what came of it, so nothing else is said."""

    needs: ClassVar = ()
    label: ClassVar[str]

    def __init__(self, custom_id: str) -> None:
        super().__init__(custom_id, self.label)

    @abstractmethod
    async def act(self, anew: Anew, press: Press) -> None:
        """Do it. Raises Refused and ChatError."""

    async def do(self, presses: Presses, press: Press) -> str:
        try:
            await self.act(press.client.anew, press)
        except NotNow as refusal:
            return sentence(refusal)  # the buttons stay
        except ChatError as error:
            log.warning("a button below an answer did nothing: %s", error)
            return NO_ANSWER
        return ""

    async def show(self, press: Press, outcome: Outcome) -> None:
        """Say what was taken back with the old answer, if anything was."""
        if outcome:
            await whisper(press, str(outcome).lstrip())


class StopButton(AnswerButton, template=rf"stop:{USER}:{ASKED}"):
    """Ends an answer that is being written."""

    label = LABELS["stop"]

    async def act(self, anew: Anew, press: Press) -> None:
        await anew.stop(press, self.known["asked"])


class AgainButton(AnswerButton, template=rf"again:{USER}:{ASKED}:(?P<above>[0-9a-z.]*)"):
    """Has the same question answered once more."""

    label = LABELS["again"]

    async def act(self, anew: Anew, press: Press) -> None:
        asked = self.known["asked"]
        await anew.again(press, asked, above(asked, self.known["above"]))


class MoreButton(AnswerButton, template=rf"more:{USER}:{ASKED}"):
    """Has an answer continued."""

    label = LABELS["more"]

    async def act(self, anew: Anew, press: Press) -> None:
        await anew.more(press, self.known["asked"])


ALL: tuple[type[Control], ...] = (StopButton, AgainButton, MoreButton)
"""The client registers these before it connects."""
